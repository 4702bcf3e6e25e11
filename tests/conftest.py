"""Setup that all tests begin with."""

from __future__ import annotations

import gc
import itertools
import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from effort import NIGHTLY, scaled
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# A shell's background jobs ignore Ctrl-C, nohup's SIGHUP, and what they start inherits that: tests would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Workers of pytest-xdist say that a terminal has 80 columns: what is written into a pipe has no width.
os.environ.pop("COLUMNS", None)

# By day no power is lost; to wait for the disk would take a tenth of the time.
if not NIGHTLY:
    os.fsync = lambda _: None

# What is imported for the tests stays: no collection looks at it, now or later.
gc.disable()

# A busy machine is no defect: no example is too slow. CI judges a change, with the same examples every time;
# new ones are sought wherever else the tests run.
settings.register_profile(
    "trexbench",
    deadline=None,
    max_examples=scaled(100, 10),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="TREXBENCH_CI" in os.environ,
)
settings.load_profile("trexbench")

PAGE, EYES = "tests/page/", "tests/page/test_eyes.py"
_BEGUN_S = pytest.StashKey[float]()
_NUMBERS = itertools.count()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave nights' tests to nights, and those that make network namespaces to root."""
    for item in items if os.geteuid() else ():
        if item.get_closest_marker("root") or item.nodeid.startswith("tests/root/"):
            item.add_marker(pytest.mark.skip(reason="needs root: it makes network namespaces"))
    if not NIGHTLY:
        left: Sequence[pytest.Item] = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


class ByFixtures(LoadScopeScheduling):
    """Gives all tests of a file to one worker, and all of the page but the longest file: they share a browser.

    Marks of ``xdist_group`` would say the same, but are ignored by pytest-xdist 3.8.0 on pytest 9.2.0.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return PAGE if path.startswith(PAGE) and path != EYES else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFixtures:
    config.option.loadscopereorder = False  # the files with the fewest tests are the longest: not last
    return ByFixtures(config, log)


def cpu_s() -> float:
    """CPU time of this process and of all children that ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def reference_s() -> float:
    """CPU time of a small piece of work, always the same: how fast the machine is at the moment."""
    begun_s = time.process_time()
    rows = {f"{number}.{number % 7}": [number, number * 0.5, str(number)] for number in range(500)}
    sorted(json.loads(json.dumps(rows)).items(), key=lambda row: (row[1][1] % 10, row[0]))
    return time.process_time() - begun_s


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    if next(_NUMBERS) % 20 == 0:  # it would take 5 % of the unit tests' time otherwise
        item.user_properties.append(("reference_s", round(reference_s(), 6)))
    item.stash[_BEGUN_S] = cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Note the test's CPU time, its fixtures' included: .ci/steps.py holds unit tests to a limit."""
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_s", round(cpu_s() - item.stash[_BEGUN_S], 3)))
