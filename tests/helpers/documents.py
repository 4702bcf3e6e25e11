"""Runs as the JSON values of their documents."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from trexbench.core.run import Run
from trexbench.results.loads import figures_of


def to_document(run: Run) -> dict[str, Any]:
    """The whole document, readings included, as the store writes it but for the seal."""
    document: dict[str, Any] = msgspec.to_builtins({**figures_of(run), **run.readings()}, str_keys=True)
    return document


def changed_at(document: Any, *keys: Any, value: Any) -> Any:
    """A copy of the document with another value at this place."""
    changed = copy.deepcopy(document)
    at = changed
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return changed
