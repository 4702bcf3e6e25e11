"""Start of a tester's process, which Dask has it run first."""

from __future__ import annotations

import logging
import signal
from typing import Any


def dask_setup(_worker: Any) -> None:
    """Leave Ctrl-C, which a terminal sends to all, to the night: it ends its testers. Print nothing of Dask's."""
    logging.getLogger("tornado").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
