"""User's wishes for a TCP test, and the plan made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...config.lookup import load_dut
from ...config.model import DutConfig
from ...config.option import WAN, of_options
from ...config.variants import NO_VARIANT
from ...core.errors import ConfigError
from ...core.tcp.model import TUNNELS, Leg, TcpPlan
from ..options import RunRequest
from .options import BdpWords, TcpSetup, TcpWish


@dataclass(frozen=True, kw_only=True)
class TcpRequest(TcpSetup, RunRequest):
    """One test, as asked."""

    plan: TcpPlan
    verb: str = "tcp"


def make_tcp_request(dut: str, wish: TcpWish, setup: TcpSetup) -> TcpRequest:
    """The test that is asked for; ConfigError names what is wrong with it."""
    if setup.variant == NO_VARIANT:
        setup = replace(setup, variant=None)
    config = load_dut(dut, setup.configs_dir, setup.prefix)
    own = dict(config.twin.tcp.variants) if setup.sim and config.twin is not None else {}
    if setup.variant not in own:  # a twin may have variants that its config has not
        config = config.with_variant(setup.variant)
    config = config.with_tunnel(setup.tunnel).with_wan(WAN.read(setup.wan))
    if not (setup.apply or setup.sim):
        _require_nothing_set(config, wish)
    if config.dials_in and config.endpoints is not None and config.endpoints.tunnel != TUNNELS[0]:
        raise ConfigError(f"{config.file}: PPPoE and a tunnel", "take one of them")
    if not setup.sim and config.endpoints is not None and config.endpoints.pppoe is not None:
        config.endpoints.pppoe.secret()  # which refuses to go without, before anything is opened
    labels = {"label": setup.label} if setup.label else {}
    return TcpRequest(**vars(setup), dut=config, plan=plan_of(wish, config), labels=labels)


def make_bdp_request(words: BdpWords, setup: TcpSetup) -> TcpRequest:
    """Make a request with the hosts' buffers as found, and as the WAN's BDP needs them; ConfigError for a wrong one."""
    wish = words.wish()
    request = make_tcp_request(words.dut, wish, setup)
    wan = request.dut.wan
    if wan is None or not wan.bdp_bytes:
        there = "no WAN" if wan is None else f"a WAN of {wan}"
        raise ConfigError(f"{request.dut.name} has {there}: there is no BDP", "state one: --wan 20ms,1gbit")
    buffers = words.buffers_of(wan.bdp_bytes)
    return replace(request, plan=plan_of(replace(wish, buffers=buffers), request.dut), verb="bdp")


def _require_nothing_set(config: DutConfig, wish: TcpWish) -> None:
    """ConfigError for what has to be set before the test, with --no-apply."""
    remedy = "leave one of them out"
    if config.chosen.pppoe:
        raise ConfigError(f"variant {config.variant} dials in, which --no-apply does not", remedy)
    if config.wan is not None:
        raise ConfigError(f"a WAN of {config.wan}, which --no-apply does not set", remedy)
    if config.endpoints is not None and config.endpoints.through.is_opened:
        raise ConfigError(f"a tunnel ({config.endpoints.tunnel}), which --no-apply does not open", remedy)
    if wish.buffers != (None,):
        raise ConfigError("buffers of the endpoints, which --no-apply does not set", remedy)


def plan_of(wish: TcpWish, config: DutConfig) -> TcpPlan:
    """Each IP version in turn, each repetition, each way. ConfigError where the endpoints have no such addresses."""
    there = config.hosts.versions
    asked = {"4": (4,), "6": (6,), "both": (4, 6), None: there[:1]}[wish.ip]
    for version in asked:
        if version == 6 and config.hosts.through.is_opened:
            raise ConfigError(f"tunnel {config.hosts.tunnel} carries IPv4 only", "take --ip 4, or --tunnel none")
        if version not in there:
            raise ConfigError(
                f"the endpoints of {config.file} have no addresses of IPv{version} on both sides",
                f"add them, or take --ip {there[0]}",
            )
    repetitions = range(1, wish.repeat + 1)
    legs = tuple(
        Leg(way, version, again, size, congestion)
        for version in asked
        for congestion in wish.congestions
        for size in wish.buffers
        for again in repetitions
        for way in wish.ways
    )
    return of_options(TcpPlan, wish, legs=legs)


def expected_s(request: TcpRequest) -> float:
    """Duration of the run in seconds by its own clock, without what comes before the first leg."""
    plan = request.plan
    pings = plan.pings * len({leg.version for leg in plan.legs})
    return pings + len(plan.legs) * (plan.time_s + plan.omit_s)
