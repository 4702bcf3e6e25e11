"""Timed frames: the sending program stamps them, the receiving one books their latencies.

A latency stream's frame ends with 16 bytes in the machine's byte order: magic number (2 bytes), its counter's slot (1),
that slot's generation (1), the frame's number in its stream from 1 (4), CLOCK_MONOTONIC in nanoseconds (8). Its IPv4
ID, or IPv6 flow label, is 0xffff, as in TRex: the receiver looks for no time in other frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from .. import packet_parts
from ..engine import BUCKETS_US, FCS_BYTES, StreamSpec
from .bpf_asm import R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, Assembler, Helper, Reg
from .frames import Frames
from .xdp_count import U16, count, found_by, refuse_writes, require_found, with_id
from .xdp_layout import XDP_DROP, ReceivedWord

SLOTS = 128
TRAILER_BYTES = 16
MAGIC = 0xB17E
IP_ID = 0xFFFF
LONGEST_NS = 1 << 34  # 17 s: a frame that seems to have taken longer is not a timed one
_ACTIVE = 0x100
_LINE_SHIFT = 9
_LOWEST_NS = 10_000


class LatencyWord(IntEnum):
    """Words of a line, one for each slot and CPU, in the map of a receiving port."""

    RECEIVED = 0
    BYTES = 1
    SUM = 2
    LEAST_INVERTED = 3
    MOST = 4
    BEHIND_OR_TWICE = 5  # lower half: came after a later one; upper half: the same number as the one before
    HIGHEST = 6
    LAST = 7
    JITTER_16 = 8
    BUCKETS = 9
    WORDS = 64


@dataclass(frozen=True)
class Mark:
    """Mark that tells a latency stream's frames from all others."""

    slot: int
    generation: int

    @property
    def word(self) -> int:
        """First four bytes of the trailer."""
        return MAGIC | self.slot << 16 | self.generation << 24

    @property
    def control(self) -> int:
        """Word of the slot in the map while this mark holds; it is zero while none does."""
        return _ACTIVE | self.generation


def map_bytes(cpus: int) -> int:
    """Size of a receiving port's map: control words by slot, then lines by slot and CPU."""
    return 8 * (SLOTS + SLOTS * cpus * LatencyWord.WORDS)


def lines_of(slot: int, cpus: int) -> range:
    """First words of a slot's lines, one for each CPU."""
    first = SLOTS + slot * cpus * LatencyWord.WORDS
    return range(first, first + cpus * LatencyWord.WORDS, LatencyWord.WORDS)


def timed_packet(spec: StreamSpec) -> bytes:
    """Set the timed frames' IP ID, and remove the UDP checksum, which the time would make wrong.

    The server has checked that there is room for the time; EngineError if a router would cut it off.
    """
    packet, parts = spec.packet, packet_parts.find(spec.packet)
    require_found(spec, parts, "timed")
    end = parts.ip_end(packet)
    if end != len(packet):
        raise spec.refusal(
            f"its IP packet ends after {end} bytes of a frame of {len(packet)}; routers cut frames there, and "
            "their last 16 bytes carry the time: make both equally long"
        )
    marked = bytearray(with_id(packet, parts, IP_ID))
    if parts.protocol == packet_parts.UDP:
        marked[parts.layer4 + 6 : parts.layer4 + 8] = bytes(2)
    return bytes(marked)


def check_timed(frames: Frames) -> None:
    """Refuse a field engine program that writes bytes by which the receiver recognises a timed frame."""
    if frames.cut:
        raise frames.spec.refusal("frames that change their size (trim_pkt_size) are not timed")
    parts, size = packet_parts.find(frames.packet), len(frames.packet)
    at = parts.ip
    length = (at + 2, at + 3) if parts.version == 4 else (at + 4, at + 5)
    refuse_writes(frames, {at, *length, *found_by(parts), *range(size - TRAILER_BYTES, size)}, "timed")


def stamp(asm: Assembler, frames: Frames, mark: Mark, sent_at: int) -> None:
    """Write the trailer of the packet in R7; sent_at: offset from R9 of the count of frames, this one included."""
    end, parts = len(frames.packet), packet_parts.find(frames.packet)
    at = parts.layer4 if parts.protocol == packet_parts.UDP else None
    if at is not None and not frames.changed.isdisjoint((at + 6, at + 7)):
        asm.store(2, R7, at + 6, 0)
    asm.mov(R1, mark.word)
    asm.store(4, R7, end - 16, R1)
    asm.load(8, R1, R9, sent_at)
    asm.store(4, R7, end - 12, R1)
    asm.call(Helper.KTIME_GET_NS)
    asm.store(8, R7, end - 8, R0)


def receiver(counters_fd: int, timed_fd: int, flows_fd: int, cpus: int) -> bytes:
    """Assemble the program that drops every frame, counts unicast and marked ones, and books timed ones.

    A router's ARP, IPv6 neighbour discovery and the like are no test traffic and are not counted. The host's own
    stack sees nothing of the port, as with TRex. Each CPU has a cache line of its own, so that no atomic operation is
    needed. cpus: a power of two.
    """
    asm = Assembler()
    asm.bounds(R2, R3, R1, 14, "dropped")
    asm.load(1, R7, R2, 0)
    asm.alu("and", R7, 1)
    asm.calc(R6, R3, "sub", R2)
    asm.alu("add", R6, FCS_BYTES)
    count(asm, flows_fd, cpus)
    receive(asm, timed_fd, cpus)
    asm.label("counted")
    asm.call(Helper.GET_SMP_PROCESSOR_ID)
    asm.alu("and", R0, cpus - 1)
    asm.alu("lsh", R0, 6)
    asm.map_value(R1, counters_fd)
    asm.alu("add", R1, R0)
    asm.jump_if("ne", R7, 0, "dropped")
    for word, step in ((ReceivedWord.PACKETS, 1), (ReceivedWord.BYTES, R6)):
        asm.change("add", R1, 8 * word, step, R2)
    asm.label("dropped")
    asm.exit(XDP_DROP)
    return asm.assemble()


def receive(asm: Assembler, timed_fd: int, cpus: int) -> None:
    """Book a timed frame on its line, and no other frame; ``count`` has let pass only those with the right IP ID.

    R2 holds the packet, R3 its end, R6 its length with FCS. Leaves R6 and R7 unchanged, and no other register.
    """
    asm.calc(R5, R6, "sub", 4 + TRAILER_BYTES)
    asm.alu("and", R5, 0x3FFF)
    asm.alu("add", R2, R5)
    asm.calc(R4, R2, "add", TRAILER_BYTES)
    asm.jump_if("gt", R4, R3, "untimed")
    _recognise(asm, timed_fd)
    # R9 becomes the address of its slot's line for this CPU
    asm.call(Helper.GET_SMP_PROCESSOR_ID)
    asm.alu("and", R0, cpus - 1)
    asm.alu("lsh", R9, cpus.bit_length() - 1)
    asm.alu("add", R9, R0)
    asm.alu("lsh", R9, _LINE_SHIFT)
    asm.map_value(R1, timed_fd, 8 * SLOTS)
    asm.alu("add", R1, R9)
    asm.mov(R9, R1)
    _book(asm)
    asm.label("untimed")


def _recognise(asm: Assembler, timed_fd: int) -> None:
    """Check the trailer at R2: R8 = the frame's latency, R9 = its slot, its number goes onto the stack."""
    asm.load(4, R9, R2, 0)
    asm.load(4, R4, R2, 4)
    asm.load(8, R8, R2, 8)
    asm.store(8, R10, -8, R4)
    asm.calc(R4, R9, "and", U16)
    asm.jump_if("ne", R4, MAGIC, "untimed")
    asm.calc(R4, R9, "rsh", 24)
    asm.alu("or", R4, _ACTIVE)
    asm.alu("rsh", R9, 16)
    asm.alu("and", R9, 0xFF)
    asm.jump_if("ge", R9, SLOTS, "untimed")
    asm.calc(R5, R9, "lsh", 3)
    asm.map_value(R1, timed_fd)
    asm.alu("add", R1, R5)
    asm.load(8, R5, R1, 0)
    asm.jump_if("ne", R4, R5, "untimed")
    asm.call(Helper.KTIME_GET_NS)
    asm.alu("sub", R0, R8)
    asm.mov(R8, R0)
    asm.mov(R4, LONGEST_NS)
    asm.jump_if("gt", R8, R4, "untimed")


def _book(asm: Assembler) -> None:
    """Add a frame of latency R8 to the line at R9; counted last, so that a reader finds all of a counted frame."""
    asm.load(8, R5, R9, 8 * LatencyWord.RECEIVED)
    asm.jump_if("eq", R5, 0, "first")
    _jitter(asm)
    asm.label("first")
    asm.store(8, R9, 8 * LatencyWord.LAST, R8)
    _add(asm, LatencyWord.BYTES, R6)
    _add(asm, LatencyWord.SUM, R8)
    asm.calc(R2, -1, "sub", R8)
    _raise_to(asm, LatencyWord.LEAST_INVERTED, R2)
    _raise_to(asm, LatencyWord.MOST, R8)
    asm.load(8, R2, R10, -8)
    asm.load(8, R1, R9, 8 * LatencyWord.HIGHEST)
    asm.jump_if("gt", R2, R1, "in_order")
    asm.mov(R3, 1)
    asm.jump_if("ne", R2, R1, "behind")
    asm.alu("lsh", R3, 32)
    asm.label("behind")
    _add(asm, LatencyWord.BEHIND_OR_TWICE, R3)
    asm.mov(R2, 0)
    asm.label("in_order")
    _raise_to(asm, LatencyWord.HIGHEST, R2)
    _bucket(asm)
    _add(asm, LatencyWord.RECEIVED, 1)


def _add(asm: Assembler, word: LatencyWord, step: Reg | int) -> None:
    asm.change("add", R9, 8 * word, step)


def _raise_to(asm: Assembler, word: LatencyWord, reg: Reg) -> None:
    """Set the word to the register's value if that is greater."""
    asm.load(8, R1, R9, 8 * word)
    with asm.unless("le", reg, R1):
        asm.store(8, R9, 8 * word, reg)


def _jitter(asm: Assembler) -> None:
    """Smooth the jitter: 16 J += |D| - J, as in RFC 3550, A.8."""
    asm.load(8, R1, R9, 8 * LatencyWord.LAST)
    asm.calc(R2, R8, "sub", R1)
    with asm.unless("ge", R8, R1):
        asm.alu("sub", R1, R8)
        asm.mov(R2, R1)
    asm.load(8, R1, R9, 8 * LatencyWord.JITTER_16)
    asm.alu("add", R2, R1)
    asm.alu("rsh", R1, 4)
    asm.alu("sub", R2, R1)
    asm.store(8, R9, 8 * LatencyWord.JITTER_16, R2)


def _bucket(asm: Assembler) -> None:
    """Count the frame in the bucket of R8, found by its first digit (R2) and nine times its decade (R3)."""
    decades = (len(BUCKETS_US) - 1) // 9
    asm.calc(R2, R8, "div", _LOWEST_NS)
    asm.mov(R3, 0)
    for _ in range(decades - 1):
        asm.jump_if("lt", R2, 10, "digit")
        asm.alu("div", R2, 10)
        asm.alu("add", R3, 9)
    asm.jump_if("lt", R2, 10, "digit")
    asm.mov(R2, 9)
    asm.label("digit")
    asm.alu("add", R2, R3)
    asm.alu("and", R2, LatencyWord.WORDS - 1)
    asm.alu("lsh", R2, 3)
    asm.calc(R1, R9, "add", R2)
    asm.change("add", R1, 8 * LatencyWord.BUCKETS, 1, R2)


def buckets(words: list[int]) -> Iterator[tuple[int, int]]:
    """Yield lower bound in microseconds and count of each bucket of a line that is not empty."""
    counts = words[LatencyWord.BUCKETS : LatencyWord.BUCKETS + len(BUCKETS_US)]
    return ((bound, count) for bound, count in zip(BUCKETS_US, counts, strict=True) if count)
