"""Runs of which the DUT told something: looks at it in silence and in the hold, as a kernel or VPP would answer."""

from __future__ import annotations

from typing import Any

from runs import World, make_plan, make_result

from trexbench.core.dut.runtime import NodeRuntime, ThreadRuntime
from trexbench.core.dut.telemetry import CpuTime, DutReading, Missing, Moment, Observation, PortCount
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult


def kernel(t_s: float, busy: float = 0.5, pps: float = 6e5, power_w: float | None = None) -> Observation:
    cpus = tuple(CpuTime(cpu, 100 + t_s, 50 + busy * t_s, busy * t_s / 2, 2e9) for cpu in (1, 2))
    ports = (PortCount(0, 0, 0), PortCount(1, 0, int(pps * t_s)))
    return Observation(cpus=cpus, ports=ports, power_w=power_w, missing=(Missing("drops", "no such file"),))


def vpp(vectors: int = 1_800_000, clocks: float = 358.25) -> Observation:
    """Two workers whose packets cost differently, and one that has nothing to do."""
    threads = []
    for number, (share, cost) in enumerate(((1.0, clocks), (0.5, clocks * 1.1), (0.0, 1.0)), start=1):
        own = int(vectors * share)
        calls = max(1, own // 256)
        nodes = (
            NodeRuntime("dpdk-input", "polling", calls, own, 0, 80.0, own / calls),
            NodeRuntime("ethernet-input", "active", calls, own, 0, cost / 3, own / calls),
            NodeRuntime("ip4-lookup <b>", "active", calls, own, 0, cost * 2 / 3, own / calls),
        )
        threads.append(
            ThreadRuntime(number, f"vpp_wk_{number - 1}", number, 3.0, None, None, None, None, None, None, nodes)
        )
    return Observation(threads=tuple(threads), clock_hz=2.2e9)


def run_of(before: Observation, after: Observation, bidir: bool = False, **changes: Any) -> RunResult:
    """A run of a minute whose hold lies between these two looks."""
    looks = (
        DutReading(Moment.START, 0.0, 0.01, before),
        DutReading(Moment.BEGIN, 66.0, 0.01, before, Phase.HOLD),
        DutReading(Moment.END, 69.0, 0.01, after, Phase.HOLD),
        DutReading(Moment.FINISH, 80.0, 0.01, after),
    )
    given = {"dut_readings": looks, "telemetry": "hold"} | changes
    return make_result(make_plan(bidir=bidir), World(capacity_pps=6e5), **given)
