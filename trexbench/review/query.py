"""Asks stored runs in SQL: DuckDB's where that is installed, else that of the index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.errors import ConfigError
from ..results.index import open_index
from ..results.remote import INSTALL, can_import, has_parquet, require_parquet, store_of
from .find import Warn, check_results


def query(sql: str, results: Path, warn: Warn) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows; ConfigError for what is not one SELECT, and for one that takes too long."""
    check_results(results)
    if (store := store_of(results)) is not None:
        require_parquet(store.address)
    if not has_parquet() or not can_import("duckdb"):
        if store is not None:  # its mirror has but a few documents
            raise ConfigError(f"query: {store.address} needs duckdb", INSTALL)
        return open_index(results, warn).query(sql)
    from ..results.sql import ask

    if store is not None:
        from ..results.stored import current_files

        return ask(sql, current_files(results, store, warn), [])
    index = open_index(results, warn)
    return ask(sql, index.rows(), index.problems())
