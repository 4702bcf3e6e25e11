"""Parts of the sending program that concern one frame. Registers: R6 context, R9 the current port's state."""

from __future__ import annotations

from .bpf_asm import R0, R1, R2, R6, R9, Assembler, Helper
from .xdp_layout import StreamWord
from .xdp_plan import StreamPlan


def restart_program(asm: Assembler, stream: StreamPlan) -> None:
    """TRex's ``cache``: the field engine starts over after so many packets."""
    asm.change("sub", R9, stream.at(StreamWord.CACHE_LEFT), 1)
    with asm.unless("ne", R1, 0):
        asm.store(8, R9, stream.at(StreamWord.CACHE_LEFT), stream.spec.vm_cache)
        for word, value in enumerate(stream.program.words):
            asm.mov(R1, value)
            asm.store(8, R9, stream.at(StreamWord.VARIABLES) + 8 * word, R1)


def resize(asm: Assembler, stream: StreamPlan, frame_size: int, refused: str) -> None:
    """Cut the frame from ``frame_size`` to its length; done last, since it invalidates R7 for the verifier."""
    if stream.program.size_word >= 0:
        asm.load(8, R2, R9, stream.at(StreamWord.VARIABLES) + 8 * stream.program.size_word)
        asm.change("add", R9, stream.at(StreamWord.BYTES), R2)
        asm.alu("sub", R2, frame_size)
    elif len(stream.program.packet) == frame_size:
        return
    else:
        asm.mov(R2, len(stream.program.packet) - frame_size)
    asm.mov(R1, R6)
    asm.call(Helper.XDP_ADJUST_TAIL)
    asm.jump_if("ne", R0, 0, refused)
