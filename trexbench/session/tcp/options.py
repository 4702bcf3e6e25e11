"""Declare what a user may set for tests of TCP: the command line and Python's arguments are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from ...config import option as o
from ...core.errors import ConfigError
from ...core.tcp.model import ENGINES, Leg, TcpPlan, Way
from ...core.tcp.wan import format_size

LEAST_BUFFER, MOST_BUFFER = 4096, 2**31 - 1
"""Smallest and largest size that tcp_rmem and tcp_wmem take, in bytes."""
MOST_STREAMS, LONGEST_S, MOST_REPEATS, MOST_PINGS = 128, 86_400.0, 1000, 10_000
MOST_TOLD = 30_000
"""Intervals, of each connection one, that the genuine iperf3 may print: each takes some 600 bytes, of 32 MB at most."""
FACTOR = 2.0
"""Multiple of the BDP that the document sets: half of a buffer is window."""
SWEEP = tuple(2.0**power for power in range(-4, 3))
"""Multiples of the BDP for a sweep, from a sixteenth to four."""
WAYS = {
    "both": (Way.FORWARD, Way.REVERSE),
    "forward": (Way.FORWARD,),
    "reverse": (Way.REVERSE,),
    "bidir": (Way.BIDIR,),
}
"""By the words of users."""


@dataclass(frozen=True, kw_only=True)
class TcpSetup(o.CommonOptions):
    """Options for carrying out a test; None: as the DUT's config says.

    no_apply: Configure neither DUT nor endpoints.
    no_telemetry: Do not read the DUT's counters.
    variant: A variant of the DUT's config: with a firewall, NAT, ...
    tunnel: {tunnels}; between client-server or client-dut. Default: as the config says.
    wan: A long line behind the DUT: 20ms,1gbit; of TCP with losses, too: loss=0.01%. Default: as the config says.
    sim: Simulate DUT and endpoints (the config's twin). Marked as simulated.
    """

    apply: bool = True
    telemetry: bool = True
    variant: o.Name = None
    tunnel: Annotated[str | None, o.TUNNEL] = None
    wan: Annotated[o.Line, o.USUAL] = None

    def __post_init__(self) -> None:
        """ConfigError for options that contradict --sim, or mean nothing without it."""
        self.require_simulated(("--no-apply", not self.apply))


@dataclass(frozen=True)
class TcpWish(TcpPlan):
    """Plan whose legs are still to be made. ways: each a leg of its own.

    buffers, congestions: each leg is run with each of them, see core.tcp.model.Leg; None: as the hosts, the plan have
    it. ip: ``4``, ``6`` or ``both``; None: IPv4 where both endpoints have it.
    """

    legs: tuple[Leg, ...] = ()
    ways: tuple[Way, ...] = (Way.FORWARD, Way.REVERSE)
    buffers: tuple[int | None, ...] = (None,)
    congestions: tuple[str | None, ...] = (None,)
    ip: str | None = None
    repeat: int = 1

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


@dataclass(frozen=True, kw_only=True)
class LegWords:
    """Options of every leg.

    ip: Default: 4, where the endpoints have it.
    streams: Connections at the same time.
    time: Of each leg (60s; with --bdp 10s).
    interval: Of a figure.
    omit: Sent before, and not counted (0s).
    repeat: Each leg so many times over.
    ping: Echo requests, one a second: before, and while each way is full (60; with --bdp 10; 0: none).
    zerocopy: Send without copying, as iperf3 -Z does.
    pin: Keep each endpoint's program on one of its CPUs.
    engine: embedded: needs nothing but python3 on the hosts. iperf3: the program that is installed there.
    """

    heading: ClassVar[o.Heading] = o.Heading.WHAT

    ip: Annotated[str | int | None, ("4", "6", "both")] = None
    streams: Annotated[int, o.Form(letter="-P", shown=True)] = 1
    time: Annotated[o.Amount, o.DURATION, o.USUAL, o.Heading.LENGTH] = 60.0
    interval: Annotated[o.Amount, o.DURATION, o.Form(shown=True), o.Heading.LENGTH] = "1s"
    omit: Annotated[o.Amount | None, o.DURATION, o.Heading.LENGTH] = 0.0
    repeat: Annotated[int, o.Form(shown=True), o.Heading.LENGTH] = 1
    ping: Annotated[int, o.Form("N"), o.Heading.LENGTH] = 60
    zerocopy: bool = False
    pin: bool = False
    engine: Annotated[str, ENGINES, o.Form(shown=True)] = ENGINES[0]

    def _wish(self, **more: Any) -> TcpWish:
        return o.of_options(TcpWish, self, {"ping": "pings", "pin": "pinned"}, **more)


@dataclass(frozen=True, kw_only=True)
class TcpWords(LegWords):
    """Options of ``tcp``. way, in Python: one of WAYS, which are options of their own on the command line.

    dut: A name in dut_configs/, or a file.
    cc: Congestion control: cubic, bbr ... Default: the hosts' own.
    buffers: A leg with TCP's buffers of up to so much on both hosts: 52428800, 16.8mb; may be given again. With --bdp
        in place of what fits.
    """

    dut: Annotated[str, o.Form("NAME", usual=True), o.Heading.THROUGH] = field(kw_only=False)
    way: Annotated[str, o.PYTHON_ONLY] = field(default="both", kw_only=False)
    cc: o.Name = None
    buffers: o.Sizes = ()

    def wish(self) -> TcpWish:
        if self.way not in WAYS:
            raise ConfigError(f"unknown way {self.way!r}", f"name one of {', '.join(WAYS)}")
        return self._wish(ways=WAYS[self.way], congestion=self.cc, buffers=tuple(self.buffers) or (None,))


@dataclass(frozen=True, kw_only=True)
class BdpWords(LegWords):
    """Options of ``tcp --bdp``; legs differ in their buffers: of one choice, and those found unless a range is swept.

    dut: A name in dut_configs/, or a file.
    reverse: The server sends; else the client does.
    cc: Congestion control: cubic, bbr ... Default: the hosts' own. With --bdp once or more: all legs with each.
    factor: With --bdp: the buffers to set, in BDPs (2).
    sweep: With --bdp: buffers of 1/16 to 4 BDPs instead, each double the one before.
    buffers: Buffers of this size instead: 52428800, 16.8mb; may be given again.
    """

    dut: Annotated[str, o.Form("NAME")] = field(kw_only=False)
    reverse: bool = False
    ip: Annotated[str | int | None, ("4", "6")] = None
    time: Annotated[o.Amount, o.DURATION] = 10.0
    ping: Annotated[int, o.Form("N")] = 10
    cc: Annotated[Sequence[str], o.Form("NAME", repeated=True, usual=True), o.Heading.WHAT] = ()
    factor: Annotated[float | None, o.Limits(0, 1000, whole=False), o.Heading.WHAT] = None
    sweep: Annotated[bool, o.Heading.WHAT] = False
    buffers: o.Sizes = ()

    def __post_init__(self) -> None:
        """ConfigError for what excludes one another."""
        given = {"--factor": self.factor is not None, "--sweep": self.sweep, "--buffers": bool(self.buffers)}
        if len(asked := [name for name, there in given.items() if there]) > 1:
            raise ConfigError(f"{asked[0]} and {asked[1]} exclude each other", "leave one of them out")
        if self.factor is not None and not 0 < self.factor <= 1000:
            raise ConfigError(f"--factor of {self.factor:g}", "take more than 0, and 1000 at most")

    def buffers_of(self, bdp_bytes: int) -> tuple[int | None, ...]:
        """Return the legs' buffer sizes, each once; None: as found. ConfigError for a size that no host takes."""
        if self.buffers:
            return tuple(dict.fromkeys((None, *o.SIZES.read(self.buffers))))
        factors = SWEEP if self.sweep else (self.factor or FACTOR,)
        sizes = tuple(round(factor * bdp_bytes) for factor in factors)
        for factor, size in zip(factors, sizes, strict=True):
            if not LEAST_BUFFER <= size <= MOST_BUFFER:
                what = f"buffers of {format_size(size)}, {factor:g} times the BDP"
                most = f"{format_size(LEAST_BUFFER)} to {format_size(MOST_BUFFER)}"
                raise ConfigError(what, f"a host takes {most}: state them with --buffers, or another --wan")
        return sizes if self.sweep else (None, *sizes)

    def wish(self) -> TcpWish:
        ways = WAYS["reverse" if self.reverse else "forward"]
        return self._wish(ways=ways, congestions=tuple(dict.fromkeys(self.cc)) or (None,), buffers=(None,))
