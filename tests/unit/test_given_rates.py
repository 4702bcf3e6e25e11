"""Runs of ``trexbench efficiency`` hold given rates: what they say in names, lists, comparisons and judgements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from nights import VPP, changed, make_row, make_rows
from runs import World, make_plan, make_result

from trexbench.core.dut.cycles import Cost
from trexbench.core.history.cell import EFFICIENCY, by_given_rate, cell_of
from trexbench.core.history.compare import Comparison, compare_sets, find_differences, find_unlike
from trexbench.core.history.known import Known
from trexbench.core.history.regression import judge_rows
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult
from trexbench.report.compare import runs_compared, sets_compared
from trexbench.report.listing import run_sheet
from trexbench.report.page.trends import find_trends
from trexbench.report.run.summary import summarise
from trexbench.report.run.text import format_brief, format_summary
from trexbench.report.sheet import format_sheet
from trexbench.report.words import name_of

HELD = replace(VPP, kind=EFFICIENCY, held_pps=1e6)
COSTS: dict[str, Any] = {"at_least": True, "limit": "none", "hold_loss": 0.0, "total_pps": 1e6}


def held(cycles: float, rate: float = 1e5) -> RunResult:
    plan = make_plan(kind="saturate", hold_s=10.0)
    plan = replace(plan, offers=tuple(replace(offer, target_pps=rate) for offer in plan.offers))
    result = make_result(plan, World(), command={"verb": "efficiency", "mode": "64b"})
    cost = Cost(Phase.HOLD, 1, 0.0, 30.0, rate, rate, rate, 30.0, "VPP's show runtime", cycles)
    vars(result)["costs"] = (cost,)  # where the cached property keeps it
    return result


def test_the_rate_is_told_as_all_rates_are() -> None:
    for rate, words in ((1e6, "1 Mpps"), (1.488e4, "14.88 kpps"), (1.443e6, "1.443 Mpps")):
        result = held(584.0, rate)
        cell = cell_of(result)
        assert str(cell).endswith(f" efficiency at {words} simulated") and f"efficiency at {words}" in name_of(result)
        assert "saturate" not in summarise(result).headline
    assert name_of(held(584.0), "efficiency").split(" simulated")[0].endswith("uni efficiency")


def test_rates_stand_in_the_order_of_their_numbers() -> None:
    cells = [replace(VPP, kind=EFFICIENCY, held_pps=rate) for rate in (148.8e3, 10e6, 1e3, 1.443e6)]
    ordered = by_given_rate([cells[0], VPP, *cells])
    assert [str(one).partition("efficiency at ")[2] for one in ordered] == [
        "1 kpps", "148.8 kpps", "1.443 Mpps", "10 Mpps", ""
    ]  # fmt: skip
    trends = find_trends([make_row(at, cell=one) for at, one in enumerate(cells)], [], [])
    assert [one.cell for one in trends] == ordered[:-1]


def test_a_run_is_summed_up_by_its_cost_and_never_by_a_bound_of_a_maximum() -> None:
    result = held(584.0)
    told = summarise(result)
    assert "584 cycles/packet" in told.headline and ">=" not in told.headline + format_summary(result)
    brief = format_brief(result, "a/run.json", 100)
    assert "584" in brief and ">=" not in brief and brief.endswith(" a/run.json\n")
    assert not result.analysis_warnings
    vars(result)["costs"] = (replace(*result.costs, offered_pps=6e4),)
    (warning,) = result.analysis_warnings
    assert (warning.code, warning.text[:38]) == ("rate-not-sent", "asked for 100.0 kpps, sent 60.00 kpps:")


def test_the_list_has_a_cost_and_no_maximum() -> None:
    row = make_row(cell=HELD, cycles_per_packet=584.1, line_share=0.07, **COSTS)
    _, text = format_sheet(run_sheet([row]))
    assert "efficiency at 1 Mpps" in text and " 584 " in text
    assert ">=" not in text and " %" not in text.replace(" 0 %", "") and "none" not in text
    assert "dut" in format_sheet(run_sheet([replace(row, limit="dut")]))[1], "a rate that was not carried has a limit"
    assert {*run_sheet([row], units=True).rows[1][4:7]} == {""}, "nor its unit"


@pytest.mark.parametrize(
    ("before", "after", "verdict", "words"),
    [
        (584.0, 586.0, Comparison.SAME, "the same"),
        (584.0, 640.0, Comparison.DEARER, "dearer"),
        (640.0, 584.0, Comparison.CHEAPER, "cheaper"),
    ],
)
def test_costs_are_compared_where_there_is_no_maximum(
    before: float, after: float, verdict: Comparison, words: str
) -> None:
    ((direction, one),) = find_differences(held(before), held(after))
    assert (direction, one.verdict, *(cost.value for cost in one.figures)) == (None, verdict, before, after)
    assert words in runs_compared(held(before), held(after), ()).text()
    rows = [[make_row(cell=HELD, cycles_per_packet=cycles, **COSTS)] for cycles in (before, after)]
    compared = compare_sets(*rows)
    assert [pair.verdict for pair in compared.pairs] == [verdict]
    text = sets_compared("one", "other", compared).text()
    assert f"{before:.0f} cycles/packet" in text and text.count("pps") == 1, "the name has the only rate"


def test_other_rates_are_not_compared_and_runs_without_a_cost_are_left_out() -> None:
    told = "; ".join(find_unlike(held(584.0), held(358.0, 1e6)))
    assert "one is efficiency at 100 kpps, the other efficiency at 1 Mpps" in told
    compared = compare_sets([make_row(cell=HELD, **COSTS)], [make_row(cell=HELD, cycles_per_packet=1.0, **COSTS)])
    assert not compared.pairs and [row.get("cycles_per_packet") for row in compared.left_out] == [None]
    assert "left out, no figure: " in sets_compared("one", "other", compared).text()


def test_a_rate_that_is_no_longer_carried_is_a_regression_and_a_maximum_is_never_judged() -> None:
    rows = make_rows([1e6] * 13, HELD, cycles_per_packet=584.0, at_least=True, hold_loss=0.0)
    rows[-3:] = [changed(row, hold_loss=0.05, total_pps=9.5e5, at_least=False, limit="dut") for row in rows[-3:]]
    (finding,) = judge_rows(rows).findings
    assert (finding.metric.name, finding.worse, finding.after) == ("loss in the hold", True, 0.05)
    slight = [changed(row, hold_loss=min(row.figures["hold_loss"].value, 0.0009)) for row in rows]
    assert judge_rows(slight).findings == (), "within the loss limit"


def test_a_note_made_before_rates_were_written_with_a_space_still_counts() -> None:
    name = str(HELD).replace("1 Mpps", "1mpps")
    assert Known("2026-11-01", name, None, "new firmware").is_about(HELD, "cycles/packet")
    assert Known("2026-11-01", str(HELD), None, "new firmware").is_about(HELD, "cycles/packet")
    assert not Known("2026-11-01", name.replace("1mpps", "2mpps"), None, "").is_about(HELD, "cycles/packet")
