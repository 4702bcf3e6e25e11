"""Which older nights lie beside the latest, why, and what of their documents becomes a curve."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import make_row, make_run

from trexbench.core.errors import StoreError
from trexbench.core.history import Cell, RunRow, row_of
from trexbench.core.result import to_document
from trexbench.report.older import MOST_POINTS, REASONS, choose_older, older_curves
from trexbench.report.overlay import find_curves
from trexbench.report.trends import Change

CELL = Cell("vpp", "64b", True, None)
YEAR = [f"{year}-{month:02}-{day:02}" for year, month in ((2025, 11), (2026, 10), (2026, 11)) for day in range(1, 21)]


def make_change(at: str, cell: Cell = CELL) -> Change:
    return Change(cell, "maximum rate", at, "slower", True)


def chosen_of(rows: list[RunRow], *changes: Change) -> list[tuple[str, str]]:
    return [(one.night, " ".join(one.why)) for one in choose_older(rows[-1], rows, changes)]


@pytest.mark.parametrize(
    ("what", "nights", "changes", "wanted"),
    [
        ("nothing but the latest", ["2026-11-20"], (), []),
        ("one night before", ["2026-11-18", "2026-11-20"], (), [("2026-11-18", "night")]),
        (
            "all four",
            YEAR,
            ("2026-11-10T02:00:00Z",),
            [("2026-11-19", "night"), ("2026-11-09", "change"), ("2026-10-20", "month"), ("2025-11-20", "year")],
        ),
        (
            "the newest change counts",
            YEAR[-15:],
            ("2026-11-10T02:00:00Z", "2026-11-15T02:00:00Z"),
            [("2026-11-19", "night"), ("2026-11-14", "change")],
        ),
        ("one night for two reasons", YEAR[-5:], ("2026-11-20T02:00:00Z",), [("2026-11-19", "change night")]),
        (
            "a change named by its night",
            YEAR[-5:],
            ("2026-11-18",),
            [("2026-11-19", "night"), ("2026-11-17", "change")],
        ),
        ("a change before all runs", YEAR[-2:], ("2026-01-01",), [("2026-11-19", "night")]),
        ("three weeks are a month, two are none", ["2026-10-31", "2026-11-06", "2026-11-20"], (), None),
    ],
)
def test_nights_that_explain_something(
    what: str, nights: list[str], changes: tuple[str, ...], wanted: list[tuple[str, str]] | None
) -> None:
    wanted = [("2026-11-06", "night"), ("2026-10-31", "month")] if wanted is None else wanted
    assert chosen_of([make_row(at=at) for at in nights], *map(make_change, changes)) == wanted, what


def test_the_last_run_of_a_night_counts_and_a_nightless_one_only_among_its_like() -> None:
    twice = [make_row(at="2026-11-19", started=f"2026-11-19T0{hour}:00:00Z", path=f"{hour}") for hour in (1, 3)]
    by_hand = make_row(at="2026-11-19", started="2026-11-19T09:00:00Z", night=None)
    rows = [*twice, by_hand, make_row()]
    assert [one.row.path for one in choose_older(rows[-1], rows, ())] == ["3"]
    alone = make_row(night=None)
    assert [one.row for one in choose_older(alone, [*twice, by_hand, alone], ())] == [by_hand]


def test_a_change_after_midnight_belongs_to_its_night() -> None:
    rows = [make_row(at=f"2026-11-{day}", started=f"2026-11-{day + 1}T00:30:00Z") for day in range(15, 21)]
    assert chosen_of(rows, make_change(rows[3].started)) == [("2026-11-19", "night"), ("2026-11-17", "change")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"line_rate_bps": 1e9}, "line rate of 1"),
        ({"traffic": "1"}, "other traffic"),
        ({"loss_threshold": 0.01}, "loss threshold of 1"),
    ],
)
def test_unlike_runs_are_named_only_where_no_like_one_is(changes: dict[str, Any], words: str) -> None:
    latest, like, unlike = make_row(), make_row(at="2026-11-15"), make_row(at="2026-11-19", **changes)
    assert [(one.row, one.unlike) for one in choose_older(latest, [like, unlike, latest], ())] == [(like, "")]
    (only,) = choose_older(latest, [unlike, latest], ())
    assert only.row == unlike and only.unlike.startswith(words)


def test_another_configuration_is_told_and_laid_over_all_the_same() -> None:
    latest, before = make_row(facts="b"), make_row(at="2026-11-19", facts="a")
    (one,) = choose_older(latest, [before, latest], ())
    assert one.otherwise and not one.unlike
    assert not choose_older(before, [make_row(at="2026-11-18", facts="a"), before], ())[0].otherwise


@given(st.lists(st.dates().map(str), min_size=1, max_size=40, unique=True), st.dates().map(str))
def test_they_are_few_older_and_named_once(nights: list[str], change: str) -> None:
    rows = [make_row(at=at) for at in sorted(nights)]
    chosen = chosen_of(rows, make_change(change))
    assert len(chosen) <= len(REASONS) and all(night < rows[-1].night for night, _ in chosen if rows[-1].night)
    assert chosen == sorted(set(chosen), reverse=True)
    keys = " ".join(why for _, why in chosen).split()
    assert len(keys) == len(set(keys)) and set(keys) <= set(REASONS)


RUN = make_run(CELL, ramp_s=200.0)
ROW = row_of(RUN, "x.json")
TEXT = json.dumps(to_document(RUN))


def test_a_document_has_the_curve_of_its_run_in_few_points() -> None:
    for older, latest in zip(older_curves(ROW, json.loads(TEXT)), find_curves(CELL, RUN), strict=True):
        assert (older.direction, older.knee_pps, older.words) == (latest.direction, latest.knee_pps, latest.words)
        assert older.result.confirmed_pps == latest.result.confirmed_pps
        assert len(older.offered_pps) <= MOST_POINTS + 2 < len(latest.offered_pps)
        assert set(older.offered_pps) & set(latest.offered_pps)
        assert older.offered_pps[-1] == pytest.approx(latest.offered_pps[-1], rel=0.05)


def _set(*keys: Any, to: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("started", to="2020-01-01T00:00:00Z"), "another run than the index names"),
        (_set("analysis", 0, "limit", to="nobody"), "wrong kind"),
        (_set("analysis", 0, "maximum_pps", to="1"), "wrong kind"),
        (_set("analysis", 0, "at_least", to=0), "wrong kind"),
        (_set("analysis", 0, "trials", to=[{"a": 1}]), "without 'offered_pps'"),
        (_set("analysis", to=None), "wrong kind"),
        (_set("samples", 9, "ports", "0", "opackets", to=-1), "sample 9: port 0: opackets is no count"),
        (_set("samples", 9, "t_s", to=0.0), "sample 9: time goes back"),
        (_set("samples", 9, "ports", to={}), "sample 9: port 0 is missing"),
        (_set("plan", "window_s", to=[]), "wrong kind"),
        (_set("schema", to="x"), "not a run document"),
    ],
)
def test_a_damaged_document_is_refused_in_words(change: Callable[[Any], None], words: str) -> None:
    document = json.loads(TEXT)
    change(document)
    with pytest.raises(StoreError, match=re.escape(words)):
        older_curves(ROW, document)
