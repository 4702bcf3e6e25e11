"""Findings grouped by their likely cause, events, and the sentence about them: the same words in every output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from findings import BY_NAME, NIGHTS, found, judgement_of
from hypothesis import given
from hypothesis import strategies as st
from report_cases import make_row

from trexbench.core.history.causes import groups_of
from trexbench.core.history.cell import Cell
from trexbench.core.history.detect import Shape
from trexbench.core.history.differences import Difference
from trexbench.core.history.finding import Finding, Kind
from trexbench.core.history.night import Night
from trexbench.core.history.regression import Judgement, MissingCell, judge_rows
from trexbench.core.history.rows import METRICS, UNANSWERED
from trexbench.report.events import SIGNS, events_of_judgement, first_sentence
from trexbench.report.groups import also_line, explanation_lines, headline
from trexbench.report.page.report import Report
from trexbench.report.page.templates import to_markdown
from trexbench.report.regress import format_judgement, format_markdown, judgement_values
from trexbench.suite.notify import summary

SLOWER = found(share=-0.138)
OLDER = replace(SLOWER, kind=Kind.OLDER)
LESS = found(share=-0.115, mode="imix")
LOSS = found(share=-0.11, since="2026-11-13", last="2026-11-16", end=2)
RELAPSE = found(share=-0.11, dut="old", loss=LOSS)
DEARER = found("cycles/packet", 0.13, dut="bound")
SUSPECTED = replace(
    found(share=-0.051, kind=Kind.SUSPICION, more=2, dut="odd"), since="2026-11-20", reported="2026-11-20"
)
RECOVERED = replace(found(kind=Kind.RECOVERY, dut="well", loss=LOSS), before=89.0, after=100.0)
FASTER = found(share=0.08, kind=Kind.IMPROVEMENT, dut="fast")
KNOWN = found(share=-0.2, kind=Kind.KNOWN, note="a new NIC", dut="known")
STEADY = tuple((Cell(dut, "64b", False, None), "maximum rate") for dut in ("a", "b", "c"))
VERSION = Difference(("DUT", "vpp", "version"), "26.06", "26.10")


def missing(*reasons: str, of: int, night: str = "2026-11-20") -> tuple[MissingCell, ...]:
    return tuple(MissingCell(f"dut 64b uni {at}q", "nightly", night, one, of) for at, one in enumerate(reasons))


def judged(*findings: object, differs: tuple[Difference, ...] = (), **more: object) -> Judgement:
    """The judgement of these findings; differs: between the runs before and after the first."""
    first = findings[0] if findings else None
    apart = {(first.cell, first.since): differs} if first and differs else {}  # type: ignore[attr-defined]
    return judgement_of(*findings, differences=apart, **more)  # type: ignore[arg-type]


DOWN = judged(missing=missing("no TRex server at trex1", "no TRex server at trex1", of=2, night="2026-11-21"))
STOPPED = [replace(one, failed=False) for one in missing(*["interrupted by Ctrl-C"] * 2, of=16)]
NOT_RUN = (MissingCell(None, "nightly", "2026-11-20", "suites/a.yaml: broken"),)
FEW = {(Cell("young", "64b", False, None), "maximum rate"): 3}
RESTING = frozenset({STEADY[0][0]})
SENTENCES = [
    (judged(steady=STEADY), "All 3 cells as usual"),
    (
        judged(SLOWER, LESS, differs=(VERSION,)),
        "netgate-vpp is 12 to 14 % slower since 17 November, with vpp 26.10",
    ),
    (
        judged(SLOWER, differs=(replace(VERSION, path=("generator", "threads")), VERSION)),
        "netgate-vpp is 14 % slower since 17 November, with generator threads 26.10 and 1 other change",
    ),
    (
        judged(SLOWER, differs=(replace(VERSION, after=None),)),
        "netgate-vpp is 14 % slower since 17 November, without vpp version",
    ),
    (
        judged(SLOWER, differs=(Difference(("DUT's config file", "twin", "clock"), "2.2ghz", "1.9ghz"),)),
        "netgate-vpp is 14 % slower since 17 November, with twin clock 1.9ghz",
    ),
    (
        judged(SLOWER, differs=(Difference(("DUT",), "read back", "not read back"),)),
        "netgate-vpp is 14 % slower since 17 November, with DUT not read back",
    ),
    (judged(RELAPSE), "old is 11 % slower again since 17 November, as from 13 to 16 November"),
    (judged(DEARER), "bound: cycles/packet 13 % higher since 17 November"),
    (judged(SUSPECTED), "odd is 5.1 % slower tonight; 2 more such nights make it a regression"),
    (judged(replace(SUSPECTED, since="2026-11-18", more=1)),
     "odd is 5.1 % slower since 18 November; one more such night makes it a regression"),
    (judged(replace(RECOVERED, cell=RELAPSE.cell), RELAPSE, RECOVERED),
     "old is 11 % slower again since 17 November, as from 13 to 16 November; 1 recovered"),
    (judged(RECOVERED, replace(SUSPECTED, cell=RECOVERED.cell, loss=LOSS)),
     "well is 5.1 % slower again tonight, as from 13 to 16 November; 2 more such nights make it a regression"),
    (judged(RECOVERED, replace(DEARER, cell=RECOVERED.cell, loss=LOSS)),
     "well: cycles/packet 13 % higher again since 17 November, as from 13 to 16 November; 1 recovered"),
    (judged(RECOVERED), "well recovered on 17 November, was 11.0 % slower for 2 nights; all else as usual"),
    (judged(FASTER), "fast is 8.0 % faster since 17 November; all else as usual"),
    (judged(KNOWN, steady=STEADY), "All 4 cells as usual; 1 known change"),
    (judged(steady=STEADY, resting=RESTING), "2 cells as usual; 1 cell not measured in the last night"),
    (judged(steady=STEADY[:1], resting=RESTING), "1 cell not measured in the last night"),
    (judged(replace(SUSPECTED, reported="2026-11-18")),
     "odd is 5.1 % slower on 18 November; 2 more such nights make it a regression"),
    (judged(replace(FASTER, before=0.0)),
     "fast: maximum rate from nothing to 108.0 pps since 17 November; all else as usual"),
    (judged(missing=missing("no link", of=2, night="2026-01-04")), "dut 64b uni 0q failed on 4 January: no link"),
    (judged(SLOWER, missing=NOT_RUN), "The night of 20 November was not run: suites/a.yaml: broken; 1 regression"),
    (judged(SLOWER, replace(SLOWER, cell=replace(SLOWER.cell, dut="more"), after=50.0), DEARER, SUSPECTED,
            missing=missing("a", "a", "b", of=9)),
     "more is 50 % slower since 17 November; 1 more regression; 1 dearer; 1 suspected; 3 cells failed"),
    (judged(missing=missing("no link", "no link", of=16)), "2 of 16 cells failed: no link"),
    (judged(missing=STOPPED[:1]),
     "dut 64b uni 0q not measured: interrupted by Ctrl-C"),
    (judged(SLOWER, missing=[*missing("a", of=9), *STOPPED]),
     "netgate-vpp is 14 % slower since 17 November; 1 cell failed; 2 cells not measured"),
    (judged(SLOWER, missing=tuple(replace(NOT_RUN[0], night=f"2026-11-{day}") for day in (20, 19))),
     "The night of 20 November was not run: suites/a.yaml: broken; 1 regression; 1 more night not run"),
    (judged(missing=[*missing("a", of=9), *STOPPED]), "dut 64b uni 0q failed: a; 2 cells not measured"),
    (DOWN, "Nothing was measured tonight: all 2 cells failed: no TRex server at trex1"),
    (Judgement((), 0, few=FEW),
     "1 cell measured; too early to judge: needs 7 nights, has 3"),
    (judged(few=FEW, steady=STEADY),
     "3 cells as usual; 1 cell not judged yet: needs 7 nights, has 3"),
    (judge_rows([make_row(status="incomplete")]),
     "No run has a figure yet: vpp 64b uni on 20 November: incomplete"),
    (judge_rows([make_row(kind="search", status=UNANSWERED), make_row(at="2026-11-19", status="running")]),
     "No run has a figure yet: vpp 64b uni search on 20 November: no answer; 1 more before"),
    (judged(OLDER, steady=STEADY, since="2026-11-18"), "Nothing new since 2026-11-18; 1 older change"),
]  # fmt: skip


@pytest.mark.parametrize(("judgement", "words"), SENTENCES)
def test_the_verdict_is_a_sentence(judgement: Judgement, words: str) -> None:
    assert first_sentence(judgement) == words


def test_what_cannot_be_judged_is_no_success() -> None:
    not_run = judged(missing=(replace(NOT_RUN[0], night="2026-11-21"),))
    every = judged(steady=STEADY), judged(missing=missing("no link", of=16)), DOWN, not_run, Judgement((), 0)
    assert [one.exit_code for one in every] == [0, 0, 4, 4, 4]
    assert format_markdown(DOWN).startswith("**FAILED**: Nothing was measured")


def test_every_output_begins_with_it() -> None:
    judgement = SENTENCES[1][0]
    words = SENTENCES[1][1]
    report = Report([], groups=groups_of(judgement), judged=first_sentence(judgement))
    assert format_judgement(judgement).startswith(f"{words}\n") and judgement_values(judgement)["summary"] == words
    assert format_markdown(judgement).startswith(f"**REGRESSION**: {words}\n")
    assert to_markdown(report).startswith(f"# {words}\n")
    night = Night("nightly", "2026-11-20", "2026-11-20T01:00:00Z", False, ())
    assert summary(night, [], words).startswith(f"{words}\nnightly, night of 2026-11-20: ")


def test_the_worst_event_stands_first_and_each_has_its_kind_and_sign() -> None:
    every = (KNOWN, FASTER, RECOVERED, SUSPECTED, DEARER, RELAPSE, SLOWER)
    told = events_of_judgement(judged(*every, missing=missing("no link", "no link", "power cut", of=4)))
    kinds = ["regression", "relapse", "dearer", "suspected", "failed", "failed", "recovered"]
    assert [one.kind for one in told] == [*kinds, "improvement", "known"]
    assert {one.kind for one in told} == SIGNS.keys() and all(one.sign == SIGNS[one.kind] for one in told)
    assert [one.tone for one in told] == ["bad"] * 3 + ["doubt"] + ["bad"] * 2 + ["good"] * 2 + ["known"]
    assert [one.alarms for one in told] == [True] * 8 + [False]
    assert told[4].headline == "2 of 4 cells: no link"
    assert events_of_judgement(replace(DOWN, findings=(SLOWER,)))[0].everything


def test_a_regression_from_before_the_night_that_was_named_is_listed_last() -> None:
    told = events_of_judgement(judged(OLDER, FASTER, since="2026-11-18"))
    assert [(one.kind, one.alarms) for one in told] == [("improvement", True), ("regression", False)]


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
        (found(share=-0.4779, before_at_least=True), "netgate-vpp at least 47.7 % slower since"),
        (found(share=0.25, kind=Kind.KNOWN, before_at_least=True), "netgate-vpp at most 25.0 % faster since"),
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
