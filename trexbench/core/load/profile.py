"""What a profile puts on the wire: sizes, rates, flows; and the table of modes.

Frames are counted with their 4 bytes of FCS, and none is shorter than 64.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice
from math import gcd, inf, lcm, prod
from typing import Any, ClassVar

from ..errors import ConfigError
from ..units import FCS_BYTES, MIN_FRAME_BYTES, line_rate_pps
from .fieldengine import Instruction, Program, Write

ENUMERABLE = 1 << 17
"""Flows of a program that repeats within so many packets are counted packet by packet; of a longer one, calculated."""


@dataclass(frozen=True)
class Mode:
    """A kind of test traffic: tunables of a profile in stl_profiles, and what it tests."""

    name: str
    size: str
    vm: str
    summary: str
    aliases: tuple[str, ...]
    profile: ClassVar[str] = "bench.py"

    @property
    def tunables(self) -> dict[str, str]:
        return {"size": self.size, "vm": self.vm}


MODES = (
    Mode("var2-1514b", "1514", "var2", "large frames, many flows: the easiest test", ("1514b", "bench-var2-1514b")),
    Mode(
        "var2-imix",
        "imix",
        "var2",
        "28:16:4 frames of 60 (sent as 64), 590 and 1514 B, many flows: nearest to everyday traffic",
        ("imix", "bench-var2-imix"),
    ),
    Mode(
        "var2-64b",
        "64",
        "var2",
        "smallest frames, many flows: the router's packets per second, all queues and cores",
        ("64b", "bench-var2-64b"),
    ),
    Mode("1flow-64b", "64", "none", "smallest frames, one flow: one receive queue, so one core", ("1flow", "bench")),
)

RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Of Ethernet frames in bytes, with FCS: RFC 2544, section 9.1."""
LARGEST_FRAME_BYTES = 9216
_SIZED = re.compile("(?:var2-)?([1-9][0-9]{0,5})b")


def mode_of_size(size: int) -> Mode:
    """``var2-512b``: frames of this size (bytes with FCS), many flows; ConfigError where there is none such."""
    if not MIN_FRAME_BYTES <= size <= LARGEST_FRAME_BYTES:
        remedy = f"name a size from {MIN_FRAME_BYTES} to {LARGEST_FRAME_BYTES}, FCS included"
        raise ConfigError(f"no mode sends frames of {size} B", remedy)
    name = f"var2-{size}b"
    sized = Mode(name, str(size), "var2", f"frames of {size} B, many flows", (f"{size}b",))
    return next((mode for mode in MODES if mode.name == name), sized)


LISTED_MODES = tuple(dict.fromkeys((*MODES, *map(mode_of_size, RFC2544_SIZES))))
"""Those that are shown; there is one for every other size, too."""


def resolve_mode(name: str) -> Mode:
    """The mode of this name or alias; ConfigError suggests the nearest name and lists all."""
    wanted = name.strip().lower()
    for mode in MODES:
        if wanted == mode.name or wanted in mode.aliases:
            return mode
    if sized := _SIZED.fullmatch(wanted):
        return mode_of_size(int(sized[1]))
    known = [word for mode in LISTED_MODES for word in (mode.name, *mode.aliases)]
    close = difflib.get_close_matches(wanted, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    listed = ", ".join(f"{mode.name} (or {', '.join(mode.aliases)})" for mode in MODES)
    raise ConfigError(f"unknown mode {name!r}", f"{hint}modes are {listed}, and var2-<n>b with frames of n bytes")


@dataclass(frozen=True)
class FlowCount:
    """How many distinct 5-tuples leave a port; ``exact`` is false when the number is only an upper bound."""

    count: int
    exact: bool

    def __str__(self) -> str:
        return f"{'' if self.exact else 'at most '}{self.count} flow{'' if self.count == 1 else 's'}"


@dataclass(frozen=True)
class Tuple5:
    """Where the addresses, protocol and ports of a frame stand: (offset, length) by field name."""

    fields: Mapping[str, tuple[int, int]]

    def of(self, frame: bytes) -> bytes:
        return b"".join(frame[start : start + size] for start, size in self.fields.values())


def find_tuple5(packet: bytes) -> Tuple5:
    """The 5-tuple of an Ethernet frame, VLAN tags skipped; empty for a frame without a whole IPv4 or IPv6 header."""
    offset, kind = 12, int.from_bytes(packet[12:14], "big")
    while kind in (0x8100, 0x88A8, 0x9100):
        offset += 4
        kind = int.from_bytes(packet[offset : offset + 2], "big")
    l3 = offset + 2
    if kind == 0x0800 and len(packet) >= l3 + 20:
        fields = {"IP.src": (l3 + 12, 4), "IP.dst": (l3 + 16, 4), "IP.proto": (l3 + 9, 1)}
        protocol, l4 = packet[l3 + 9], l3 + (packet[l3] & 15) * 4
    elif kind == 0x86DD and len(packet) >= l3 + 40:
        fields = {"IPv6.src": (l3 + 8, 16), "IPv6.dst": (l3 + 24, 16), "IPv6.nh": (l3 + 6, 1)}
        protocol, l4 = packet[l3 + 6], l3 + 40
    else:
        return Tuple5({})
    name = {17: "UDP", 6: "TCP"}.get(protocol)
    if name:
        fields |= {f"{name}.sport": (l4, 2), f"{name}.dport": (l4 + 2, 2)}
    return Tuple5(fields)


@dataclass(frozen=True)
class Stream:
    """One continuous stream. packet: without FCS; pps: at multiplier 1; macs_from_port: the port fills in its MACs."""

    packet: bytes
    pps: float
    instructions: tuple[Instruction, ...] = ()
    macs_from_port: bool = True

    @property
    def frame_bytes(self) -> int:
        return max(MIN_FRAME_BYTES, len(self.packet) + FCS_BYTES)

    @cached_property
    def flows(self) -> FlowCount:
        """How many 5-tuples this stream sends: counted where the program repeats soon, else calculated."""
        if self.flow_keys is not None:
            return FlowCount(len(self.flow_keys), True)
        program = Program(self.instructions)
        used = program.writes_into(find_tuple5(self.packet).fields.values())
        variables = [program.variables[name] for name in {write.name for write in used}]
        steady = lcm(*(variable.period for variable in variables if variable.period))
        drawn = prod(variable.spread for variable in variables if not variable.period)
        apart = not any(
            one.offset < other.offset + other.size and other.offset < one.offset + one.size
            for one, other in combinations(used, 2)
        )
        exact = apart and all(write.whole for write in used) and _all_distinct(program, used)
        return FlowCount(steady * drawn, exact)

    @cached_property
    def flow_keys(self) -> frozenset[bytes] | None:
        """Every 5-tuple of the stream; None when they are random or too many to list."""
        program, tuple5 = Program(self.instructions), find_tuple5(self.packet)
        names = {write.name for write in program.writes_into(tuple5.fields.values())}
        variables = [program.variables[name] for name in names]
        period = lcm(*(variable.period for variable in variables))
        if period > ENUMERABLE or any(variable.op == "random" for variable in variables):
            return None
        return frozenset(map(tuple5.of, islice(program.run(self.packet), period)))

    @property
    def varied(self) -> tuple[str, ...]:
        """What changes from packet to packet, in words: ``IP.src 16.0.0.4 to 16.0.0.254, inc``."""
        program, tuple5 = Program(self.instructions), find_tuple5(self.packet)
        changes = []
        for write in program.writes:
            variable = program.variables[write.name]
            names = [name for name, place in tuple5.fields.items() if place == (write.offset, write.size)]
            name = names[0] if names else f"bytes {write.offset} to {write.offset + write.size - 1}"
            low, high = (_shown(name, value + write.add) for value in (variable.low, variable.high))
            changes.append(f"{name} {low} to {high}, {variable.op}")
        return tuple(changes)

    @property
    def headers(self) -> bytes:
        """The packet without the MAC addresses that the port fills in."""
        return bytes(12) + self.packet[12:] if self.macs_from_port else self.packet

    def frames(self, seed: int = 1) -> Iterator[bytes]:
        """The stream's packets in the order in which one core sends them, without FCS, without end."""
        return Program(self.instructions, seed).run(self.packet)


@dataclass(frozen=True)
class Profile:
    """What one port sends: the streams of a profile file, as loaded for that port."""

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
        return sum(stream.frame_bytes * stream.pps for stream in self.streams) / self.pps

    def line_rate_pps(self, line_rate_bps: float) -> float:
        """Frames per second that fill a line of this L1 speed."""
        return line_rate_pps(self.mean_frame_bytes, line_rate_bps)

    def share(self, stream: Stream) -> float:
        """The fraction of this profile's frames that a stream sends."""
        return stream.pps / self.pps

    @property
    def mix(self) -> str:
        """The frame sizes in words: several definitions of "imix" are in use, so a result says which one was sent."""
        if len({stream.frame_bytes for stream in self.streams}) == 1:
            return f"{self.streams[0].frame_bytes} B frames"
        sizes = ", ".join(str(stream.frame_bytes) for stream in self.streams)
        return f"{_ratio([s.pps for s in self.streams])} frames of {sizes} B, mean {self.mean_frame_bytes:.1f} B"

    @cached_property
    def flows(self) -> FlowCount:
        """Distinct 5-tuples of all streams; streams that send the same flows count once."""
        five_tuples = [find_tuple5(stream.packet).of(stream.packet) for stream in self.streams]
        programs = [json.dumps(_plain(stream.instructions)) for stream in self.streams]
        kinds = dict(zip(zip(five_tuples, programs, strict=True), self.streams, strict=True)).values()
        if len(kinds) == 1:
            return self.streams[0].flows
        known = [stream.flow_keys for stream in kinds if stream.flow_keys is not None]
        if len(known) == len(kinds):
            return FlowCount(len(frozenset().union(*known)), True)
        return FlowCount(sum(stream.flows.count for stream in kinds), False)

    @property
    def varied(self) -> tuple[str, ...]:
        """What changes from packet to packet, over all streams."""
        return tuple(dict.fromkeys(text for stream in self.streams for text in stream.varied))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the normalised streams: equal digests mean the same traffic, whatever the files are called."""
        normal = [
            {
                "packet": stream.headers.hex(),
                "own_macs": not stream.macs_from_port,
                "share": round(self.share(stream), 9),
                "program": _plain(stream.instructions),
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


def _all_distinct(program: Program, used: Sequence[Write]) -> bool:
    """Whether all packets of a period differ: each counter by itself, a tuple by address and port together."""
    names = {write.name for write in used}
    for name in names:
        variable = program.variables[name]
        other = name[:-3] + ".port" if name.endswith(".ip") else name[:-5] + ".ip"
        if variable.op == "random" or (variable.spread != variable.period and other not in names):
            return False
    return True


def _shown(name: str, value: int) -> str:
    if name not in ("IP.src", "IP.dst"):
        return str(value)
    return ".".join(str(byte) for byte in (value % (1 << 32)).to_bytes(4, "big"))


def _plain(instructions: Sequence[Instruction]) -> list[dict[str, Any]]:
    """Instructions without what is unset: a newer client adds fields that change nothing."""
    return [{key: value for key, value in one.items() if value is not None} for one in instructions]


def _ratio(rates: Sequence[float]) -> str:
    """28:16:4 as written in the profile; rates that are not whole numbers are reduced to lowest terms."""
    if all(rate == round(rate) for rate in rates):
        return ":".join(str(round(rate)) for rate in rates)
    whole = [round(rate * 1000) for rate in rates]
    return ":".join(f"{rate / (gcd(*whole) or 1):g}" for rate in whole)
