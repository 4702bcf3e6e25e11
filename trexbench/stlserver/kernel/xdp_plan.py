"""Streams of a port, checked and given their places in the port's shared memory."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..engine import MAX_STREAMS, EngineError, StreamSpec
from .frames import Frames, make_frames
from .xdp_count import check_marked, marked_packet
from .xdp_latency import Mark, check_timed, timed_packet
from .xdp_layout import PortWord, StreamWord

PORT_FRAMES_MAX = 1 << 17
"""Frames of all streams of a port that are made ahead: more would take longer than a client waits for a start."""


@dataclass(frozen=True)
class StreamPlan:
    """One stream, ready to be assembled."""

    spec: StreamSpec
    frames: Frames
    base: int  # its first word in the port's map
    rows_at: int  # offset of its rows among the port's
    next_slot: int  # number of the stream that follows it, -1: none
    mark: Mark | None = None  # of a latency stream's frames

    @property
    def bursts(self) -> bool:
        return self.spec.mode != "continuous"

    def word(self, slot: StreamWord) -> int:
        return self.base + int(slot)

    def at(self, slot: StreamWord) -> int:
        return 8 * self.word(slot)

    @property
    def end(self) -> int:
        return self.base + len(StreamWord)


@dataclass(frozen=True)
class PortPlan:
    """All streams of a port."""

    port: int
    streams: tuple[StreamPlan, ...]
    limited: bool = False  # the program must respect LIMIT_INTERVAL
    skb: bool = False  # frames go through the stack: the driver takes no XDP frames

    @property
    def frame_size(self) -> int:
        """Length of the longest frame without FCS."""
        return max(len(stream.frames.packet) for stream in self.streams)

    def rows(self) -> bytes:
        """Return the rows of all streams."""
        return b"".join(stream.frames.rows() for stream in self.streams)


def plan_port(
    port: int,
    specs: Sequence[StreamSpec],
    *,
    limited: bool = False,
    skb: bool = False,
    seed: int | None = None,
    marks: Mapping[int, Mark] | None = None,
) -> PortPlan:
    """Check and place the streams of a port; raises EngineError.

    seed: for ``random`` variables; None draws one. marks: of the latency streams' frames, by pg_id; a plan without them
    is for checking only.
    """
    slots = {spec.stream_id: number for number, spec in enumerate(specs)}
    plans: list[StreamPlan] = []
    base, rows_at = int(PortWord.STREAMS), 0
    for spec in specs:
        timed = spec.pg_id is not None
        packet = timed_packet(spec) if timed else marked_packet(spec)
        frames = make_frames(spec, packet, seed if seed is not None else secrets.randbits(32))
        if timed:
            check_timed(frames)
        elif spec.mark is not None:
            check_marked(frames)
        mark = None if spec.pg_id is None else (marks or {}).get(spec.pg_id)
        plans.append(StreamPlan(spec, frames, base, rows_at, slots.get(spec.next_stream_id, -1), mark))
        base, rows_at = plans[-1].end, rows_at + frames.row_bytes * frames.count
    if len(specs) > MAX_STREAMS:
        raise EngineError(f"{len(specs)} streams, {MAX_STREAMS} fit a port; use fewer streams")
    different = sum(plan.frames.count for plan in plans)
    if different > PORT_FRAMES_MAX:
        text = f"{len(specs)} streams send {different} different packets, {PORT_FRAMES_MAX} fit a port"
        raise EngineError(f"{text}; use smaller ranges, limit_flows or cache, or TRex")
    return PortPlan(port, tuple(plans), limited, skb)


def bursts_of(spec: StreamSpec) -> int:
    return 1 if spec.mode == "single_burst" else spec.count
