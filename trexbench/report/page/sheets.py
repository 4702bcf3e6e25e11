"""The page's tables as values: what stands in each cell, and the raw figure behind it for sorting and for CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...core.history.baseline import Delta, find_delta, nights_measured
from ...core.history.regression import NEEDED_NIGHTS
from ...core.history.rows import Cell, Metric, RunRow, cells_of
from ...core.history.series import night_of
from ...core.units import format_pps, format_time
from ..clean import clean
from ..groups import too_few
from ..tcp.text import LIMIT_WORDS as TCP_LIMITS
from ..words import NONE, format_change, format_cycles, format_figure, format_loss, interval_words
from .grid import Grid, GridCell, change_text
from .overlay import Curve
from .report import Report

_UNITS = {"us": "\u00b5s"}
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


@dataclass(frozen=True)
class Head:
    """unit: of the raw figures; words: the column is text, aligned to the left."""

    name: str
    unit: str = ""
    words: bool = False

    @property
    def raw(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name


@dataclass(frozen=True)
class Item:
    """text: as it is shown; raw: as CSV has it. mark: its class on the page."""

    text: str
    raw: str
    mark: str = ""


@dataclass(frozen=True)
class Line:
    """One row. cell: of which it tells, None: of no single one; metric: its name, where the row tells of one."""

    items: tuple[Item, ...]
    cell: Cell | None = None
    metric: str | None = None


@dataclass(frozen=True)
class Sheet:
    """name: of its CSV file, without ending; caption: what it shows."""

    name: str
    caption: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]


def sheets_of(report: Report) -> Iterator[Sheet]:
    """Every table of the page that has a row, in the page's order."""
    every = (
        grid_sheet("maximum-rate", "Maximum rate, % of line rate", report.grid, rates=False),
        grid_sheet("maximum-rate-absolute", "Maximum rate", report.grid, rates=True),
        grid_sheet("cycles-at-rates", "Cycles per packet at given rates", report.cost_grid, rates=True),
        tcp_sheet(report),
        curve_sheet(report),
        older_sheet(report),
        cost_sheet(report),
        latency_sheet(report),
        trend_sheet(report),
    )
    return (_dated(one, report) for one in every if one.lines)


def _dated(sheet: Sheet, report: Report) -> Sheet:
    """With the night in the names of runs that are not of the report's night."""
    if sheet.heads[0].name != "Run" or sheet.heads[1].name == "Night":
        return sheet
    names = {clean(cell): clean(report.name_of(cell)) for cell in report.dated}
    found = ((line, names.get(line.items[0].text)) for line in sheet.lines)
    lines = (replace(line, items=(Item(name, name), *line.items[1:])) if name else line for line, name in found)
    return replace(sheet, lines=tuple(lines))


def to_csv(sheet: Sheet) -> str:
    """With heads; text that a spreadsheet would take for a formula is quoted as text."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([harmless(head.raw) for head in sheet.heads])
    writer.writerows([harmless(item.raw) for item in line.items] for line in sheet.lines)
    return file.getvalue()


def harmless(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") and not _NUMBER.fullmatch(text) else text


def grid_sheet(name: str, caption: str, grid: Grid, rates: bool) -> Sheet:
    """A column for each column of the table, and one for its changes where any is known."""
    heads = [Head("Direction", words=True), Head("Traffic", words=True)]
    for column in grid.columns:
        heads.append(Head(clean(column), grid.unit if rates else "% of line rate"))
        heads += [Head(f"{clean(column)}, change", "%")] if grid.has_deltas else []
    lines = []
    for block in grid.blocks:
        for row in block.rows:
            items = [_text(block.name), _text(row.mode)]
            for cell in row.cells:
                items.append(grid_item(cell, rates))
                items += [_change(cell)] if grid.has_deltas else []
            lines.append(Line(tuple(items)))
    return Sheet(name, caption, tuple(heads), tuple(lines))


def grid_item(cell: GridCell, rates: bool) -> Item:
    """The figure: in % of the line rate, or in the unit of the figure itself."""
    text = cell.rate if rates else cell.percent
    value = cell.value if rates else None if cell.share is None else 100 * cell.share
    raw = "failed" if cell.state == "failed" else "" if value is None else _raw(value, cell.at_least)
    return Item(text, raw, cell.state + (" bound" if cell.at_least else ""))


def _change(cell: GridCell) -> Item:
    return Item(cell.change, "" if cell.delta is None else _raw(100 * cell.delta.share))


def curve_sheet(report: Report) -> Sheet:
    heads = _heads(
        ":Run; :Direction; Rate [pps]; 95 % interval [pps]; First bad [pps]; Confirmed [pps]; "
        "Max received [pps]; Loss in the hold [share]; :Limit"
    )
    lines = tuple(Line((*_curve(curve), _text(curve.limit_words)), curve.cell) for curve in report.curves)
    return Sheet("ramps", "The latest ramp of each cell", heads, lines)


def _curve(curve: Curve) -> Iterator[Item]:
    of = curve.result
    yield from (_text(curve.cell), _text(curve.direction), _pps(of.maximum_pps, of.at_least), _interval(curve))
    yield from map(_pps, (of.first_bad_pps, of.confirmed_pps, of.max_received_pps))
    yield _item(of.hold_loss, format_loss)


def _interval(curve: Curve) -> Item:
    of = curve.result
    known = of.low_pps is not None and of.high_pps is not None
    return Item(interval_words(of), f"{_raw(of.low_pps or 0.0)} to {_raw(of.high_pps or 0.0)}" if known else "")


def older_sheet(report: Report) -> Sheet:
    heads = _heads(
        ":Run; :Night; :Which; :Direction; Rate [pps]; 95 % interval [pps]; Change since [%]; "
        "First bad [pps]; Max received [pps]; Loss in the hold [share]; :Note"
    )
    latest = {(curve.cell, curve.direction): curve for curve in report.curves}
    lines = []
    for cell, some in report.older.items():
        for one in some:
            about = (_text(cell), _text(one.night), _text(one.words))
            for curve in one.curves:
                of = curve.result
                note = _text("the DUT was configured differently" if one.otherwise else "")
                figures = map(_pps, (of.first_bad_pps, of.max_received_pps))
                way, *_, interval = list(_curve(curve))[1:4]
                since = _share(_against(latest.get((cell, curve.direction)), curve))
                rate = _pps(of.maximum_pps, of.at_least)
                loss = _item(of.hold_loss, format_loss)
                lines.append(Line((*about, way, rate, interval, since, *figures, loss, note), cell))
            if not one.curves and (one.unlike or not (one.costs or one.latencies)):
                why = _text(f"not drawn over the latest: {one.unlike or 'no ramp was measured'}")
                lines.append(Line((*about, *[_item(None, format_pps)] * 7, why), cell))
    return Sheet("older-nights", "Older nights beside the latest", heads, tuple(lines))


def _against(latest: Curve | None, older: Curve) -> float | None:
    """How much more or less a direction of the latest run forwarded than an older run's; unknown for bounds."""
    if latest is None or latest.result.at_least or older.result.at_least or not older.result.maximum_pps:
        return None
    return latest.result.maximum_pps / older.result.maximum_pps - 1


def cost_sheet(report: Report) -> Sheet:
    heads = _heads(":Run; :Phase; Forwarded [pps]; Cycles/packet; With polling; Vectors/call; Energy [\u00b5J/packet]")
    lines = []
    measured = [
        (cell, name, cost)
        for cell, latest in report.costs.items()
        for name, costs in (
            (str(cell), latest),
            *((f"{cell}, {one.night}", one.costs) for one in report.older.get(cell, ())),
        )
        for cost in costs
    ]
    for cell, name, cost in measured:
        if cost.phase.value != "ramp":
            phase = f"{cost.phase.value} {cost.trial}" if cost.trial > 1 else cost.phase.value
            cycles = (_item(value, format_cycles) for value in (cost.cycles_per_packet, cost.with_polling))
            more = (_item(value, "{:.4g}".format) for value in (cost.vectors_per_call, cost.uj_per_packet))
            lines.append(Line((_text(name), _text(phase), _pps(cost.forwarded_pps), *cycles, *more), cell))
    return Sheet("cycles", "Cycles per packet", heads, tuple(lines))


def latency_sheet(report: Report) -> Sheet:
    heads = _heads(
        ":Run; :Direction; Load [% of the throughput]; Offered [pps]; Mean [\u00b5s]; p50 [\u00b5s]; "
        "p99 [\u00b5s]; Max [\u00b5s]; Min [\u00b5s]; Jitter [\u00b5s]; Loss [share]; "
        "Tagged sent; Back"
    )
    lines = []
    for row in report.latency.rows:
        for one in filter(None, row.loads):
            times = (one.mean_s, one.p50_s, one.p99_s, one.max_s, one.min_s, one.jitter_s)
            loss = _item(one.loss, format_loss)
            items = (
                _text(row.cell),
                _text(row.direction),
                Item(f"{100 * one.share:g} %", _raw(100 * one.share)),
                _pps(one.offered_pps),
                *(_item(time, format_time, 1e6) for time in times),
                Item(f"{loss.text} (full queues)", loss.raw, "bad") if one.lossy else loss,
                Item(str(one.sent), str(one.sent)),
                Item(str(one.received), str(one.received)),
            )
            lines.append(Line(items, row.cell))
    return Sheet("latency", "Latency at shares of the throughput", heads, tuple(lines))


def trend_sheet(report: Report) -> Sheet:
    """A row for each figure of each cell; of a cell that only ever failed one without a figure."""
    heads = _heads(":Cell; :Figure; Latest; Change since baseline [%]; Median; Noise [%]; Runs; Failed")
    histories, levels = cells_of(report.rows), report.levels
    lines = []
    for trend in report.trends:
        counts = (
            Item(str(len(trend.runs)), str(len(trend.runs))),
            Item(str(len(trend.failed)), str(len(trend.failed))),
        )
        for metric in trend.metrics:
            row, value = trend.values(metric)[-1]
            delta = find_delta(row, histories[trend.cell], metric, levels.get((trend.cell, metric.name)))
            bound = metric.bounded and row.at_least
            items = (
                _text(trend.cell),
                Item(
                    metric.name,
                    metric.name
                    if metric.unit in metric.name
                    else f"{metric.name}, {_UNITS.get(metric.unit, metric.unit)}",
                ),
                _with_night(_figure(value, metric, bound), row, report),
                Item(
                    change_text(delta) or NONE,
                    "" if delta is None else _raw(100 * delta.share),
                    _mark(delta is not None and delta.beyond and delta.worse),
                ),
                _figure(trend.middle(metric), metric),
                Item(NONE, "") if bound else _noise(delta, histories[trend.cell], metric),
                *counts,
            )
            lines.append(Line(items, trend.cell, metric.name))
        if not trend.metrics:
            lines.append(Line((_text(trend.cell), *[_text("")] * 5, *counts), trend.cell))
    return Sheet("trends", "Every figure of every cell", heads, tuple(lines))


def _with_night(item: Item, row: RunRow, report: Report) -> Item:
    """The figure with the night of its run in brackets, if that is not the report's."""
    return item if night_of(row) == report.night else replace(item, text=f"{item.text} ({clean(night_of(row))})")


def _noise(delta: Delta | None, rows: Sequence[RunRow], metric: Metric) -> Item:
    """Of the nights that are the baseline."""
    if delta is None or delta.noise is None:
        nights = nights_measured(rows, metric)
        return Item(too_few(nights) if nights < NEEDED_NIGHTS else NONE, "")
    return Item(f"{100 * delta.noise:.1f} %", _raw(100 * delta.noise))


def tcp_sheet(report: Report) -> Sheet:
    heads = _heads(
        ":Run; Mean rate [bit/s]; 95 % interval [\u00b1 bit/s]; :Limit; Retransmits; "
        "Ping idle [\u00b5s]; Ping loaded [\u00b5s]; Router CPU [share of its cores]; "
        "Hottest core [share]; Mbit/s per % of a core; Power [W]"
    )
    lines = []
    for one in report.tcp_cells:
        of = one.summary
        figures: Sequence[float | None] = (
            of.uncertainty_bps, one.retransmits, _micro(of.ping_idle_s), _micro(of.ping_loaded_s), one.busy,
            one.hottest.busy if one.hottest else None, one.bps_per_percent and one.bps_per_percent / 1e6, of.power_w,
        )  # fmt: skip
        apart, *others = (_item(value, "{:.4g}".format) for value in figures)
        rate = Item(one.rate, _raw(of.rate_bps, of.at_least))
        lines.append(Line((_text(one.cell), rate, apart, _text(TCP_LIMITS[of.limit]), *others), one.cell))
    return Sheet("tcp", "TCP through the router", heads, tuple(lines))


def _heads(names: str) -> tuple[Head, ...]:
    """Separated by semicolons; a unit stands in brackets, and a colon before a name whose column is text."""
    found = (re.fullmatch(r"(:?)(.*?)(?: \[(.*)\])?", name.strip()) for name in names.split(";"))
    return tuple(Head(one[2], one[3] or "", bool(one[1])) for one in found if one is not None)


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else 1e6 * seconds


def _mark(worse: bool) -> str:
    return "bad" if worse else ""


def _text(value: object) -> Item:
    text = clean(value)
    return Item(text, text)


def _raw(value: float, bound: bool = False) -> str:
    return f"{'>=' if bound else ''}{value:.8g}"


def _item(value: float | None, form: Callable[[float], str], scale: float = 1.0) -> Item:
    return Item(NONE, "") if value is None else Item(form(value), _raw(scale * value))


def _pps(value: float | None, bound: bool = False) -> Item:
    return Item(NONE, "") if value is None else Item(f"{'>= ' if bound else ''}{format_pps(value)}", _raw(value, bound))


def _share(value: float | None) -> Item:
    return Item(NONE, "") if value is None else Item(format_change(value), _raw(100 * value))


def _figure(value: float | None, metric: Metric, bound: bool = False) -> Item:
    if value is None:
        return Item(NONE, "")
    return Item(f"{'>= ' if bound else ''}{format_figure(value, metric)}", _raw(value, bound))
