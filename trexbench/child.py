"""Command and environment of child processes that run modules of this package, as ``python -m`` does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_RUN = """import sys
sys.path[:] = filter(None, sys.path)
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)"""


def child_argv(module: str) -> tuple[str, ...]:
    """Return a command that runs a module, and nothing in the current directory, whatever the version of Python.

    There a file named like a module, ``json.py``, would be run in its place.
    """
    return sys.executable, "-c", _RUN, module


def child_environment() -> dict[str, str]:
    """Return this process's environment, in which a child finds this package."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    return {**os.environ, "PYTHONPATH": path}
