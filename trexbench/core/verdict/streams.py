"""Which of a direction's streams loses frames, first and how much: in a mix of sizes, which size.

A small router's queue is full of frames, a shaper's or a bus's of bytes; the sizes' shares of the loss tell the two
apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..load.plan import Direction
from ..load.windows import MEASURED_PHASES, RunWindows, Window, count_streams, find_spans, find_unmarked
from .knee import find_sustained
from .model import DirectionResult, RunWarning


@dataclass(frozen=True)
class StreamLoss:
    """One stream of a direction. number: its place in the profile, from 0; frame_bytes: with FCS.

    sent, received, loss: of ramp and hold together, as the verdict counts them. knee_loss: the share lost in the first
    windows of the direction's sustained loss (Plan.windows of them); None without that. lossy_from_pps: the rate
    offered in this direction, all streams together, in the first window of the stream's own sustained loss.
    """

    number: int
    frame_bytes: int
    sent: int
    received: int
    loss: float | None
    knee_loss: float | None
    lossy_from_pps: float | None


class _Part(NamedTuple):
    """A window of the direction, and one stream's frames in it, without those on their way."""

    window: Window
    sent: int
    received: int

    @property
    def lost(self) -> float:
        return self.sent - self.received - self.window.pending * self.sent / self.window.sent


def find_stream_losses(measured: RunWindows, result: DirectionResult, sizes: Sequence[int]) -> tuple[StreamLoss, ...]:
    """Every stream of the direction, in the profile's order; () where they were not counted in every window.

    sizes: of the streams' frames.
    """
    plan, samples, direction = measured.plan, measured.samples, result.direction
    spans = list(find_spans(plan, samples, direction, MEASURED_PHASES))[plan.settling_windows :]
    counts = [count_streams(direction, samples[first], samples[last]) for first, last in spans]
    paired = zip(measured.judged(direction), counts, strict=True)
    known = [(window, one) for window, one in paired if one is not None and window.sent]
    if not known or None in counts or len(known[0][1].sent) != len(sizes):
        return ()
    found = []
    for number, size in enumerate(sizes):
        parts = [_Part(window, one.sent[number], one.received[number]) for window, one in known]
        first = find_sustained([one.lost > plan.loss_threshold * one.sent for one in parts], plan.windows)
        begin_s = result.saturated_at_s
        knee = [] if begin_s is None else [one for one in parts if one.window.begin_s >= begin_s][: plan.windows]
        loss = StreamLoss(
            number=number,
            frame_bytes=size,
            sent=sum(one.sent for one in parts),
            received=sum(one.received for one in parts),
            loss=_share(parts),
            knee_loss=_share(knee),
            lossy_from_pps=None if first is None else parts[first].window.sent_pps,
        )
        found.append(loss)
    return tuple(found)


def _share(parts: Sequence[_Part]) -> float | None:
    sent = sum(one.sent for one in parts)
    return sum(one.sent - one.received for one in parts) / sent if sent else None


def stream_names(streams: Sequence[StreamLoss]) -> tuple[str, ...]:
    """``64 B``; streams of one size have their number, from 1, behind it."""
    sizes = [one.frame_bytes for one in streams]
    return tuple(
        f"{one.frame_bytes} B" + (f" ({one.number + 1})" if sizes.count(one.frame_bytes) > 1 else "") for one in streams
    )


def lost_first(streams: Sequence[StreamLoss]) -> tuple[StreamLoss, ...]:
    """Return the streams whose own loss set in at the lowest rate; () where no stream's loss lasted."""
    rates = [one.lossy_from_pps for one in streams if one.lossy_from_pps is not None]
    return tuple(one for one in streams if one.lossy_from_pps == min(rates)) if rates else ()


def find_stream_warnings(measured: RunWindows, directions: Sequence[Direction]) -> Iterator[RunWarning]:
    """Directions whose frames came back, but not with the marks by which their streams are known."""
    for direction in directions:
        counted = [one for one in measured.samples if direction.tx in one.reading.streams]
        if not counted or not find_unmarked(direction, counted[-1]):
            continue
        first, last = (measured.samples[at].reading.ports[direction.rx].ipackets for at in (0, -1))
        if last > first:
            text = "frames came back without the IP ID that they were sent with: loss per stream is unknown"
            yield RunWarning("unmarked", f"{direction}: {text}")
