"""Options of TCP tests: the command line and Python's arguments are made of these declarations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from ...config import option as o
from ...core.errors import ConfigError
from ...core.tcp.plan import ENGINES, Way
from ...core.tcp.wan import Wan, format_size

LEAST_BUFFER, MOST_BUFFER = 4096, 2**31 - 1
"""Smallest and largest size that tcp_rmem and tcp_wmem take, in bytes."""
FACTOR = 2.0
"""Default buffer size in BDPs: half of a buffer is window."""
SWEEP = tuple(2.0**power for power in range(-4, 3))
"""Multiples of the BDP for a sweep, from a sixteenth to four."""
WAYS = {
    "both": (Way.FORWARD, Way.REVERSE),
    "forward": (Way.FORWARD,),
    "reverse": (Way.REVERSE,),
    "bidir": (Way.BIDIR,),
}
"""Ways by their words on the command line."""


@dataclass(frozen=True, kw_only=True)
class TcpSetup(o.CommonOptions):
    """Options for carrying out a test; None: as the DUT's config says.

    no_apply: Leave DUT and endpoints as they are. Results are marked as not attested.
    no_telemetry: Do not read the DUT's counters.
    variant: Variant of the DUT, one that its config describes. Default: none, the DUT without any.
    tunnel: Tunnel to send through: {tunnels}; between client-server (default) or client-dut. Default: the DUT config's.
    wan: Long line behind the DUT: its delay and rate, as 20ms,1gbit, also loss=0.01%, jitter=1ms, queue=2.5mb. Default:
        the DUT config's.
    sim: Simulate DUT and endpoints (by the twin in its config). Results are marked.
    """

    apply: bool = True
    telemetry: bool = True
    variant: o.Name = None
    tunnel: Annotated[str | None, o.TUNNEL] = None
    wan: Annotated[o.Line, o.USUAL] = None

    def __post_init__(self) -> None:
        """ConfigError for options that contradict --sim, or mean nothing without it."""
        self.require_simulated(("--no-apply", not self.apply))


@dataclass(frozen=True, kw_only=True)
class TcpWish:
    """Options of ``tcp``. way, in Python: one of WAYS, which are options of their own on the command line.

    dut: The device under test: a name in dut_configs/, or a file.
    bdp: Measure with the hosts' own buffers, then with buffers that fit the bandwidth-delay product of the line.
    ip: Version of IP. Default: 4, or 6 if the endpoints have no other.
    streams: Number of parallel connections.
    time: Counted duration of each leg. Default: 60s; with --bdp 10s.
    interval: Time between readings of the hosts. Default: 1s.
    omit: Time at the start of each leg that is not counted. Default: 0s.
    repeat: Number of times that each leg is measured.
    ping: Number of echo requests, one a second, before the legs and beside each; 0: none. Default: 60; with --bdp 10.
    zerocopy: Send without copying (sendfile), as iperf3 -Z does.
    pin: Keep each endpoint's program on one of its CPUs.
    engine: Program that sends and receives: embedded needs only python3 on the hosts; iperf3 is that installed there.
    cc: Congestion control, as cubic or bbr; may be repeated: all legs with each. Default: the hosts' own.
    factor: With --bdp: buffer size in BDPs. Default: 2.
    sweep: With --bdp: buffers of 1/16 to 4 BDPs instead, each double the one before.
    buffers: Maximum size of both hosts' TCP buffers, as 52428800 or 16.8mb, restored afterwards; may be repeated: all
        legs with each. With --bdp: instead of 2 BDPs. Default: as found.
    """

    heading: ClassVar[o.Heading] = o.Heading.WHAT

    dut: Annotated[str, o.Form("NAME", usual=True), o.Heading.THROUGH] = field(kw_only=False)
    way: Annotated[str | None, o.PYTHON_ONLY] = field(default=None, kw_only=False)
    bdp: Annotated[bool, o.USUAL] = False
    ip: Annotated[str | int | None, ("4", "6", "both")] = None
    streams: Annotated[int, o.Form(letter="-P", shown=True)] = 1
    time: Annotated[o.Time, o.USUAL, o.Heading.LENGTH] = None
    interval: Annotated[o.Time, o.Heading.LENGTH] = 1.0
    omit: Annotated[o.Time, o.Heading.LENGTH] = 0.0
    repeat: Annotated[int, o.Form(shown=True), o.Heading.LENGTH] = 1
    ping: Annotated[int | None, o.Form("N"), o.Heading.LENGTH] = None
    zerocopy: bool = False
    pin: bool = False
    engine: Annotated[str, ENGINES, o.Form(shown=True)] = ENGINES[0]
    cc: Annotated[Sequence[str], o.Form("NAME", repeated=True, usual=True)] = ()
    factor: Annotated[float | None, o.Limits(0, 1000, whole=False)] = None
    sweep: bool = False
    buffers: o.Sizes = ()

    @property
    def ways(self) -> tuple[Way, ...]:
        """Ways of the legs; ConfigError for an unknown word."""
        way = self.way or ("forward" if self.bdp else "both")
        if way not in WAYS:
            raise ConfigError(f"unknown way {way!r}", f"name one of {', '.join(WAYS)}")
        return WAYS[way]

    def require_consistent(self) -> None:
        """ConfigError for an unlikely name, options that exclude one another, or mean nothing without --bdp."""
        for name in self.cc:
            if not re.fullmatch(r"[a-z0-9_-]{1,15}", name):
                raise ConfigError(f"--cc: {name[:40]!r} is not a congestion control", "write it as cubic or bbr")
        sized = [name for name, given in (("--factor", self.factor is not None), ("--sweep", self.sweep)) if given]
        if not self.bdp:
            if sized:
                raise ConfigError(f"{sized[0]} means nothing without --bdp", "add --bdp, or leave it out")
            return
        sized += ["--buffers"] if self.buffers else []
        if len(sized) > 1:
            raise ConfigError(f"{sized[0]} and {sized[1]} exclude each other", "leave one of them out")
        if self.factor is not None and not 0 < self.factor <= 1000:
            raise ConfigError(f"--factor of {self.factor:g}", "use more than 0, and 1000 at most")
        double = [f"--{self.way}"] if self.way in ("both", "bidir") else []
        double += ["--ip both"] if self.ip == "both" else []
        if double:
            raise ConfigError("--bdp measures one way and one version of IP", f"leave {' and '.join(double)} out")

    def sizes(self, wan: Wan | None, name: str) -> tuple[int | None, ...]:
        """Return the legs' buffer sizes, each once; None: as found. name: of the DUT.

        ConfigError for a size that no host takes, and for --bdp without a WAN that has a BDP.
        """
        stated = tuple(dict.fromkeys(o.SIZES.read(self.buffers)))
        if not self.bdp:
            return stated or (None,)
        if wan is None or not wan.bdp_bytes:
            there = "no WAN" if wan is None else f"a WAN of {wan}"
            raise ConfigError(f"{name} has {there}: there is no BDP", "state one: --wan 20ms,1gbit")
        if stated:
            return tuple(dict.fromkeys((None, *stated)))
        factors = SWEEP if self.sweep else (self.factor or FACTOR,)
        sizes = tuple(round(factor * wan.bdp_bytes) for factor in factors)
        for factor, size in zip(factors, sizes, strict=True):
            if not LEAST_BUFFER <= size <= MOST_BUFFER:
                what = f"buffers of {format_size(size)}, {factor:g} times the BDP"
                most = f"{format_size(LEAST_BUFFER)} to {format_size(MOST_BUFFER)}"
                raise ConfigError(what, f"a host takes {most}: state them with --buffers, or another --wan")
        return sizes if self.sweep else (None, *sizes)
