"""Nights that a suite keeps: its own last ones, those its regressions are held against, and all of others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from nights import date
from runs import World, make_plan, make_result

from trexbench.core.history.cell import Cell
from trexbench.core.history.night import CellRecord, Night
from trexbench.core.result import Status
from trexbench.results.index import INDEX_FILE, open_index
from trexbench.results.nights import NightWriter, find_nights, page_name
from trexbench.results.prune import AGAINST_NIGHTS, find_old_nights, remove
from trexbench.results.store import RunWriter

RESULTS = Path("results")
SIMULATED = make_result(make_plan(ramp_s=20.0, confirm_s=0.0), World(capacity_pps=6e5))
CELL = CellRecord(Cell("lab-linux", "var2-64b", False, None))


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(of: str | None, day: int, simulated: bool = False, status: Status = Status.COMPLETE, **told: str) -> Path:
    """A run's document; told: instead of the suite's and the night's own names."""
    labels = {} if of is None else {"suite": of, "night": date(day)}
    changes = {"id": f"{day}-{of}-{told}", "started": f"{date(day)}T12:00:00Z", "dut": {"name": "lab-linux"}}
    command = {"verb": "ramp", "mode": "var2-64b", **labels, **told}
    made = replace(SIMULATED, simulated=simulated, status=status, command=command, **changes)  # type: ignore[arg-type]
    return RunWriter(RESULTS, pytest.fail).end(made)


def night(suite: str, day: int, simulated: bool = False, cells: tuple[CellRecord, ...] = (CELL,)) -> Path:
    return NightWriter.begin(RESULTS, Night(suite, date(day), f"{date(day)}T12:00:00Z", simulated, cells)).path


def whole(suite: str, day: int, simulated: bool = False) -> list[Path]:
    """A night with its run and a picture of it, and its page."""
    document, stored = run(suite, day, simulated), night(suite, day, simulated)
    picture, page = document.with_suffix(".png"), RESULTS / page_name(stored.stem)
    for made in (picture, page):
        made.write_bytes(b"x")
    return [picture, document, page, stored]


def old(
    keep: int, tonight: int, suite: str = "ours", since: Mapping[bool, int] | None = None, warnings: bool = False
) -> list[Path]:
    told = {kind: date(day) for kind, day in (since or {}).items()}
    warn = print if warnings else pytest.fail
    return [RESULTS / path for path in find_old_nights(RESULTS, suite, keep, date(tonight), told, warn)]


def there() -> set[Path]:
    return {path for path in RESULTS.rglob("*") if not path.is_dir() and path.name != INDEX_FILE}


def test_of_two_suites_that_take_turns_each_counts_and_loses_its_own() -> None:
    ours, theirs = [], []
    for day in range(6):
        (ours if day % 2 else theirs).append(whole("ours" if day % 2 else "theirs", day))
    by_hand = run(None, 0)
    assert old(2, 5) == ours[0]
    assert old(2, 5, "theirs") == theirs[0]
    assert remove(RESULTS, [path.relative_to(RESULTS) for path in ours[0]], pytest.fail)
    assert there() == {by_hand, *(path for files in (*ours[1:], *theirs) for path in files)}
    assert old(2, 5) == []


def test_simulated_nights_push_no_measured_one_out() -> None:
    measured = [whole("ours", day) for day in range(3)]
    simulated = [whole("ours", day, simulated=True) for day in range(10)]
    first = [measured[0], simulated[0]]
    runs, files = sorted((one[:2] for one in first), key=lambda one: one[1]), sorted(first, key=lambda one: one[3])
    both = [path for one in (*runs, *(one[2:] for one in files)) for path in one]
    assert old(2, 9) == both + [path for one in simulated[1:8] for path in one], "all runs of a night before its files"


def test_nights_without_a_measurement_do_not_count_and_go_with_those_around() -> None:
    first = whole("ours", 0)
    failed = [night("ours", 1), night("ours", 2, cells=()), run("ours", 2, status=Status.INCOMPLETE)]
    for day in (3, 4):
        whole("ours", day)
    night("ours", 5), night("ours", 6, cells=())
    assert old(3, 6) == []
    assert set(old(2, 6)) == {*first, *failed}
    assert old(2, 6, "ours", {False: 4})[-1:] == []


def test_what_a_regression_is_held_against_stays() -> None:
    nights = [whole("ours", day) for day in range(AGAINST_NIGHTS + 20)]
    last = len(nights) - 1
    assert len(old(3, last)) == 4 * (len(nights) - 3)
    since = AGAINST_NIGHTS + 10
    assert old(3, last, since={False: since}) == [path for files in nights[:10] for path in files]
    assert old(3, last, since={False: 4}) == [] and old(3, last, since={False: 0}) == []
    assert len(old(3, last, since={True: 4})) == 4 * (len(nights) - 3), "a simulated one is not held against these"
    assert len(old(3, last, since={False: last})) == 4 * (last - AGAINST_NIGHTS)


def test_nights_to_come_are_neither_counted_nor_removed() -> None:
    nights = [whole("ours", day) for day in range(6)]
    assert old(2, 3) == [path for files in nights[:2] for path in files]
    assert old(9, 3) == old(9, 5) == []


HOSTILE = ["Ours", "ours ", "ours\0", "our", "ours-2", "", "%", "*", "' OR '1'='1", "../ours", "<script>", "\ud800ours"]


def test_names_that_are_like_the_suites_are_not_the_suites() -> None:
    for name in HOSTILE:
        run("x", 0, suite=name)
        if name.isprintable():
            night(name, 0)
    before = there()
    assert len([path for path in before if "nights" not in path.parts]) == len(HOSTILE)
    for day in (1, 2, 3):
        whole("ours", day)
    assert len(old(1, 3, warnings=True)) == 8 and not before & set(old(1, 3, warnings=True))
    for name in HOSTILE:
        assert all(path in before for path in old(1, 3, name, warnings=True))


@pytest.mark.parametrize(
    "text", ["", "2026", "0000", "2026-03-1", "yesterday", "../2026-03-01", "\u0662\u0660\u0662\u0666-01-01"]
)
def test_a_night_that_is_no_date_neither_counts_nor_goes(text: str) -> None:
    odd = [run("ours", 0, night=text), run("ours", 9, night=text)]
    nights = [whole("ours", day) for day in (1, 2)]
    assert set(old(1, 9)) == set(nights[0]) and set(odd) <= there()
    assert old(2, 9) == []


def test_what_cannot_be_read_stays() -> None:
    damaged, *_ = run("ours", 0), night("ours", 0)
    damaged.write_text("{")
    Path("results/nights/2020-01-01-ours.json").write_text("{")
    whole("ours", 1), whole("ours", 2)
    before = there()
    gone = old(1, 2, warnings=True)
    assert damaged not in gone and Path("results/nights/2020-01-01-ours.json") not in gone
    assert set(gone) == {path for path in before if date(1) in str(path)} | {RESULTS / f"nights/{date(0)}-ours.json"}


def test_no_link_leads_to_what_is_not_to_go() -> None:
    document = whole("ours", 0)[1]
    for day in (1, 2):
        whole("ours", day)
    kept = run("ours", 2, id="another")
    outside = Path("outside")
    document.parent.rename(outside)
    document.parent.symlink_to(outside.absolute())
    (kept.parent / "again.json").symlink_to(outside.absolute() / document.name)
    warnings: list[str] = []
    gone = remove(RESULTS, [path.relative_to(RESULTS) for path in old(1, 2, warnings=True)], warnings.append)
    assert len(list(outside.iterdir())) == 2 and kept.exists()
    assert document.parent.is_symlink() and any("stays" in one for one in warnings)
    assert kept.relative_to(RESULTS) not in gone and not os.path.lexists(kept.parent / "again.json")


def test_a_folder_of_nights_that_is_a_link_is_not_followed() -> None:
    for day in (0, 1):
        whole("ours", day)
    (RESULTS / "nights").rename("moved")
    (RESULTS / "nights").symlink_to(Path("moved").absolute())
    warnings: list[str] = []
    remove(RESULTS, [path.relative_to(RESULTS) for path in old(1, 1)], warnings.append)
    assert len(list(Path("moved").iterdir())) == 2 and len(warnings) == 1 and "nights" in warnings[0]


def test_killed_after_any_file_the_next_call_finds_the_rest() -> None:
    for day in range(5):
        whole("ours", day)
    planned = old(2, 4)
    assert len(planned) == 12
    for done in range(len(planned)):
        assert old(2, 4) == planned[done:]
        (path,) = remove(RESULTS, [planned[done].relative_to(RESULTS)], pytest.fail)
        index = open_index(RESULTS, pytest.fail)
        assert all((RESULTS / row.path).exists() for row in index.rows()) and index.problems() == []
        assert len(find_nights(RESULTS, pytest.fail)) == 5 - (done + 1) // 4
        assert RESULTS / path == planned[done]
    assert old(2, 4) == []
