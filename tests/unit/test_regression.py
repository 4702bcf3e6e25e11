"""Histories of cells, judged: what got slower, since when and why."""

from __future__ import annotations

import random
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from effort import examples, scaled
from hypothesis import given
from hypothesis import strategies as st
from nights import LINUX, VPP, date, make_row, make_rows, noisy, over_wan

from trexbench.core.history.explain import part_words
from trexbench.core.history.finding import Finding, Kind
from trexbench.core.history.known import Known
from trexbench.core.history.levels import NEEDED_NIGHTS
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.history.regression import Judgement, judge_rows
from trexbench.core.history.rows import RunRow
from trexbench.core.history.series import differences, like_the_last, median_nodes

RATE = "maximum rate"
FAR = over_wan("20ms,1gbit")
STEP = [*noisy(30), *noisy(3, 4.75e6, seed=2)]


def only(judgement: Judgement, kind: Kind) -> Finding:
    (finding,) = judgement.findings
    assert finding.kind is kind
    return finding


@pytest.mark.parametrize(
    ("values", "kind", "code"),
    [
        ([], None, 4),
        (noisy(30), None, 0),
        ([*noisy(30), *noisy(3, 5.25e6)], Kind.IMPROVEMENT, 0),
        ([*noisy(30), *noisy(40, 5.25e6)], None, 0),  # no news any more
        ([*noisy(30), *noisy(60, 4.75e6)], Kind.REGRESSION, 3),  # until it is acknowledged
        ([*noisy(30), *noisy(10, 4.75e6), *noisy(10, seed=7)], Kind.RECOVERY, 0),  # or has recovered
        ([*noisy(30), *noisy(10, 4.75e6), *noisy(20, seed=7)], None, 0),  # of which two weeks know
        ([*noisy(30), *noisy(10, 4.5e6), *noisy(10, 4.75e6)], Kind.REGRESSION, 3),  # half of it is not all
        ([*noisy(30), 4e6], Kind.SUSPICION, 0),  # one bad night
        ([*noisy(30), 4e6, *noisy(1, seed=3)], None, 0),
        (noisy(NEEDED_NIGHTS - 1), None, 4),
        ([5e6], None, 4),
    ],
)
def test_verdicts(values: list[float], kind: Kind | None, code: int) -> None:
    judgement = judge_rows(make_rows(values))
    assert [finding.kind for finding in judgement.findings] == ([kind] if kind else [])
    assert judgement.exit_code == code
    assert judgement.steady == (((VPP, RATE),) if (kind, code) == (None, 0) else ())
    assert [*judgement.few.values()] == [len(values)] * (0 < len(values) < NEEDED_NIGHTS)


@pytest.mark.parametrize("nights", [5, 10, 20])
def test_a_regression_ends_within_three_nights_of_the_return(nights: int) -> None:
    codes: list[tuple[int, ...]] = []
    for seed in range(scaled(20, 4)):
        level, back = noisy(60 + nights + 20, noise=0.01, seed=seed), 60 + nights
        rows = make_rows([value * (0.95 if 60 <= night < back else 1.0) for night, value in enumerate(level)])
        codes.append(tuple(judge_rows(rows[:end]).exit_code for end in (back, back + 3, back + 20)))
    assert codes.count((3, 0, 0)) >= 0.9 * len(codes)  # at 1 % noise


def bound(number: int, value: float) -> RunRow:
    return make_row(number, value, at_least=True, limit="generator-tx")


@pytest.mark.parametrize(
    ("before", "first", "after", "second", "kind"),
    [
        (bound, 14.4e6, bound, 14.4e6, None),
        (bound, 14.4e6, bound, 13e6, None),  # the generator does less: nothing is known of the DUT
        (bound, 14.4e6, bound, 14.8e6, None),  # nor by how much it was above before
        (bound, 14.4e6, make_row, 12e6, Kind.REGRESSION),  # at least 14.4, and now 12
        (bound, 14.4e6, make_row, 14.6e6, None),
        (make_row, 12e6, bound, 11e6, None),  # it may still do 12
        (make_row, 12e6, bound, 14e6, Kind.IMPROVEMENT),
        (make_row, 12e6, make_row, 11e6, Kind.REGRESSION),
    ],
)
def test_bounds_prove_only_what_they_bound(before: Any, first: float, after: Any, second: float, kind: Kind) -> None:
    rows = [*(before(number, first) for number in range(30)), *(after(number, second) for number in range(30, 34))]
    judgement = judge_rows(rows)
    sign = "" if before is after else "<=" if before is bound else ">="
    assert [(finding.kind, finding.bound) for finding in judgement.findings] == ([(kind, sign)] if kind else [])
    if kind is Kind.REGRESSION:  # its end leaves it what it was
        again = judge_rows([*rows, *(before(number, first) for number in range(34, 40))]).findings
        assert [(one.kind, one.loss and one.loss.bound) for one in again] == [(Kind.RECOVERY, sign)]
    suspected = judge_rows(rows[:31]).findings
    assert [(one.kind, one.bound) for one in suspected] == ([(Kind.SUSPICION, sign)] if kind else []), "as later nights"
    silent = after is bound and second < first
    assert any("limited by the generator since" in remark for remark in judgement.remarks) == silent


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traffic": "1" * 64}, "other traffic"),
        ({"through": FAR}, "over no WAN -> over WAN 20ms,1gbit by netem since"),
        ({"line_rate_bps": 1e9}, "line rate 10.00 Gbit/s -> 1.000 Gbit/s"),
        ({"loss_threshold": 0.01}, "loss threshold"),
    ],
)
def test_other_conditions_begin_another_history(changes: dict[str, Any], words: str) -> None:
    rows = [*make_rows(noisy(30)), *(make_row(number, 4e6, **changes) for number in range(30, 33))]
    judgement = judge_rows(rows)
    assert judgement.findings == () and judgement.few == {(VPP, RATE): 3}
    assert any(words in remark and date(30) in remark for remark in judgement.remarks)


@pytest.mark.parametrize("name", [field.name for field in fields(RunRow)])
def test_a_history_has_the_runs_that_differ_in_no_condition(name: str) -> None:
    values: dict[str, Any] = {"through": FAR, "line_rate_bps": 1e9, "loss_threshold": 0.5}
    row = make_row()
    other = replace(row, **{name: values.get(name, "another")})
    assert (like_the_last([other, row]) == [row]) == any(differences(other, row))


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(make_rows(noisy(33, 4e6), replace(VPP, simulated=True)), id="simulated runs: another cell"),
        pytest.param([make_row(30, 4e6), make_row(30, id="again", started=f"{date(30)}T08:00:00Z")], id="later of two"),
        pytest.param([make_row(30, x, id=str(x)) for x in (5e6, 2e6, 5.001e6)] * 2, id="the median of a night's runs"),
        pytest.param(
            [make_row(30 + at // 3, x, at_least=x < 4.5e6) for at, x in enumerate([4e6, 4.5e6, 5e6] * 3)],
            id="a median that a bound could raise",
        ),
        pytest.param([make_row(at, 3e6, night=None, suite=None) for at in range(20, 40)], id="runs by hand"),
        pytest.param([make_row(at, 1e6, status="incomplete") for at in range(30, 34)], id="incomplete runs"),
    ],
)
def test_what_does_not_count_beside_steady_nights(rows: list[RunRow]) -> None:
    assert judge_rows([*make_rows(noisy(30)), *rows]).findings == ()


def test_runs_by_hand_alone_are_a_history() -> None:
    assert judge_rows([make_row(n, v, night=None) for n, v in enumerate(STEP)]).exit_code == 3


def test_the_nights_own_scatter_is_the_noise_whatever_one_run_says_of_itself() -> None:
    """-2 % at 0.3 % from night to night, where each run leaves open 3 %."""
    rows = [make_row(n, v, uncertainty_pps=1.5e5) for n, v in enumerate([*noisy(30), *noisy(3, 4.9e6)])]
    assert only(judge_rows(rows), Kind.REGRESSION).nights == 3


def test_all_that_is_said_of_a_figure_has_one_noise_of_one_level() -> None:
    """A recovery begins at the level of its loss, which is not the one whose scatter the noise is."""
    judgement = judge_rows(make_rows([*noisy(30), *noisy(5, 4.6e6), *noisy(8)]))
    one, usual = only(judgement, Kind.RECOVERY), judgement.usual[VPP, RATE]
    assert (one.noise, one.usual) == (usual.noise, usual.level) and one.before < 0.95 * one.usual


def test_a_regression_is_explained_by_the_nodes_that_cost_more() -> None:
    rows = []
    for number, value in enumerate(STEP):
        slow = number >= 30
        nodes = {"ip4-lookup": 131.0 if slow else 100.0, "ip4-rewrite": 60.0, "arp": 9.0 if slow else 10.0}
        rows.append(make_row(number, value, nodes=nodes, cycles_per_packet=240.0 + 30 * slow))
    findings = {finding.metric.name: finding for finding in judge_rows(rows).of(Kind.REGRESSION)}
    assert set(findings) == {RATE, "cycles/packet"}
    for finding in findings.values():
        assert finding.explanation == ("ip4-lookup +31, other nodes -1: +30 cycles/packet since 3 February",)


@pytest.mark.parametrize(
    ("rate", "cycles", "words"),
    [
        (4.75e6, 270.0, ("240 -> 270 cycles/packet since 3 February",)),
        (4.75e6, 241.0, ("a packet costs the DUT as much as before: 240 -> 241 cycles/packet",)),
        (4.75e6, 220.0, ("a packet costs the DUT less than before: 240 -> 220 cycles/packet",)),
        (5.25e6, 270.0, ()),  # no reason to be faster
    ],
)
def test_a_rate_is_told_beside_what_a_packet_costs(rate: float, cycles: float, words: tuple[str, ...]) -> None:
    rows = [*make_rows(noisy(30), cycles_per_packet=240.0)]
    rows += [make_row(30 + n, v, cycles_per_packet=cycles) for n, v in enumerate(noisy(3, rate))]
    finding = next(one for one in judge_rows(rows).findings if one.metric.name == RATE)
    assert finding.explanation == words


NODES = st.dictionaries(st.sampled_from("abcdefg"), st.floats(0, 500), max_size=7)


@given(st.lists(NODES, min_size=1, max_size=4), st.lists(NODES, min_size=1, max_size=4), st.floats(-600, 600))
def test_what_is_told_of_nodes_never_contradicts_the_whole(
    before: list[dict[str, float]], after: list[dict[str, float]], whole: float
) -> None:
    words = part_words(median_nodes(before), median_nodes(after), whole)
    told = [int(number) for number in re.findall(r"[+-]\d+", words)]
    if not words:
        return
    *parts, total = told
    assert total == round(whole)
    if words.startswith("all nodes"):
        assert len(parts) == 1 and parts[0] * whole >= 0, words
        return
    others = [parts.pop()] if "other nodes" in words else []
    assert all(part * whole > 0 for part in parts), words
    assert sum(parts) + sum(others) == total if others else abs(sum(parts)) <= abs(total), words
    assert abs(sum(parts)) >= abs(total) / 4 and abs(sum(others)) <= abs(total) / 4 + 1, words


@pytest.mark.parametrize("lost", [0.05, 0.1, 0.2])
def test_a_drift_is_told_as_drift(lost: float) -> None:
    values = [value * (1 - lost * night / 200) for night, value in enumerate(noisy(200))]
    finding = only(judge_rows(make_rows(values)), Kind.REGRESSION)
    assert "a slow drift since about" in finding.explanation[0]


def known(day: str, cell: str = "netgate-vpp *", metric: str | None = None) -> Known:
    return Known(day, cell, metric, "new firmware")


@pytest.mark.parametrize(
    ("note", "alarms"),
    [
        (known(date(32)), False),
        (known(date(30), metric=RATE), False),
        (known(date(29)), False),  # announced the day before
        (known(date(20)), True),  # long before: it was about something else
        (known(date(32), metric="power"), True),
        (known(date(32), cell="netgate-linux *"), True),
        (known(date(32), cell="*"), False),
    ],
)
def test_known_changes_do_not_alarm(note: Known, alarms: bool) -> None:
    judgement = judge_rows(make_rows(STEP), known=[note])
    finding = only(judgement, Kind.REGRESSION if alarms else Kind.KNOWN)
    assert judgement.exit_code == (3 if alarms else 0)
    assert finding.note == (None if alarms else "new firmware")


def test_after_a_known_change_the_new_level_is_what_counts() -> None:
    rows = make_rows([*STEP, *noisy(20, 4.75e6), *noisy(3, 4.5e6)])
    finding = only(judge_rows(rows, known=[known(date(32))]), Kind.REGRESSION)
    assert finding.since == date(53) and finding.before == pytest.approx(4.75e6, rel=0.01)


def test_since_lists_older_regressions_without_alarm() -> None:
    rows = make_rows(STEP)
    assert judge_rows(rows, since=date(30)).exit_code == 3
    later = judge_rows(rows, since=date(31))
    assert later.exit_code == 0 and len(later.of(Kind.OLDER)) == 1


def test_a_cell_left_out_for_long_is_not_judged() -> None:
    judgement = judge_rows([*make_rows(STEP), *make_rows(noisy(70, 6e5), LINUX)])
    assert judgement.exit_code == 0 and any("not judged" in remark for remark in judgement.remarks)


@pytest.mark.parametrize(("back", "words"), [(0, "its history starts again"), (1, "its former history goes on")])
def test_a_changed_condition_is_reported_with_the_history_that_counts(back: int, words: str) -> None:
    slow = [make_row(20 + at, 3e6, line_rate_bps=5e9) for at in range(2)]
    rows = [*make_rows(noisy(20)), *slow, *(make_row(22 + at) for at in range(back))]
    (remark,) = judge_rows(rows).remarks
    assert remark.endswith(f"Gbit/s since {date(20 + 2 * back)}; {words}")
    (alike,) = judge_rows([*rows, *(replace(row, cell=OTHER) for row in rows)]).remarks
    assert alike == remark.replace(str(VPP), "netgate-vpp (2 cells)")


OTHER = replace(VPP, mode="imix")


def night(at: int, suite: str = "nightly", hour: int = 1, **cells: str) -> Night:
    """A night of VPP and OTHER by their names, each with why it failed, if it did."""
    records = []
    for name, error in cells.items():
        attempts = (Attempt(f"{date(at)}T0{hour}:30:00Z", None, error or None),)
        cell = {"vpp": VPP, "other": OTHER}[name]
        records.append(CellRecord(cell, CellState.FAILED if error else CellState.DONE, attempts))
    return Night(suite, date(at), f"{date(at)}T0{hour}:00:00Z", False, tuple(records), finished="x")


BROKEN = replace(night(19), error="suites/nightly.yaml: broken")
MISSED = {
    "measured again that night": ([night(19, vpp="a", other="b"), night(19, hour=8, vpp="")], [(OTHER, 19, "b", 2)]),
    "on the next day, in vain": ([night(19, vpp="a", other=""), night(20, vpp="c")], [(VPP, 20, "c", 2)]),
    "both, one after the other": ([night(19, vpp="a", other="b"), night(19, vpp=""), night(20, other="")], []),
    "the suite has become smaller": ([night(9, vpp="", other="b"), night(19, vpp="")], []),
    "a whole night since": ([night(18, vpp="a", other=""), night(19, vpp="", other="")], []),
    "another has measured it since": ([night(3, "old", vpp="a", other="b"), night(19, vpp="")], [(OTHER, 3, "b", 2)]),
    "another had measured it before": ([night(3, vpp=""), night(19, "old", vpp="a")], [(VPP, 19, "a", 1)]),
    "two suites": ([night(19, vpp="a"), night(19, "second", hour=2, vpp="b")], [(VPP, 19, "a", 1), (VPP, 19, "b", 1)]),
    "the suite could not be read": ([night(18, vpp=""), BROKEN], [(None, 19, "suites/nightly.yaml: broken", 0)]),
    "and was mended": ([BROKEN, night(20, vpp="")], []),
    "simulated": ([BROKEN, replace(night(20, vpp=""), simulated=True)], []),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSED)
def test_of_a_cell_that_was_measured_again_the_last_record_counts(name: str) -> None:
    nights, words = MISSED[name]
    found = [(one.cell, one.night, one.reason, one.of) for one in judge_rows([], nights=nights).missing]
    assert found == [(cell and str(cell), date(at), reason, of) for cell, at, reason, of in words]


@pytest.mark.parametrize(("at", "count"), [(39, 1), (9, 0)])
def test_a_suite_that_failed_and_was_given_up_is_not_reported_for_ever(at: int, count: int) -> None:
    given_up = [night(at, "old", other="b"), replace(night(at), error="suites/nightly.yaml: broken")]
    assert [len(judge_rows(make_rows(noisy(40)), nights=[one]).missing) for one in given_up] == [count, count]


def test_cells_that_the_last_night_did_not_measure_are_known() -> None:
    rows = [*make_rows(noisy(20)), *make_rows(noisy(30), LINUX)]
    by_hand = make_row(31, cell=LINUX, suite=None, night=None)
    assert judge_rows(rows).resting == judge_rows([*rows, by_hand]).resting == {VPP}
    killed = [replace(night(30), cells=(CellRecord(LINUX),), finished=None)]
    assert judge_rows(rows, nights=killed).resting == {VPP, LINUX}, "killed in its first cell"


@examples(20)
@given(st.randoms(use_true_random=False), st.integers(-12, 12))
def test_neither_the_rows_order_nor_their_unit_matters(rng: random.Random, exponent: int) -> None:
    rows = make_rows([value * 2.0**exponent for value in STEP])
    rng.shuffle(rows)
    finding = only(judge_rows(rows), Kind.REGRESSION)
    assert finding.since == date(30) and finding.share == pytest.approx(-0.05, abs=0.01)
