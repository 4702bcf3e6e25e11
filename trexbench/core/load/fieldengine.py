"""TRex's field engine in plain Python: the changes that its programs make to each packet.

Captures, flow counts and the frames of the embedded server come from it. Instructions are the client's JSON.
Semantics: TRex's ``trex_stl_stream_vm.h`` (a variable advances where it stands in the program, and its first value
is its initial one). ``random`` draws from Python's generator: the same range, in another order than TRex's own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from math import gcd, lcm
from typing import Any, Literal

from ..errors import ConfigError

Instruction = Mapping[str, Any]

_TCP, _UDP = 6, 17
_CHECKSUM_AT = {_TCP: 16, _UDP: 6}
"""Place of the checksum in the header, by protocol."""
_HW = {13: _TCP, 11: _UDP}
"""Protocol by TRex's ``l4_type``."""
_U32 = (1 << 32) - 1
_MOST_BYTES = 64
"""Size of TRex's memory for the variables of a program."""


@dataclass
class Variable:
    """One value that changes from packet to packet."""

    values: Iterator[int]
    size: int  # in bytes
    period: int  # packets until it repeats; 0 when it is random
    spread: int  # number of distinct values; 0 when it is not known
    low: int
    high: int
    op: str
    now: int = 0

    def advance(self, _frame: bytearray) -> None:
        self.now = next(self.values)


@dataclass(frozen=True)
class Write:
    """A write of a variable plus ``add`` to ``size`` bytes at ``offset``."""

    name: str
    offset: int
    size: int
    whole: bool  # different values stay different
    add: int = 0


Step = Callable[[bytearray], None]


class Program:
    """A field engine program, ready to run over one stream's packet."""

    def __init__(self, instructions: Sequence[Instruction], seed: int = 1) -> None:
        self.variables: dict[str, Variable] = {}
        self.writes: list[Write] = []
        self._flow_vars = {spec.get("name") for spec in instructions if spec.get("type") == "flow_var"}
        self._random = random.Random(seed)
        self._length: int | None = None
        self._trimmed_by: Variable | None = None
        # All random variables share one generator of 4 bytes.
        self._used_bytes = 4 if any(spec.get("op") == "random" for spec in instructions) else 0
        self._steps = [self._step(spec) for spec in instructions]

    @property
    def period(self) -> int:
        """Packets after which all that is not random repeats."""
        return lcm(*(variable.period for variable in self.variables.values() if variable.period))

    @property
    def draws(self) -> bool:
        """True if a variable is random."""
        return not all(variable.period for variable in self.variables.values())

    def run(self, packet: bytes) -> Iterator[bytes]:
        """Yield packets without end, each made from the template as TRex does; ConfigError if one would grow."""
        while True:
            frame = bytearray(packet)
            self._length = None
            for step in self._steps:
                step(frame)
            if len(frame) > len(packet):
                raise ConfigError(f"field engine: it writes beyond the {len(packet)} bytes of a packet", "mend offsets")
            yield bytes(frame if self._length is None else frame[: self._length])

    @property
    def lengths(self) -> list[int]:
        """Lengths to which packets are trimmed, each as often as in a period; of a program that has not run."""
        by = self._trimmed_by
        return [] if by is None else list(islice(by.values, by.period))

    def writes_into(self, places: Collection[tuple[int, int]]) -> list[Write]:
        """Writes that change any of these places of a packet: (offset, length)."""
        return [
            write
            for write in self.writes
            if any(write.offset < start + size and start < write.offset + write.size for start, size in places)
        ]

    def variable(self, name: str) -> Variable:
        if name not in self.variables:
            raise ConfigError(f"field engine: {name!r} is written but never defined", "define it before it is used")
        return self.variables[name]

    def _step(self, spec: Instruction) -> Step:
        kind = str(spec.get("type"))
        if spec.get("next_var"):
            raise ConfigError("field engine: next_var is not supported", "use variables that advance independently")
        if kind not in _KINDS:
            what = f"field engine: instruction {kind!r} is not understood"
            raise ConfigError(what, f"use one of {', '.join(_KINDS)}")
        return _KINDS[kind](self, spec)

    def _flow_var(self, spec: Instruction) -> Step:
        size, op, step = int(spec["size"]), str(spec["op"]), int(spec.get("step", 1))
        values: Iterator[int]
        if "value_list" in spec:
            chosen = [int(value) for value in spec["value_list"]]
            low, high, spread = min(chosen), max(chosen), len(set(chosen))
            whole_cycle = spread == len(chosen) // gcd(len(chosen), step) == len(chosen)
            first = 0 if op == "inc" else len(chosen) - 1
            values = map(chosen.__getitem__, _places(first, len(chosen), op, step, self._random))
            period = 0 if op == "random" else len(chosen) // gcd(len(chosen), step)
            spread = spread if whole_cycle or op == "random" else 0
        else:
            low, high = int(spec["min_value"]), int(spec["max_value"])
            # TRex widens the range so that whole steps fill it (``handle_range_padding``).
            pad = -(high - low + 1) % step
            if op == "inc":
                high += pad
            elif op == "dec":
                low -= pad
            if low < 0 or high >= 256**size:
                what = f"field engine: variable {spec['name']!r} of {low} to {high} does not fit into {size} bytes"
                raise ConfigError(what, "let its step divide its range")
            count = high - low + 1
            first = int(spec.get("init_value", low)) - low
            values = (low + place for place in _places(first, count, op, step, self._random))
            period = 0 if op == "random" else count // gcd(count, step)
            spread = count if op == "random" else period
        return self._define(str(spec["name"]), Variable(values, size, period, spread, low, high, op), size)

    def _rand_limit(self, spec: Instruction) -> Step:
        low, high, size = int(spec["min_value"]), int(spec["max_value"]), int(spec["size"])
        count = int(spec["limit"])
        # The generator is seeded again after each period.
        sources = map(random.Random, repeat(int(spec.get("seed", 0))))
        values = (source.randint(low, high) for source in sources for _ in range(count))
        # Values drawn in one period may be equal, so their number is not known.
        return self._define(str(spec["name"]), Variable(values, size, count, 0, low, high, "random"), 2 * size + 4)

    def _tuple_var(self, spec: Instruction) -> Step:
        name = str(spec["name"])
        low, high, first, last = (int(spec[key]) for key in ("ip_min", "ip_max", "port_min", "port_max"))
        ips, ports, limit = high - low + 1, last - first + 1, int(spec.get("limit_flows", 0))
        if min(ips, ports) < 1:
            raise ConfigError(f"field engine: tuple {name!r} ends before it begins", "swap the ends of its ranges")
        period = min(limit, ips * ports) if limit else ips * ports
        addresses = (low + flow % ips for flow in chain.from_iterable(repeat(range(period))))
        numbers = (first + flow // ips for flow in chain.from_iterable(repeat(range(period))))
        address = self._define(f"{name}.ip", Variable(addresses, 4, period, min(ips, period), low, high, "inc"), 4)
        port = self._define(f"{name}.port", Variable(numbers, 2, period, -(-period // ips), first, last, "inc"), 6)

        def step(frame: bytearray) -> None:
            address(frame)
            port(frame)

        return step

    def _define(self, name: str, variable: Variable, used_bytes: int) -> Step:
        if name in self.variables:
            raise ConfigError(f"field engine: there are two variables {name!r}", "give each a name of its own")
        self._used_bytes += used_bytes
        if self._used_bytes > _MOST_BYTES:
            what = f"field engine: variables of {self._used_bytes} bytes"
            raise ConfigError(what, f"use fewer or smaller ones: {_MOST_BYTES} fit")
        self.variables[name] = variable
        return variable.advance

    def _write(self, spec: Instruction) -> Step:
        name, offset, add = str(spec["name"]), int(spec["pkt_offset"]), int(spec.get("add_value", 0))
        variable, order = self.variable(name), _order(spec)
        size, modulus = variable.size, 1 << (8 * variable.size)
        whole = variable.low + add >= 0 and variable.high + add < modulus
        self.writes.append(Write(name, offset, size, whole, add))

        def step(frame: bytearray) -> None:
            frame[offset : offset + size] = ((variable.now + add) % modulus).to_bytes(size, order)

        return step

    def _write_mask(self, spec: Instruction) -> Step:
        variable, offset, order = self.variable(str(spec["name"])), int(spec["pkt_offset"]), _order(spec)
        mask, shift, add = int(spec["mask"]), int(spec["shift"]), int(spec.get("add_value", 0))
        if not -32 < shift < 32:
            raise ConfigError(f"field engine: a shift by {shift}", "shift by 31 bits at most, to the right below 0")
        # TRex takes the size from the variable if it writes little-endian, and the upper half of 64 bits if big.
        size, high = int(spec["pkt_cast_size"]), variable.size == 8
        if size not in (1, 2, 4):
            raise ConfigError(f"field engine: a mask of {size} bytes", "use 1, 2 or 4")
        if order == "little":
            size, high = min(variable.size, 4), False
        self.writes.append(Write(str(spec["name"]), offset, size, False))
        mask &= (1 << 8 * size) - 1

        def step(frame: bytearray) -> None:
            value = (variable.now >> 32 if high else variable.now) + add & _U32
            value = (value << shift if shift > 0 else value >> -shift) & mask
            old = int.from_bytes(frame[offset : offset + size], order)
            frame[offset : offset + size] = (old & ~mask | value).to_bytes(size, order)

        return step

    def _trim(self, spec: Instruction) -> Step:
        variable = self.variable(str(spec["name"]))
        if variable.size != 2 or spec["name"] not in self._flow_vars:
            raise ConfigError(f"field engine: trim_pkt_size by {spec['name']!r}", "use a flow_var of 2 bytes")
        self._trimmed_by = variable

        def step(_frame: bytearray) -> None:
            self._length = variable.now

        return step

    def _checksum_ipv4(self, spec: Instruction) -> Step:
        offset = int(spec["pkt_offset"])
        return lambda frame: _fix_ipv4(frame, offset)

    def _checksum_hw(self, spec: Instruction) -> Step:
        l2, l3, kind = int(spec["l2_len"]), int(spec["l3_len"]), int(spec["l4_type"])

        def step(frame: bytearray) -> None:
            if _version(frame, l2) == 4:
                _fix_ipv4(frame, l2)
                _fix_l4(frame, l2, (frame[l2] & 15) * 4, frame[l2 + 9])
            else:
                _fix_l4(frame, l2, l3, _HW.get(kind, 0))

        return step


_KINDS: dict[str, Callable[[Program, Instruction], Step]] = {
    "flow_var": Program._flow_var,
    "flow_var_rand_limit": Program._rand_limit,
    "tuple_flow_var": Program._tuple_var,
    "write_flow_var": Program._write,
    "write_mask_flow_var": Program._write_mask,
    "trim_pkt_size": Program._trim,
    "fix_checksum_ipv4": Program._checksum_ipv4,
    "fix_checksum_hw": Program._checksum_hw,
}


def _order(spec: Instruction) -> Literal["big", "little"]:
    return "big" if spec.get("is_big_endian", True) else "little"


def checksum(data: bytes | bytearray) -> int:
    """The Internet checksum (RFC 1071) of these bytes."""
    number = int.from_bytes(data, "big") << 8 * (len(data) % 2)
    # The sum of the words in ones' complement is zero only where each of them is.
    return ~(number % 0xFFFF or 0xFFFF * (number > 0)) & 0xFFFF


def _version(frame: bytearray, ip: int) -> int:
    """Version of the IP header at ``ip``; ConfigError where none fits."""
    if ip + 20 > len(frame):
        raise ConfigError(f"field engine: no IP header fits behind {ip} of {len(frame)} bytes", "mend the offset")
    return frame[ip] >> 4


def _fix_ipv4(frame: bytearray, offset: int) -> None:
    """Write the header checksum of the IPv4 header at ``offset``."""
    _version(frame, offset)
    frame[offset + 10 : offset + 12] = b"\0\0"
    header = frame[offset : offset + (frame[offset] & 15) * 4]
    frame[offset + 10 : offset + 12] = checksum(header).to_bytes(2, "big")


def _fix_l4(frame: bytearray, ip: int, header: int, protocol: int) -> None:
    """Write the checksum of TCP or UDP behind an IP header of ``header`` bytes; leave other protocols alone."""
    if protocol not in _CHECKSUM_AT:
        return
    v4, at = _version(frame, ip) == 4, ip + header + _CHECKSUM_AT[protocol]
    addresses, length_at, fixed = (12, 2, 0) if v4 else (8, 4, 40)
    end = ip + fixed + int.from_bytes(frame[ip + length_at : ip + length_at + 2], "big")
    frame[at : at + 2] = b"\0\0"
    body = frame[ip + header : end]
    pseudo = bytes(frame[ip + addresses : ip + (20 if v4 else 40)])
    value = checksum(pseudo + protocol.to_bytes(4, "big") + len(body).to_bytes(4, "big") + body)
    frame[at : at + 2] = (value or (0xFFFF if protocol == _UDP else 0)).to_bytes(2, "big")


def _places(first: int, count: int, op: str, step: int, source: random.Random) -> Iterator[int]:
    """Yield indexes of the values in the order sent: in steps from ``first`` on, or at random."""
    while True:
        yield source.randrange(count) if op == "random" else first
        first = (first + (step if op == "inc" else -step)) % count
