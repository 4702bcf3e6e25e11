"""Findings grouped by their likely cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from findings import BY_NAME, NIGHTS, found, judgement_of
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.history.causes import groups_of
from trexbench.core.history.detect import Shape
from trexbench.core.history.finding import Finding, Kind
from trexbench.core.history.rows import METRICS
from trexbench.report.groups import also_line, explanation_lines, headline


def test_each_metric_has_its_place() -> None:
    ranks = sorted(metric.rank for metric in METRICS.values())
    assert ranks == [0, 0, *range(1, len(METRICS) - 1)], "only the two rates share one: no cell has both"


EIGHTEEN = [
    *(found(share=-0.081 - 0.019 * at / 2, mode=f"m{at}") for at in range(7)),
    replace(found("loss in the hold"), before=0.001, after=0.006),
    *(found("cycles/packet", 0.091 + at / 1000, mode=f"m{at}") for at in range(8)),
    *(found("latency", 0.3, mode=f"m{at}") for at in range(2)),
]


def test_one_cause_is_one_group_headed_by_the_rate() -> None:
    (group,) = groups_of(judgement_of(*EIGHTEEN))
    assert headline(group) == "netgate-vpp 8.1 to 13.8 % slower since 17 November (7 cells)"
    assert [*group.by_metric()] == ["maximum rate", "cycles/packet", "latency", "loss in the hold"]
    assert group.first.cell.mode == "m6" and len(group.findings) == 18 and len(group.cells) == 9
    assert also_line(group) == (
        "also cycles/packet 9.1 to 9.8 % higher (8 cells), latency 30.0 % higher (2 cells), "
        "loss in the hold 0.5 points higher (1 cell)"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"dut": "netgate-linux"},
        {"cell": {"variant": "nat"}},
        {"cell": {"simulated": True}},
        {"kind": Kind.IMPROVEMENT},
        {"share": 0.1},
        {"since": "2026-11-19"},
        {"shape": Shape.DRIFT},
    ],
)
def test_what_has_another_cause_is_another_group(other: dict[str, Any]) -> None:
    groups = groups_of(judgement_of(found(), found("latency", 0.2), found(mode="imix", **other)))
    assert [len(group.findings) for group in groups] in ([2, 1], [1, 2])


def test_notes_keep_known_changes_apart() -> None:
    known = [found(kind=Kind.KNOWN, note=note, mode=note) for note in ("NIC firmware", "a new kernel")]
    assert [group.first.note for group in groups_of(judgement_of(*known))] == ["NIC firmware", "a new kernel"]


def test_the_night_of_most_rates_takes_those_measured_the_night_before_and_after() -> None:
    rates = [found(mode=f"m{at}") for at in range(3)]
    some = [found("latency", 0.2, since="2026-11-16", mode=f"m{at}") for at in range(9)]
    late = [found("cycles/packet", 0.2, since="2026-11-18"), found("cycles/packet", 0.2, since="2026-11-19")]
    first, second = groups_of(judgement_of(*some, *late, *rates))
    assert first.since == "2026-11-17" and len(first.findings) == 13 and second.since == "2026-11-19"
    over_the_weekend = groups_of(judgement_of(found(since="2026-11-13"), found(mode="b", since="2026-11-16")))
    assert len(over_the_weekend) == 1
    assert len(groups_of(replace(judgement_of(*late), nights=()))) == 2, "which nights are neighbours is not known"


def test_groups_stand_in_the_order_of_what_they_say() -> None:
    groups = groups_of(
        judgement_of(
            found("loss in the hold", 9.0, dut="a"),
            found("cycles/packet", 0.5, dut="b"),
            found(share=-0.05, dut="c"),
            found("TCP rate", -0.06, dut="d"),
            found(share=0.5, kind=Kind.IMPROVEMENT),
            found(since="2026-11-13", kind=Kind.OLDER, dut="old"),
        )
    )
    assert [group.first.cell.dut for group in groups] == ["d", "c", "b", "a", "old", "netgate-vpp"]
    assert [group.section for group in groups][-2:] == [Kind.OLDER, Kind.IMPROVEMENT]


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (found(cell={"variant": "nat", "simulated": True}), "netgate-vpp nat (simulated) 10.0 % slower since"),
        (found(share=0.25, kind=Kind.IMPROVEMENT, at_least=True), "netgate-vpp at least 25.0 % faster since"),
        (found("cycles/packet", -0.1, kind=Kind.IMPROVEMENT), "netgate-vpp cycles/packet 10.0 % lower since"),
        (replace(found("loss in the hold"), before=0.0, after=0.02), "loss in the hold from nothing to 2.00 % since"),
        (found(shape=Shape.DRIFT), "slower since about 17 November (1 cell)"),
        (found(since="2025-11-17"), "since 17 November 2025"),
    ],
)
def test_headlines(finding: Finding, words: str) -> None:
    assert words in headline(*groups_of(judgement_of(finding)))


def test_an_explanation_names_the_cell_that_it_is_about() -> None:
    one, other = found(explanation=("why",), share=-0.2), found(mode="imix")
    assert [*explanation_lines(*groups_of(judgement_of(one)))] == ["why"]
    assert [*explanation_lines(*groups_of(judgement_of(one, other)))] == ["netgate-vpp 64b uni 1q: why"]


@given(
    st.lists(
        st.builds(
            found,
            metric=st.sampled_from(sorted(BY_NAME)),
            share=st.floats(-0.9, 9).filter(bool),
            since=st.sampled_from(NIGHTS),
            mode=st.sampled_from("ab"),
            kind=st.sampled_from([Kind.REGRESSION, Kind.IMPROVEMENT, Kind.KNOWN]),
        ),
        max_size=12,
    )
)
def test_each_finding_is_in_one_group_and_no_rate_below_another_figure(findings: list[Finding]) -> None:
    groups = groups_of(judgement_of(*findings))
    assert sorted(map(id, (one for group in groups for one in group.findings))) == sorted(map(id, findings))
    for group in groups:
        rates = [one.metric.bounded for one in group.findings]
        assert rates == sorted(rates, reverse=True)
        assert len({one.worse for one in group.findings}) == 1
