"""Field engine instructions made into a FieldProgram: variables get their words, checksums the bytes that they cover.

``state.field_checks`` has read the instructions and refused what TRex refuses. What TRex accepts and this engine cannot
do exactly is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..engine import EngineError
from .field_program import (
    SMALLEST_FRAME,
    U16,
    U32,
    Checksum,
    FieldProgram,
    FlowVar,
    Instruction,
    PlacedWrite,
    RandLimit,
    TupleVar,
    VariablePlace,
    WriteMask,
    step_down,
    step_up,
    sum_words,
)

_HW_UDP, _HW_TCP, _HW_IP = 11, 13, 17


class _Builder:
    """Makes the parts of one packet's program; ``at``: number of the current instruction."""

    def __init__(self, packet: bytes, instructions: Sequence[Mapping[str, Any]]) -> None:
        self.packet = packet.ljust(SMALLEST_FRAME, b"\0")
        self.instructions = instructions
        self.trimming = [one["name"] for one in instructions if one["type"] == "trim_pkt_size"]
        self.words: list[int] = []
        self.variables: dict[str, VariablePlace] = {}
        self.seed_word = self.size_word = -1
        self.at = 0

    @property
    def one(self) -> Mapping[str, Any]:
        """The current instruction."""
        return self.instructions[self.at]

    def refuse(self, why: str) -> EngineError:
        return EngineError(f"field engine instruction {self.at} ({self.one['type']}): {why}")

    def require(self, name: str, low: int, high: int) -> None:
        """Refuse the current instruction unless its field is in this range."""
        if not low <= self.one[name] <= high:
            raise self.refuse(f"'{name}' is {self.one[name]}; it must be from {low} to {high}")

    def room(self, offset: int, size: int) -> None:
        """Refuse what reaches beyond the packet."""
        if offset + size > len(self.packet):
            raise self.refuse(
                f"packet write with packet_offset   {offset + size}   bigger than packet size   {len(self.packet)}"
            )

    def new_variable(self, size: int, *words: int) -> VariablePlace:
        """The variable of the current instruction, with the initial values of its words."""
        variable = self.variables[self.one["name"]] = VariablePlace(len(self.words), size)
        self.words.extend(words)
        return variable

    def variable(self) -> VariablePlace:
        """The variable that the current instruction names."""
        if self.one["name"] not in self.variables:
            raise self.refuse(f"flow variable '{self.one['name']}' comes after its use")
        return self.variables[self.one["name"]]

    def chain_length(self) -> int:
        """Number of variables right after this one run only when it wraps."""
        length = 0
        while self.instructions[self.at + length].get("next_var"):
            length += 1
            following = self.instructions[self.at + length]
            if following["split_to_cores"] and following.get("op") != "random":
                raise self.refuse(
                    "A variable that is being pointed at by some other variable must run on a single core."
                )
        return length

    def flow_var(self) -> FlowVar:
        one, top = self.one, (1 << 8 * self.one["size"]) - 1
        op, values, skip = one["op"], tuple(one.get("value_list", ())), self.chain_length()
        if op == "random" and self.seed_word < 0:
            self.seed_word = len(self.words)
            self.words.append(0)
        if values:
            low, high, first = 0, len(values) - 1, 0 if op == "inc" else len(values) - 1
        else:
            low, high, first = one["min_value"], one["max_value"], one["init_value"]
        if not values and high > top:
            raise self.refuse("could not pad range to be a true cycle within the variable's size")
        step = one["step"] % (high - low + 1)
        if one["name"] in self.trimming and not values:
            low, high = self.clamp_sizes(low, high, low if op == "random" else first)
        before = {"inc": step_down, "dec": step_up}.get(op)
        start = before(low, high, first, step % (high - low + 1))[0] if before else first
        variable = self.new_variable(one["size"], start & top, *([first] if values else []))
        return FlowVar(variable, op, low, high, step, values, skip)

    def clamp_sizes(self, low: int, high: int, first: int) -> tuple[int, int]:
        """The limits of a variable that sets the packet's size."""
        high, low = min(high, len(self.packet)), min(low, len(self.packet))
        first = max(first, SMALLEST_FRAME) if first == low else first
        low = max(low, SMALLEST_FRAME)
        if not low <= first <= high:
            raise self.refuse(f"its first size {first} is outside the sizes {low} to {high} that can be sent")
        return low, high

    def rand_limit(self) -> RandLimit:
        one, seed = self.one, self.one["seed"] & U32
        self.require("limit", 1, (1 << 8 * one["size"]) - 1)
        variable = self.new_variable(one["size"], 0, 0, seed)
        return RandLimit(variable, one["min_value"], one["max_value"], one["limit"], seed, self.chain_length())

    def tuple_var(self) -> TupleVar:
        one = self.one
        ip_min, ip_max, port_min, port_max = (one[name] for name in ("ip_min", "ip_max", "port_min", "port_max"))
        self.require("ip_max", ip_min, U32)
        self.require("port_max", port_min, U16)
        one_ip = ip_min == ip_max
        word = len(self.words)
        self.words += [ip_max, port_max, 0]
        for part, offset, size in (("ip", 0, 4), ("port", 1, 2), ("flow_limit", 2, 4)):
            self.variables[f"{one['name']}.{part}"] = VariablePlace(word + offset, size)
        ip_step, port_step = int(not one_ip), int(one_ip and port_max > port_min)
        unlimited = bool(one["flags"] & 1)
        return TupleVar(word, ip_min, ip_max, port_min, port_max, ip_step, port_step, one["limit_flows"], unlimited)

    def write(self) -> PlacedWrite:
        one = self.one
        return PlacedWrite(self.variable(), one["pkt_offset"], one["add_value"], one["is_big_endian"])

    def write_mask(self) -> WriteMask:
        one, variable, big = self.one, self.variable(), self.one["is_big_endian"]
        self.require("shift", -31, 31)
        # TRex takes the size from the variable, not from pkt_cast_size, when it writes little-endian,
        # and the upper half of a 64-bit variable when it writes big-endian.
        size = one["pkt_cast_size"] if big else min(variable.size, 4)
        self.room(one["pkt_offset"], size)
        high = big and variable.size == 8
        return WriteMask(variable, one["pkt_offset"], size, one["mask"], one["shift"], one["add_value"], big, high)

    def trim(self) -> list[Checksum]:
        """No instruction: the frame gets its length last of all."""
        self.size_word = self.variable().word
        return []

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
        if self.trimming:
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
        l2, l3, kind = (self.one[name] for name in ("l2_len", "l3_len", "l4_type"))
        self.require("l2_len", 14, U16)
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
        l2, l3 = self.one["l2_len"], self.one["l3_len"]
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
            "fix_checksum_ipv4": lambda: self.ipv4_header(self.one["pkt_offset"]),
            "fix_checksum_hw": self.fix_hw,
            "fix_checksum_icmpv6": self.fix_icmpv6,
        }
        program: list[Instruction] = []
        for number, one in enumerate(self.instructions):
            self.at = number
            if one["type"] not in makers:
                raise self.refuse("this instruction is not supported")
            made = makers[one["type"]]()
            program.extend(made if isinstance(made, list) else [made])
        touched = self.check_lengths(program)
        return FieldProgram(self.packet, tuple(program), tuple(self.words), self.seed_word, self.size_word, touched)

    def check_lengths(self, program: Sequence[Instruction]) -> frozenset[int]:
        """The bytes that may change; a program is refused that changes how much a checksum covers."""
        touched: set[int] = set()
        for item in program:
            if isinstance(item, PlacedWrite):
                touched |= set(range(item.offset, item.offset + item.variable.size))
            elif isinstance(item, WriteMask):
                touched |= set(range(item.offset, item.offset + item.size))
            elif isinstance(item, Checksum):
                touched |= {item.at, item.at + 1}
        for number, one in enumerate(self.instructions):
            self.at = number
            if not one["type"].startswith("fix_checksum"):
                continue
            base = int(one.get("pkt_offset", one.get("l2_len", 0)))
            fields = {base}
            if one["type"] != "fix_checksum_ipv4":
                six = self.packet[base] >> 4 == 6
                fields |= {base + 4, base + 5, base + 6} if six else {base + 2, base + 3, base + 9}
            if one.get("l4_type") == _HW_IP and self.packet[base + 9] not in (6, 17):
                fields = {base}
            if fields & touched:
                raise self.refuse("a header length or protocol that the field engine changes is not supported")
        return frozenset(touched)


def build_program(packet: bytes, instructions: Sequence[Mapping[str, Any]]) -> FieldProgram:
    """The program of a packet without FCS; EngineError names the instruction that cannot be done."""
    return _Builder(packet, instructions).build()
