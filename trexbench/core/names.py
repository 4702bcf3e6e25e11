"""Names of DUTs, modes, suites, labels and hosts: valid ones, and the known one that a mistyped name probably means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

LONGEST = 200
REMEDY = f"at most {LONGEST} letters, digits, spaces and the like, no control characters and none of / \\ < >"
HOST = r"[A-Za-z0-9:][A-Za-z0-9.:_-]*"
"""Pattern of a host's name or address."""
_NEVER = frozenset("/\\<>")


def is_name(value: object) -> bool:
    """Test for printable text of at most LONGEST characters, not all spaces, that is no path and no HTML tag."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= LONGEST
        and value.isprintable()
        and not _NEVER & set(value)
        and value not in (".", "..")
        and not value.isspace()
    )


def nearest(name: str, known: Iterable[str], former: Mapping[str, str] = {}) -> str:
    """Ask ``did you mean`` the most similar of these names, with a space behind; no text where none is similar.

    former: names in use before, with the present ones to suggest.
    """
    names = {one.casefold(): former.get(one, one) for one in (*former, *known)}
    close = difflib.get_close_matches(name.casefold(), names, n=1)
    return f"did you mean {names[close[0]]}? " if close else ""


def shown(value: object) -> str:
    """Shorten an invalid name and make it printable, for an error message."""
    return ascii(value if not isinstance(value, str) else value[:40])[:60]
