"""Results of some nights for ``trexbench report``, and the verb itself, in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from report_cases import make_night, make_record, make_run

from trexbench.core.history.cell import Cell
from trexbench.core.history.rows import row_of
from trexbench.results.nights import NightWriter
from trexbench.results.store import RunWriter

CELLS = [
    Cell(dut, mode, bidir, None) for dut in ("linux", "vpp") for mode in ("64b", "imix") for bidir in (False, True)
]


def store_night(
    results: Path,
    at: str,
    cells: list[Cell],
    lost: Cell | None = None,
    capacity_pps: float = 660e3,
    suite: str = "nightly",
    **facts: Any,
) -> None:
    records = []
    for cell in cells:
        labels = {"mode": cell.mode, "rx_queues": None, "suite": suite, "night": at}
        timed_s = 3.0 if cell.dut == "vpp" else 0.0
        started = f"{at}T02:00:00Z"
        run = make_run(cell, command=labels, started=started, ramp_s=15.0, capacity_pps=capacity_pps, latency_s=timed_s)
        run = replace(run, dut={**run.dut, **facts})
        row = row_of(run, str(RunWriter(results, print).end(run).relative_to(results)))
        records.append(make_record(row, f"{cell.dut} did not answer" if cell == lost else None))
    night = make_night(*records, at=at, suite=suite)
    NightWriter.begin(results, replace(night, finished=night.started))


def store_three_nights(results: Path) -> Path:
    """Three nights of eight cells; of the last one, one failed; and files that are nothing of the kind."""
    for at in ("2026-11-18", "2026-11-19", "2026-11-20"):
        store_night(results, at, CELLS, lost=CELLS[0] if at == "2026-11-20" else None)
    (results / "2026-11-20" / "vpp" / "999999-x-uni.json").write_text("{")
    return results


def store_slower_nights(results: Path) -> Path:
    """Twelve nights, a third slower on the last three."""
    for day in range(1, 13):
        cell = Cell("vpp", "64b", False, None)
        store_night(results, f"2026-11-{day:02}", [cell], capacity_pps=(660e3 if day < 10 else 440e3) + 500 * (day % 3))
    return results
