"""The windows that a direction's verdict is made of: without those of a stall, nor what the path itself loses.

Loss that lasted is a stall where the rate at which it began was held again later and carried.
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
from .model import Stall
from .path import SOUND, FramePath, find_path

SEEN_PHASES = (*MEASURED_PHASES, Phase.RECHECK)
AT_ONCE = 1e-6
"""Times, and rates as shares, that differ by no more are the same."""
STOOD = 0.2
"""A sample, or a look, that lost more than this share may be one in which the DUT stood still for a while
(benchmarks/verdicts.py: stalls)."""


@dataclass(frozen=True)
class Recheck:
    """A rate that was held once more after loss had lasted there, to its end. carried: without loss at last.

    stood: the DUT may have stood still for a while, which is no loss of a first bad rate: the stall went on.
    """

    begin_s: float
    asked_pps: float
    carried: bool
    stood: bool

    def clears(self, first: Window) -> bool:
        """Test whether this rate, or a higher one, was carried after the loss that this window begins."""
        return self.carried and self.begin_s >= first.end_s and self.asked_pps >= first.asked_pps * (1 - AT_ONCE)


@dataclass(frozen=True)
class Evidence:
    """One direction's windows for the verdict, in order and as on a sound path; and what was set aside.

    sending: of the windows those in which something was sent.
    cut_short: the first window of a stall that the ramp did not outlast: what lies above its rate is not known.
    repeated: begin and end of saturation that was measured again since its first rate was carried by chance.
    """

    windows: Sequence[Window]
    stalls: tuple[Stall, ...] = ()
    cut_short: Window | None = None
    path: FramePath = SOUND
    repeated: tuple[tuple[float, float], ...] = ()

    @property
    def sending(self) -> Sequence[Window]:
        return [w for w in self.windows if w.sent]


@once
def find_evidence(measured: RunWindows, direction: Direction) -> Evidence:
    """The windows that count, after every stall is set aside."""
    plan, path, stalls = measured.plan, find_path(measured, direction), list[Stall]()
    windows = [path.correct(window) for window in measured.sending(direction)]
    end_s, cut_short = windows[-1].end_s if windows else 0.0, None
    repeated: list[tuple[float, float]] = []
    rechecks = find_rechecks(measured, direction)
    seen = measured_windows(plan, measured.samples, direction, SEEN_PHASES) if rechecks else []
    seen = [path.correct(window) for window in seen]
    while rechecks and (row := find_loss(plan, windows)):
        first = windows[row[0]]
        carried = [one.asked_pps for one in rechecks if one.clears(first)]
        if not carried:
            break
        lost = list(_lossy_row(plan, windows[row[0] :], len(row)))
        carried += [w.asked_pps for w in windows[row[0] + len(lost) :] if not w.is_bad(plan.loss_threshold)]
        stall = [*_stalls(plan, direction, [w for w in seen if w.begin_s >= first.begin_s], max(carried))]
        stalls += stall
        repeated += [] if stall else [(first.begin_s, lost[-1].end_s)]
        if lost[-1].end_s >= end_s and cut_short is None:
            cut_short = first
        del windows[row[0] : row[0] + len(lost)]
    silent = [window for window in measured.judged(direction) if not window.sent]
    counted = sorted([*windows, *silent], key=lambda w: w.begin_s)
    return Evidence(counted, tuple(stalls), cut_short, path, tuple(repeated))


def find_rechecks(measured: RunWindows, direction: Direction) -> list[Recheck]:
    """All that were held to their end, as far as this direction goes.

    The DUT may need the first half to get over what came before: a stall's end, or the load of the hold.
    """
    plan, samples, path, found = measured.plan, measured.samples, find_path(measured, direction), list[Recheck]()
    for inside in by_trial(samples, Phase.RECHECK).values():
        before, last = inside[0] - 1, inside[-1]
        if last + 1 == len(samples):
            break
        middle_s = (samples[before].t_s + samples[last].t_s) / 2
        middle = next(i for i in range(before, last) if samples[i + 1].t_s > middle_s + AT_ONCE)
        window = path.correct(build_window(direction, samples[middle : last + 1]))
        carried = not window.is_bad(plan.loss_threshold) and not misses(window.asked_pps, window.sent_pps)
        parts = (build_window(direction, pair) for pair in pairwise(samples[before : last + 1]))
        stood = any(part.lost > STOOD * part.sent for part in parts)
        found.append(Recheck(samples[before].t_s, window.asked_pps, carried and window.sent > 0, stood))
    return found


def _lossy_row(plan: Plan, windows: Sequence[Window], least: int = 1) -> Iterator[Window]:
    """The lossy windows at the beginning that follow one another without a break.

    least: so many are known to be lossy together.
    """
    end_s = windows[0].begin_s
    for i, window in enumerate(windows):
        if (i >= least and window.excess(plan.loss_threshold) <= 0) or window.begin_s > end_s + AT_ONCE:
            return
        yield window
        end_s = window.end_s


def _stalls(plan: Plan, direction: Direction, seen: Sequence[Window], carried_pps: float) -> Iterator[Stall]:
    """Yield the stall that the first of these windows begins, as far as its rates were carried later.

    A DUT that varies may carry its first bad rate by chance: that makes no stall of its saturation. Where nothing was
    forwarded, the length follows from what was lost.
    """
    seen = [window for window in seen if window.sent]
    lost = list(_lossy_row(plan, seen))
    begin_s, end_s = lost[0].begin_s, lost[-1].end_s
    empty = [i for i, window in enumerate(seen) if window.blank]
    nothing = bool(empty) and empty[0] < len(lost)
    if nothing:  # it goes on over a pause, and what is lost after it has ended, in the same row, is no part of it
        over = next((i for i in range(empty[0], len(seen)) if i not in empty), len(seen))
        lost = seen[max(0, empty[0] - 1) : over + 1 if over < len(lost) else over]
        begin_s, end_s = lost[0].end_s - lost[0].down_s, lost[-1].begin_s + lost[-1].down_s
    elif lost[: plan.windows][-1].asked_pps > carried_pps * (1 + AT_ONCE):
        return
    else:
        lost = [window for window in lost if window.asked_pps <= carried_pps * (1 + AT_ONCE)]
        end_s = lost[-1].end_s
    sent = sum(window.sent for window in lost)
    yield Stall(direction, begin_s, end_s - begin_s, sent, sum(window.lost for window in lost), nothing)
