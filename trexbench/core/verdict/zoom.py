"""The second, fine ramp across a knee that the first one found: what it has to cover, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..load.plan import Direction
from ..load.sample import Phase, by_trial
from ..load.windows import RunWindows, Window, measured_windows, near_blanks
from ..units import format_pps
from .blame import blame
from .knee import Knee, find_sustained, locate
from .model import Limit
from .path import find_path

MARGIN = 0.03
"""A zoom reaches beyond the knee's interval by this share of its rate, and by a quarter of the interval."""
WIDER = 1.5
"""The interval is so many times as wide as a coarse ramp's would be: many windows lie near the knee, and each of them
has its say twice, as good or bad, and in the line."""


class Zoom(NamedTuple):
    """One direction's knee as the zooms show it; else why they show none (empty: there was no zoom).

    blank_s: when a stall began for which nothing was forwarded; its windows are left out.
    """

    knee: Knee | None
    problem: str = ""
    blank_s: float | None = None


def join_spans(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The ramps that cover these intervals of knees, in shares of the target, ascending; those that overlap are one."""
    spans: list[tuple[float, float]] = []
    for low, high in sorted(intervals):
        beyond = MARGIN * high + (high - low) / 4
        begin, end = max(0.0, low - beyond), min(1.0, high + beyond)
        if spans and begin <= spans[-1][1]:
            begin, end = spans[-1][0], max(end, spans.pop()[1])
        spans.append((begin, end))
    return spans


def find_zoom(measured: RunWindows, direction: Direction, about_pps: float) -> Zoom:
    """The direction's knee in the zoom across about_pps, the one that the ramp found: loss sets in, and lasts.

    A zoom across another direction's knee says nothing: loss in it is of something else.
    """
    plan, samples, path = measured.plan, measured.samples, find_path(measured, direction)
    zooms = by_trial(samples, Phase.ZOOM)
    for number, inside in zooms.items():
        one = [s for s in samples if s.phase is not Phase.ZOOM or s.trial == number]
        zoom = measured_windows(plan, one, direction, (Phase.ZOOM,), measured.skew_s(direction))
        is_whole = inside[-1] + 1 < len(samples)
        if not zoom or zoom[0].asked_pps > about_pps or (zoom[-1].asked_pps < about_pps and is_whole):
            continue
        found = [path.correct(w) for w in zoom[1:] if w.sent > 0]  # to the first one the load jumps from nothing
        windows, blank_s = _without_blanks(found)
        if len(windows) < plan.windows + 1:
            return Zoom(None, "it was cut short")
        step_pps = (found[-1].asked_pps - found[0].asked_pps) / (len(found) - 1)
        flags = [w.is_bad(plan.loss_threshold) for w in windows]
        index = _last_onset(flags, plan.windows)
        if index:
            limit, reasons = blame(plan, windows[index : index + plan.windows])
            if limit is not Limit.DUT:
                return Zoom(None, "; ".join(reasons))
            knee = locate(plan, windows, step_pps, range(index, index + plan.windows))
            low, high = ((1 - WIDER) * knee.maximum_pps + WIDER * end for end in knee.interval_pps)
            return Zoom(replace(knee, interval_pps=(max(0.0, low), high)), blank_s=blank_s)
        sent = [w.sent_pps for w in windows]
        span = f"loss from {format_pps(min(sent))} on" if index == 0 else f"no loss up to {format_pps(max(sent))}"
        return Zoom(None, span)
    return Zoom(None, "none went across it" if zooms else "")


def _without_blanks(windows: Sequence[Window]) -> tuple[list[Window], float | None]:
    """The windows without those of stalls that ended and their neighbours, and when the first of these began."""
    blank = [w.blank for w in windows]
    ended = len(blank) - blank[::-1].index(False) if False in blank else 0
    out = [near and i < ended for i, near in enumerate(near_blanks(windows))]
    begun_s = next((w.begin_s for w, is_blank in zip(windows[:ended], blank, strict=False) if is_blank), None)
    return [w for w, left_out in zip(windows, out, strict=True) if not left_out], begun_s


def _last_onset(flags: Sequence[bool], count: int) -> int | None:
    """Where loss sets in after the last windows, so many in a row, that were good: loss before them was a stall."""
    good = find_sustained([not flag for flag in reversed(flags)], count)
    first = 0 if good is None else len(flags) - good
    index = find_sustained(flags[first:], count)
    return None if index is None else first + index
