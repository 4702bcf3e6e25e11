"""Figures of an emulated processor: each form of output says so, and none of another processor's does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from effort import by_day
from matplotlib.figure import Figure
from matplotlib.text import Text
from nights import make_rows, noisy
from report_cases import judged_report, make_night, make_record, make_row, make_run, rendered, seen
from runs import make_result, sized
from test_report_regress import SLOWER
from verbs import empty_directory, run  # noqa: F401

from trexbench.core.history.compare import compare_sets
from trexbench.core.history.known import Known
from trexbench.core.history.regression import Judgement
from trexbench.core.history.rows import RunRow, row_of
from trexbench.core.result import RunResult
from trexbench.report.compare import runs_compared, sets_compared
from trexbench.report.listing import run_sheet
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.page.templates import to_markdown
from trexbench.report.regress import format_judgement, format_junit, format_markdown, judgement_values
from trexbench.report.run.picture import compose
from trexbench.report.run.picture_plot import compose_sizes
from trexbench.report.sheet import to_csv
from trexbench.report.sheet import to_markdown as table_of
from trexbench.results.store import RunWriter
from trexbench.suite.jobs import LOADS, Job
from trexbench.suite.notify import summary

ACCELERATORS = ("tcg", "kvm", "")


def dut_of(accelerator: str) -> dict[str, str]:
    return {"name": "vpp", **({"accelerator": accelerator} if accelerator else {})}


def result_of(accelerator: str) -> RunResult:
    return make_result(dut=dut_of(accelerator), simulated=False)


def sized_of(accelerator: str) -> RunResult:
    return sized(64, dut=dut_of(accelerator), simulated=False)


def rows_of(accelerator: str) -> list[RunRow]:
    values = noisy(20)
    return make_rows([*values, *(0.9 * value for value in values[:3])], accelerator=accelerator)


def judgement_of(accelerator: str) -> Judgement:
    cell = make_row(accelerator=accelerator).cell
    return Judgement((replace(SLOWER, cell=cell),), 3)


def report_of(accelerator: str, night: bool = False) -> Report:
    rows = [make_row(accelerator=accelerator)]
    unmarked = replace(rows[0], cell=rows[0].cell.unmarked, accelerator="")
    nights = [make_night(make_record(unmarked))] if night else []
    return judged_report(rows, nights, runs={rows[0].cell: make_run(rows[0].cell)})


def tables(report: Report) -> dict[str, str]:
    return {sheet.name: to_csv(sheet) for sheet in sheets_of(report)}


def words_of(figure: Figure) -> str:
    return "\n".join(one.get_text() for one in figure.findobj(Text) if isinstance(one, Text))


def sets_of(accelerator: str) -> str:
    rows: Sequence[RunRow] = [make_row(accelerator=accelerator)]
    return sets_compared("a", "b", compare_sets(rows, rows, lambda *_: None)).text()


FORMS: dict[str, tuple[Any, ...]] = {
    "page": (lambda of: seen(report_of(of)), "vpp (emulated)"),
    "page's banner and grid": (
        lambda of: rendered(report_of(of)),
        "<strong>EMULATED</strong>",
        'data-h="vpp (emulated)"',
    ),
    "page of a night": (lambda of: rendered(report_of(of, night=True)), 'data-h="vpp (emulated)"'),
    "page's cards": (lambda of: seen(judged_report(rows_of(of))), "netgate-vpp (emulated) is 10 %"),
    "report as markdown": (lambda of: to_markdown(report_of(of)), "> **EMULATED**: ", "| vpp (emulated) |"),
    "report as CSV": (lambda of: tables(report_of(of))["maximum-rate"], "vpp (emulated)"),
    "curves as CSV": (lambda of: tables(report_of(of))["ramps"], "vpp 64b uni emulated"),
    "list of runs": (lambda of: to_csv(run_sheet([make_row(accelerator=of)])), "emulated"),
    "list as markdown": (lambda of: table_of(run_sheet([make_row(accelerator=of)])), "emulated"),
    "judgement": (
        lambda of: format_judgement(judgement_of(of)),
        "vpp (emulated) is 5.0 % slower",
        "vpp 64b uni emulated ",
    ),
    "judgement as markdown": (lambda of: format_markdown(judgement_of(of)), "emulated"),
    "JUnit": (lambda of: format_junit(judgement_of(of)), 'classname="vpp 64b uni emulated"'),
    "judgement as JSON": (
        lambda of: judgement_values(judgement_of(of))["groups"][0]["headline"],
        "vpp (emulated) 5.0 %",
    ),
    "line of a cell": (lambda of: Job(make_row().cell, None, LOADS["ramp"]).answer(result_of(of)), "emulated: "),
    "message of a night": (
        lambda of: summary(make_night(make_record(make_row())), [], emulated=int(of == "tcg")),
        "measured, 1 of them emulated",
    ),
    "two runs": (lambda of: runs_compared(result_of(of), result_of(of), ()).text(), "uni emulated"),
    "two sets": (sets_of, "vpp 64b uni emulated"),
    "picture": (lambda of: words_of(compose(result_of(of))), "EMULATED"),
    "picture of sizes": (lambda of: words_of(compose_sizes([sized_of(of)])), "by frame size, emulated"),
}
"""Functions that make the form for this accelerator, and the words that only an emulated one has there."""


@pytest.mark.parametrize("accelerator", by_day(2, ACCELERATORS))
@pytest.mark.parametrize("form", FORMS)
def test_emulated_figures_are_marked_in_every_form_and_no_other_ones(form: str, accelerator: str) -> None:
    make, *words = FORMS[form]
    text = make(accelerator)
    assert all(one in text for one in words) is ("emulated" in text.lower()) is (accelerator == "tcg"), text[:2000]


@pytest.mark.usefixtures("empty_directory")
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_trexbench_alone_and_its_verbs_say_so(accelerator: str) -> None:
    path = RunWriter(Path("results"), print).end(result_of(accelerator))
    for verb in ("", "results list", f"show {path}", "report --format md"):
        assert ("emulated" in run(*verb.split()).out) is (accelerator == "tcg"), verb
    found = run("results", "query", "select emulated from runs", "--format", "csv").out
    header, value = found.split()  # DuckDB has truth values, SQLite numbers
    assert header == "emulated" and (value in ("1", "True")) is (accelerator == "tcg")


def test_a_mark_is_no_other_cell_and_an_older_note_stays_valid() -> None:
    emulated, other = (make_row(accelerator=of).cell for of in ("tcg", "kvm"))
    assert emulated == other and str(emulated) == f"{other} emulated"
    assert Known("2026-11-20", str(other), None, "a note").is_about(emulated, "maximum rate")
    assert row_of(result_of("tcg"), "").cell.emulated and not row_of(result_of("kvm"), "").cell.emulated
