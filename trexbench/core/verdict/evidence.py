"""The windows that a direction's verdict rests on: without stalls, and corrected for what the path itself loses.

Sustained loss is a stall where the rate at which it began was held again later and carried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from ..load.plan import Direction, Plan
from ..load.sample import Phase, by_trial
from ..load.windows import RunWindows, Window, build_window, once
from .blame import misses
from .knee import find_loss
from .parts import Stall
from .path import SOUND, FramePath, find_path

AT_ONCE = 1e-6
"""Times, and rates as shares, that differ by no more are the same."""
STOOD = 0.2
"""Where a look lost more than this share, or the shares that a hold's samples lost differ by more, the DUT may have
stood still for a while (benchmarks/verdicts.py: stalls)."""

MAX_RECHECKS = 3
"""Limit of holds of the first bad rate, and of resumed ramps: stalls at different rates cost a run this much time
(benchmarks/verdicts.py). Of 1 820 ramps of DUTs with noise up to 3 % none had three that were carried by chance; of a
night's 40 one had."""


@dataclass(frozen=True)
class Recheck:
    """A rate that was held once more, to its end, after sustained loss there."""

    begin_s: float
    window: Window  # its second half, as on a sound path
    carried: bool  # without loss in the second half
    stood: bool  # the DUT may have stood still for a while: the stall went on, which says nothing of the rate


@dataclass(frozen=True)
class Evidence:
    """One direction's windows that sent something, in order and as on a sound path; and what was set aside."""

    windows: Sequence[Window]
    stalls: tuple[Stall, ...] = ()
    cut_short: Window | None = None  # the first of a stall that the ramp did not outlast: higher rates are unknown
    path: FramePath = SOUND


@once
def find_evidence(measured: RunWindows, direction: Direction) -> Evidence:
    """The windows that count once every stall is set aside: loss that began at a rate which was carried later."""
    plan, path = measured.plan, find_path(measured, direction)
    windows = [path.correct(window) for window in measured.sending(direction)]
    end_s, cut_short = windows[-1].end_s if windows else 0.0, None
    stalls, rechecks = list[Stall](), find_rechecks(measured, direction)
    while rechecks and (row := find_loss(plan, windows)):
        first, lost = windows[row[0]], list(_lossy_row(plan, windows[row[0] :], len(row)))
        later = [recheck for recheck in rechecks if recheck.carried and recheck.begin_s >= first.end_s]
        if not any(recheck.window.asked_pps >= first.asked_pps * (1 - AT_ONCE) for recheck in later):
            break
        stalls += stalls_of(direction, lost)
        if lost[-1].end_s >= end_s and cut_short is None:
            cut_short = first
        del windows[row[0] : row[0] + len(lost)]
    return Evidence(windows, tuple(stalls), cut_short, path)


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
        parts = [build_window(direction, pair) for pair in pairwise(samples[before : last + 1])]
        losses = [part.lost / part.sent for part in parts if part.sent] or [0.0]
        stood = max(losses) - min(losses) > STOOD or any(part.blank for part in parts)
        rechecks.append(Recheck(samples[before].t_s, window, carried and window.sent > 0, stood))
    return rechecks


def _lossy_row(plan: Plan, windows: Sequence[Window], least: int) -> Iterator[Window]:
    """Yield the lossy windows at the beginning, without a break between them; the first ``least`` count as lossy.

    After a break the ramp was resumed, and its loss may be the DUT's.
    """
    end_s = windows[0].begin_s
    for i, window in enumerate(windows):
        if (i >= least and window.excess(plan.loss_threshold) <= 0) or window.begin_s > end_s + AT_ONCE:
            return
        yield window
        end_s = window.end_s


def standing_windows(windows: Sequence[Window]) -> list[Window]:
    """Windows in which the DUT may have stood still: at such a rate or a higher one it forwarded frames later."""

    def forwarded(later: Window, window: Window) -> bool:
        return later.lost < STOOD * later.sent or (window.blank and not later.blank)

    return [
        window
        for at, window in enumerate(windows)
        if window.lost > STOOD * window.sent
        and any(w.asked_pps >= window.asked_pps and forwarded(w, window) for w in windows[at + 1 :])
    ]


def stalls_of(direction: Direction, lossy: Sequence[Window], near_s: float = inf) -> Iterator[Stall]:
    """Yield a stall for each row of these windows, between which there is less than ``near_s``.

    Where nothing was forwarded, the stall's length follows from what was lost; later loss of its row is no part of it.
    """
    starts = [i for i, w in enumerate(lossy) if i == 0 or w.begin_s - lossy[i - 1].end_s >= near_s]
    for begin, end in pairwise([*starts, len(lossy)]):
        row = lossy[begin:end]
        begin_s, length_s = row[0].begin_s, row[-1].end_s - row[0].begin_s
        if blank := [i for i, window in enumerate(row) if window.blank]:
            row = row[max(0, blank[0] - 1) : blank[-1] + 2]
            begin_s, length_s = row[0].end_s - row[0].down_s, sum(window.down_s for window in row)
        sent, lost = sum(window.sent for window in row), sum(window.lost for window in row)
        yield Stall(direction, begin_s, length_s, sent, lost, bool(blank))
