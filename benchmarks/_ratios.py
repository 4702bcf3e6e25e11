"""Ratios that a benchmark notes, for benchmarks/nightly.py to compare with those of earlier nights; and its options.

A ratio is dimensionless and of one run: two times taken in turns, a share, a count of wrong verdicts. Machines differ,
so an absolute time is none; ``yardstick_s`` makes one of a CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Literal, NoReturn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("", "tests/helpers", "tests/unit", "tests/truth")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
"""Environment of commands: the package that they run is this one."""

FILE = "TREXBENCH_RATIOS"
"""Variable with the name of the file that the notes are appended to, a line of JSON each."""
SEEDED = 0.02
"""Noise where all is drawn from a seed: the same to the last digit in every run, so that this leaves room for another
numpy's rounding; other seeds would differ by a half. A change beyond it is the product's, to be looked at."""
SKIPPED = 77
"""Exit code of a benchmark that cannot run here; its last line on standard error is the reason."""
TREXBENCH = (sys.executable, "-m", "trexbench")
Options = argparse.Namespace


def options(doc: str | None, **defaults: Any) -> Options:
    """A benchmark's options by their defaults; the docstring says what they mean.

    False: a flag. A type: of an option without a default; in a list: of one that takes several values.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        kind: dict[str, Any] = {"type": type(default), "default": default, "help": "default: %(default)s"}
        if default is False:
            kind = {"action": "store_true"}
        elif isinstance(default, list):
            kind = {"type": default[0], "nargs": "+", "action": "extend", "default": []}
        elif isinstance(default, type):
            kind = {"type": default}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    return parser.parse_args()


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
