"""The index of results/: a row for every run, so that documents need not be read again; it is never the only copy."""

from .database import INDEX_FILE, Index, open_index

__all__ = ["INDEX_FILE", "Index", "open_index"]
