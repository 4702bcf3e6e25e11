"""What explains the change of a figure: where the DUT spends more cycles on a packet, or that it does not. Pure."""

from __future__ import annotations

from calendar import month_name
from collections.abc import Iterator, Sequence
from statistics import median

from .detect import FIRST_NIGHTS, Change, Shape
from .known import is_date
from .series import Point, Series, median_of

NIGHTS = 10
"""So many nights before a change, and so many of the last ones, are compared."""
MOST_PARTS = 3
SMALLEST_PART, SMALLEST_SUM, MOST_EXCESS = 0.1, 0.25, 0.25
"""As shares of the whole difference: a node that is named; all that are named; what other nodes may have saved."""
SMALLEST_CHANGE = 0.01


def explain(series: Series, change: Change, levels: tuple[float, float], latest: Sequence[Point]) -> Iterator[str]:
    """Sentences on the change of a figure. levels: before and now, as they are told; latest: the nights of the second.

    Cycles are told only where they changed in the direction that explains the figure; parts of them only where they
    make up a good part of the difference.
    """
    points, metric = series.points, series.metric
    since = day_words(points[change.at].night, points[-1].night)
    if change.shape is Shape.DRIFT:
        yield f"a slow drift since about {since}, not a step"
    edge = change.at if change.shape is Shape.STEP else change.at + FIRST_NIGHTS
    before, after = points[max(0, edge - NIGHTS) : edge], latest[-NIGHTS:]
    own = metric.unit == "cycles"
    was, now = levels if own else (median_of(point.cycles for point in part) for part in (before, after))
    if not was or not now:
        return
    worse = (levels[1] < levels[0]) is (metric.better == "higher")
    if abs(now / was - 1) >= SMALLEST_CHANGE and (now > was) is worse:
        if words := part_words(before, after, now - was):
            yield f"{words} cycles/packet since {since}"
        elif not own:
            yield f"{was:.0f} -> {now:.0f} cycles/packet since {since}"
    elif worse and metric.bounded:
        level = "as much as" if abs(now / was - 1) < SMALLEST_CHANGE else "less than"
        yield f"a packet costs the DUT {level} before: {was:.0f} -> {now:.0f} cycles/packet"


def part_words(before: Sequence[Point], after: Sequence[Point], whole: float) -> str:
    """``ip4-lookup +31, ip4-rewrite +12 of +48``, the whole; empty where no node explains a good part of it."""
    total, parts = round(whole), find_parts(before, after, whole)
    if not parts:
        return ""
    told, rest = ", ".join(f"{name} {cost:+d}" for name, cost in parts), total - sum(cost for _, cost in parts)
    return f"{told}, other nodes {rest:+d}: {total:+d}" if rest * whole < 0 else f"{told} of {total:+d}"


def find_parts(before: Sequence[Point], after: Sequence[Point], whole: float) -> list[tuple[str, int]]:
    """Nodes by the cycles per packet that they added to a difference, or took from it, the largest first.

    Together they are no more than the whole; a single one may be, as far as other nodes may have saved.
    """
    was, now = ([point.nodes for point in part if point.nodes] for part in (before, after))
    if not was or not now:
        return []
    costs = {
        name: round(median(nodes.get(name, 0.0) for nodes in now) - median(nodes.get(name, 0.0) for nodes in was))
        for name in sorted({name for nodes in (*was, *now) for name in nodes})
    }
    least = max(1.0, SMALLEST_PART * abs(whole))
    alike = [(name, cost) for name, cost in costs.items() if cost * whole > 0 and abs(cost) >= least]
    parts = sorted(alike, key=lambda one: (-abs(one[1]), one[0]))[:MOST_PARTS]
    most = abs(round(whole))
    while len(parts) > 1 and sum(abs(cost) for _, cost in parts) > most:
        parts.pop()
    told = sum(abs(cost) for _, cost in parts)
    return parts if SMALLEST_SUM * most <= told <= (1 + MOST_EXCESS) * most else []


def day_words(night: str, now: str) -> str:
    """``12 November``, with the year if it is not that of ``now``; text that is not a date is returned as it is."""
    if not is_date(night) or not 1 <= int(night[5:7]) <= 12:
        return night
    year = "" if now.startswith(night[:4]) else f" {night[:4]}"
    return f"{int(night[8:])} {month_name[int(night[5:7])]}{year}"
