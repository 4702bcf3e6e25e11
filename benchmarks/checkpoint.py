"""The cost of keeping a sample while a run goes on, early and late in the run.

    python benchmarks/checkpoint.py [--samples 200] [--runs 5] [--results DIRECTORY]

A run of 10 000 samples on two ports is handed to the writer as the measuring loop does it. Around samples 10, 1000 and
10 000 three times are taken, medians in microseconds: until the loop goes on (handed on), until the line is in the
file (kept), and what a plain append of the same line to another file takes. CPU: of the whole process, per sample.
Of five such runs the median, as a place is passed in a second and another process may have the core just then.

Aim: handing on takes under 50 us, and sample 10 000 costs at most 1.5 times what sample 10 does.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from _ratios import note, options
from runs import make_plan, make_result

from trexbench.core.load.sample import Phase, Sample, stored
from trexbench.core.result import Status
from trexbench.core.strategy.base import LoadStep
from trexbench.results.document import encode_line
from trexbench.results.journal import Journal
from trexbench.results.store import RunWriter

PLACES = (10, 1000, 10_000)
AIM_US, AIM_TIMES = 50.0, 1.5
STEP = LoadStep(Phase.RAMP, {}, 1.0)


class Disk:
    """Writes of the journal, and when the last one was done."""

    def __init__(self) -> None:
        self.lines, self.done_s = 0, 0.0

    def write(self, file: int, data: bytes) -> int:
        written = os.write(file, data)
        self.done_s = time.perf_counter()
        self.lines += data.count(b"\n")
        return written

    def wait_for(self, lines: int) -> None:
        while self.lines < lines:
            time.sleep(0.001)


def main() -> int:
    chosen = options(__doc__, samples=200, runs=5, results=Path)
    runs = [run_of_all_places(chosen.samples, chosen.results) for _ in range(chosen.runs)]
    print(f"{'sample':>8}{'handed on':>12}{'kept':>8}{'plain append':>15}{'CPU':>8}   (us)")
    medians = {}
    for place in PLACES:
        columns = zip(*(run[place] for run in runs), strict=True)
        medians[place] = tuple(statistics.median(column) for column in columns)
    for place, figures in medians.items():
        widths = zip(figures, (12, 8, 15, 8), strict=True)
        print(f"{place:>8}" + "".join(f"{value:>{width}.0f}" for value, width in widths))
    first, last = medians[PLACES[0]], medians[PLACES[-1]]
    note("sample 10 000 / sample 10, handed on", last[0] / first[0], noise=0.4)
    note("sample 10 000 / sample 10, CPU", last[3] / first[3], noise=0.3)
    note("handed on / a plain append", last[0] / last[2], noise=0.4)
    return int(last[0] > AIM_US or last[3] > AIM_TIMES * first[3])


def run_of_all_places(count: int, directory: Path | None) -> dict[int, tuple[float, ...]]:
    """The times at each of PLACES in one run of 10 000 samples."""
    run, disk = make_result(make_plan(bidir=True)), Disk()
    figures: dict[int, tuple[float, ...]] = {}
    with tempfile.TemporaryDirectory(prefix="trexbench-checkpoint-", dir=directory) as folder:
        writer = RunWriter(Path(folder), print, lambda path, name: Journal(path, name, disk.write))
        writer.begin(replace(run, samples=(), status=Status.RUNNING, finished=None))
        samples: list[Sample] = []
        for place in PLACES:
            while len(samples) < place:
                samples.append(replace(run.samples[-1], t_s=float(len(samples))))
            writer.sampled(samples, STEP)
            disk.wait_for(1 + len(samples))
            figures[place] = measure(writer, disk, samples, count, Path(folder) / "plain")
        begun_s = time.perf_counter()
        writer.end(replace(run, samples=tuple(samples)))
    print(f"the whole document of {len(samples)} samples, analysed: {time.perf_counter() - begun_s:.2f} s, once")
    return figures


def measure(writer: RunWriter, disk: Disk, samples: list[Sample], count: int, beside: Path) -> tuple[float, ...]:
    """Medians of handing on, keeping, a plain append, and CPU per sample; in microseconds."""
    rows = []
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(count):
        samples.append(replace(samples[-1], t_s=float(len(samples))))
        cpu_s, begun_s = time.process_time(), time.perf_counter()
        writer.sampled(samples, STEP)
        handed_s = time.perf_counter()
        disk.wait_for(1 + len(samples))
        cpu_s = time.process_time() - cpu_s
        line = encode_line({"sample": stored(samples[-1])}) + b"\n"
        plain_s = time.perf_counter()
        os.write(file, line)
        plain_s = time.perf_counter() - plain_s
        rows.append((handed_s - begun_s, disk.done_s - begun_s, plain_s, cpu_s))
    os.close(file)
    return tuple(1e6 * statistics.median(column) for column in zip(*rows, strict=True))


if __name__ == "__main__":
    sys.exit(main())
