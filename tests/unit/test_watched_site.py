"""The site of ``trexbench report --watch``, without a socket: its page, its files, its words on a night under way."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from report_nights import CELLS, store_night

from trexbench.cli import watch
from trexbench.cli.watch import Site
from trexbench.core.errors import StoreError
from trexbench.core.history.cell import Cell
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.units import seconds_of
from trexbench.results.nights import KNOWN_FILE, NightWriter, find_nights, keep_ratios, load_known
from trexbench.review.find import Warn
from trexbench.review.progress import progress_lines
from trexbench.suite.underway import suite_lock


@pytest.fixture(autouse=True)
def _looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_EVERY_S", 0.0)


def site_of(results: Path, warned: list[str], suite: str | None = None) -> Site:
    """A site whose page is its version; it cannot be made where the known changes cannot be read."""

    def make(version: str, warn: Warn) -> str:
        load_known(results)
        if not results.is_dir():
            raise StoreError(f"{results}: no such directory")
        return version

    return Site(results, make, warned.append, suite)


def lines(site: Site) -> list[str]:
    found = site.state()["lines"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("fault", ["half a file", "moved away"])
def test_a_page_that_cannot_be_made_again_stays_and_says_why(fault: str, tmp_path: Path) -> None:
    results, warned = tmp_path / "results", list[str]()
    store_night(results, "2026-11-19", CELLS[:1])
    site = site_of(results, warned)
    before, known = site.page(), results / KNOWN_FILE
    known.write_text("{") if fault == "half a file" else results.rename(tmp_path / "away")
    for _ in range(2):
        assert site.page() == before == str(site.state()["version"]).encode(), "or a browser loads it again and again"
    assert [line.startswith("This page is not up to date: ") for line in lines(site)] == [True]
    assert len(warned) == 1 and str(results) in warned[0]
    known.unlink() if fault == "half a file" else (tmp_path / "away").rename(results)
    assert site.page() == before and lines(site) == []
    store_night(results, "2026-11-20", CELLS[:1])
    assert site.page() != before


def test_the_page_is_made_again_when_testers_were_calibrated(tmp_path: Path) -> None:
    store_night(tmp_path, "2026-11-19", CELLS[:1])
    site = site_of(tmp_path, [])
    before = site.page()
    keep_ratios(tmp_path, [])
    assert site.page() != before


def test_the_first_page_ends_the_command_where_it_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / KNOWN_FILE).write_text("{")
    with pytest.raises(StoreError, match=KNOWN_FILE):
        site_of(tmp_path, []).page()


def test_a_damaged_night_is_warned_of_once(tmp_path: Path) -> None:
    store_night(tmp_path, "2026-11-19", CELLS[:1])
    (tmp_path / "nights" / "damaged.json").write_text("{")
    warned = list[str]()
    site = site_of(tmp_path, warned)
    assert site.state() == site.state() and len(warned) == 1 and "damaged.json" in warned[0]


def test_a_link_to_itself_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "nights").mkdir()
    (tmp_path / "nights" / "loop.json").symlink_to("loop.json")
    warned = list[str]()
    assert site_of(tmp_path, warned).answer("/nights/loop.json") is None
    assert site_of(tmp_path, warned).state()["lines"] == []


def test_a_suites_page_is_deaf_to_the_nights_of_others(tmp_path: Path) -> None:
    store_night(tmp_path, "2026-11-19", CELLS[:1])
    sites = {suite: site_of(tmp_path, [], suite) for suite in ("nightly", "other", None)}
    versions = {suite: site.state()["version"] for suite, site in sites.items()}
    store_night(tmp_path, "2026-11-20", CELLS[:1])
    changed = [suite for suite, site in sites.items() if site.state()["version"] != versions[suite]]
    assert changed == ["nightly", None]
    ((_, last),) = find_nights(tmp_path, pytest.fail)[1:]
    going = replace(last, night="2026-11-21", finished=None)
    NightWriter.begin(tmp_path, going)
    with suite_lock("nightly", tmp_path):
        assert [bool(lines(site)) for site in sites.values()] == [True, False, True]
        (tmp_path / KNOWN_FILE).write_text("{")
        assert lines(sites["nightly"])[0].startswith("Night of 2026-11-21"), "also where the page cannot be made"


def test_a_resumed_night_is_shown_though_a_later_one_has_finished(tmp_path: Path) -> None:
    store_night(tmp_path, "2026-11-19", CELLS[:1])
    ((_, last),) = find_nights(tmp_path, pytest.fail)
    for day, age_s in (("2026-11-18", 0), ("2026-11-17", 60)):
        file = NightWriter.begin(tmp_path, replace(last, night=day, finished=None)).path
        os.utime(file, (written := time.time() - age_s, written))
    with suite_lock("nightly", tmp_path):
        assert lines(site_of(tmp_path, []))[0].startswith("Night of 2026-11-18"), "the last one written"


QUEUES = [Cell("vpp", "64b", False, queues) for queues in (1, 2, 3)]
NOW_S = seconds_of("2026-11-20T02:01:30Z") or 0.0


def night(
    *stands: tuple[CellState, str | None, float | None],
    expected_s: float | None = 60.0,
    duts: tuple[str, str, str] = ("vpp", "vpp", "vpp"),
) -> Night:
    """A night whose cells are in these states, began at these times of the day and took so long."""
    records = []
    for cell, dut, (state, clock, took_s) in zip(QUEUES, duts, stands, strict=True):
        attempts = () if clock is None else (Attempt(f"2026-11-20T{clock}Z", took_s=took_s),)
        records.append(CellRecord(replace(cell, dut=dut), state, attempts, expected_s))
    return Night("nightly", "2026-11-20", "2026-11-20T02:00:00Z", False, tuple(records))


DONE, FAILED, RUNNING, WAITING = CellState.DONE, CellState.FAILED, CellState.RUNNING, CellState.WAITING
WAITS = WAITING, None, None
NOW = RUNNING, "02:01:00", None
"""Began half a minute ago."""


def test_the_rest_takes_what_is_expected_until_a_cell_is_measured() -> None:
    going = night((FAILED, "02:00:00", None), NOW, WAITS)
    assert going.left_s(NOW_S) == 60 - 30 + 60
    assert going.left_s(NOW_S - 86400) == 60 + 60, "by a clock that is behind"
    assert list(progress_lines(going, NOW_S)) == [
        "Night of 2026-11-20, nightly: 0 of 3 cells measured, 1 failed",
        "Now vpp 64b uni 2q, since 02:01 UTC",
        "About 2 min left",
    ]


def test_then_at_their_pace_whatever_pauses_there_were() -> None:
    """The first cell may have been measured in a session the day before: only its own time counts."""
    going = night((DONE, "02:00:00", 120.0), NOW, WAITS)
    assert going.left_s(NOW_S) == 120 - 30 + 120
    assert going.left_s(NOW_S + 5000) == 120, "late, but not owed time"
    long = night((DONE, "02:00:00", 10_800.0), NOW, WAITS)
    assert list(progress_lines(long, NOW_S))[2] == "About 6 h 0 min left"


def test_a_night_of_an_older_version_does_not_say_what_is_left() -> None:
    older = night((DONE, "02:00:00", None), NOW, WAITS, expected_s=None)
    assert list(progress_lines(older, NOW_S))[2:] == []


def test_a_night_by_a_fleet_names_all_that_is_measured() -> None:
    by_fleet = night(NOW, NOW, WAITS, duts=("vpp", "linux", "bsd"))
    assert by_fleet.left_s(NOW_S) == (30 + 30 + 60) / 2
    one_waits = night(NOW, NOW, WAITS, duts=("vpp", "linux", "linux"))
    assert one_waits.left_s(NOW_S) == 30 + 60, "the DUT's tester measures one cell after the other"
    assert list(progress_lines(by_fleet, NOW_S))[1:] == [
        "Now vpp 64b uni 1q, since 02:01 UTC",
        "Now linux 64b uni 2q, since 02:01 UTC",
        "About 1 min left",
    ]
    assert list(progress_lines(night(WAITS, WAITS, WAITS), NOW_S))[1:] == []


def test_a_cell_that_has_not_begun_is_named_without_a_time() -> None:
    damaged = night((DONE, "02:00:00", 60.0), (RUNNING, None, None), WAITS)
    assert list(progress_lines(damaged, NOW_S))[1] == "Now vpp 64b uni 2q"
