"""The report on a year of nights, made fast: its rows are invented, the documents that it reads are real files."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

from copies import copy_run
from nights import changed
from report_cases import make_change
from runs import World, make_plan, make_result

from trexbench.core.history.cell import Cell
from trexbench.core.history.finding import Finding
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.history.rows import RunRow, row_of
from trexbench.core.result import RunResult
from trexbench.report.page.overlay import choose_older
from trexbench.report.page.report import Report
from trexbench.results.store import RunWriter
from trexbench.review.report import load_latest, load_older

MODES = ("var2-1514b", "var2-imix", "var2-64b", "1flow-64b")
COLUMNS = (("pfsense", None), ("linux", None), ("vpp", 1), ("vpp", 2), ("vpp", 3))
SUITE, FIRST = "netgate-6100", date(2025, 11, 21)


def make_cells(count: int) -> list[Cell]:
    every = [Cell(dut, mode, bidir, queues) for dut, queues in COLUMNS for bidir in (False, True) for mode in MODES]
    return [replace(every[i % 40], dut=f"{every[i % 40].dut}{i // 40 or ''}") for i in range(count)]


def make_document(results: Path, cell: Cell, samples: int, night: str, rng: random.Random) -> RunRow:
    """A run of this cell with about so many samples, written as a run writes it."""
    ramp_s = samples - 93.0
    plan = make_plan(
        bidir=cell.bidir,
        frame_bytes=1514 if "1514" in str(cell.mode) else 64,
        ramp_s=ramp_s,
        hold_s=30.0,
        warmup_s=10.0,
        latency_s=10.0,
    )
    share = random.Random(str(cell)).uniform(0.1, 1.1) * rng.gauss(1, 0.01)
    world = World(capacity_pps=plan.offers[0].line_rate_pps * share, noise=0.005, seed=rng.randrange(1 << 30))
    command = {"verb": "ramp", "mode": cell.mode, "rx_queues": cell.rx_queues, "suite": SUITE, "night": night}
    run = make_result(
        plan, world, command=command, started=f"{night}T02:00:00Z", dut={"name": cell.dut}, simulated=False
    )
    writer = RunWriter(results, lambda text: print(text, file=sys.stderr)).begin(run)
    return row_of(run, str(writer.end(run).relative_to(results)))


def make_history(row: RunRow, nights: int, rng: random.Random) -> list[RunRow]:
    """The row's cell on all the nights before it: 1 % of noise, a step of 5 % in a tenth of the cells."""
    last, step = date.fromisoformat(row.night or ""), rng.randrange(nights // 3, nights) if rng.random() < 0.1 else None
    cycles, watts = rng.uniform(300, 4000), rng.uniform(18, 20)
    rows = []
    for back in range(nights - 1, 0, -1):
        level = (1.05 if step is not None and nights - back < step else 1.0) * rng.gauss(1, 0.01)
        night = str(last - timedelta(days=back))
        rows.append(
            changed(
                row,
                path=f"{night}/{row.cell}.json",
                id=night,
                started=f"{night}T02:00:00Z",
                night=night,
                total_pps=(row.get("total_pps") or 0.0) * level,
                line_share=row.line_share * level,
                cycles_per_packet=cycles / level,
                latency_s=None if (latency_s := row.get("latency_s")) is None else latency_s * rng.gauss(1, 0.02),
                power_w=watts * rng.gauss(1, 0.003),
            )
        )
    return [*rows, changed(row, cycles_per_packet=cycles, power_w=watts)]


def make_nights(rows: list[RunRow], rng: random.Random) -> list[Night]:
    """Their nights; one in forty could not run, and of the others now and then a cell failed."""
    by_night: dict[str, list[RunRow]] = {}
    for row in rows:
        by_night.setdefault(row.night or "", []).append(row)
    nights = []
    for night, chosen in sorted(by_night.items()):
        down = night != max(by_night) and rng.random() < 1 / 40
        cells = []
        for row in chosen:
            failed = down or rng.random() < 0.003
            attempt = Attempt(row.started, None if failed else row.path, "the DUT did not answer" if failed else None)
            state = CellState.FAILED if failed else CellState.DONE
            cells.append(CellRecord(row.cell, state, (attempt,)))
        nights.append(Night(SUITE, night, f"{night}T02:00:00Z", False, tuple(cells)))
    return nights


def find_steps(rows: list[RunRow]) -> list[Finding]:
    """Stands for the search for changes: one for the first cell."""
    cell = rows[0].cell
    runs = [row for row in rows if row.cell == cell]
    at = runs[2 * len(runs) // 3]
    before, after = (one.get("total_pps") or 0.0 for one in (runs[0], at))
    return [make_change(cell, at.started, before, after)]


def write_older(results: Path, rows: list[RunRow], latest: list[RunRow], changes: list[Finding]) -> list[RunRow]:
    """Give older nights that the report will ask for documents, copies of their cell's latest; return all rows."""
    written = {}
    for row in latest:
        history = [one for one in rows if one.cell == row.cell]
        for one in choose_older(row, history, [change for change in changes if change.cell == row.cell]):
            written[one.row.path] = copy_run(results, row, one.night).path
    return [replace(row, path=written.get(row.path, row.path)) for row in rows]


def make_report(results: Path, cells: int, nights: int, samples: int) -> tuple[Report, float, float, float]:
    """The report, the seconds that reading the latest documents and the older ones took, and of CPU that both did."""
    rng = random.Random(1)
    night = str(FIRST + timedelta(days=nights - 1))
    latest = [make_document(results, cell, samples, night, rng) for cell in make_cells(cells)]
    rows = sorted((one for row in latest for one in make_history(row, nights, rng)), key=lambda row: row.started)
    made = make_nights(rows, rng)
    missing = {
        (one.night, record.cell.dut, record.cell.mode, record.cell.bidir, record.cell.rx_queues)
        for one in made
        for record in one.cells
        if not record.path
    }
    rows = [r for r in rows if (r.night, r.cell.dut, r.cell.mode, r.cell.bidir, r.cell.rx_queues) not in missing]
    changes = find_steps(rows)
    rows = write_older(results, rows, latest, changes)
    begun, cpu = time.monotonic(), time.process_time()
    latest_runs = load_latest(results, rows, made[-1], [])
    runs = {cell: run for cell, run in latest_runs.items() if isinstance(run, RunResult)}
    read = time.monotonic()
    older = load_older(results, rows, runs, changes, [], print)
    report = Report(rows, made, made[-1], runs, older, changes, title=f"trexbench: {SUITE}", made="a benchmark")
    return report, read - begun, time.monotonic() - read, time.process_time() - cpu
