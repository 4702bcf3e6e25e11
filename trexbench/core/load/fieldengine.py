"""TRex's field engine in plain Python: what its programs do to each packet.

Made for correctness, not for speed: captures and flow counts come from it. Instructions are the client's JSON.
Semantics: TRex's ``trex_stl_stream_vm.h`` (a variable advances where it stands in the program, and its first value
is its initial one). ``random`` draws from Python's generator: the same range, in another order than TRex's own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Literal

from ..errors import ConfigError

Instruction = Mapping[str, Any]


@dataclass
class Variable:
    """One value that changes from packet to packet.

    period: packets until it repeats, 0 when it is random. spread: number of distinct values, 0 when not known.
    """

    values: Iterator[int]
    size: int
    period: int
    spread: int
    low: int
    high: int
    op: str
    now: int = 0

    def advance(self, _frame: bytearray) -> None:
        self.now = next(self.values)


@dataclass(frozen=True)
class Write:
    """A variable plus ``add`` is written to ``size`` bytes at ``offset``; whole: different values stay different."""

    name: str
    offset: int
    size: int
    whole: bool
    add: int = 0


Step = Callable[[bytearray], None]


class Program:
    """A field engine program, ready to run over one stream's packet."""

    def __init__(self, instructions: Sequence[Instruction], seed: int = 1) -> None:
        self.variables: dict[str, Variable] = {}
        self.writes: list[Write] = []
        self._random = random.Random(seed)
        self._length: int | None = None
        self._steps = [_kind(one)(self, one) for one in instructions]

    def run(self, packet: bytes) -> Iterator[bytes]:
        """Endless packets, each made from the template as TRex makes it."""
        while True:
            frame = bytearray(packet)
            self._length = None
            for step in self._steps:
                step(frame)
            yield bytes(frame if self._length is None else frame[: self._length])

    def writes_into(self, places: Collection[tuple[int, int]]) -> list[Write]:
        """The writes that change any of these (offset, length) of a packet."""
        return [
            write
            for write in self.writes
            if any(write.offset < start + size and start < write.offset + write.size for start, size in places)
        ]

    def variable(self, name: str) -> Variable:
        if name not in self.variables:
            raise ConfigError(f"field engine: {name!r} is written but never defined", "define it before it is used")
        return self.variables[name]

    def _flow_var(self, one: Instruction) -> Step:
        if one.get("next_var"):
            raise ConfigError("field engine: next_var is not supported", "use variables that advance independently")
        size, op, step = int(one["size"]), str(one["op"]), int(one.get("step", 1))
        values: Iterator[int]
        if "value_list" in one:
            chosen = [int(value) for value in one["value_list"]]
            low, high, spread = min(chosen), max(chosen), len(set(chosen))
            whole_cycle = spread == len(chosen) // gcd(len(chosen), step) == len(chosen)
            values = map(chosen.__getitem__, _places(0, len(chosen), op, step, self._random))
            period = 0 if op == "random" else len(chosen) // gcd(len(chosen), step)
            spread = spread if whole_cycle or op == "random" else 0
        else:
            low, high = _padded(int(one["min_value"]), int(one["max_value"]), step, op)
            count = high - low + 1
            first = int(one.get("init_value", low)) - low
            values = (low + place for place in _places(first, count, op, step, self._random))
            period = 0 if op == "random" else count // gcd(count, step)
            spread = count if op == "random" else period
        return self._define(str(one["name"]), Variable(values, size, period, spread, low, high, op))

    def _rand_limit(self, one: Instruction) -> Step:
        low, high = int(one["min_value"]), int(one["max_value"])
        count = int(one["limit"])
        values = _repeated(low, high, count, int(one.get("seed", 0)))
        # Values drawn in one period may be equal, so their number is not known.
        return self._define(str(one["name"]), Variable(values, int(one["size"]), count, 0, low, high, "random"))

    def _tuple_var(self, one: Instruction) -> Step:
        name = str(one["name"])
        low, high, first, last = (int(one[key]) for key in ("ip_min", "ip_max", "port_min", "port_max"))
        ips, ports, limit = high - low + 1, last - first + 1, int(one.get("limit_flows", 0))
        period = min(limit, ips * ports) if limit else ips * ports
        addresses = (low + flow % ips for flow in _rounds(period))
        numbers = (first + flow // ips for flow in _rounds(period))
        address = self._define(f"{name}.ip", Variable(addresses, 4, period, min(ips, period), low, high, "inc"))
        port = self._define(f"{name}.port", Variable(numbers, 2, period, -(-period // ips), first, last, "inc"))

        def step(frame: bytearray) -> None:
            address(frame)
            port(frame)

        return step

    def _define(self, name: str, variable: Variable) -> Step:
        self.variables[name] = variable
        return variable.advance

    def _write(self, one: Instruction) -> Step:
        name, offset, add = str(one["name"]), int(one["pkt_offset"]), int(one.get("add_value", 0))
        variable, order = self.variable(name), _order(one)
        size, modulus = variable.size, 1 << (8 * variable.size)
        whole = variable.low + add >= 0 and variable.high + add < modulus
        self.writes.append(Write(name, offset, size, whole, add))

        def step(frame: bytearray) -> None:
            frame[offset : offset + size] = ((variable.now + add) % modulus).to_bytes(size, order)

        return step

    def _write_mask(self, one: Instruction) -> Step:
        variable, offset, size = self.variable(str(one["name"])), int(one["pkt_offset"]), int(one["pkt_cast_size"])
        mask, shift, add = int(one["mask"]), int(one["shift"]), int(one.get("add_value", 0))
        order = _order(one)
        self.writes.append(Write(str(one["name"]), offset, size, False))

        def step(frame: bytearray) -> None:
            value = variable.now + add
            value = value << shift if shift > 0 else value >> -shift
            old = int.from_bytes(frame[offset : offset + size], order)
            frame[offset : offset + size] = ((old & ~mask) | (value & mask)).to_bytes(size, order)

        return step

    def _trim(self, one: Instruction) -> Step:
        variable = self.variable(str(one["name"]))

        def step(_frame: bytearray) -> None:
            self._length = variable.now

        return step

    def _checksum_ipv4(self, one: Instruction) -> Step:
        offset = int(one["pkt_offset"])
        return lambda frame: _fix_ipv4(frame, offset)

    def _checksum_hw(self, one: Instruction) -> Step:
        l2, l3, kind = int(one["l2_len"]), int(one["l3_len"]), int(one["l4_type"])

        def step(frame: bytearray) -> None:
            if frame[l2] >> 4 == 4:
                _fix_ipv4(frame, l2)
            if kind in (_HW_UDP, _HW_TCP):
                _fix_l4(frame, l2, l2 + l3, 6 if kind == _HW_UDP else 16, 17 if kind == _HW_UDP else 6)

        return step


_HW_UDP, _HW_TCP = 11, 13

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


def _kind(one: Instruction) -> Callable[[Program, Instruction], Step]:
    kind = str(one.get("type"))
    if kind not in _KINDS:
        raise ConfigError(f"field engine: instruction {kind!r} is not understood", f"use one of {', '.join(_KINDS)}")
    return _KINDS[kind]


def _order(one: Instruction) -> Literal["big", "little"]:
    return "big" if one.get("is_big_endian", True) else "little"


def checksum(data: bytes | bytearray) -> int:
    """The Internet checksum (RFC 1071) of these bytes."""
    total = sum(int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _fix_ipv4(frame: bytearray, offset: int) -> None:
    """Write the header checksum of the IPv4 header at ``offset``."""
    frame[offset + 10 : offset + 12] = b"\0\0"
    header = frame[offset : offset + (frame[offset] & 15) * 4]
    frame[offset + 10 : offset + 12] = checksum(header).to_bytes(2, "big")


def _fix_l4(frame: bytearray, l3: int, l4: int, field: int, protocol: int) -> None:
    addresses = frame[l3 + 12 : l3 + 20] if frame[l3] >> 4 == 4 else frame[l3 + 8 : l3 + 40]
    end = l3 + int.from_bytes(frame[l3 + 2 : l3 + 4], "big") if frame[l3] >> 4 == 4 else len(frame)
    frame[l4 + field : l4 + field + 2] = b"\0\0"
    body = frame[l4:end]
    pseudo = bytes(addresses) + protocol.to_bytes(4, "big") + len(body).to_bytes(4, "big")
    value = checksum(pseudo + body)
    frame[l4 + field : l4 + field + 2] = (value or 0xFFFF).to_bytes(2, "big")


def _padded(low: int, high: int, step: int, op: str) -> tuple[int, int]:
    """The range as TRex widens it, so that whole steps fill it (``handle_range_padding``)."""
    pad = -(high - low + 1) % step
    if op == "inc":
        return low, high + pad
    return (low - pad, high) if op == "dec" else (low, high)


def _places(first: int, count: int, op: str, step: int, source: random.Random) -> Iterator[int]:
    """Indexes of the values in the order sent: in steps from ``first`` on, or at random."""
    while True:
        yield source.randrange(count) if op == "random" else first
        first = (first + (step if op == "inc" else -step)) % count


def _repeated(low: int, high: int, count: int, seed: int) -> Iterator[int]:
    while True:
        source = random.Random(seed)
        for _ in range(count):
            yield source.randint(low, high)


def _rounds(period: int) -> Iterator[int]:
    while True:
        yield from range(period)
