"""Every reader of a document gives the same figures of it, or refuses it for the same reason: sound, old or damaged."""

from __future__ import annotations

import contextlib
import io
import json
import math
import shutil
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import golden
import pytest
from effort import scaled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutate import places
from runs import World, make_plan, make_result
from seen import run_of, vpp

from trexbench.cli import main
from trexbench.core.errors import BenchError, StoreError
from trexbench.core.history.rows import RunRow, row_of
from trexbench.core.load.sample import Phase
from trexbench.core.result import Status
from trexbench.core.strategy.base import LoadStep
from trexbench.core.strategy.kinds import has_curve
from trexbench.report.page.overlay import Older, find_curves, with_figures
from trexbench.report.run.loadtest import to_loadtest
from trexbench.results.index import open_index
from trexbench.results.journal import journal_of
from trexbench.results.store import RunWriter, load_rows, load_run

PLAN = make_plan(bidir=True, ramp_s=15.0, sample_s=1.0, latency_s=2.0)
CURRENT = {
    "ramp": make_result(PLAN, World(capacity_pps=660e3)),
    "vpp": run_of(vpp(), vpp()),
    "saturate": make_result(make_plan(kind="saturate", hold_s=8.0), World(capacity_pps=660e3)),
    "running": make_result(PLAN, World(capacity_pps=660e3)),
}
OLD = ("232432-1flow-64b-uni-saturate.json", "232620-var2-64b-uni.json", "232428-var2-1514b-uni.json")
ODD = [None, True, -1, 0, 1.5, 10**400, 1 << 65, "", "x", "\ud800", "\x1b[31m", "<b>", "../..", [], {}, [[1]], {"0": 1}]


Originals = dict[str, tuple[bytes, bytes | None]]
"""Documents by name, and the journal of one that is not over."""


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Originals:
    folder = tmp_path_factory.mktemp("originals")
    found: Originals = {}
    for name, run in CURRENT.items():
        writer = RunWriter(folder / name, pytest.fail)
        if name == "running":
            begun = writer.begin(replace(run, samples=(), status=Status.RUNNING, finished=None)).path
            assert begun is not None
            writer.sampled(run.samples, LoadStep(Phase.RAMP, {}, 1.0))
            head = begun.read_bytes()
            assert writer._journal is not None
            writer._journal.close()
            found[name] = head, journal_of(begun).read_bytes()
        else:
            found[name] = writer.end(run).read_bytes(), None
    old = golden.unpack(folder)
    return found | {path.name: (path.read_bytes(), None) for path in old.glob("20*/*/*.json") if path.name in OLD}


def changed(data: st.DataObject, content: bytes) -> bytes:
    """The document after one of the accidents that happen to documents."""
    what = data.draw(st.sampled_from(["nothing", "bytes", "cut", "value", "key", "analysis", "written again"]))
    at = data.draw(st.integers(0, len(content) - 1))
    if what == "cut":
        return content[:at]
    if what == "bytes":
        put = data.draw(st.sampled_from([b"", b"0", b"9", b"-", b",", b"e5", b"\0", b'"', b"\xff", b"1e999", b"NaN"]))
        return content[:at] + put + content[at + data.draw(st.integers(0, 2)) :]
    if what == "nothing":
        return content
    with contextlib.suppress(ValueError):
        document = json.loads(content)
        if what == "analysis" and document.get("analysis"):
            document["analysis"][0]["maximum_pps"] *= 1.5
            document["total_pps"] = 9e9
            document["analysis"][0]["limit"] = "link"
        if what in ("value", "key"):
            *above, key = data.draw(st.sampled_from(places(document)))
            part = reduce(getitem, above, document)
            part[key] = data.draw(st.sampled_from(ODD))
            if what == "key":
                del part[key]
        return json.dumps(document, indent=data.draw(st.sampled_from([None, 1]))).encode()
    return content


def shown(path: Path) -> dict[str, Any]:
    """Return what ``show --json`` says; raise BenchError with the words of its error."""
    said, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told), contextlib.suppress(SystemExit):
        main(["results", "show", str(path), "--json"])
    if not said.getvalue():
        raise BenchError(told.getvalue().removeprefix("trexbench: ").rstrip("\n"))
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


@settings(max_examples=scaled(250, 16), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_all_readers_agree(tmp_path: Path, originals: Originals, data: st.DataObject) -> None:
    content, journal = originals[data.draw(st.sampled_from(sorted(originals)))]
    path = tmp_path / "r" / "2026-03-01" / "dut" / "120000-x-uni.json"
    path.parent.mkdir(parents=True)
    try:
        if journal is not None and data.draw(st.booleans()):
            journal_of(path).write_bytes(changed(data, journal))
            path.write_bytes(content)
        else:
            path.write_bytes(changed(data, content))
            if journal is not None:
                journal_of(path).write_bytes(journal)
        check(path, tmp_path / "r")
    finally:
        shutil.rmtree(tmp_path / "r")


@pytest.mark.parametrize("section", ["host", "profiles", "generator", "dut"])
def test_a_number_beyond_all_bounds_is_read_alike(tmp_path: Path, originals: Originals, section: str) -> None:
    document = json.loads(originals["ramp"][0])
    for part in document[section].values() if section == "profiles" else [document[section]]:
        part["odd"] = [{"many": 4711}]
    path = tmp_path / "r" / "2026-03-01" / "dut" / "120000-x-uni.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(json.dumps(document).encode().replace(b"4711", b"1e999"))
    check(path, tmp_path / "r")


def check(path: Path, results: Path) -> None:
    index = open_index(results, pytest.fail)
    listed, refused = index.rows(), index.problems()
    name = str(path.relative_to(results))
    try:
        run = load_run(path)
    except StoreError as error:
        reason = str(error).removeprefix(f"{path}: ")
        assert (listed, refused) == ([], [(name, reason)]) and reason.isprintable()
        with pytest.raises(StoreError) as raised:
            load_rows(path, name)[0]
        assert str(raised.value) == str(error)
        with pytest.raises(BenchError) as told:
            shown(path)
        assert str(told.value) == str(error)
        return
    assert not refused and listed == list(load_rows(path, name)) == [row_of(run, name)]
    assert all(math.isfinite(value) for value in listed[0].to_dict().values() if isinstance(value, float))
    assert figures_of(listed[0]) == figures_of_document(shown(path))
    cell = listed[0].cell
    assert [one.result for one in with_figures(Older(listed[0], ("night",)), run).curves] == [
        one.result for one in find_curves(cell, run) if has_curve(cell.kind)
    ]
    with contextlib.suppress(BenchError):
        json.loads(to_loadtest(run))


def figures_of(row: RunRow) -> dict[str, Any]:
    names = ("id", "started", "status", "total_pps", "at_least", "warnings", "limit", "hold_loss", "cycles_per_packet")
    return {name: row.to_dict()[name] for name in names} | {"simulated": row.cell.simulated}


def figures_of_document(shown: dict[str, Any]) -> dict[str, Any]:
    order = ("dut", "none", "generator-rx", "generator-tx", "link")
    held = next((one for one in shown["efficiency"] if one["phase"] == "hold"), {})
    return {
        **{name: shown[name] for name in ("id", "started", "status", "total_pps", "at_least", "simulated")},
        "warnings": len(shown["warnings"]),
        "limit": max((one["limit"] for one in shown["analysis"]), key=order.index, default="none"),
        "hold_loss": max((one["hold_loss"] for one in shown["analysis"] if one["hold_loss"] is not None), default=None),
        "cycles_per_packet": held.get("cycles_per_packet"),
    }
