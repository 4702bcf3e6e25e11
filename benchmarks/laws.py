"""Count how often each law of the verdict and of histories holds, in random worlds that no test draws.

    python benchmarks/laws.py [--runs 60] [--seed 100000] [--only settle]

The laws are the tests of tests/unit that take a seed; here they get others, and what they assert is counted. Then the
shares of intervals that hold the mean limit of a router whose limit wanders by 1 %, and forgets within a time.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib import import_module
from math import exp
from multiprocessing import get_context
from typing import Any

import numpy as np
from _ratios import SEEDED, note, options

MODULES = ("test_settle", "test_search", "test_levels")
MEMORIES_S = (0.05, 2.0, 10.0)
PLANS: dict[str, dict[str, Any]] = {
    "saturate for 30 s": {"kind": "saturate", "hold_s": 30.0, "warmup_s": 2.0},
    "ramp of 60 s, hold of 30 s": {"ramp_s": 60.0, "hold_s": 30.0, "warmup_s": 5.0, "confirm_s": 0.0},
    "ramp of 600 s, hold of 60 s": {"ramp_s": 600.0, "hold_s": 60.0, "warmup_s": 5.0, "confirm_s": 0.0},
    "search": {"kind": "search"},
}


def laws() -> Iterator[tuple[str, str]]:
    """The tests of a seed alone: module and name."""
    for module in MODULES:
        for name, test in inspect.getmembers(import_module(module), inspect.isfunction):
            if name.startswith("test_") and list(inspect.signature(_law(test)).parameters) == ["seed"]:
                yield module, name


def _law(test: Callable[..., None]) -> Callable[..., None]:
    """Return the law of a test that counts how often it holds, and any other test as it is."""
    law: Callable[..., None] = getattr(test, "law", test)
    return law


def holds(module: str, name: str, seed: int) -> bool:
    try:
        _law(getattr(import_module(module), name))(seed)
    except (AssertionError, ValueError):  # ValueError: of an unpacking, which asserts a number
        return False
    return True


def covered(plan: str, memory_s: float, seed: int) -> tuple[int, int]:
    """One run of a wandering router: whether the interval holds the truth, and whether there is one."""
    slow: Callable[..., tuple[int, int]] = import_module("test_settle").covered
    truth = 1.0 if PLANS[plan].get("kind") == "saturate" else knee_share(memory_s)
    return slow(memory_s, seeds=(seed,), truth=truth, **PLANS[plan])


@cache
def knee_share(memory_s: float, threshold: float = 1e-3) -> float:
    """Return the rate at which half of the windows lose more than the threshold, as a share of the mean limit.

    Nothing buffers frames here, so a limit that varies within a window loses some at rates that its mean would carry.
    """
    sample_s, window = 0.1, 10
    rng, kept = np.random.default_rng(1), exp(-sample_s / memory_s)
    off, limits = rng.normal(0, 0.01, 20_001), list[Any]()
    for _ in range(window):
        limits.append(1 + off)
        off = kept * off + (1 - kept**2) ** 0.5 * rng.normal(0, 0.01, len(off))
    low, high = 0.9, 1.1
    for _ in range(20):
        rate = (low + high) / 2
        lost = np.mean([np.maximum(0, 1 - one / rate) for one in limits], axis=0)
        low, high = (rate, high) if np.median(lost) <= threshold else (low, rate)
    return low


def main() -> int:
    asked = options(__doc__, runs=60, seed=100_000, only="")
    seeds, every, all_held = range(asked.seed, asked.seed + asked.runs), 0, 0
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        for module, name in laws():
            if asked.only in f"{module} {name}":
                held = sum(pool.map(partial(holds, module, name), seeds, chunksize=4))
                every, all_held = every + len(seeds), all_held + held
                print(f"{name.removeprefix('test_').replace('_', ' '):100}{held:5} of {len(seeds)}", flush=True)
        for plan in PLANS:
            for memory_s in MEMORIES_S if asked.only in f"noise {plan}" else ():
                found = list(pool.map(partial(covered, plan, memory_s), seeds, chunksize=4))
                held, count = (sum(one[at] for one in found) for at in (0, 1))
                words = f"{plan}: the limit wanders by 1 % and forgets within {memory_s:g} s"
                print(f"{words:100}{held:5} of {count}", flush=True)
    if not asked.only:
        note("laws that held", all_held / every, noise=SEEDED, better="higher")
    return 0


if __name__ == "__main__":
    sys.exit(main())
