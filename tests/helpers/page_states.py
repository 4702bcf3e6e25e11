"""The states a report's page can be in, each made in a directory of its own by the verbs that make it at a user's.

``make_state(name, place)`` is the page's path. What is not ``simulated`` is built from documents that say so little of
themselves, of a few seconds each: what is looked at is the page, not the figures.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bdp_runs import BEHIND, FOUND, FULL, MB, SET, SLOW, leg_of, told
from bdp_runs import run as bdp_run
from copies import copy_run
from report_cases import HOSTILE, ODD, make_night, make_record, make_run
from runs import World, make_plan, make_result
from seen import kernel, vpp
from tcp_runs import Path as TcpPath
from tcp_runs import make_tcp_result, through_a_tunnel
from verbs import run_in
from year import make_report

from trexbench.core.dut.telemetry import DutReading, Moment, Observation
from trexbench.core.history.cell import Cell
from trexbench.core.history.rows import RunRow, row_of
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult
from trexbench.core.tcp.plan import Leg, TcpEnvironment, Way
from trexbench.report.page.html import render
from trexbench.report.page.templates import LIBRARY, read_static
from trexbench.results.nights import NightWriter
from trexbench.results.store import RunWriter
from trexbench.review.find import read_index

LATEST = "2026-11-20"
SLOWER = 0.88
"""Share of VPP's rate that is left from the eleventh of fourteen nights on."""
VPP = [
    Cell("netgate-vpp", mode, bidir, n) for n in (1, 3) for mode in ("var2-64b", "var2-imix") for bidir in (False, True)
]
LINUX = [Cell("netgate-linux", mode, bidir, None) for mode in ("var2-64b", "var2-imix") for bidir in (False, True)]
CAPACITY_PPS = {"netgate-vpp": 900e3, "netgate-linux": 500e3, "vpp-of-10g": 3e6}
DESCRIPTION = "a box of four cores at 2.2 GHz, four ports of 10 Gbit/s"


def told_of(cell: Cell) -> dict[str, Any]:
    """Return what a document says of its cell."""
    dut = {"name": cell.dut, "description": DESCRIPTION, "facts": {"kernel": {"release": "6.18"}}, "facts_sha256": "ab"}
    return {"dut": dut, "command": {"mode": cell.mode, "rx_queues": cell.rx_queues}, "simulated": False}


def page_of(results: Path, *arguments: str) -> Path:
    """Run ``trexbench report`` on these results; return the path of the page."""
    path = results.parent / "report.html"
    run_in(results.parent, "report", "--results", results, "-o", path, *arguments)
    return path


def looked_at(run: RunResult, pps: float, clocks: float, number: int) -> RunResult:
    """The run with what its DUT told of the hold: VPP its nodes, a kernel its busy time."""
    held = [one.t_s for one in run.samples if one.phase is Phase.HOLD]
    begin, end = held[0], held[-1]

    def look(t_s: float) -> Observation:
        if "vpp" not in run.dut["name"]:
            return kernel(t_s, pps=pps, power_w=19.0 + 0.01 * number)
        return replace(vpp(int(pps * (t_s - begin)), clocks + number) if t_s > begin else vpp(0, clocks), power_w=21.0)

    times = ((Moment.START, 0.0, None), (Moment.BEGIN, begin, Phase.HOLD), (Moment.END, end, Phase.HOLD))
    readings = [DutReading(moment, t_s, 0.01, look(t_s), *([phase] if phase else [])) for moment, t_s, phase in times]
    return replace(run, dut_readings=tuple(readings), telemetry="hold")


def store_night(
    results: Path,
    at: str,
    cells: Sequence[Cell],
    slower: Mapping[str, float] = {},
    failed: Mapping[Cell, str] = {},
    facts: Mapping[str, Any] = {},
) -> None:
    """One night of these cells, 0.3 % of noise by the date. slower: by DUT, what is left of its rate."""
    day, records = int(at[-2:]), []
    for number, cell in enumerate(cells):
        left = slower.get(cell.dut, 1.0)
        noise = 1 + 0.003 * ((day * 7 + number * 3) % 5 - 2) / 2
        pps = CAPACITY_PPS.get(cell.dut, 660e3) * left * noise * (0.8 if "imix" in cell.mode else 1.0)
        run = make_run(
            cell,
            capacity_pps=pps * (0.6 if cell.bidir else 1),
            command={"mode": cell.mode, "rx_queues": cell.rx_queues, "suite": "nightly", "night": at},
            started=f"{at}T02:{number:02}:00Z",
            ramp_s=12.0,
            latency_s=2.0,
        )
        run = looked_at(run, pps, 358.25 / left, number)
        run = replace(run, dut={**run.dut, "description": DESCRIPTION, "facts": {**run.dut["facts"], **facts}})
        row = row_of(run, str(RunWriter(results, print).end(run).relative_to(results)))
        records.append(make_record(row, failed.get(cell)))
    NightWriter.begin(results, make_night(*records, at=at, finished=f"{at}T03:00:00Z"))


def one_run(place: Path) -> Path:
    run = make_run(VPP[0], started=f"{LATEST}T02:00:00Z", ramp_s=12.0, latency_s=2.0, capacity_pps=900e3)
    RunWriter(place / "results", print).end(looked_at(run, 9e5, 358.25, 0))
    return page_of(place / "results")


def one_night(place: Path) -> Path:
    store_night(place / "results", LATEST, [*VPP, *LINUX], failed={LINUX[1]: "the DUT did not answer within 60 s"})
    return page_of(place / "results")


def history(place: Path, *levels: float, failed: Sequence[int] = ()) -> Path:
    """A night for each of these levels of VPP, up to the latest, with another version of it at each level.

    The first night of a level is measured, the others are copies of it. failed: days on which one cell fails.
    """
    results, cells, first = place / "results", [*VPP, *LINUX], 21 - len(levels)
    stored: dict[float, list[RunRow]] = {}
    for day, level in enumerate(levels, first):
        night, rng, records = f"2026-11-{day:02}", random.Random(day), []
        if level not in stored:
            version = ("26.06", "26.10")[len(stored)]
            store_night(results, night, cells, {"netgate-vpp": level}, facts={"vpp": {"version": version}})
            stored[level] = [row for row in read_index(results, print)[0] if row.night == night]
            continue
        for row in stored[level]:
            told = "VPP did not answer: connection refused" if row.cell == VPP[5] and day in failed else None
            records.append(make_record(copy_run(results, row, night, rng.gauss(1, 0.004)), told))
        NightWriter.begin(results, make_night(*records, at=night, finished=f"{night}T03:00:00Z"))
    return page_of(results)


def change(place: Path) -> Path:
    """Fourteen nights; from the eleventh on VPP is 12 % slower, and of another version."""
    return history(place, *[1.0] * 10, *[SLOWER] * 4, failed=(12, 20))


def recovered(place: Path) -> Path:
    return history(place, *[1.0] * 5, *[SLOWER] * 5, *[1.0] * 4)


def relapse(place: Path) -> Path:
    return history(place, *[1.0] * 5, *[SLOWER] * 5, *[1.0] * 3, SLOWER)


def bounded(place: Path) -> Path:
    """A DUT that is never the limit, and whose packets cost more from the eleventh of fourteen nights on."""
    for day in range(7, 21):
        left = {"vpp-of-10g": SLOWER if day > 16 else 1.0}
        store_night(place / "results", f"2026-11-{day:02}", [Cell("vpp-of-10g", "var2-64b", False, 1)], left)
    return page_of(place / "results")


def year(place: Path) -> Path:
    """Forty cells and a year of nights, as benchmarks/report.py measures it."""
    path = place / "report.html"
    path.write_text(render(make_report(place / "results", 40, 365, 120)[0], read_static(LIBRARY)), encoding="utf-8")
    return path


def searches(place: Path) -> Path:
    for number, cell in enumerate(replace(one, kind="search") for one in [*VPP[:4], *LINUX[:2]]):
        pps = CAPACITY_PPS[cell.dut] * (0.6 if cell.bidir else 1)
        plan = make_plan(kind="search", bidir=cell.bidir, goals=(0.001, 0.01))
        started = f"{LATEST}T02:{number:02}:00Z"
        run = make_result(plan, World(pps, noise=0.002), **told_of(cell), started=started)
        RunWriter(place / "results", print).end(run)
    return page_of(place / "results")


def efficiency(place: Path) -> Path:
    rates = ("--rates", "1kpps,100kpps,1mpps,10%", "--hold", "4", "--sim", "--speedup", "10000")
    for dut in ("netgate-vpp", "netgate-linux"):
        run_in(place, "efficiency", "--dut", dut, "--mode", "var2-64b", *rates)
    return page_of(place / "results")


TCP_SUITE = """
method: tcp
tcp: {time: 10s, ping: 2}
duts: [raspberry-pi, raspberry-pi-2]
modes: [forward-ipv4, reverse-ipv4, bidir-ipv6]
"""
TUNNELS = """
method: tcp
tcp: {time: 6s, ping: 2}
duts: [{name: vpn-i5-2400, variants: [1gbit, 1gbit-relay]}]
modes: [forward-ipv4, reverse-ipv4]
"""


def tcp(place: Path) -> Path:
    """Two nights, so that there are trends."""
    suite(place, TCP_SUITE, "--date", "2026-11-19")
    return suite(place, TCP_SUITE)


def suite(place: Path, text: str, *arguments: str) -> Path:
    (place / "mine.yaml").write_text(text)
    run_in(place, "suite", "run", "mine.yaml", "--sim", "-q", *arguments)
    return page_of(place / "results")


def wans(place: Path) -> Path:
    """Behind a WAN, before and after the buffers fit; and a run through a tunnel."""
    command = {"verb": "tcp", "suite": None, "night": None, "label": None}
    runs = [
        bdp_run(leg_of(FOUND, SLOW, told(1_600_000)), leg_of(SET, FULL, told(5 * MB)), setup=BEHIND, command=command),
        make_tcp_result(
            TcpPath(bps=412e6, cores={"dut": (0.99, 0.25)}, retransmits=30, power_w=4.5),
            [Leg(Way.FORWARD), Leg(Way.REVERSE), Leg(Way.BIDIR, 6)],
            setup=TcpEnvironment(1e9, tunnel="6in4", tunnel_by="sit"),
            id="tcp-2",
            started=f"{LATEST}T13:03:01Z",
        ),
    ]
    for run in runs:
        RunWriter(place / "results", print).end(run)
    return page_of(place / "results")


def tunnels(place: Path) -> Path:
    """A simulated night with and without a tunnel, and a run through one whose processes were read."""
    RunWriter(place / "results", print).end(replace(through_a_tunnel(), started=f"{LATEST}T13:01:01Z"))
    return suite(place, TUNNELS)


def hostile(place: Path) -> Path:
    cells = [Cell(ODD, ODD, bidir, None) for bidir in (False, True)]
    store_night(place / "results", LATEST, cells, failed={cells[0]: HOSTILE}, facts={HOSTILE: HOSTILE})
    return page_of(place / "results")


def empty(place: Path) -> Path:
    (place / "results").mkdir()
    return page_of(place / "results")


def failed(place: Path) -> Path:
    """One good night, and one of which nothing came."""
    cells = [*VPP[:4], *LINUX[:2]]
    store_night(place / "results", "2026-11-19", cells)
    records = [make_record(row_of(make_run(cell), "x"), "the tester's port 0 has no link") for cell in cells]
    NightWriter.begin(place / "results", make_night(*records, at=LATEST, finished=f"{LATEST}T03:00:00Z"))
    return page_of(place / "results")


SIMULATED = """
duts: [{name: netgate-vpp, rx_queues: 1}, netgate-linux]
modes: [var2-64b]
directions: [uni, bidir]
plan: {warmup: 10kpps:2s, ramp_duration: 20s, hold: 4s, confirm: 2s, latency: 2s}
"""


def simulated(place: Path) -> Path:
    return suite(place, SIMULATED)


def mixed(place: Path) -> Path:
    """Simulated and real runs on one page."""
    store_night(place / "results", LATEST, [*VPP[:2], *LINUX[:2]])
    return simulated(place)


MAKERS = (
    *(one_run, one_night, change, recovered, relapse, bounded, year, searches, efficiency, tcp, wans, tunnels),
    *(hostile, empty, failed, simulated, mixed),
)
STATES: Mapping[str, Callable[[Path], Path]] = {made.__name__: made for made in MAKERS}
