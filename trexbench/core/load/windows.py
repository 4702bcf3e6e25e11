"""Windows of about one second per direction, built from raw samples: every ratio is computed here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import pairwise
from math import ceil, inf
from statistics import fmean, median
from typing import Any, NamedTuple, TypeVar

from ..means import of_known
from .plan import Direction, Plan
from .sample import Phase, Sample, SenderCounters, find_setback

T = TypeVar("T")
MEASURED_PHASES = (Phase.RAMP, Phase.HOLD)
MAX_LATENCY_S = 1.0
"""No router delays frames by more; it shifts a knee by a tenth of the ramp's step at most."""
MAX_SKEW_S = 0.04
"""Counters that seem to be read further apart than this were not: they stood still."""
MORE_SKEW = 1.5
"""Factor by which the skew may exceed what is seen of it: a few intervals miss some of it."""
STEADY = 6
"""Intervals in a row: an excess that all of them have is no skew, as it comes all the time."""
NOTHING_SHARE = 0.99
"""In a window that loses more than this nothing was forwarded."""
MARKED_SHARE = 0.01
"""If less than this share of what was sent, and of what arrived, was recognised, the streams' marks were changed."""
CATCH_UP = 1.5
"""Counters that jump by this many times what was asked, right after they stood still, were stale before."""


class Window(NamedTuple):
    """Traffic of one direction between two samples.

    Frames are those of the direction's streams where each of them is counted (see count_streams), else of its ports;
    rates are over the interval between these readings, which differs from port to port. Counts and CPU load are None
    where the generator does not report them.
    """

    phase: Phase
    begin_s: float
    end_s: float
    asked_pps: float  # time-weighted mean
    sent: int
    received: int
    sent_pps: float
    received_pps: float
    ierrors: int  # frames that the receiving port lost itself
    queue_full: int | None  # how often the sending port's queue was full
    queue_full_anywhere: int | None  # all ports together
    cpu_percent: float | None  # of the sending port, mean of its samples
    link_up: bool
    pending: float = 0.0  # frames on their way at the end beyond those at the beginning, as the load rises: not lost
    # Frames that may seem lost as the two ports' counters were not read at one instant (find_skew_s). For a row of
    # windows, too, it is that of its two ends only.
    skew: float = 0.0
    held_up_s: float = 0.0  # for how long others had the sender's core, as far as is known

    @property
    def lost(self) -> int:
        """Frames sent and not received; negative when more came back than were sent."""
        return self.sent - self.received

    @property
    def loss(self) -> float | None:
        """Lost share of the frames sent; None when nothing was sent."""
        return self.lost / self.sent if self.sent else None

    @property
    def blank(self) -> bool:
        """True if nothing was forwarded."""
        return bool(self.sent) and self.lost > NOTHING_SHARE * self.sent

    @property
    def down_s(self) -> float:
        """Time for which nothing was forwarded, if all losses fell into it."""
        return self.lost / self.sent * (self.end_s - self.begin_s)

    def is_bad(self, threshold: float) -> bool:
        """Test whether more than this share was lost, without those still on their way; more than the skew can hide."""
        return self.lost - self.pending > max(threshold * self.sent, self.skew)

    def excess(self, threshold: float) -> float:
        """Number of frames beyond this share that seem lost, without those still on their way."""
        return ((self.lost - self.pending) / self.sent - threshold) * self.sent if self.sent else 0.0


class StreamCounts(NamedTuple):
    """Frames of a direction's streams between two readings of them, in the profile's order."""

    sent: tuple[int, ...]
    received: tuple[int, ...]
    elapsed_s: float


def count_streams(direction: Direction, first: Sample, last: Sample) -> StreamCounts | None:
    """Count each stream's frames between two samples. Unlike a port's counters, they include no foreign frames.

    None where not every stream was counted all the time; where the frames come back without the marks by which they are
    recognised (find_unmarked; or only now: hardly any is recognised, while the port receives half as many as were
    sent); or where the sending port refused some (oerrors), which are counted as sent here, but not by the port.
    """
    then, now = first.reading.streams.get(direction.tx), last.reading.streams.get(direction.tx)
    if (
        then is None
        or now is None
        or len(then.sent) != len(now.sent)
        or now.t_s <= then.t_s
        or last.reading.ports[direction.tx].oerrors > first.reading.ports[direction.tx].oerrors
        or find_unmarked(direction, last)
    ):
        return None
    sent = tuple([b - a for a, b in zip(then.sent, now.sent, strict=True)])
    came = then.received_by(direction.rx), now.received_by(direction.rx)
    received = tuple([b - a for a, b in zip(*came, strict=True)])
    arrived = last.reading.ports[direction.rx].ipackets - first.reading.ports[direction.rx].ipackets
    if min(*sent, *received) < 0 or (sum(received) < MARKED_SHARE * sum(sent) and 2 * arrived > sum(sent)):
        return None
    return StreamCounts(sent, received, now.t_s - then.t_s)


def find_unmarked(direction: Direction, sample: Sample, before: int = 0) -> bool:
    """Test whether so far hardly any of the streams' frames were recognised among those that arrived.

    before: number of frames that the receiving port had got when the run began, from a server that runs on. A few
    frames of the DUT itself, where nothing comes back, are no sign.
    """
    counters, arrived = sample.reading.streams.get(direction.tx), sample.reading.ports[direction.rx].ipackets - before
    if counters is None or arrived < MARKED_SHARE * sum(counters.sent):
        return False
    return sum(counters.received_by(direction.rx)) < MARKED_SHARE * min(sum(counters.sent), arrived)


def build_window(
    direction: Direction, samples: Sequence[Sample], latency_s: float = 0.0, skew_s: float = 0.0
) -> Window:
    """Build the window from the first to the last of these samples, given the path's latency and the ports' skew."""
    first, last = samples[0], samples[-1]
    tx0, tx1 = first.reading.ports[direction.tx], last.reading.ports[direction.tx]
    rx0, rx1 = first.reading.ports[direction.rx], last.reading.ports[direction.rx]
    sent, received = tx1.opackets - tx0.opackets, rx1.ipackets - rx0.ipackets
    sending_s, receiving_s = tx1.t_s - tx0.t_s, rx1.t_s - rx0.t_s
    if streams := count_streams(direction, first, last):
        sent, received = sum(streams.sent), sum(streams.received)
        sending_s = receiving_s = streams.elapsed_s
        skew_s = 0.0
    now_pps = last.asked_pps.get(direction, 0.0)
    rise_pps = max(0.0, now_pps - first.asked_pps.get(direction, 0.0))
    asked_pps, cpu_percent, links_up = now_pps, tx1.cpu_percent, True
    if len(samples) > 2:
        asked = sum(b.asked_pps.get(direction, 0.0) * (b.t_s - a.t_s) for a, b in pairwise(samples))
        asked_pps = asked / (last.t_s - first.t_s)
        cpu_percent = of_known(fmean, (s.reading.ports[direction.tx].cpu_percent for s in samples[1:]))
        links_up = all(s.reading.ports[p].link_up for s in samples[1:-1] for p in direction)
    return Window(
        phase=last.phase,
        begin_s=first.t_s,
        end_s=last.t_s,
        asked_pps=asked_pps,
        sent=sent,
        received=received,
        sent_pps=sent / sending_s,
        received_pps=received / receiving_s,
        ierrors=rx1.ierrors - rx0.ierrors,
        queue_full=_difference(tx0.queue_full, tx1.queue_full),
        queue_full_anywhere=_difference(first.reading.queue_full, last.reading.queue_full),
        cpu_percent=cpu_percent,
        link_up=links_up and tx0.link_up and tx1.link_up and rx0.link_up and rx1.link_up,
        # Frames are whole: of 840.9 on their way 841 seem lost, which a loss threshold of 0 would not allow.
        pending=pending if (pending := latency_s * rise_pps) < 1 else ceil(pending),
        skew=skew_s * (sent / sending_s + rise_pps),
        held_up_s=_held_up_s(first.reading.senders.get(direction.tx), last.reading.senders.get(direction.tx)),
    )


def _held_up_s(then: SenderCounters | None, now: SenderCounters | None) -> float:
    """Time that others had the sender's core, as far as both readings report it."""
    if then is None or now is None:
        return 0.0
    pairs = (then.waited_ns, now.waited_ns), (then.stolen_ns, now.stolen_ns)
    return sum(max(0, _difference(*pair) or 0) for pair in pairs) / 1e9


def phase_window(direction: Direction, samples: Sequence[Sample], phase: Phase) -> Window | None:
    """One window over the whole phase; None where the run did not reach it."""
    inside = [i for i, sample in enumerate(samples) if sample.phase is phase]
    return build_window(direction, samples[inside[0] - 1 : inside[-1] + 1]) if inside and inside[0] else None


def measured_windows(
    plan: Plan,
    samples: Sequence[Sample],
    direction: Direction,
    phases: Collection[Phase] = MEASURED_PHASES,
    skew_s: float = 0.0,
) -> list[Window]:
    """The direction's windows over the named phases, each of whole samples and at least about window_s long.

    They end where a counter of the direction goes backwards, since no difference across that is meaningful. No window
    spans a gap in the samples, as the time of a loss in it is unknown.
    """
    spans = find_spans(plan, samples, direction, phases)
    pairs = enumerate(pairwise(samples), 1)
    cleared = (i for i, (a, b) in pairs if b.phase in phases and find_setback(a, b, direction))
    end = next(cleared, len(samples))
    latency_s = find_latency_s(samples[:end], direction)
    ended = (samples[first : last + 1] for first, last in spans if last < end)
    return [build_window(direction, part, latency_s, skew_s) for part in ended]


def find_spans(
    plan: Plan, samples: Sequence[Sample], direction: Direction, phases: Collection[Phase]
) -> Iterator[tuple[int, int]]:
    """Yield the indexes of the first and last sample of every window over the named phases; see measured_windows."""
    enough_s = max(plan.window_s, plan.sample_s) - plan.sample_s / 2
    gap_s, stale = plan.gap_s, _stale(samples, direction.tx)
    start: int | None = None
    for i, sample in enumerate(samples):
        if sample.phase not in phases:
            start = None
            continue
        if start is None:
            start = max(0, i - 1)
        if i and sample.t_s - samples[i - 1].t_s > gap_s:
            start = i
        if sample.t_s - samples[start].t_s >= enough_s and i not in stale:
            yield start, i
            start = i


def _stale(samples: Sequence[Sample], port: int) -> set[int]:
    """Indexes of samples at which no window may end: the port's counters stood still, and then caught up at once.

    The sample before such a pause is one of them, since the pause may have begun earlier. Counters that do not catch up
    are right: nothing was sent.
    """
    stale: set[int] = set()
    paused = 0
    for i, (before, after) in enumerate(pairwise(samples), 1):
        then, now = before.reading.ports.get(port), after.reading.ports.get(port)
        counted = now.opackets - then.opackets if then is not None and now is not None else None
        if counted == 0 and after.asked_of_port(port) > 0:
            paused += 1
            continue
        if paused and counted is not None and counted > CATCH_UP * after.asked_of_port(port) * (after.t_s - before.t_s):
            stale.update(range(i - 1 - paused, i))
        paused = 0
    return stale


def once(find: Callable[[RunWindows, Direction], T]) -> Callable[[RunWindows, Direction], T]:
    """Keep the function's result for each direction of a run: while it runs, a lab's sender waits."""

    @wraps(find)
    def find_once(measured: RunWindows, direction: Direction) -> T:
        key = find.__module__, find.__qualname__, direction
        if key not in measured.kept:
            measured.kept[key] = find(measured, direction)
        kept: T = measured.kept[key]
        return kept

    return find_once


@dataclass(frozen=True)
class RunWindows:
    """The samples of a run up to the first counter that goes backwards, and each direction's windows, built once."""

    plan: Plan
    samples: Sequence[Sample]
    kept: dict[tuple[str, str, Direction], Any] = field(default_factory=dict, repr=False)  # see once

    @once
    def judged(self, direction: Direction) -> list[Window]:
        """The measured windows that count for the verdict: those after the settling ones (Plan.settling_windows)."""
        latency_s, skew_s = self.latency_s(direction), self.skew_s(direction)
        spans = find_spans(self.plan, self.samples, direction, MEASURED_PHASES)
        windows = [build_window(direction, self.samples[first : last + 1], latency_s, skew_s) for first, last in spans]
        return windows[self.plan.settling_windows :]

    def sending(self, direction: Direction) -> list[Window]:
        """Judged windows in which something was sent; others neither show loss nor end sustained loss."""
        return [w for w in self.judged(direction) if w.sent]

    @once
    def skew_s(self, direction: Direction) -> float:
        """Skew of a direction's two ports (find_skew_s)."""
        return find_skew_s(self.plan, self.samples, direction)

    @once
    def latency_s(self, direction: Direction) -> float:
        """Latency of the path (find_latency_s)."""
        return find_latency_s(self.samples, direction)


def last_windows(plan: Plan, samples: Sequence[Sample], direction: Direction, count: int) -> list[Window]:
    """The last ``count`` windows, built from no more samples than needed."""
    per_window = max(1, round(plan.window_s / plan.sample_s))
    return measured_windows(plan, samples[-(count * per_window + 1) :], direction)[-count:]


def near_blanks(windows: Sequence[Window]) -> list[bool]:
    """Flag each window in which nothing was forwarded, and those beside it, into which a stall reaches."""
    blank = [False, *(w.blank for w in windows), False]
    return [any(blank[i : i + 3]) for i in range(len(windows))]


def find_latency_s(samples: Sequence[Sample], direction: Direction) -> float:
    """Latency of the path, from the warm-up: frames missing in its first half beyond the loss of its second half.

    Under a rising load ever more frames are on their way: 10 ms of latency look like 1 % of loss in the first second of
    a ramp from zero. Frames lost in the first half look like latency, too, until the traffic has stopped: it is at most
    as long as frames came back after that. 0 without a warm-up.
    """
    end = next((i for i, s in enumerate(samples) if s.phase not in (Phase.BASELINE, Phase.WARMUP)), len(samples)) - 1
    if end < 2 or samples[0].phase is not Phase.BASELINE:
        return 0.0
    middle = end // 2
    first, second = build_window(direction, samples[: middle + 1]), build_window(direction, samples[middle : end + 1])
    missing = first.lost - second.lost * (first.sent / second.sent if second.sent else 0.0)
    unsure = 0.0
    if not count_streams(direction, samples[0], samples[end]):  # then the ports' skew is part of it
        unsure = 1 if missing >= 1 else 0.5  # the warm-up shows it no better than to a frame
    latency_s, least_s = (max(0.0, frames / samples[end].asked_pps[direction]) for frames in (missing + unsure, unsure))
    return min(latency_s, max(least_s, _drained_s(samples, direction)), MAX_LATENCY_S)


def _drained_s(samples: Sequence[Sample], direction: Direction) -> float:
    """Time for which frames came back after the traffic first stopped; infinite where that is not known."""
    at = next((i for i, s in enumerate(samples) if s.phase is Phase.DRAIN), len(samples))
    if not 2 <= at < len(samples):
        return inf
    before, last, drained = (samples[i].reading.ports for i in (at - 2, at - 1, at))
    tx, rx = direction
    came, came_s = last[rx].ipackets - before[rx].ipackets, last[rx].t_s - before[rx].t_s
    went = last[tx].opackets - before[tx].opackets
    if came <= 0 or went <= 0:
        return inf
    # Frames sent after the last reading of the sender's port have been on their way no longer than that reading is old.
    late = drained[rx].ipackets - last[rx].ipackets - (drained[tx].opackets - last[tx].opackets) * came / went
    return max(0.0, late + 1) * came_s / came


def find_skew_s(plan: Plan, samples: Sequence[Sample], direction: Direction) -> float:
    """Greatest variation of the time between the readings of a direction's two ports, in seconds.

    No port can receive more than was sent, unless the two were read at different instants, and the excess of some
    intervals is missing in others: the greatest excess of intervals in a row shows how much others may seem to lose.
    Foreign frames, and frames that come twice, do so all the time. 0 where all streams are counted at one instant.
    """
    fine, phases = replace(plan, window_s=plan.sample_s), (Phase.WARMUP, *MEASURED_PHASES)
    samples = samples[: max((i + 1 for i, s in enumerate(samples) if s.phase in phases), default=0)]
    spans = [span for phase in phases for span in find_spans(fine, samples, direction, (phase,))]
    if not spans or count_streams(direction, samples[spans[0][0]], samples[spans[-1][1]]):
        return 0.0
    built = (build_window(direction, (samples[first], samples[last])) for first, last in spans)
    windows = [w for w in built if w.sent]
    rows = (windows[at : at + STEADY] for at in range(len(windows) - STEADY + 1))
    always = [(-sum(w.lost for w in row), row) for row in rows if all(w.lost < 0 for w in row)]
    twice = median([more / sum(w.sent for w in row) for more, row in always] or [0.0])
    others_pps = median([more / (row[-1].end_s - row[0].begin_s) for more, row in always] or [0.0])
    most = extra = 0.0
    for w in windows:
        extra = max(0.0, extra - w.lost - max(twice * w.sent, others_pps * (w.end_s - w.begin_s)))
        most = max(most, (extra - 1) / w.sent_pps)
    return min(MAX_SKEW_S, MORE_SKEW * most)


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
