"""Commands that somebody may type next: show a run, compare two, measure a cell again, acknowledge a change."""

from __future__ import annotations

import shlex
from dataclasses import replace

from ..core.history.causes import FindingGroup
from ..core.history.cell import EFFICIENCY, Cell
from ..core.history.rows import RunRow
from ..core.strategy.mlrsearch import MlrSearch
from ..core.strategy.search import Search
from ..core.tcp.model import TcpMode, Way
from ..core.units import format_pps, nominal


def show(row: RunRow, results: str) -> str:
    """The run as text. results: the directory of the results, as it was typed."""
    return _line("show", f"{results}/{row.path}")


def compare(before: RunRow, after: RunRow, results: str) -> str:
    return _line("results", "compare", f"{results}/{before.path}", f"{results}/{after.path}")


def acknowledge(group: FindingGroup) -> str:
    """Note the group's changes as known; the reason is left to whoever types it."""
    cells = group.cells
    pattern = str(cells[0]) if len(cells) == 1 else f"{cells[0].dut_words} *"
    metrics = [*group.by_metric()]
    of = ("--metric", metrics[0]) if len(metrics) == 1 else ()
    return _line("regress", "--acknowledge", pattern, *of, "--note", "WHY")


def doctor(cell: Cell) -> str:
    return _line("doctor", "--dut", cell.dut)


def measure(cell: Cell, suite: str | None) -> str:
    """Measure the cell again, as its suite does it, or by hand."""
    sim = ("--sim",) if cell.simulated else ()
    if suite:
        return _line("suite", "run", suite, "--only", str(replace(cell, simulated=False)), *sim)
    variant = ("--variant", cell.variant) if cell.variant else ()
    if cell.tcp:
        return _line("tcp", "--dut", cell.dut, *_tcp(cell.tcp), *variant, *sim)
    rate = ("--rates", nominal(format_pps(cell.held_pps)).replace(" ", "")) if cell.held_pps is not None else ()
    kind = EFFICIENCY if cell.held_pps is not None else cell.kind
    verb = (Search.kind, "--method", kind) if kind == MlrSearch.kind else (kind,)
    queues = ("--rx-queues", str(cell.rx_queues)) if cell.rx_queues else ()
    way = ("--bidir",) if cell.bidir else ()
    return _line(*verb, "--dut", cell.dut, "--mode", str(cell.mode), *rate, *queues, *way, *variant, *sim)


def _tcp(mode: TcpMode) -> tuple[str, ...]:
    way = () if mode.way is Way.FORWARD else (f"--{mode.way.value}",)
    return (*way, "--ip", str(mode.version), *(("--streams", str(mode.streams)) if mode.streams > 1 else ()))


def _line(*words: str) -> str:
    return shlex.join(("trexbench", *words))
