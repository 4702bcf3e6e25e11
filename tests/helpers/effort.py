"""Amount of work in a run of the tests: a sample of each experiment for .ci/run, all of it for .ci/nightly.

``TREXBENCH_NIGHTLY`` in the environment asks for all: tests marked ``nightly`` and every example of the property tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from hypothesis import settings

NIGHTLY = bool(os.environ.get("TREXBENCH_NIGHTLY"))
MOST_EXAMPLES = 10
"""Examples of one property test outside of a night."""

Count = TypeVar("Count", int, float)
Row = TypeVar("Row")


def scaled(nightly: Count, otherwise: Count) -> Count:
    """The first at night, else the second."""
    return nightly if NIGHTLY else otherwise


def by_day(count: int, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a table of tests that stand for it by day, which are the first; at night all."""
    return [*rows][: None if NIGHTLY else count]


def examples(count: int) -> settings:
    """Settings of a property test with this many examples at night; otherwise ``MOST_EXAMPLES`` at most."""
    return settings(max_examples=scaled(count, min(count, MOST_EXAMPLES)))


LEAST_HELD = 0.95
"""Share of random worlds in which a law of noisy figures must hold: a false alarm by chance breaks it, too."""


def lawful(first: int, count: int) -> Callable[[Callable[[int], None]], Callable[[], None]]:
    """Make one test of a law that takes a seed: it holds for LEAST_HELD of so many seeds from the first on.

    The law itself is the test's ``law``, for benchmarks/laws.py.
    """

    def test_of(law: Callable[[int], None]) -> Callable[[], None]:
        def test() -> None:
            broken = {}
            for seed in range(first, first + count):
                try:
                    law(seed)
                except (AssertionError, ValueError) as error:  # ValueError: of an unpacking, which asserts a number
                    broken[seed] = error
            assert len(broken) <= (1 - LEAST_HELD) * count, broken

        test.__doc__ = law.__doc__
        test.law = law  # type: ignore[attr-defined]
        return test

    return test_of
