"""A reference interpreter of the kernel engine's field programs: what the generated code is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trexbench.stlserver.kernel.field_program import (
    U16,
    U32,
    UNLIMITED_FIRST_PORT,
    Checksum,
    FieldProgram,
    FlowVar,
    PlacedWrite,
    RandLimit,
    TupleVar,
    WriteMask,
    fold,
    step_down,
    step_up,
    sum_words,
)
from trexbench.stlserver.params import Params
from trexbench.stlserver.state.field_checks import Instruction, check_program, parse_instructions

LEFT_OUT = {"limit_flows": 0, "flags": 0}
"""Fields of tuples that TRex requires and tests may leave out."""


def checked(packet: bytes, instructions: Sequence[Mapping[str, Any]]) -> tuple[Instruction, ...]:
    """A client's instructions as the server hands them to its engine; RpcError where TRex refuses them."""
    program = parse_instructions(Params({"instructions": [{**LEFT_OUT, **one} for one in instructions]}))
    check_program(program, len(packet))
    return program


class FieldMachine:
    """Runs a program in plain Python, one packet at a time: what the kernel's code is compared with."""

    def __init__(self, program: FieldProgram, seed: int = 1, cache: int = 0) -> None:
        self.program = program
        self.initial = list(program.words)
        if program.seed_word >= 0:
            self.initial[program.seed_word] = seed & U32
        self.words = list(self.initial)
        self.cache = cache
        self.count = 0

    def _rand16(self, word: int) -> int:
        self.words[word] = (self.words[word] * 214013 + 2531011) & U32
        return self.words[word] >> 16 & 0x7FFF

    def _rand(self, word: int, size: int) -> int:
        if size <= 2:
            return self._rand16(word)
        value = (self._rand16(word) << 16) + self._rand16(word)
        return value if size == 4 else (value << 32) + self._rand(word, 4)

    def _flow_var(self, item: FlowVar) -> int:
        """Advance; gives how many instructions to skip."""
        words, target = self.words, item.variable.word
        if item.op == "random":
            span = len(item.values) or item.maximum - item.minimum + 1
            number = self._rand(self.program.seed_word, 2 if item.values else item.variable.size) % span
            words[target] = item.values[number] if item.values else item.minimum + number
            return 0
        if item.values:
            index, count = words[item.index_word], len(item.values)
            keeps = index >= item.step if item.op == "inc" else index + item.step < count
            words[target] = item.values[index]
            words[item.index_word] = (index + (item.step if item.op == "inc" else -item.step)) % count
            return item.skip if keeps else 0
        step = step_up if item.op == "inc" else step_down
        words[target], wrapped = step(item.minimum, item.maximum, words[target], item.step)
        return 0 if wrapped else item.skip

    def _rand_limit(self, item: RandLimit) -> int:
        words, at = self.words, item.variable.word
        if words[at + 1] == item.limit:
            words[at + 1], words[at + 2] = 0, item.seed
        skip = item.skip if words[at + 1] else 0
        words[at] = item.minimum + self._rand(at + 2, item.variable.size) % (item.maximum - item.minimum + 1)
        words[at + 1] += 1
        return skip

    def _tuple(self, item: TupleVar) -> None:
        words, at = self.words, item.word
        if item.unlimited:
            words[at] = words[at] + 1 & U32
            if words[at] > item.ip_max:
                words[at] = item.ip_min
                words[at + 1] = words[at + 1] + 1 & U16 or UNLIMITED_FIRST_PORT
            return
        words[at], wrapped = step_up(item.ip_min, item.ip_max, words[at], item.ip_step)
        steps = [item.port_step] + [1] * wrapped
        for step in steps:
            words[at + 1] = step_up(item.port_min, item.port_max, words[at + 1], step)[0]
        if item.limit:
            words[at + 2] += 1
            if words[at + 2] > item.limit:
                words[at : at + 3] = [item.ip_min, item.port_min, 1]

    def _write(self, packet: bytearray, item: PlacedWrite) -> None:
        size = item.variable.size
        value = self.words[item.variable.word] + item.add & (1 << 8 * size) - 1
        packet[item.offset : item.offset + size] = value.to_bytes(size, "big" if item.big_endian else "little")

    def _write_mask(self, packet: bytearray, item: WriteMask) -> None:
        value = self.words[item.variable.word]
        value = (value >> 32 if item.high else value) & U32
        value = value + item.add & U32
        value = (value << item.shift if item.shift > 0 else value >> -item.shift) & U32
        order, end = "big" if item.big_endian else "little", item.offset + item.size
        old = int.from_bytes(packet[item.offset : end], order)  # type: ignore[arg-type]
        new = (old & ~item.mask | value & item.mask) & (1 << 8 * item.size) - 1
        packet[item.offset : end] = new.to_bytes(item.size, order)  # type: ignore[arg-type]

    @staticmethod
    def _checksum(packet: bytearray, item: Checksum) -> None:
        total = item.constant + sum(sum_words(bytes(packet[low:high])) for low, high in item.ranges)
        result = fold(total) ^ U16
        if item.zero_as_ones and result == 0:
            result = U16
        packet[item.at : item.at + 2] = result.to_bytes(2, "little")

    def next_packet(self) -> bytes:
        """The next packet, without FCS."""
        if self.cache and self.count == self.cache:
            self.words, self.count = list(self.initial), 0
        self.count += 1
        packet, size, at = bytearray(self.program.packet), len(self.program.packet), 0
        while at < len(self.program.instructions):
            item = self.program.instructions[at]
            at += 1
            if isinstance(item, FlowVar):
                at += self._flow_var(item)
            elif isinstance(item, RandLimit):
                at += self._rand_limit(item)
            elif isinstance(item, TupleVar):
                self._tuple(item)
            elif isinstance(item, PlacedWrite):
                self._write(packet, item)
            elif isinstance(item, WriteMask):
                self._write_mask(packet, item)
            else:
                self._checksum(packet, item)
        if self.program.size_word >= 0:
            size = self.words[self.program.size_word]
        return bytes(packet[:size])
