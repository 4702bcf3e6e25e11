"""The windows that a direction's verdict rests on: without stalls, and corrected for what the path itself loses.

Sustained loss is a stall where the rate at which it began was held again later and carried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..load.plan import Direction, Plan
from ..load.sample import Phase, by_trial
from ..load.windows import MEASURED_PHASES, RunWindows, Window, build_window, measured_windows, once
from .blame import misses
from .knee import find_loss
from .parts import Stall
from .path import SOUND, FramePath, find_path

SEEN_PHASES = (*MEASURED_PHASES, Phase.RECHECK)
AT_ONCE = 1e-6
"""Times, and rates as shares, that differ by no more are the same."""
STOOD = 0.2
"""In a sample or look that lost more than this share the DUT may have stood still for a while
(benchmarks/verdicts.py: stalls)."""


@dataclass(frozen=True)
class Recheck:
    """A rate that was held once more, to its end, after sustained loss there."""

    begin_s: float
    asked_pps: float
    carried: bool  # without loss in the second half
    stood: bool  # the DUT may have stood still for a while: the stall went on, which says nothing of the rate


@dataclass(frozen=True)
class Evidence:
    """One direction's windows for the verdict, in order and as on a sound path; and what was set aside."""

    windows: Sequence[Window]
    stalls: tuple[Stall, ...] = ()
    cut_short: Window | None = None  # the first of a stall that the ramp did not outlast: higher rates are unknown
    path: FramePath = SOUND
    repeated: tuple[tuple[float, float], ...] = ()  # begin and end of ramps repeated: the first bad rate was carried

    @property
    def sending(self) -> Sequence[Window]:
        """The windows in which something was sent."""
        return [w for w in self.windows if w.sent]


@once
def find_evidence(measured: RunWindows, direction: Direction) -> Evidence:
    """The windows that count once every stall is set aside: loss whose rate, or a higher one, was carried later."""
    plan, path = measured.plan, find_path(measured, direction)
    windows = [path.correct(window) for window in measured.sending(direction)]
    end_s, cut_short = windows[-1].end_s if windows else 0.0, None
    stalls, repeated = list[Stall](), list[tuple[float, float]]()
    rechecks = find_rechecks(measured, direction)
    seen = measured_windows(plan, measured.samples, direction, SEEN_PHASES) if rechecks else []
    seen = [path.correct(window) for window in seen]
    while rechecks and (row := find_loss(plan, windows)):
        first = windows[row[0]]
        later = [recheck for recheck in rechecks if recheck.carried and recheck.begin_s >= first.end_s]
        carried = [recheck.asked_pps for recheck in later if recheck.asked_pps >= first.asked_pps * (1 - AT_ONCE)]
        if not carried:
            break
        lost = list(_lossy_row(plan, windows[row[0] :], len(row)))
        carried += [w.asked_pps for w in windows[row[0] + len(lost) :] if not w.is_bad(plan.loss_threshold)]
        if stall := _find_stall(plan, direction, [w for w in seen if w.begin_s >= first.begin_s], max(carried)):
            stalls.append(stall)
        else:
            repeated.append((first.begin_s, lost[-1].end_s))
        if lost[-1].end_s >= end_s and cut_short is None:
            cut_short = first
        del windows[row[0] : row[0] + len(lost)]
    silent = [window for window in measured.judged(direction) if not window.sent]
    counted = sorted([*windows, *silent], key=lambda w: w.begin_s)
    return Evidence(counted, tuple(stalls), cut_short, path, tuple(repeated))


def find_rechecks(measured: RunWindows, direction: Direction) -> list[Recheck]:
    """The direction's rechecks that were held to their end."""
    plan, samples, path, rechecks = measured.plan, measured.samples, find_path(measured, direction), list[Recheck]()
    for inside in by_trial(samples, Phase.RECHECK).values():
        before, last = inside[0] - 1, inside[-1]
        if last + 1 == len(samples):
            break
        # The second half decides: the DUT may need the first to recover from a stall, or from the load of the hold.
        middle_s = (samples[before].t_s + samples[last].t_s) / 2
        middle = next(i for i in range(before, last) if samples[i + 1].t_s > middle_s + AT_ONCE)
        window = path.correct(build_window(direction, samples[middle : last + 1]))
        carried = not window.is_bad(plan.loss_threshold) and not misses(window.asked_pps, window.sent_pps)
        parts = (build_window(direction, pair) for pair in pairwise(samples[before : last + 1]))
        stood = any(part.lost > STOOD * part.sent for part in parts)
        rechecks.append(Recheck(samples[before].t_s, window.asked_pps, carried and window.sent > 0, stood))
    return rechecks


def _lossy_row(plan: Plan, windows: Sequence[Window], least: int = 1) -> Iterator[Window]:
    """Yield the lossy windows at the beginning, without a break between them; the first ``least`` count as lossy."""
    end_s = windows[0].begin_s
    for i, window in enumerate(windows):
        if (i >= least and window.excess(plan.loss_threshold) <= 0) or window.begin_s > end_s + AT_ONCE:
            return
        yield window
        end_s = window.end_s


def _find_stall(plan: Plan, direction: Direction, seen: Sequence[Window], carried_pps: float) -> Stall | None:
    """Find the stall that begins with the first of these windows, as far as its rates were carried later.

    None where the DUT carried its first bad rate by chance, as one that varies may: it is saturated all the same.
    Where nothing was forwarded, the length follows from what was lost.
    """
    seen = [window for window in seen if window.sent]
    lost = list(_lossy_row(plan, seen))
    begin_s, end_s = lost[0].begin_s, lost[-1].end_s
    empty = [i for i, window in enumerate(seen) if window.blank]
    nothing = bool(empty) and empty[0] < len(lost)
    if nothing:  # the stall spans a pause of the traffic; loss of the same row after its end is no part of it
        over = next((i for i in range(empty[0], len(seen)) if i not in empty), len(seen))
        lost = seen[max(0, empty[0] - 1) : over + 1 if over < len(lost) else over]
        begin_s, end_s = lost[0].end_s - lost[0].down_s, lost[-1].begin_s + lost[-1].down_s
    elif lost[: plan.windows][-1].asked_pps > carried_pps * (1 + AT_ONCE):
        return None
    else:
        lost = [window for window in lost if window.asked_pps <= carried_pps * (1 + AT_ONCE)]
        end_s = lost[-1].end_s
    sent = sum(window.sent for window in lost)
    return Stall(direction, begin_s, end_s - begin_s, sent, sum(window.lost for window in lost), nothing)
