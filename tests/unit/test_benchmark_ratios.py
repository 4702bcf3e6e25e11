"""Ratios of benchmarks beside those of earlier nights: benchmarks/nightly.py."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def nightly(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    yield importlib.import_module("nightly")
    for name in {"nightly", "_ratios"} - before:
        sys.modules.pop(name, None)


def noted(value: float, noise: float = 0.1, better: str = "lower") -> dict[str, Any]:
    return {"value": value, "noise": noise, "better": better}


@pytest.mark.parametrize(
    ("level", "note", "verdict"),
    [
        (None, noted(2.0), "new"),
        (2.0, noted(2.19), "as before"),
        (2.0, noted(2.21), "WORSE"),
        (2.0, noted(1.79), "better"),
        (2.0, noted(1.79, better="higher"), "WORSE"),
        (2.0, noted(2.21, better="higher"), "better"),
        (0.0, noted(0.0, noise=0), "as before"),
        (0.0, noted(0.01, noise=0), "WORSE"),
        (0.3, noted(0.1 + 0.2, noise=0), "as before"),
    ],
)
def test_a_ratio_is_judged_by_its_noise(
    nightly: ModuleType, level: float | None, note: dict[str, Any], verdict: str
) -> None:
    assert nightly.judge(level, note) == verdict


def test_many_small_losses_are_told(nightly: ModuleType) -> None:
    """A loss of 4 % a night, within a noise of 10 %."""
    known: dict[str, Any] = {}
    verdicts = []
    for night in range(8):
        outcome = nightly.Outcome(0, notes={"a / b": noted(1.04**night)})
        verdicts += [row.verdict for row in nightly.compare(outcome, known)]
        known = nightly.keep(outcome, known)
    assert verdicts[:3] == ["new", "as before", "as before"] and "WORSE" in verdicts
    assert known["a / b"]["last"] == 1.04**7 and len(known["a / b"]["level"]) <= nightly.LEVEL_NIGHTS


def test_a_ratio_that_is_not_noted_is_missing_unless_it_was_left_out(nightly: ModuleType) -> None:
    known = {"a / b": {**noted(1.0), "level": [1.0], "last": 1.0}}
    for outcome, verdict, kept in (
        (nightly.Outcome(0), "MISSING", {}),
        (nightly.Outcome(1), "MISSING", known),
        (nightly.Outcome(0, left_out={"a / b": "no b here"}), "left out: no b here", known),
        (nightly.Outcome(nightly.SKIPPED, reason="needs root"), "left out: needs root", known),
    ):
        (row,) = nightly.compare(outcome, known)
        assert (row.verdict, row.bad) == (verdict, verdict == "MISSING")
        assert nightly.keep(outcome, known) == kept


def test_a_night_is_compared_and_kept_on_request(tmp_path: Path) -> None:
    """The whole command, of a benchmark of its own: worse than the night before, skipped, and failed."""
    benchmark = (
        "import sys; from _ratios import note, skip\n"
        "value = float(open('value').read()); value < 9 or skip('no b here')\n"
        "note('a / b', value, noise=0.1); sys.exit(value == 3)\n"
    )
    for name in ("nightly.py", "_ratios.py"):
        (tmp_path / name).write_text((BENCHMARKS / name).read_text())
    (tmp_path / "startup.py").write_text(benchmark)

    def night(value: float, *options: str) -> tuple[int, str]:
        (tmp_path / "value").write_text(str(value))
        command = [sys.executable, "nightly.py", "startup", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout.splitlines()[-1]

    code, said = night(1.0, "--keep")
    assert code == 0 and said.split() == ["a", "/", "b", "-", "-", "1", "new"]
    code, said = night(2.0)
    assert code == 1 and said.split()[3:] == ["1", "1", "2", "WORSE"]
    assert json.loads((tmp_path / "ratios.json").read_text())["startup"]["a / b"]["level"] == [1.0]
    assert night(2.0, "--keep")[0] == 1 and night(2.1)[0] == 0
    assert night(3.0)[0] == 1 and night(0.5)[0] == 0
    code, said = night(9.0)
    assert code == 0 and said.endswith("left out: no b here")


def test_every_benchmark_is_in_a_night(nightly: ModuleType) -> None:
    scripts = {path.stem for path in BENCHMARKS.glob("[!_]*.py")} - {"nightly"}
    assert set(nightly.OPTIONS) == scripts
    assert set(json.loads(nightly.KEPT.read_text())) <= scripts
