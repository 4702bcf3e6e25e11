"""Frames of a stream, made ahead by the field engine's model for the sending program to repeat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from ...core.errors import ConfigError
from ...core.load.fieldengine import Program
from ..engine import StreamSpec

MOST_FRAMES, MOST_DRAWN = 1 << 16, 1 << 14
"""Frames of a stream that can be kept, and number of random ones before they repeat: more would delay its start."""
SHORTEST_FRAME = 60
_UNLIMITED = 1  # flag of tuples whose clients never run out of ports


@dataclass(frozen=True)
class Frames:
    """Frames without FCS, in the order of their sending."""

    spec: StreamSpec
    packet: bytes  # template that the field engine changes from frame to frame
    seed: int
    count: int
    cut: bool  # the frames differ in length
    changed: frozenset[int]  # offsets of the bytes in which some frame differs from the packet

    def __iter__(self) -> Iterator[bytes]:
        return islice(Program(self.spec.instructions, self.seed).run(self.packet), self.count)

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """Offset and size (8, 4, 2 or 1 bytes) of what is copied into each frame: exactly the bytes that change."""
        pieces, at = [], 0
        while at < len(self.packet):
            size = next((size for size in (8, 4, 2, 1) if self.changed.issuperset(range(at, at + size))), 0)
            if size:
                pieces.append((at, size))
            at += size or 1
        return pieces

    @property
    def row_bytes(self) -> int:
        """Size of a frame's row: its length if that varies, and its pieces."""
        return 2 * self.cut + len(self.changed)

    def rows(self) -> bytes:
        """Return the rows of all frames; empty if all equal the packet."""
        pieces, rows = self.pieces, bytearray()
        for frame in self if self.row_bytes else ():
            rows += len(frame).to_bytes(2, "little") if self.cut else b""
            whole = frame + self.packet[len(frame) :]
            for at, size in pieces:
                rows += whole[at : at + size]
        return bytes(rows)


def make_frames(spec: StreamSpec, packet: bytes, seed: int) -> Frames:
    """Run the stream's program over this packet; EngineError for what cannot be sent as TRex sends it."""
    packet, differing = packet.ljust(SHORTEST_FRAME, b"\0"), 0
    template = int.from_bytes(packet, "little")
    try:
        program = Program(spec.instructions)
        count, cut = _count_frames(spec, program), _varies_length(spec, program, len(packet))
        frames = Frames(spec, packet, seed, count, cut, frozenset())
        for frame in frames:
            differing |= int.from_bytes(frame, "little") ^ template & (1 << 8 * len(frame)) - 1
    except ConfigError as error:
        raise spec.refusal(str(error)) from error
    changed = (at for at, byte in enumerate(differing.to_bytes(len(packet), "little")) if byte)
    return replace(frames, changed=frozenset(changed))


def _count_frames(spec: StreamSpec, program: Program) -> int:
    """Count the frames before the stream repeats; TRex's ``cache`` restarts the field engine after that many."""
    tuples = (instruction for instruction in spec.instructions if instruction.get("type") == "tuple_flow_var")
    if any(instruction.get("flags", 0) & _UNLIMITED for instruction in tuples):
        raise ConfigError("field engine: tuples without limit", "use TRex")
    period = program.period
    if (spec.vm_cache or period) > MOST_FRAMES:
        remedy = "use TRex, smaller ranges, or limit_flows"
        raise ConfigError(f"field engine: {period} different packets, and {MOST_FRAMES} can be repeated", remedy)
    if spec.vm_cache or not program.draws:
        return spec.vm_cache or period
    return max(1, MOST_DRAWN // period) * period


def _varies_length(spec: StreamSpec, program: Program, size: int) -> bool:
    names = [instruction["name"] for instruction in spec.instructions if instruction.get("type") == "trim_pkt_size"]
    for variable in (program.variables[name] for name in names):
        if not SHORTEST_FRAME <= variable.low <= variable.high <= size:
            text = f"field engine: frames of {variable.low} to {variable.high} bytes (trim_pkt_size)"
            raise ConfigError(text, f"these have {SHORTEST_FRAME} to {size}")
    return bool(names)
