"""results/: where runs go, what survives whoever is killed, and what is refused when it is read back."""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import Silent, Tee, World, make_plan, make_result, simulate

from trexbench.core.errors import StoreError
from trexbench.core.ramp import Step
from trexbench.core.result import RunResult, Status, to_document
from trexbench.core.sample import Phase
from trexbench.store import MAX_BYTES, MIN_INTERVAL_S, WRITE_SHARE, RunWriter, find_latest, load_run

RUN = make_result(make_plan(bidir=True), World(capacity_pps=660e3, noise=0.003))
STEP = Step(Phase.RAMP, 1000.0, 1.0)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def begun(result: RunResult = RUN) -> RunResult:
    return replace(result, samples=(), status=Status.RUNNING, finished=None)


def writer(results: Path, warnings: list[str] | None = None, clock: Clock | None = None) -> RunWriter:
    return RunWriter(results, (warnings if warnings is not None else []).append, clock or Clock())


def stored(results: Path, result: RunResult = RUN) -> Path:
    return writer(results).begin(begun(result)).end(result)


def files(directory: Path) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


def test_the_run_comes_back_whole(tmp_path: Path) -> None:
    loaded = load_run(stored(tmp_path))
    assert json.loads(json.dumps(to_document(loaded))) == json.loads(json.dumps(to_document(RUN)))
    assert loaded.analysis == RUN.analysis
    assert (loaded.plan, loaded.status, tuple(loaded.samples)) == (RUN.plan, Status.COMPLETE, tuple(RUN.samples))


@pytest.mark.parametrize(
    ("changes", "plan", "place"),
    [
        ({}, {}, "2026-03-01/lab-linux/120000-var2-64b-uni.json"),
        ({}, {"bidir": True}, "2026-03-01/lab-linux/120000-var2-64b-bidir.json"),
        ({}, {"kind": "saturate", "hold_s": 10.0}, "2026-03-01/lab-linux/120000-var2-64b-uni-saturate.json"),
        ({"dut": {"name": "../../etc/x y"}}, {}, "2026-03-01/etc-x-y/120000-var2-64b-uni.json"),
        ({"dut": {"name": "räuter.lab"}}, {}, "2026-03-01/r-uter.lab/120000-var2-64b-uni.json"),
        ({"dut": {}, "command": {}}, {}, "2026-03-01/unnamed/120000-unnamed-uni.json"),
        ({"command": {"mode": "my.profile/x"}}, {}, "2026-03-01/lab-linux/120000-my-profile-x-uni.json"),
        ({"started": "../../../x"}, {}, "undated/lab-linux/000000-var2-64b-uni.json"),
    ],
)
def test_where_a_run_goes(tmp_path: Path, changes: dict[str, Any], plan: dict[str, Any], place: str) -> None:
    path = stored(tmp_path, replace(make_result(make_plan(**plan)), **changes))
    assert str(path.relative_to(tmp_path)) == place
    assert files(tmp_path) == [place]


def test_runs_of_the_same_second_get_names_of_their_own(tmp_path: Path) -> None:
    barrier, paths, lock = threading.Barrier(8), [], threading.Lock()

    def one() -> None:
        barrier.wait()
        path = stored(tmp_path)
        with lock:
            paths.append(path)

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 8
    assert len(files(tmp_path)) == 8


def test_it_is_written_at_the_start_then_at_intervals_and_at_the_end(tmp_path: Path) -> None:
    clock = Clock()
    one = writer(tmp_path, clock=clock).begin(begun())
    assert one.path is not None
    seen = [(load_run(one.path).status, len(load_run(one.path).samples))]
    for count, now_s in ((2, MIN_INTERVAL_S - 0.1), (3, MIN_INTERVAL_S), (4, MIN_INTERVAL_S + 1)):
        clock.now_s = now_s
        one.sampled(RUN.samples[:count], STEP)
        one.flush()
        seen.append((load_run(one.path).status, len(load_run(one.path).samples)))
    one.end(RUN)
    assert seen == [(Status.RUNNING, n) for n in (0, 0, 3, 3)]
    assert load_run(one.path).status is Status.COMPLETE


def test_a_slow_disk_is_asked_less_often(tmp_path: Path) -> None:
    class SlowWhileWriting(Clock):
        """The clock moves by a second with each look at it, as if every write took one."""

        def __call__(self) -> float:
            if threading.current_thread() is not threading.main_thread():
                self.now_s += 1.0
            return self.now_s

    clock = SlowWhileWriting()
    one = writer(tmp_path, clock=clock).begin(begun())
    clock.now_s = MIN_INTERVAL_S
    one.sampled(RUN.samples[:2], STEP)
    one.flush()
    assert one.path is not None
    written = one.path.stat().st_mtime_ns
    clock.now_s += WRITE_SHARE - 1.0
    one.sampled(RUN.samples[:3], STEP)
    one.flush()
    assert one.path.stat().st_mtime_ns == written
    clock.now_s += 1.0
    one.sampled(RUN.samples[:3], STEP)
    one.flush()
    assert len(load_run(one.path).samples) == 3


def test_it_is_a_sink_of_the_real_loop(tmp_path: Path) -> None:
    plan, clock = make_plan(), Clock()
    one = writer(tmp_path, clock=clock).begin(begun())

    class Tick(Silent):
        def sampled(self, samples: Any, step: Step) -> None:
            clock.now_s = samples[-1].t_s

    outcome = simulate(plan, World(), Tee(Tick(), one))
    path = one.end(replace(RUN, plan=plan, samples=tuple(outcome.samples)))
    assert list(load_run(path).samples) == list(outcome.samples)


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
    last = stored(tmp_path, replace(RUN, started="2026-03-02T08:00:00Z"))
    stored(tmp_path, replace(RUN, started="2026-03-02T07:00:00Z", dut={"name": "zz"}))
    stored(tmp_path, replace(RUN, started="2026-03-01T23:00:00Z"))
    (last.parent / "990000-var2-64b-uni.loadtest.json").write_text("{}")
    (last.parent / "notes.json").write_text("{}")
    assert find_latest(tmp_path) == last


# What cannot be written


def test_a_place_that_cannot_be_written_is_one_line_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(StoreError) as raised:
        writer(tmp_path / "results").begin(begun())
    assert "results" in str(raised.value) and "--results" in str(raised.value) and "\n" not in str(raised.value)


def test_a_place_that_goes_away_does_not_cost_the_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    clock, warnings = Clock(), list[str]()
    one = writer(tmp_path / "results", warnings, clock).begin(begun())
    os.rename(tmp_path / "results", tmp_path / "gone")
    for _ in range(3):  # it is tried again and again, and said once
        clock.now_s += 100
        one.sampled(RUN.samples[:5], STEP)
        one.flush()
    path = one.end(RUN)
    assert path.is_relative_to(tmp_path / "elsewhere")
    assert load_run(path).analysis == RUN.analysis
    assert len(warnings) == 2
    assert "the measurement goes on" in warnings[0] and f"saved as {path}" in warnings[1]


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_former_file_and_no_rubbish(tmp_path: Path) -> None:
    one = writer(tmp_path).begin(begun())
    with no_file_longer_than(10_000), pytest.raises(StoreError) as raised:
        one.end(RUN)
    assert "\n" not in str(raised.value) and one.path is not None
    assert load_run(one.path).status is Status.RUNNING
    assert files(tmp_path) == [str(one.path.relative_to(tmp_path))]


def test_facts_that_json_cannot_say_do_not_cost_the_run(tmp_path: Path) -> None:
    path = stored(tmp_path, replace(RUN, dut={"name": "x", "where": Path("/a"), "load": float("nan")}))
    assert load_run(path).dut == {"name": "x", "where": "/a", "load": None}


# Killed at any moment

CHILD = """
import sys
sys.path[:0] = [{unit!r}, {root!r}]
from pathlib import Path
import trexbench.store as store
from test_store import RUN, STEP, begun
clock = iter(range(0, 10**9, 1000))
one = store.RunWriter(Path({results!r}), print, lambda: next(clock)).begin(begun())
one.sampled(RUN.samples[:2], STEP)
one.flush()
print("written", flush=True)
while True:
    for count in range(2, len(RUN.samples)):
        one.sampled(RUN.samples[:count], STEP)
        one.flush()
    one.end(RUN)
"""


def test_killed_at_any_moment_it_leaves_a_file_that_parses(tmp_path: Path) -> None:
    rng = random.Random(5)
    here = Path(__file__).parent
    code = CHILD.format(unit=str(here), root=str(here.parents[1]), results=str(tmp_path))
    children = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(6)]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "written\n"
        time.sleep(rng.uniform(0.0, 0.05))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    paths = sorted(tmp_path.glob("*/*/*.json"))
    assert len(paths) == len(children)
    assert all(len(load_run(path).samples) >= 2 for path in paths)
    stored(tmp_path)
    assert not list(tmp_path.glob("*/*/.*"))


# What is refused


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


DOCUMENT = json.loads(json.dumps(to_document(make_result(make_plan(ramp_s=10.0, sample_s=1.0)))))


def changed(*keys: Any, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    at = document
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return document


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not a run document"),
        ("{}", "not a run document"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        (json.dumps(DOCUMENT)[:-500], "not JSON"),
        (changed("schema", value="other"), "not a run document"),
        (changed("version", value=2), "upgrade trexbench"),
        (changed("version", value="1"), "unknown version"),
        (changed("status", value="odd"), "wrong kind"),
        (changed("samples", value=None), "wrong kind"),
        (changed("dut", value=[]), "wrong kind"),
        (changed("reason", value=3), "reason is no text"),
        (changed("plan", "directions", value=[[0]]), "wrong kind"),
        (changed("plan", "windows", value=0), "windows is no count"),
        (changed("plan", "line_rate_pps", value=float("nan")), "NaN is no number"),
        (json.dumps(DOCUMENT).replace('"line_rate_bps": 1000000000.0', '"line_rate_bps": 1e999'), "no number"),
        (changed("plan", "loss_threshold", value="0.1%"), "loss_threshold is no number"),
        (changed("plan", "warmup_s", value=0), "wrong kind"),
        (changed("plan", "directions", value=[]), "wrong kind"),
        (changed("plan", "new_field", value=1), "wrong kind"),
        (changed("samples", 3, "t_s", value=0), "sample 3: time goes back"),
        (changed("samples", 3, "ports", value={}), "sample 3: port 0 is missing"),
        (changed("samples", 3, "ports", "0", "opackets", value=1.5), "sample 3: port 0: opackets is no count"),
        (changed("samples", 3, "ports", "0", "link_up", value="false"), "link_up is neither"),
        (changed("samples", 3, "cpu_percent", value="idle"), "cpu_percent is no number"),
        (changed("samples", 3, "trial", value=None), "trial is no count"),
        (changed("samples", 0, "phase", value="confirm-drain"), "cannot be analysed"),
    ],
)
def test_damaged_files_are_refused_by_name_in_one_line(tmp_path: Path, document: Any, says: str) -> None:
    path = written(tmp_path / "run.json", document)
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


def nodes(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from nodes(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from nodes(inner, (*at, index))


NODES = list(nodes(DOCUMENT))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.sampled_from(NODES), value=JSON)
def test_any_one_wrong_value_is_refused_or_harmless(tmp_path: Path, where: tuple[Any, ...], value: Any) -> None:
    path = written(tmp_path / "run.json", changed(*where, value=value))
    try:
        result = load_run(path)
    except StoreError as error:
        assert "\n" not in str(error)
        return
    json.dumps(to_document(result))
