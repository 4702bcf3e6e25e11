"""The twins of the Raspberry Pis and of the home routers beside every cell of the two documents they were fitted to.

    python benchmarks/tcp_documents.py [--seed 1] [--details]

Each cell is a test of its own against the twin of dut_configs/, through the bench of ``trexbench tcp --sim`` and the
figures of its document. Rates and pings are near within 5 %, the router's CPU within 5 percentage points of all cores.
--details adds what document 2022 has below its table: min, max, median and sstdev of the intervals, and of the pings.
The exit code is 1 if less than nine in ten cells of the tables are near.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from _ratios import ROOT, SEEDED, note, options

from trexbench.config.schema import read_dut
from trexbench.core.dut.telemetry import Moment
from trexbench.core.result import Status
from trexbench.core.tcp.plan import Counters, Leg, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.result import TcpResult
from trexbench.session.tcp.legs import with_counters
from trexbench.session.tcp.request import TcpRequest
from trexbench.session.tcp.simulate import SimulatedBench

NEAR, NEAR_POINTS, AIM = 0.05, 5.0, 0.9
FAST = 1e9
"""Simulated seconds per real second."""
F, R = Way.FORWARD, Way.REVERSE

RASPBERRY = {
    ("raspberry-pi", 4, None): ((65.6, None), (65.2, 100), (62.9, None), (63.2, 100)),
    ("raspberry-pi", 6, None): ((47.5, None), (47.3, 100), (50.4, None), (50.2, 100)),
    ("raspberry-pi", 6, "firewall"): ((32.9, None), (32.8, 100), (34.8, None), (34.6, 100)),
    ("raspberry-pi-2", 4, None): ((89.3, None), (89.3, 3), (78.0, None), (78.1, 5)),
    ("raspberry-pi-2", 6, None): ((85.6, None), (84.7, 20), (78.2, None), (78.2, 8)),
    ("raspberry-pi-2", 6, "firewall"): ((66.2, None), (66.2, 23), (69.5, None), (69.4, 25)),
}
"""DUT, IP version, variant -> Mbit/s and CPU % of all cores: forward, forward monitored, reverse, reverse monitored."""
HOME = {
    "edgerouter-openwrt": (168, 726, 1.423, None),
    "edgerouter-edgeos": (919, 925, 1.405, 5.9),
    "gl-ar150": (90, 91, 1.478, 0.8),
    "wrt3200acm": (924, 928, 1.282, None),
    "raspberry-pi-2-openwrt": (86, 86, 1.751, 2.3),
    "raspberry-pi-3-openwrt": (85, 86, 1.690, 2.3),
    "raspberry-pi-4-openwrt": (923, 928, 1.036, 3.1),
    "virtual-openwrt": (2504.9, 4044.7, 1.202, None),
}
"""DUT -> Mbit/s down (reverse) and up (forward), mean ping in ms, idle power in W."""
OFFLOAD = {"no-flow-offload": (140.3, 117.4), "flow-offload": (161.3, 375.1)}
"""Variant of the EdgeRouter -> Mbit/s down and up."""
INTERVALS = {
    "edgerouter-openwrt": ((706.6, 734.1, 723.5, 5.80), (160.2, 171.2, 168.9, 2.88)),
    "edgerouter-edgeos": ((912.3, 941.3, 922.7, 6.48), (908.6, 922.3, 921.6, 3.64)),
    "gl-ar150": ((83.88, 108.8, 94.37, 5.42), (84.89, 93.59, 90.73, 1.41)),
    "wrt3200acm": ((912.3, 933.3, 933.2, 5.60), (916.3, 927.6, 923.7, 1.25)),
    "raspberry-pi-2-openwrt": ((73.39, 105.7, 83.89, 4.98), (80.37, 90.96, 85.78, 1.20)),
    "raspberry-pi-3-openwrt": ((73.40, 111.4, 83.89, 5.18), (78.97, 90.91, 85.30, 1.14)),
    "raspberry-pi-4-openwrt": ((922.2, 933.3, 933.2, 5.29), (915.6, 924.0, 923.8, 1.15)),
    "virtual-openwrt": ((3407.9, 7025.5, 3884.9, 784.2), (1890.4, 4153.4, 2501.6, 258.7)),
}
"""DUT -> min, max, median, sstdev in Mbit/s, up (of the sender's intervals) and down (of the receiver's)."""
PINGS = {
    "edgerouter-openwrt": (1.125, 1.586, 0.094),
    "edgerouter-edgeos": (1.186, 1.555, 0.078),
    "gl-ar150": (1.106, 1.653, 0.094),
    "wrt3200acm": (0.948, 1.604, 0.115),
    "raspberry-pi-2-openwrt": (1.482, 2.141, 0.110),
    "raspberry-pi-3-openwrt": (1.419, 2.119, 0.110),
    "raspberry-pi-4-openwrt": (0.798, 1.225, 0.088),
    "virtual-openwrt": (0.677, 1.521, 0.180),
}
"""DUT -> min, max and mdev in ms."""


@dataclass(frozen=True)
class Cell:
    name: str
    document: float
    ours: float
    points: bool = False

    @property
    def near(self) -> bool:
        apart = abs(self.ours - self.document)
        return apart <= (NEAR_POINTS if self.points else NEAR * self.document)

    def __str__(self) -> str:
        beside = f"{self.ours - self.document:+8.1f}" if self.points else f"{self.ours / self.document:8.3f}"
        return f"{self.name:<52} {self.document:10.4g} {self.ours:10.4g} {beside}{'' if self.near else '  *'}"


def test(name: str, plan: TcpPlan, variant: str | None, seed: int) -> TcpResult:
    """A run of ``trexbench tcp --sim``, without its recorder."""
    dut = read_dut(ROOT / "dut_configs" / f"{name}.yaml")
    bench = SimulatedBench(TcpRequest(dut=dut, plan=plan, sim=True, variant=variant, speedup=FAST, seed=seed))
    pings = [bench.ping(plan.legs[0], plan.pings, False, threading.Event())] if plan.pings else []
    idle = [bench.look(moment) for moment in (Moment.BEGIN, Moment.END)]
    runs = [(bench.flow(leg, plan, lambda host, reading: None, read := Counters()), read) for leg in plan.legs]
    legs = [with_counters(*run) for run in runs]
    return TcpResult(
        id="", started="", status=Status.COMPLETE, command={}, plan=plan, setup=TcpEnvironment(dut.speed_bps),
        dut={}, endpoints={}, host={}, legs=tuple(legs), pings=tuple(pings), idle=tuple(idle), simulated=True,
    )  # fmt: skip


def raspberry(seed: int) -> Iterator[Cell]:
    """Document 2015: 900 s in intervals of 30 s, each way twice."""
    for (name, version, variant), cells in RASPBERRY.items():
        legs = tuple(Leg(way, version, again) for way in (F, R) for again in (1, 2))
        flows = test(name, TcpPlan(legs, time_s=900, interval_s=30, pings=0), variant, seed).flows
        for flow, (mbps, cpu) in zip(flows, cells, strict=True):
            where = f"{name} {flow.leg}{' ' + variant if variant else ''}"
            yield Cell(f"{where}, Mbit/s ({flow.verdict.limit.value})", mbps, (flow.flow.received_bps or 0) / 1e6)
            if cpu is not None:
                dut = flow.shares["dut"]
                yield Cell(f"{where}, CPU % of all cores", cpu, 100 * dut.cores_busy / len(dut.cpus), points=True)


def home(seed: int) -> Iterator[Cell]:
    """Document 2022: 60 s in intervals of 1 s, 60 pings."""
    plan = TcpPlan((Leg(R), Leg(F)))
    for name, (down, up, ping, power) in HOME.items():
        result = test(name, plan, None, seed)
        for flow, mbps in zip(result.flows, (down, up), strict=True):
            what = f"{name} {'down' if flow.leg.way is R else 'up'}, Mbit/s ({flow.verdict.limit.value})"
            yield Cell(what, mbps, (flow.flow.received_bps or 0) / 1e6)
        yield Cell(f"{name} ping, ms", ping, 1e3 * (result.ping_results[0].statistics.avg_s or 0))
        if power is not None:
            yield Cell(f"{name} idle, W", power, result.idle_power_w or 0)
    for variant, rates in OFFLOAD.items():
        for flow, mbps in zip(test("edgerouter-openwrt", plan, variant, seed).flows, rates, strict=True):
            what = f"edgerouter {variant} {'down' if flow.leg.way is R else 'up'}, Mbit/s"
            yield Cell(what, mbps, (flow.flow.received_bps or 0) / 1e6)


def details(seed: int) -> Iterator[Cell]:
    """The figures of document 2022 for intervals and pings."""
    for name, ways in INTERVALS.items():
        result = test(name, TcpPlan((Leg(F), Leg(R))), None, seed)
        for flow, cells in zip(result.flows, ways, strict=True):
            found = flow.statistics
            assert found is not None
            ours = [found.min, found.max, found.median, found.sstdev or 0.0]
            for what, document, value in zip(("min", "max", "median", "sstdev"), cells, ours, strict=True):
                yield Cell(f"{name} {flow.leg.way.value} {what}, Mbit/s", document, value / 1e6)
        ping = result.ping_results[0].statistics
        times = (ping.min_s, ping.max_s, ping.mdev_s)
        for what, document, time_s in zip(("min", "max", "mdev"), PINGS[name], times, strict=True):
            yield Cell(f"{name} ping {what}, ms", document, 1e3 * (time_s or 0.0))


def told(title: str, cells: list[Cell]) -> list[Cell]:
    print(f"\n{title:<52} {'document':>10} {'twin':>10} {'ratio':>8}")
    for cell in cells:
        print(cell)
    print(f"{sum(one.near for one in cells)} of {len(cells)} are near")
    return cells


def main() -> int:
    args = options(__doc__, seed=1, details=False)
    tables = told("Raspberry Pi Router Benchmark, 2015", [*raspberry(args.seed)])
    tables += told("Opinionated Router Benchmark, 2022", [*home(args.seed)])
    if args.details:
        told("Below the table of 2022", [*details(args.seed)])
    near = sum(one.near for one in tables)
    note("cells that are near", near / len(tables), noise=0, better="higher")
    rates = [abs(one.ours / one.document - 1) for one in tables if not one.points]
    note("off the documents, mean", sum(rates) / len(rates), noise=SEEDED)
    print(f"\ntables: {near} of {len(tables)} cells are near, {100 * near / len(tables):.0f} %")
    return 0 if near >= AIM * len(tables) else 1


if __name__ == "__main__":
    sys.exit(main())
