"""Known changes on disk."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from trexbench.core.errors import ConfigError, StoreError
from trexbench.core.history.known import Known, known_to_dict, parse_date
from trexbench.results.nights import KNOWN_FILE, add_known, load_known, remove_known

pytestmark = pytest.mark.portable

ONE = Known("2026-11-20", "netgate-vpp *", "power", "a <b> fan")
OTHER = Known("2026-11-21", "*", None, "moved")


def test_kept_listed_and_removed(tmp_path: Path) -> None:
    assert load_known(tmp_path) == []
    add_known(tmp_path, ONE)
    add_known(tmp_path, OTHER)
    assert load_known(tmp_path) == [ONE, OTHER]
    assert remove_known(tmp_path, 1) == ONE
    assert load_known(tmp_path) == [OTHER]
    with pytest.raises(StoreError, match="no known change 2"):
        remove_known(tmp_path, 2)


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    threads = [threading.Thread(target=add_known, args=(tmp_path, ONE)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load_known(tmp_path) == [ONE] * 8


def test_those_of_earlier_versions_are_read_and_removed_too(tmp_path: Path) -> None:
    (tmp_path / KNOWN_FILE).write_text(json.dumps(known_to_dict([ONE, OTHER])), encoding="utf-8")
    third = Known("2026-11-22", "x", None, "new")
    add_known(tmp_path, third)
    assert load_known(tmp_path) == [ONE, OTHER, third]
    assert remove_known(tmp_path, 1) == ONE and remove_known(tmp_path, 1) == OTHER
    assert load_known(tmp_path) == [third]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 100_000,
        '{"schema": "trexbench/acknowledged", "version": 2, "acknowledged": []}',
        '{"schema": "trexbench/acknowledged", "version": true, "acknowledged": []}',
        '{"schema": "trexbench/acknowledged", "version": 1, "acknowledged": {}}',
        '{"schema": "trexbench/acknowledged", "version": 1, "acknowledged": [3]}',
        '{"schema": "trexbench/acknowledged", "version": 1, "acknowledged": [{"date": "soon"}]}',
        json.dumps(known_to_dict([ONE])).replace('"power"', "1"),
    ],
)
def test_damage_is_told_with_the_files_name(tmp_path: Path, text: str) -> None:
    (tmp_path / KNOWN_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=KNOWN_FILE):
        load_known(tmp_path)


def test_where_nothing_can_be_kept(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        add_known(tmp_path / "nowhere", ONE)


@pytest.mark.parametrize("text", ["2026-02-29", "2026-11-31", "2026-13-01", "2026-00-10", "2026-1-1", "today"])
def test_a_day_that_no_calendar_has_is_refused(text: str) -> None:
    assert parse_date(" 2028-02-29 ") == "2028-02-29"
    with pytest.raises(ConfigError, match="is not a date: write it as 2026-11-21"):
        parse_date(text)
