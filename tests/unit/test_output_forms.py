"""Output of verbs: in each of their forms, to standard output or a file, and within 80 columns."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import split
from typing import Any

import click
import pytest
from effort import NIGHTLY
from runs import World, make_plan, make_result
from tcp_runs import make_tcp_result
from test_help import COMMANDS
from verbs import empty_directory, run  # noqa: F401

from trexbench.api import judge
from trexbench.core.history.cell import Cell, is_chosen
from trexbench.core.typed import Status
from trexbench.results.store import RunWriter, load_document

pytestmark = pytest.mark.usefixtures("empty_directory")

COLUMNS = 80
SINGLE = {path: command for path, command in COMMANDS.items() if not isinstance(command, click.Group)}
PACKETS = "results/2026-03-01/a-router-with-a-long-name/120000-var2-64b-bidir.json"
TCP = "results/2026-03-03/home-router/120000-tcp-forward-reverse-ipv4.json"
VERBS = (
    "results list",
    "results query 'select started, dut, mode, total_pps from runs'",
    "results compare 2026-03-02 2026-03-03",
    f"results compare {PACKETS} {PACKETS.replace('03-01', '03-02')} --anyway",
    f"results show {PACKETS}",
    f"results show {TCP}",
    "regress",
    "regress --known",
    "suite list",
    "suite plan netgate-6100 --sim",
    "fleet plan netgate-6100 --sim --fleet local:2",
    "fleet status --fleet local:2",
    "dut list",
    "dut show lab-linux",
    "lab status",
    "lab profile list",
    "lab profile show imix",
    "doctor",
    "report",
)
ELSEWHERE = {
    **dict.fromkeys(("ramp", "search", "saturate", "efficiency", "tcp", "lab calibrate"), "show writes runs, too"),
    **dict.fromkeys(("dut plan", "dut verify", "dut telemetry"), "tests/root and tests/commands have DUTs"),
    **dict.fromkeys(("nightly", "suite run", "suite table", "fleet calibrate"), "tests/commands measures nights"),
}
"""Verbs with forms that are not in VERBS, and why."""


@pytest.fixture(autouse=True)
def stored(empty_directory: None, kept: Path) -> None:  # noqa: F811
    shutil.copytree(kept, "results")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of packets by one DUT with 1 and 3 queues, and one of TCP."""
    results = tmp_path_factory.mktemp("kept") / "results"
    plan = make_plan(bidir=True, ramp_s=20.0, confirm_s=0.0)
    for day, (queues, pps) in enumerate(((1, 6e5), (3, 9e5), (3, 9e5)), 1):
        command = {"verb": "ramp", "mode": "var2-64b", "rx_queues": queues}
        name = {"name": "a-router-with-a-long-name", "facts_sha256": f"{queues}"}
        changes: dict[str, Any] = {"id": f"{day}", "started": f"2026-03-0{day}T12:00:00Z", "dut": name}
        result = make_result(plan, World(capacity_pps=pps))
        RunWriter(results, print).end(replace(result, command=command, **changes))
    tcp = make_tcp_result(started="2026-03-03T12:00:00Z", dut={"name": "home-router"})
    assert RunWriter(results, print).end(tcp) == results.parent / TCP
    return results


def forms_of(verb: str) -> tuple[str, ...]:
    words = tuple(split(verb))
    command = next(command for path, command in SINGLE.items() if words[: len(path)] == path)
    (form,) = (one.type for one in command.params if one.name == "form")
    assert isinstance(form, click.Choice)
    return tuple(form.choices)


def is_path(line: str) -> bool:
    """Tell a line that is too long since one of its words, a path, is."""
    return max(map(len, line.split())) > COLUMNS - 30


@pytest.mark.parametrize("verb", VERBS)
def test_text_fits_80_columns(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    _, out, err = run(*split(verb))
    assert verb != "results list" or ("bidir 1q" in out and "bidir 3q" in out), "rows that differ look different"
    text = [*out.splitlines(), *err.splitlines()]
    long = [line for line in text if len(line) > COLUMNS and not is_path(line)]
    assert not long or verb == "dut show lab-linux"  # whose file is printed as it is


def read(form: str, text: str) -> object:
    """Return what a program reads of it, which has nothing that is not of this form."""
    if form == "json":
        return json.loads(text)
    if form == "csv":
        head, *rows = csv.reader(io.StringIO(text))
        assert {len(row) for row in rows} <= {len(head)}
        return head
    assert text.startswith(("|", "**", "# ", "## "))
    return text


def offered() -> Iterator[tuple[str, str]]:
    for verb in VERBS:
        yield from ((verb, form) for form in forms_of(verb) if form not in ("text", "brief", "html"))


@pytest.mark.parametrize(("verb", "form"), [*offered()])
def test_each_form_is_the_same_on_standard_output_and_in_a_file(verb: str, form: str) -> None:
    if (verb, form) == ("report", "csv"):
        return  # a file for each table: test_report
    code, out, _ = run(*split(verb), "--format", form)
    assert read(form, out) is not None
    if not NIGHTLY and form != [other for of, other in offered() if of == verb][-1]:
        return  # one form of each verb is enough by day
    again = run(*split(verb), "-o", f"out.{form}")
    assert (again.code, again.out) == (code, f"out.{form}\n")
    written = Path(f"out.{form}").read_text(encoding="utf-8")
    assert written == out or verb == "doctor"  # whose load of this machine differs


@pytest.mark.parametrize(("form", "words"), [("md", "- INCOMPLETE: interrupted"), ("csv", "incomplete, simulated")])
@pytest.mark.parametrize("document", [PACKETS, TCP])
def test_a_simulated_or_interrupted_run_is_marked_in_its_tables(document: str, form: str, words: str) -> None:
    of = load_document(Path(document))
    ended = replace(of, simulated=True, status=Status.INCOMPLETE, reason="interrupted", started="2026-04-01T12:00:00Z")
    path = RunWriter(Path("results"), print).end(ended)
    out = run("results", "show", path, "--format", form).out
    assert words in out and "simulated" in out.lower() and str(of.dut["name"]) in out


def test_cells_are_chosen_by_their_printed_names() -> None:
    cell = Cell("a", "b", True, 1, simulated=True)
    assert is_chosen(cell, [str(cell)]) and is_chosen(cell, ["a b bidir 1q"]) and not is_chosen(cell, ["a b uni*"])
    assert judge(only="home-router*").exit_code in (0, 4)


@pytest.mark.parametrize(("form", "words"), [("md", "- UNLIKE: "), ("csv", ",unlike,")])
def test_an_unlike_comparison_says_so_and_of_which_runs(form: str, words: str) -> None:
    out = run("results", "compare", PACKETS, PACKETS.replace("03-01", "03-02"), "--anyway", "--format", form).out
    assert words in out and "2026-03-01T12:00:00Z" in out and "was not configured alike" in out


@pytest.mark.parametrize("form", ["md", "csv"])
def test_cells_of_one_set_only_are_named(form: str) -> None:
    out = run("results", "compare", "2026-03-02", "2026-03-03", "--format", form).out
    assert "2026-03-02" in out and "only in the second" in out and "home-router" in out


def test_the_text_of_a_night_in_a_file_counts_its_cells() -> None:
    plan = "{ramp_duration: 20s, hold: 4s, confirm: 2s}"
    Path("one.yaml").write_text(f"duts: [lab-linux]\nmodes: [64b]\ndirections: [uni]\nplan: {plan}\n")
    done = run("suite", "run", "one.yaml", "--sim", "--speedup", "10000", "-q", "-o", "night.txt")
    assert done.code == 0 and "cells measured" in Path("night.txt").read_text(encoding="utf-8")


def test_csv_has_raw_figures_and_no_formula() -> None:
    rows = [*csv.DictReader(io.StringIO(run("results", "list", "--format", "csv").out))]
    assert {row["way"] for row in rows} == {"bidir 1q", "bidir 3q", "uni"}
    assert all(float(row["maximum"].removeprefix(">=")) > 1e6 for row in rows)
    assert {row["unit"] for row in rows} == {"bit/s", "pps"}
    assert all(2 < float(row["of line, %"]) <= 200 for row in rows if row["unit"] == "pps")
    shown = run("results", "show", TCP, "--csv")
    assert "DUT,mode,status,Way," in shown.out and "Mean, Mbit/s" in shown.out and "'" not in shown.out
    assert "CSV has the first table only; md also has: " in shown.err


def test_only_cells_that_match_are_judged_and_reported() -> None:
    for verb in ("regress", "report"):
        code, _, err = run(verb, "--only", "nobody*")
        assert code == 2 and "no cell matches nobody*: 'a-router" in err
        assert run(verb, "--only", "home-router*").code in (0, 4)
    out = run("report", "--only", "home-router*", "--format", "md").out
    assert "home-router" in out and "a-router-with-a-long-name" not in out


def test_every_verb_with_forms_is_tried() -> None:
    with_forms = {" ".join(path) for path, one in SINGLE.items() if any(param.name == "form" for param in one.params)}
    tried = {" ".join(path) for verb in VERBS for path in SINGLE if tuple(split(verb))[: len(path)] == path}
    assert with_forms == tried | set(ELSEWHERE)
