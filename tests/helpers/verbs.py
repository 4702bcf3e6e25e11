"""Verbs in this process, as a user calls them."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from trexbench.cli import main

ROOT = Path(__file__).resolve().parents[2]


class Said(NamedTuple):
    code: int
    out: str
    err: str


def run(*words: object) -> Said:
    """The exit code and what the verb printed; an exception is a traceback at the prompt, and fails the test."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape") for _ in range(2))
    with pytest.raises(SystemExit) as ended, redirect_stdout(out), redirect_stderr(err):
        main([str(word) for word in words])
    assert isinstance(ended.value.code, int)
    for stream in (out, err):
        stream.seek(0)
    return Said(ended.value.code, out.read(), err.read())


def run_in(folder: Path, *words: object) -> Said:
    """The same in this directory, of which its state is, too; it succeeds."""
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        for name in ("run", "state"):
            here.setenv(f"TREXBENCH_{name.upper()}_DIR", str(folder / name))
        said = run(*words)
    assert said.code == 0, said
    return said


def python(code: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own, with nothing in its environment but this and the checkout's path."""
    argv, environment = [sys.executable, "-c", code, *words], {"PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verbs run in a directory of their own; configs and profiles are the checkout's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    for name in ("TREXBENCH_DUT_CONFIGS", "TREXBENCH_STL_PROFILES", "TREXBENCH_TREX_DIR"):
        monkeypatch.delenv(name, raising=False)
