"""Nights on disk, and known changes: whole or not at all, never over one another; no bad file stops the others."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.errors import ConfigError, StoreError
from trexbench.core.history.cell import TCP_KIND, Cell
from trexbench.core.history.known import Known, is_date, known_to_dict, parse_date
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night, night_from_dict, night_to_dict
from trexbench.core.tcp.plan import TcpMode, Way
from trexbench.results.nights import (
    KNOWN_FILE,
    MAX_BYTES,
    NightWriter,
    add_known,
    find_nights,
    find_pages,
    load_known,
    load_nights,
    page_name,
    read_night,
    remove_known,
)

pytestmark = pytest.mark.portable

STORED = Attempt("2026-11-21T00:01:00Z", "2026-11-21/netgate-vpp/a.json")
LOST = Attempt("2026-11-21T00:02:00Z", None, "gone", 6)
CELLS = (
    CellRecord(Cell("netgate-vpp", "var2-64b", True, 3), CellState.DONE, (STORED,)),
    CellRecord(Cell("lab-linux", "var2-imix", False, None), CellState.FAILED, (LOST,)),
    CellRecord(Cell("lab-linux", "var2-64b", False, None)),
)
NIGHT = Night("forty", "2026-11-21", "2026-11-21T00:00:00Z", True, CELLS)


def written(folder: Path, name: str, text: str | bytes) -> None:
    place = folder / "nights"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def changed(**values: Any) -> str:
    return json.dumps({**night_to_dict(NIGHT), **values})


ATTEMPT = {"started": "2026-11-21T00:01:00Z", "path": None, "error": None, "code": 0}
WAITING = night_to_dict(NIGHT)["cells"][2]


def with_path(path: str) -> str:
    return changed(cells=[{**WAITING, "attempts": [{**ATTEMPT, "path": path}]}])


def test_what_was_written_is_read(tmp_path: Path) -> None:
    writer = NightWriter.begin(tmp_path, NIGHT)
    assert writer.path == tmp_path / "nights" / "2026-11-21-forty.json"
    writer.write(replace(NIGHT, finished="2026-11-21T08:00:00Z"))
    assert read_night(writer.path) == writer.night and writer.night.finished is not None
    assert [path.name for path in writer.path.parent.iterdir()] == [writer.path.name]


def test_a_night_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """It had the cell's parts alone, and a name for how TCP is sent."""
    cell = {"dut": "a", "mode": "reverse-ipv6-4-streams", "bidir": False, "rx_queues": None, "kind": "tcp"}
    written(tmp_path, "old.json", changed(cells=[{**cell, "variant": "nat", "state": "done"}]))
    (night,) = load_nights(tmp_path, pytest.fail)
    sent = TcpMode(Way.REVERSE, 6, streams=4)
    assert night.cells == (CellRecord(Cell("a", sent, False, None, TCP_KIND, variant="nat"), CellState.DONE),)
    assert night_from_dict(night_to_dict(night)) == night


def test_cells_are_simulated_as_their_night_is_and_copied_only_for_that() -> None:
    """A page asks for the cells of all nights, of which there may be tens of thousands."""
    measured, simulated = replace(NIGHT, simulated=False), NIGHT.of
    assert [cell.simulated for cell in simulated] == [True] * 3
    assert all(cell is record.cell for cell, record in zip(measured.of, measured.cells, strict=True))


def test_no_night_takes_anothers_place(tmp_path: Path) -> None:
    names = [NightWriter.begin(tmp_path, NIGHT).name for _ in range(3)]
    assert names == ["2026-11-21-forty", "2026-11-21-forty-2", "2026-11-21-forty-3"]


def test_a_suite_has_its_own_pages_also_where_another_is_named_like_its_second_night(tmp_path: Path) -> None:
    for suite, hour in (("lab", 1), ("lab", 2), ("lab-2", 3)):
        night = replace(NIGHT, suite=suite, started=f"2026-11-21T0{hour}:00:00Z")
        (tmp_path / page_name(NightWriter.begin(tmp_path, night).name)).write_text("")
    NightWriter.begin(tmp_path, replace(NIGHT, suite="lab-2", night="2026-11-22"))
    stored = find_nights(tmp_path, pytest.fail)
    first, second, other = (page_name(f"2026-11-21-lab{end}") for end in ("", "-2", "-2-2"))
    assert find_pages(tmp_path, stored, "lab-2") == [("2026-11-21", other)]
    both = [("2026-11-21, 02:00 UTC", second), ("2026-11-21, 01:00 UTC", first)]
    assert find_pages(tmp_path, stored, "lab") == both
    assert [words for words, _ in find_pages(tmp_path, stored, None)] == [
        "2026-11-21 lab-2", "2026-11-21 lab, 02:00 UTC", "2026-11-21 lab, 01:00 UTC"
    ]  # fmt: skip


def test_oldest_first(tmp_path: Path) -> None:
    for date, begun in (("2026-11-22", "03"), ("2026-11-21", "05"), ("2026-11-21", "04")):
        NightWriter.begin(tmp_path, replace(NIGHT, night=date, started=f"{date}T{begun}:00:00Z"))
    dates = [(night.night[-2:], night.started[11:13]) for night in load_nights(tmp_path, pytest.fail)]
    assert dates == [("21", "04"), ("21", "05"), ("22", "03")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(changed()[:-40], "not JSON", id="torn"),
        pytest.param("[" * 5_000_000, "nested too deeply", id="nested without end"),
        pytest.param(changed(schema="trexbench/run"), "not a night", id="a run"),
        pytest.param(changed(version=2), "upgrade trexbench", id="newer"),
        pytest.param(changed(version=True), "version", id="a version that is none"),
        pytest.param(changed(night="../../etc"), "is not a date", id="a night that is a path"),
        pytest.param(changed(cells=[None]), "wrong kind", id="a cell that is none"),
        pytest.param(changed(cells=[{**WAITING, "state": "odd"}]), "wrong kind", id="an odd state"),
        pytest.param(with_path("../../../etc/passwd"), "not a path below", id="a path that leads out"),
        pytest.param(with_path("/etc/passwd"), "not a path below", id="a path from the root"),
        pytest.param(with_path("a\nb"), "not a path below", id="a line break in a path"),
        pytest.param(with_path(""), "not a path below", id="an empty path"),
    ],
)
def test_a_bad_file_is_named_and_stops_no_other(tmp_path: Path, text: str | bytes, words: str) -> None:
    written(tmp_path, "2026-11-20-bad.json", text)
    NightWriter.begin(tmp_path, NIGHT)
    warned: list[str] = []
    assert load_nights(tmp_path, warned.append) == [NIGHT]
    (line,) = warned
    assert "2026-11-20-bad.json" in line and words in line and "\n" not in line


def test_what_is_no_file_and_what_is_too_large(tmp_path: Path) -> None:
    NightWriter.begin(tmp_path, NIGHT)
    (tmp_path / "nights" / "folder.json").mkdir()
    (tmp_path / "nights" / "gone.json").symlink_to("nowhere")
    written(tmp_path, "large.json", b" " * (MAX_BYTES + 1))
    written(tmp_path, ".hidden.json.tmp", "")
    warned: list[str] = []
    assert load_nights(tmp_path, warned.append) == [NIGHT]
    assert [any(name in line for line in warned) for name in ("folder.json", "gone.json", "large.json")] == [True] * 3
    assert len(warned) == 3


def test_a_name_of_terminal_control_is_not_printed_as_such(tmp_path: Path) -> None:
    written(tmp_path, "\x1b[31mred\n.json", "{")
    warned: list[str] = []
    assert find_nights(tmp_path, warned.append) == []
    assert warned[0].isprintable() and "red" in warned[0]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "nights").write_text("")
    warned: list[str] = []
    for place in (tmp_path, tmp_path / "nights"):
        with pytest.raises(StoreError, match="cannot be written"):
            NightWriter.begin(place, NIGHT)
        assert load_nights(place, warned.append) == []
    assert warned == [f"{tmp_path}/nights: Not a directory"], "of a place that is none, the error tells"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@examples(200)
@given(st.data())
def test_a_spoiled_night_is_read_or_named(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    values: Any = json.loads(json.dumps(night_to_dict(NIGHT)))
    node: Any = values
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else list(range(len(node)))))
        if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        if data.draw(st.booleans()):
            node[key] = data.draw(JSON)
        else:
            del node[key]
        break
    folder, text = tmp_path_factory.mktemp("night"), json.dumps(values)
    end = data.draw(st.integers(0, len(text))) if data.draw(st.booleans()) else None
    written(folder, "2026-11-21-x.json", text[:end])
    warned: list[str] = []
    nights = load_nights(folder, warned.append)
    assert len(nights) + len(warned) == 1
    assert all("2026-11-21-x.json" in line and line.isprintable() for line in warned)
    for night in nights:
        NightWriter.begin(folder, night)


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "../../up", "a\x00b", "", "\ud800", "n" * 5000])
def test_a_suites_name_is_one_harmless_part_of_a_path(tmp_path: Path, name: str) -> None:
    writer = NightWriter.begin(tmp_path, replace(NIGHT, suite=name))
    assert writer.path.parent == tmp_path / "nights"
    with pytest.raises(StoreError, match="is not a valid name"):
        read_night(writer.path)


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
        "{",
        '{"schema": "trexbench/acknowledged", "version": 2, "acknowledged": []}',
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
    assert not is_date(text), "a stored one is no night whose neighbours can be computed"
    with pytest.raises(ConfigError, match="is not a date: write it as 2026-11-21"):
        parse_date(text)
