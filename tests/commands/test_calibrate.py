"""``trexbench lab calibrate`` as a whole command, simulated."""

from __future__ import annotations

import json
from pathlib import Path

from tools import succeed, trexbench

SHORT = ("--modes", "64b", "--ramp-duration", "4", "--latency", "0", "-q", "--no-picture")


def test_simulated_it_is_marked_and_not_kept(tmp_path: Path) -> None:
    done = succeed(tmp_path, "lab", "calibrate", "--sim", "--speedup", "10000", *SHORT)
    assert "SIMULATED" in done.stdout, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("var2-64b")]
    assert len(rows) == 3 and {tuple(row[1:4]) for row in rows} >= {("0->1", "14.43", "Mpps")}
    assert not (tmp_path / "state").exists() and len(list(tmp_path.glob("results/*/back-to-back/*.json"))) == 2


def test_warm_up_sample_and_window_are_those_of_the_duts_plan(tmp_path: Path) -> None:
    plan = "plan: {warmup: 20kpps:3s, sample: 250ms, window: 500ms, hold: 77s}"
    (tmp_path / "r.yaml").write_text(f"driver: none\nspeed: 10gbit\nports: [{{tester: 0}}, {{tester: 1}}]\n{plan}\n")
    succeed(tmp_path, "lab", "calibrate", "--dut", "./r.yaml", "--sim", "--speedup", "10000", *SHORT)
    for path in tmp_path.glob("results/*/back-to-back/*.json"):
        kept = json.loads(path.read_text())["plan"]
        assert (kept["warmup_s"], kept["sample_s"], kept["window_s"], kept["hold_s"]) == (3.0, 0.25, 0.5, 2.0)
        assert all(offer["warmup_pps"] == 20_000 for offer in kept["offers"])


def test_what_fails_alike_in_every_run_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    done = trexbench(tmp_path, "lab", "calibrate", "--sim", "-q", "--results", "taken")
    assert (done.returncode, done.stderr.count("\n")) == (9, 1) and "taken cannot be written" in done.stderr
