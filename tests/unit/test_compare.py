"""Which runs may stand side by side, and what their difference is worth."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from runs import World, make_plan, make_result

from trexbench.core.history.compare import Comparison, differing_facts, find_differences, find_unlike
from trexbench.core.load.plan import Direction
from trexbench.core.result import ANALYSIS_VERSION, RunResult, Status
from trexbench.report.compare import runs_compared
from trexbench.results.document import encode
from trexbench.review.comparison import compare

PLAN = make_plan(ramp_s=60.0, confirm_s=0.0)
BOTH_WAYS = make_result(make_plan(bidir=True))
DUT = {"name": "lab-linux", "facts_sha256": "a", "facts": {"kernel": "6.1"}}


def run(capacity_pps: float = inf, **world: float) -> RunResult:
    return make_result(PLAN, World(capacity_pps=capacity_pps, **world), dut=DUT)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        pytest.param(run(6e5), run(6e5), Comparison.SAME, id="the same router twice"),
        pytest.param(run(6e5), run(6.05e5), Comparison.SAME, id="a difference within the step of the ramp"),
        pytest.param(run(6e5), run(9e5), Comparison.FASTER, id="half as fast again"),
        pytest.param(run(6e5), run(tx_limit_pps=9e5), Comparison.FASTER, id="at least 0.9 is more than 0.6"),
        pytest.param(run(tx_limit_pps=6e5), run(9e5), Comparison.UNKNOWN, id="0.9 may be less than at least 0.6"),
        pytest.param(run(tx_limit_pps=6e5), run(tx_limit_pps=9e5), Comparison.UNKNOWN, id="two bounds"),
    ],
)
def test_a_difference_counts_beyond_the_noise_and_bounds_only_where_they_decide(
    first: RunResult, second: RunResult, verdict: Comparison
) -> None:
    ((_, difference),) = find_differences(first, second)
    (one,), (other,) = first.analysis.directions, second.analysis.directions
    assert difference.verdict is verdict
    assert difference.difference == other.maximum_pps - one.maximum_pps


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(
            {"profiles": {Direction(0, 1): {"digest": "other", "mix": "1514 B frames"}}},
            "other traffic: ",
            id="other frames",
        ),
        pytest.param({"status": Status.INCOMPLETE}, "is incomplete", id="a run that ended early"),
        pytest.param(
            {"dut": DUT | {"facts_sha256": "b", "facts": {"kernel": "6.2"}}},
            "lab-linux was not configured alike (kernel)",
            id="the same DUT with another kernel",
        ),
        pytest.param(
            {"plan": make_plan(kind="saturate", hold_s=10.0)}, "one is a ramp, the other a saturate", id="other method"
        ),
        pytest.param(
            {"plan": BOTH_WAYS.plan, "samples": BOTH_WAYS.samples},
            "directions 0->1 and 0->1, 1->0",
            id="one way and both",
        ),
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
    assert ">= " in text.splitlines()[-1] and text.splitlines()[-1].endswith("faster")
    values = runs_compared(first, second, []).values["directions"][0]
    assert values["second_at_least"] is True and values["verdict"] == "faster"
    assert values["difference"] == pytest.approx(values["difference_pps"] / values["first_pps"])


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
