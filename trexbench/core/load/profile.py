"""Traffic that a profile puts on the wire: sizes, rates, flows; and the table of modes.

Frames are counted with their 4 bytes of FCS, and none is shorter than 64.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice
from math import gcd, inf, lcm, prod
from statistics import fmean
from typing import Any, ClassVar

from ..errors import ConfigError
from ..names import is_name, nearest
from ..units import FCS_BYTES, MIN_FRAME_BYTES, line_rate_pps
from .fieldengine import Instruction, Program, Variable
from .headers import describe_tags, find_tuple5

MOST_LETTERS = 60
"""A longer name of traffic, or one not valid as a file name, has a digest of the tunables instead."""
ENUMERABLE = 1 << 17
"""Flows are counted packet by packet if the program repeats within this many packets, else calculated."""


@dataclass(frozen=True)
class Mode:
    """A kind of test traffic: tunables of a profile in stl_profiles, and a summary. ip: version of its packets."""

    name: str
    size: str
    vm: str
    summary: str
    aliases: tuple[str, ...]
    ip: int = 4
    profile: ClassVar[str] = "bench.py"

    @property
    def tunables(self) -> dict[str, str]:
        family = {} if self.ip == 4 else {"ip": str(self.ip)}
        return {"size": self.size, "vm": self.vm, **family}

    @property
    def frame_bytes(self) -> int | None:
        """Size of its frames with FCS, without VLAN tags; None if they differ."""
        return max(int(self.size), _SMALLEST[self.ip]) if self.size.isdigit() else None


_EASY = "large frames, many flows: the easiest test"
_EVERYDAY = "28:16:4 frames of 60 (sent as {}), 590 and 1514 B, many flows: nearest to everyday traffic"
_HARDEST = "smallest frames, many flows: the router's packets per second, all queues and cores"
_ONE_FLOW = "smallest frames, one flow: one receive queue, so one core"
_V6_BYTES = 78
_V6_SHORTEST = f"; {_V6_BYTES} B, as in FD.io CSIT's IPv6 tests, since IPv6 and UDP need 66"

MODES = (
    Mode("var2-1514b", "1514", "var2", _EASY, ("1514b", "bench-var2-1514b")),
    Mode("var2-imix", "imix", "var2", _EVERYDAY.format("64"), ("imix", "bench-var2-imix")),
    Mode("var2-64b", "64", "var2", _HARDEST, ("64b", "bench-var2-64b")),
    Mode("1flow-64b", "64", "none", _ONE_FLOW, ("1flow", "bench")),
)
MODES_V6 = (
    Mode("var2-1514b-v6", "1514", "var2", f"IPv6: {_EASY}", ("1514b-v6",), 6),
    Mode("var2-imix-v6", "imix", "var2", f"IPv6: {_EVERYDAY.format(_V6_BYTES)}", ("imix-v6",), 6),
    Mode("var2-64b-v6", "64", "var2", f"IPv6: {_HARDEST}{_V6_SHORTEST}", ("64b-v6",), 6),
    Mode("1flow-64b-v6", "64", "none", f"IPv6: {_ONE_FLOW}{_V6_SHORTEST}", ("1flow-v6",), 6),
)
_NAMED = (*MODES, *MODES_V6)

RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Sizes of Ethernet frames in bytes, with FCS: RFC 2544, section 9.1."""
LARGEST_FRAME_BYTES = 9216
_SMALLEST = {4: MIN_FRAME_BYTES, 6: _V6_BYTES}
"""Smallest frame in bytes, with FCS, by version of IP."""
_SIZED = re.compile("(?:var2-)?([1-9][0-9]{0,5})b(-v6)?")


def mode_of_size(size: int, ip: int = 4) -> Mode:
    """Return the mode of many flows with frames of ``size`` bytes, FCS included; 64 is the family's smallest frame."""
    size = MIN_FRAME_BYTES if size == _SMALLEST[ip] else size
    if size != MIN_FRAME_BYTES and not _SMALLEST[ip] <= size <= LARGEST_FRAME_BYTES:
        what = f"IPv{ip} in frames" if ip != 4 else "frames"
        remedy = f"name a size from {_SMALLEST[ip]} to {LARGEST_FRAME_BYTES}, FCS included"
        raise ConfigError(f"no mode sends {what} of {size} B", remedy)
    suffix, family = ("", "") if ip == 4 else (f"-v{ip}", f"IPv{ip}: ")
    name = f"var2-{size}b{suffix}"
    sized = Mode(name, str(size), "var2", f"{family}frames of {size} B, many flows", (f"{size}b{suffix}",), ip)
    return next((mode for mode in _NAMED if mode.name == name), sized)


LISTED_MODES = tuple(dict.fromkeys((*MODES, *map(mode_of_size, RFC2544_SIZES), *MODES_V6)))
"""Modes to list; every other size has one, too."""


def resolve_mode(name: str) -> Mode:
    """Find the mode of this name or alias; ConfigError suggests the nearest name and lists all."""
    wanted = name.strip().lower()
    for mode in _NAMED:
        if wanted in (mode.name, *mode.aliases):
            return mode
    if sized := _SIZED.fullmatch(wanted):
        return mode_of_size(int(sized[1]), 6 if sized[2] else 4)
    if "/" in wanted or wanted.endswith(".py"):
        raise ConfigError(f"{name} is not a mode", "name a file of your own with --profile")
    known = [word for mode in LISTED_MODES for word in (mode.name, *mode.aliases)]
    listed = ", ".join(f"{mode.name} (or {', '.join(mode.aliases)})" for mode in _NAMED)
    sizes = "and var2-<n>b with frames of n bytes, var2-<n>b-v6 with IPv6 in them"
    raise ConfigError(f"unknown mode {name!r}", f"{nearest(wanted, known)}modes are {listed}, {sizes}")


def traffic_name(base: str, own: Mapping[str, str], tunables: Mapping[str, str]) -> str:
    """Name traffic, as in ``var2-imix,size=64``: tunables unlike the mode's own make it other, with its own history."""
    changed = ",".join(f"{name}={value}" for name, value in sorted(tunables.items()) if own.get(name) != value)
    if not changed:
        return base
    name = f"{base},{changed}"
    if len(name) <= MOST_LETTERS and is_name(name):
        return name
    return f"{base},{hashlib.sha256(changed.encode()).hexdigest()[:8]}"


def is_mode(name: str) -> bool:
    """Test whether a mode has this name; an alias does not count."""
    try:
        return resolve_mode(name).name == name
    except ConfigError:
        return False


def full_mode_name(mode: str) -> str:
    """The name in results of a mode or its alias, with its tunables; any other name stays as it is."""
    base, comma, tunables = mode.partition(",")
    try:
        return f"{resolve_mode(base).name}{comma}{tunables}"
    except ConfigError:
        return mode


@dataclass(frozen=True)
class FlowCount:
    """Number of distinct 5-tuples that leave a port; an upper bound where ``exact`` is false."""

    count: int
    exact: bool

    def __str__(self) -> str:
        return f"{'' if self.exact else 'at most '}{self.count} flow{'' if self.count == 1 else 's'}"


@dataclass(frozen=True)
class Stream:
    """One continuous stream."""

    packet: bytes  # without FCS
    pps: float  # at multiplier 1
    instructions: tuple[Instruction, ...] = ()
    macs_from_port: bool = True  # the port fills in the MAC addresses
    cache: int = 0  # frames after which TRex repeats them all; 0: it goes on

    @property
    def frame_bytes(self) -> int:
        """Size of its longest frame: a field engine may trim others."""
        return max(MIN_FRAME_BYTES, len(self.packet) + FCS_BYTES)

    @cached_property
    def mean_frame_bytes(self) -> float:
        # a random variable draws each value equally often
        steady = ({**one, "op": "inc", "step": 1} if one.get("op") == "random" else one for one in self.instructions)
        lengths = Program(list(steady)).lengths
        if self.cache and lengths and not any(one.get("op") == "random" for one in self.instructions):
            lengths = [lengths[number % len(lengths)] for number in range(self.cache)]
        sizes = (max(MIN_FRAME_BYTES, length + FCS_BYTES) for length in lengths)
        return fmean(min(size, self.frame_bytes) for size in sizes) if lengths else self.frame_bytes

    @cached_property
    def flows(self) -> FlowCount:
        """Number of 5-tuples that this stream sends: counted where the program repeats soon, else calculated."""
        if self.flow_keys is not None:
            return FlowCount(len(self.flow_keys), True)
        program = Program(self.instructions)
        used = program.writes_into(find_tuple5(self.packet).fields.values())
        variables = {write.name: program.variables[write.name] for write in used}
        steady = lcm(*(variable.period for variable in variables.values() if variable.period))
        drawn = prod(variable.spread for variable in variables.values() if not variable.period)
        overlap = any(
            one.offset < other.offset + other.size and other.offset < one.offset + one.size
            for one, other in combinations(used, 2)
        )
        exact = not overlap and all(write.whole for write in used) and _all_distinct(variables)
        return FlowCount(min(steady * drawn, self.cache or steady * drawn), exact and not self.cache)

    @cached_property
    def flow_keys(self) -> frozenset[bytes] | None:
        """Every 5-tuple of the stream; None when they are random or too many to list."""
        program, tuple5 = Program(self.instructions), find_tuple5(self.packet)
        names = {write.name for write in program.writes_into(tuple5.fields.values())}
        variables = [program.variables[name] for name in names]
        period = self.cache or lcm(*(variable.period for variable in variables))
        if period > ENUMERABLE or any(variable.op == "random" for variable in variables):
            return None
        return frozenset(map(tuple5.of, islice(program.run(self.packet), period)))

    @property
    def varied(self) -> tuple[str, ...]:
        """Fields that change from packet to packet, such as ``IP.src 16.0.0.4 to 16.0.0.254, inc``."""
        program, tuple5 = Program(self.instructions), find_tuple5(self.packet)
        changes = []
        for write in program.writes:
            variable = program.variables[write.name]
            (name, low), (_, high) = (
                tuple5.written(self.packet, write.offset, write.size, value + write.add)
                for value in (variable.low, variable.high)
            )
            changes.append(f"{name} {low} to {high}, {variable.op}")
        return tuple(changes)

    @property
    def headers(self) -> bytes:
        """The packet without the MAC addresses that the port fills in."""
        return bytes(12) + self.packet[12:] if self.macs_from_port else self.packet

    def frames(self, seed: int = 1) -> Iterator[bytes]:
        """Yield the stream's packets without end, without FCS, in the order in which one core sends them."""
        while True:
            yield from islice(Program(self.instructions, seed).run(self.packet), self.cache or None)


@dataclass(frozen=True)
class Profile:
    """Traffic of one port: the streams of a profile file, as loaded for that port."""

    name: str
    streams: tuple[Stream, ...]
    port: int = 0
    tunables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.streams:
            raise ConfigError(f"{self.name}: no stream", "a profile has to return at least one")
        if not all(0 < stream.pps < inf for stream in self.streams):
            raise ConfigError(f"{self.name}: a stream without a rate above 0", "give each one, as in STLTXCont(pps=1)")

    @property
    def pps(self) -> float:
        """Packets per second at multiplier 1, all streams together."""
        return sum(stream.pps for stream in self.streams)

    @property
    def mean_frame_bytes(self) -> float:
        return sum(stream.mean_frame_bytes * stream.pps for stream in self.streams) / self.pps

    def line_rate_pps(self, line_rate_bps: float) -> float:
        """Frames per second that fill a line of this L1 speed."""
        return line_rate_pps(self.mean_frame_bytes, line_rate_bps)

    def share(self, stream: Stream) -> float:
        """Fraction of this profile's frames that a stream sends."""
        return stream.pps / self.pps

    @property
    def mix(self) -> str:
        """The frame sizes in words: "imix" has several definitions, so a result names the one that was sent."""
        tags = " or ".join(sorted({describe_tags(s.packet) for s in self.streams} - {""}))
        tags = tags and f" with {tags}"
        if {s.mean_frame_bytes for s in self.streams} == {self.streams[0].frame_bytes}:
            return f"{self.streams[0].frame_bytes} B frames{tags}"
        sizes = ", ".join("up to " * (s.mean_frame_bytes < s.frame_bytes) + str(s.frame_bytes) for s in self.streams)
        ratio = f"{_ratio([s.pps for s in self.streams])} " if len(self.streams) > 1 else ""
        return f"{ratio}frames of {sizes} B, mean {self.mean_frame_bytes:.1f} B{tags}"

    @cached_property
    def flows(self) -> FlowCount:
        """Distinct 5-tuples of all streams; streams that send the same flows count once."""
        five_tuples = [find_tuple5(stream.packet).of(stream.packet) for stream in self.streams]
        programs = [json.dumps([_plain(stream.instructions), stream.cache]) for stream in self.streams]
        kinds = dict(zip(zip(five_tuples, programs, strict=True), self.streams, strict=True)).values()
        if len(kinds) == 1:
            return self.streams[0].flows
        known = [stream.flow_keys for stream in kinds if stream.flow_keys is not None]
        if len(known) == len(kinds):
            return FlowCount(len(frozenset().union(*known)), True)
        return FlowCount(sum(stream.flows.count for stream in kinds), False)

    @property
    def varied(self) -> tuple[str, ...]:
        """Fields that change from packet to packet, over all streams."""
        return tuple(dict.fromkeys(text for stream in self.streams for text in stream.varied))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the normalised streams: equal digests mean equal traffic, whatever the files are called."""
        normal = [
            {
                "packet": stream.headers.hex(),
                "own_macs": not stream.macs_from_port,
                "share": round(self.share(stream), 9),
                "program": _plain(stream.instructions),
                **({"cache": stream.cache} if stream.cache else {}),
            }
            for stream in self.streams
        ]
        return hashlib.sha256(json.dumps(normal, sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tunables": dict(self.tunables),
            "port": self.port,
            "mix": self.mix,
            "mean_frame_bytes": self.mean_frame_bytes,
            "flows": self.flows.count,
            "flows_exact": self.flows.exact,
            "varied": list(self.varied),
            "digest": self.digest,
            "streams": [
                {"frame_bytes": s.frame_bytes, "share": self.share(s), "flows": s.flows.count, "varied": list(s.varied)}
                for s in self.streams
            ],
        }


def _all_distinct(variables: Mapping[str, Variable]) -> bool:
    """Test whether all packets of a period differ: each counter by itself, a tuple by address and port together."""
    for name, variable in variables.items():
        other = name[:-3] + ".port" if name.endswith(".ip") else name[:-5] + ".ip"
        if variable.op == "random" or (variable.spread != variable.period and other not in variables):
            return False
    return True


def _plain(instructions: Sequence[Instruction]) -> list[dict[str, Any]]:
    """Instructions without unset fields: a newer client adds some that change nothing."""
    return [{key: value for key, value in instruction.items() if value is not None} for instruction in instructions]


def _ratio(rates: Sequence[float]) -> str:
    """Format rates such as 28:16:4 as in the profile; those that are not whole numbers, reduced to lowest terms."""
    if all(rate == round(rate) for rate in rates):
        return ":".join(str(round(rate)) for rate in rates)
    whole = [round(rate * 1000) for rate in rates]
    return ":".join(f"{rate / (gcd(*whole) or 1):g}" for rate in whole)
