"""The speed of making the index of many stored runs, and the time until a verb answers from it.

    python benchmarks/store.py [--runs 10000] [--results DIRECTORY]

One run of VPP's twin, with its looks at the DUT, is measured through the whole harness; its document is then stored so
many times, as nights of a suite of 40 cells: names, dates and rates differ, samples are the same. 10 000 runs take
3.3 GB in a temporary directory. Beside it: json.load of the same files (of the first 500), and how fast lines are
derived anew where another version of the analysis made the stored ones (of the first 100).

Aim: index rebuilt at 500 runs/s on one core; `results list` and `regress` in under 2 s.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from _ratios import ROOT, TREXBENCH, note, options

from trexbench.core.history.rows import Figure, RunRow
from trexbench.results import document
from trexbench.results.document import read_sealed, seal
from trexbench.results.index import INDEX_FILE, open_index
from trexbench.results.store import load_rows

SAMPLES, AIM_RUNS_S, AIM_S = 660, 500.0, 2.0
DUTS = ("pfsense", "linux", "vpp-1q", "vpp-2q", "vpp-3q")
MODES = tuple(f"{flows}-{size}" for flows in ("var2", "1flow") for size in ("1514b", "imix", "64b", "128b"))
CELLS = [(dut, mode) for dut in DUTS for mode in MODES]
MARK, END = b'\n "samples": [\n', b',\n "derived": '
PLAIN_RUNS, DERIVED_RUNS, ROUNDS = 500, 100, 5


def measure_one(place: Path) -> Path:
    """The document of a simulated run."""
    argv = ["ramp", "--dut", "netgate-vpp", "--mode", "64b", "--bidir", "--sim", "--speedup", "10000"]
    argv += ["--results", str(place), "--quiet", "--no-picture"]
    run_verb(argv)
    return next(place.glob("*/*/*.json"))


def run_verb(argv: list[str], codes: tuple[int, ...] = (0,)) -> float:
    """Seconds that a whole command takes."""
    begun = time.perf_counter()
    done = subprocess.run([*TREXBENCH, *argv], cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr[-500:]}")
    return time.perf_counter() - begun


class Template:
    """A document whose names, dates and rates can be put in; its samples stay as they are."""

    def __init__(self, document: Path) -> None:
        data = document.read_bytes()
        rows = read_sealed(data)
        assert rows is not None
        at, end = data.index(MARK), data.rindex(END)
        self._row, self._rate, self._tail = rows[0], rows[0].figures["total_pps"].value, data[at:end]
        head: dict[str, Any] = json.loads(data[:at].rstrip(b",") + b"}")
        self.samples = self._tail.count(b'{"phase":')
        head |= {"id": "@ID@", "started": "@STARTED@", "simulated": False}
        head["dut"]["name"] = "@DUT@"
        head["command"] |= {"mode": "@MODE@", "suite": "@SUITE@", "night": "@NIGHT@"}
        self._head = json.dumps(head, indent=1)[:-2]

    def write(
        self, results: Path, number: int, rng: random.Random, first: date = date(2024, 1, 1), suite: str = "benchmark"
    ) -> RunRow:
        """Write the document of a cell of a night, counted from the first; its row."""
        night = str(first + timedelta(days=number // len(CELLS)))
        dut, mode = CELLS[number % len(CELLS)]
        clock = f"{number % len(CELLS) // 4:02d}:{number % 4 * 15:02d}:00"
        started = f"{night}T{clock}Z"
        head = self._head.replace("@ID@", f"{number}").replace("@STARTED@", started)
        head = head.replace("@SUITE@", suite).replace("@DUT@", dut).replace("@MODE@", mode).replace("@NIGHT@", night)
        path = f"{night}/{dut}/{clock.replace(':', '')}-{mode}-bidir.json"
        row = replace(
            self._row,
            id=f"{number}",
            started=started,
            cell=replace(self._row.cell, dut=dut, mode=mode, simulated=False),
            suite=suite,
            night=night,
            figures={**self._row.figures, "total_pps": Figure(self._rate * rng.gauss(1, 0.005))},
        )
        (results / path).parent.mkdir(parents=True, exist_ok=True)
        (results / path).write_bytes(seal(head.encode() + b"," + self._tail, [row]))
        return replace(row, path=path)


def timed(work: Callable[[], Any], rounds: int = 1) -> tuple[float, float]:
    """Median of wall and of CPU seconds."""
    walls, cpus = [], []
    for _ in range(rounds):
        begun, busy = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - begun)
        cpus.append(time.process_time() - busy)
    return statistics.median(walls), statistics.median(cpus)


def load_all(files: list[Path]) -> None:
    for file in files:
        json.loads(file.read_bytes())


def derive_all(files: list[Path]) -> None:
    """Derive lines anew, as another version of the analysis has to."""
    document.ANALYSIS_VERSION += 1  # type: ignore[attr-defined]
    for file in files:
        load_rows(file, "x")
    document.ANALYSIS_VERSION -= 1  # type: ignore[attr-defined]


def rows_of(results: Path, expected: int) -> None:
    index = open_index(results, lambda _: None)
    rows, problems = index.rows(), index.problems()
    if len(rows) != expected or problems:
        raise SystemExit(f"{len(rows)} rows of {expected} runs, {len(problems)} problems {problems[:1]}")


def main() -> int:
    chosen = options(__doc__, runs=10_000, results=Path)
    runs: int = chosen.runs
    with tempfile.TemporaryDirectory(prefix="trexbench-store-", dir=chosen.results) as folder:
        template = Template(measure_one(Path(folder) / "one"))
        size = next((Path(folder) / "one").glob("*/*/*.json")).stat().st_size
        if shutil.disk_usage(folder).free < 1.5 * runs * size:
            raise SystemExit(f"{runs} runs take {runs * size / 1e9:.1f} GB, which {folder} has not: fewer --runs")
        results, rng = Path(folder) / "results", random.Random(1)
        for number in range(runs):
            template.write(results, number, rng)
        return report(results, runs, template.samples, size)


def report(results: Path, runs: int, samples: int, size: int) -> int:
    files = sorted(results.glob("*/*/*.json"))[:PLAIN_RUNS]
    plain, plain_cpu = timed(lambda: load_all(files))
    anew, anew_cpu = timed(lambda: derive_all(files[:DERIVED_RUNS]))
    build, build_cpu = timed(lambda: rows_of(results, runs))
    again, again_cpu = timed(lambda: rows_of(results, runs), ROUNDS)
    place = ["--results", str(results)]
    listed = statistics.median(run_verb(["results", "list", *place]) for _ in range(ROUNDS))
    asked = statistics.median(
        run_verb(["results", "query", *place, "select dut, mode, avg(total_pps) from runs group by 1, 2"])
        for _ in range(ROUNDS)
    )
    regressed = statistics.median(run_verb(["regress", *place], (0, 3, 4)) for _ in range(ROUNDS))
    rate, rate_cpu = runs / build, runs / build_cpu
    print(f"{runs} runs of {samples} samples, {size / 1e3:.0f} kB each; aim for {SAMPLES} samples")
    print(f"json.load        {len(files) / plain:7.0f} runs/s ({len(files) / plain_cpu:.0f} per CPU second)")
    print(f"index rebuilt    {rate:7.0f} runs/s ({rate_cpu:.0f} per CPU second), {build:.1f} s in all,", end=" ")
    print(f"{rate_cpu * plain_cpu / len(files):.1f} times as fast as json.load; aim {AIM_RUNS_S:g} runs/s")
    print(f"derived anew     {min(DERIVED_RUNS, len(files)) / anew:7.0f} runs/s, after a change of the analysis")
    print(f"nothing changed  {again:7.3f} s to open the index and have all rows; {INDEX_FILE}", end=" ")
    print(f"{(results / INDEX_FILE).stat().st_size / 1e6:.1f} MB")
    for name, seconds in (("results list", listed), ("results query", asked), ("regress", regressed)):
        print(f"{name:<16} {seconds:7.2f} s, the whole command; aim {AIM_S:g} s")
    note("index rebuilt / json.load, speed", rate_cpu * plain_cpu / len(files), noise=0.3, better="higher")
    derived_speed = min(DERIVED_RUNS, len(files)) / anew_cpu * plain_cpu / len(files)
    note("derived anew / json.load, speed", derived_speed, noise=0.2, better="higher")
    note("index opened unchanged / rebuilt, CPU", again_cpu / build_cpu, noise=0.3)
    return int(rate < AIM_RUNS_S or max(listed, regressed) > AIM_S)


if __name__ == "__main__":
    sys.exit(main())
