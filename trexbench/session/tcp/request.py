"""Requests for TCP tests, made of the user's options, and their plans."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...config.lookup import load_dut
from ...config.model import DutConfig
from ...config.option import WAN, of_options
from ...config.variants import NO_VARIANT
from ...core.errors import ConfigError
from ...core.tcp.plan import TUNNELS, Leg, TcpPlan, Way
from ..options import RunRequest
from .options import LEAST_BUFFER, MOST_BUFFER, TcpSetup, TcpWish

MOST_STREAMS, LONGEST_S, MOST_REPEATS, MOST_PINGS = 128, 86_400.0, 1000, 10_000
MOST_REPORTED = 30_000
"""Most intervals of all connections that the genuine iperf3 may print: each takes some 600 bytes, of 32 MB at most."""


@dataclass(frozen=True, kw_only=True)
class TcpRequest(TcpSetup, RunRequest):
    """One test, as asked."""

    plan: TcpPlan
    verb: str = "tcp"


def make_tcp_request(wish: TcpWish, setup: TcpSetup) -> TcpRequest:
    """Make the request for a test; ConfigError names what is wrong with it."""
    wish.require_consistent()
    if setup.variant == NO_VARIANT:
        setup = replace(setup, variant=None)
    config = load_dut(wish.dut, setup.configs_dir, setup.prefix)
    config = config.with_variant(setup.variant).with_tunnel(setup.tunnel).with_wan(WAN.read(setup.wan))
    if not (setup.apply or setup.sim):
        _require_nothing_set(config, wish)
    if config.dials_in and config.endpoints is not None and config.endpoints.tunnel != TUNNELS[0]:
        raise ConfigError(f"{config.file}: PPPoE and a tunnel", "use one of them")
    if not setup.sim and config.endpoints is not None and config.endpoints.pppoe is not None:
        config.endpoints.pppoe.secret()  # raises ConfigError if there is none, before anything is opened
    labels = {"label": setup.label} if setup.label else {}
    verb = "bdp" if wish.bdp else "tcp"
    return TcpRequest(**vars(setup), dut=config, plan=plan_of(wish, config), verb=verb, labels=labels)


def _require_nothing_set(config: DutConfig, wish: TcpWish) -> None:
    """ConfigError for options that set something before the test; for --no-apply."""
    remedy = "leave one of them out"
    if config.chosen.pppoe:
        raise ConfigError(f"variant {config.variant} dials in, which --no-apply does not", remedy)
    if config.wan is not None:
        raise ConfigError(f"a WAN of {config.wan}, which --no-apply does not set", remedy)
    if config.endpoints is not None and config.endpoints.through.is_opened:
        raise ConfigError(f"a tunnel ({config.endpoints.tunnel}), which --no-apply does not open", remedy)
    if wish.buffers or wish.bdp:
        raise ConfigError("buffers of the endpoints, which --no-apply does not set", remedy)


def plan_of(wish: TcpWish, config: DutConfig) -> TcpPlan:
    """Plan each IP version in turn, each repetition, each way. ConfigError if the endpoints lack such addresses."""
    known = config.hosts.versions
    asked = known[:1] if wish.ip is None else {"4": (4,), "6": (6,), "both": (4, 6)}[str(wish.ip)]
    for version in asked:
        if version == 6 and config.hosts.through.is_opened:
            raise ConfigError(f"tunnel {config.hosts.tunnel} carries IPv4 only", "use --ip 4, or --tunnel none")
        if version not in known:
            raise ConfigError(
                f"the endpoints of {config.file} have no addresses of IPv{version} on both sides",
                f"add them, or use --ip {known[0]}",
            )
    _require_within("--repeat", wish.repeat, 1, MOST_REPEATS, "repetitions")
    sizes = wish.sizes(config.wan, config.name)
    each_cc = wish.bdp or len(wish.cc) > 1
    congestions = (tuple(dict.fromkeys(wish.cc)) if each_cc else ()) or (None,)
    legs = tuple(
        Leg(way, version, again, size, congestion)
        for version in asked
        for congestion in congestions
        for size in sizes
        for again in range(1, wish.repeat + 1)
        for way in wish.ways
    )
    usual = 10 if wish.bdp else 60
    plan = of_options(
        TcpPlan,
        wish,
        {"pin": "pinned"},
        legs=legs,
        congestion=None if each_cc else next(iter(wish.cc), None),
        time_s=float(usual) if wish.time is None else wish.time,
        pings=usual if wish.ping is None else wish.ping,
    )
    _require_measurable(plan)
    return plan.as_sent


def _require_measurable(plan: TcpPlan) -> None:
    """ConfigError for figures with which nothing can be measured."""
    _require_within("--streams", plan.streams, 1, MOST_STREAMS, "connections")
    _require_within("--ping", plan.pings, 0, MOST_PINGS, "echo requests")
    _require_within("--time", plan.time_s, 1, LONGEST_S, "s")
    _require_within("--interval", plan.interval_s, 0.1, 60, "s")
    _require_within("--omit", plan.omit_s, 0, 60, "s")
    for leg in plan.legs:
        if leg.buffer_bytes is not None:
            _require_within("--buffers", leg.buffer_bytes, LEAST_BUFFER, MOST_BUFFER, "B")
    directions = 1 + any(leg.way is Way.BIDIR for leg in plan.legs)
    reported = (plan.time_s + plan.omit_s) / plan.interval_s * plan.streams * directions
    if plan.engine == "iperf3" and reported > MOST_REPORTED:
        raise ConfigError(
            f"iperf3 reports all at its end, and {reported:.0f} intervals of its connections are too many",
            f"at most {MOST_REPORTED}: use a longer --interval, fewer -P, or --engine embedded",
        )
    if plan.time_s < 2 * plan.interval_s:
        raise ConfigError(
            f"--time of {plan.time_s:g} s is less than two intervals of {plan.interval_s:g} s", "take longer"
        )


def _require_within(option: str, value: float, least: float, most: float, unit: str) -> None:
    if not least <= value <= most:
        raise ConfigError(f"{option} of {value:.10g} {unit}", f"use {least:g} to {most:.10g}")


def expected_s(request: TcpRequest) -> float:
    """Duration of the run in seconds by its own clock, without what comes before the first leg."""
    plan = request.plan
    pings = plan.pings * len({leg.version for leg in plan.legs})
    return pings + len(plan.legs) * (plan.time_s + plan.omit_s)
