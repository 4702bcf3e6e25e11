"""Text of documents, which may hold anything, as text that may be shown."""

from __future__ import annotations

import unicodedata
from typing import Any

LONGEST = 2000
_SPACES = {ord(space): " " for space in "\t\n\r\v\f\u2028\u2029"}


def clean(value: Any, most: int = LONGEST) -> str:
    """One line, not too long, without control characters, half ones, and those that turn the writing around."""
    text = str(value)[: most + 1].translate(_SPACES)
    text = text if text.isascii() and text.isprintable() else "".join(map(_visible, text))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _visible(letter: str) -> str:
    return "\ufffd" if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn") else letter
