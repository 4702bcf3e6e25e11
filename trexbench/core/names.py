"""Names: which text may be one of a DUT, a mode, a suite or a label, and which known one a mistyped one means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

LONGEST = 200
REMEDY = "letters, digits, spaces and the like, no control characters and none of / \\ < >"
_NEVER = frozenset("/\\<>")


def is_name(value: object) -> bool:
    """Printable text of at most LONGEST characters that cannot be taken for a path or an HTML tag."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= LONGEST
        and value.isprintable()
        and not _NEVER & set(value)
        and value not in (".", "..")
    )


def nearest(name: str, known: Iterable[str], former: Mapping[str, str] = {}) -> str:
    """The question whether the most similar of these names was meant, and a space; no text where none is similar.

    former: more names, which are asked for by those that they have now.
    """
    close = difflib.get_close_matches(name, [*known, *former], n=1)
    return f"did you mean {former.get(close[0], close[0])}? " if close else ""


def shown(value: object) -> str:
    """An invalid name, shortened and made printable, for an error message."""
    return ascii(value if not isinstance(value, str) else value[:40])[:60]
