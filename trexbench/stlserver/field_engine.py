"""TRex's field engine: what a program is, and a reference interpreter of it (field_parse makes programs).

Semantics are those of TRex v3.08 on one core (src/stx/stl/trex_stl_stream_vm.*): variables begin one step before
their initial value, instructions run in their order for every packet on a fresh copy of it, random numbers come
from its linear congruential generator. What TRex would do only by overflow is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST_FRAME = 60
U16, U32, U64 = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_UNLIMITED_FIRST_PORT = 1025


@dataclass(frozen=True)
class Variable:
    """Where a value lives: word number in the stream's state, and its width in bytes."""

    word: int
    size: int


@dataclass(frozen=True)
class FlowVar:
    """inc, dec or random over [minimum, maximum] or over ``values``; ``skip``: how many instructions after this
    one run only when it wraps (its ``next_var`` chain). ``index_word``: the position in ``values``."""

    variable: Variable
    op: str
    minimum: int
    maximum: int
    step: int
    values: tuple[int, ...] = ()
    index_word: int = -1
    skip: int = 0


@dataclass(frozen=True)
class RandLimit:
    """A random sequence that repeats after ``limit`` packets; words: value, count, seed."""

    variable: Variable
    minimum: int
    maximum: int
    limit: int
    seed: int
    skip: int = 0


@dataclass(frozen=True)
class TupleVar:
    """Client address and port; words: address, port, flow number. ``limit`` 0: none."""

    word: int
    ip_min: int
    ip_max: int
    port_min: int
    port_max: int
    ip_step: int
    port_step: int
    limit: int
    unlimited: bool


@dataclass(frozen=True)
class Write:
    variable: Variable
    offset: int
    add: int
    big_endian: bool


@dataclass(frozen=True)
class WriteMask:
    """``size`` bytes at ``offset`` take the bits of ``mask`` from the shifted variable; ``high``: its upper half."""

    variable: Variable
    offset: int
    size: int
    mask: int
    shift: int
    add: int
    big_endian: bool
    high: bool


@dataclass(frozen=True)
class Checksum:
    """Store the Internet checksum of ``ranges`` (start, end) plus ``constant`` at ``at``.

    zero_as_ones: a result of zero is sent as 0xffff (UDP).
    """

    at: int
    ranges: tuple[tuple[int, int], ...]
    constant: int = 0
    zero_as_ones: bool = False


@dataclass(frozen=True)
class Trim:
    variable: Variable


Instruction = FlowVar | RandLimit | TupleVar | Write | WriteMask | Checksum | Trim


@dataclass(frozen=True)
class FieldProgram:
    """A checked program for one packet.

    packet: padded to 60 bytes. words: initial state, one 64-bit word each; seed_word: which of them seeds
    ``random`` (-1: none does). touched: every byte that some instruction may change.
    """

    packet: bytes
    instructions: tuple[Instruction, ...]
    words: tuple[int, ...]
    seed_word: int
    touched: frozenset[int]

    @property
    def trims(self) -> bool:
        return any(isinstance(instruction, Trim) for instruction in self.instructions)


def fold(total: int) -> int:
    """Ones' complement reduction to 16 bits."""
    while total > U16:
        total = (total & U16) + (total >> 16)
    return total


def sum_words(data: bytes) -> int:
    """Sum of the little-endian 16-bit words, an odd last byte padded with zero."""
    data = data + b"\0" if len(data) % 2 else data
    return sum(int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2))


def step_up(low: int, high: int, current: int, step: int) -> tuple[int, bool]:
    """The next value of an inc variable, and whether it wrapped."""
    left = high - current
    return (current + step, False) if step <= left else (low + step - left - 1, True)


def step_down(low: int, high: int, current: int, step: int) -> tuple[int, bool]:
    """The next value of a dec variable, and whether it wrapped."""
    left = current - low
    return (current - step, False) if step <= left else (high - (step - left - 1), True)


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
                words[at + 1] = words[at + 1] + 1 & U16 or _UNLIMITED_FIRST_PORT
            return
        words[at], wrapped = step_up(item.ip_min, item.ip_max, words[at], item.ip_step)
        steps = [item.port_step] + [1] * wrapped
        for step in steps:
            words[at + 1] = step_up(item.port_min, item.port_max, words[at + 1], step)[0]
        if item.limit:
            words[at + 2] += 1
            if words[at + 2] > item.limit:
                words[at : at + 3] = [item.ip_min, item.port_min, 1]

    def _write(self, packet: bytearray, item: Write) -> None:
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
            elif isinstance(item, Write):
                self._write(packet, item)
            elif isinstance(item, WriteMask):
                self._write_mask(packet, item)
            elif isinstance(item, Checksum):
                self._checksum(packet, item)
            else:
                size = self.words[item.variable.word]
        return bytes(packet[:size])
