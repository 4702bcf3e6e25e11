"""Looks at a DUT, there and back through JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from trexbench.core.dut.runtime import NodeRuntime, ThreadRuntime
from trexbench.core.dut.telemetry import (
    CpuTime,
    Detail,
    DropCount,
    DutReading,
    Missing,
    Moment,
    Observation,
    PortCount,
    QueueCount,
)
from trexbench.core.load.sample import Phase

_node = NodeRuntime("dpdk-input", "polling", 3, 768, 0, 80.0, 256.0)
_thread = ThreadRuntime(1, "vpp_wk_0", 1, 5.0, None, 2.5e6, 1.0, 1.0, 0.0, 0.0, (_node,))
SEEN = DutReading(
    Moment.END,
    30.5,
    0.2,
    Observation(
        cpus=(CpuTime(0, 100.0, 50.0, 25.0, 2.2e9), CpuTime(1, 1.0, 1.0)),
        ports=(PortCount(0, 10, None),),
        queues=(QueueCount(0, 1, 5),),
        drops=(DropCount("rx-miss", 7, 0, 1),),
        threads=(_thread,),
        clock_hz=2.2e9,
        power_w=19.0,
        missing=(Missing("perf", "not allowed"),),
        details=(Detail("softnet_stat time_squeeze cpu1", 3),),
    ),
    Phase.CONFIRM,
    2,
)


def test_there_and_back() -> None:
    assert msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(SEEN))), DutReading) == SEEN
    silent = DutReading(Moment.START, 0.0, 0.0, Observation())
    assert msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(silent))), DutReading) == silent


def test_a_look_of_before_there_were_details_is_read() -> None:
    document = json.loads(json.dumps(msgspec.to_builtins(SEEN)))
    del document["observation"]["details"]
    assert msgspec.convert(document, DutReading) == replace(SEEN, observation=replace(SEEN.observation, details=()))


_DOCUMENT = json.loads(json.dumps(msgspec.to_builtins(SEEN)))


@pytest.mark.parametrize(("name", "value"), [("t_s", -1.0), ("t_s", float("nan")), ("trial", 1.5), ("moment", "noon")])
def test_what_no_look_can_be_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError):
        msgspec.convert({**_DOCUMENT, name: value}, DutReading)
