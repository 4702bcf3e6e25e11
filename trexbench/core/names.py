"""Which text may be the name of a DUT, a mode, a suite or a label."""

from __future__ import annotations

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


def shown(value: object) -> str:
    """An invalid name, shortened and made printable, for an error message."""
    return ascii(value if not isinstance(value, str) else value[:40])[:60]
