"""Two looks at a DUT as text."""

from __future__ import annotations

from dataclasses import replace

from trexbench.core.dut.telemetry import CpuTime, Detail, DropCount, Missing, Observation, PortCount, QueueCount
from trexbench.report.run.counters import DETAILS, format_counters

BEFORE = Observation(
    cpus=(CpuTime(1, 10.0, 1.0, None, 2.2e9),),
    ports=(PortCount(0, 100, 5), PortCount(1, 7, None)),
    queues=(QueueCount(0, 0, 100),),
    drops=(DropCount("rx_dropped", 3, 0), DropCount("Ip.InDiscards", 0)),
    details=(Detail("softirqs NET_RX cpu1", 40), Detail("softnet_stat processed cpu1", 2**32 - 1), Detail("still", 6)),
)
AFTER = Observation(
    cpus=(CpuTime(1, 12.0, 2.0, None, 2.2e9),),
    ports=(PortCount(0, 2100, 4), PortCount(1, 9, None)),
    queues=(QueueCount(0, 0, 2100),),
    drops=(DropCount("rx_dropped", 10, 0), DropCount("Ip.InDiscards", 0)),
    missing=(Missing("tc", "not installed"),),
    perf_hz=1.1e9,
    details=(Detail("softirqs NET_RX cpu1", 47), Detail("softnet_stat processed cpu1", 5), Detail("still", 6)),
)


def test_what_moved_is_told() -> None:
    assert format_counters(BEFORE, AFTER, 2.0).splitlines() == [
        "in 2.00 s",
        "port 0       received 1.000 kpps, sent unknown (the counter went back)",
        "port 1       received 1.000 pps, sent unknown",
        "  queue 0    1.000 kpps",
        "dropped      7 rx_dropped on port 0",
        "cpu 1        50.0 % busy of 2200 MHz",
        "perf stat    1100 million cycles/s",
        "counted      7 softirqs NET_RX cpu1",
        "not read     tc: not installed",
    ]


def test_details_are_told_largest_first_and_not_all() -> None:
    count = DETAILS + 3
    before = replace(BEFORE, details=tuple(Detail(f"d{at:02}", 5) for at in range(count)))
    after = replace(AFTER, details=(*(Detail(f"d{at:02}", 6 + at) for at in range(count)), Detail("new", 99)))
    told = [line for line in format_counters(before, after, 2.0).splitlines() if line.startswith(("counted", " " * 13))]
    assert told[0] == f"counted      {count} d{count - 1}" and told[-1] == "             and 3 more"
    assert len(told) == DETAILS + 1
