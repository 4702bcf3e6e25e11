"""What all tests begin with."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# A shell's background jobs ignore Ctrl-C, nohup's SIGHUP, and what they start inherits that: tests would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Workers of pytest-xdist say that a terminal has 80 columns: what is written into a pipe has no width.
os.environ.pop("COLUMNS", None)

# A busy machine is no defect: no example is too slow. CI judges a change, with the same examples every time;
# new ones are sought wherever else the tests run.
settings.register_profile(
    "trexbench",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="TREXBENCH_CI" in os.environ,
)
settings.load_profile("trexbench")
