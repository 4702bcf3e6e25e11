"""All benchmarks at a size for a night, and their ratios beside those of the nights before.

    python benchmarks/nightly.py [--keep] [NAME ...]

benchmarks/ratios.json has of each ratio the first nights of its level, five at most, and the last night. A ratio is
compared with the median of its level: by more than its noise it is better or worse. Levels do not move with the
nights, so that many small losses add up to one that is told. Nothing is written without --keep: a ratio that is as
before joins its level, one that is not begins a new level, and one that its benchmark notes no more is forgotten.

The noise of each ratio is from runs of the same state on two cores, idle and with other work beside (lowest to highest
seen): --help / an empty Python 4.5 to 4.9 (13 runs); checkpoint's CPU 0.88 to 1.02, handing on 0.72 to 1.18, against a
plain append 2.4 to 3.1 (12 runs); embedded / iperf3 of one stream 0.73 to 1.37, of four 1.3 to 2.6, zerocopy 0.8 to
1.9, read / unread 0.86 to 1.37 (7 runs); index rebuilt / json.load 6.6 to 9.3, derived anew 0.064 to 0.080, opened
unchanged 0.022 to 0.029 (5 runs); the harness 0.16 to 0.26 and 1.2 to 1.5, the page 141 to 151, loaded / all plots 0.47
to 0.60 (3 runs); windows within 0.5 % 0.62 to 0.97 (2 runs, idle). What is drawn from a seed was the same to the last
digit.

Exit code 1: a ratio is worse or missing, or a benchmark failed or missed an aim of its own. What cannot run here is
skipped, with the reason. --list prints the benchmarks' names.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _ratios import FILE, SKIPPED

HERE = Path(__file__).resolve().parent
KEPT = HERE / "ratios.json"
LEVEL_NIGHTS = 5
EXACT = 1e-9
"""Relative difference of equal floating-point results of two machines, at most."""
OPTIONS = {
    "checkpoint": "",
    "detection": "--quick --ours",
    "engine_cores": "",
    "engine_fidelity": "",
    "engine_speed": "",
    "fleet_faults": "--faults 16 --cells 1000",
    "harness_cpu": "--seconds 8",
    "laws": "--runs 8",
    "report": "",
    "search": "--only search MLRsearch",
    "startup": "",
    "store": "--runs 400",
    "suite_overhead": "--cells 8",
    "tcp": "--repeats 3 --seconds 1",
    "truth": "--runs 40",
    "verdicts": "",
    "vm_faults": "--faults 6",
    "years": "--sites 1 --years 5 --s3",
}
"""Benchmark -> what makes it last two minutes at most on two cores."""
History = dict[str, Any]
"""History of one ratio: better, noise, level (values), last."""


@dataclass
class Outcome:
    """The result of one benchmark. notes: name of a ratio -> its note; left_out: name -> reason."""

    code: int
    reason: str = ""
    seconds: float = 0.0
    notes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    ratio: str
    level: float | None
    last: float | None
    now: float | None
    verdict: str

    @property
    def bad(self) -> bool:
        return self.verdict.isupper()


def compare(outcome: Outcome, known: Mapping[str, History]) -> Iterator[Row]:
    """Each ratio that was noted, left out or is known."""
    for name in sorted({*outcome.notes, *outcome.left_out, *known}):
        history = known.get(name)
        level, last = (statistics.median(history["level"]), history["last"]) if history else (None, None)
        if name in outcome.notes:
            note = outcome.notes[name]
            yield Row(name, level, last, note["value"], judge(level, note))
        elif name in outcome.left_out or outcome.code == SKIPPED:
            yield Row(name, level, last, None, f"left out: {outcome.left_out.get(name, outcome.reason)}")
        else:
            yield Row(name, level, last, None, "MISSING")


def judge(level: float | None, note: Mapping[str, Any]) -> str:
    if level is None:
        return "new"
    change = note["value"] - level
    if abs(change) <= (note["noise"] + EXACT) * abs(level):
        return "as before"
    return "better" if (change < 0) == (note["better"] == "lower") else "WORSE"


def keep(outcome: Outcome, known: Mapping[str, History]) -> dict[str, History]:
    """The histories with this night."""
    kept = {name: history for name, history in known.items() if name in outcome.left_out or outcome.code}
    for row in compare(outcome, known):
        if row.now is None:
            continue
        level = known[row.ratio]["level"] if row.verdict == "as before" else []
        note = outcome.notes[row.ratio]
        kept[row.ratio] = {
            "better": note["better"],
            "noise": note["noise"],
            "level": [*level, row.now][:LEVEL_NIGHTS],
            "last": row.now,
        }
    return kept


def run(name: str) -> Outcome:
    """Run one benchmark, which prints what it always prints."""
    begun_s = time.monotonic()
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
        command = [sys.executable, str(HERE / f"{name}.py"), *OPTIONS[name].split()]
        environment = {**os.environ, FILE: file.name}
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
        sys.stderr.write(done.stderr)
        outcome = Outcome(done.returncode, "".join(done.stderr.splitlines()[-1:]), time.monotonic() - begun_s)
        for line in map(json.loads, file):
            if "reason" in line:
                outcome.left_out[line["name"]] = line["reason"]
            else:
                outcome.notes[line["name"]] = line
    return outcome


def figure(value: float | None) -> str:
    return f"{'-' if value is None else format(value, '.4g'):>10}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="these benchmarks alone")
    parser.add_argument("--keep", action="store_true", help="write this night into the file")
    parser.add_argument("--file", type=Path, default=KEPT, help="the file of the nights (benchmarks/ratios.json)")
    parser.add_argument("--list", action="store_true", help="print the benchmarks' names, and run none")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in OPTIONS]:
        parser.error(f"no benchmark {unknown[0]!r}: {', '.join(OPTIONS)}")
    if asked.list:
        print(*OPTIONS, sep="\n")
        return 0
    nights: dict[str, dict[str, History]] = json.loads(asked.file.read_text()) if asked.file.exists() else {}
    table, failed = [f"{'ratio':<66}{'level':>10}{'last':>10}{'now':>10}  verdict"], False
    for name in asked.names or OPTIONS:
        print(f"\n== {name} {OPTIONS[name]}".rstrip(), flush=True)
        outcome = run(name)
        known = nights.get(name, {})
        missed = outcome.code not in (0, SKIPPED)
        words = f"FAILED: exit code {outcome.code}; an aim is missed" if missed else "done"
        words = f"skipped: {outcome.reason}" if outcome.code == SKIPPED else words
        table.append(f"{name}, {outcome.seconds:.0f} s: {words}")
        for row in compare(outcome, known):
            table.append(f"  {row.ratio:<64}{figure(row.level)}{figure(row.last)}{figure(row.now)}  {row.verdict}")
            failed |= row.bad
        failed |= missed
        if asked.keep:
            nights[name] = keep(outcome, known)
            asked.file.write_text(json.dumps({**nights}, indent=1, sort_keys=True) + "\n")
    print("\n" + "\n".join(table))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
