"""Where verbs write: lines for people on standard error, results on standard output or into files."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import BenchError
from ..files import replace_file
from ..report.clean import clean
from ..report.room import room_of, wrapped

if TYPE_CHECKING:
    from ..signals import Interrupted


def note(text: str) -> None:
    """A line on standard error, wrapped on a terminal; lost, and nothing else, where that is closed or full."""
    with contextlib.suppress(OSError, ValueError):
        # Whoever reads them from a file or a pipe looks for whole lines, whatever COLUMNS is.
        for line in wrapped([clean(text)], room_of(sys.stderr) if sys.stderr.isatty() else None):
            click.echo(line, err=True)


def warn(text: str) -> None:
    note(f"trexbench: {text}")


class _Notes(logging.Handler):
    """Handler that writes what the program's modules log as lines on standard error."""

    def __init__(self) -> None:
        super().__init__()
        self._begun_s = time.time()

    def emit(self, record: logging.LogRecord) -> None:
        note(f"{record.created - self._begun_s:9.3f} s  {record.getMessage()}")


def tell_more() -> Callable[[], None]:
    """Note every call of a server and every command on a DUT from now on, until what is returned is called."""
    log, notes = logging.getLogger(__package__.partition(".")[0]), _Notes()
    before = log.level, log.propagate
    log.addHandler(notes)
    log.setLevel(logging.DEBUG)
    log.propagate = False

    def end() -> None:
        log.removeHandler(notes)
        log.level, log.propagate = before

    return end


def say_unless(quiet: bool) -> Callable[[str], None]:
    """The function for lines of progress: note, or none if quiet."""
    return (lambda _: None) if quiet else note


def save_picture(save: Callable[[], Path]) -> None:
    """Draw a picture and name its file. A failure is only a note: the run is safe in its document."""
    from ..session.process import interruptible

    try:
        with interruptible():
            note(f"picture  {save()}")
    except Exception as failed:
        note(f"no picture: {' '.join(str(failed).split())}")


def json_text(values: Any) -> str:
    # A damaged document may have 1e999 somewhere: JSON knows no infinity.
    finite = json.loads(json.dumps(values, default=str), parse_constant=lambda _: None)
    return f"{json.dumps(finite, indent=1)}\n"


def exit_code(error: BenchError | Interrupted | None) -> int:
    """Say which error ended a run, and return its exit code; 0 for none."""
    if error is None:
        return 0
    warn(str(error))
    return error.exit_code


def make_directory(path: Path) -> None:
    """Make the directory that an option names for several files, where it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}", "name a directory that can be made") from error


def write(name: str, data: str | bytes, aside: bool = False) -> None:
    """Replace the file as a whole and print its name; ``-`` is standard output.

    aside: the verb prints something else: the file's name is not printed.
    """
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if name == "-":
        click.echo(raw, nl=False)
        return
    path = Path(name)
    try:
        replace_file(path, raw)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}", "name a place that can be written") from error
    if not aside:
        click.echo(path)
