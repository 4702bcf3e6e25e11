"""The kinds of documents below results/, by their schema: what a document is decoded to, and its rows in the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.history.rows import RunRow
from ..core.result import SCHEMA, RunResult, from_document
from ..core.tcp import result as tcp
from ..core.tcp.result import TcpResult
from .document import checked_row
from .tcp import checked_rows

Result = RunResult | TcpResult


@dataclass(frozen=True)
class Kind:
    """decode: raises StoreError for a damaged document. rows: of the result, checked, their paths empty."""

    decode: Callable[[Any], Any]
    rows: Callable[[Any], tuple[RunRow, ...]]


KINDS: Mapping[str, Kind] = {
    SCHEMA: Kind(from_document, lambda result: (checked_row(result),)),
    tcp.SCHEMA: Kind(tcp.from_document, checked_rows),
}


def kind_of(document: object) -> Kind:
    """By the document's schema; what has none is taken for a run, whose reader says what is wrong."""
    schema = document.get("schema") if isinstance(document, Mapping) else None
    return KINDS.get(schema, KINDS[SCHEMA]) if isinstance(schema, str) else KINDS[SCHEMA]
