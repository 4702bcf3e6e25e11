"""User's wishes for a TCP test, and the plan made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...config.lookup import load_dut
from ...config.model import DutConfig
from ...config.variants import NO_VARIANT
from ...core.errors import ConfigError
from ...core.tcp.model import TUNNELS, Leg, TcpPlan, Way
from ...core.tcp.wan import Wan

LEAST_BUFFER, MOST_BUFFER = 4096, 2**31 - 1
"""Smallest and largest size that tcp_rmem and tcp_wmem take, in bytes."""
MOST_STREAMS, LONGEST_S, MOST_REPEATS, MOST_PINGS = 128, 86_400.0, 1000, 10_000
MOST_TOLD = 30_000
"""Intervals, of each connection one, that the genuine iperf3 may print: each takes some 600 bytes, of 32 MB at most."""
WAYS = {
    "both": (Way.FORWARD, Way.REVERSE),
    "forward": (Way.FORWARD,),
    "reverse": (Way.REVERSE,),
    "bidir": (Way.BIDIR,),
}
"""By the words of the command line."""
SPEEDUP = 100.0
"""Default simulated seconds per real second."""


@dataclass(frozen=True)
class TcpWish:
    """ways: each a leg of its own. ip: ``4``, ``6`` or ``both``; None: IPv4 where both endpoints have it.

    buffers, congestions: each leg is run with each of them, see core.tcp.model.Leg; None: as the hosts, the plan have
    it. The other fields are those of core.tcp.model.TcpPlan.
    """

    ways: tuple[Way, ...] = (Way.FORWARD, Way.REVERSE)
    buffers: tuple[int | None, ...] = (None,)
    congestions: tuple[str | None, ...] = (None,)
    ip: str | None = None
    streams: int = 1
    time_s: float = 60.0
    interval_s: float = 1.0
    omit_s: float = 0.0
    repeat: int = 1
    pings: int = 60
    congestion: str | None = None
    zerocopy: bool = False
    pinned: bool = False
    engine: str = "embedded"

    def __post_init__(self) -> None:
        """ConfigError for what cannot be measured."""
        self._within("-P", self.streams, 1, MOST_STREAMS, "connections")
        self._within("--repeat", self.repeat, 1, MOST_REPEATS, "repetitions")
        self._within("--ping", self.pings, 0, MOST_PINGS, "echo requests")
        self._within("--time", self.time_s, 1, LONGEST_S, "s")
        self._within("--interval", self.interval_s, 0.1, 60, "s")
        self._within("--omit", self.omit_s, 0, 60, "s")
        for size in self.buffers:
            self._within("buffers", LEAST_BUFFER if size is None else size, LEAST_BUFFER, MOST_BUFFER, "B")
        told = (self.time_s + self.omit_s) / self.interval_s * self.streams * (1 + (Way.BIDIR in self.ways))
        if self.engine == "iperf3" and told > MOST_TOLD:
            raise ConfigError(
                f"iperf3 tells all at its end, and {told:.0f} intervals of its connections are too many",
                f"at most {MOST_TOLD}: take a longer --interval, fewer -P, or --engine embedded",
            )
        if self.time_s < 2 * self.interval_s:
            raise ConfigError(
                f"--time of {self.time_s:g} s is less than two intervals of {self.interval_s:g} s", "take longer"
            )

    @staticmethod
    def _within(option: str, value: float, least: float, most: float, unit: str) -> None:
        if not least <= value <= most:
            raise ConfigError(f"{option} of {value:g} {unit}", f"take {least:g} to {most:g}")


@dataclass(frozen=True)
class TcpSetup:
    """Options for carrying out a test. apply: DUT and endpoints are configured. telemetry: the DUT's counters are read.

    tunnel: in the words of core.tcp.tunnel.parse_tunnel; None: as the config says. wan: likewise. scale: where
    a line of its rate cannot be had, rate and buffers are scaled down together.
    """

    configs_dir: Path | None = None
    apply: bool = True
    telemetry: bool = True
    variant: str | None = None
    sim: bool = False
    speedup: float | None = None
    seed: int | None = None
    label: str | None = None
    tunnel: str | None = None
    wan: Wan | None = None
    scale: bool = False

    def __post_init__(self) -> None:
        """ConfigError for options that contradict --sim, or mean nothing without it."""
        if self.sim and not self.apply:
            raise ConfigError("--sim and --no-apply exclude each other", "leave one of them out")
        for option, number in (("--speedup", self.speedup), ("--seed", self.seed)):
            if not self.sim and number is not None:
                raise ConfigError(f"{option} means nothing without --sim", "add --sim, or leave it out")


@dataclass(frozen=True)
class TcpRequest:
    """One test, as asked. labels: the user's, and a suite's. verb: by which command."""

    dut: DutConfig
    plan: TcpPlan
    setup: TcpSetup
    labels: Mapping[str, str] = field(default_factory=dict)
    verb: str = "tcp"

    @property
    def sim(self) -> bool:
        return self.setup.sim

    @property
    def seed(self) -> int | None:
        return self.setup.seed

    def with_seed(self, seed: int) -> TcpRequest:
        return replace(self, setup=replace(self.setup, seed=seed))

    @property
    def pace(self) -> float:
        """Simulated seconds per real second; 1 for what is real."""
        return (self.setup.speedup or SPEEDUP) if self.setup.sim else 1.0


def make_tcp_request(dut: str, wish: TcpWish, setup: TcpSetup, labels: Mapping[str, str] | None = None) -> TcpRequest:
    """The test that is asked for; ConfigError names what is wrong with it."""
    if setup.variant == NO_VARIANT:
        setup = replace(setup, variant=None)
    config = load_dut(dut, setup.configs_dir)
    own = dict(config.twin.tcp.variants) if setup.sim and config.twin is not None else {}
    if setup.variant not in own:  # a twin may have variants that its config has not
        config = config.with_variant(setup.variant)
    config = config.with_tunnel(setup.tunnel).with_wan(setup.wan)
    if not (setup.apply or setup.sim):
        _require_nothing_set(config, wish)
    if config.dials_in and config.endpoints is not None and config.endpoints.tunnel != TUNNELS[0]:
        raise ConfigError(f"{config.file}: PPPoE and a tunnel", "take one of them")
    if not setup.sim and config.endpoints is not None and config.endpoints.pppoe is not None:
        config.endpoints.pppoe.secret()  # which refuses to go without, before anything is opened
    given = {"label": setup.label} if setup.label else {}
    return TcpRequest(config, plan_of(wish, config), setup, {**given, **(labels or {})})


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
    if config.endpoints is None:
        raise ConfigError(
            f"{config.file} names no endpoints, between which TCP could flow", "state endpoints: (docs/tcp.md)"
        )
    there = config.endpoints.versions
    asked = {"4": (4,), "6": (6,), "both": (4, 6), None: there[:1]}[wish.ip]
    for version in asked:
        if version == 6 and config.endpoints.through.is_opened:
            raise ConfigError(f"tunnel {config.endpoints.tunnel} carries IPv4 only", "take --ip 4, or --tunnel none")
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
    return TcpPlan(
        legs,
        wish.streams,
        wish.time_s,
        wish.interval_s,
        wish.omit_s,
        wish.pings,
        wish.congestion,
        wish.zerocopy,
        wish.pinned,
        wish.engine,
    )


def expected_s(plan: TcpPlan) -> float:
    """Duration of the plan in seconds, without what comes before the first leg."""
    pings = plan.pings * len({leg.version for leg in plan.legs})
    return pings + len(plan.legs) * (plan.time_s + plan.omit_s)
