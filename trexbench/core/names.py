"""What may be the name of a DUT, a mode, a suite or a label, wherever it was written."""

from __future__ import annotations

LONGEST = 200
REMEDY = "letters, digits, spaces and the like, no control characters and none of / \\ < >"
_NEVER = frozenset("/\\<>")


def is_name(value: object) -> bool:
    """Printable text of at most LONGEST letters that is no path and nothing that a page could take for a tag."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= LONGEST
        and value.isprintable()
        and not _NEVER & set(value)
        and value not in (".", "..")
    )


def shown(value: object) -> str:
    """A name that is none, short and printable: for a line that says so."""
    return ascii(value if not isinstance(value, str) else value[:40])[:60]
