"""``trexbench`` without a command: labs, servers, DUTs, the last run and night, and the next commands."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import click

from ..config.catalogue import DUTS
from ..core.errors import BenchError
from ..core.history.night import Night
from ..core.history.rows import RunRow
from ..lab import all_status
from ..report.clean import clean
from ..report.room import room_of, wrapped
from ..report.words import format_whole, status_words
from ..results.nights import find_nights
from ..review.find import all_rows
from ..suite.underway import is_under_way

RESULTS = Path("results")
PORTS = {4501: "RPC", 4500: "events"}
"""Default ports of a TRex server, and their uses."""
_CONNECT_S = 0.2
_NAMES = 4


def show_here() -> None:
    """Print an overview in some ten lines."""
    rows = all_rows(RESULTS, _say_nothing) if RESULTS.is_dir() else []
    nights = find_nights(RESULTS, _say_nothing, newest=1)
    night = nights[0][1] if nights else None
    under_way = night is not None and night.finished is None and is_under_way(night.suite, RESULTS)
    commands = [*_next(bool(rows), night, under_way), "trexbench --help"]
    whole = ", ".join(command.replace(" ", "\u00a0") for command in commands)  # each stands on one line
    lines = [*((name, clean(text)) for name, text in _lines(rows, night, under_way)), ("next", whole)]
    room = min(80, room_of(sys.stdout) or 80)
    click.echo("\n".join(wrapped([f"{name:<10}{text}" for name, text in lines], room)))


def _say_nothing(_: str) -> None:
    """Leave damaged files to the verbs that are about them."""


def _lines(rows: list[RunRow], night: Night | None, under_way: bool) -> Iterator[tuple[str, str]]:
    duts = sorted(DUTS.files())
    more = f" and {len(duts) - _NAMES} more" if len(duts) > _NAMES else ""
    try:
        yield "labs", "; ".join(map(str, all_status())) or "none is up"
    except BenchError as error:
        yield "labs", str(error)
    yield "servers", ", ".join(answering()) or "no TRex server on this machine's port 4501"
    yield "DUTs", f"{', '.join(duts[:_NAMES])}{more}" if duts else "none is configured"
    last = [row for row in rows if row.path == rows[-1].path]
    yield "last run", _run_words(last) if last else f"none in ./{RESULTS}"
    if night is not None:
        yield "night", _night_words(night, under_way)


def answering(ports: Mapping[int, str] = PORTS) -> list[str]:
    """List the ports of this machine on which a server answers."""
    servers = []
    for port, use in ports.items():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), _CONNECT_S):
            servers.append(f"127.0.0.1:{port} ({use})")
    return servers


def _run_words(rows: list[RunRow]) -> str:
    """Describe a run by its rows: its DUT and mode, its figures, and when it began."""
    row, path = rows[0], Path(rows[0].path)
    good = [(one, value) for one in rows if (value := one.metric.of(one))]
    rates = ", ".join(f"{'>= ' * one.at_least}{format_whole(value, one.metric)}" for one, value in good)
    status = "" if row.complete else status_words(row)
    begun = f"{row.started[:16].replace('T', ' ')} UTC"
    words = (rates or status or "no good rate", rates and status, row.cell.mark, begun)
    return f"{path.parent.name} {path.stem.partition('-')[2]}: {', '.join(filter(None, words))}"


def _night_words(night: Night, under_way: bool) -> str:
    ended = [night.measured if night.cells else "not run"]
    ended += [f"{len(night.failed)} failed"] if night.failed else []
    ended += ["simulated"] if night.simulated else []
    ended += [] if night.finished is not None else ["under way" if under_way else "not finished"]
    ended += [night.error] if night.error else []
    return f"{night.night} {night.suite}: {'; '.join(filter(None, [', '.join(ended), night.judged]))}"


def _next(has_run: bool, night: Night | None, under_way: bool) -> list[str]:
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
