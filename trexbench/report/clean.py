"""Text of documents, which may hold anything, made safe to display."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

LONGEST = 2000
_SPACES = {ord(space): " " for space in "\t\n\r\v\f\u2028\u2029"}
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn")


def clean(value: Any, most: int = LONGEST) -> str:
    """One line of at most ``most`` characters, without control characters, surrogates and bidirectional marks."""
    text = str(value)[: most + 1].translate(_SPACES)
    if not (text.isascii() and text.isprintable()):
        text = "".join("\ufffd" if unicodedata.category(letter) in _INVISIBLE else letter for letter in text)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def escape_markdown(text: Any, most: int = LONGEST) -> str:
    """Text without meaning to markdown or HTML: no emphasis, link, mention, tag or table."""
    escaped = html.escape(re.sub(r"[\\`*_\[\]#~]", r"\\\g<0>", clean(text, most)), quote=False)
    for sign, harmless in (("|", "&#124;"), ("!", "&#33;"), ("@", "@\u200b"), ("://", ":\u200b//")):
        escaped = escaped.replace(sign, harmless)
    return f"\\{escaped}" if escaped[:1] in ("-", "+", "=") else escaped
