"""Rows as Parquet files, a store at an address, DuckDB's queries: no row is lost, changed or doubled."""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import random
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from drives import broken
from effort import by_day, examples, scaled
from hypothesis import example, given
from hypothesis import strategies as st
from nights import date, make_row, make_rows, noisy, over_wan
from runs import make_result

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
fsspec = pytest.importorskip("fsspec")

import pyarrow.parquet as pq  # noqa: E402

from trexbench import files  # noqa: E402
from trexbench.cli.results import query as query_verb  # noqa: E402
from trexbench.core.errors import ConfigError, StoreError  # noqa: E402
from trexbench.core.history.cell import TCP_KIND, Cell  # noqa: E402
from trexbench.core.history.known import Known, known_to_dict  # noqa: E402
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night  # noqa: E402
from trexbench.core.history.rows import METRICS, UNFOLLOWED, Figure, RunRow  # noqa: E402
from trexbench.core.tcp.path import TrafficPath  # noqa: E402
from trexbench.core.tcp.plan import TcpMode, Way  # noqa: E402
from trexbench.results import sql  # noqa: E402
from trexbench.results.columns import column_names  # noqa: E402
from trexbench.results.index import open_index  # noqa: E402
from trexbench.results.nights import (  # noqa: E402
    KNOWN_FILE,
    NightWriter,
    add_known,
    find_nights,
    load_known,
    remove_known,
)
from trexbench.results.parquet import make_table, read_rows, write_table  # noqa: E402
from trexbench.results.prune import find_old, remove  # noqa: E402
from trexbench.results.published import keep_night  # noqa: E402
from trexbench.results.remote import Store, is_inside, mirror_of, store_of  # noqa: E402
from trexbench.results.store import RunWriter, load_run  # noqa: E402
from trexbench.review.find import Warn, all_rows, find_document, find_rows, latest_run, query  # noqa: E402
from trexbench.review.judge import judge  # noqa: E402

TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)  # with lone surrogates
NUMBERS = st.floats(allow_nan=False)
WORDS = st.none() | TEXTS
COUNTS = st.none() | st.integers(-(2**63), 2**63 - 1)
PATHS = st.sampled_from([None, TrafficPath(tunnel="wireguard", tunnel_mtu=1420, pppoe=True), over_wan("20ms,1gbit")])
MODES = TEXTS | st.builds(TcpMode, st.sampled_from(Way), st.sampled_from([4, 6]), congestion=WORDS)
CELLS = st.builds(
    Cell, TEXTS, MODES, st.booleans(), COUNTS, TEXTS, st.booleans(), WORDS, PATHS, st.none() | NUMBERS, st.booleans()
)
ROWS = st.builds(
    RunRow,
    TEXTS.filter(is_inside),
    TEXTS,
    TEXTS,
    TEXTS,
    cell=CELLS,
    aim=st.sampled_from([*METRICS]),
    figures=st.dictionaries(
        st.sampled_from([*METRICS, *UNFOLLOWED]), st.builds(Figure, NUMBERS, NUMBERS, st.booleans())
    ),
    limit=TEXTS,
    traffic=WORDS,
    through=PATHS,
    line_rate_bps=NUMBERS,
    line_share=NUMBERS,
    loss_threshold=st.none() | NUMBERS,
    facts=WORDS,
    suite=WORDS,
    night=WORDS,
    label=WORDS,
    accelerator=TEXTS,
    tester=TEXTS,
    nodes=st.dictionaries(TEXTS, NUMBERS, max_size=2),
    warnings=st.integers(0, 2**63 - 1),
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    yield
    fsspec.filesystem("memory").store.clear()


@given(st.lists(ROWS, max_size=3))
@example([make_row(total_pps=math.inf, label="\ud800")])
@example([replace(make_row(), cell=Cell("x", TcpMode(Way.BIDIR, 6), True, None, TCP_KIND))])
@examples(300)
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[RunRow]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    write_table(path, make_table(rows, ["0" * 32] * len(rows)))
    assert read_rows(path) == rows


def test_readers_of_others_see_columns_with_units_and_the_document(tmp_path: Path) -> None:
    write_table(tmp_path / "x.parquet", make_table(make_rows(noisy(3)), ["a", "b", "c"]))
    table = pq.read_table(tmp_path / "x.parquet")
    units = {one.name: (one.metadata or {}).get(b"unit", b"").decode() for one in table.schema}
    assert [*units] == [*column_names(), "digest", "row"]
    assert (units["total_pps"], units["latency_s"], units["uncertainty_bps"], units["dut"]) == ("pps", "s", "bit/s", "")
    assert table.column("digest").to_pylist() == ["a", "b", "c"]
    assert table.column("at_least").type == pa.bool_() and table.column("rx_queues").type == pa.int64()


# Nights


def ended_night(results: Path, number: int = 0, suite: str = "nightly", runs: int = 1) -> Path:
    """The file of a night with a document for each of its runs."""
    paths = []
    for run in range(runs):
        started = f"{date(number)}T03:{run:02}:00Z"
        told = {"verb": "ramp", "mode": "var2-64b", "rx_queues": 1, "suite": suite, "night": date(number)}
        result = make_result(dut={"name": "netgate-vpp"}, command=told, started=started, id=f"{suite} {number} {run}")
        paths.append(RunWriter(results, pytest.fail).end(result).relative_to(results).as_posix())
    cell, begun = Cell("netgate-vpp", "var2-64b", False, 1), f"{date(number)}T03:00:00Z"
    cells = tuple(CellRecord(cell, CellState.DONE, (Attempt(begun, path),)) for path in paths)
    night = Night(suite, date(number), begun, False, cells, f"{date(number)}T04:00:00Z")
    return NightWriter.begin(results, night).path


def put(results: Path, *numbers: int, warn: Warn = pytest.fail, runs: int = 1) -> None:
    for number in numbers:
        keep_night(results, ended_night(results, number, runs=runs), warn)


def files_of(results: Path) -> list[str]:
    return sorted(path.relative_to(results).as_posix() for path in results.rglob("*.parquet"))


def stored(results: Path) -> list[RunRow]:
    return [row for name in files_of(results) for row in read_rows(results / name)]


@pytest.mark.parametrize("how", ["missing", "damaged", "of another version", "of a removed document"])
def test_a_night_in_a_directory_mends_the_rows_of_those_before(tmp_path: Path, how: str) -> None:
    put(tmp_path, 0, runs=2)
    path, told = tmp_path / files_of(tmp_path)[0], list[str]()
    if how == "missing":
        path.unlink()
    elif how == "damaged":
        path.write_bytes(path.read_bytes()[:-100])
    elif how == "of another version":
        write_table(path, pq.read_table(path).replace_schema_metadata({}))
    else:
        next((tmp_path / date(0)).glob("*/*.json")).unlink()
    put(tmp_path, 31)
    assert files_of(tmp_path) == ["rows/nightly/2026-01.parquet", "rows/nightly/2026-02.parquet"]
    assert sorted(row.path for row in stored(tmp_path)) == sorted(row.path for row in all_rows(tmp_path, told.append))


def test_rows_of_a_damaged_document_are_made_once_it_is_mended(tmp_path: Path) -> None:
    night = ended_night(tmp_path, 0, runs=2)
    document = next((tmp_path / date(0)).glob("*/*.json"))
    whole, told = document.read_bytes(), list[str]()
    document.write_bytes(b"{")
    for use in (lambda: keep_night(tmp_path, night, told.append), lambda: put(tmp_path, 1, warn=told.append)):
        use()
        assert "not JSON" in told.pop() and not told
    document.write_bytes(whole)
    put(tmp_path, 2)
    assert sorted(row.night or "" for row in stored(tmp_path)) == [date(0), date(0), date(1), date(2)]


def test_pruned_documents_have_no_rows(tmp_path: Path) -> None:
    put(tmp_path, 0, 1, 31)
    remove(tmp_path, find_old(tmp_path, None, date(1), pytest.fail), pytest.fail)
    assert [row.night for row in stored(tmp_path)] == [date(1), date(31)]
    put(tmp_path, 0)
    assert len(stored(tmp_path)) == 3, "a night of the same name has rows again"
    remove(tmp_path, find_old(tmp_path, None, date(31), pytest.fail), pytest.fail)
    assert files_of(tmp_path) == ["rows/nightly/2026-02.parquet"]


# Stores


def memory_store(nights: int = 3, runs: int = 1) -> Path:
    results = mirror_of("memory://lab/results")
    put(results, *range(nights), runs=runs)
    return results


Fresh = Callable[..., Path]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fresh:
    """Make the mirror of somebody else."""

    def mirror(address: str = "memory://lab/results") -> Path:
        monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / f"other-{random.random()}"))
        return mirror_of(address)

    return mirror


def damage(place: str) -> None:
    """Cut off the end of a file of the store in memory."""
    memory = fsspec.filesystem("memory")
    memory.pipe_file(place, memory.cat_file(place)[:-100])


@contextlib.contextmanager
def unread(name: str, error: OSError) -> Iterator[None]:
    """Let no document of that name, a regular expression, be read from the store in memory."""
    memory = type(fsspec.filesystem("memory"))
    read = memory.cat_file

    def cat_file(self: object, path: str, *more: object, **options: object) -> bytes:
        if re.search(name, path):
            raise error
        return bytes(read(self, path, *more, **options))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "cat_file", cat_file)
        yield


def test_another_machine_sees_what_was_put(fresh: Fresh) -> None:
    own = memory_store(runs=2)
    assert own == mirror_of("memory://lab/results/")
    other = fresh()
    assert other != own
    rows = all_rows(other, pytest.fail)
    assert [row.night for row in rows] == [date(0)] * 2 + [date(1)] * 2 + [date(2)] * 2
    assert all_rows(other, pytest.fail, since=date(2), suite="nightly", limit=1) == rows[-1:]
    assert all_rows(other, pytest.fail, suite="other") == [] and all_rows(other, pytest.fail, dut="x") == []
    assert len(find_nights(other, pytest.fail)) == 3
    assert len(find_nights(other, pytest.fail, suite="nightly", since=date(1))) == 2
    assert not list(other.glob("2026-*")), "documents are fetched when they are read"
    assert load_run(latest_run(other)).id == "nightly 2 1"
    assert load_run(find_document(rows[0].path, other) or Path()).id == "nightly 0 0"
    assert judge(other, pytest.fail, suite="nightly").exit_code == 4
    assert query("select count(*) from runs", other, pytest.fail)[1] == [(6,)]
    with pytest.raises(StoreError, match=r"2026-01-01/x\.json: No such file"):
        load_run(other / "2026-01-01" / "x.json")


@pytest.mark.parametrize("how", ["damaged", "damaged inside", "of another version", "damaged, its nights are gone"])
def test_rows_that_cannot_be_used_are_made_of_the_documents(tmp_path: Path, fresh: Fresh, how: str) -> None:
    own = memory_store()
    wanted, told = all_rows(own, pytest.fail), list[str]()
    memory, place = fsspec.filesystem("memory"), "/lab/results/rows/nightly/2026-01.parquet"
    if how.startswith("damaged, "):
        damage(place)
        memory.rm("/lab/results/nights", recursive=True)
        assert all_rows(fresh(), told.append) == [] and told[0].endswith("; its nights are gone") and len(told) == 1
        return
    if how == "damaged":
        damage(place)
    elif how == "damaged inside":
        whole = memory.cat_file(place)
        footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        memory.pipe_file(place, whole[:4] + bytes(byte ^ 1 for byte in whole[4:footer]) + whole[footer:])
    else:
        table = pq.read_table(own / "rows" / "nightly" / "2026-01.parquet")
        older = table.drop_columns(["power_w"]).replace_schema_metadata({"trexbench": json.dumps({"analysis": 1})})
        pq.write_table(older, tmp_path / "older.parquet")
        memory.pipe_file(place, (tmp_path / "older.parquet").read_bytes())
    other = fresh()
    assert all_rows(other, told.append) == wanted
    assert len(told) == 1 and all_rows(other, pytest.fail) == wanted, "they are made once"
    assert query("select count(*) from runs", fresh(), told.append)[1] == [(3,)]


@pytest.mark.parametrize("seed", range(scaled(20, 1)))
def test_rows_of_the_last_nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: Fresh, seed: int) -> None:
    """Whatever nights are put, late, once more, lost or damaged while somebody looks at the last ones."""
    rng, memory = random.Random(seed), fsspec.filesystem("memory")
    ours, theirs = memory_store(1), tmp_path / "theirs"
    for _ in range(12):
        monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
        keep_night(ours, ended_night(ours, rng.randrange(45), rng.choice(["nightly", "other"])), list[str]().append)
        if rng.random() < 0.3:
            place = rng.choice(memory.find("/lab/results/rows"))
            memory.rm(place) if rng.random() < 0.5 else damage(place)
        since = date(rng.randrange(50))
        wanted = all_rows(fresh(), list[str]().append)
        monkeypatch.setenv("TREXBENCH_STATE_DIR", str(theirs))
        found = all_rows(mirror_of("memory://lab/results"), list[str]().append, since=since)
        assert found == [row for row in wanted if row.started >= since]


OUTSIDE = ["../../x.json", "2026-01-01/../../../x.json", "/tmp/x.json", "a//x.json", "./x.json", ""]


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_of_a_store_is_written_outside_its_mirror(tmp_path: Path, name: str) -> None:
    results = memory_store(1)
    store = store_of(results)
    assert store is not None
    for use in (lambda: store.fetch([name]), lambda: store.fetch([name, "x"]), lambda: store.replace(name)):
        with pytest.raises(StoreError, match="is not the path of a file below it"):
            use()
    write_table(tmp_path / "x.parquet", make_table([replace(make_row(), path=name)], ["x"]))
    with pytest.raises(StoreError, match="is not the path of a document below the results"):
        read_rows(tmp_path / "x.parquet")


def test_files_whose_names_lead_outside_are_not_there() -> None:
    results = memory_store(1)
    store, system = store_of(results), fsspec.filesystem("memory")
    system.store["/lab/results/nights/../../x.json"] = system.store[f"/lab/results/nights/{date(0)}-nightly.json"]
    assert store is not None and [*store.find("nights")] == [f"nights/{date(0)}-nightly.json"]


@pytest.mark.parametrize("number", by_day(1, [5, 31]))
def test_a_stalling_writer_loses_and_doubles_no_row(monkeypatch: pytest.MonkeyPatch, fresh: Fresh, number: int) -> None:
    """At each use of the store for a night another writer puts two late ones."""
    memory, uses = fsspec.filesystem("memory"), 0
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power is lost here, and it takes most of the time

    def write(results: Path, *numbers: int) -> None:
        monkeypatch.setenv("TREXBENCH_STATE_DIR", str(results.parents[1]))
        put(results, *numbers)

    for name in ("find", "fetch", "read", "create", "replace", "remove"):
        use = getattr(Store, name)

        def counted(store: Store, *given: Any, use: Callable[..., Any] = use, **options: Any) -> Any:
            nonlocal uses
            uses -= 1
            if uses == 0:
                write(theirs, 10, 11)
                monkeypatch.setenv("TREXBENCH_STATE_DIR", str(ours.parents[1]))
            return use(store, *given, **options)

        monkeypatch.setattr(Store, name, counted)
    for stall in range(1, 99, scaled(1, 5)):
        memory.store.clear()
        ours, theirs = fresh(), fresh()
        write(ours, 0, *([31] if number == 5 else []))
        uses = stall
        write(ours, number)
        if uses > 0:
            break
        uses = 0
        wanted = sorted({0, 10, 11, 31, number})
        for late in ([], [32], [33]):
            write(ours, *late)
            wanted += late
            reader = fresh()
            assert [row.night for row in all_rows(reader, pytest.fail)] == [date(one) for one in wanted], stall
            assert query("select count(*) from runs", reader, pytest.fail)[1] == [(len(wanted),)], stall
    else:
        pytest.fail("the writer never stops using the store")


MONTH = "/lab/results/rows/nightly/2026-01.parquet"


@pytest.mark.parametrize("how", ["damaged", "damaged, as a document is", "damaged, as a night is"])
def test_a_damaged_month_is_repaired_in_the_store(fresh: Fresh, how: str) -> None:
    ours, memory, told = memory_store(2, runs=2), fsspec.filesystem("memory"), list[str]()
    folder = "nights" if how.endswith("night is") else date(0)
    document = memory.find(f"/lab/results/{folder}")[0]
    wanted, whole = all_rows(ours, pytest.fail), memory.cat_file(document)
    damage(MONTH)
    if how != "damaged":
        memory.pipe_file(document, b"{")
        put(fresh(), 40, warn=told.append)
        memory.pipe_file(document, whole)
    put(fresh(), 41, warn=told.append)
    assert told[0].startswith("reading the documents anew: ") and ("not JSON" in told[-1]) == how.endswith(
        "document is"
    )
    rows = all_rows(fresh(), pytest.fail)
    assert rows[: len(wanted)] == wanted and rows[-1].night == date(41)


@pytest.mark.parametrize("analysis", [1, 10**6])
def test_rows_of_a_newer_version_are_not_repaired(tmp_path: Path, fresh: Fresh, analysis: int) -> None:
    ours, memory, told = memory_store(2), fsspec.filesystem("memory"), list[str]()
    wanted, made_by = all_rows(ours, pytest.fail), json.dumps({"analysis": analysis, "columns": []})
    theirs = pq.read_table(ours / "rows" / "nightly" / "2026-01.parquet").replace_schema_metadata(
        {"trexbench": made_by}
    )
    pq.write_table(theirs, tmp_path / "x.parquet")
    memory.pipe_file(MONTH, newer := (tmp_path / "x.parquet").read_bytes())
    other = fresh()
    assert all_rows(other, told.append) == wanted and "another version" in told[-1]
    put(fresh(), 2, warn=told.append)
    assert (memory.cat_file(MONTH) == newer) == (analysis > 1)


def test_rows_that_did_not_arrive_in_the_store_are_put_with_the_next_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: Fresh
) -> None:
    address, replace_file, told = f"file://{tmp_path}/store", files.replace_file, list[str]()
    ours = mirror_of(address)
    put(ours, 0)

    def lost(path: Path, *more: Any, **options: Any) -> None:
        if path == tmp_path / "store" / "rows" / "nightly" / "2026-01.parquet":
            raise OSError("no such host")
        replace_file(path, *more, **options)

    with monkeypatch.context() as patched:
        patched.setattr(files, "replace_file", lost)
        put(ours, 5, warn=told.append)
    assert told[0].startswith(f"rows of {date(5)}-nightly.json are not in the store yet: ")
    assert [row.night for row in all_rows(fresh(address), pytest.fail)] == [date(0), date(5)]
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(ours.parents[1]))
    put(ours, 32)
    reader = fresh(address)
    assert [row.night for row in all_rows(reader, pytest.fail)] == [date(at) for at in (0, 5, 32)]
    assert not [*reader.glob("2026-*")], "no document was needed"


def test_a_store_that_is_gone_is_not_one_without_documents(fresh: Fresh) -> None:
    memory_store(1)
    damage(MONTH)
    other = fresh()
    gone = unread(r"results/(?!nights/).*\.json$", PermissionError("no longer"))
    with gone, pytest.raises(StoreError, match="its credentials, and the clock here"):
        all_rows(other, list[str]().append)


def test_nights_of_others_that_were_fetched_in_part_are_not_put(monkeypatch: pytest.MonkeyPatch, fresh: Fresh) -> None:
    memory_store(3)
    other = fresh()
    monkeypatch.setattr("trexbench.results.remote._AT_ONCE", 2)
    with unread(f"{date(2)}-nightly.json$", OSError("no such host")), pytest.raises(StoreError, match="no such host"):
        find_nights(other, pytest.fail)
    assert len([*other.glob("nights/*.json")]) == 2 and not find_nights(other, pytest.fail, is_begun_here=True)


def test_a_night_that_could_not_be_put_is_put_with_the_next(monkeypatch: pytest.MonkeyPatch, fresh: Fresh) -> None:
    results = mirror_of("memory://lab/results")
    with monkeypatch.context() as patched:
        patched.setattr(type(fsspec.filesystem("memory")), "pipe_file", broken)
        with pytest.raises(StoreError, match="memory://lab/results cannot be reached: OSError: no such host"):
            put(results, 0)
    put(results, 1)
    assert [row.night for row in all_rows(fresh(), pytest.fail)] == [date(0), date(1)]


def test_runs_of_a_store_are_found_by_their_names(fresh: Fresh) -> None:
    memory_store(runs=2)
    for name, ids in (
        ("latest", ["nightly 2 1"]),
        (f"{date(0)}/netgate-vpp/*.json", ["nightly 0 0", "nightly 0 1"]),
        (all_rows(mirror_of("memory://lab/results"), pytest.fail)[2].path, ["nightly 1 0"]),
    ):
        assert [row.id for row in find_rows(name, fresh(), pytest.fail)] == ids, name
    for name in ("2020*.json", "2020-01-01/x/y.json"):
        with pytest.raises(ConfigError, match="matches '2020"):
            find_rows(name, fresh(), pytest.fail)


def test_rows_of_a_store_without_pyarrow_are_refused(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_store(1)
    monkeypatch.setattr("trexbench.results.remote.has_parquet", lambda: False)
    with pytest.raises(ConfigError, match="results at memory:// need pyarrow"):
        all_rows(fresh(), pytest.fail)


@pytest.mark.parametrize(("address", "package"), [("s3://lab/x", "s3fs"), ("sftp://127.0.0.1/x", "paramiko")])
def test_a_missing_library_is_named(address: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(import_module("fsspec.registry")._registry, address.partition(":")[0], raising=False)
    with pytest.raises(ConfigError, match=f"pip install {package}$"):
        store_of(mirror_of(address))


def test_a_place_that_another_night_has_stops_no_later_night(fresh: Fresh) -> None:
    memory_store(1)
    other, warnings = fresh(), list[str]()
    path = ended_night(other)
    path.write_text(path.read_text().replace("T03:00:00Z", "T09:00:00Z"))
    with pytest.raises(StoreError, match="is there already, of another night"):
        keep_night(other, path, pytest.fail)
    put(other, 1, warn=warnings.append)
    assert len(warnings) == 1 and f"{date(0)}-nightly.json is not in the store yet" in warnings[0]
    assert [row.night for row in all_rows(fresh(), pytest.fail)] == [date(0), date(1)]


def test_a_store_without_rows_is_read_from_its_documents(fresh: Fresh) -> None:
    wanted, warnings = all_rows(memory_store(), pytest.fail), list[str]()
    fsspec.filesystem("memory").rm("/lab/results/rows", recursive=True)
    assert all_rows(fresh(), warnings.append) == wanted
    assert warnings == ["memory://lab/results has no rows of 3 nights: reading their documents"]


def test_a_store_that_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    for address in ("memory://lab/result", f"file://{tmp_path}/store"):
        for read in (all_rows, lambda results, warn: query("select 1", results, warn)):
            with pytest.raises(StoreError, match="nothing is there"):
                read(mirror_of(address), pytest.fail)
    (tmp_path / "store").write_text("a file")
    results = mirror_of(f"file://{tmp_path}/store")
    with pytest.raises(StoreError, match="cannot be reached"):
        put(results, 0)
    with pytest.raises(StoreError, match="cannot be reached: ClientConnectorError"):
        all_rows(mirror_of("http://127.0.0.1:1/lab"), pytest.fail)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("sftp://u:secret@host/x", "holds a password"),
        ("s3://lab/x?key=secret", "holds a password"),
        ("simplecache::sftp://u:secret@host/x", "chains file systems"),
        ("nonsense://x", "Protocol not known: nonsense"),
        ("file://store", "names no directory: write file:///"),
    ],
)
def test_addresses_that_are_refused(address: str, words: str) -> None:
    with pytest.raises((ConfigError, StoreError), match=words) as raised:
        store_of(mirror_of(address))
    assert "secret" not in str(raised.value)


def test_a_store_that_cannot_create_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    results = mirror_of("memory://lab/results")
    path = ended_night(results)
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "protocol", "ftp")
    for begin in (lambda: keep_night(results, path, pytest.fail), lambda: ended_night(results, 1)):
        with pytest.raises(StoreError, match="ftp:// cannot create a file only where there is none"):
            begin()


# Queries


def test_a_query_reads_the_tables(tmp_path: Path) -> None:
    path = ended_night(tmp_path)
    (folder := tmp_path / date(0) / "netgate-vpp").joinpath("bad.json").write_text("{")
    columns, found = query("select * from runs", tmp_path, pytest.fail)
    (row, *_) = open_index(tmp_path, pytest.fail).rows()
    assert set(columns) == {"limited_by", *row.to_dict(), *vars(row.cell)} - {"limit", "cell"} and found
    assert query("select distinct simulated, total_pps > 0 from runs", tmp_path, pytest.fail)[1] == [(1, 1)]
    twice = query("select 1.5 a, 2 a, 3 a_1", tmp_path, pytest.fail)
    assert twice == (["a", "a_1", "a_1_1"], [(1.5, 2, 3)]), "JSON would lose one of two alike"
    (problem,) = query("select path from problems", tmp_path, pytest.fail)[1]
    assert tmp_path / problem[0] == folder / "bad.json" and path.exists()


def test_a_query_reads_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    rows = make_rows(noisy(3))
    assert sql.ask("select count(*) as n, max(total_pps) > 0 from runs", rows, [("a", "b")])[1] == [(3, True)]
    assert sql.ask("select * from problems", [], [("a", "b")]) == (["path", "reason"], [("a", "b")])
    path = tmp_path / "x.parquet"
    write_table(path, make_table(rows, ["x"] * 3))
    for wrong in (
        f"select * from read_csv('{tmp_path}/secret.csv')",
        f"copy runs to '{tmp_path}/out.csv'",
        f"attach '{tmp_path}/x.db'",
        "select 1; select 2",
        "set lock_configuration = false",
        "select nope from runs",
        "",
    ):
        for runs in (rows, [path]):
            with pytest.raises(ConfigError, match="query: "):
                sql.ask(wrong, runs, [])
    assert {one.name for one in tmp_path.iterdir()} == {"secret.csv", "x.parquet"}


@pytest.mark.parametrize("package", ["pyarrow", "duckdb"])
def test_a_broken_package_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    broken = tmp_path / "packages" / package
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise AttributeError('made for another numpy')")
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(broken.parent))
    ended_night(tmp_path)
    with pytest.raises(ConfigError, match="query: it needs DuckDB and pyarrow: pip install"):
        query("select 1", tmp_path, pytest.fail)


def test_a_query_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "QUERY_S", 0.2)
    with pytest.raises(ConfigError, match="longer than 0"):
        sql.ask("select count(*) from range(1000000000) a, range(1000000000) b", make_rows(noisy(1)), [])


DOCUMENT = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
QUERIES = DOCUMENT.split("```sql\n")[1].split("```")[0].strip().split(";\n")


@pytest.mark.parametrize("asked", QUERIES)
def test_each_useful_query_has_an_answer(asked: str) -> None:
    told: dict[str, Any] = {"cycles_per_packet": 300.0, "latency_s": 2e-5, "nodes": {"ip4-lookup": 30.0}}
    cells = {name: Cell(f"{name}-vpp", "var2-64b", False, 1) for name in ("lab", "site")}
    rows = [row for name, cell in cells.items() for row in make_rows(noisy(30), cell, suite=name, **told)]
    rows += [replace(row, path=f"again/{row.path}", status="incomplete", warnings=2) for row in rows[:3]]
    columns, found = sql.ask(asked, rows, [("x.json", "the file is damaged")])
    assert columns and found


def test_the_help_of_query_lists_every_column() -> None:
    assert not {*column_names()} - {*re.findall(r"\w+", query_verb.help or "")}


def test_no_useful_query_takes_several_cells_for_one() -> None:
    levels = {Cell("vpp", "64b", False, 1): 5e6, Cell("vpp", "64b", True, 1): 9e6, Cell("vpp", "64b", False, 3): 14e6}
    levels |= {replace(cell, kind="saturate"): level / 2 for cell, level in levels.items()}
    rows = [row for cell, level in levels.items() for row in make_rows(noisy(30, level), cell)]
    noise, ratio, apart = ([row[-1] for row in sql.ask(QUERIES[at], rows, [])[1]] for at in (2, 4, 5))
    assert max(noise) < 0.01 and max(map(abs, (one - 1 for one in ratio + apart))) < 0.05 and len(ratio) == 180


def test_acknowledgements_of_two_are_both_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: Fresh) -> None:
    first, second = Known("2026-11-20", "a *", None, "by one"), Known("2026-11-21", "b *", None, "by another")
    own, state = memory_store(1), str(tmp_path / "state")
    add_known(own, first)
    other = fresh()
    add_known(other, second)
    assert load_known(other) == [first, second]
    monkeypatch.setenv("TREXBENCH_STATE_DIR", state)
    assert load_known(own) == [first, second] and remove_known(own, 2) == second
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(other.parents[1]))
    assert load_known(other) == [first]


def test_a_removed_acknowledgement_counts_in_no_mirror(monkeypatch: pytest.MonkeyPatch, fresh: Fresh) -> None:
    own, known, memory = memory_store(1), Known("2026-11-20", "a *", None, "old"), fsspec.filesystem("memory")
    memory.pipe_file(f"/lab/results/{KNOWN_FILE}", json.dumps(known_to_dict([known])).encode())
    other = fresh()
    assert load_known(other) == [known]
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(own.parents[1]))
    assert remove_known(own, 1) == known
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(other.parents[1]))
    assert load_known(other) == []


def test_an_acknowledgement_that_could_not_be_stored_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    own = memory_store(1)
    with monkeypatch.context() as patched:
        patched.setattr(type(fsspec.filesystem("memory")), "pipe_file", broken)
        with pytest.raises(StoreError, match="no such host"):
            add_known(own, Known("2026-11-20", "a *", None, ""))
    assert load_known(own) == []


def test_a_local_stores_files_are_found_without_links_to_directories(tmp_path: Path) -> None:
    address = f"file://{tmp_path}/store"
    results = mirror_of(address)
    put(results, 0)
    store = store_of(results)
    assert store is not None
    before = store.find("rows")
    (tmp_path / "store" / "rows" / "nightly" / "up").symlink_to("..")
    (tmp_path / "store" / "rows" / "gone").symlink_to("nowhere")
    assert store.find("rows") == before and len(before) == 1


class Circle:
    own: Circle


def test_rows_are_frozen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    results = memory_store(1)
    monkeypatch.setattr("trexbench.results.published.MANY", 1)
    gc.unfreeze()
    try:
        all_rows(results, pytest.fail)
        assert gc.get_freeze_count()
        circle = Circle()
        circle.own, gone = circle, weakref.ref(circle)
        del circle
        all_rows(results, pytest.fail)
        gc.collect()
        assert gone() is None, "what a page leaves goes when it is made again"
    finally:
        gc.unfreeze()
