"""Loss of each of a direction's streams: how much, and which loses first; in a mix of sizes, which size.

A small router's queue is limited in frames, a shaper's or a bus's in bytes; the sizes' shares of the loss tell the two
apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..load.plan import Direction
from ..load.windows import MEASURED_PHASES, RunWindows, count_streams, find_spans, find_unmarked
from .knee import find_sustained
from .parts import DirectionResult, RunWarning


@dataclass(frozen=True)
class StreamLoss:
    """One stream of a direction, in ramp and hold together, as the verdict counts them."""

    number: int  # its place in the profile, from 0
    frame_bytes: int  # with FCS
    sent: int  # frames, in ramp and hold
    received: int  # frames of these
    loss: float | None  # share of those sent
    knee_loss: float | None  # share in the first windows (plan.windows) of the direction's sustained loss; None: none
    lossy_from_pps: float | None  # the direction's offered rate where the stream's own sustained loss begins


def find_stream_losses(measured: RunWindows, result: DirectionResult, sizes: Sequence[int]) -> tuple[StreamLoss, ...]:
    """Losses of the streams with these frame sizes, in the profile's order; () where a window did not count them."""
    plan, samples, direction = measured.plan, measured.samples, result.direction
    spans = list(find_spans(plan, samples, direction, MEASURED_PHASES))[plan.settling_windows :]
    counts = [count_streams(direction, samples[first], samples[last]) for first, last in spans]
    paired = zip(measured.judged(direction), counts, strict=True)
    known = [(window, count) for window, count in paired if count is not None and window.sent]
    if not known or None in counts or len(known[0][1].sent) != len(sizes):
        return ()
    windows, begin_s = [window for window, _ in known], result.saturated_at_s
    knee_from = next((i for i, w in enumerate(windows) if begin_s is not None and w.begin_s >= begin_s), len(windows))
    losses = []
    for number, size in enumerate(sizes):
        frames = [(count.sent[number], count.received[number]) for _, count in known]
        # Frames on their way are not lost: each stream has its share of them.
        lossy = [
            sent - received - window.pending * sent / window.sent > plan.loss_threshold * sent
            for window, (sent, received) in zip(windows, frames, strict=True)
        ]
        first = find_sustained(lossy, plan.windows)
        loss = StreamLoss(
            number=number,
            frame_bytes=size,
            sent=sum(sent for sent, _ in frames),
            received=sum(received for _, received in frames),
            loss=_lost_share(frames),
            knee_loss=_lost_share(frames[knee_from : knee_from + plan.windows]),
            lossy_from_pps=None if first is None else windows[first].sent_pps,
        )
        losses.append(loss)
    return tuple(losses)


def _lost_share(frames: Sequence[tuple[int, int]]) -> float | None:
    sent = sum(sent for sent, _ in frames)
    return sum(sent - received for sent, received in frames) / sent if sent else None


def stream_names(streams: Sequence[StreamLoss]) -> tuple[str, ...]:
    """Names such as ``64 B``; streams of one size have their number, from 1, behind it."""
    sizes = [stream.frame_bytes for stream in streams]
    return tuple(
        f"{stream.frame_bytes} B" + (f" ({stream.number + 1})" if sizes.count(stream.frame_bytes) > 1 else "")
        for stream in streams
    )


def lost_first(streams: Sequence[StreamLoss]) -> tuple[StreamLoss, ...]:
    """Return the streams whose own loss set in at the lowest rate; () where no stream's loss lasted."""
    rates = [stream.lossy_from_pps for stream in streams if stream.lossy_from_pps is not None]
    return tuple(stream for stream in streams if stream.lossy_from_pps == min(rates)) if rates else ()


def find_stream_warnings(measured: RunWindows, directions: Sequence[Direction]) -> Iterator[RunWarning]:
    """Report directions whose frames came back without the marks by which their streams are known."""
    for direction in directions:
        counted = [sample for sample in measured.samples if direction.tx in sample.reading.streams]
        if counted and find_unmarked(direction, counted[-1], counted[0].reading.ports[direction.rx].ipackets):
            text = "frames came back without the IP ID that they were sent with: loss per stream is unknown"
            yield RunWarning("unmarked", f"{direction}: {text}")
