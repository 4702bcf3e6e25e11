"""results/: where runs go, what survives whoever is killed, and what is refused when it is read back."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from children import start_child, wait_until
from documents import changed_at, to_document
from effort import NIGHTLY, scaled
from runs import World, make_plan, make_result
from seen import run_of, vpp

from trexbench.core.dut.telemetry import DutReading
from trexbench.core.errors import StoreError
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult, Status
from trexbench.core.strategy.base import LoadStep
from trexbench.results.document import MAX_BYTES, encode, read_sealed
from trexbench.results.journal import Journal, journal_of
from trexbench.results.latest import find_latest
from trexbench.results.store import RunWriter, load_rows, load_run
from trexbench.review.find import find_rows

RUN = make_result(make_plan(bidir=True), World(capacity_pps=660e3, noise=0.003))
LOOKED_AT = run_of(vpp(), vpp(), bidir=True)
STEP = LoadStep(Phase.RAMP, {}, 1.0)


def begun(result: RunResult = RUN) -> RunResult:
    return replace(result, samples=(), status=Status.RUNNING, finished=None)


def begin(results: Path, warnings: list[str] | None = None, run: RunResult = RUN) -> tuple[RunWriter, Path, Path]:
    """A writer of this run, its document and its journal."""
    warn = (warnings if warnings is not None else []).append
    writer = RunWriter(results, warn).begin(begun(run))
    assert writer.path is not None
    return writer, writer.path, journal_of(writer.path)


def stored(results: Path, result: RunResult = RUN) -> Path:
    return begin(results, run=result)[0].end(result)


def files(directory: Path) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("changes", "plan", "place"),
    [
        ({}, {}, "2026-03-01/lab-linux/120000-var2-64b-uni.json"),
        ({}, {"bidir": True}, "2026-03-01/lab-linux/120000-var2-64b-bidir.json"),
        ({}, {"kind": "saturate", "hold_s": 10.0}, "2026-03-01/lab-linux/120000-var2-64b-uni-saturate.json"),
        ({"dut": {"name": "../../etc/x y"}}, {}, "2026-03-01/etc-x-y/120000-var2-64b-uni.json"),
        ({"dut": {"name": "räuter.lab"}}, {}, "2026-03-01/räuter.lab/120000-var2-64b-uni.json"),
        ({"dut": {"name": "\U00010330" * 70}}, {}, "2026-03-01/" + "\U00010330" * 48 + "/120000-var2-64b-uni.json"),
        ({"dut": {}, "command": {}}, {}, "2026-03-01/unnamed/120000-unnamed-uni.json"),
        ({"command": {"mode": "my.profile/x"}}, {}, "2026-03-01/lab-linux/120000-my-profile-x-uni.json"),
        ({"started": "../../../x"}, {}, "undated/lab-linux/000000-var2-64b-uni.json"),
    ],
)
def test_where_a_run_goes(tmp_path: Path, changes: dict[str, Any], plan: dict[str, Any], place: str) -> None:
    path = stored(tmp_path, replace(make_result(make_plan(**plan)), **changes))
    assert str(path.relative_to(tmp_path)) == place
    assert files(tmp_path) == [place]


def test_every_sample_and_every_look_is_there_while_the_run_goes_on(tmp_path: Path) -> None:
    seen: list[DutReading] = []
    one, path, journal = begin(tmp_path, run=replace(LOOKED_AT, dut_readings=seen))
    head = path.read_bytes()
    assert load_run(path) == replace(begun(LOOKED_AT), dut_readings=())
    for count in (2, 3, 9):
        seen[:] = LOOKED_AT.dut_readings[: count // 2]
        one.sampled(LOOKED_AT.samples[:count], STEP)
        wait_until(lambda: journal.read_bytes().count(b"\n") == 1 + count + count // 2)  # noqa: B023
        known = {"samples": LOOKED_AT.samples[:count], "dut_readings": LOOKED_AT.dut_readings[: count // 2]}
        assert load_run(path) == replace(begun(LOOKED_AT), **known)
        assert path.read_bytes() == head
    assert files(tmp_path) == sorted(str(one.relative_to(tmp_path)) for one in (path, journal))
    one.end(LOOKED_AT)
    assert load_run(path) == LOOKED_AT and files(tmp_path) == [str(path.relative_to(tmp_path))]


def test_a_torn_last_line_is_left_out_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    one, path, journal = begin(tmp_path)
    one.sampled(RUN.samples[:5], STEP)
    wait_until(lambda: len(load_run(path).samples) == 5)
    whole = journal.read_bytes()
    cuts = [cut for cut in range(len(whole)) if NIGHTLY or cut % 31 == 0 or b"\n" in whole[cut - 1 : cut + 2]]
    for cut in cuts:
        journal.write_bytes(whole[:cut])
        assert len(load_run(path).samples) == max(0, whole[:cut].count(b"\n") - 1)
    for damaged in (whole[:-40] + b"\0" * 39 + b"\n", whole + b"{}\n", whole + b'{"sampel": 1}\n'):
        journal.write_bytes(damaged)
        with pytest.raises(StoreError, match=f"^{path}: .*{journal.name}: ") as raised:
            load_run(path)
        assert "\n" not in str(raised.value)
    journal.write_bytes(whole.replace(RUN.id.encode(), b"another"))
    assert load_run(path).samples == ()
    one.end(RUN)


@pytest.mark.portable
def test_a_reader_meets_a_writer_that_ends(tmp_path: Path) -> None:
    """Whatever a reader sees of the two files, it is a run with all the samples that were there when it began."""
    stop, run = threading.Event(), make_result(make_plan(ramp_s=10.0))
    paths: list[Path] = []
    there: dict[Path, int] = {}
    failures: list[BaseException] = []

    def read() -> None:
        while not stop.is_set():
            for path in paths[-1:]:
                before = there.get(path, 0)
                try:
                    seen = load_run(path)
                    assert len(seen.samples) >= before
                    assert seen.status is not Status.COMPLETE or seen.samples == run.samples
                except BaseException as error:
                    failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(scaled(20, 3)):
        one, path, journal = begin(tmp_path, run=replace(run, id=str(number)))
        paths.append(path)
        one.sampled(run.samples, STEP)
        wait_until(lambda: journal.read_bytes().count(b"\n") == 1 + len(run.samples))  # noqa: B023
        there[path] = len(run.samples)
        one.end(replace(run, id=str(number)))
    stop.set()
    reader.join()
    assert not failures


def test_killed_between_the_document_and_its_journal(tmp_path: Path) -> None:
    path = stored(tmp_path)
    journal_of(path).write_bytes(b'{"run": "' + RUN.id.encode() + b'"}\n')
    assert load_run(path) == RUN and load_rows(path, "x")[0].status == "complete"


def test_a_document_is_sealed_and_any_other_byte_breaks_the_seal(tmp_path: Path) -> None:
    data = stored(tmp_path).read_bytes()
    rows = read_sealed(data)
    assert rows is not None and rows[0].get("total_pps") == RUN.analysis.total_pps
    for at in [*range(0, len(data), 997), *range(len(data) - 150, len(data))]:
        assert read_sealed(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) is None
        assert read_sealed(data[:at]) is None
    assert read_sealed(data + b"\n") is None and read_sealed(encode(begun())) is None


def test_figures_of_another_analysis_are_derived_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path)
    wanted = load_rows(path, "x")[0]
    path.write_bytes(resealed(re.sub(rb'"total_pps":{"value":(?=[0-9])', b'"total_pps":{"value":9', path.read_bytes())))
    believed = load_rows(path, "x")[0].figures["total_pps"].value
    assert believed > 9 * wanted.figures["total_pps"].value, "what is sealed is believed"
    monkeypatch.setattr("trexbench.results.document.ANALYSIS_VERSION", 10**6)
    assert load_rows(path, "x")[0] == wanted


def test_a_defect_in_what_is_derived_costs_nothing_that_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trexbench.results.document.checked_rows", lambda run: 1 / 0)
    result = make_result()
    found = load_run(RunWriter(tmp_path, pytest.fail).end(result))
    assert found.samples == result.samples
    (told,) = found.warnings
    assert (told.code, told.text) == ("defect", "not analysed: ZeroDivisionError: division by zero")


def test_a_seal_without_a_field_of_its_rows_is_not_believed(tmp_path: Path) -> None:
    path = stored(tmp_path)
    sealed = path.read_bytes()
    rows = load_rows(path, "x")
    path.write_bytes(resealed(sealed.replace(b'"aim":"total_pps",', b"")))
    assert read_sealed(sealed) and read_sealed(path.read_bytes()) is None and load_rows(path, "x") == rows


def resealed(data: bytes) -> bytes:
    end = data.rindex(b',"digest":"')
    return data[:end] + b',"digest":"' + blake2b(data[:end], digest_size=16).hexdigest().encode() + b'"}\n}\n'


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    import fcntl

    directory = stored(tmp_path).parent
    dead, alive = directory / ".a.json.1-1-1.tmp", directory / ".b.json.2-2-2.tmp"
    dead.write_bytes(b"{")
    with alive.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        stored(tmp_path)
        assert (dead.exists(), alive.exists()) == (False, True)
    assert find_latest(tmp_path) is not None


def test_the_latest_run_is_the_one_begun_last(tmp_path: Path) -> None:
    assert find_latest(tmp_path) is None
    assert find_latest(tmp_path / "nowhere") is None
    last = stored(tmp_path, replace(RUN, started="2026-03-02T08:00:00Z", command={"mode": "gr\u00fcn"}))
    stored(tmp_path, replace(RUN, started="2026-03-02T07:00:00Z", dut={"name": "zz"}))
    stored(tmp_path, replace(RUN, started="2026-03-01T23:00:00Z"))
    (last.parent / "990000-var2-64b-uni.loadtest.json").write_text("{}")
    (last.parent / "notes.json").write_text("{}")
    assert find_latest(tmp_path) == last


def test_a_run_of_a_fleets_night_is_the_latest_though_its_name_has_the_nights_start(tmp_path: Path) -> None:
    alone = stored(tmp_path, replace(RUN, started="2026-03-02T00:30:00Z"))
    later = stored(tmp_path, replace(RUN, started="2026-03-02T01:00:00Z"))
    cell = tmp_path / "2026-03-01" / "r1" / "230000-var2-64b-ramp-0123456789ab.json"
    cell.parent.mkdir(parents=True)
    later.rename(cell)
    os.utime(alone, (1e9, 1e9))
    assert find_latest(tmp_path) == cell
    cell.write_bytes(alone.read_bytes())  # written later, but begun no later
    assert find_latest(tmp_path) == alone


def test_what_a_fleet_is_measuring_is_not_among_the_runs_of_a_directory(tmp_path: Path) -> None:
    kept, staged = stored(tmp_path / ".hidden" / "results"), stored(tmp_path / ".hidden" / "results" / ".fleet" / "n")
    rows = find_rows(str(tmp_path / ".hidden" / "results"), tmp_path, pytest.fail)
    assert {row.path for row in rows} == {str(kept)} and staged.exists()


# What cannot be written


def test_a_place_that_cannot_be_written_is_one_line_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(StoreError) as raised:
        begin(tmp_path / "results")
    assert "results" in str(raised.value) and "--results" in str(raised.value) and "\n" not in str(raised.value)


def test_a_journal_that_cannot_be_begun_is_one_line_before_the_run(tmp_path: Path) -> None:
    def full(path: Path, run: str) -> Journal:
        raise OSError(28, os.strerror(28))

    with pytest.raises(StoreError, match="No space left"):
        RunWriter(tmp_path, pytest.fail, full).begin(begun())
    assert files(tmp_path) == []


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a run is saved that its own place does not take."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    return tmp_path / "elsewhere"


def test_a_place_that_goes_away_does_not_cost_the_measurement(tmp_path: Path, elsewhere: Path) -> None:
    warnings = list[str]()
    one, *_ = begin(tmp_path / "results", warnings)
    os.rename(tmp_path / "results", tmp_path / "gone")
    one.sampled(RUN.samples[:5], STEP)
    path = one.end(RUN)
    assert path.is_relative_to(elsewhere)
    assert load_run(path).analysis == RUN.analysis
    assert len(warnings) == 1 and f"saved as {path}" in warnings[0]
    (moved,) = (tmp_path / "gone").glob("*/*/*.json")
    assert load_run(moved).samples == RUN.samples[:5], "what was written before is still there"


@pytest.mark.portable
def test_a_full_disk_is_said_once_and_what_it_did_not_take_follows_when_it_does(tmp_path: Path) -> None:
    warnings = list[str]()
    one, path, journal = begin(tmp_path, warnings)
    with no_file_longer_than(1000):
        for count in range(2, 12):  # it is tried again and again, and said once
            one.sampled(RUN.samples[:count], STEP)
        wait_until(lambda: journal.stat().st_size == 1000)
        wait_until(lambda: bool(one.sampled(RUN.samples[:12], STEP) or warnings))
        one.sampled(RUN.samples[:13], STEP)
        assert 0 < len(load_run(path).samples) < 12
    one.sampled(RUN.samples[:20], STEP)
    wait_until(lambda: len(load_run(path).samples) == 20)
    assert load_run(path).samples == RUN.samples[:20]
    assert one.end(RUN) == path and load_run(path) == RUN
    assert len(warnings) == 1 and "the run goes on" in warnings[0] and "File too large" in warnings[0]


def test_a_disk_that_hangs_holds_nothing_up_and_the_run_is_saved_elsewhere(tmp_path: Path, elsewhere: Path) -> None:
    warnings, woken = list[str](), threading.Event()
    one = RunWriter(tmp_path / "results", warnings.append, lambda path, run: Journal(path, run, hang, patience_s=0.2))

    def hang(file: int, data: bytes) -> int:
        woken.wait()
        return os.write(file, data)

    one.begin(begun())
    for count in range(1, len(RUN.samples)):
        one.sampled(RUN.samples[:count], STEP)  # would not return if it waited for the disk
    wait_until(lambda: bool(one.sampled(RUN.samples, STEP) or warnings))
    path = one.end(RUN)
    woken.set()
    assert path.is_relative_to(elsewhere) and load_run(path) == RUN
    assert len(warnings) == 2 and "does not answer" in warnings[0] and f"saved as {path}" in warnings[1]


def test_it_is_forced_to_the_disk_now_and_then(tmp_path: Path) -> None:
    forced: list[int] = []
    journal = Journal(tmp_path / "x.samples.jsonl", "id", sync=forced.append)
    for count in range(len(RUN.samples)):
        journal.append(sample=RUN.samples[:count])
    journal.close()
    assert len(forced) == 1 and not journal.problem


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_former_file_and_no_rubbish(tmp_path: Path) -> None:
    one, path, journal = begin(tmp_path)
    one.sampled(RUN.samples[:9], STEP)
    wait_until(lambda: len(load_run(path).samples) == 9)
    with no_file_longer_than(10_000), pytest.raises(StoreError) as raised:
        one.end(RUN)
    assert "\n" not in str(raised.value)
    assert load_run(path).status is Status.RUNNING and load_run(path).samples == RUN.samples[:9]
    assert files(tmp_path) == sorted(str(one.relative_to(tmp_path)) for one in (path, journal))


def test_facts_that_json_cannot_say_do_not_cost_the_run(tmp_path: Path) -> None:
    path = stored(tmp_path, replace(RUN, dut={"name": "x", "where": Path("/a"), "load": float("nan")}))
    assert load_run(path).dut == {"name": "x", "where": "/a", "load": None}


# Killed at any moment

CHILD = """
import pickle, sys, time
from trexbench.results.store import RunWriter, journal_of
results, begun, run, step = pickle.load(sys.stdin.buffer)
while True:
    one = RunWriter(results, print).begin(begun)
    for count in range(1, len(run.samples)):
        one.sampled(run.samples[:count], step)
        print(count, flush=True)
        while journal_of(one.path).read_bytes().count(b"\\n") != 1 + count:  # a sample takes its time
            time.sleep(0.002)
    one.end(run)
    print("ended", flush=True)
"""


def test_killed_at_any_moment_it_leaves_a_run_that_can_be_read(tmp_path: Path) -> None:
    """All that was handed on is there, but for the last sample."""
    rng = random.Random(5)
    for number in range(scaled(6, 2)):
        results = tmp_path / str(number)
        child = start_child(CHILD, (results, begun(), RUN, STEP))
        assert child.stdout is not None and [child.stdout.readline() for _ in range(2)] == [b"1\n", b"2\n"]
        time.sleep(rng.uniform(0.0, 0.05))
        child.send_signal(signal.SIGKILL)
        said = child.stdout.read().split(b"\n")[-2:]
        child.wait()
        child.stdout.close()
        runs = [load_run(path) for path in sorted(results.glob("*/*/*.json"))]
        unended = [len(run.samples) for run in runs if run.status is Status.RUNNING]
        assert len(unended) <= 1 and all(run.samples == RUN.samples for run in runs if run.status is Status.COMPLETE)
        if unended and said[0].isdigit():
            assert unended[0] >= int(said[0]) - 1
        stored(results)
        assert not list(results.glob("*/*/.*"))


# What is refused


DOCUMENT = json.loads(json.dumps(to_document(make_result(make_plan(ramp_s=10.0, sample_s=1.0)))))


changed = partial(changed_at, DOCUMENT)
DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.portable
@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("", "not JSON"),
        ("{}", "not a run document"),
        ('{"a":' * 200_000, "nested too deeply"),
        (json.dumps(DOCUMENT)[:-500], "not JSON"),
        (json.dumps(DOCUMENT).replace('"host": {', f'"host": {{"deep": {DEEP}, '), "too deeply"),
        (changed("schema", value="other"), "trexbench/tcp; `trexbench results import` takes"),
        (changed("version", value=4), "upgrade trexbench"),
        (changed("version", value="1"), "of version '1', this trexbench reads up to 3"),
        (changed("dut", value=[]), "wrong kind"),
        (changed("reason", value=3), "reason is not text"),
        (changed("plan", "windows", value=0), "--windows of 0"),
        (changed("plan", "line_rate_pps", value=float("nan")), "NaN is no number"),
        (json.dumps(DOCUMENT).replace('"line_rate_bps": 1000000000.0', '"line_rate_bps": 1e999'), "finite and above 0"),
        (changed("plan", "loss_threshold", value="0.1%"), "Expected `float`, got `str` - at `$.loss_threshold`"),
        (changed("plan", "kind", value="binary-search"), "no strategy 'binary-search'"),
        (changed("samples", 3, "t_s", value=0), "sample 3: time goes back"),
        (changed("samples", 3, "ports", value={}), "sample 3: port 0 is missing"),
        (changed("samples", 3, "ports", "0", "ipackets", value=-1), "Expected `int` >= 0 - at `$.ports[...].ipackets`"),
        (changed("samples", 0, "phase", value="confirm-drain"), "cannot be analysed"),
        (changed("samples", 5, "asked_pps", "0->1", value=0), "cannot be analysed (ZeroDivisionError)"),
        (changed("samples", 5, "ports", "0", "opackets", value=10**400), "cannot be analysed (OverflowError)"),
    ],
)
def test_damaged_files_are_refused_by_name_in_one_line(tmp_path: Path, document: Any, says: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(StoreError) as raised:
        load_run(path)
    message = str(raised.value)
    assert message.startswith(f"{path}: ") and says in message and "\n" not in message


def test_what_is_no_file_or_too_large_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xff"}')
    for name, says in (
        ("fifo", "not a file"),
        ("large.json", "more than any run"),
        ("missing.json", "No such file"),
        ("latin.json", "not JSON"),
        (".", "not a file"),
    ):
        with pytest.raises(StoreError, match=says):
            load_run(tmp_path / name)
