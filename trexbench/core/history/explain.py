"""Explain the change of a figure: where the DUT spends more cycles on a packet, or that it does not. Pure."""

from __future__ import annotations

from calendar import month_name
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from .detect import FIRST_NIGHTS, Shape
from .known import is_date
from .levels import Event
from .series import FigureSeries, Point, median_of

NIGHTS = 10
"""Nights compared: before a change, and after it."""
MOST_PARTS = 3
SMALLEST_PART, SMALLEST_SUM, MOST_EXCESS = 0.1, 0.25, 0.25
"""Shares of the whole difference: of a node that is named; of all that are named; that other nodes may have saved."""
SMALLEST_CHANGE = 0.01
FEWEST_NODES, WEIGHT, ALIKE = 3, 0.05, 1 / 3
"""All nodes changed alike if so many have this share of the cycles, and none's change differs by more of the whole."""


def explain(series: FigureSeries, event: Event) -> Iterator[str]:
    """Sentences on a change of a figure: what the nights after it show, and what the latest do, if that is else.

    Cycles are named only where they changed in the direction that explains the figure; parts of them only where they
    make up a good part of the difference.
    """
    points, metric, change = series.points, series.metric, event.change
    since = day_words(points[change.at].night, points[-1].night)
    drifts = change.shape is Shape.DRIFT
    if drifts:
        yield f"a slow drift since about {since}, not a step"
    edge = change.at + FIRST_NIGHTS if drifts else change.at
    before, after = points[max(0, edge - NIGHTS) : edge], points[event.start : event.end]
    after = after[-NIGHTS:] if drifts else after[:NIGHTS]
    own = metric.unit == "cycles"
    levels = event.before, event.after
    was, now = levels if own else (median_of(point.cycles for point in part) for part in (before, after))
    if not was or not now:
        return
    worse = (event.after < event.before) is (metric.better == "higher")
    if abs(now / was - 1) >= SMALLEST_CHANGE and (now > was) is worse:
        if words := part_words(before, after, now - was):
            yield f"{words} cycles/packet since {since}"
            latest = points[-NIGHTS:]
            parts = [{name for name, _ in find_parts(before, part, now - was)} for part in (after, latest)]
            if event.end == len(points) and parts[1] and not parts[0] & parts[1]:
                yield f"of late {part_words(before, latest, now - was)}"
        elif not own:
            yield f"{was:.0f} -> {now:.0f} cycles/packet since {since}"
    elif worse and metric.bounded:
        level = "as much as" if abs(now / was - 1) < SMALLEST_CHANGE else "less than"
        yield f"a packet costs the DUT {level} before: {was:.0f} -> {now:.0f} cycles/packet"


def part_words(before: Sequence[Point], after: Sequence[Point], whole: float) -> str:
    """``ip4-lookup +31, ip4-rewrite +12 of +48``, the whole; empty where no node explains a good part of it."""
    total, parts = round(whole), find_parts(before, after, whole)
    if (share := _share_of_all(before, after, whole)) is not None:
        return f"all nodes {100 * share:+.0f} % each (clock, memory or build): {total:+d}"
    if not parts:
        return ""
    told, rest = ", ".join(f"{name} {cost:+d}" for name, cost in parts), total - sum(cost for _, cost in parts)
    return f"{told}, other nodes {rest:+d}: {total:+d}" if rest * whole < 0 else f"{told} of {total:+d}"


def _share_of_all(before: Sequence[Point], after: Sequence[Point], whole: float) -> float | None:
    """The share by which all nodes of weight became dearer or cheaper; None where they differ, or are not the whole."""
    was, now = (_median_nodes(part) for part in (before, after))
    heavy = [name for name, cost in was.items() if cost >= WEIGHT * sum(was.values())]
    if len(heavy) < FEWEST_NODES or not all(was[name] for name in heavy):
        return None
    shares = [now.get(name, 0.0) / was[name] - 1 for name in heavy]
    added, base = sum(now.get(name, 0.0) - was[name] for name in heavy), sum(was[name] for name in heavy)
    alike = all(abs(share - added / base) <= ALIKE * abs(added / base) for share in shares)
    is_whole = abs(added - whole) <= MOST_EXCESS * abs(whole)
    return added / base if alike and is_whole and abs(added) >= SMALLEST_CHANGE * base else None


def _median_nodes(nights: Sequence[Point]) -> Mapping[str, float]:
    """Each node's cycles per packet, the median of the nights that have any."""
    told = [point.nodes for point in nights if point.nodes]
    names = sorted({name for nodes in told for name in nodes})
    return {name: median(nodes.get(name, 0.0) for nodes in told) for name in names}


def find_parts(before: Sequence[Point], after: Sequence[Point], whole: float) -> list[tuple[str, int]]:
    """Nodes by the cycles per packet that they added to a difference, or took from it, the largest first.

    Together they are no more than the whole; a single one may be, as far as other nodes may have saved.
    """
    was, now = (_median_nodes(part) for part in (before, after))
    if not was or not now:
        return []
    costs = {name: round(now.get(name, 0.0) - was.get(name, 0.0)) for name in sorted({*was, *now})}
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


def day_range(first: str, last: str, now: str) -> str:
    """``12 to 16 November``, ``30 October to 2 November``, ``12 November``."""
    begin, end = day_words(first, now), day_words(last, now)
    if first == last:
        return end
    return f"{begin.partition(' ')[0] if first[:7] == last[:7] else begin} to {end}"
