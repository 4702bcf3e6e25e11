"""Loads on the command line: showing, printing and drawing of their runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..core import result as packets
from ..core.errors import ConfigError, StoreError
from ..core.run import Run
from ..core.tcp import result as tcp
from ..report.clean import clean
from ..report.room import room_of
from ..report.run.curve import draw_curve
from ..report.run.summary import summarise
from ..report.run.text import format_brief, open_live, print_summary, sheets_of_packets, width_of
from ..report.sheet import Sheet, with_columns
from ..report.tcp.live import TcpLive
from ..report.tcp.text import format_brief_tcp, format_tcp, headline, sheets_of_run
from ..report.words import banners_of, state_words, text_of
from ..results.loads import figures_of
from .output import exit_code, note, save_picture, say_unless, warn, write

if TYPE_CHECKING:
    from ..session.keep import Measured, Output
    from .options import Shown
    from .output import OutputForm

PICTURES = ("png", "svg", "pdf")
"""Formats of a run's picture, which are the endings of its file."""


@dataclass(frozen=True)
class LoadOutput:
    """Functions that present a load's runs; each gets runs of this load only."""

    text: Callable[[Any, TextIO], str | None]
    """Make the run's text, as output.Words."""
    brief: Callable[[Any, Path | None, TextIO], str]
    """Make the run's text of at most ten lines, with the path of its document."""
    draw: Callable[[Any, str], bytes]
    """Draw the run's picture in this format: png, svg or pdf."""
    sheets: Callable[[Any], Iterable[Sheet]] = lambda run: ()
    """Make the run's tables; the first is that of CSV."""
    show: Callable[[Any, TextIO, float], AbstractContextManager[Any]] = lambda run, stream, pace: nullcontext()
    """Open the display of a run under way, at this pace in simulated seconds per real one: see session.keep.Show."""
    is_drawn: Callable[[Any], bool] = lambda run: True
    """Test if there is anything to draw."""
    headline: Callable[[Any], str] = lambda run: text_of(run.dut, "name", "?")
    """Make the headline above the tables."""


def _packet_text(run: packets.RunResult, out: TextIO) -> str:
    print_summary(run, out)
    return f"\n{draw_curve(run, width_of(out))}"


def _draw_packets(run: packets.RunResult, form: str) -> bytes:
    from ..report.run.picture import draw  # matplotlib is slow to load, and not needed before the run is over

    return draw(run, form)


def _draw_tcp(run: tcp.TcpResult, form: str) -> bytes:
    from ..report.tcp.picture import draw_tcp

    return draw_tcp(run, form)


OUTPUTS: dict[str, LoadOutput] = {
    packets.SCHEMA: LoadOutput(
        text=_packet_text,
        brief=lambda run, document, out: format_brief(run, str(document) if document else None, width_of(out)),
        draw=_draw_packets,
        sheets=sheets_of_packets,
        show=open_live,
        is_drawn=lambda run: bool(run.samples),
        headline=lambda run: summarise(run).headline,
    ),
    tcp.SCHEMA: LoadOutput(
        text=lambda run, out: format_tcp(run, room_of(out)),
        brief=lambda run, document, out: format_brief_tcp(run) + (f"\nresult   {clean(document)}" if document else ""),
        draw=_draw_tcp,
        sheets=sheets_of_run,
        show=lambda run, stream, pace: closing(TcpLive(run, stream, pace)),
        is_drawn=lambda run: bool(run.legs),
        headline=headline,
    ),
}
"""Loads by the schema of their documents, as in results.loads."""


def output_of(results: Path | None, quiet: bool, pace: float) -> Output:
    """Return the output of runs: steps and progress on standard error, unless quiet."""
    from ..session.keep import Output  # slow to load, and stored runs are shown without

    show = None if quiet else lambda run: OUTPUTS[run.schema].show(run, sys.stderr, pace)
    return Output(results, say_unless(quiet), note, show)


def head_of(run: Run) -> list[str]:
    """Return the run's headline, its banners and its warnings."""
    warnings = [*run.warnings, *(warning for _, warning in run.derived_warnings())]
    texts = dict.fromkeys(f"warning: {clean(warning.text)}" for warning in warnings)
    return [clean(OUTPUTS[run.schema].headline(run)), *banners_of(run), *texts]


def table_of(sheet: Sheet, runs: Iterable[Run]) -> Sheet:
    """Return the table for CSV, with the run of each row in its columns."""
    whose = ((text_of(run.dut, "name", "?"), text_of(run.command, "mode", "TCP"), state_words(run)) for run in runs)
    return with_columns(sheet, ":DUT; :mode; :status", whose)


def print_run(run: Run, form: OutputForm, document: Path | None) -> None:
    """Write a run of any load in the chosen form. document: the run's file."""
    load = OUTPUTS[run.schema]
    form.write(
        lambda out: load.text(run, out),
        lambda: figures_of(run),
        lambda: load.sheets(run),
        lambda out: load.brief(run, document, out),
        head=lambda: head_of(run),
        table=lambda: table_of(next(iter(load.sheets(run)), Sheet("", "", (), ())), repeat(run)),
    )


def draw_run(run: Run, path: Path) -> Path:
    """Draw the run to a file, in the format of its ending; StoreError where it cannot be written."""
    form = path.suffix[1:].lower() or "png"
    if form not in PICTURES:
        raise ConfigError(f"{path}: pictures cannot be .{form}", f"let its name end in .{', .'.join(PICTURES)}")
    return write_picture(path, OUTPUTS[run.schema].draw(run, form))


def write_picture(path: Path, data: bytes) -> Path:
    """Write a picture and return its path; StoreError where it cannot be written."""
    write(str(path), data, aside=True)
    return path


def present(done: Measured[Any], shown: Shown) -> int:
    """Print and draw a run that has ended; return the exit code."""
    run, path = done.result, done.path
    with shown.form.around(lambda: print_run(run, shown.form, path)):
        if shown.form.name != "brief":
            note(f"result   {path}")
        if shown.picture and path is not None and OUTPUTS[run.schema].is_drawn(run):
            save_picture(lambda: draw_run(run, path.with_suffix(".png")))
    return code_of(done) or place_code(done, shown.results)


def code_of(done: Measured[Any]) -> int:
    """Report why a run ended early or gives no answer, and return that exit code; 0 otherwise."""
    if done.error is None and (error := done.result.no_answer) is not None:
        warn(f"no answer: {error}")
        return int(error.exit_code)
    return exit_code(done.error)


def place_code(done: Measured[Any], results: Path) -> int:
    """Return the exit code of a document saved elsewhere since the results could not take it; else 0."""
    return StoreError.exit_code if done.path is not None and not done.path.is_relative_to(results) else 0
