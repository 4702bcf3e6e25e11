"""Several things go wrong at once beside twins of known limits; benchmarks/verdicts.py does the same at length."""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from faulty import compare, random_mixed

RUNS = (*range(120), 153, 396, 409, 497)
"""The last four: a path that loses, of which few windows of the ramp lie below the knee."""


def judged(seed: int) -> list[tuple[int, str, str]]:
    mixed = random_mixed(random.Random(f"1 {seed}"), seed)
    return [
        (seed, str(one.direction), compare(one, *mixed.limit_of(one.direction)))
        for one in mixed.measure().analysis.directions
    ]


def test_nothing_that_goes_wrong_is_laid_to_the_dut() -> None:
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        found = [one for several in pool.map(judged, RUNS) for one in several]
    assert not [one for one in found if one[2] == "WRONG"]
    assert sum(one[2] == "right" for one in found) > 0.95 * len(found)
