"""Output of verbs: notes for people on standard error, results on standard output or in files (--format, -o)."""

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

from ..core.errors import BenchError, ConfigError, StoreError
from ..files import replace_file
from ..report.clean import clean, escape_markdown
from ..report.room import room_of, wrapped
from .verbs import Heading, Option

if TYPE_CHECKING:
    from ..report.sheet import Sheet
    from ..signals import Interrupted


def note(text: str) -> None:
    """Print a line on standard error, wrapped on a terminal; it is lost where that is closed or full."""
    with contextlib.suppress(OSError, ValueError):
        # Readers of a file or a pipe look for whole lines, whatever COLUMNS is.
        for line in wrapped([clean(text)], room_of(sys.stderr) if sys.stderr.isatty() else None):
            click.echo(line, err=True)


def warn(text: str) -> None:
    note(f"trexbench: {text}")


class _NoteHandler(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._begun_s = time.time()

    def emit(self, record: logging.LogRecord) -> None:
        note(f"{record.created - self._begun_s:9.3f} s  {record.getMessage()}")


def tell_more() -> Callable[[], None]:
    """Note every call of a server and every command on a DUT from now on; return the function that ends this."""
    log, handler = logging.getLogger(__package__.partition(".")[0]), _NoteHandler()
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.propagate = False

    def end() -> None:
        log.removeHandler(handler)
        log.level, log.propagate = before

    return end


def say_unless(quiet: bool) -> Callable[[str], None]:
    """Return the function for lines of progress: note, or one that prints nothing."""
    return (lambda _: None) if quiet else note


def save_picture(save: Callable[[], Path]) -> None:
    """Draw a picture and note its file; a failure is only noted, too, since the run is safe in its document."""
    from ..session.process import interruptible

    try:
        with interruptible():
            note(f"picture  {save()}")
    except Exception as failed:
        note(f"no picture: {' '.join(str(failed).split())}")


def json_text(values: Any) -> str:
    # A damaged document may contain 1e999: JSON has no infinity.
    finite = json.loads(json.dumps(values, default=str), parse_constant=lambda _: None)
    return f"{json.dumps(finite, indent=1)}\n"


def exit_code(error: BenchError | Interrupted | None) -> int:
    """Report the error that ended a run, and return its exit code; 0 for none."""
    if error is None:
        return 0
    warn(str(error))
    return error.exit_code


def make_directory(path: Path) -> None:
    """Make a directory that an option names for several files, unless it exists."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", "name a directory that can be created") from error


def write(name: str, data: str | bytes, aside: bool = False) -> None:
    """Replace a file atomically and print its name; ``-`` is standard output. aside: do not print the name."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if name == "-":
        click.echo(raw, nl=False)
        return
    path = Path(name)
    try:
        replace_file(path, raw)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", "name a place that can be written") from error
    if not aside:
        click.echo(path)


STDOUT = "-"
ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".csv": "csv"}
"""Ending of a file -> the form that is written to it unless one is named."""
_SHORT = {"json": "As --format json.", "csv": "As --format csv.", "brief": "As --format brief."}
"""Forms with a hidden option of their own."""

Words = Callable[[TextIO], str | None]
"""Function that makes the text for a stream, as wide as a terminal; None if it printed by itself, or there is none."""


@dataclass(frozen=True)
class OutputForm:
    """A user's choice of form and file."""

    name: str = "text"
    """text, brief, json, csv, md or html."""
    file: str = STDOUT
    is_named: bool = False
    """True if the user named the file."""

    @property
    def is_shown(self) -> bool:
        """True for text on standard output."""
        return self.name == "text" and self.file == STDOUT

    @contextlib.contextmanager
    def around(self, write: Callable[[], None]) -> Iterator[None]:
        """Write to standard output before the block, but to a file after it, since that may fail."""
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
        """Write the chosen form; the functions for the others are not called. CSV has the first of several sheets.

        values: contents of JSON. markdown: replaces the sheets there. head: a headline and marks that must not be
        overlooked, for markdown. table: replaces the first sheet in CSV, with the marks in its columns.
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
                note(f"CSV has the first table only; md also has: {', '.join(sheet.name for sheet in others)}")
        elif markdown is not None:
            made = markdown()
        else:
            headline, *marks = map(escape_markdown, [*head()] or [""])
            above = [f"# {headline}\n"] if headline else []
            above += ["".join(f"- {mark}\n" for mark in marks)] if marks else []
            made = "\n".join([*above, *map(to_markdown, sheets())])
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


def form_options(names: Sequence[str]) -> list[Callable[[Any], Any]]:
    """Return options for these forms, the first of which is the default; also --json and the like."""
    place: dict[str, Any] = {"cls": Option, "heading": Heading.OUTPUT}
    own = [
        click.option(f"--{name}", f"as_{name}", is_flag=True, hidden=True, help=text, **place)
        for name, text in _SHORT.items()
        if name in names
    ]
    words = f"Output form: {', '.join(names)}. Default: by the ending of -o, else {names[0]}."
    return [
        click.option("--format", "form", type=click.Choice(names), metavar="FORM", help=words, **place),
        click.option("-o", "--output", metavar="FILE", help="File to write; - is standard output.", **place),
        *own,
    ]


def choose(names: Sequence[str], values: Mapping[str, Any], file_is_one: bool = True) -> OutputForm:
    """Make the choice from the options' values; ConfigError for two forms, or a file that cannot be written.

    file_is_one: the file is not a directory for several.
    """
    file = values["output"] or STDOUT
    asked = {f"--{name}": name for name in _SHORT if values.get(f"as_{name}")}
    if values["form"] is not None:
        asked[f"--format {values['form']}"] = values["form"]
    if len(set(asked.values())) > 1:
        raise ConfigError(f"{' and '.join(asked)} exclude each other", "leave one of them out")
    if file_is_one:
        require_writable(file)
    own = {ending: name for ending, name in ENDINGS.items() if name in names}
    ending = Path(file).suffix
    if not asked and ending not in ("", *own) and (names[0] == "html" or ending in (*ENDINGS, ".parquet")):
        raise ConfigError(f"{file}: no form has this ending", f"take {', '.join(own)}, or name one with --format")
    return OutputForm(next(iter(asked.values()), own.get(ending, names[0])), file, values["output"] is not None)


def require_writable(file: str) -> None:
    """Raise ConfigError for a file that could not be written at the end."""
    if file == STDOUT:
        return
    path = Path(file)
    if path.is_dir():
        raise ConfigError(f"{path} is a directory", "name a file with -o")
    place = path if path.exists() and not path.is_file() else path.resolve().parent  # a device is written itself
    if not place.exists():
        raise ConfigError(f"{path}: {place} does not exist", "make that directory, or name another file with -o")
    if not os.access(place, os.W_OK):
        raise ConfigError(f"{path}: {place} cannot be written", "name a writable place with -o")
