"""Ratios that a benchmark notes, for benchmarks/nightly.py to compare with those of earlier nights.

A ratio is dimensionless and of one run: two times taken in turns, a share, a count of wrong verdicts. Machines differ,
so an absolute time is none; ``yardstick_s`` makes one of a CPU time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Literal, NoReturn

FILE = "TREXBENCH_RATIOS"
"""Variable with the name of the file that the notes are appended to, a line of JSON each."""
SEEDED = 0.02
"""Noise where all is drawn from a seed: the same to the last digit in every run, so that this leaves room for another
numpy's rounding; other seeds would differ by a half. A change beyond it is the product's, to be looked at."""
SKIPPED = 77
"""Exit code of a benchmark that cannot run here; its last line on standard error is the reason."""


def note(name: str, value: float, *, noise: float, better: Literal["lower", "higher"] = "lower") -> None:
    """Note a ratio. noise: the relative change that means nothing, of runs with nothing changed or of other seeds."""
    _append({"name": name, "value": float(value), "noise": noise, "better": better})


def leave_out(name: str, reason: str) -> None:
    """Note that a ratio cannot be had here."""
    _append({"name": name, "reason": reason})


def skip(reason: str) -> NoReturn:
    """Exit where none of the benchmark can run."""
    print(reason, file=sys.stderr)
    raise SystemExit(SKIPPED)


def yardstick_s() -> float:
    """CPU seconds of plain Python and JSON on this machine: the least of five."""
    document = {"samples": [{"pps": number * 1.5, "name": f"port {number}"} for number in range(2000)]}
    times = []
    for _ in range(5):
        begun_s = time.process_time()
        for _ in range(10):
            sum(len(one["name"]) for one in json.loads(json.dumps(document))["samples"])
        times.append(time.process_time() - begun_s)
    return min(times)


def _append(line: dict[str, object]) -> None:
    if path := os.environ.get(FILE):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
