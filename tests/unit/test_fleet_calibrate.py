"""Calibrations of testers of which a part fails, or says little."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nights import make_row

from trexbench.config.suite import AS_IT_IS
from trexbench.core.errors import BenchError
from trexbench.core.history.cell import Cell
from trexbench.core.history.testers import find_ratios
from trexbench.fleet.calibrate import RESUMED_S, FleetComparison, _remove_old
from trexbench.fleet.leases import DutLeased
from trexbench.fleet.schedule import FleetNight
from trexbench.fleet.task import NO_FLEET, CellOrder
from trexbench.lock import locked
from trexbench.session.options import Setup


def comparison(said: list[str], warned: list[str]) -> FleetComparison:
    """A comparison of six rounds."""
    options: Any = SimpleNamespace(say=said.append, output=SimpleNamespace(warn=warned.append))
    found = FleetComparison(FleetNight("lab", NO_FLEET), (), options, 6)
    found._results, found._runs = Path("results"), []
    return found


def test_a_dut_that_another_has_is_waited_for() -> None:
    said, keys = list[str](), list[str]()

    def submit(*_: object, key: str, **__: object) -> Any:
        keys.append(key)
        raised = DutLeased("a is leased by t9") if len(keys) == 1 else BenchError("no answer")
        return SimpleNamespace(status="error", exception=lambda timeout: raised)

    found, client = comparison(said, []), SimpleNamespace(submit=submit)
    found._await = lambda *_: None  # type: ignore[method-assign]
    order = CellOrder("lab", "lab", Setup(), AS_IT_IS, "a 64b", 0, "", "n-1", "", "x.json", "", 9.0)
    with pytest.raises(BenchError, match="a 64b by t1: no answer"):
        found._measure_cell(client, order, "t1", "a")  # type: ignore[arg-type]
    assert len({*keys}) == 2 and said[-1] == "a 64b waits: a is leased by t9"


def test_figures_without_a_ratio_and_wide_intervals_are_reported() -> None:
    other = Cell("box", "var2-64b", False, 1)
    rounds = [
        {
            tester: [make_row(0, pps), make_row(0, 1e6, other, at_least=True)]
            for tester, pps in (("t1", 5e6), ("t2", low))
        }
        for low in (4e6, 6e6)
    ]
    ratios, warned = find_ratios(rounds, "t1", "2026-01-01"), list[str]()
    comparison([], warned)._judge(ratios, rounds[0])
    unjoined, wide = warned[:2], warned[2:]
    heads = [f"{other} by {name}: maximum rate could not be compared" for name in ("t1", "t2")]
    assert all(line.startswith(head) for line, head in zip(unjoined, heads, strict=True))
    assert len(wide) == 1 and "netgate-vpp var2-64b uni by t2: maximum rate is known to" in wide[0]
    with pytest.raises(BenchError, match="could not be compared"):
        comparison([], [])._judge([], rounds[0])


def test_a_round_with_an_old_document_begins_anew_unless_it_is_under_way(tmp_path: Path) -> None:
    for name, age_s in (("testers-a-1", RESUMED_S + 60), ("testers-a-2", RESUMED_S - 60), ("testers-b-1", 1e6)):
        (tmp_path / name).mkdir()
        for document, at_s in (("old.json", time.time() - age_s), ("new.json", time.time())):
            (tmp_path / name / document).touch()
            os.utime(tmp_path / name / document, (at_s, at_s))
    with locked("testers-b"):
        _remove_old(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["testers-a-2", "testers-b-1"]
