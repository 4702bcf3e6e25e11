"""Loads on the command line: how a run of each is shown, printed and drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..core import result as packets
from ..core.run import Run
from ..core.tcp import result as tcp
from ..report.clean import clean
from .output import exit_code, note, print_json, save_picture, say_unless, warn

if TYPE_CHECKING:
    from ..session.keep import Measured, Output
    from .options import Shown


@dataclass(frozen=True)
class LoadOutput:
    """Appearance of a load's runs. The functions get runs of this load only."""

    write: Callable[[Any, Path | None], None]
    """Write the run in words to standard output; with the path of its document: in short."""
    draw: Callable[[Any, str], bytes]
    """Draw the run's picture in this format: png, svg or pdf."""
    show: Callable[[Any, TextIO, float], AbstractContextManager[Any]] = lambda run, stream, pace: nullcontext()
    """Open what shows the run while it goes on, at so many simulated seconds per real one: see session.keep.Show."""
    is_drawn: Callable[[Any], bool] = lambda run: True
    """Test whether there is anything to draw."""


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


def _draw_packets(run: packets.RunResult, form: str) -> bytes:
    from ..report.run.picture import draw  # matplotlib is slow to load, and not needed before the run is over

    return draw(run, form)


def _show_packets(run: packets.RunResult, stream: TextIO, pace: float) -> AbstractContextManager[Any]:
    from ..report.run.text import open_live

    return open_live(run, stream, pace)


def _write_tcp(run: tcp.TcpResult, brief_of: Path | None) -> None:
    from ..report.tcp.text import format_brief_tcp, format_tcp

    click.echo(format_tcp(run) if brief_of is None else f"{format_brief_tcp(run)}\nresult   {clean(brief_of)}")


def _draw_tcp(run: tcp.TcpResult, form: str) -> bytes:
    from ..report.tcp.picture import draw_tcp

    return draw_tcp(run, form)


def _show_tcp(run: tcp.TcpResult, stream: TextIO, pace: float) -> AbstractContextManager[Any]:
    from ..report.tcp.live import TcpLive

    return closing(TcpLive(run, stream, pace))


OUTPUTS: dict[str, LoadOutput] = {
    packets.SCHEMA: LoadOutput(_write_packets, _draw_packets, _show_packets, lambda run: bool(run.samples)),
    tcp.SCHEMA: LoadOutput(_write_tcp, _draw_tcp, _show_tcp, lambda run: bool(run.legs)),
}
"""Every load by the schema of its documents, as in results.loads."""


def output_of(results: Path | None, quiet: bool, pace: float) -> Output:
    """The output of runs: steps and progress on standard error, unless quiet."""
    from ..session.keep import Output

    show = None if quiet else lambda run: OUTPUTS[run.schema].show(run, sys.stderr, pace)
    return Output(results, say_unless(quiet), note, show)


def print_run(run: Run, as_json: bool, brief_of: Path | None = None) -> None:
    """Print a run of any load. brief_of: its document, for the short form; None asks for the long one."""
    from ..results.loads import figures_of

    if as_json:
        print_json(figures_of(run))
    else:
        OUTPUTS[run.schema].write(run, brief_of)


def draw_run(run: Run, path: Path) -> Path:
    """Draw the run into this file, in the format of its ending; StoreError where it cannot be written."""
    from ..session.keep import picture_form, write_picture

    form = picture_form(path)
    return write_picture(path, OUTPUTS[run.schema].draw(run, form))


def present(done: Measured[Any], shown: Shown) -> int:
    """Print and draw a run that has ended; the exit code."""
    run, path = done.result, done.path
    print_run(run, shown.as_json, path if shown.brief else None)
    if not shown.brief:
        note(f"result   {path}")
    if shown.picture and path is not None and OUTPUTS[run.schema].is_drawn(run):
        save_picture(lambda: draw_run(run, path.with_suffix(".png")))
    return code_of(done)


def code_of(done: Measured[Any]) -> int:
    """That of what ended the run early, or of a run that is no answer, which is reported here."""
    if done.error is None and (error := done.result.no_answer) is not None:
        warn(f"no answer: {error}")
        return int(error.exit_code)
    return exit_code(done.error)
