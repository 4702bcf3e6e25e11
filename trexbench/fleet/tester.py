"""Start of a tester's process, which Dask has it run first."""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(_worker: Any) -> None:
    """Leave Ctrl-C, which a terminal sends to all, to the night: it ends its testers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
