"""Raw samples -> windows of about one second, per direction: where every ratio is computed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from .plan import Direction, Plan
from .sample import Phase, Sample, find_setback, stands_still

MEASURED_PHASES = (Phase.RAMP, Phase.HOLD)
MAX_LATENCY_S = 0.1
"""No router keeps frames longer; it shifts a knee by a tenth of the ramp's step at most."""

CATCH_UP = 1.5
"""So many times what was asked, counted right after counters that stood still: those were stale."""


@dataclass(frozen=True)
class Window:
    """What one direction did between two samples.

    sent, received: frames; *_pps: over each port's own interval. asked_pps: time-weighted mean of what was asked.
    ierrors: frames the receiving port lost itself. queue_full, cpu_percent: of the whole generator, None if unsaid;
    the latter is the mean of what its samples said. pending: frames that were still on their way at its end and not
    at its begin, for the load rises; they are not lost.
    """

    phase: Phase
    begin_s: float
    end_s: float
    asked_pps: float
    sent: int
    received: int
    sent_pps: float
    received_pps: float
    ierrors: int
    queue_full: int | None
    cpu_percent: float | None
    link_up: bool
    pending: float = 0.0

    @property
    def lost(self) -> int:
        """Frames sent and not received; negative when more came back than were sent, which is a finding."""
        return self.sent - self.received

    @property
    def loss(self) -> float | None:
        """Lost share of the frames sent; None when nothing was sent."""
        return self.lost / self.sent if self.sent else None

    def is_bad(self, threshold: float) -> bool:
        """More is lost than this share of what was sent, and than the frames still on their way."""
        return bool(self.sent) and (self.lost - self.pending) / self.sent > threshold


def build_window(direction: Direction, samples: Sequence[Sample], latency_s: float = 0.0) -> Window:
    """The window from the first to the last of these samples (two at least); latency_s: of the path."""
    first, last = samples[0], samples[-1]
    tx0, tx1 = first.reading.ports[direction.tx], last.reading.ports[direction.tx]
    rx0, rx1 = first.reading.ports[direction.rx], last.reading.ports[direction.rx]
    sent, received = tx1.opackets - tx0.opackets, rx1.ipackets - rx0.ipackets
    asked = sum(b.asked_pps * (b.t_s - a.t_s) for a, b in itertools.pairwise(samples))
    return Window(
        phase=last.phase,
        begin_s=first.t_s,
        end_s=last.t_s,
        asked_pps=asked / (last.t_s - first.t_s),
        sent=sent,
        received=received,
        sent_pps=sent / (tx1.t_s - tx0.t_s),
        received_pps=received / (rx1.t_s - rx0.t_s),
        ierrors=rx1.ierrors - rx0.ierrors,
        queue_full=_difference(first.reading.queue_full, last.reading.queue_full),
        cpu_percent=_mean(s.reading.cpu_percent for s in samples[1:]),
        link_up=all(s.reading.ports[p].link_up for s in samples for p in (direction.tx, direction.rx)),
        pending=latency_s * max(0.0, last.asked_pps - first.asked_pps),
    )


def phase_window(direction: Direction, samples: Sequence[Sample], phase: Phase) -> Window | None:
    """One window over all of a phase; None where the run never came to it."""
    inside = [i for i, sample in enumerate(samples) if sample.phase is phase]
    return build_window(direction, samples[inside[0] - 1 : inside[-1] + 1]) if inside and inside[0] else None


def measured_windows(
    plan: Plan, samples: Sequence[Sample], direction: Direction, phases: Iterable[Phase] = MEASURED_PHASES
) -> list[Window]:
    """The direction's windows over the named phases, each of whole samples and at least about window_s long.

    They end where a counter of the direction goes backwards: no difference across that is a number.
    """
    wanted = tuple(phases)
    enough_s = max(plan.window_s, plan.sample_s) - plan.sample_s / 2
    ports = (direction.tx, direction.rx)
    latency_s = _latency_s(samples, direction)
    windows: list[Window] = []
    start: int | None = None
    stale = _stale(samples, direction.tx)
    for i, sample in enumerate(samples):
        if sample.phase not in wanted:
            start = None
            continue
        if i and find_setback(samples[i - 1], sample, ports):
            break
        if start is None:
            start = max(0, i - 1)
        if sample.t_s - samples[start].t_s >= enough_s and i not in stale:
            windows.append(build_window(direction, samples[start : i + 1], latency_s))
            start = i
    return windows


def _stale(samples: Sequence[Sample], port: int) -> set[int]:
    """Samples at which no window may end: the port's counters stood still, and later made up for it at once.

    The sample before such a pause is one of them: the counters may have stood still for a part of it already. Counters
    that do not make up for it tell the truth: nothing was sent.
    """
    found: set[int] = set()
    paused = 0
    for i in range(1, len(samples)):
        before, after = samples[i - 1], samples[i]
        if stands_still(before, after, port):
            paused += 1
            continue
        if paused and port in before.reading.ports and port in after.reading.ports:
            counted = after.reading.ports[port].opackets - before.reading.ports[port].opackets
            if counted > CATCH_UP * after.asked_pps * (after.t_s - before.t_s):
                found.update(range(i - 1 - paused, i))
        paused = 0
    return found


def judged_windows(plan: Plan, samples: Sequence[Sample], direction: Direction) -> list[Window]:
    """The measured windows that a verdict may lean on: a line filled at once needs one to settle."""
    windows = measured_windows(plan, samples, direction)
    return windows[1:] if plan.kind == "saturate" else windows


def last_windows(plan: Plan, samples: Sequence[Sample], direction: Direction, count: int) -> list[Window]:
    """The last ``count`` windows, without looking at more samples than they need."""
    per_window = max(1, round(plan.window_s / plan.sample_s))
    return measured_windows(plan, samples[-(count * per_window + 1) :], direction)[-count:]


def _latency_s(samples: Sequence[Sample], direction: Direction) -> float:
    """How long frames are on their way, seen in the warm-up: what is missing of its first half, and not of its second.

    A rising load has ever more frames on their way: 10 ms look like a loss of 1 % in the first second of a ramp from
    zero. Frames that only the beginning lost look like latency, too, hence the limit. 0 without a warm-up.
    """
    end = next((i for i, s in enumerate(samples) if s.phase not in (Phase.BASELINE, Phase.WARMUP)), len(samples)) - 1
    if end < 2 or samples[0].phase is not Phase.BASELINE:
        return 0.0
    middle = end // 2
    first, second = build_window(direction, samples[: middle + 1]), build_window(direction, samples[middle : end + 1])
    missing = first.lost - second.lost * (first.sent / second.sent if second.sent else 0.0)
    return min(MAX_LATENCY_S, max(0.0, missing / samples[end].asked_pps))


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _mean(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return fmean(known) if known else None
