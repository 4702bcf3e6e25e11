"""A small assembler for eBPF: mnemonics, labels, 64-bit constants and map addresses.

The encoding follows the kernel's Documentation/bpf/standardization/instruction-set.rst.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum


class Helper(IntEnum):
    """Kernel functions a program may call (numbers from include/uapi/linux/bpf.h)."""

    KTIME_GET_NS = 5
    GET_SMP_PROCESSOR_ID = 8
    TAIL_CALL = 12
    XDP_ADJUST_HEAD = 44
    REDIRECT_MAP = 51
    XDP_ADJUST_TAIL = 65


@dataclass(frozen=True)
class Reg:
    """One of the machine's eleven registers (not an int: a plain number is always a constant)."""

    index: int


R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = (Reg(index) for index in range(11))

Operand = Reg | int

_SIZE = {1: 0x10, 2: 0x08, 4: 0x00, 8: 0x18}
_ALU = {"add": 0x00, "sub": 0x10, "mul": 0x20, "div": 0x30, "or": 0x40, "and": 0x50}
_ALU |= {"lsh": 0x60, "rsh": 0x70, "mod": 0x90, "xor": 0xA0, "mov": 0xB0}
_JUMP = {"eq": 0x10, "gt": 0x20, "ge": 0x30, "ne": 0x50, "lt": 0xA0, "le": 0xB0}
_PSEUDO_MAP_FD, _PSEUDO_MAP_VALUE = 1, 2


def fits_signed32(value: int) -> bool:
    """Test whether a 32-bit immediate, sign-extended, gives this unsigned 64-bit value."""
    return value < 1 << 31 or value >= (1 << 64) - (1 << 31)


class Assembler:
    """Collects instructions; ``assemble`` resolves the labels and returns the bytes for BPF_PROG_LOAD."""

    def __init__(self) -> None:
        self._words: list[bytes] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []
        self._unique = 0

    def fresh_label(self, stem: str) -> str:
        """Return a label that is used nowhere else."""
        self._unique += 1
        return f"{stem}.{self._unique}"

    def label(self, name: str) -> None:
        if name in self._labels:
            raise ValueError(f"label {name} is defined twice")
        self._labels[name] = len(self._words)

    def _emit(self, opcode: int, dst: int = 0, src: int = 0, off: int = 0, imm: int = 0) -> None:
        self._words.append(struct.pack("<BBhI", opcode, src << 4 | dst, off, imm & 0xFFFFFFFF))

    def alu(self, op: str, dst: Reg, operand: Operand) -> None:
        """Emit ``dst = dst op operand``; constants beyond a signed 32-bit immediate must come in a register."""
        if isinstance(operand, Reg):
            self._emit(_ALU[op] | 0x0F, dst.index, operand.index)
        elif fits_signed32(operand & (1 << 64) - 1):
            self._emit(_ALU[op] | 0x07, dst.index, imm=operand)
        else:
            raise ValueError(f"{op}: {operand:#x} needs a register")

    def mov(self, dst: Reg, operand: Operand) -> None:
        """Emit ``dst = operand``, with the shortest encoding of a constant of up to 64 bits."""
        if isinstance(operand, Reg):
            self._emit(0xBF, dst.index, operand.index)
            return
        value = operand & (1 << 64) - 1
        if value < 1 << 32:
            self._emit(0xB4, dst.index, imm=value)
        elif fits_signed32(value):
            self._emit(0xB7, dst.index, imm=value)
        else:
            self._wide(dst, 0, value & 0xFFFFFFFF, value >> 32)

    def calc(self, dst: Reg, left: Operand, op: str, right: Operand) -> None:
        """Emit ``dst = left op right``."""
        self.mov(dst, left)
        self.alu(op, dst, right)

    def _wide(self, dst: Reg, kind: int, low: int, high: int) -> None:
        self._emit(0x18, dst.index, kind, imm=low)
        self._emit(0x00, imm=high)

    def map_fd(self, dst: Reg, fd: int) -> None:
        """Load the map itself, as helpers take it."""
        self._wide(dst, _PSEUDO_MAP_FD, fd, 0)

    def map_value(self, dst: Reg, fd: int, offset: int = 0) -> None:
        """Load the address of byte ``offset`` in the first value of an array map."""
        self._wide(dst, _PSEUDO_MAP_VALUE, fd, offset)

    def load(self, size: int, dst: Reg, base: Reg, off: int) -> None:
        self._emit(0x61 | _SIZE[size], dst.index, base.index, off)

    def store(self, size: int, base: Reg, off: int, operand: Operand) -> None:
        if isinstance(operand, Reg):
            self._emit(0x63 | _SIZE[size], base.index, operand.index, off)
        else:
            self._emit(0x62 | _SIZE[size], base.index, 0, off, operand)

    def change(self, op: str, base: Reg, off: int, operand: Operand, scratch: Reg = R1) -> None:
        """Apply an operation to the 64-bit word at ``base + off``; ``scratch`` then holds the new value, too."""
        self.load(8, scratch, base, off)
        self.alu(op, scratch, operand)
        self.store(8, base, off, scratch)

    def swap(self, dst: Reg, bits: int) -> None:
        """Swap the bytes of the low ``bits`` (16, 32 or 64) on a little-endian machine; the rest becomes zero."""
        self._emit(0xDC, dst.index, imm=bits)

    def jump(self, label: str) -> None:
        self._jumps.append((len(self._words), label))
        self._emit(0x05)

    def jump_if(self, op: str, left: Reg, right: Operand, label: str) -> None:
        """Jump if the comparison holds; it is unsigned, and a constant is sign-extended from 32 bits."""
        self._jumps.append((len(self._words), label))
        if isinstance(right, Reg):
            self._emit(_JUMP[op] | 0x0D, left.index, right.index)
        else:
            self._emit(_JUMP[op] | 0x05, left.index, imm=right)

    @contextmanager
    def unless(self, op: str, left: Reg, right: Operand) -> Iterator[None]:
        """Skip the code of the block if the comparison holds."""
        behind = self.fresh_label("behind")
        self.jump_if(op, left, right, behind)
        yield
        self.label(behind)

    def call(self, helper: Helper) -> None:
        self._emit(0x85, imm=int(helper))

    def bounds(self, start: Reg, end: Reg, context: Reg, need: int, otherwise: str) -> None:
        """Load the bounds of an XDP program's packet; jump if it is shorter than ``need``. Overwrites R4."""
        self.load(4, start, context, 0)
        self.load(4, end, context, 4)
        self.calc(R4, start, "add", need)
        self.jump_if("gt", R4, end, otherwise)

    def redirect(self, devices_fd: int, port: Operand) -> None:
        """Send the packet through an interface of the table, and end."""
        self.mov(R2, port)
        self.map_fd(R1, devices_fd)
        self.mov(R3, 0)
        self.call(Helper.REDIRECT_MAP)
        self.exit()

    def exit(self, code: int | None = None) -> None:
        """End the program with ``code``, or with R0."""
        if code is not None:
            self.mov(R0, code)
        self._emit(0x95)

    def assemble(self) -> bytes:
        words = list(self._words)
        for at, label in self._jumps:
            distance = self._labels[label] - at - 1
            if not -0x8000 <= distance <= 0x7FFF:
                raise ValueError(f"jump to {label} is {distance} instructions long; 32767 is the most")
            words[at] = words[at][:2] + struct.pack("<h", distance) + words[at][4:]
        return b"".join(words)
