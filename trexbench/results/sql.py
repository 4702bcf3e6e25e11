"""Queries stored rows in DuckDB's SQL: whatever the statement says, it can only read the tables."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ..core.errors import ConfigError
from ..core.history.rows import RunRow
from .columns import column_names
from .parquet import make_table

QUERY_S = 60.0
MEMORY = "1500MB"
_ONE_SELECT = "it takes one SELECT on the table `runs`, whose columns `trexbench results query --help` lists"
_PLAIN = (int, float, str, bytes)


def ask(
    sql: str, runs: Sequence[RunRow] | Sequence[Path], problems: Sequence[tuple[str, str]]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a SELECT on the tables ``runs`` (rows, or Parquet files of them) and ``problems``: column names and rows.

    ConfigError for any other statement, and for a query that takes longer than QUERY_S.
    """
    with duckdb.connect(":memory:", config={"memory_limit": MEMORY, "python_enable_replacements": False}) as db:
        try:
            _fill(db, runs, problems)
            statements = db.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise ConfigError("query: it is not one SELECT", _ONE_SELECT)
            clock = threading.Timer(QUERY_S, db.interrupt)
            clock.daemon = True
            clock.start()
            try:
                answer = db.execute(statements[0])
                names = list[str]()
                for name, *_ in answer.description or []:
                    more = (f"{name}_{number}" for number in itertools.count(1))
                    names.append(next(one for one in itertools.chain([name], more) if one not in names))
                return names, [tuple(map(_plain, row)) for row in answer.fetchall()]
            finally:
                clock.cancel()
        except duckdb.Error as error:
            ended = isinstance(error, duckdb.InterruptException)
            reason = f"it took longer than {QUERY_S:g} s" if ended else str(error).splitlines()[0].rstrip(".")
            raise ConfigError(f"query: {reason}", _ONE_SELECT) from None


def _fill(db: Any, runs: Sequence[RunRow] | Sequence[Path], problems: Sequence[tuple[str, str]]) -> None:
    paths = [str(path) for path in runs if isinstance(path, Path)]
    if paths:
        db.read_parquet(paths).select(*column_names()).create_view("runs")
    else:
        db.register("rows", make_table([row for row in runs if isinstance(row, RunRow)]))
        db.execute("CREATE VIEW runs AS SELECT * FROM rows")
    texts = {"path": [path for path, _ in problems], "reason": [reason for _, reason in problems]}
    db.register("problems", pa.table(texts, schema=pa.schema([("path", pa.string()), ("reason", pa.string())])))
    if paths:
        db.execute(f"SET allowed_paths = [{', '.join('?' * len(paths))}]", paths)
    db.execute("SET enable_external_access = false")
    db.execute("SET lock_configuration = true")


def _plain(value: Any) -> Any:
    """Turn dates and lists into text, truth and decimals into numbers."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, _PLAIN) else str(value)
