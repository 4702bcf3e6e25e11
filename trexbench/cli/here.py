"""``trexbench`` alone: labs, servers, DUTs, the last run and night, and what to type next."""

from __future__ import annotations

import calendar
import socket
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import click

from ..config.catalogue import DUTS
from ..core.errors import BenchError
from ..core.units import format_bits, format_pps
from ..lock import run_dir
from ..report.clean import clean
from ..results.latest import NightGlance, RunGlance, glance_at_night, glance_at_run
from .output import json_text

RESULTS = Path("results")
PORTS = {4501: "RPC", 4500: "events"}
"""Ports that a TRex server has unless it is told otherwise."""
_CONNECT_S = 0.2
_NAMES = 4
_UNITS = {"total_pps": format_pps, "total_bps": format_bits}


def show_here(as_json: bool) -> None:
    """Print where the user is, in some ten lines."""
    run, night = glance_at_run(RESULTS), glance_at_night(RESULTS)
    following = _next(run is not None, night)
    if as_json:
        values = {"labs": list(_labs()), "servers": answering(), "duts": _duts(), "next": following}
        seen = None if run is None else {"path": str(run[0]), **(run[1].to_dict() if run[1] is not None else {})}
        last = {"run": seen, "night": None if night is None else night.to_dict()}
        click.echo(json_text({**values, **last}), nl=False)
        return
    for name, text in _lines(run, night, following):
        indent = " " * len(name := f"{name:<10}")
        click.echo(textwrap.fill(clean(text), 80, initial_indent=name, subsequent_indent=indent))


def _lines(
    run: tuple[Path, RunGlance | None] | None, night: NightGlance | None, following: str
) -> Iterator[tuple[str, str]]:
    duts = _duts()
    more = f" and {len(duts) - _NAMES} more" if len(duts) > _NAMES else ""
    yield "labs", "; ".join(_labs()) or "none is up"
    yield "servers", ", ".join(answering()) or "no TRex server on this machine's port 4501"
    yield "DUTs", f"{', '.join(duts[:_NAMES])}{more}" if duts else "none is configured"
    yield "last run", f"none in ./{RESULTS}" if run is None else _run_words(*run)
    if night is not None:
        yield "night", _night_words(night)
    yield "next", f"{following}, trexbench --help"


def _labs() -> Iterator[str]:
    if any(run_dir().glob("*.lab.json")):
        from ..lab import all_status  # slow to load

        try:
            yield from map(str, all_status())
        except BenchError as error:
            yield str(error)


def answering(ports: Mapping[int, str] = PORTS) -> list[str]:
    """List the ports of this machine on which something answers."""
    found = []
    for port, use in ports.items():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), _CONNECT_S):
            found.append(f"127.0.0.1:{port} ({use})")
    return found


def _duts() -> list[str]:
    try:
        return sorted(DUTS.files())
    except BenchError:
        return []


def _run_words(path: Path, run: RunGlance | None) -> str:
    """Where, what, how much and when."""
    what = f"{path.parent.name} {path.stem.partition('-')[2]}"
    if run is None:
        return f"{what}: {path} cannot be read"
    bounds = [(">= " if figure.at_least else "", column, figure.value) for column, figure in run.figures]
    rates = [f"{bound}{_UNITS.get(column, '{:g}'.format)(value)}" for bound, column, value in bounds]
    words = [", ".join(rates) or run.status, *(["simulated"] if run.simulated else []), _ago(run.started)]
    if rates and run.status != "complete":
        words.insert(1, run.status)
    return f"{what}: {', '.join(filter(None, words))}"


def _night_words(night: NightGlance) -> str:
    states, every = night.states, len(night.cells)
    ended = [f"{states['done']} of {every} cells measured"]
    ended += [f"{states['failed']} failed"] if states["failed"] else []
    ended += ["not finished"] if night.finished is None else []
    ended += [night.error] if night.error else []
    return f"{night.night} {night.suite}: {'; '.join(filter(None, [', '.join(ended), night.judged]))}"


def _ago(started: str) -> str:
    with suppress(ValueError):
        minutes = int(time.time() - calendar.timegm(time.strptime(started, "%Y-%m-%dT%H:%M:%SZ"))) // 60
        return f"{minutes // 1440} days ago" if minutes >= 2880 else f"{minutes // 60}:{minutes % 60:02} h ago"
    return ""


def _next(has_run: bool, night: NightGlance | None) -> str:
    if night is not None and night.finished is None:
        return f"trexbench suite run {night.suite} --resume"
    if night is not None:
        return "trexbench report, trexbench regress"
    if has_run:
        return "trexbench show, trexbench report"
    return "trexbench doctor, trexbench ramp --dut netgate-vpp --mode imix --sim"
