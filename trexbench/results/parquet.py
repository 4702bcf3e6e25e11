"""results/rows/<suite>/<date>.parquet: the rows of one night, made of its documents; never the only copy of anything.

Files of past months are merged into ``<year>-<month>.parquet``, and these into ``<year>.parquet``: ten years of a suite
take some fifty files. A merged file never changes: later rows make a next version, such as ``2026-01.2.parquet``, which
exists only once and has all rows of the former. So rows in the last version are safe, and only such rows are removed
elsewhere. Needs pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from .. import files
from ..core.errors import StoreError
from ..core.history.rows import RunRow
from .columns import COUNTS, FLAGS, NUMBERS, column_names, column_values, unit_of
from .document import digest_of, naming, read_bytes
from .index import plain
from .nights import read_night
from .remote import fetch_missing, is_inside
from .rowfiles import (
    ENDING,
    PERIODS,
    STORED_ONLY,
    age_of,
    counting,
    decode_rows,
    documents_of,
    is_merged,
    made_by,
    next_version,
    period_of,
    rows_file,
)
from .store import load_rows, make_directory

_TYPES = {
    **dict.fromkeys(NUMBERS, pa.float64()),
    **dict.fromkeys(COUNTS, pa.int64()),
    **dict.fromkeys(FLAGS, pa.bool_()),  # also at_least, which is among the columns of figures
    "row": pa.binary(),
}
_MADE_BY, _PARTIAL = b"trexbench", b"partial"


@cache
def _schema() -> pa.Schema:
    """Return the columns of queries, ``digest`` of the document (BLAKE2b, 128 bits), and ``row``, the row as JSON."""
    names = [*column_names(), *STORED_ONLY]
    fields = [pa.field(name, _TYPES.get(name, pa.string()), metadata={"unit": unit_of(name)}) for name in names]
    return pa.schema(fields, metadata={_MADE_BY: made_by()})


def make_table(rows: Sequence[RunRow], digests: Sequence[str] | None = None) -> pa.Table:
    """Make a table of these rows; with ``digests`` of their documents it can be stored."""
    schema, table = _schema(), [column_values(row) for row in rows]
    columns = {name: [values[at] for values in table] for at, name in enumerate(column_names())}
    for name in (name for name in columns if schema.field(name).type == pa.string()):
        columns[name] = [None if value is None else plain(str(value)) for value in columns[name]]
    if digests is None:
        return pa.table(columns, schema=pa.schema([schema.field(name) for name in columns]))
    # JSON of the standard library: it also has infinity, and text that is not Unicode
    stored = [json.dumps(msgspec.to_builtins(row)).encode() for row in rows]
    return pa.table({**columns, "digest": list(digests), "row": stored}, schema=schema)


def write_table(path: Path, table: pa.Table) -> None:
    """Replace the whole file; OSError if that fails."""
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=True, write_page_checksum=True)
    files.replace_file(path, buffer.getvalue().to_pybytes())


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the file's columns; StoreError if it is damaged, or of another version."""
    with naming(path):
        try:
            file = pq.ParquetFile(path, page_checksum_verification=True)
            if (file.schema_arrow.metadata or {}).get(_MADE_BY) != _schema().metadata[_MADE_BY]:
                raise StoreError("made by another version of the analysis")
            return file.read(columns)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"damaged ({error})") from None


def read_whole(path: Path) -> pa.Table:
    """Read a file that has all rows of its nights; StoreError as in read_table, and if it may lack some."""
    table = read_table(path)
    if _PARTIAL in table.schema.metadata:
        raise StoreError(f"{path}: made while a document could not be read, or in place of a damaged file")
    return table


def is_newer(path: Path) -> bool:
    """Test whether another version of trexbench, no older than this one, made this file."""
    try:
        theirs, ours = (pq.read_schema(path).metadata or {}).get(_MADE_BY, b"{}"), _schema().metadata[_MADE_BY]
        return theirs != ours and age_of(theirs) >= age_of(ours)
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
        return False


def read_rows(path: Path, since: str | None = None, **wanted: str | None) -> list[RunRow]:
    """Read the rows that read_stored selects; StoreError as there and as in decode_rows."""
    return decode_rows(read_stored(path, since, **wanted), path)


def read_stored(path: Path, since: str | None = None, **wanted: str | None) -> list[bytes]:
    """Read rows, as JSON, with these values in columns, begun at ``since`` or later; StoreError as in read_table."""
    asked = {name: plain(value) for name, value in wanted.items() if value is not None}
    table = read_table(path, ["row", "started", *asked])
    stored: list[bytes] = table.column("row").to_pylist()
    if asked or since is not None:  # not by pyarrow.compute, which loads pandas
        columns = [(table.column(name).to_pylist(), value) for name, value in asked.items()]
        begun = table.column("started").to_pylist() if since is not None else [""] * len(stored)
        stored = [
            row
            for at, row in enumerate(stored)
            if begun[at] >= (since or "") and all(values[at] == value for values, value in columns)
        ]
    return stored


def write_night(
    results: Path, nights: Iterable[Path], path: Path | None = None, is_partial: bool = False
) -> tuple[Path, list[str]]:
    """Write the rows of these nights' documents, by default where those of the first belong.

    Returns the file, and what could not be read: a file that lacks rows is never merged. Documents that were removed
    have no rows. is_partial: never merge the file, whatever could be read.
    StoreError if a night cannot be read or the store cannot be reached, OSError for the disk.
    """
    rows, digests, unread = list[RunRow](), list[str](), list[str]()
    for file in nights:
        night = read_night(file)
        path = path or rows_file(results, file.stem, night)
        for place in documents_of(night):
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
    assert path is not None
    make_directory(path.parent)
    files.sweep(path.parent)
    table = make_table(rows, digests)
    if unread or is_partial:
        table = table.replace_schema_metadata({**table.schema.metadata, _PARTIAL: b""})
    write_table(path, table)
    return path, unread


def drop_removed(results: Path, path: Path) -> None:
    """Drop the rows of removed documents, and a file without any rows left; StoreError as in read_whole."""
    table = read_whole(path)
    places = table.column("path").to_pylist()
    there = {place: (results / place).exists() for place in places}
    if all(there.values()):
        return
    if any(there.values()):
        write_table(path, table.filter(pa.array([there[place] for place in places])))
    else:
        path.unlink()


def merge(folder: Path) -> tuple[list[Path], list[Path]]:
    """Merge the files of past months and years, and late ones; return the files written, and those removed.

    A file is removed only if a former call merged it: if two merge at once, the next version is that of one, and the
    next call merges what it lacks.
    """
    written, gone = list[Path](), list[Path]()
    for length in PERIODS:
        every = [path.name for path in folder.glob(f"*{ENDING}")]
        names = counting(every)
        whole = {period_of(name): name for name in names if is_merged(name)}
        newest = max((period_of(name)[:10] for name in names), default="")
        needless = [folder / name for name in every if is_merged(name) and name not in names]
        for period in sorted({period_of(name)[:length] for name in names if len(period_of(name)) > length}):
            former = whole.get(period)
            if former is None and (period >= newest[:length] or period[:4] in whole):
                continue  # late nights of a year that is merged go into its file
            parts = [
                folder / name
                for name in names
                if len(period_of(name)) > length
                and period_of(name)[:length] == period
                and (is_merged(name) or length == 7 or period_of(name)[:7] not in whole)
            ]
            merged, others = _merge_into(folder, period, former, parts)
            written += merged
            needless += others
        for path in needless:
            path.unlink(missing_ok=True)
        gone += needless
    return [path for path in written if path not in gone], gone


def _merge_into(folder: Path, period: str, former: str | None, parts: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Merge whole files of this version; return the new file, and those whose rows were merged before.

    former: the last version of the merged file.
    """
    try:
        tables = {path: read_whole(path) for path in parts}
        before = [read_whole(folder / former)] if former is not None else []
    except StoreError:
        return [], []
    schemas = [table.schema for table in [*tables.values(), *before]]
    if not all(schema.equals(schemas[0], check_metadata=True) for schema in schemas):
        return [], []
    known = {row for table in before for row in table.column("row").to_pylist()}
    gone = [path for path in parts if before and known.issuperset(tables[path].column("row").to_pylist())]
    new = [table for path, table in tables.items() if path not in gone]
    if not new:
        return [], gone
    path = folder / (next_version(former) if former is not None else period + ENDING)
    write_table(path, join([*new, *before]))
    return [path], gone


def join(tables: Sequence[pa.Table]) -> pa.Table:
    """Join tables; if several have a document's rows, those of the first count."""
    import pyarrow.compute as pc

    joined = tables[0]
    for table in tables[1:]:
        known = pc.is_in(table.column("path"), value_set=joined.column("path").combine_chunks())
        joined = pa.concat_tables([joined, table.filter(pc.invert(known))])
    return joined
