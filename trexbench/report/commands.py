"""Commands that somebody may type next: show a run, compare two, measure a cell again, acknowledge a change."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from glob import escape

from ..core.errors import ConfigError
from ..core.history.causes import FindingGroup
from ..core.history.cell import EFFICIENCY, Cell
from ..core.history.rows import RunRow
from ..core.load.modes import is_mode
from ..core.strategy.mlrsearch import MlrSearch
from ..core.strategy.search import Search
from ..core.tcp.model import TcpMode
from ..core.tcp.path import TrafficPath
from ..core.tcp.tunnel import KINDS, NOT_READ, Tunnel, parse_tunnel
from ..core.tcp.wan import parse_wan
from ..core.units import Rate, format_pps, nominal, parse_rate

REASON = "WHY"
"""The place of the reason that only whoever acknowledges a change knows."""


def show(row: RunRow, results: str) -> str:
    """results: the directory of the results, as it was typed; so everywhere."""
    return _line("results", "show", f"{results}/{row.path}")


def compare(before: RunRow, after: RunRow, results: str) -> str:
    return _line("results", "compare", f"{results}/{before.path}", f"{results}/{after.path}")


def acknowledge(group: FindingGroup, results: str) -> Iterator[str]:
    """Yield what notes the group's changes, and no other ones, as known; the reason is left to whoever types it."""
    metrics: dict[tuple[Cell, ...], list[str]] = {}
    for metric, findings in group.by_metric().items():
        metrics.setdefault(tuple(dict.fromkeys(one.cell for one in findings)), []).append(metric)
    for cells, names in metrics.items():
        which = [word for cell in cells for word in ("--acknowledge", escape(str(cell)))]
        which += [word for name in names for word in ("--metric", name)]
        yield _line("regress", *_results(results), *which, "--note", REASON)


def doctor(cell: Cell) -> str:
    return _line("doctor", "--dut", cell.dut)


def run_again(suite: str, results: str) -> str:
    return _line("suite", "run", suite, *_results(results))


def measure(cell: Cell, suite: str | None, results: str) -> str | None:
    """Measure the cell again, as its suite does it, or by hand; None where no command says all that it was."""
    sim = ("--sim",) if cell.simulated else ()
    if suite:
        only = escape(str(cell.unmarked))
        return _line("suite", "run", suite, "--only", only, *sim, *_results(results))
    load = ("tcp", *_tcp(cell.tcp)) if cell.tcp else _packets(cell)
    through = _through(cell.over or TrafficPath(), cell.simulated)
    if load is None or through is None:
        return None
    variant = ("--variant", cell.variant) if cell.variant else ()
    verb, *options = load
    return _line(*verb.split(), "--dut", cell.dut, *options, *variant, *through, *sim, *_results(results))


def _through(path: TrafficPath, simulated: bool) -> tuple[str, ...] | None:
    """The options for a line and a tunnel; None for those that no option says exactly.

    A twin has the tunnel that it describes, unless that is one of the DUT's own configuration.
    """
    if path.wan is not None and not _is_said(parse_wan, path.wan.asked, path.wan):
        return None
    line = ("--wan", path.wan.asked) if path.wan is not None else ()
    if not path.tunnel or (simulated and path.tunnel_between):
        return line
    if (kind := KINDS.get(path.tunnel)) is None:
        return None
    ciphers = [one for one in kind.ciphers or ("",) if not one or path.tunnel_by.endswith(f", {one}")]
    if not ciphers:
        return None
    tunnel = Tunnel(path.tunnel, path.tunnel_between or kind.betweens[0], path.tunnel_mtu, ciphers[0])
    if not _is_said(parse_tunnel, str(tunnel), tunnel):
        return None
    return *line, "--tunnel", str(tunnel), *(("--no-apply",) if path.tunnel_by == NOT_READ else ())


def _is_said(parse: Callable[[str], object], text: str, value: object) -> bool:
    with suppress(ConfigError):
        return parse(text) == value
    return False


def _packets(cell: Cell) -> tuple[str, ...] | None:
    """The verb and the options that send these packets; None for a rate that no option says exactly, and for packets
    of a profile, whose file is not known.
    """
    mode, *tunables = str(cell.mode).split(",")
    if not is_mode(mode) or not all("=" in one for one in tunables):
        return None
    kind = EFFICIENCY if cell.held_pps is not None else cell.kind
    verb = f"{Search.kind} --method {kind}" if kind == MlrSearch.kind else kind
    more = ["-t", ",".join(tunables)] if tunables else []
    if cell.held_pps is not None:
        texts, rate = (nominal(format_pps(cell.held_pps)).replace(" ", ""), f"{cell.held_pps!r}pps"), cell.held_pps
        said = next((text for text in texts if _is_said(parse_rate, text, Rate(rate, "pps"))), None)
        if said is None:
            return None
        more += ["--rates", said]
    more += ["--rx-queues", str(cell.rx_queues)] if cell.rx_queues else []
    return verb, "--mode", mode, *more, *(("--bidir",) if cell.bidir else ())


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
