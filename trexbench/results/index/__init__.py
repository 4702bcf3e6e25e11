"""The index of results/: every run in a line, found without reading the documents again; they alone are the truth."""

from .database import INDEX_FILE, Index, open_index

__all__ = ["INDEX_FILE", "Index", "open_index"]
