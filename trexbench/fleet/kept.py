"""Documents that could not get their place in the results, kept until they can.

The place is in the name of the directory: where there is no room for a document, there is none for a note of it.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote

from ..files import link_new
from ..results.nights import TESTERS


def keep(document: Path, staging: Path, place: str) -> Path:
    """Keep the document's directory when its night's own is removed; return where the document is then."""
    kept = staging.parents[1] / f"kept-{staging.name}+{quote(place, safe='')}"
    try:
        staging.rename(kept)
    except OSError:
        return document
    return kept / document.relative_to(staging)


def place_kept(results: Path, say: Callable[[str], None]) -> None:
    """Give kept documents their places; those that still cannot have them stay."""
    for kept in sorted((results / TESTERS).glob("kept-*")):
        with contextlib.suppress(OSError, ValueError):
            _, place = map(unquote, kept.name.split("+"))
            target = results / place
            (document,) = kept.glob("20*/*/*.json")
            if not target.resolve().is_relative_to(results.resolve()):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                link_new(document, target)
            shutil.rmtree(kept)
            say(f"placed   {place}, which could not be placed before")
