"""Start of a tester's process, which Dask has it run first."""

from __future__ import annotations

import logging
import signal
from typing import Any


def quiet() -> None:
    """Keep Dask's own log lines off the terminal: what they report, a night says in its own words."""
    import distributed  # noqa: F401  # which sets its levels when it is imported

    for name in ("distributed", "tornado", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def dask_setup(_worker: Any) -> None:
    """Leave Ctrl-C, which a terminal sends to all, to the night: it ends its testers. Print nothing of Dask's."""
    quiet()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
