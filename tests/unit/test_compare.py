"""Runs side by side, and sets of them: what is matched, what a difference is worth, and what may not be compared."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from nights import changed, over_wan, passing
from runs import World, make_plan, make_result

from trexbench.core.history.cell import Cell
from trexbench.core.history.compare import (
    Comparison,
    compare_sets,
    differing_facts,
    find_unlike,
    middle_of,
)
from trexbench.core.history.rows import RunRow, row_of
from trexbench.core.load.plan import Direction
from trexbench.core.result import ANALYSIS_VERSION, RunResult, Status
from trexbench.report.compare import runs_compared, sets_compared
from trexbench.report.words import COUNTED
from trexbench.results.document import encode
from trexbench.review.comparison import compare

PLAN = make_plan(ramp_s=60.0, confirm_s=0.0)
BOTH_WAYS = make_result(make_plan(bidir=True))
DUT = {"name": "lab-linux", "facts_sha256": "a", "facts": {"kernel": "6.1"}}
OTHER_KERNEL = DUT | {"facts_sha256": "b", "facts": {"kernel": "6.2"}}


def run(capacity_pps: float = inf, **world: float) -> RunResult:
    return make_result(PLAN, World(capacity_pps=capacity_pps, **world), dut=DUT)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"profiles": {Direction(0, 1): {"digest": "other", "mix": "1514 B frames"}}}, "other traffic: "),
        ({"status": Status.INCOMPLETE}, "is incomplete"),
        ({"dut": OTHER_KERNEL}, "lab-linux was not configured alike (kernel)"),
        ({"plan": make_plan(kind="saturate", hold_s=10.0)}, "one is a ramp, the other a saturate"),
        ({"plan": BOTH_WAYS.plan, "samples": BOTH_WAYS.samples}, "directions 0->1 and 0->1, 1->0"),
    ],
)
def test_unlike_runs_are_told_apart(changes: dict[str, object], words: str) -> None:
    first = run()
    found = list(find_unlike(first, replace(first, **changes)))  # type: ignore[arg-type]
    assert len(found) == 1 and words in found[0]


def test_like_runs_and_runs_of_two_duts_are_alike() -> None:
    assert list(find_unlike(run(6e5), run(7e5))) == []
    assert list(find_unlike(run(), replace(run(), dut={"name": "netgate-vpp", "facts_sha256": "c"}))) == []


def nested(inside: object) -> object:
    """Nest the value as deep as a document that can be read."""
    for _ in range(800):
        inside = {"in": inside, "mtu": 1}
    return inside


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ({"mtu": 1, "ports": {"a": {"up": 1}}}, {"mtu": 1, "ports": {"a": {"up": 1, "rings": 5}}}, None),
        ({"ports": {"a": {"up": 1}}}, {"ports": {"a": {"up": 2, "rings": 5}}}, " (ports)"),
        ({"ports": {"a": {"up": 1}}}, {"ports": {"a": {"up": 1}, "b": {"up": 1}}}, " (ports)"),
        ({"ports": {}, "mtu": 1}, {"ports": {}, "mtu": 1, "sysctls": {"x": "1"}}, " (sysctls)"),
        ({"not attested": "--no-apply"}, {"mtu": 1}, ""),
        (None, {"mtu": 1}, ""),
        ({"deep": nested(1)}, {"deep": nested(2)}, " (deep)"),
    ],
    ids=["read-by-one", "changed", "came", "a-variant-has-it", "not-read-back", "none", "deep"],
)
def test_only_facts_that_both_have_read_can_differ(one: object, other: object, told: str | None) -> None:
    assert differing_facts(one, other) == differing_facts(other, one) == told


def test_the_text_shows_bounds_as_bounds_and_marks_what_is_unlike() -> None:
    first, second = run(6e5), run(tx_limit_pps=9e5)
    text = runs_compared(first, second, ["one is simulated, the other measured"]).text()
    assert "*** UNLIKE: one is simulated, the other measured ***" in text
    line = text.splitlines()[-1]
    assert ">= " in line and ">= +50." in line and line.endswith("faster")
    assert " <= -3" in runs_compared(second, first, []).text()
    both = runs_compared(second, second, [])
    assert both.values["directions"][0]["difference"] is None and both.marked.rows[1][6] == "", "of two bounds"
    values = runs_compared(first, second, []).values["directions"][0]
    assert values["second_at_least"] is True and values["verdict"] == "faster"
    assert values["difference"] == pytest.approx(values["difference_pps"] / values["first_pps"])
    assert runs_compared(first, run(6.05e5), []).values["directions"][0]["verdict"] == "same", "within the ramp's step"
    searched = make_result(make_plan(kind="search", goals=(0.0, 0.01)), World(capacity_pps=6e5))
    assert "the rates with loss <= 0 %;" in runs_compared(searched, searched, []).text()


def test_a_figure_that_the_rules_of_today_put_elsewhere_is_named_with_the_reason(tmp_path: Path) -> None:
    result = replace(run(6e5), id="old")
    text = encode(result).decode()
    total = re.search(r'"total_pps": ([0-9.e+]+)', text)
    assert total is not None and text.count(f'"analysis_version":{ANALYSIS_VERSION}') == 1
    older = text.replace(total[0], '"total_pps": 701500.0').replace(
        '"analysis_version":', '"analysis_version":3,"was":'
    )
    (tmp_path / "old.json").write_text(older)
    (tmp_path / "new.json").write_text(text)
    notes: list[str] = []
    compare(str(tmp_path / "old.json"), str(tmp_path / "new.json"), tmp_path, False, notes.append)
    (note,) = notes
    assert note.startswith(f"{tmp_path / 'old.json'}: 701.5 kpps by version 3 of the analysis, ")
    assert f"by {ANALYSIS_VERSION}: loss of" in note


FAR = over_wan("20ms,1gbit")
ROW = changed(row_of(make_result(), "x.json"), uncertainty_pps=0.0, at_least=False, total_pps=1e6)


def row(pps: float = 1e6, noise: float = 0.0, at_least: bool = False, **changes: Any) -> RunRow:
    cell = {name: changes.pop(name) for name in ("dut", "mode", "bidir", "rx_queues", "simulated") if name in changes}
    values = {"total_pps": pps, "uncertainty_pps": noise, "at_least": at_least, "cell": replace(ROW.cell, **cell)}
    return passing(changed(ROW, **(values | changes)), changes.get("through"))


HIGH_BOUND = [row(0.9e6), row(0.9e6), row(0.901e6, at_least=True)]
LOW_BOUND = [row(0.9e6), row(0.901e6), row(0.899e6, at_least=True)]
HALF_BOUND = [row(0.9e6), row(0.901e6, at_least=True)]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        pytest.param([row()], [row()], Comparison.SAME, id="one run each, alike"),
        pytest.param([row(noise=1e4)], [row(1.02e6, 1e4)], Comparison.FASTER, id="beyond both uncertainties"),
        pytest.param([row(noise=2e4)], [row(1.02e6, 1e4)], Comparison.SAME, id="within both"),
        pytest.param([row(x) for x in (1e6, 1.001e6, 0.999e6)], [row(0.95e6)], Comparison.SLOWER, id="beyond it"),
        pytest.param([row(x) for x in (1e6, 1.1e6, 0.9e6)], [row(0.95e6)], Comparison.SAME, id="within the spread"),
        pytest.param([row(x) for x in (1e6, 1.001e6)], [row(0.997e6)], Comparison.SAME, id="two runs prove little"),
        pytest.param([row()], [row(1.1e6, at_least=True)], Comparison.FASTER, id="at least 1.1 is more than 1"),
        pytest.param([row()], [row(0.9e6, at_least=True)], Comparison.UNKNOWN, id="at least 0.9 may be anything"),
        pytest.param([row(1.1e6, at_least=True)], [row()], Comparison.SLOWER, id="1 is less than at least 1.1"),
        pytest.param([row()], [row(1.005e6)], Comparison.SAME, id="no uncertainty is known: within 1 %"),
        pytest.param([row(1e6, 1e3)], [row(0.98e6)], Comparison.SLOWER, id="of one it is known: beyond 1 %"),
        pytest.param([row(1e6, at_least=True)], [row(0.997e6, 1e3)], Comparison.SLOWER, id="a bound has none"),
        pytest.param([row()], HIGH_BOUND, Comparison.SLOWER, id="a bound above the median moves no median"),
        pytest.param([row()], LOW_BOUND, Comparison.UNKNOWN, id="one below it could rise above it"),
        pytest.param([row()], HALF_BOUND, Comparison.UNKNOWN, id="of two runs the higher moves it, too"),
    ],
)  # fmt: skip
def test_a_difference_counts_beyond_what_runs_leave_open_and_lie_apart(
    first: list[RunRow], second: list[RunRow], verdict: Comparison
) -> None:
    (pair,) = compare_sets(first, second).pairs
    assert pair.verdict is verdict


def test_the_noise_of_a_median_shrinks_with_runs_but_not_below_their_own() -> None:
    def spread(count: int) -> list[RunRow]:
        return [row(1e6 + (1e4 if number % 2 else -1e4), noise=5e3) for number in range(count)]

    noise = [middle_of(spread(count)).uncertainty for count in (4, 8, 100)]
    assert noise[0] > noise[1] > noise[2] > 5e3
    assert middle_of([row(noise=5e3)] * 3).uncertainty == 5e3 == middle_of([row(noise=5e3)]).uncertainty


def test_cells_are_matched_and_those_of_one_set_named() -> None:
    first = [row(mode="a"), row(mode="b"), row(mode="b", bidir=True), row(mode="a", rx_queues=2)]
    second = [row(mode="b", bidir=True), row(mode="a"), row(mode="c"), row(mode="a")]
    found = compare_sets(first, second)
    assert [str(pair.cell).split()[1:3] for pair in found.pairs] == [["a", "uni"], ["b", "bidir"]]
    assert [len(pair.second) for pair in found.pairs] == [2, 1]
    assert [cell.mode for cell in found.only_first] == ["a", "b"] and [cell.mode for cell in found.only_second] == ["c"]


NODES = ("vpp", {"ip4-lookup": 400.0}), ("linux", {})


def test_two_duts_stand_side_by_side_where_each_set_is_of_one() -> None:
    (pair,) = compare_sets([row(dut="a", facts="1")], [row(dut="b", facts="2")]).pairs
    assert not pair.unlike
    costs = [changed(row(dut=dut, aim="cycles_per_packet", nodes=of), cycles_per_packet=400.0) for dut, of in NODES]
    texts = [sets_compared("a", "b", compare_sets(costs[:1], [other])).text() for other in costs]
    assert [COUNTED in text.replace("\n", " ") for text in texts] == [False, True], "VPP beside a kernel"
    several = compare_sets([row(dut="a"), row(dut="b")], [row(dut="b"), row(dut="c")])
    assert [pair.cell.dut for pair in several.pairs] == ["b"] and several.only_second[0].dut == "c"


def test_a_dut_with_one_number_of_queues_stands_beside_all_of_another() -> None:
    many = [row(dut="vpp", rx_queues=number) for number in (1, 2, 3)]
    found = compare_sets([row(dut="linux", rx_queues=4)], many)
    assert [pair.second[0].cell.rx_queues for pair in found.pairs] == [1, 2, 3] and not found.only_second
    assert "| vpp 3q" in sets_compared("a", "b", found).text()
    assert [pair.first[0].cell.rx_queues for pair in compare_sets(many, [row(dut="linux")]).pairs] == [1, 2, 3]
    two = [row(dut="other", rx_queues=number) for number in (2, 4)]
    found = compare_sets(many, two)
    assert [(pair.cell.rx_queues, pair.second[0].cell.rx_queues) for pair in found.pairs] == [(2, 2)]
    assert [cell.rx_queues for cell in found.only_second] == [4]


def test_a_wan_is_put_beside_the_same_one_where_there_is_one() -> None:
    near, far = row(), row(0.5e6, through=FAR)
    found = compare_sets([near, far], [far, near])
    assert [(pair.unlike, pair.verdict) for pair in found.pairs] == [((), Comparison.SAME)] * 2
    found = compare_sets([near, far], [far])
    assert not found.pairs[0].unlike and found.only_first == (near.cell,) and "over" not in str(near.cell)
    (unlike,) = compare_sets([near], [far]).pairs
    assert unlike.unlike == ("over no WAN and over WAN 20ms,1gbit by netem",)
    assert f"{near.cell} | over WAN 20ms,1gbit by netem" in sets_compared("a", "b", compare_sets([near], [far])).text()
    text = sets_compared("a", "b", found).text()
    values = sets_compared("a", "b", found).values["cells"][0]["cell"]
    assert str(far.cell) in text and values["over"] == "WAN 20ms,1gbit by netem"


def test_every_difference_within_a_set_is_told_once() -> None:
    ours = [row(), row(line_rate_bps=1e10), row(line_rate_bps=1e10, loss_threshold=0.01)]
    (pair,) = compare_sets(ours, [row(line_rate_bps=2.5e9)]).pairs
    assert pair.unlike == (
        "line rate 1.000 Gbit/s and 10.00 Gbit/s",
        "loss threshold 0.1 % and 1 %",
        "line rate 1.000 Gbit/s and 2.500 Gbit/s",
    )


def test_runs_that_ended_early_are_left_out_and_named() -> None:
    early = row(2e6, status="incomplete", path="early.json")
    found = compare_sets([row(), early], [row()])
    assert found.left_out == (early,) and found.pairs[0].first == (row(),)
    assert compare_sets([early], [row()]).pairs == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"simulated": False}, "one is simulated, the other measured"),
        ({"traffic": "other"}, "other traffic"),
        ({"through": FAR, "suite": "a"}, "over no WAN and over WAN 20ms,1gbit by netem"),
        ({"through": FAR}, "over no WAN and over WAN 20ms,1gbit by netem"),
        ({"line_rate_bps": 1e10}, "line rate 1.000 Gbit/s and 10.00 Gbit/s"),
        ({"loss_threshold": 1e-6}, "loss threshold 0.1 % and 0.0001 %"),
        ({"facts": "other"}, "lab-linux was not configured alike (kernel)"),
    ],
)
def test_unlike_cells_are_told_apart(changes: dict[str, Any], words: str) -> None:
    found = compare_sets([row()], [row(**changes)], lambda *_: " (kernel)")
    (pair,) = found.pairs
    assert len(pair.unlike) == 1 and words in pair.unlike[0]
    text = sets_compared("a", "b", found).text()
    assert "[1]" in text and f"*** [1] UNLIKE: {pair.unlike[0]} ***" in text


def test_both_forms_say_the_same_and_hostile_names_stay_on_their_line() -> None:
    evil = "\x1b[2J<script>\n"
    found = compare_sets([row(dut=evil), row(dut=evil, mode="only")], [row(2e6, at_least=True, dut=evil)])
    text = sets_compared(evil, "b", found).text()
    assert "\x1b" not in text and "+100 %" in text.replace(".0", "") and ">= 2.000 Mpps" in text
    assert len(text.splitlines()) == 6
    values = json.loads(json.dumps(sets_compared(evil, "b", found).values))
    assert values["cells"][0]["verdict"] == "faster" and values["cells"][0]["difference"] == 1.0
    assert values["only_first"][0] == {**vars(Cell(evil, "only", False, None, "ramp", True)), "over": ""}
