"""Environment of child processes that run modules of this package (``python -m``)."""

from __future__ import annotations

import os
from pathlib import Path


def child_environment() -> dict[str, str]:
    """This process's environment, in which a child finds this package, and nothing in the current directory.

    There a file named like a module, ``json.py``, would be run in its place. Python 3.10 does not know PYTHONSAFEPATH.
    """
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
