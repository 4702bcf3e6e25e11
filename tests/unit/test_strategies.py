"""Strategies: one table knows them, and each tells how long it still takes. Runs of older versions mean the same."""

from __future__ import annotations

import itertools
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from documents import to_document
from runs import World, make_plan, make_result, simulate

from trexbench.config.model import PlanDefaults
from trexbench.core.history.rows import row_of
from trexbench.core.result import Status, from_document
from trexbench.core.strategy.base import phase_begun
from trexbench.core.strategy.kinds import STRATEGIES, plan_from_dict, plan_to_dict
from trexbench.core.strategy.saturate import Saturate
from trexbench.results.latest import find_latest
from trexbench.results.store import RunWriter, load_run
from trexbench.session.options import Case, Setup
from trexbench.session.request import expected_s, make_request

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
    samples = simulate(plan, World(7e5)).samples
    left = [
        plan.time_left(s.phase, s.trial, s.t_s - phase_begun(samples[: at + 1])) for at, s in enumerate(samples) if at
    ]
    assert left[0] == pytest.approx(plan.duration_s - plan.sample_s)
    assert all(a > b for a, b in itertools.pairwise(left))
    assert left[-1] == pytest.approx(0.0, abs=1e-6)


def documents_of_1() -> Mapping[str, Any]:
    """Real ones of every kind, by their names."""
    with tarfile.open(ROOT / "tests/fixtures/documents-v1.tar.xz") as archive:
        files = {one.name: archive.extractfile(one) for one in archive if one.isfile()}
        documents = {name: json.load(file) for name, file in files.items() if name.endswith(".json") and file}
    return {name: one for name, one in documents.items() if one.get("schema") == "trexbench/run"}


DOCUMENTS = documents_of_1()
RENAMED = {"caveats": "warnings", "caveat": "warning"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_of_version_1_mean_what_they_meant(name: str) -> None:
    stored = DOCUMENTS[name]
    assert stored["version"] == 1
    upgraded = json.loads(json.dumps(to_document(from_document(stored))))
    for part in ("at_least", "latency", "efficiency", "losses"):
        if part in stored:
            assert upgraded[part] == same(stored[part]), part
    for now, then in zip(upgraded["analysis"], stored["analysis"], strict=True):
        apart_pps = then.pop("uncertainty_pps")  # version 1 of the analysis gave the last good rate
        assert abs(now.pop("maximum_pps") - then.pop("maximum_pps")) <= apart_pps
        for trial, former in zip(now["trials"], then["trials"], strict=True):  # which had the rate asked for
            assert 0.98 * former["offered_pps"] <= trial["offered_pps"] <= former.pop("offered_pps") * (1 + 1e-9)
            former["offered_pps"] = trial["offered_pps"]
        now["reasons"] = [re.sub(" above [0-9.]+ %", "", one) for one in now["reasons"]]  # which they did not say
        assert {key: now[key] for key in then} == same(then)
    assert from_document(upgraded) == from_document(stored), "and they stay so when they are written anew"


def same(value: Any) -> Any:
    """This value, but for the last digits of its floats, with the present names of its keys."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-12, nan_ok=True)
    if isinstance(value, dict):
        return {RENAMED.get(key, key): same(one) for key, one in value.items()}
    return [same(one) for one in value] if isinstance(value, list) else value
