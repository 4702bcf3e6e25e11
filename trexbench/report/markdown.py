"""The report for a chat or a wiki: the same tables and findings as markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .clean import clean
from .grid import Block, Grid
from .html_filters import duration, figure
from .latency import LatencyTable
from .report import Report

_MEANT = {letter: f"\\{letter}" for letter in "\\`*_[]#~"} | {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    "|": "&#124;",
    "@": "@\u200b",  # a name shall not call for its owner
    "!": "&#33;",
}
_ESCAPES = str.maketrans(_MEANT)
MOST_FAILURES = 40


def to_markdown(report: Report) -> str:
    """Title, changes, tables, failures, trends; names are escaped, they cannot become links, tags or mentions."""
    blocks = [
        [f"# {escape(report.title)}", "", _about(report)],
        *([["> **SIMULATED**: " + _simulated(report)]] if report.simulated else []),
        ["## What changed", "", *_changes(report)],
        *([["## Failed", "", *_failures(report)]] if report.grid.failures else []),
        ["## Highest rate without loss, % of line rate", "", *_grid(report.grid, rates=False)],
        ["## The same in frames per second", "", *_grid(report.grid, rates=True)],
        *([["## Latency, mean (99 % within)", "", *_latency(report.latency)]] if report.latency.rows else []),
        *([["## Trends", "", *_trends(report)]] if report.trends else []),
        *([["## Warnings", "", *_doubts(report)]] if any(note.doubts for note in report.notes) else []),
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def escape(text: object, most: int = 300) -> str:
    """Text that means nothing to markdown or HTML."""
    escaped = clean(text, most).translate(_ESCAPES).replace("://", ":\u200b//")
    return f"\\{escaped}" if escaped[:1] in ("-", "+", "=") else escaped


def _about(report: Report) -> str:
    parts = [escape(report.grid.title), f"{_count(len(report.rows), 'run')} of {_count(len(report.trends), 'cell')}"]
    return ", ".join([*parts, *([f"made {escape(report.made)}"] if report.made else [])])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _simulated(report: Report) -> str:
    if report.all_simulated:
        return "no real packet was sent, every figure is a model's."
    return "some runs sent no real packet; they are marked as simulated."


def _changes(report: Report) -> Iterator[str]:
    for change in report.changes:
        note = f" (known: {escape(change.note)})" if change.note else ""
        yield f"- **{'worse' if change.bad else 'better'}**: {escape(change.text)}{note}"
        yield from (f"  - {escape(reason)}" for reason in change.reasons)
    if report.changes:
        yield ""
    yield escape(report.judged or "Nobody has looked for changes.")
    for remark in report.remarks:
        yield ""
        yield f"note: {escape(remark, 1000)}"


def _failures(report: Report) -> Iterator[str]:
    failures = report.grid.failures
    yield from (f"- **{escape(cell)}**: {escape(reason)}" for cell, reason in failures[:MOST_FAILURES])
    if len(failures) > MOST_FAILURES:
        yield f"- and {len(failures) - MOST_FAILURES} more"


def _grid(grid: Grid, rates: bool) -> Iterator[str]:
    if not grid.columns:
        yield "There is no run to report."
        return
    yield _line(["Loadtest", *(escape(column) for column in grid.columns)])
    yield _line(["---", *("---:" for _ in grid.columns)])
    for block in grid.blocks:
        yield from _block(block, rates, len(grid.columns))


def _block(block: Block, rates: bool, columns: int) -> Iterator[str]:
    yield _line([f"***{block.name}***", *[""] * columns])
    for row in block.rows:
        texts = [cell.rate if rates else cell.percent for cell in row.cells]
        texts = [text.replace(">= ", "\u2265 ") for text in texts]
        cells = [f"**{text}**" if cell.best else text for text, cell in zip(texts, row.cells, strict=True)]
        yield _line([escape(row.mode), *cells])


def _latency(table: LatencyTable) -> Iterator[str]:
    yield _line(["Run", "Direction", *(f"at {100 * share:g} % of the throughput" for share in table.shares)])
    yield _line(["---", "---:", *["---:"] * len(table.shares)])
    for row in table.rows:
        loads = [
            "-" if one is None else f"{duration(one.mean_s)} ({duration(one.p99_s)}){' under loss' * one.lossy}"
            for one in row.loads
        ]
        yield _line([escape(row.cell), escape(row.direction), *loads])


def _trends(report: Report) -> Iterator[str]:
    heads = [f"{metric.name}, latest (median)" for metric in report.metrics]
    yield _line(["Cell", *heads, "runs", "failed"])
    yield _line(["---", *["---:"] * (len(heads) + 2)])
    for trend in report.trends:
        figures = []
        for metric in report.metrics:
            values = trend.values(metric)
            bound = "\u2265 " if values and metric.bounded and values[-1][0].at_least else ""
            latest = (
                f"{bound}{figure(values[-1][1], metric)} ({figure(trend.middle(metric), metric)})" if values else "-"
            )
            figures.append(latest)
        yield _line([escape(trend.cell), *figures, str(len(trend.runs)), str(len(trend.failed))])


def _doubts(report: Report) -> Iterator[str]:
    for note in report.notes:
        yield from (f"- {escape(note.cell)}: {escape(doubt)}" for doubt in note.doubts)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
