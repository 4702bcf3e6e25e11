"""Facts that were read back from a DUT, one a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..clean import clean

DEEPEST, LONGEST = 3, 400


def facts_of(values: Any, before: str = "", depth: int = 1) -> Iterator[tuple[str, str]]:
    """Nested facts as ``interfaces / ix0 / mtu``, with their values; deeper levels as JSON."""
    for key, value in values.items() if isinstance(values, Mapping) else ():
        name = f"{before}{clean(key, 100)}"
        if isinstance(value, Mapping) and value and depth < DEEPEST:
            yield from facts_of(value, f"{name} / ", depth + 1)
        else:
            text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
            yield name, clean(text, LONGEST)
