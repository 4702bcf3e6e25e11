"""``trexbench`` without a command: labs, servers, DUTs, the last run and night, and the next commands."""

from __future__ import annotations

import shlex
import socket
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import click

from ..config.catalogue import DUTS
from ..core.errors import BenchError
from ..core.units import format_bits, format_pps, seconds_of
from ..lock import run_dir
from ..report.clean import clean
from ..report.room import room_of
from ..results.latest import NightGlance, RunGlance, glance_at_night, glance_at_run
from ..suite.underway import is_under_way
from .output import json_text

RESULTS = Path("results")
PORTS = {4501: "RPC", 4500: "events"}
"""Default ports of a TRex server, and their uses."""
_CONNECT_S = 0.2
_NAMES = 4
_NO_BREAK = "\u00a0"
_UNITS = {"total_pps": format_pps, "total_bps": format_bits}
"""Column of a rate -> its format; other columns' names contain their unit."""


def show_here(as_json: bool) -> None:
    """Print an overview in some ten lines, or as JSON."""
    run, night = glance_at_run(RESULTS), glance_at_night(RESULTS)
    under_way = night is not None and night.finished is None and is_under_way(night.suite, RESULTS)
    following = _next(run is not None, night, under_way)
    if as_json:
        values = {"labs": list(_labs()), "servers": answering(), "duts": _duts(), "next": ", ".join(following)}
        shown = None if run is None else {"path": str(run[0]), **(run[1].to_dict() if run[1] is not None else {})}
        last = {"run": shown, "night": None if night is None else {**night.to_dict(), "under_way": under_way}}
        click.echo(json_text({**values, **last}), nl=False)
        return
    for name, text in _lines(run, night, under_way):
        click.echo(_filled(name, clean(text)))
    whole = [command.replace(" ", _NO_BREAK) for command in (*following, "trexbench --help")]
    click.echo(_filled("next", ", ".join(whole), break_long_words=False).replace(_NO_BREAK, " "))


def _filled(name: str, text: str, break_long_words: bool = True) -> str:
    """Wrap the text to at most 80 columns, with the name before its first line."""
    return textwrap.fill(
        text,
        min(80, room_of(sys.stdout) or 80),
        initial_indent=f"{name:<10}",
        subsequent_indent=" " * 10,
        break_long_words=break_long_words,
        break_on_hyphens=False,
    )


def _lines(
    run: tuple[Path, RunGlance | None] | None, night: NightGlance | None, under_way: bool
) -> Iterator[tuple[str, str]]:
    duts = _duts()
    more = f" and {len(duts) - _NAMES} more" if len(duts) > _NAMES else ""
    yield "labs", "; ".join(_labs()) or "none is up"
    yield "servers", ", ".join(answering()) or "no TRex server on this machine's port 4501"
    yield "DUTs", f"{', '.join(duts[:_NAMES])}{more}" if duts else "none is configured"
    yield "last run", f"none in ./{RESULTS}" if run is None else _run_words(*run)
    if night is not None:
        yield "night", _night_words(night, under_way)


def _labs() -> Iterator[str]:
    if any(run_dir().glob("*.lab.json")):
        from ..lab import all_status  # slow to load

        try:
            yield from map(str, all_status())
        except BenchError as error:
            yield str(error)


def answering(ports: Mapping[int, str] = PORTS) -> list[str]:
    """List the ports of this machine on which a server answers."""
    servers = []
    for port, use in ports.items():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), _CONNECT_S):
            servers.append(f"127.0.0.1:{port} ({use})")
    return servers


def _duts() -> list[str]:
    try:
        return sorted(DUTS.files())
    except BenchError:
        return []


def _run_words(path: Path, run: RunGlance | None) -> str:
    """Describe the run: its DUT and mode, its figures, and its age."""
    what = (run.what if run is not None else "") or f"{path.parent.name} {path.stem.partition('-')[2]}"
    if run is None:
        return f"{what}: {path} cannot be read"
    good = [(column, figure) for column, figure in run.figures if figure.value]
    rates = [f"{'>= ' * figure.at_least}{_figure_words(column, figure.value)}" for column, figure in good]
    status = "not finished" if run.status == "running" else run.status  # its writer may have been killed
    none = "no good rate" if run.figures and run.status == "complete" else status
    words = [", ".join(rates) or none, run.mark, _ago(run.started)]
    if rates and run.status != "complete":
        words.insert(1, status)
    return f"{what}: {', '.join(filter(None, words))}"


def _figure_words(column: str, value: float) -> str:
    """Format a figure as ``3.268 Mpps`` or ``1081 cycles/packet``, by its column: loading the metrics would be slow."""
    if column in _UNITS:
        return _UNITS[column](value)
    return f"{value:.{0 if value >= 100 else 1}f} {column.replace('_per_', '/').replace('_', ' ')}"


def _night_words(night: NightGlance, under_way: bool) -> str:
    states, every = night.states, len(night.cells)
    ended = [f"{states['done']} of {every} cells measured" if every else "not run"]
    ended += [f"{states['failed']} failed"] if states["failed"] else []
    ended += ["simulated"] if night.simulated else []
    ended += [] if night.finished is not None else ["under way" if under_way else "not finished"]
    ended += [night.error] if night.error else []
    return f"{night.night} {night.suite}: {'; '.join(filter(None, [', '.join(ended), night.judged]))}"


def _ago(started: str) -> str:
    begun_s = seconds_of(started)
    if begun_s is None:
        return ""
    minutes = int(time.time() - begun_s) // 60
    if minutes < 0:
        return "begun in the future: check the clock"
    if minutes < 60:
        return f"{minutes} min ago"
    return f"{minutes // 1440} days ago" if minutes >= 2880 else f"{minutes // 60}:{minutes % 60:02} h ago"


def _next(has_run: bool, night: NightGlance | None, under_way: bool) -> list[str]:
    """List commands that can be typed as they are."""
    if under_way:
        return ["trexbench report --watch"]
    if night is not None and night.finished is None:
        sim = ["--sim"] if night.simulated else []
        end = ["--"] if night.suite.startswith("-") else []  # of the options
        return [shlex.join(["trexbench", "suite", "run", "--resume", *sim, *end, night.suite])]
    if night is not None:
        return ["trexbench report", "trexbench regress"]
    if has_run:
        return ["trexbench results show", "trexbench report"]
    return ["trexbench doctor", "trexbench ramp --dut netgate-vpp --mode imix --sim"]
