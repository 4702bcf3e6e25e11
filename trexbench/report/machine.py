"""A run for other programs: its document as JSON."""

from __future__ import annotations

import json

from ..core.result import RunResult, to_document


def to_json(result: RunResult, with_samples: bool = False) -> str:
    """The run document, its analysis derived anew; the raw samples only on request, for they are most of it."""
    return json.dumps(to_document(result, with_samples), indent=1, default=str)
