"""Plans and strategies: no contradiction begins, one table knows them all, and runs of older versions mean the same."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from runs import World, make_plan, make_result, simulate

from trexbench.config.model import PlanDefaults
from trexbench.core.errors import ConfigError
from trexbench.core.history.rows import row_of
from trexbench.core.load.plan import pair_directions
from trexbench.core.result import Status
from trexbench.core.strategy.base import phase_begun
from trexbench.core.strategy.kinds import STRATEGIES, plan_from_dict, plan_to_dict
from trexbench.core.strategy.saturate import Saturate
from trexbench.results.latest import find_latest
from trexbench.results.store import RunWriter, load_run
from trexbench.session.options import Case, Setup
from trexbench.session.request import expected_s, make_request


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": 1.01}, "over line rate"),
        ({"warmup_pps": 1.45e6}, "lower --warmup or raise --ramp-to"),
        ({"warmup_pps": 1.45e6, "kind": "saturate", "hold_s": 9}, "raise --rate"),
        ({"warmup_pps": 0.0}, "warmup pps of 0"),
        ({"sample_s": 0.01}, "`sample:`) of 0.01 s: use 50ms to 10s"),
        ({"warmup_s": 1.0}, "--warmup of 1 s is shorter than two samples"),
        ({"ramp_s": 3.0}, "--ramp-duration of 3 s is too short"),
        ({"kind": "saturate", "hold_s": 3.0}, "--hold of 3 s is too short"),
        ({"hold_s": -1.0}, "hold of -1 s"),
        ({"latency_s": 1.0}, "--latency of 1 s is too short"),
        ({"drain_s": -0.1}, "drain of -0.1 s"),
        ({"hold_s": math.nan}, "hold of nan s"),
        ({"windows": 0}, "--windows of 0"),
        ({"window_s": 0.0}, "a plan's `window:` of 0 s"),
        ({"loss_threshold": 1.5}, "--loss of 1.5"),
        ({"loss_threshold": math.nan}, "--loss of nan"),
        ({"frame_bytes": math.inf}, "mean frame bytes of inf"),
    ],
)
def test_contradictions(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make_plan(**changes)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("ports", "bidir", "expected"),
    [
        ((0, 1), False, "0->1"),
        ((0, 1), True, "0->1 1->0"),
        ((1, 0), False, "1->0"),
        ((0, 1, 2, 3), False, "0->1 2->3"),
        ((0, 1, 2, 3), True, "0->1 2->3 1->0 3->2"),
        ((0, 2, 1, 3), False, "0->2 1->3"),
    ],
)
def test_pairs(ports: Sequence[int], bidir: bool, expected: str) -> None:
    directions = pair_directions(ports, bidir)
    assert " ".join(map(str, directions)) == expected
    assert make_plan(ports=ports, bidir=bidir).ports == tuple(sorted(ports))


@pytest.mark.parametrize(
    ("ports", "words"),
    [((), "0 port(s)"), ((0,), "1 port(s)"), ((0, 1, 2), "3 port(s)"), ((0, 0), "twice"), ((0, 1, 1, 2), "twice")],
)
def test_ports_that_make_no_pairs(ports: Sequence[int], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(").replace(")", r"\)")):
        pair_directions(ports, False)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 5 + 60 + 5 + 6 + 1 + 5 + 1),  # with the first bad rate held again
        ({"confirm_s": 0.0}, 5 + 60 + 5 + 1),
        ({"latency_s": 8.0}, 5 + 60 + 5 + 6 + 1 + 5 + 1 + 3 * (8 + 1)),
        ({"kind": "saturate", "hold_s": 30.0}, 5 + 30 + 1),
    ],
)
def test_durations(changes: dict[str, Any], seconds: float) -> None:
    assert make_plan(**changes).duration_s == seconds


ROOT = Path(__file__).resolve().parents[2]
BY_NAME = re.compile(
    r"plan\.kind\s*[!=]=|\b(kind|verb)\s*[!=]==?\s*[\"'](ramp|saturate)[\"']|[\"'](ramp|saturate)[\"']\s*[!=]=|-saturate"
)


def test_nobody_else_asks_which_strategy_it_is() -> None:
    files = [path for ending in ("py", "js", "html") for path in (ROOT / "trexbench").rglob(f"*.{ending}")]
    modules = [path for path in files if "core/strategy" not in path.as_posix()]
    asking = {path.relative_to(ROOT).as_posix() for path in modules if BY_NAME.search(path.read_text())}
    assert not asking


def test_a_new_strategy_needs_an_entry_in_the_table_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its verb is measured by it, its run is stored and found again under its name, and is a series of its own."""

    class Search(Saturate):
        kind: ClassVar[str] = "search"
        suffix: ClassVar[str] = "search"

    monkeypatch.setitem(cast(dict[str, Any], STRATEGIES), Search.kind, Search)
    request = make_request("search", Case("netgate-vpp", "64b"), PlanDefaults(hold_s=9.0), Setup(sim=True))
    assert request.kind == "search" and expected_s(request) > 9.0
    plan = Search(**vars(make_plan(kind="saturate")))
    writer = RunWriter(tmp_path, pytest.fail).begin(replace(make_result(plan), status=Status.RUNNING, samples=()))
    path = writer.end(make_result(plan))
    assert path.name.endswith("-search.json") and find_latest(tmp_path) == path
    found = load_run(path)
    assert type(found.plan) is Search and " search " in str(row_of(found, "").cell)


@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_plan_of_every_kind_is_read_back(kind: str) -> None:
    plan = make_plan(kind=kind, bidir=True)
    assert type(plan) is STRATEGIES[kind] and plan.kind == kind
    assert plan_from_dict(json.loads(json.dumps(plan_to_dict(plan)))) == plan
    assert plan_from_dict(plan_to_dict(plan) | {"zoom_s": 60.0}) == plan, "which a ramp once had"
    with pytest.raises(ValueError, match="warmup_s"):
        plan_from_dict(plan_to_dict(plan) | {"warmup_s": "2"})


@pytest.mark.parametrize(
    "plan", [make_plan(), make_plan(latency_s=5.0), make_plan(kind="saturate"), make_plan(sample_s=0.1, ramp_s=10.0)]
)
def test_the_time_left_falls_to_nothing(plan: Any) -> None:
    samples = simulate(plan, World(6.9e5)).samples
    begun = {at: phase_begun(samples[: at + 1]) for at in range(1, len(samples))}
    left = [plan.time_left(samples[at].phase, samples[at].trial, samples[at].t_s - t_s) for at, t_s in begun.items()]
    assert left[0] == pytest.approx(plan.duration_s - plan.sample_s)
    assert left == pytest.approx([samples[-1].t_s - sample.t_s for sample in samples[1:]], abs=1e-6)
