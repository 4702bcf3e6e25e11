"""Files of rows: their names, the rows in them as JSON, and a date's rows of all suites in one file of a mirror.

Uses no pyarrow, which takes longer to import than a night's rows take to read.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from .. import files
from ..core.errors import StoreError
from ..core.history.night import Night
from ..core.history.rows import RunRow
from ..core.result import ANALYSIS_VERSION
from .columns import column_names
from .document import digest_of, naming
from .remote import is_inside
from .store import make_directory, safe_name

ROWS, ENDING = "rows", ".parquet"
PERIODS = (7, 4)
"""Lengths of the names of merged files: a month's, a year's."""
STORED_ONLY = ("digest", "row")
"""Columns of the files that queries lack."""
_rows = msgspec.json.Decoder(list[RunRow])


def made_by() -> str:
    """Return the version of what rows hold; files of another version are made anew."""
    return json.dumps({"analysis": ANALYSIS_VERSION, "columns": [*column_names(), *STORED_ONLY]})


def age_of(made: bytes) -> tuple[int, int]:
    """Return a value that grows with the version of what rows hold; ValueError, LookupError or TypeError for damage."""
    about = json.loads(made)
    return int(about["analysis"]), len(about["columns"])


def folder_of(results: Path, suite: str) -> Path:
    return results / ROWS / safe_name(suite, "._-")


def rows_file(results: Path, stem: str, night: Night) -> Path:
    """Return the place for the rows of the night whose file has this stem."""
    number = stem.removeprefix(f"{night.night}-{safe_name(night.suite, '._-')}")
    return folder_of(results, night.suite) / f"{night.night}{number}{ENDING}"


def documents_of(night: Night) -> list[str]:
    """List the paths of the night's documents, also of runs that ended early."""
    attempts = (attempt for cell in night.cells for attempt in cell.attempts)
    return [*dict.fromkeys(attempt.path for attempt in attempts if attempt.path is not None)]


def period_of(name: str) -> str:
    """Return the date, month or year of a file: 2026-01 for ``2026-01.2.parquet``."""
    return name.rpartition("/")[2].removesuffix(ENDING).partition(".")[0]


def is_merged(name: str) -> bool:
    return len(period_of(name)) in PERIODS


def version_of(name: str) -> int:
    """Return the version of a merged file; 1 if its name has no number."""
    number = name.removesuffix(ENDING).partition(".")[2]
    return int(number) if is_merged(name) and number.isdecimal() else 1


def next_version(name: str) -> str:
    """Return the name of the file that replaces this one of a month or a year."""
    return f"{period_of(name)}.{version_of(name) + 1}{ENDING}"


def counting(names: Iterable[str]) -> list[str]:
    """List the files that count, in order of precedence: nights, months, years; of each only the last version.

    If several files have a document's rows, those of the first count.
    """
    dated = [name for name in names if name.endswith(ENDING) and name[:1].isdigit()]
    last = {period_of(name): name for name in sorted(dated, key=version_of)}
    return [last[period] for period in sorted(last, key=lambda period: (-min(len(period), 10), period))]


def overlap(names: Iterable[str]) -> bool:
    """Test whether several of these files may have the same rows."""
    periods = {*map(period_of, names)}
    return any(period[:length] in periods - {period} for period in periods for length in PERIODS)


def decode_rows(stored: Sequence[bytes], path: Path) -> list[RunRow]:
    """Decode rows of JSON objects; StoreError, which names the file, for damage and for paths outside the results."""
    with naming(path):
        data = b"[" + b",".join(stored) + b"]"
        try:
            rows = _rows.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):  # some rows only json can read
            try:
                rows = [msgspec.convert(values, RunRow) for values in json.loads(data)]
            except (ValueError, TypeError, msgspec.MsgspecError) as error:
                raise StoreError(f"damaged ({error})") from None
        for row in rows:
            if not is_inside(row.path):
                raise StoreError(f"{row.path!r} is not the path of a document below the results")
        return rows


class DayHead(msgspec.Struct, frozen=True):
    """The first line of a date's file, behind a digest of the line."""

    made_by: str
    files: dict[str, int]
    """Path of each file of rows that it was made of -> when that was written."""
    last: str
    """When its last run began."""
    digest: str
    """Digest of the rest: the compressed rows."""


def read_day(path: Path, written_ns: Mapping[str, int], since: str) -> list[RunRow] | None:
    """Read a date's rows, none if its last run began before ``since``; None if they must be made anew.

    written_ns: of the files of rows that exist now.
    """
    try:
        with path.open("rb") as file:
            digest, _, line = file.readline().partition(b" ")
            head = msgspec.json.decode(line, type=DayHead)
            if digest != digest_of(line) or head.files != written_ns or head.made_by != made_by():
                return None
            packed = file.read() if head.last >= since else None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if packed is None:
        return []
    return decode_rows([zlib.decompress(packed)], path) if digest_of(packed).decode() == head.digest else None


def write_day(path: Path, written_ns: Mapping[str, int], stored: Sequence[bytes], last: str) -> None:
    """Write a date's file for read_day. A failure costs no more than time."""
    packed = zlib.compress(b",".join(stored), 1)
    head = DayHead(made_by(), {**written_ns}, last, digest_of(packed).decode())
    line = msgspec.json.encode(head) + b"\n"
    with contextlib.suppress(OSError, StoreError):
        files.sweep(make_directory(path.parent))
        files.replace_file(path, digest_of(line) + b" " + line + packed)
