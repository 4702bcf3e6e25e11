"""TRex's field engine programs as field_build makes them and field_code turns them into BPF.

Semantics are those of TRex v3.08 on one core (src/stx/stl/trex_stl_stream_vm.*): variables begin one step before
their initial value, instructions run in their order for every packet on a fresh copy of it, random numbers come
from its linear congruential generator. What TRex would do only by overflow is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST_FRAME = 60
U16, U32 = 0xFFFF, 0xFFFFFFFF
UNLIMITED_FIRST_PORT = 1025


@dataclass(frozen=True)
class VariablePlace:
    """Where a value lives: word number in the stream's state, and its width in bytes."""

    word: int
    size: int


@dataclass(frozen=True)
class FlowVar:
    """inc, dec or random over [minimum, maximum], or over the indices of ``values``.

    skip: how many instructions after this one run only when it wraps (its ``next_var`` chain).
    """

    variable: VariablePlace
    op: str
    minimum: int
    maximum: int
    step: int
    values: tuple[int, ...] = ()
    skip: int = 0

    @property
    def index_word(self) -> int:
        """Where the position in ``values`` lives."""
        return self.variable.word + 1


@dataclass(frozen=True)
class RandLimit:
    """A random sequence that repeats after ``limit`` packets; words: value, count, seed."""

    variable: VariablePlace
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
class PlacedWrite:
    variable: VariablePlace
    offset: int
    add: int
    big_endian: bool


@dataclass(frozen=True)
class WriteMask:
    """``size`` bytes at ``offset`` take the bits of ``mask`` from the shifted variable; ``high``: its upper half."""

    variable: VariablePlace
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


Instruction = FlowVar | RandLimit | TupleVar | PlacedWrite | WriteMask | Checksum


@dataclass(frozen=True)
class FieldProgram:
    """A checked program for one packet.

    packet: padded to 60 bytes. words: initial state, one 64-bit word each; seed_word: which of them seeds ``random``,
    size_word: which of them sets the frame's length (-1: none does). touched: every byte that some instruction may
    change.
    """

    packet: bytes
    instructions: tuple[Instruction, ...]
    words: tuple[int, ...]
    seed_word: int
    size_word: int
    touched: frozenset[int]


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
