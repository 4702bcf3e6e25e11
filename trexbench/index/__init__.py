"""The index of results/: every run in a line, found without reading the documents again; they alone are the truth."""

from .database import INDEX_FILE, Index, open_index
from .reading import RowReader

__all__ = ["INDEX_FILE", "Index", "RowReader", "open_index"]
