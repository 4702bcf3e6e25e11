"""Rows, nights and runs for tests of the report."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import nights
from runs import World, make_plan, make_result

from trexbench.core.dut.cycles import Cost
from trexbench.core.history.causes import groups_of
from trexbench.core.history.cell import Cell
from trexbench.core.history.finding import Finding, Kind
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.history.regression import judge_rows
from trexbench.core.history.rows import RATE, Metric, RunRow, rows_of_tcp
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult
from trexbench.core.tcp.result import TcpResult
from trexbench.report.events import events_of_judgement, first_sentence
from trexbench.report.page.html import render
from trexbench.report.page.report import Report

HOSTILE = "<script>window.canary=1</script>\"'><img src=x onerror=canary=1></script><!--\0\u2028{{7*7}}$x$%{x}|`"

ODD = "\"'&lt;script&gt;window.canary=1&lt;script&gt; onload=canary=1 {{7*7}}$x$%{x}|`"
"""Name as hostile as a name may be."""
LIBRARY = "window.Plotly = {};"


def make_row(dut: str = "vpp", mode: str = "64b", at: str = "2026-11-20", **changes: Any) -> RunRow:
    """A complete row of one cell; ``changes`` are fields of Cell, or as of ``changed``."""
    cell = Cell(dut, mode, False, None)
    cell = replace(cell, **{name: changes.pop(name) for name in list(changes) if hasattr(cell, name)})
    values: dict[str, Any] = {
        "path": f"{at}/{cell}.json",
        "started": f"{at}T02:00:00Z",
        "night": at,
        "traffic": "0",
        "facts": None,
        "uncertainty_pps": 1e4,
        "line_share": 0.336,
    }
    return nights.make_row(cell=cell, **(values | changes))


def make_change(
    cell: Cell,
    at: str,
    before: float = 5e6,
    after: float = 4e6,
    metric: Metric = RATE,
    **more: Any,
) -> Finding:
    """A change that was found in a cell's history, for the worse unless the levels say otherwise."""
    return Finding(cell, metric, Kind.REGRESSION, 1, since=at[:10], before=before, after=after, **more)


def make_record(row: RunRow, error: str | None = None, state: CellState | None = None) -> CellRecord:
    cell = row.cell
    attempts = () if state is CellState.WAITING else (Attempt(row.started, None if error else row.path, error),)
    state = state or (CellState.FAILED if error else CellState.DONE)
    return CellRecord(cell, state, attempts)


def make_night(*records: CellRecord, at: str = "2026-11-20", **changes: Any) -> Night:
    return replace(Night("nightly", at, f"{at}T01:00:00Z", False, records), **changes)


def make_run(cell: Cell, **changes: Any) -> RunResult:
    """A run of this cell that saturates at ``capacity_pps``."""
    capacity_pps = changes.pop("capacity_pps", 660e3)
    of_ramps = {"ramp_s": changes.pop("ramp_s", 30.0), "latency_s": changes.pop("latency_s", 0.0)}
    plan = make_plan(bidir=cell.bidir, kind=cell.kind, **(of_ramps if cell.kind == "ramp" else {}))
    facts = {
        "name": cell.dut,
        "description": "a router",
        "facts": {"kernel": {"release": "6.18"}},
        "facts_sha256": "ab",
    }
    values: dict[str, Any] = {
        "dut": facts,
        "simulated": cell.simulated,
        "command": {"mode": str(cell.mode), "rx_queues": cell.rx_queues},
    }
    return make_result(plan, World(capacity_pps=capacity_pps, noise=0.01), **(values | changes))


def make_costs(*cycles: float, pps: float = 1e6) -> tuple[Cost, ...]:
    """A cost for each figure, at one rate after the other."""
    return tuple(
        Cost(Phase.HOLD, 1, 0.0, 10.0, at * pps, at * pps, at * pps, cycles_per_packet=one, with_polling=2 * one)
        for at, one in enumerate(cycles, 1)
    )


def lines_of(data: dict[str, Any], name: str, title: str = "") -> list[dict[str, Any]]:
    """The lines of a plot, from the page's data."""
    (figure,) = (one for one in data["figures"][name] if one.get("title", "") == title)
    return [line | {"x": list(data["arrays"][line["x"]])} for line in figure["lines"]]


def figures(data: dict[str, Any], metric: str, scale: str = "own") -> list[float | None]:
    """The first trend's figures in the unit of its axis, from the page's data."""
    line = lines_of(data, "trends", metric)[0]
    factor, more = line["scales"][scale]
    return [None if one is None else factor * one + more for one in line["y"]]


def unpacked(text: str) -> Any:
    """Unpack a page's data as its script does."""
    return json.loads(gzip.decompress(base64.b85decode(text.replace(".", "<"))))


def report_of(*results: TcpResult, **changes: Any) -> Report:
    """Return the report of all cells of these runs of TCP."""
    rows = [row for at, one in enumerate(results) for row in rows_of_tcp(one, f"{at}.json")]
    return Report(**{"rows": rows, "tcp": {row.cell: results[int(row.path[0])] for row in rows}, **changes})


def judged_report(rows: Sequence[RunRow], nights: Sequence[Night] = (), **changes: Any) -> Report:
    """Return the report of these rows as it is collected from files, without their documents."""
    judgement = judge_rows(rows, nights=nights)
    groups = groups_of(judgement)
    values: dict[str, Any] = {
        "nights": nights,
        "table": nights[-1] if nights else None,
        "groups": groups,
        "changes": [one for group in groups for finding in group.findings for one in finding.steps],
        "usual": judgement.usual,
        "judged": first_sentence(judgement),
        "events": events_of_judgement(judgement),
        "remarks": judgement.remarks,
    }
    return Report(rows, **(values | changes))


class Elements(HTMLParser):
    """Every element of a report's page with its attributes, its text, and the text of scripts."""

    def __init__(self, page: Report | str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self._inside = False
        self.feed(page if isinstance(page, str) else rendered(page))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag in ("script", "style")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside and self.scripts:
            self.scripts[-1] += data
        elif not self._inside:
            self.text.append(data.replace("\u00a0", " "))

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.found]

    @property
    def ids(self) -> set[str | None]:
        return {attributes.get("id") for _, attributes in self.found}

    @property
    def data(self) -> dict[str, Any]:
        """The data of the plots."""
        data: dict[str, Any] = unpacked(self.scripts[0])
        return data


def rendered(report: Report) -> str:
    """The page, with next to nothing in the place of the plotting library."""
    return render(report, LIBRARY)


def seen(report: Report) -> str:
    """The text of the page's body."""
    return "".join(Elements(rendered(report).partition("<body>")[2]).text)
