"""Who is blamed when several things go wrong at once, over random simulated routers.

    python benchmarks/verdicts.py [--faults 300] [--seed 1] [--only 153 396] [--show]

Every run is a whole measurement through the simulating engine on a held clock, with stalls, a cable that loses, frames
that come twice, a receiver that loses silently, a weak sender and counters of different instants mixed in at random.
Wrong is a direction laid to the DUT that something else ended, or far below the DUT's knee (aim: none); a bound is a
direction that the DUT ended and that is not laid to it. --show: name every direction that is not right.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from _ratios import SEEDED, note, options
from faulty import Mixed, compare, random_mixed

from trexbench.core.verdict.parts import DirectionResult


def judge(number: int, seed: int) -> list[tuple[str, str, str]]:
    """Judge each direction: what ended it, how the verdict compares, and in words what was measured."""
    mixed = random_mixed(random.Random(f"{seed} {number}"), number)
    found = []
    for one in mixed.measure().analysis.directions:
        limit, pps = mixed.limit_of(one.direction)
        found.append((limit.value, compare(one, limit, pps), _words(number, mixed, one, pps)))
    return found


def _words(number: int, mixed: Mixed, one: DirectionResult, pps: float) -> str:
    plan, tester = mixed.twin.plan, mixed.twin.tester
    said = f"{one.limit.value} {one.low_pps or 0:.0f} {one.maximum_pps:.0f} {one.high_pps or 0:.0f}"
    return (
        f"{number} {one.direction}: {said}, truth {pps:.0f}; {mixed.faults}; noise {mixed.twin.noise:.4f}, skew "
        f"{tester.skew_s:.5f}, rx {mixed.receiver_pps}, tx {mixed.sender_pps}; loss "
        f"{plan.loss_threshold}"
    )


def main() -> int:
    args = options(__doc__, faults=300, seed=1, only=[int], show=False)
    numbers = args.only or range(args.faults)
    counts: Counter[tuple[str, str]] = Counter()
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        for found in pool.map(judge, numbers, [args.seed] * len(numbers), chunksize=4):
            for limit, verdict, words in found:
                counts[limit, verdict] += 1
                if verdict == "WRONG" or (args.show and verdict != "right"):
                    print(f"  {limit}: {verdict}: {words}", flush=True)
    verdicts = ("right", "outside", "a bound", "WRONG")
    print(f"{'ended by':16}" + "".join(f"{name:>10}" for name in verdicts))
    for limit in sorted({limit for limit, _ in counts}):
        print(f"{limit:16}" + "".join(f"{counts[limit, name]:10}" for name in verdicts))
    shares = Counter[str]()
    for (_, verdict), count in counts.items():
        shares[verdict] += count
    note("wrong", shares["WRONG"] / shares.total(), noise=0)
    note("right", shares["right"] / shares.total(), noise=SEEDED, better="higher")
    return 1 if any(verdict == "WRONG" for _, verdict in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
