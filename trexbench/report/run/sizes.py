"""Throughput by frame size (RFC 2544, section 26.1) of several runs, as a plot and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ...core.history.cell import Cell
from ...core.load.plan import Direction
from ...core.result import RunResult, Status
from ...core.units import format_pps, format_share
from ...core.verdict.parts import Limit
from ..plots import SOFT, PlotAxis, PlotFigure, PlotLine, decades
from ..room import wrapped
from ..sheet import (
    Head,
    Item,
    Sheet,
    figure,
    format_sheet,
    heads_of,
    make_sheet,
    of_bits,
    of_line_share,
    of_pps,
    raw_of,
)
from ..words import format_bound, format_limit
from .summary import LIMIT_WORDS, line_speeds, verdict_words

MOST_DIRECTIONS = 4
"""Most directions that have a column each; with more, only their sum has one."""


@dataclass(frozen=True)
class Throughput:
    """Rates at which a frame size lost no more than ``loss``."""

    result: RunResult
    loss: float
    rates_pps: Mapping[Direction, float]
    bounds: frozenset[Direction]
    """Directions whose rate is a lower bound."""

    @property
    def frame_bytes(self) -> float:
        return self.result.plan.offers[0].mean_frame_bytes

    @property
    def total_pps(self) -> float:
        return sum(self.rates_pps.values())

    @property
    def l2_bps(self) -> float:
        """Bits per second of frames with their FCS, in all directions together."""
        plan = self.result.plan
        return sum(8 * plan.offer(one).mean_frame_bytes * pps for one, pps in self.rates_pps.items())

    @property
    def words(self) -> str:
        """Limit of the rate, in words."""
        if self.result.status is not Status.COMPLETE:
            return f"{self.result.status.value}: {self.result.reason or 'not measured to the end'}"
        directions = self.result.directions
        beyond = bool(self.bounds) and not any(one.at_least for one in directions)
        return LIMIT_WORDS[Limit.NONE] if beyond else verdict_words(self.result)


def throughputs(results: Sequence[RunResult]) -> list[Throughput]:
    """Return one for each size and each loss that was asked for."""
    every = []
    for result in results:
        plan, directions = result.plan, result.directions
        first, *others = plan.goals
        bounds = frozenset(one.direction for one in directions if one.at_least)
        every.append(Throughput(result, first, {one.direction: one.maximum_pps for one in directions}, bounds))
        for at, loss in enumerate(others, 1):
            found = [(one, one.goals[at]) for one in directions if len(one.goals) > at]
            bounds = frozenset(one.direction for one, goal in found if one.is_bound(goal))
            every.append(Throughput(result, loss, {one.direction: goal.maximum_pps for one, goal in found}, bounds))
    return every


def size_figure(duts: Sequence[tuple[str, tuple[Cell, ...], Sequence[RunResult]]]) -> PlotFigure:
    """Plot throughput over frame size. duts: name, cells and runs; those of one line rate share its line."""
    most: dict[object, PlotLine] = {}
    lines = []
    for name, cells, results in duts:
        by_size = sorted({plan.offers[0].mean_frame_bytes: plan for plan in (run.plan for run in results)}.items())
        sizes = [size for size, _ in by_size]
        rates = [sum(offer.line_rate_pps for offer in plan.offers) for _, plan in by_size]
        texts = [f"{format_pps(pps)} at {size:g} B" for size, pps in zip(sizes, rates, strict=True)]
        plan = results[0].plan
        ways = f", {len(plan.directions)} directions" if len(plan.directions) > 1 else ""
        label = f"line rate (theoretical maximum) at {line_speeds(plan)}{ways}"
        before = most.get(key := (*sizes, *rates))
        cells_of = cells if before is None else (*before.cells, *cells)
        most[key] = PlotLine(label, sizes, rates, texts, cells_of, SOFT, "dash")
        known = [one for one in throughputs(results) if one.total_pps]
        known.sort(key=lambda one: (one.loss, one.frame_bytes))
        by_loss = groupby(known, key=lambda one: one.loss)
        lines += [_size_line(name, list(some), cells, bool(number)) for number, (_, some) in enumerate(by_loss)]
    every = sorted({size for line in most.values() for size in line.x})
    names, span = [(size, f"{size:g}") for size in every], (every[0] / 1.2, every[-1] * 1.2)
    return PlotFigure(
        PlotAxis("frame size with FCS, bytes", names, span),
        PlotAxis("frames per second", decades(lambda pps: format_pps(pps, chosen=True), range(2, 10))),
        [*most.values(), *lines],
    )


def _size_line(name: str, points: Sequence[Throughput], cells: tuple[Cell, ...], further: bool) -> PlotLine:
    rates = [format_bound(point.total_pps, bool(point.bounds)) for point in points]
    shares = [format_share(point.result.plan.line_share(point.rates_pps), bool(point.bounds)) for point in points]
    sizes = [point.frame_bytes for point in points]
    each = zip(rates, sizes, shares, strict=True)
    return PlotLine(
        f"{name}, loss ≤ {format_limit(points[0].loss)}",
        sizes,
        [point.total_pps for point in points],
        [f"{rate} at {size:g} B, {share} of line rate" for rate, size, share in each],
        cells,
        dash="dot" if further else "solid",
        bounds=[bool(point.bounds) for point in points],
        words=[] if further else rates,
    )


def size_sheet(results: Sequence[RunResult]) -> Sheet:
    """Table of the throughputs, a row per size and loss."""
    ways = list(dict.fromkeys(way for result in results for way in result.plan.directions))
    shown = ways if 1 < len(ways) <= MOST_DIRECTIONS else []
    heads = (
        *heads_of("Frame [B]; Line rate [pps]^1; Loss [%]"),
        *(Head(str(way), "pps", rank=4) for way in shown),
        *heads_of("Throughput [pps]; L2 [bit/s]^2; Of line rate [%]^3; ::Limit"),
    )
    rows = (_size_items(one, shown) for one in throughputs(results))
    return make_sheet(heads, rows, "frame-sizes", "Throughput by frame size")


def format_sizes(results: Sequence[RunResult], room: int | None = None) -> str:
    """Format the table, and below it what its columns count. room: as of room_of."""
    ways = len({way for result in results for way in result.plan.directions})
    together = f"; throughput, L2 and share are of {ways} directions together" if ways > 1 else ""
    reach = f" (up to {ways}00 %)" if ways > 1 else ""
    words = f"frames with FCS; line rate: the theoretical maximum per direction at {line_speeds(results[0].plan)}"
    table = format_sheet(size_sheet(results), room)
    return "\n".join([*table, "", *wrapped([f"{words}{together}{reach}"], room)]) + "\n"


def _size_items(throughput: Throughput, shown: Sequence[Direction]) -> Iterator[Item | str]:
    """Yield the items of a row, with a column for each direction ``shown``. The share is the sum of the
    directions' shares of their line rates: up to 200 % for two."""
    plan, known = throughput.result.plan, throughput.total_pps > 0
    each = list(dict.fromkeys(offer.line_rate_pps for offer in plan.offers))
    yield figure(throughput.frame_bytes, "{:g} B".format)
    yield Item(" / ".join(map(format_pps, each)), " / ".join(map(raw_of, each)))
    yield Item(f"<= {format_limit(throughput.loss)}", raw_of(100 * throughput.loss))
    for way in shown:
        yield of_pps(throughput.rates_pps.get(way) or None, bound=way in throughput.bounds)
    bound = bool(throughput.bounds)
    yield of_pps(throughput.total_pps if known else None, bound=bound)
    yield of_bits(throughput.l2_bps if known else None, bound=bound)
    yield of_line_share(plan.line_share(throughput.rates_pps) if known else None, bound)
    yield throughput.words
