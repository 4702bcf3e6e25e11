"""The short form of a summary: ten lines, with the answer, the warnings and the document among them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from runs import World, make_plan, make_result
from verbs import empty_directory, run  # noqa: F401

from trexbench.core.verdict.parts import RunWarning
from trexbench.report.run.text import LINES, format_brief
from trexbench.results.store import RunWriter

SLOW = World(capacity_pps={"0->1": 660e3, "1->0": 500e3})


def doubtful(count: int) -> tuple[RunWarning, ...]:
    return tuple(
        RunWarning("gap", f"no sample was taken, number {number}, {'very ' * 20}long") for number in range(count)
    )


def test_what_was_measured_each_direction_with_its_limit_doubts_and_the_document() -> None:
    result = replace(make_result(make_plan(bidir=True), SLOW), simulated=False, warnings=doubtful(2))
    lines = format_brief(result, "results/x.json", 100).splitlines()
    first, second = (one.maximum_pps for one in result.analysis.directions)
    assert lines[0].startswith(f"lab-linux var2-64b bidir: {(first + second) / 1e6:.3f} Mpps in total, ")
    assert lines[1].startswith(f"0->1       {first / 1e3:.1f} kpps (") and ": the DUT saturated; loss of " in lines[1]
    assert lines[2].startswith(f"1->0       {second / 1e3:.1f} kpps (") and ": the DUT saturated; loss of " in lines[2]
    assert [line[:46] for line in lines[3:5]] == [f"warning    no sample was taken, number {n}, very" for n in (0, 1)]
    assert lines[5:] == ["result     results/x.json"]


@pytest.mark.parametrize(("ports", "doubts", "width"), [((0, 1), 30, 40), (tuple(range(8)), 9, 100), ((0, 1), 0, 80)])
def test_it_has_ten_lines_at_most_and_counts_what_it_leaves_out(
    ports: tuple[int, ...], doubts: int, width: int
) -> None:
    result = replace(make_result(make_plan(bidir=True, ports=ports), World()), warnings=doubtful(doubts))
    text = format_brief(result, "results/x.json", width)
    lines = text.splitlines()
    assert len(lines) <= LINES and all(len(line) <= width for line in lines[2:])
    assert lines[0] == "*** SIMULATED ***" and lines[-1] == "result     results/x.json"
    assert ("and 5 more directions" in text) is (len(ports) == 8)
    told = sum("warning    no sample" in line for line in lines)
    assert doubts == told or f"warning    {doubts - told} more: results show" in lines


def test_a_searchs_other_goals_are_told() -> None:
    result = make_result(make_plan(kind="search", goals=(0.0, 0.005)), World(capacity_pps=660e3))
    assert " kpps with loss <= 0.5 %" in format_brief(result, None, 200)


@pytest.mark.usefixtures("empty_directory")
def test_show_takes_it_and_not_with_json() -> None:
    path = RunWriter(Path("results"), print).end(make_result(make_plan(), SLOW))
    for arguments, code in ((("results", "show", "--brief"), 0), (("results", "show", "--brief", "--json"), 2)):
        found = run(*arguments)
        assert found.code == code
        assert found.out == (format_brief(make_result(make_plan(), SLOW), str(path), 100) if code == 0 else "")
        assert ("--json and --brief exclude each other" in found.err) is bool(code)
