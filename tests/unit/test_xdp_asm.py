"""The assembler: what it encodes does what it says, on the tests' own machine."""

from __future__ import annotations

import pytest
from bpf_vm import M64, Machine
from hypothesis import given
from hypothesis import strategies as st

from trexbench.stlserver.kernel.bpf_asm import R0, Assembler


@given(st.integers(0, M64))
def test_every_constant_survives_mov(value: int) -> None:
    asm = Assembler()
    asm.exit(value)
    assert Machine(asm.assemble(), {}).run() == value


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
