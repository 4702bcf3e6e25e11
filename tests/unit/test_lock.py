"""Locks of files, and files that are replaced as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from trexbench import lock
from trexbench.core import errors
from trexbench.files import replace_file
from trexbench.lock import RUN_DIR_ENV, is_held, locked, run_dir

pytestmark = pytest.mark.portable

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys
from trexbench.lock import locked
with locked("tester-x", doing="ramp of lab-linux, var2-64b"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "deep" / "run"
    monkeypatch.setenv(RUN_DIR_ENV, str(directory))
    return directory


def other_holder(directory: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "PYTHONPATH": str(ROOT), RUN_DIR_ENV: str(directory)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_lock_can_be_looked_at_and_is_free_when_its_holder_is_killed(run_directory: Path) -> None:
    assert not is_held("tester-x") and not run_directory.exists()
    with other_holder(run_directory) as other:
        assert is_held("tester-x") and not is_held("tester-y")
        other.kill()
    assert not is_held("tester-x")
    with locked("tester-x"):
        assert (run_directory / "tester-x.lock").read_text().startswith(f"process {os.getpid()} of ")


def test_a_lock_of_root_is_seen_by_others(run_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_root = tmp_path / "root"
    monkeypatch.setattr(lock, "RUN_DIR_OF_ROOT", of_root)
    with other_holder(of_root) as other:
        assert is_held("tester-x") and not run_directory.exists()
        other.kill()


@pytest.mark.parametrize("wait_s", [0.0, 0.2])
def test_the_holder_is_named_with_what_it_does(run_directory: Path, wait_s: float) -> None:
    with other_holder(run_directory) as other:
        begun = time.monotonic()
        with (
            pytest.raises(errors.TesterBusy) as raised,
            locked("tester-x", "tester 127.0.0.1:4501 is in use", wait_s=wait_s),
        ):
            pass
        assert time.monotonic() - begun >= wait_s
    text = str(raised.value)
    assert text.startswith(f"tester 127.0.0.1:4501 is in use (process {other.pid} of ")
    assert " UTC: ramp of lab-linux, var2-64b" in text and "\n" not in text
    assert raised.value.exit_code == 8


def test_held_until_the_block_ends_also_by_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), locked("a"), locked("b"):
        with pytest.raises(errors.TesterBusy, match="a is locked"), locked("a"):
            pass
        raise ZeroDivisionError
    with locked("a"):
        pass


def test_it_waits_as_long_as_asked() -> None:
    holds, free = threading.Event(), threading.Event()

    def hold() -> None:
        with locked("a"):
            holds.set()
            free.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(10)
    threading.Timer(0.1, free.set).start()
    with locked("a", wait_s=10):
        assert free.is_set()
    thread.join()


def test_the_last_text_is_no_longer_than_its_own(run_directory: Path) -> None:
    """A long holder's line must not shine through a short one's."""
    file = run_directory / "a.lock"
    with locked("a", doing="x" * 900):
        assert len(file.read_bytes()) == 400
    with locked("a"):
        assert "xxx" not in file.read_text()


def test_a_child_does_not_inherit_it() -> None:
    with locked("a"):
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        with locked("a"):
            assert child.poll() is None
    finally:
        child.communicate()


def test_no_place_for_locks_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(RUN_DIR_ENV, str(tmp_path / "file" / "run"))
    with pytest.raises(errors.BenchError) as raised, locked("a"):
        pass
    assert RUN_DIR_ENV in str(raised.value) and "\n" not in str(raised.value)


def test_where_locks_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RUN_DIR_ENV)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    expected = Path("/run/trexbench") if os.geteuid() == 0 else tmp_path / "trexbench"
    assert run_dir() == expected
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert run_dir().name in ("trexbench", f"trexbench-{os.getuid()}")


def test_a_pipe_and_a_link_stay_what_they_are(tmp_path: Path) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_file(pipe, b"into it")
        assert pipe.is_fifo() and os.read(reader, 100) == b"into it"
    finally:
        os.close(reader)
    link.symlink_to(file)
    replace_file(link, b"behind it")
    assert link.is_symlink() and file.read_bytes() == b"behind it"
    with pytest.raises(OSError):
        replace_file(tmp_path, b"a directory")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "link", "pipe"], "nothing is left beside it"
