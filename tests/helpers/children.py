"""Python processes that a test starts to kill them, and a wait for what a thread or process does."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(true: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < ends_s
        time.sleep(0.002)


def start_child(code: str, given: object) -> subprocess.Popen[bytes]:
    """Start Python code that reads what it is given from its standard input, as a pickle."""
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin is not None
    pickle.dump(given, child.stdin)
    child.stdin.close()
    return child
