"""Which cells of a night by a fleet may be given to Dask, by who is there and idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from trexbench.config.fleet import Fleet
from trexbench.fleet.night import FleetNight

pytestmark = pytest.mark.portable


def night_of(wiring: dict[str, str], left: dict[str, int], running: dict[str, str]) -> FleetNight:
    """wiring: tester -> DUTs, a letter each; left: DUT -> its cells; running: key of a cell -> its DUT."""
    night = FleetNight("lab", Fleet((), (), ()))
    night._able = {dut: {tester for tester, duts in wiring.items() if dut in duts} for dut in "ab"}
    night._waiting = {dut: deque(range(count)) for dut, count in left.items()}
    jobs: Any = [SimpleNamespace(cell=SimpleNamespace(dut=dut)) for dut in running.values()]
    night._jobs = jobs
    night._running = {key: (at, "") for at, key in enumerate(running)}
    return night


@pytest.mark.parametrize(
    ("wiring", "left", "running", "keys", "started"),
    [
        ({"t1": "ab", "t2": "ab"}, {"a": 1, "b": 2}, {}, {"t1": [], "t2": []}, "ba"),
        ({"t1": "ab", "t2": "a"}, {"a": 1, "b": 2}, {}, {"t1": [], "t2": []}, "ba"),
        ({"t1": "ab", "t2": "a"}, {"a": 2, "b": 1}, {}, {"t1": [], "t2": []}, "a"),
        ({"t1": "ab"}, {"a": 1}, {"k": "b"}, {"t1": ["k"]}, ""),
        ({"t1": "ab", "t2": "ab"}, {"a": 1}, {"k": "b"}, {"t1": ["k"], "t2": []}, "a"),
        ({"t1": "ab", "t2": "ab"}, {"a": 1}, {"k": "b"}, {"t1": [], "t2": []}, "a"),
        ({"t1": "ab"}, {"a": 1}, {"k": "b"}, {"t1": []}, ""),
        ({"t1": "b", "t2": "ab"}, {"a": 1}, {"k": "b"}, {"t2": []}, ""),
        ({"t1": "b", "t2": "a"}, {"a": 1}, {"k": "b"}, {"t2": []}, "a"),
        ({"t1": "ab", "t2": "b"}, {"a": 1}, {}, {"t2": []}, ""),
        ({"t1": "a", "t2": "a"}, {"a": 3}, {"k": "a"}, {"t1": ["k"], "t2": []}, ""),
    ],
    ids=[
        "the DUT with more cells first", "the other has a tester left", "the first may take the only tester",
        "the tester is busy", "the other is idle",
        "one is on its way, there are two testers", "one is on its way to the only tester",
        "one waits for a tester that may be this", "one waits for a tester that is not this", "nobody is there",
        "of a DUT one at a time",
    ],
)  # fmt: skip
def test_a_cell_is_given_only_where_an_idle_tester_is_sure(
    wiring: dict[str, str], left: dict[str, int], running: dict[str, str], keys: dict[str, Sequence[str]], started: str
) -> None:
    night = night_of(wiring, left, running)
    futures: Any = dict.fromkeys(running.values())
    assert "".join(night._startable(keys, futures)) == started
