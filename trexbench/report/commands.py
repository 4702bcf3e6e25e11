"""Commands that somebody may type next: show a run, compare two, measure a cell again, acknowledge a change."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from glob import escape

from ..core.history.causes import FindingGroup
from ..core.history.cell import EFFICIENCY, Cell
from ..core.history.rows import RunRow
from ..core.strategy.mlrsearch import MlrSearch
from ..core.strategy.search import Search
from ..core.tcp.model import TcpMode
from ..core.tcp.path import TrafficPath
from ..core.tcp.wan import parse_wan
from ..core.units import format_pps, nominal

REASON = "WHY"
"""The place of the reason that only whoever acknowledges a change knows."""


def show(row: RunRow, results: str) -> str:
    """The run as text. results: the directory of the results, as it was typed."""
    return _line("show", f"{results}/{row.path}")


def compare(before: RunRow, after: RunRow, results: str) -> str:
    return _line("results", "compare", f"{results}/{before.path}", f"{results}/{after.path}")


def acknowledge(group: FindingGroup, results: str) -> str:
    """Note the group's changes as known; the reason is left to whoever types it."""
    cells = (word for cell in group.cells for word in ("--acknowledge", escape(str(cell))))
    metrics = [*group.by_metric()]
    of = ("--metric", metrics[0]) if len(metrics) == 1 else ()
    return _line("regress", *_results(results), *cells, *of, "--note", REASON)


def doctor(cell: Cell) -> str:
    return _line("doctor", "--dut", cell.dut)


def run_again(suite: str, results: str) -> str:
    return _line("suite", "run", suite, *_results(results))


def measure(cell: Cell, suite: str | None, results: str) -> str | None:
    """Measure the cell again, as its suite does it, or by hand; None where no command says all that it was."""
    sim = ("--sim",) if cell.simulated else ()
    if suite:
        only = escape(str(replace(cell, simulated=False)))
        return _line("suite", "run", suite, "--only", only, *sim, *_results(results))
    path = cell.over or TrafficPath()
    if path.tunnel or path.tunnel_mtu is not None or (path.wan is not None and parse_wan(path.wan.asked) != path.wan):
        return None  # a tunnel's cipher is not known, and a line's figures may be longer than are said
    variant = ("--variant", cell.variant) if cell.variant else ()
    more = *variant, *(("--wan", path.wan.asked) if path.wan is not None else ()), *sim, *_results(results)
    if cell.tcp:
        return _line("tcp", "--dut", cell.dut, *_tcp(cell.tcp), *more)
    rate = ("--rates", nominal(format_pps(cell.held_pps)).replace(" ", "")) if cell.held_pps is not None else ()
    kind = EFFICIENCY if cell.held_pps is not None else cell.kind
    verb = (Search.kind, "--method", kind) if kind == MlrSearch.kind else (kind,)
    queues = ("--rx-queues", str(cell.rx_queues)) if cell.rx_queues else ()
    way = ("--bidir",) if cell.bidir else ()
    return _line(*verb, "--dut", cell.dut, "--mode", str(cell.mode), *rate, *queues, *way, *more)


def _tcp(mode: TcpMode) -> Iterator[str]:
    """The options that make a run of this mode alone."""
    yield from (f"--{mode.way.value}", "--ip", str(mode.version))
    yield from ("--streams", str(mode.streams)) if mode.streams > 1 else ()
    yield from ("--buffers", str(mode.buffer_bytes)) if mode.buffer_bytes is not None else ()
    yield from ("--cc", mode.congestion) if mode.congestion else ()
    yield from ("--pin",) if mode.pinned else ()
    yield from () if mode.monitored else ("--no-telemetry",)


def _results(results: str) -> tuple[str, ...]:
    """The option for the directory of the results, where that is another than the default."""
    return () if results == "results" else ("--results", results)


def _line(*words: str) -> str:
    return shlex.join(("trexbench", *words))
