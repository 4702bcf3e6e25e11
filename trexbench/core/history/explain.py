"""Explain the change of a figure by the DUT's cycles per packet: where they changed, or that they did not. Pure."""

from __future__ import annotations

from calendar import month_name
from collections.abc import Iterator, Mapping

from .detect import FIRST_NIGHTS, LATELY, Shape
from .finding import Finding
from .known import is_date
from .rows import COST
from .series import FigureSeries, median_nodes, median_of

NODES = 3
"""The most nodes that are named; the fewest that may be called all nodes."""
PART, QUARTER = 0.1, 0.25
"""Shares of the whole: of a node that counts; of all named nodes, of what others may have saved, and the tolerance
between nodes that changed alike."""


def explain(series: FigureSeries, finding: Finding) -> Iterator[str]:
    """Yield sentences on a change: what the nights after it show, and the latest ones if they differ.

    Cycles are named only if they explain the figure's direction, nodes only if they are a good part of the difference.
    """
    points, metric = series.points, series.metric
    since = day_words(points[finding.start].night, points[-1].night)
    drifts = finding.shape is Shape.DRIFT
    if drifts:
        yield f"a slow drift since about {since}, not a step"
    edge = finding.start + FIRST_NIGHTS if drifts else finding.start
    before, after = points[max(0, edge - LATELY) : edge], points[finding.start : finding.end]
    after = after[-LATELY:] if drifts else after[:LATELY]
    own = metric.unit == COST.unit
    levels = finding.before, finding.after
    was, now = levels if own else (median_of(point.cycles for point in part) for part in (before, after))
    if not was or not now:
        return
    same = abs(now / was - 1) < COST.minimum
    if not same and (now > was) is finding.worse:
        each = ([nodes for point in part if (nodes := point.nodes)] for part in (before, after, points[-LATELY:]))
        nodes, since_then, latest = map(median_nodes, each)
        if words := part_words(nodes, since_then, now - was):
            yield f"{words} cycles/packet since {since}"
            parts, later = (find_parts(nodes, part, now - was) for part in (since_then, latest))
            if finding.end == len(points) and later and not parts.keys() & later.keys():
                yield f"of late {part_words(nodes, latest, now - was)}"
        elif not own:
            yield f"{was:.0f} -> {now:.0f} cycles/packet since {since}"
    elif finding.worse and metric.bounded:
        level = "as much as" if same else "less than"
        yield f"a packet costs the DUT {level} before: {was:.0f} -> {now:.0f} cycles/packet"


def part_words(was: Mapping[str, float], now: Mapping[str, float], whole: float) -> str:
    """Name the nodes that explain a difference: ``ip4-lookup +31, ip4-rewrite +12 of +48``; empty if none do.

    was, now: cycles per packet by node.
    """
    total, parts = round(whole), find_parts(was, now, whole)
    heavy = {name: cost for name, cost in was.items() if cost > PART * sum(was.values())}
    if len(heavy) >= NODES:
        added = {name: now.get(name, 0.0) - cost for name, cost in heavy.items()}
        share, rest = sum(added.values()) / sum(heavy.values()), sum(added.values()) - whole
        alike = all(abs(added[name] / cost - share) <= QUARTER * abs(share) for name, cost in heavy.items())
        if alike and abs(rest) <= QUARTER * abs(whole) and abs(share) >= COST.minimum:
            return f"all nodes {100 * share:+.0f} % each (clock, memory or build): {total:+d}"
    words, rest = ", ".join(f"{name} {cost:+d}" for name, cost in parts.items()), total - sum(parts.values())
    return words and (f"{words}, other nodes {rest:+d}: {total:+d}" if rest * whole < 0 else f"{words} of {total:+d}")


def find_parts(was: Mapping[str, float], now: Mapping[str, float], whole: float) -> dict[str, int]:
    """Find the nodes that added cycles per packet to a difference, or took them from it, the largest first.

    Together they do not exceed the whole; a single one may, as far as other nodes may have saved.
    """
    if not was or not now:
        return {}
    costs = {name: round(now.get(name, 0.0) - was.get(name, 0.0)) for name in sorted({*was, *now})}
    alike = [name for name, cost in costs.items() if cost * whole > 0 and abs(cost) >= PART * abs(whole)]
    named, most = sorted(alike, key=lambda name: -abs(costs[name]))[:NODES], abs(round(whole))
    while len(named) > 1 and sum(abs(costs[name]) for name in named) > most:
        named.pop()
    share = sum(abs(costs[name]) for name in named)
    return {name: costs[name] for name in named} if QUARTER * most <= share <= (1 + QUARTER) * most else {}


def day_words(night: str, now: str) -> str:
    """Format a night: ``12 November``, with the year unless it is that of ``now``; other text as it is."""
    if not is_date(night):
        return night
    year = "" if now.startswith(night[:4]) else f" {night[:4]}"
    return f"{int(night[8:])} {month_name[int(night[5:7])]}{year}"


def day_range(first: str, last: str, now: str) -> str:
    """Format a range of nights: ``12 to 16 November``, ``30 October to 2 November``, ``12 November``."""
    begin, end = day_words(first, now), day_words(last, now)
    if first == last:
        return end
    return f"{begin.partition(' ')[0] if first[:7] == last[:7] else begin} to {end}"
