"""Table of loads: which document is a run of which load, and what the store needs to know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core import result as packets
from ..core.errors import StoreError
from ..core.history.rows import RunRow, row_of, rows_of_tcp
from ..core.run import Run
from ..core.tcp import result as tcp
from ..core.tcp.bdp import bdp_part


@dataclass(frozen=True)
class Load:
    """A kind of traffic, as far as stored runs go. The functions are given runs of this load only."""

    noun: str
    """A run of it, in words."""
    read: Callable[[Any], Run]
    """Make a document's run, unchecked; StoreError names the part that is missing or of the wrong kind."""
    rows: Callable[[Any], tuple[RunRow, ...]]
    """Derive the run's rows in the index, with an empty path."""
    figures: Callable[[Any], dict[str, Any]] = lambda run: {}
    """Derive the document's figures beside the run's own."""
    reuse: Callable[[Any, Mapping[str, Any]], None] = lambda run, document: None
    """Take over figures that this version of the analysis has stored in a document, in place of deriving them again."""


LOADS: dict[str, Load] = {
    packets.SCHEMA: Load(
        "a run of packets", packets.from_document, lambda run: (row_of(run, ""),), reuse=packets.reuse_verdicts
    ),
    tcp.SCHEMA: Load("a run of TCP", tcp.from_document, lambda run: rows_of_tcp(run, ""), bdp_part),
}
"""Every load by the schema of its documents."""


def load_of(run: Run) -> Load:
    return LOADS[run.schema]


def read_run(document: Any) -> Run:
    """Make the run of a document of any load, unchecked; StoreError as in Load.read, and for one of no known load."""
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if not isinstance(schema, str) or schema not in LOADS:
        remedy = f"its schema is none of {', '.join(LOADS)}; `trexbench results import` takes others' files"
        raise StoreError("not a run document", remedy)
    return LOADS[schema].read(document)


def figures_of(run: Run) -> dict[str, Any]:
    """Return the run's document without its readings."""
    return run.without_readings() | load_of(run).figures(run)
