"""results/rows/<suite>/<month>.parquet: the rows of a month's nights, made of their documents; never the only copy.

Each file names its nights, so that readers and writers see which are missing, and make them of the documents. Needs
pyarrow.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from .. import files
from ..core.errors import StoreError
from ..core.history.night import Night
from ..core.history.rows import RunRow
from ..core.result import ANALYSIS_VERSION
from .columns import COUNTS, FLAGS, NUMBERS, column_names, column_values, unit_of
from .document import digest_of, naming, read_bytes
from .index import plain
from .nights import FOLDER, read_night
from .remote import fetch_missing, is_inside
from .store import load_rows, make_directory, safe_name

ROWS, ENDING = "rows", ".parquet"
_STORED_ONLY = ("digest", "row")
"""Columns of the files that queries lack."""
_TYPES = {
    **dict.fromkeys(NUMBERS, pa.float64()),
    **dict.fromkeys(COUNTS, pa.int64()),
    **dict.fromkeys(FLAGS, pa.bool_()),  # also at_least, which is among the columns of figures
    "row": pa.binary(),
}
_MADE_BY, _NIGHTS = b"trexbench", b"nights"
_rows = msgspec.json.Decoder(list[RunRow])


def month_file(suite: str, day: str) -> str:
    """Return the path below the results of the file that has this day's nights of the suite."""
    return f"{ROWS}/{safe_name(suite, '._-')}/{day[:7]}{ENDING}"


def documents_of(night: Night) -> list[str]:
    """List the paths of the night's documents, also of runs that ended early."""
    attempts = (attempt for cell in night.cells for attempt in cell.attempts)
    return [*dict.fromkeys(attempt.path for attempt in attempts if attempt.path is not None)]


@cache
def _schema() -> pa.Schema:
    """Return the columns of queries, ``digest`` of the document (BLAKE2b, 128 bits), and ``row``, the row as JSON.

    Files whose ``trexbench`` differs were made by another version, and are made anew.
    """
    names = [*column_names(), *_STORED_ONLY]
    fields = [pa.field(name, _TYPES.get(name, pa.string()), metadata={"unit": unit_of(name)}) for name in names]
    return pa.schema(fields, metadata={_MADE_BY: json.dumps({"analysis": ANALYSIS_VERSION, "columns": names})})


def make_table(rows: Sequence[RunRow], digests: Sequence[str] | None = None) -> pa.Table:
    """Make a table of these rows; with ``digests`` of their documents it can be stored."""
    schema, table = _schema(), [column_values(row) for row in rows]
    columns = {name: [values[name] for values in table] for name in column_names()}
    for name in (name for name in columns if schema.field(name).type == pa.string()):
        columns[name] = [None if value is None else plain(str(value)) for value in columns[name]]
    if digests is None:
        return pa.table(columns, schema=pa.schema([schema.field(name) for name in columns]))
    # JSON of the standard library: it also has infinity, and text that is not Unicode
    stored = [json.dumps(msgspec.to_builtins(row)).encode() for row in rows]
    return pa.table({**columns, "digest": list(digests), "row": stored}, schema=schema)


def write_table(path: Path, table: pa.Table, nights: frozenset[str] = frozenset()) -> None:
    """Replace the whole file by the rows of these nights; OSError if that fails."""
    table = table.replace_schema_metadata({**_schema().metadata, _NIGHTS: json.dumps(sorted(nights))})
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=True, write_page_checksum=True)
    files.replace_file(path, buffer.getvalue().to_pybytes())


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a file for the block; StoreError if it is damaged, or of another version."""
    with naming(path):
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                about = file.schema_arrow.metadata or {}
                if about.get(_MADE_BY) != _schema().metadata[_MADE_BY] or _NIGHTS not in about:
                    raise StoreError("made by another version of the analysis")
                yield file
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StoreError(f"damaged ({error})") from None


def read_nights(path: Path) -> frozenset[str]:
    """Read which nights the file has, by the stems of their files; StoreError as for read_rows."""
    with _opened(path) as file:
        return frozenset(json.loads(file.schema_arrow.metadata[_NIGHTS]))


def check_columns(path: Path) -> Path:
    """Read all columns of queries; StoreError as for read_rows."""
    with _opened(path) as file:
        file.read(column_names())
    return path


def is_newer(path: Path) -> bool:
    """Test whether another version of trexbench, no older than this one, made this file."""
    try:
        theirs, ours = (pq.read_schema(path).metadata or {}).get(_MADE_BY, b"{}"), _schema().metadata[_MADE_BY]
        return theirs != ours and _age_of(theirs) >= _age_of(ours)
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
        return False


def _age_of(made_by: bytes) -> tuple[int, int]:
    """Return a value that grows with the version of what rows hold."""
    about = json.loads(made_by)
    return int(about["analysis"]), len(about["columns"])


def read_rows(path: Path, since: str | None = None, **wanted: str | None) -> list[RunRow]:
    """Read the rows with these values in columns, begun at ``since`` or later.

    StoreError, which names the file, for damage, another version, and paths outside the results.
    """
    asked = {name: plain(value) for name, value in wanted.items() if value is not None}
    with _opened(path) as file:
        table = file.read(["row", "started", *asked])
    stored: list[bytes] = table.column("row").to_pylist()
    if asked or since is not None:  # not by pyarrow.compute, which loads pandas
        columns = [(table.column(name).to_pylist(), value) for name, value in asked.items()]
        begun = table.column("started").to_pylist() if since is not None else [""] * len(stored)
        stored = [
            row
            for at, row in enumerate(stored)
            if begun[at] >= (since or "") and all(values[at] == value for values, value in columns)
        ]
    return _decoded(stored, path)


def _decoded(stored: Sequence[bytes], path: Path) -> list[RunRow]:
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


def add_nights(results: Path, path: Path, nights: Sequence[Path]) -> list[str]:
    """Add the rows of these nights' documents to their month's file, in the place of former ones.

    Return what could not be read: its night counts as missing. Documents that were removed have no rows. StoreError if
    a night cannot be read or the store cannot be reached, OSError for the disk.
    """
    rows, digests, whole, unread = list[RunRow](), list[str](), set[str](), list[str]()
    for file in nights:
        known = len(unread)
        for place in documents_of(read_night(file)):
            if not is_inside(place) or not ((results / place).exists() or fetch_missing(results / place)):
                continue
            try:
                made = load_rows(results / place, place)
                digest = digest_of(read_bytes(results / place)).decode()
            except StoreError as error:
                unread.append(str(error))
                continue
            rows += made
            digests += [digest] * len(made)
        whole |= {file.stem} if len(unread) == known else set()
    table, new = make_table(rows, digests), {row.path for row in rows}
    with contextlib.suppress(StoreError), _opened(path) as former:
        kept = former.read()
        kept = kept.filter(pa.array([place not in new for place in kept.column("path").to_pylist()], pa.bool_()))
        table, whole = pa.concat_tables([kept, table]), whole | read_nights(path)
    make_directory(path.parent)
    files.sweep(path.parent)
    write_table(path, table, frozenset(whole))
    return unread


def drop_removed(results: Path, path: Path) -> None:
    """Drop rows of removed documents, and removed nights; the whole file if it is damaged or nothing is left."""
    try:
        nights = read_nights(path)
        with _opened(path) as file:
            table = file.read()
    except StoreError:
        path.unlink(missing_ok=True)
        return
    there = [(results / place).exists() for place in table.column("path").to_pylist()]
    left = frozenset(night for night in nights if (results / FOLDER / f"{night}.json").exists())
    if not any(there) and not left:
        path.unlink(missing_ok=True)
    elif not all(there) or left != nights:
        write_table(path, table.filter(pa.array(there, pa.bool_())), left)
