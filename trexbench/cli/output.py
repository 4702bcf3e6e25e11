"""Where verbs write, and in which form: lines for people on standard error, results on standard output or into files.

``--format`` and ``-o`` are the same words everywhere.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..core.errors import BenchError, ConfigError
from ..files import replace_file
from ..report.clean import clean, escape_markdown
from ..report.room import room_of, wrapped
from .verbs import Heading, Option

if TYPE_CHECKING:
    from ..report.sheet import Sheet
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


STDOUT = "-"
ENDINGS = {".json": "json", ".csv": "csv", ".md": "md"}
"""Ending of a file -> the form that is written to it where none is named."""
_SHORT = {"json": "As --format json.", "csv": "As --format csv.", "brief": "As --format brief."}
"""Forms with an option of their own, which is hidden."""

Words = Callable[[TextIO], str | None]
"""Makes the text for a stream, in its width where that is a terminal; None: it wrote it by itself, or there is none."""


@dataclass(frozen=True)
class OutputForm:
    """A user's choice."""

    name: str = "text"
    """One of text, brief, json, csv, md."""
    file: str = STDOUT
    """The file to replace; STDOUT: standard output."""
    is_named: bool = False
    """The user named the file."""

    @property
    def is_shown(self) -> bool:
        """True where people read it on standard output."""
        return self.name == "text" and self.file == STDOUT

    @contextlib.contextmanager
    def around(self, write: Callable[[], None]) -> Iterator[None]:
        """Write on standard output before the block, but into a file after it, since that may fail."""
        if self.file == STDOUT:
            write()
        yield
        if self.file != STDOUT:
            write()

    def write(
        self,
        text: Words | None = None,
        values: Callable[[], Any] = dict,
        sheets: Callable[[], Iterable[Sheet]] = tuple,
        brief: Words | None = None,
        markdown: Callable[[], str] | None = None,
        head: Callable[[], Iterable[str]] = tuple,
        table: Callable[[], Sheet] | None = None,
    ) -> None:
        """Write what was chosen; nothing else is made. Of several sheets CSV has the first.

        values: for JSON. markdown: in place of the sheets'. head: a headline, and what must not be overlooked, which
        markdown has above its tables. table: that of CSV, in place of the first sheet, with the same in its columns.
        """
        from ..report.sheet import to_csv, to_markdown  # slow to load, and --help does without

        kept = io.StringIO()
        stream = sys.stdout if self.file == STDOUT else kept
        if self.name in ("text", "brief"):
            words = text if self.name == "text" else brief or text
            made = words(stream) if words is not None else None
        elif self.name == "json":
            made = json_text(values())
        elif self.name == "csv":
            tables = [*sheets()]
            made = to_csv(table()) if table is not None else next(map(to_csv, tables), "")
            if others := tables[1:]:
                note(f"CSV has the first table alone; md has these, too: {', '.join(one.name for one in others)}")
        elif markdown is not None:
            made = markdown()
        else:
            made = "\n".join([*_head_of_markdown([*head()]), *map(to_markdown, sheets())])
        if made:
            click.echo(made, stream, nl=not made.endswith("\n"))
        if self.file != STDOUT:
            write(self.file, kept.getvalue())

    def write_sheet(self, sheet: Sheet, values: Callable[[], Any]) -> None:
        """Write a table, and nothing else."""
        from ..report.sheet import format_sheet

        self.write(lambda out: "\n".join(format_sheet(sheet, room_of(out))), values, lambda: [sheet])

    def write_lines(self, lines: Iterable[str], values: Callable[[], Any], *sheets: Sheet) -> None:
        """Write lines of text."""
        self.write(lambda out: "\n".join(wrapped([*lines], room_of(out))), values, lambda: sheets)


def _head_of_markdown(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        headline, *marks = map(escape_markdown, lines)
        yield f"# {headline}\n"
        if marks:
            yield "".join(f"- {mark}\n" for mark in marks)


def form_options(names: Sequence[str], short: bool = True) -> list[Callable[[Any], Any]]:
    """Options for these forms, of which the first is the default, for ``choose``. short: with one of their own."""
    place: dict[str, Any] = {"cls": Option, "heading": Heading.OUTPUT}
    own = [
        click.option(f"--{name}", f"as_{name}", is_flag=True, hidden=True, help=text, **place)
        for name, text in _SHORT.items()
        if short and name in names
    ]
    words = f"{', '.join(names)}; default: by the ending of -o, else {names[0]}."
    return [
        click.option("--format", "form", type=click.Choice(names), metavar="FORM", help=words, **place),
        click.option("-o", "--output", metavar="FILE", help="Write to this file; - is standard output.", **place),
        *own,
    ]


def choose(names: Sequence[str], values: Mapping[str, Any], file_is_one: bool = True) -> OutputForm:
    """Return the choice of the options' values; ConfigError where two forms are named, and for a file that cannot be
    written. file_is_one: it is no directory for several.
    """
    file = values["output"] or STDOUT
    asked = {f"--{name}": name for name in _SHORT if values.get(f"as_{name}")}
    if values["form"] is not None:
        asked[f"--format {values['form']}"] = values["form"]
    if len(set(asked.values())) > 1:
        raise ConfigError(f"{' and '.join(asked)} exclude each other", "leave one of them out")
    if file_is_one:
        require_writable(file)
    by_ending = next((name for ending, name in ENDINGS.items() if name in names and file.endswith(ending)), names[0])
    return OutputForm(next(iter(asked.values()), by_ending), file, values["output"] is not None)


def require_writable(file: str) -> None:
    """ConfigError for a file that could not be written once all is measured; STDOUT always can."""
    if file == STDOUT:
        return
    path = Path(file)
    if path.is_dir():
        raise ConfigError(f"{path} is a directory", "name a file with -o")
    place = path if path.exists() and not path.is_file() else path.resolve().parent  # a device is written itself
    if not place.exists():
        raise ConfigError(f"{path}: {place} does not exist", "make that directory, or name another file with -o")
    if not os.access(place, os.W_OK):
        raise ConfigError(f"{path}: {place} cannot be written", "name a place with -o that can be")
