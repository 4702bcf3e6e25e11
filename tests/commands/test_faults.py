"""A server that fails in the middle of a ramp: what trexbench says, what it saves, and whom it does not blame."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools import document, server_apart, trexbench

DUT = """
driver: linux
transport: {type: local}
speed: 10gbit
ports:
  - {tester: 0, interface: d0, address: 100.65.1.1/24, neighbour: {address: 100.65.1.2, mac: tester}}
  - {tester: 1, interface: d1, address: 100.65.2.1/24, neighbour: {address: 100.65.2.2, mac: tester}}
routes:
  - {to: 16.0.0.0/8, via: 100.65.1.2}
  - {to: 48.0.0.0/8, via: 100.65.2.2}
plan: {warmup: "10kpps:500ms", ramp_duration: 4s, hold: 1s, confirm: 1s, drain: 200ms, sample: 200ms}
"""

# Faults come at 1.6 s, amid two samples (0.5 s, 0.7 s, ... after the start): at 1.5 s any command may be the first hit.


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("die@1600ms", "TRex server .* does not answer .Connection refused.: it ended or .*; look at its log"),
        ("hang@1600ms", "TRex server .* does not answer: it listens, but hangs; look at its log"),
    ],
)
def test_a_server_that_is_lost_ends_the_run(tmp_path: Path, fault: str, said: str) -> None:
    """Other faults are in unit/test_generator_trex.py, unit/test_watchdog.py and unit/test_runner.py."""
    (tmp_path / "mine.yaml").write_text(DUT)
    with server_apart(fault) as (server, process):
        options = ("--mode", "64b", "--bidir", "--no-picture", "-q", *server.options)
        done = trexbench(tmp_path, "ramp", "--dut", "mine.yaml", *options, timeout_s=40)
        if "die" in fault:
            assert process.wait(30) == -9
            assert process.stderr is not None and process.stderr.read() == ""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("trexbench: ")]
    assert done.returncode == 5 and re.fullmatch(f"trexbench: {said}", line) and "Traceback" not in done.stderr
    found = document(tmp_path)
    assert found["status"] == "incomplete" and line == f"trexbench: {found['reason']}"
    assert len(found["samples"]) >= 6 and found["samples"][-1]["phase"] in ("ramp", "hold")
    assert all(one["limit"] != "dut" for one in found["analysis"])
    assert ("not-stopped" in {one["code"] for one in found["warnings"]}) or "die" in fault
    assert f"INCOMPLETE: {found['reason']}" in done.stdout and "result   results/" in done.stderr
