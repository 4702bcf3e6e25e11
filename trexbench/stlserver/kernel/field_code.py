"""Field engine programs as BPF instructions, executed for every packet.

Registers: R7 points at the packet, R9 at the port's state; R0 to R5 are scratch.
"""

from __future__ import annotations

from collections.abc import Sequence

from .bpf_asm import R0, R1, R2, R3, R4, R7, R9, Assembler, Operand, Reg
from .field_program import (
    UNLIMITED_FIRST_PORT,
    Checksum,
    FieldProgram,
    FlowVar,
    Instruction,
    PlacedWrite,
    RandLimit,
    TupleVar,
    WriteMask,
    fold,
    sum_words,
)

_SMALL = 1 << 31


def operand(asm: Assembler, value: int, scratch: Reg) -> Operand:
    """``value`` as an immediate where it fits, else loaded into ``scratch``."""
    if value < _SMALL:
        return value
    asm.mov(scratch, value)
    return scratch


def write_constants(asm: Assembler, packet: bytes) -> None:
    """The whole packet: pages come back as the last receiver left them, so nothing in them can be relied on."""
    held: int | None = None
    at = 0
    while at < len(packet):
        size = next(size for size in (8, 4, 2, 1) if at + size <= len(packet))
        value = int.from_bytes(packet[at : at + size], "little")
        if size < 8:
            asm.store(size, R7, at, value)
        elif value < _SMALL:
            asm.store(8, R7, at, value)
        else:
            if value != held:
                asm.mov(R0, value)
                held = value
            asm.store(8, R7, at, R0)
        at += size


class FieldCode:
    """Emits one stream's program.

    state: offset of its words from R9. lists: map of each value list, by its variable's word. bad: label to jump to
    when an index is outside of its list, a check that the kernel's verifier demands.
    """

    def __init__(self, asm: Assembler, program: FieldProgram, state: int, lists: dict[int, int], bad: str) -> None:
        self.asm, self.program, self.state, self.lists, self.bad = asm, program, state, lists, bad

    def _at(self, word: int) -> int:
        return self.state + 8 * word

    def _get(self, reg: Reg, word: int) -> None:
        self.asm.load(8, reg, R9, self._at(word))

    def _put(self, word: int, value: Operand) -> None:
        self.asm.store(8, R9, self._at(word), value)

    def emit(self) -> None:
        """All instructions in order; afterwards the frame's length is in its variable."""
        skips: list[tuple[int, str]] = []
        for number, item in enumerate(self.program.instructions):
            for _, label in [entry for entry in skips if entry[0] == number]:
                self.asm.label(label)
            skip = getattr(item, "skip", 0)
            label = self.asm.fresh_label("chain") if skip else ""
            self._one(item, label)
            if skip:
                skips.append((number + skip + 1, label))
        for _, label in [entry for entry in skips if entry[0] == len(self.program.instructions)]:
            self.asm.label(label)

    def _one(self, item: Instruction, skip: str) -> None:
        if isinstance(item, FlowVar):
            self._flow_var(item, skip)
        elif isinstance(item, RandLimit):
            self._rand_limit(item, skip)
        elif isinstance(item, TupleVar):
            self._unlimited(item) if item.unlimited else self._tuple(item)
        elif isinstance(item, PlacedWrite):
            self._write(item)
        elif isinstance(item, WriteMask):
            self._write_mask(item)
        else:
            self._checksum(item)

    def _advance(self, reg: Reg, low: int, high: int, step: int, up: bool, wraps: str) -> None:
        """reg = next value; on a wrap go to ``wraps`` with R2 = the steps left before the border."""
        asm = self.asm
        if up:
            asm.calc(R2, high, "sub", reg)
        else:
            asm.mov(R2, reg)
            asm.alu("sub", R2, operand(asm, low, R3))
        asm.jump_if("lt", R2, operand(asm, step, R3), wraps)
        asm.alu("add" if up else "sub", reg, operand(asm, step, R3))

    def _wrapped(self, reg: Reg, low: int, high: int, step: int, up: bool) -> None:
        mask = (1 << 64) - 1
        self.asm.mov(reg, (low + step - 1 if up else high - step + 1) & mask)
        self.asm.alu("sub" if up else "add", reg, R2)

    def _flow_var(self, item: FlowVar, skip: str) -> None:
        asm, up = self.asm, item.op == "inc"
        if item.op == "random":
            self._random_var(item)
            return
        if item.values:
            self._list_var(item, skip)
            return
        wraps, done = asm.fresh_label("wraps"), asm.fresh_label("done")
        self._get(R1, item.variable.word)
        self._advance(R1, item.minimum, item.maximum, item.step, up, wraps)
        if skip:
            self._put(item.variable.word, R1)
        asm.jump(skip or done)
        asm.label(wraps)
        self._wrapped(R1, item.minimum, item.maximum, item.step, up)
        asm.label(done)
        self._put(item.variable.word, R1)

    def _pick(self, item: FlowVar, index: Reg) -> None:
        """R2 = values[index]."""
        asm, count = self.asm, len(item.values)
        asm.jump_if("ge", index, count, self.bad)
        asm.map_value(R2, self.lists[item.variable.word])
        asm.calc(R3, index, "lsh", 3)
        asm.alu("add", R2, R3)
        asm.load(8, R2, R2, 0)
        self._put(item.variable.word, R2)

    def _list_var(self, item: FlowVar, skip: str) -> None:
        asm, count, step, up = self.asm, len(item.values), item.step, item.op == "inc"
        self._get(R1, item.index_word)
        self._pick(item, R1)
        asm.mov(R4, R1)
        asm.alu("add", R1, step if up else count - step)
        with asm.unless("lt", R1, count):
            asm.alu("sub", R1, count)
        self._put(item.index_word, R1)
        if skip and up:
            asm.jump_if("ge", R4, step, skip)
        elif skip:
            asm.jump_if("lt", R4, count - step, skip)

    def _rand15(self, dst: Reg, seed: Reg) -> None:
        """dst = 15 random bits; ``seed`` advances."""
        asm = self.asm
        asm.alu("mul", seed, 214013, bits=32)
        asm.alu("add", seed, 2531011, bits=32)
        asm.calc(dst, seed, "rsh", 16)
        asm.alu("and", dst, 0x7FFF)

    def _rand(self, dst: Reg, seed_word: int, size: int) -> None:
        """dst = a random number as TRex draws it for ``size`` bytes; uses R3 and R4."""
        asm = self.asm
        self._get(R4, seed_word)
        self._rand15(dst, R4)
        for _ in range({1: 0, 2: 0, 4: 1, 8: 3}[size]):
            self._rand15(R3, R4)
            # Twice (15 bits << 16) + 15 bits: the same for both halves, so 16 more each time.
            asm.alu("lsh", dst, 16)
            asm.alu("add", dst, R3)
        self._put(seed_word, R4)

    def _reduce(self, reg: Reg, low: int, high: int) -> None:
        """reg = low + reg % (high - low + 1)."""
        span = high - low + 1
        if span < 1 << 64:
            self.asm.alu("mod", reg, operand(self.asm, span, R3))
        if low:
            self.asm.alu("add", reg, operand(self.asm, low, R3))

    def _random_var(self, item: FlowVar) -> None:
        self._rand(R1, self.program.seed_word, 2 if item.values else item.variable.size)
        if item.values:
            self.asm.alu("mod", R1, len(item.values))
            self._pick(item, R1)
            return
        self._reduce(R1, item.minimum, item.maximum)
        self._put(item.variable.word, R1)

    def _rand_limit(self, item: RandLimit, skip: str) -> None:
        asm, word = self.asm, item.variable.word
        self._get(R0, word + 1)
        with asm.unless("ne", R0, operand(asm, item.limit, R1)):
            asm.mov(R0, 0)
            asm.mov(R1, item.seed)
            self._put(word + 2, R1)
        self._rand(R1, word + 2, item.variable.size)
        self._reduce(R1, item.minimum, item.maximum)
        self._put(word, R1)
        asm.calc(R1, R0, "add", 1)
        self._put(word + 1, R1)
        if skip:
            asm.jump_if("ne", R0, 0, skip)

    def _tuple(self, item: TupleVar) -> None:
        asm, word = self.asm, item.word
        wraps, port, done = asm.fresh_label("ip_wraps"), asm.fresh_label("port"), asm.fresh_label("done")
        self._get(R1, word)
        self._advance(R1, item.ip_min, item.ip_max, item.ip_step, True, wraps)
        self._put(word, R1)
        if item.port_step:
            self._next_port(item)
        asm.jump(port)
        asm.label(wraps)
        self._wrapped(R1, item.ip_min, item.ip_max, item.ip_step, True)
        self._put(word, R1)
        self._next_port(item)
        asm.label(port)
        if item.limit:
            self._get(R1, word + 2)
            asm.alu("add", R1, 1)
            self._put(word + 2, R1)
            asm.jump_if("le", R1, operand(asm, item.limit, R2), done)
            for offset, value in enumerate((item.ip_min, item.port_min, 1)):
                asm.mov(R1, value)
                self._put(word + offset, R1)
        asm.label(done)

    def _next_port(self, item: TupleVar) -> None:
        asm = self.asm
        self._get(R1, item.word + 1)
        asm.alu("add", R1, 1)
        with asm.unless("le", R1, item.port_max):
            asm.mov(R1, item.port_min)
        self._put(item.word + 1, R1)

    def _unlimited(self, item: TupleVar) -> None:
        asm, word = self.asm, item.word
        self._get(R1, word)
        asm.alu("add", R1, 1, bits=32)
        with asm.unless("le", R1, operand(asm, item.ip_max, R2)):
            self._get(R1, word + 1)
            asm.alu("add", R1, 1)
            asm.alu("and", R1, 0xFFFF)
            with asm.unless("ne", R1, 0):
                asm.mov(R1, UNLIMITED_FIRST_PORT)
            self._put(word + 1, R1)
            asm.mov(R1, item.ip_min)
        self._put(word, R1)

    def _write(self, item: PlacedWrite) -> None:
        self._get(R1, item.variable.word)
        if item.add:
            self.asm.alu("add", R1, item.add)
        if item.big_endian and item.variable.size > 1:
            self.asm.swap(R1, 8 * item.variable.size)
        self.asm.store(item.variable.size, R7, item.offset, R1)

    def _write_mask(self, item: WriteMask) -> None:
        asm, bits = self.asm, 8 * item.size
        self._get(R1, item.variable.word)
        if item.high:
            asm.alu("rsh", R1, 32)
        asm.alu("add", R1, item.add, bits=32)
        if item.shift:
            asm.alu("lsh" if item.shift > 0 else "rsh", R1, abs(item.shift), bits=32)
        asm.alu("and", R1, item.mask, bits=32)
        asm.load(item.size, R2, R7, item.offset)
        if item.big_endian and item.size > 1:
            asm.swap(R2, bits)
        asm.alu("and", R2, ~item.mask, bits=32)
        asm.alu("or", R2, R1, bits=32)
        if item.big_endian and item.size > 1:
            asm.swap(R2, bits)
        asm.store(item.size, R7, item.offset, R2)

    def _changing(self, ranges: Sequence[tuple[int, int]]) -> tuple[int, list[tuple[int, int]]]:
        """The sum of the words that never change, and (offset, size) of those to read from the packet."""
        constant = 0
        reads: list[tuple[int, int]] = []
        packet, touched = self.program.packet, self.program.touched
        for low, high in ranges:
            at = low
            while at < high:
                size = min(2, high - at)
                if not touched & set(range(at, at + size)):
                    constant += sum_words(packet[at : at + size])
                elif reads and reads[-1] == (at - 2, 2) and size == 2:
                    reads[-1] = (at - 2, 4)
                else:
                    reads.append((at, size))
                at += size
        return constant, reads

    def _checksum(self, item: Checksum) -> None:
        """Only words that can change are added at run time; the rest is one constant."""
        asm = self.asm
        constant, reads = self._changing(item.ranges)
        asm.mov(R1, fold(constant + item.constant))
        for at, size in reads:
            asm.load(size, R2, R7, at)
            asm.alu("add", R1, R2)
        if reads:
            # With up to 760 32-bit words the sum stays below 2**42: two folds bring it to 18 bits, four to 16.
            for _ in range(3 if len(reads) < 8 else 4):
                asm.calc(R2, R1, "rsh", 16)
                asm.alu("and", R1, 0xFFFF)
                asm.alu("add", R1, R2)
        asm.alu("xor", R1, 0xFFFF)
        if item.zero_as_ones:
            with asm.unless("ne", R1, 0):
                asm.mov(R1, 0xFFFF)
        asm.store(2, R7, item.at, R1)
