"""The time of ``trexbench --help`` beside that of a Python that does nothing, run in turns.

    python benchmarks/startup.py

Aim: under 0.3 s.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time

from _ratios import ROOT, note

ROUNDS, AIM_S = 15, 0.3


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def took(code: str) -> tuple[float, float]:
    """Wall and CPU seconds."""
    begun, before = time.perf_counter(), children_cpu_s()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun, children_cpu_s() - before


def main() -> int:
    helped, nothing = [], []
    for _ in range(ROUNDS):
        helped.append(took("import sys; sys.argv[1:] = ['--help']; from trexbench.cli import main; main()"))
        nothing.append(took("pass"))
    (one, cpu), (other, nothing_cpu) = (map(statistics.median, zip(*each, strict=True)) for each in (helped, nothing))
    print(
        f"trexbench --help {one:.3f} s, an empty Python {other:.3f} s: {one / other:.1f} times as long; aim {AIM_S} s"
    )
    note("--help / an empty Python, CPU", cpu / nothing_cpu, noise=0.2)
    return int(one > AIM_S)


if __name__ == "__main__":
    sys.exit(main())
