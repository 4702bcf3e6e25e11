"""Find what fixes each tuned number of verdicts, histories and searches: tests that fail with its half or its double.

    python benchmarks/tuned_numbers.py [--only path.py] [--workers 2]

Every number in a module's constants is changed in a copy of the project, and the rooms' tests run until one fails. A
number that none of them fixes has no experiment: it can go, or be any other. An hour on two cores.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import cast

ROOT = Path(__file__).resolve().parents[1]
VERDICT = (
    "test_analysis.py", "test_knee.py", "test_settle.py", "test_losses.py", "test_skew.py", "test_directions.py",
    "test_one_truth.py", "test_zoom.py", "test_latency.py", "test_stream_losses.py", "test_slow_noise.py",
    "test_wrong_verdicts.py", "test_conditions.py", "test_ramp.py", "test_strategies.py", "test_runner.py",
    "test_analysis_truth.py", "test_search.py", "test_search_faults.py",
)  # fmt: skip
HISTORY = (
    "test_levels.py", "test_regression.py", "test_detect.py", "test_causes.py", "test_known.py", "test_differences.py",
    "test_compare.py", "test_compare_sets.py", "test_too_few_nights.py", "test_report_regress.py", "test_nights.py",
    "test_report_trends.py",
)  # fmt: skip
SEARCH = ("test_search.py", "test_search_faults.py", "test_mlrsearch.py", "test_slow_noise.py", *VERDICT)
TESTS = {"verdict": VERDICT, "history": HISTORY, "strategy": SEARCH}
"""Room below core/ -> the files of tests/unit that know its numbers, the likeliest first."""
NO_NUMBERS = ("VERSION", "LONGEST", "AT_ONCE_S", "ULPS")
"""Constants of formats, and of floating-point arithmetic."""
MOST_S = 600


@dataclass(frozen=True)
class Number:
    """A number in a constant. at: its place among the numbers of its statement; where: line and columns."""

    path: Path
    name: str
    at: int
    value: float
    where: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.name} {self.name}" + (f"[{self.at}]" if self.at else "")

    def changed(self, factor: float) -> str:
        """The module's source with another number."""
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        line, begin, end = self.where
        other = self.value * factor
        if isinstance(self.value, int):
            other = round(other) if round(other) != self.value else self.value + (1 if factor > 1 else -1)
        lines[line] = f"{lines[line][:begin]}{other!r}{lines[line][end:]}"
        return "".join(lines)


def numbers_of(path: Path) -> Iterator[Number]:
    """The numbers of a module's constants, without those that number versions or stand for text."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        calls = [ast.unparse(one.func) for one in ast.walk(node.value) if isinstance(one, ast.Call)]
        if not names[0].isupper() or set(names) & set(NO_NUMBERS) or not all(call.startswith("np.") for call in calls):
            continue
        numbers = [one for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
        numbers = [one for one in numbers if type(one.value) in (int, float) and one.value]
        for at, one in enumerate(numbers):
            named = len(names) == len(numbers)
            where = (one.lineno - 1, one.col_offset, one.end_col_offset or 0)
            yield Number(path, names[at] if named else names[0], 0 if named else at, cast(float, one.value), where)


def failing(number: Number, factor: float, copy: Path) -> str:
    """The first test that fails with this number changed; empty if all pass."""
    place = copy / number.path.relative_to(ROOT)
    place.write_text(number.changed(factor), encoding="utf-8")
    tests = [str(Path("tests", "unit", name)) for name in TESTS[number.path.parent.name]]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "-rfE", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            timeout=MOST_S,
        )
    except subprocess.TimeoutExpired:
        return "takes too long"
    finally:
        shutil.copy(number.path, place)
    names = [
        line.split()[1].rpartition("/")[2] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    ]
    return "" if done.returncode == 0 else (names[0] if names else f"exit code {done.returncode}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="modules whose path contains this")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args(arguments)
    paths = [path for room in TESTS for path in sorted((ROOT / "trexbench" / "core" / room).glob("*.py"))]
    numbers = [one for path in paths if asked.only in str(path) for one in numbers_of(path)]
    print(f"{len(numbers)} numbers", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        copies: Queue[Path] = Queue()
        for at in range(asked.workers):
            copy = Path(folder, str(at))
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", "results", ".ci"))
            copies.put(copy)

        def experiment(number: Number) -> tuple[str, str]:
            copy = copies.get()
            try:
                return failing(number, 0.5, copy), failing(number, 2.0, copy)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(asked.workers) as pool:
            free = 0
            for number, (halved, doubled) in zip(numbers, pool.map(experiment, numbers), strict=True):
                free += not (halved or doubled)
                print(f"{number!s:44}{number.value:<10g}halved: {halved or '-'}", flush=True)
                print(f"{'':54}doubled: {doubled or '-'}", flush=True)
    print(f"{len(numbers)} numbers, {free} of them fixed by no test")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
