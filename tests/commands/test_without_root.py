"""Every verb that needs no root, as a user runs it, against a server that speaks TRex's protocol."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import ROOT, Server, await_line, begin, server_apart, succeed, trexbench

Options = tuple[str, ...]
PLAN = (
    "{warmup: 10kpps:400ms, ramp_duration: 2s, hold: 400ms, confirm: 400ms, drain: 200ms, sample: 200ms, window: 200ms}"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with server_apart() as (running, _):  # which owes its frames to nobody's threads
        yield running


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Options:
    """Options of runs that last a few seconds, by the plan of their DUT's config."""
    folder = tmp_path_factory.mktemp("dut_configs")
    text = (ROOT / "dut_configs" / "netgate-vpp.yaml").read_text()
    (folder / "netgate-vpp.yaml").write_text(f"{text}\nplan: {PLAN}\n")
    return ("--configs-dir", str(folder))


def documents(folder: Path) -> list[Path]:
    return sorted(folder.glob("results/*/*/*.json"))


def test_ramp_leaves_a_document_a_picture_and_the_answer_first(tmp_path: Path, server: Server, short: Options) -> None:
    done = succeed(tmp_path, "ramp", "--dut", "netgate-vpp", "--mode", "imix", "--bidir", *short, *server.options)
    assert "SIMULATED" in done.stdout, "the server behind it moves no packets"
    assert "netgate-vpp var2-imix bidir simulated: >= 6." in done.stdout, done.stdout
    assert "neither applied nor read back (--no-apply)" in " ".join(done.stdout.split())
    (path,) = documents(tmp_path)
    document = json.loads(path.read_text())
    assert document["status"] == "complete" and document["simulated"] is True
    # A window lasts 200 ms here: its ends are known to some milliseconds, and a late sender catches up.
    assert 0.9 < document["total_pps"] / (2 * 0.97 * 10e9 / ((360.1667 + 20) * 8)) < 1.1
    # Some of which are one percent of the last windows: then the sender was late.
    assert {one["limit"] for one in document["analysis"]} <= {"none", "generator-tx"}
    assert [one["mean_frame_bytes"] for one in document["profiles"].values()] == pytest.approx([360.1667] * 2, abs=1e-3)
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_the_run_and_keeps_what_was_measured(tmp_path: Path, server: Server, short: Options) -> None:
    run = begin(
        tmp_path, "ramp", "--dut", "netgate-vpp", "--mode", "64b", "--ramp-duration", "60", "--no-picture",
        *short, *server.options,
    )  # fmt: skip
    await_line(run, "ramp", "asked")
    os.kill(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    document = json.loads(documents(tmp_path)[0].read_text())
    assert document["status"] == "incomplete" and "interrupted" in document["reason"]
    assert any(sample["phase"] == "ramp" for sample in document["samples"])
    assert "INCOMPLETE" in output.upper()
    succeed(tmp_path, "ramp", "--dut", "netgate-vpp", "--mode", "64b", "-q", "--no-picture", *short, *server.options)


def test_one_run_per_tester_and_ports_of_others_only_by_force(tmp_path: Path, server: Server, short: Options) -> None:
    run = begin(tmp_path, "ramp", "--dut", "netgate-vpp", "--mode", "64b", "--no-picture", *server.options)
    await_line(run, "asked")
    elsewhere = tmp_path / "other"  # another machine, as far as locks are concerned
    elsewhere.mkdir()
    again = ("ramp", "--dut", "netgate-vpp", "--mode", "imix", *short, *server.options)
    here, there = (trexbench(folder, *again) for folder in (tmp_path, elsewhere))
    assert here.returncode == there.returncode == 8
    assert f"process {run.pid}" in here.stderr and "var2-64b" in here.stderr
    assert "belongs to" in there.stderr and "--force" in there.stderr
    succeed(elsewhere, *again, "-q", "--force", "--no-picture")
    _, said = run.communicate(timeout=60)
    assert run.returncode == 5
    assert "taken" in said or "not owned" in said
