"""TRex's field engine instructions, as JSON, turned into a checked FieldProgram."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trexbench.stlserver.engine import EngineError
from trexbench.stlserver.field_engine import (
    SMALLEST_FRAME,
    U16,
    U32,
    U64,
    Checksum,
    FieldProgram,
    FlowVar,
    Instruction,
    RandLimit,
    Trim,
    TupleVar,
    Variable,
    Write,
    WriteMask,
    step_down,
    step_up,
    sum_words,
)

_FLOW_VAR_BYTES_MAX = 64
_HW_UDP, _HW_TCP, _HW_IP = 11, 13, 17


class _Builder:
    """Turns the JSON into a FieldProgram; every refusal names the instruction by its number and type."""

    def __init__(self, packet: bytes, raw: Sequence[Mapping[str, Any]]) -> None:
        self.packet = packet.ljust(SMALLEST_FRAME, b"\0")
        self.raw = raw
        self.words: list[int] = []
        self.variables: dict[str, Variable] = {}
        self.bytes_used = 0
        self.seed_word = -1
        self.at = 0

    def refuse(self, why: str) -> EngineError:
        kind = self.raw[self.at].get("type", "?")
        return EngineError(f"field engine instruction {self.at} ({kind}): {why}")

    def number(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.raw[self.at].get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(f"'{key}' must be a whole number, not {value!r}")
        if not low <= value <= high:
            raise self.refuse(f"'{key}' is {value}; it must be from {low} to {high}")
        return value

    def allot(self, initial: Sequence[int], trex_bytes: int) -> int:
        self.bytes_used += trex_bytes
        if self.bytes_used > _FLOW_VAR_BYTES_MAX:
            raise EngineError(
                f"too many flow variables current size is :{self.bytes_used} maximum support is {_FLOW_VAR_BYTES_MAX}"
            )
        self.words.extend(initial)
        return len(self.words) - len(initial)

    def name_it(self, name: str, variable: Variable) -> None:
        if name in self.variables:
            raise self.refuse(f"flow variable name {name} already exists")
        self.variables[name] = variable

    def lookup(self) -> Variable:
        name = str(self.raw[self.at].get("name"))
        if name not in self.variables:
            raise self.refuse(f"no flow variable is called '{name}'")
        return self.variables[name]

    def chain_length(self) -> int:
        """How many variables right after this one run only when it wraps."""
        length = 0
        while (wanted := self.raw[self.at + length].get("next_var")) not in (None, ""):
            if self.at + length + 1 >= len(self.raw):
                raise self.refuse("Last instruction in the list of instructions has next_var")
            following = self.raw[self.at + length + 1]
            if following.get("type") not in ("flow_var", "flow_var_rand_limit"):
                raise self.refuse("Next instruction isn't a variable or a repeatable random")
            if following.get("name") != wanted:
                raise self.refuse("Next instruction name does not match next_var")
            splits = following.get("split_to_cores", True)
            if splits and (following["type"] == "flow_var_rand_limit" or following.get("op") != "random"):
                raise self.refuse(
                    "A variable that is being pointed at by some other variable must run on a single core."
                )
            length += 1
        return length

    def trimmed_by(self, name: str) -> bool:
        return any(item.get("type") == "trim_pkt_size" and item.get("name") == name for item in self.raw)

    def flow_var(self) -> FlowVar:
        raw = self.raw[self.at]
        size, op, name = self.number("size", 1, 8), raw.get("op"), str(raw.get("name"))
        if size not in (1, 2, 4, 8):
            raise self.refuse(f"'size' is {size}; it must be 1, 2, 4 or 8")
        if op not in ("inc", "dec", "random"):
            raise self.refuse(f"'op' is {op!r}; it must be inc, dec or random")
        if op == "random" and self.seed_word < 0:
            self.seed_word = self.allot([0], 4)
        skip = self.chain_length()
        if raw.get("value_list") is not None:
            return self.list_var(name, size, op, skip)
        top = (1 << 8 * size) - 1
        step = self.number("step", 1, top)
        low, high = self.number("min_value", 0, top), self.number("max_value", 0, top)
        if high < low:
            raise self.refuse(f"requested flow var max value: '{high}' is smaller than min value: {low}")
        init = self.number("init_value", low, high)
        low, high = self.pad_range(op, low, high, step, top)
        step %= high - low + 1
        if self.trimmed_by(name):
            low, high = self.clamp_sizes(low, high, low if op == "random" else init)
        before = {"inc": step_down, "dec": step_up}.get(op)
        span = high - low + 1
        start = before(low, high, init, step % span)[0] if before else init
        word = self.allot([start], size)
        self.name_it(name, Variable(word, size))
        return FlowVar(Variable(word, size), op, low, high, step, skip=skip)

    def pad_range(self, op: str, low: int, high: int, step: int, top: int) -> tuple[int, int]:
        """TRex widens a range that the step does not divide, so that every cycle is the same."""
        rest = (high - low + 1) % step
        if rest == 0 or op == "random":
            return low, high
        low, high = (low, high + step - rest) if op == "inc" else (low - step + rest, high)
        if low < 0 or high > top:
            raise self.refuse("could not pad range to be a true cycle within the variable's size")
        return low, high

    def clamp_sizes(self, low: int, high: int, init: int) -> tuple[int, int]:
        """The limits of a variable that sets the packet's size."""
        high, low = min(high, len(self.packet)), min(low, len(self.packet))
        if low >= high:
            raise self.refuse(f"min packet size {low} is bigger or eq to max packet size {high}")
        init = max(init, SMALLEST_FRAME) if init == low else init
        low = max(low, SMALLEST_FRAME)
        if not low <= init <= high:
            raise self.refuse(f"its first size {init} is outside the sizes {low} to {high} that can be sent")
        return low, high

    def list_var(self, name: str, size: int, op: str, skip: int) -> FlowVar:
        values = self.raw[self.at]["value_list"]
        top = (1 << 8 * size) - 1
        if not isinstance(values, list) or not 0 < len(values) <= U16:
            raise self.refuse(f"'value_list' must have 1 to {U16} values")
        bad = [value for value in values if not isinstance(value, int) or not 0 <= value <= top]
        if bad:
            raise self.refuse(f"'value_list' has {bad[0]!r}; every value must be from 0 to {top}")
        step = self.number("step", 1, len(values)) % len(values)
        index = len(values) - 1 if op != "inc" else 0
        if self.trimmed_by(name) and not all(SMALLEST_FRAME <= v <= len(self.packet) for v in values):
            raise self.refuse(f"its sizes must be from {SMALLEST_FRAME} to the packet's {len(self.packet)} bytes")
        before = {"inc": step_down, "dec": step_up}.get(op)
        start = before(0, len(values) - 1, index, step)[0] if before else index
        word = self.allot([start & top, index], size)
        self.name_it(name, Variable(word, size))
        return FlowVar(
            Variable(word, size), op, 0, len(values) - 1, step, tuple(values), index_word=word + 1, skip=skip
        )

    def rand_limit(self) -> RandLimit:
        size = self.number("size", 1, 8)
        if size not in (1, 2, 4, 8):
            raise self.refuse(f"'size' is {size}; it must be 1, 2, 4 or 8")
        top = (1 << 8 * size) - 1
        low = self.number("min_value", 0, top)
        high = self.number("max_value", low, top)
        limit = self.number("limit", 1, top)
        seed = self.number("seed", 0, U64) & U32
        word = self.allot([0, 0, seed], 2 * size + 4)
        self.name_it(str(self.raw[self.at].get("name")), Variable(word, size))
        return RandLimit(Variable(word, size), low, high, limit, seed, skip=self.chain_length())

    def tuple_var(self) -> TupleVar:
        name = str(self.raw[self.at].get("name"))
        ip_min = self.number("ip_min", 0, U32)
        ip_max = self.number("ip_max", ip_min, U32)
        port_min = self.number("port_min", 0, U16)
        port_max = self.number("port_max", port_min, U16)
        limit, flags = self.number("limit_flows", 0, U32, 0), self.number("flags", 0, U16, 0)
        one_ip = ip_min == ip_max
        word = self.allot([ip_max, port_max, 0], 10)
        for part, offset, size in (("ip", 0, 4), ("port", 1, 2), ("flow_limit", 2, 4)):
            self.name_it(f"{name}.{part}", Variable(word + offset, size))
        port_step = 1 if one_ip and port_max > port_min else 0
        return TupleVar(word, ip_min, ip_max, port_min, port_max, 0 if one_ip else 1, port_step, limit, bool(flags & 1))

    def room(self, offset: int, size: int) -> None:
        if offset + size > len(self.packet):
            raise self.refuse(
                f"packet write with packet_offset   {offset + size}   bigger than packet size   {len(self.packet)}"
            )

    def write(self) -> Write:
        variable, offset = self.lookup(), self.number("pkt_offset", 0, U16)
        self.room(offset, variable.size)
        add = self.number("add_value", -(1 << 31), (1 << 31) - 1, 0)
        return Write(variable, offset, add, bool(self.raw[self.at].get("is_big_endian", True)))

    def write_mask(self) -> WriteMask:
        variable, offset = self.lookup(), self.number("pkt_offset", 0, U16)
        cast = self.number("pkt_cast_size", 1, 4)
        big = bool(self.raw[self.at].get("is_big_endian", True))
        if cast == 3:
            raise self.refuse("cast size should be 1,2,4 it is 3")
        # TRex takes the size from the variable, not from pkt_cast_size, when it writes little-endian,
        # and the upper half of a 64-bit variable when it writes big-endian.
        size = cast if big else min(variable.size, 4)
        self.room(offset, max(size, cast))
        shift = self.number("shift", -31, 31, 0)
        add = self.number("add_value", -(1 << 31), (1 << 31) - 1, 0)
        mask = self.number("mask", 0, U32)
        return WriteMask(variable, offset, size, mask, shift, add, big, high=big and variable.size == 8)

    def trim(self) -> Trim:
        variable = self.lookup()
        simple = any(
            item.get("type") == "flow_var" and item.get("name") == self.raw[self.at].get("name") for item in self.raw
        )
        if variable.size != 2 or not simple:
            raise self.refuse("packet size change should point to a flow variable with size 2")
        return Trim(variable)

    def ipv4_header(self, offset: int) -> Checksum:
        self.room(offset, 20)
        length = max((self.packet[offset] & 0xF) * 4, 20)
        if self.packet[offset] != 0x45 and (self.packet[offset] & 0xF) < 5:
            raise self.refuse(f"there is no IPv4 header at offset {offset}")
        self.room(offset, length)
        ranges = ((offset, offset + 10), (offset + 12, offset + length))
        return Checksum(offset + 10, ranges)

    def transport(self, l2: int, l3: int, proto: int, ipv6: bool) -> Checksum:
        """The L4 checksum that hardware would fill in for TCP (6) or UDP (17)."""
        at = l2 + l3
        self.room(at, 20 if proto == 6 else 8)
        if at % 2:
            raise self.refuse("headers of odd length are not supported")
        if any(item.get("type") == "trim_pkt_size" for item in self.raw):
            raise self.refuse("cannot be combined with trim_pkt_size")
        field = self.packet[l2 + 4 : l2 + 6] if ipv6 else self.packet[l2 + 2 : l2 + 4]
        length = int.from_bytes(field, "big") - (l3 - 40 if ipv6 else l3)
        if length < 8 or at + length > len(self.packet):
            raise self.refuse(f"the IP length says {length} bytes of layer 4; the packet has {len(self.packet) - at}")
        addresses = (l2 + 8, l2 + 40) if ipv6 else (l2 + 12, l2 + 20)
        target = at + (16 if proto == 6 else 6)
        ranges = (addresses, (at, target), (target + 2, at + length))
        pseudo = sum_words(length.to_bytes(2, "big") + bytes([0, proto]))
        return Checksum(target, ranges, pseudo, zero_as_ones=proto == 17)

    def fix_hw(self) -> list[Checksum]:
        l2, l3 = self.number("l2_len", 14, U16), self.number("l3_len", 0, U16)
        kind = self.number("l4_type", 0, U16)
        self.room(l2, 20)
        version = self.packet[l2] >> 4
        if version == 6:
            if kind not in (_HW_TCP, _HW_UDP):
                raise self.refuse("offsets should be TCP or UDP for IPv6")
            return [self.transport(l2, l3, 6 if kind == _HW_TCP else 17, ipv6=True)]
        if version != 4:
            raise self.refuse("fix hw command should work on IPv4 or IPv6")
        header, size, proto = self.ipv4_header(l2), (self.packet[l2] & 0xF) * 4, self.packet[l2 + 9]
        if kind != _HW_IP and size != l3:
            raise self.refuse(f"fix hw command IPv4 header size is not valid  {size}")
        if kind != _HW_IP and proto not in (6, 17):
            raise self.refuse("fix hw command L4 should be TCP or UDP")
        # The checksum of layer 4 does not cover that of the IP header: their order is free.
        return [header, self.transport(l2, size, proto, ipv6=False)] if proto in (6, 17) else [header]

    def fix_icmpv6(self) -> Checksum:
        l2, l3 = self.number("l2_len", 0, U16), self.number("l3_len", 0, U16)
        self.room(l2, 40)
        at, length = l2 + l3, int.from_bytes(self.packet[l2 + 4 : l2 + 6], "big")
        if self.packet[l2] >> 4 != 6 or self.packet[l2 + 6] != 58 or at % 2:
            raise self.refuse("there is no IPv6 header with ICMPv6 right behind it")
        self.room(at, max(length, 4))
        pseudo = sum_words(self.packet[l2 + 4 : l2 + 6] + bytes([0, 58]))
        return Checksum(at + 2, ((l2 + 8, l2 + 40), (at, at + 2), (at + 4, at + length)), pseudo)

    def build(self) -> FieldProgram:
        makers: dict[str, Callable[[], Instruction | list[Checksum]]] = {
            "flow_var": self.flow_var,
            "flow_var_rand_limit": self.rand_limit,
            "tuple_flow_var": self.tuple_var,
            "write_flow_var": self.write,
            "write_mask_flow_var": self.write_mask,
            "trim_pkt_size": self.trim,
            "fix_checksum_ipv4": lambda: self.ipv4_header(self.number("pkt_offset", 0, U16)),
            "fix_checksum_hw": self.fix_hw,
            "fix_checksum_icmpv6": self.fix_icmpv6,
        }
        program: list[Instruction] = []
        for number, raw in enumerate(self.raw):
            self.at = number
            maker = makers.get(str(raw.get("type")))
            if maker is None:
                raise self.refuse("this instruction is not supported")
            made = maker()
            program.extend(made if isinstance(made, list) else [made])
        touched = self.check_lengths(program)
        return FieldProgram(self.packet, tuple(program), tuple(self.words), self.seed_word, touched)

    def check_lengths(self, program: Sequence[Instruction]) -> frozenset[int]:
        """The bytes that may change; refuse where one of them would move what a checksum covers."""
        touched: set[int] = set()
        for item in program:
            if isinstance(item, Write):
                touched |= set(range(item.offset, item.offset + item.variable.size))
            elif isinstance(item, WriteMask):
                touched |= set(range(item.offset, item.offset + item.size))
            elif isinstance(item, Checksum):
                touched |= {item.at, item.at + 1}
        for number, raw in enumerate(self.raw):
            self.at = number
            if not str(raw.get("type")).startswith("fix_checksum"):
                continue
            base = int(raw.get("pkt_offset", raw.get("l2_len", 0)))
            fields = {base}
            if raw["type"] != "fix_checksum_ipv4":
                six = self.packet[base] >> 4 == 6
                fields |= {base + 4, base + 5, base + 6} if six else {base + 2, base + 3, base + 9}
            if raw.get("l4_type") == _HW_IP and self.packet[base + 9] not in (6, 17):
                fields = {base}
            if fields & touched:
                raise self.refuse("a header length or protocol that the field engine changes is not supported")
        return frozenset(touched)


def build_program(packet: bytes, instructions: Sequence[Mapping[str, Any]]) -> FieldProgram:
    """Check TRex's JSON instructions against the packet; EngineError names what cannot be done."""
    return _Builder(packet, instructions).build()
