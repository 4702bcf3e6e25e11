"""Cycles per packet that a run reports of a real kernel, against the same kernel read past all of trexbench."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools import ROOT, begin, trexbench

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes network namespaces"),
]

PREFIX = f"tbc{os.getpid()}"
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
"""What runs in the DUT's namespace beside the run, until its interfaces go."""


@pytest.fixture
def dut(tmp_path: Path) -> Iterator[Path]:
    """lab-linux in namespaces of our own."""
    text = (ROOT / "dut_configs" / "lab-linux.yaml").read_text().replace("prefix: tbx ", f"prefix: {PREFIX} ")
    path = tmp_path / "own.yaml"
    path.write_text(text)
    yield path
    trexbench(tmp_path, "lab", "down", "--dut", str(path), "--force")


def run_beside_a_reader(tmp_path: Path, dut: Path, target: str) -> tuple[dict[str, Any], list[Any]]:
    """The run's document, and what was read meanwhile."""
    words = ("--mode", "64b", "--bidir", "-q", "--no-picture", "--warmup", "1kpps:2s", "--confirm", "0")
    run = begin(
        tmp_path,
        "ramp",
        "--dut",
        str(dut),
        *words,
        "--ramp-to",
        target,
        "--ramp-duration",
        "6",
        "--hold",
        "6",
        "--json",
    )
    inside = ("ip", "netns", "exec", f"{PREFIX}-dut")
    deadline = time.monotonic() + 20
    while subprocess.run([*inside, "ls", "/sys/class/net/d0", "/sys/class/net/d1"], capture_output=True).returncode:
        assert time.monotonic() < deadline and run.poll() is None, "the lab did not come up"
        time.sleep(0.1)
    with (tmp_path / "read.txt").open("w") as out:
        reader = subprocess.Popen([*inside, sys.executable, "-c", READER], stdout=out, stderr=subprocess.DEVNULL)
        try:
            said, complaint = run.communicate(timeout=120)
        finally:
            reader.kill()
            reader.wait()
    assert run.returncode == 0, complaint
    lines = (tmp_path / "read.txt").read_text().splitlines(keepends=True)
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


@pytest.mark.parametrize(("target", "saturated"), [("1.4mpps", True), ("100kpps", False)])
def test_cycles_per_packet_are_the_kernels_own(tmp_path: Path, dut: Path, target: str, saturated: bool) -> None:
    found, read = run_beside_a_reader(tmp_path, dut, target)
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
