"""Loads on the command line: how a run of each is printed and drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..core import result as packets
from ..core.tcp import result as tcp


@dataclass(frozen=True)
class LoadOutput:
    """Appearance of a load's runs. The functions get runs of this load only."""

    write: Callable[[Any, Path | None], None]
    """Write the run in words to standard output; with the path of its document: in short."""
    draw: Callable[[Any, Path], Path]
    """Draw the run's picture to this path, and return it."""


def _write_packets(run: packets.RunResult, brief_of: Path | None) -> None:
    from ..report.run.brief import format_brief
    from ..report.run.curve import draw_curve
    from ..report.run.text import print_summary, width_of

    width = width_of(sys.stdout)
    if brief_of is not None:
        click.echo(format_brief(run, str(brief_of), width), nl=False)
        return
    print_summary(run, sys.stdout)
    click.echo(f"\n{draw_curve(run, width)}", nl=False)


def _draw_packets(run: packets.RunResult, path: Path) -> Path:
    from ..session.keep import draw_run

    return draw_run(run, path)


def _write_tcp(run: tcp.TcpResult, brief_of: Path | None) -> None:
    from ..report.tcp.text import format_brief_tcp, format_tcp

    click.echo(format_tcp(run) if brief_of is None else format_brief_tcp(run))


def _draw_tcp(run: tcp.TcpResult, path: Path) -> Path:
    from ..session.tcp.keep import draw_tcp_run

    return draw_tcp_run(run, path)


OUTPUTS: dict[str, LoadOutput] = {
    packets.SCHEMA: LoadOutput(_write_packets, _draw_packets),
    tcp.SCHEMA: LoadOutput(_write_tcp, _draw_tcp),
}
"""Every load by the schema of its documents, as in results.loads."""
