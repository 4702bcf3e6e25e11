"""The assembler: what it encodes does what it says, on the tests' own machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bpf_vm import M64, Machine
from hypothesis import given
from hypothesis import strategies as st

from trexbench.stlserver.kernel.bpf_asm import R0, R1, Assembler


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
