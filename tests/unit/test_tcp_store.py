"""A run of TCP on disk, and every verb on a directory that has some beside runs of packets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
import verbs
from runs import World, make_plan, make_result
from tcp_runs import Path, make_tcp_result
from verbs import Said

from trexbench import api
from trexbench.core.errors import StoreError
from trexbench.core.tcp.plan import Leg, TcpEnvironment, Way
from trexbench.core.tcp.result import LineCalibration, TcpResult
from trexbench.core.typed import Status
from trexbench.core.verdict.parts import RunWarning
from trexbench.results.document import read_sealed
from trexbench.results.index import open_index
from trexbench.results.journal import journal_of
from trexbench.results.latest import find_latest
from trexbench.results.prune import find_old
from trexbench.results.store import RunWriter, load_document, load_rows, load_run, load_tcp

PI = Path(bps=65.6e6, cores={"dut": (0.99,)})


def store(results: File, result: TcpResult, warn: Callable[[str], None] = pytest.fail) -> File:
    writer = RunWriter(results, warn)
    writer.begin(replace(result, status=Status.RUNNING, finished=None, legs=(), pings=()))
    return writer.end(result)


def nights(results: File, rates: list[float]) -> list[File]:
    paths = []
    for at, rate in enumerate(rates):
        date = f"2026-{10 + at // 28}-{1 + at % 28:02}"
        labels: dict[str, Any] = {"started": f"{date}T01:02:03Z", "command": {"suite": "pi", "night": date}}
        paths.append(store(results, make_tcp_result(replace(PI, bps=rate), id=date, ceiling=Path(bps=20e9), **labels)))
    return paths


def run(*words: object) -> Said:
    """A verb; both streams together."""
    code, out, err = verbs.run(*words)
    assert "Traceback" not in err
    return Said(code, out + err, "")


def test_the_document_has_its_place_and_is_sealed(tmp_path: File) -> None:
    result = make_tcp_result(PI, (Leg(Way.FORWARD), Leg(Way.REVERSE, 6)))
    path = store(tmp_path, result)
    assert path == tmp_path / "2026-11-20" / "lab-linux" / "120301-tcp-forward-reverse-ipv4-ipv6.json"
    assert load_document(path) == result
    sealed = read_sealed(path.read_bytes())
    assert sealed is not None and len(sealed) == 2
    assert load_rows(path, "x") == tuple(replace(row, path="x") for row in sealed)
    path.write_bytes(path.read_bytes().replace(b'"mean"', b'"Mean"', 1))
    assert read_sealed(path.read_bytes()) is None, "a changed byte breaks the seal"
    assert load_rows(path, "x") == tuple(replace(row, path="x") for row in sealed), "and rows are derived again"
    assert find_latest(tmp_path) == path


def test_what_was_measured_before_a_kill_is_kept(tmp_path: File) -> None:
    result = make_tcp_result(PI)
    writer = RunWriter(tmp_path, pytest.fail).begin(replace(result, status=Status.RUNNING, legs=()))
    path = writer.path
    assert path is not None
    assert [row.status for row in load_rows(path, "x")] == ["running", "running"]
    head, whole = path.read_bytes(), replace(result, status=Status.RUNNING, calibration=LineCalibration(result.pings))
    for count in (1, 2):
        known = replace(whole, legs=whole.legs[:count], warnings=(RunWarning("no-ping", "no echo"),) * count)
        writer.update(known)
        assert load_document(path) == known
        assert path.read_bytes() == head, "what was written once is not written again"
    assert journal_of(path).read_bytes().count(b"\n") == 1 + len(result.pings) + len(result.ceilings) + 1 + 2 + 2
    assert load_tcp(path).summaries[0].rate_bps == pytest.approx(65.6e6)
    again = run("results", "show", path)
    assert again.code == 0 and "UNFINISHED" in again.out
    assert writer.end(result) == path and load_document(path) == result and not journal_of(path).exists()


def both_kinds(results: File) -> tuple[File, File]:
    packets = RunWriter(results, pytest.fail).end(make_result(make_plan(), World(capacity_pps=0.5e6)))
    return packets, store(results, make_tcp_result(PI))


def test_a_run_of_one_kind_is_none_of_the_other(tmp_path: File) -> None:
    packets, tcp = both_kinds(tmp_path)
    with pytest.raises(StoreError, match="a run of TCP, not of packets"):
        load_run(tcp)
    with pytest.raises(StoreError, match="a run of packets, not of TCP"):
        load_tcp(packets)


def test_no_verb_chokes_on_a_directory_with_both_kinds(tmp_path: File) -> None:
    _, tcp = both_kinds(tmp_path)
    index = open_index(tmp_path, pytest.fail)
    assert index.problems() == []
    assert sorted(row.cell.kind for row in index.rows()) == ["ramp", "tcp", "tcp"]
    assert len({row.path for row in index.rows() if row.cell.kind == "tcp"}) == 1
    found = [(str(row.cell.mode), row.get("total_pps")) for row in index.rows() if row.cell.kind == "tcp"]
    assert sorted(found) == [("forward-ipv4", None), ("reverse-ipv4", None)]
    listed = run("results", "list", "--results", tmp_path)
    assert listed.code == 0 and "65.60 Mbit/s" in listed.out and "not read" not in listed.out
    assert run("results", "show", tcp, "--brief").out.startswith("TCP through lab-linux: forward IPv4 65.60 Mbit/s")
    page = run("report", "--results", tmp_path, "-o", tmp_path / "page.html")
    assert page.code == 0 and "could not be read" not in page.out, page.out
    assert (len(api.load_results(tmp_path)), len(api.load_rows(tmp_path))) == (1, 3)


def test_two_runs_of_tcp_are_compared_way_by_way(tmp_path: File) -> None:
    first = store(tmp_path, make_tcp_result(PI))
    second = store(tmp_path, make_tcp_result(replace(PI, bps=63e6)))
    text = run("results", "compare", first, second, "--results", tmp_path).out
    assert text.count("slower") == 2 and "65.60 Mbit/s" in text and "63.00 Mbit/s" in text and "-3.96 %" in text
    values = json.loads(run("results", "compare", first, second, "--results", tmp_path, "--json").out)
    assert values["cells"][0]["first_bps"] == pytest.approx(65.6e6)
    assert "first_pps" not in values["cells"][0]


def test_a_bound_decides_nothing(tmp_path: File) -> None:
    first = store(tmp_path, make_tcp_result(Path(bps=940e6), setup=TcpEnvironment(line_bps=1e9)))
    second = store(tmp_path, make_tcp_result(Path(bps=930e6)))
    text = run("results", "compare", first, second, "--anyway", "--results", tmp_path).out
    assert text.count("unknown: the DUT") == text.count("UNLIKE: line rate 1.000 Gbit/s and unknown") == 2


def test_a_run_of_two_ways_that_is_left_out_is_named_once(tmp_path: File) -> None:
    whole = store(tmp_path, make_tcp_result(PI))
    store(tmp_path, make_tcp_result(PI, status=Status.INCOMPLETE))
    text = run("results", "compare", tmp_path / "2026*/*/*.json", whole, "--results", tmp_path).out
    assert text.count("left out, incomplete") == 1, text


def test_a_slower_firmware_is_a_regression_of_the_tcp_rate(tmp_path: File) -> None:
    nights(tmp_path, [65.6e6 + 5e4 * (at % 3) for at in range(14)] + [61e6 + 5e4 * (at % 3) for at in range(6)])
    judged = run("regress", "--results", tmp_path)
    assert judged.code == 3, judged.out
    assert "TCP rate" in judged.out and "65.65 -> 61.05 Mbit/s" in judged.out
    assert "maximum rate" not in judged.out


def test_a_document_of_many_rows_is_pruned_once(tmp_path: File) -> None:
    paths = nights(tmp_path, [65e6] * 4)
    store(tmp_path, make_tcp_result(PI, started="yesterday", command={"night": "later"}))
    assert find_old(tmp_path, 2, None, pytest.fail) == [path.relative_to(tmp_path) for path in paths[:2]]


def test_a_directory_with_runs_of_tcp_only_has_a_report_in_every_form(tmp_path: File) -> None:
    nights(tmp_path, [65.6e6 + 5e4 * (at % 3) for at in range(8)])
    page, text = tmp_path / "page.html", tmp_path / "page.md"
    for file in (page, text):
        assert run("report", "--results", tmp_path, "-o", file).code == 0
        assert "65.6" in file.read_text(encoding="utf-8")
    assert run("regress", "--results", tmp_path, "--junit", tmp_path / "out", "--format", "md").code == 0
    assert json.loads(run("regress", "--results", tmp_path, "--json").out)
