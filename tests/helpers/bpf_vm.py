"""A small eBPF machine for the tests of generated code.

Only what the assembler emits: it lets programs run without root, on a clock that the test holds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from trexbench.stlserver.kernel.bpf_asm import Helper

M64 = (1 << 64) - 1
STACK, CONTEXT, PACKET, MAPS = 0x10000, 0x20000, 0x30000, 0x1000000
MAP_STRIDE = 0x100000
HEADROOM = 8


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 & 1 else value


class Machine:
    """Memory, helpers and the interpreter. maps: descriptor -> bytes of its only value."""

    def __init__(self, code: bytes, maps: dict[int, bytearray], frame_size: int = 60) -> None:
        self.code = [struct.unpack_from("<BBhi", code, at) for at in range(0, len(code), 8)]
        self.maps = maps
        self.packet = bytearray(b"\xee" * frame_size)
        self.clock_ns = 0
        self.size = frame_size
        self.redirected = 0
        self.regions = {STACK: bytearray(512), CONTEXT: bytearray(24), PACKET: self.packet}
        self.regions[PACKET - HEADROOM] = self.head = bytearray(HEADROOM)
        self.regions.update({MAPS + fd * MAP_STRIDE: memory for fd, memory in maps.items()})

    def _find(self, address: int, size: int) -> tuple[bytearray, int]:
        for base, memory in self.regions.items():
            if base <= address and address + size <= base + len(memory):
                return memory, address - base
        raise AssertionError(f"access to {address:#x}, {size} bytes: outside all memory")

    def read(self, address: int, size: int) -> int:
        memory, at = self._find(address, size)
        return int.from_bytes(memory[at : at + size], "little")

    def write(self, address: int, size: int, value: int) -> None:
        memory, at = self._find(address, size)
        memory[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def _call(self, helper: int, regs: list[int]) -> None:
        if helper == Helper.KTIME_GET_NS:
            regs[0] = self.clock_ns
        elif helper == Helper.REDIRECT_MAP:
            self.redirected, regs[0] = regs[2], 4
        elif helper == Helper.XDP_ADJUST_HEAD:
            at = self.read(CONTEXT, 4) + signed(regs[2] & 0xFFFFFFFF, 32)
            self.write(CONTEXT, 4, at)
            regs[0] = 0
        elif helper == Helper.XDP_ADJUST_TAIL:
            self.size = len(self.packet) + signed(regs[2] & 0xFFFFFFFF, 32)
            regs[0] = 0 if 14 <= self.size <= len(self.packet) else M64
        elif helper == Helper.GET_SMP_PROCESSOR_ID:
            regs[0] = 0
        else:
            raise AssertionError(f"helper {helper}")
        regs[1:6] = [0xDEAD] * 5

    def run(self) -> int:
        """Execute to the exit; gives R0."""
        regs = [0, CONTEXT] + [0xDEAD] * 8 + [STACK + 512]
        self.size, self.redirected = len(self.packet), 0
        self.write(CONTEXT, 4, PACKET)
        self.write(CONTEXT + 4, 4, PACKET + len(self.packet))
        at = 0
        for _ in range(100_000):
            opcode, pair, off, imm = self.code[at]
            at += 1
            if opcode == 0x95:
                return regs[0]
            if opcode == 0x18:
                high = self.code[at][3]
                at += 1
                value = (imm & 0xFFFFFFFF) | (high & 0xFFFFFFFF) << 32
                regs[pair & 15] = MAPS + imm * MAP_STRIDE + high if pair >> 4 == 2 else value
            elif opcode == 0x85:
                self._call(imm, regs)
            else:
                at += self._step(opcode, pair & 15, pair >> 4, off, imm, regs)
        raise AssertionError("the program does not end")

    def _step(self, opcode: int, dst: int, src: int, off: int, imm: int, regs: list[int]) -> int:
        kind, size = opcode & 7, {0: 4, 8: 2, 16: 1, 24: 8}[opcode & 0x18]
        if kind == 1:
            regs[dst] = self.read(regs[src] + off, size)
        elif kind in (2, 3):
            self.write(regs[dst] + off, size, imm if kind == 2 else regs[src])
        elif kind in (4, 7):
            bits = 64 if kind == 7 else 32
            if opcode == 0xDC:
                regs[dst] = int.from_bytes((regs[dst] & (1 << imm) - 1).to_bytes(imm // 8, "little"), "big")
            else:
                regs[dst] = self._alu(opcode >> 4, bits, regs[dst], regs[src] if opcode & 8 else imm)
        else:
            right = regs[src] if opcode & 8 else imm & M64
            tests: dict[int, Callable[[int, int], bool]] = {
                0: lambda left, right: True,
                1: int.__eq__,
                2: int.__gt__,
                3: int.__ge__,
                5: int.__ne__,
                10: int.__lt__,
                11: int.__le__,
            }
            return off if tests[opcode >> 4](regs[dst], right) else 0
        return 0

    @staticmethod
    def _alu(op: int, bits: int, left: int, right: int) -> int:
        full = (1 << bits) - 1
        left, right = left & full, right & full
        results: dict[int, Callable[[], int]] = {
            0: lambda: left + right,
            1: lambda: left - right,
            2: lambda: left * right,
            3: lambda: left // right if right else 0,
            4: lambda: left | right,
            5: lambda: left & right,
            6: lambda: left << (right & bits - 1),
            7: lambda: left >> (right & bits - 1),
            9: lambda: left % right if right else left,
            10: lambda: left ^ right,
            11: lambda: right,
        }
        return results[op]() & full
