"""The assembler: what it encodes does what it says, on the tests' own machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bpf_vm import M64, Machine
from hypothesis import given
from hypothesis import strategies as st

from trexbench.stlserver.kernel.bpf_asm import R0, R1, R2, R3, R9, R10, Assembler


def compute(emit: Callable[[Assembler], None]) -> int:
    asm = Assembler()
    emit(asm)
    asm.exit()
    return Machine(asm.assemble(), {}).run()


@given(st.integers(0, M64))
def test_every_constant_survives_mov(value: int) -> None:
    assert compute(lambda asm: asm.mov(R0, value)) == value


@given(st.integers(0, M64), st.integers(0, M64))
def test_arithmetic_wraps_at_64_bits(left: int, right: int) -> None:
    for op, wanted in (("add", left + right), ("sub", left - right), ("mul", left * right)):

        def emit(asm: Assembler, op: str = op) -> None:
            asm.mov(R0, left)
            asm.mov(R1, right)
            asm.alu(op, R0, R1)

        assert compute(emit) == wanted & M64


def test_memory_keeps_widths_and_order() -> None:
    asm = Assembler()
    asm.map_value(R9, 3, 8)
    asm.store(4, R9, 0, 0x01020304)
    asm.load(2, R2, R9, 2)
    asm.swap(R2, 16)
    asm.store(8, R10, -8, R2)
    asm.load(1, R3, R10, -8)
    asm.mov(R0, R3)
    asm.exit()
    memory = bytearray(16)
    assert Machine(asm.assemble(), {3: memory}).run() == 0x01
    assert memory[8:12] == b"\x04\x03\x02\x01"


def test_what_cannot_be_encoded_is_refused() -> None:
    asm = Assembler()
    with pytest.raises(ValueError, match="needs a register"):
        asm.alu("add", R0, 1 << 40)
    asm.label("twice")
    with pytest.raises(ValueError, match="defined twice"):
        asm.label("twice")
    asm.jump("far")
    for _ in range(0x8000):
        asm.mov(R0, 0)
    asm.label("far")
    with pytest.raises(ValueError, match="instructions long"):
        asm.assemble()
