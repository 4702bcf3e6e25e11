"""Amount of work in a run of the tests: a sample of each experiment for .ci/run, all of it for .ci/nightly.

``TREXBENCH_NIGHTLY`` in the environment asks for all: tests marked ``nightly`` and every example of the property tests.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import settings

NIGHTLY = bool(os.environ.get("TREXBENCH_NIGHTLY"))
MOST_EXAMPLES = 15
"""Examples of one property test outside of a night."""

Count = TypeVar("Count", int, float)


def scaled(nightly: Count, otherwise: Count) -> Count:
    """The first at night, else the second."""
    return nightly if NIGHTLY else otherwise


def examples(count: int) -> settings:
    """Settings of a property test with this many examples at night; otherwise ``MOST_EXAMPLES`` at most."""
    return settings(max_examples=scaled(count, min(count, MOST_EXAMPLES)))
