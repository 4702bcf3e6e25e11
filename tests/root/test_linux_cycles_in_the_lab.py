"""Cycles per packet that a run reports of a real kernel, against the same kernel read past all of trexbench."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from effort import by_day
from packet_lab import lab_up, share_lab, write_lab
from tools import begin

pytestmark = pytest.mark.measures

PREFIX = f"tby{os.getpid()}"
APART = 0.1
READER = """
import json, time
end = time.monotonic() + 120
while time.monotonic() < end:
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    cpus = {line.split()[0]: line.split()[1:] for line in open("/proc/stat") if line.startswith("cpu")}
    sent = [int(open(f"/sys/class/net/{name}/statistics/tx_packets").read()) for name in ("d0", "d1")]
    print(json.dumps([now, cpus, sum(sent)]), flush=True)
    time.sleep(0.05)
"""
"""Script that runs in the DUT's namespace beside the run, until its interfaces go."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """lab-linux in namespaces of our own."""
    with lab_up(write_lab(tmp_path_factory.mktemp("lab") / "own.yaml", PREFIX, loss="0.1%")) as folder:
        yield folder


def run_beside_a_reader(folder: Path, lab: Path, target: str) -> tuple[dict[str, Any], list[Any]]:
    """The run's document, and what was read meanwhile."""
    share_lab(lab, folder)
    words = ("--mode", "64b", "--bidir", "-q", "--no-picture", "--ramp-to", target, "--hold", "4", "--json")
    run = begin(folder, "ramp", "--dut", str(lab / "own.yaml"), *words)
    inside = ("ip", "netns", "exec", f"{PREFIX}-dut")
    with (folder / "read.txt").open("w") as out:
        reader = subprocess.Popen([*inside, sys.executable, "-c", READER], stdout=out, stderr=subprocess.DEVNULL)
        try:
            said, complaint = run.communicate(timeout=120)
        finally:
            reader.kill()
            reader.wait()
    assert run.returncode == 0, complaint
    lines = (folder / "read.txt").read_text().splitlines(keepends=True)
    return json.loads(said), [json.loads(line) for line in lines if line.endswith("\n")]


def cycles_per_packet(first: Any, last: Any, cpu: int) -> float:
    """Busy share x clock x time, over packets sent; the clock of /proc/cpuinfo, in MHz."""
    match = re.search(
        rf"^processor\s*: {cpu}$.*?^cpu MHz\s*: ([0-9.]+)$", Path("/proc/cpuinfo").read_text(), re.M | re.S
    )
    assert match
    ticks = [int(b) - int(a) for a, b in zip(first[1][f"cpu{cpu}"], last[1][f"cpu{cpu}"], strict=True)]
    idle, total = ticks[3] + ticks[4], sum(ticks[:8])  # guests' time, behind the 8th, is in user's
    busy = (total - idle - ticks[7]) / total
    return busy * float(match[1]) * 1e6 * (last[0] - first[0]) / (last[2] - first[2])


@pytest.mark.parametrize(("target", "saturated"), by_day(1, [("1.4mpps", True), ("100kpps", False)]))
def test_cycles_per_packet_are_the_kernels_own(tmp_path: Path, lab: Path, target: str, saturated: bool) -> None:
    """A busy machine adds to both figures: they are of the CPU's busy time in spans that differ by 0.1 s of 3 s."""
    found, read = run_beside_a_reader(tmp_path, lab, target)
    (cost,) = (one for one in found["efficiency"] if one["phase"] == "hold")
    looks = [one["observation"] for one in found["telemetry"]["readings"] if one["phase"] == "hold"]
    (cpu,) = found["dut"]["facts"]["lab"]["router_cpus"]
    first, last = (min(read, key=lambda one: abs(one[0] - look["at_s"])) for look in looks)
    assert last[0] - first[0] > 2 and abs((last[0] - first[0]) / cost["span_s"] - 1) < APART
    ours = cycles_per_packet(first, last, cpu)
    print(
        f"{target}: reported {cost['cycles_per_packet']:.1f}, read {ours:.1f}, CPU {cost['cpus'][0]['busy']:.3f} busy"
    )
    assert cost["cycles_per_packet"] == pytest.approx(ours, rel=APART)
    if saturated:  # that the other is not cannot be told: all that the machine does on that CPU is in its busy time
        losses = found["losses"]
        assert losses["lost"] > 10_000, "it was not saturated: is this machine that fast?"
        assert losses["places"][0]["share"] > 0.9 and losses["places"][0]["counter"].startswith("cpumap queue")
