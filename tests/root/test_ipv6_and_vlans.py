"""IPv6 and VLAN tags with real packets, by either generator: routed by the lab's kernel, bridged where it cannot."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packet_lab import namespaces, write_lab
from tools import document, succeed, trexbench

PREFIX = f"tb6{os.getpid()}"
RAMP = ("ramp", "--dut", "own.yaml", "--latency", "400ms", "--no-picture")
TREX_RAMP = "--warmup 1kpps:2s --ramp-to 20kpps --ramp-duration 4s --latency 2s --sample 1s"
TREX_DIR = os.environ.get("TREXBENCH_TREX_DIR", "")
GENERATORS = [
    pytest.param((), id="embedded"),
    pytest.param(
        ("--trex-dir", TREX_DIR, *TREX_RAMP.split()),
        id="TRex",
        marks=pytest.mark.skipif(not TREX_DIR, reason="names no TRex"),
    ),
]


def lab(folder: Path, *vlans: str) -> Path:
    """lab-linux in namespaces of our own, each port with these VLANs."""
    path = write_lab(folder / "own.yaml", PREFIX)
    text = path.read_text()
    for port, vlan in enumerate(vlans):
        text = text.replace(f"  - tester: {port}\n", f"  - tester: {port}\n    vlan: {vlan}\n")
    path.write_text(text)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    trexbench(tmp_path, "lab", "down", "--dut", "own.yaml", "--force")
    assert not namespaces(PREFIX)


def measured(folder: Path, *words: str) -> Any:
    succeed(folder, *RAMP, "--bidir", *words)
    return document(folder)


def moved(found: Any, counter: str, phase: str = "hold") -> list[int]:
    """By port, up to the last sample of this phase; latency frames, which may be longer, come after the hold."""
    last = [one for one in found["samples"] if one["phase"].startswith(phase)][-1]["ports"]
    first = found["samples"][0]["ports"]
    return [last[port][counter] - first[port][counter] for port in ("0", "1")]


def assert_measured(found: Any, frame_bytes: int, spared: float) -> None:
    """Frames of this size went and came back, counted by stream and timed; ``spared``: the share that has to arrive."""
    assert found["status"] == "complete" and found["generator"]["streams_not_counted"] is None
    sent, received = moved(found, "opackets"), moved(found, "ipackets")
    assert min(sent) > 1000
    for counter, frames in (("obytes", sent), ("ibytes", received)):
        sizes = [octets / count for octets, count in zip(moved(found, counter), frames, strict=True)]
        assert sizes == pytest.approx([frame_bytes] * 2, rel=0.001)
    for there, back in zip(moved(found, "opackets", ""), reversed(moved(found, "ipackets", "")), strict=True):
        assert spared * there <= back <= there + 16, "a few are on their way while a sample is taken"
    hold = [one for one in found["samples"] if one["phase"] == "hold"][-1]["streams"]
    for port, other in (("0", "1"), ("1", "0")):
        (by_stream,), (there,) = hold[port]["sent"], hold[port]["received"][other]
        assert spared * by_stream <= there <= by_stream + 16 and by_stream > 500
    # not every load: of what a busy machine lets through, a tenth may be too little to be timed
    assert {one["direction"] for one in found["latency"]} == {"0->1", "1->0"}
    assert all(0.5 * one["sent"] < one["received"] <= one["sent"] and one["mean_s"] > 0 for one in found["latency"])


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_kernel_routes_ipv6(folder: Path, generator: tuple[str, ...]) -> None:
    lab(folder)
    found = measured(folder, "--mode", "var2-64b-v6", *generator)
    assert_measured(found, 78, 0.99 if not generator else 0.9)
    facts = found["dut"]["facts"]
    assert facts["ipv6_forward"] == 1 and {one["to"] for one in facts["routes"]} >= {"2001:2:0:16::/64"}
    drops = {one["name"]: one["count"] for one in found["telemetry"]["readings"][-1]["observation"]["drops"]}
    lost = sum(moved(found, "opackets", "")) - sum(moved(found, "ipackets", ""))
    assert drops.get("cpumap queue (redirected, not received)", 0) <= lost + 32, "IPv6's packets count as received"


def bridge(folder: Path) -> None:
    """In the router's place: it passes tagged frames on, which a kernel without VLANs does not route."""
    dut = f"{PREFIX}-dut"
    words = [("link", "add", "name", "br0", "type", "bridge"), ("link", "set", "dev", "br0", "up")]
    for port in (0, 1):
        words.append(("link", "set", "dev", f"d{port}", "address", f"02:7b:78:00:09:0{port}"))
        words.append(("link", "set", "dev", f"d{port}", "master", "br0"))
    for one in words:
        subprocess.run(["ip", "-n", dut, *one], check=True, capture_output=True)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize(
    ("vlans", "mode", "frame_bytes"),
    [
        pytest.param(("100", "100"), "var2-64b", 68, marks=pytest.mark.nightly),
        (("[100, 200]", "[100, 200]"), "var2-64b-v6", 86),
    ],
    ids=["VLAN", "two tags and IPv6"],
)
def test_tagged_frames_are_counted_and_timed(
    folder: Path, generator: tuple[str, ...], vlans: tuple[str, str], mode: str, frame_bytes: int
) -> None:
    path = lab(folder, *vlans)
    succeed(folder, "lab", "up", "--dut", str(path), *generator[:2])
    bridge(folder)
    assert_measured(measured(folder, "--mode", mode, "--no-apply"), frame_bytes, 0.99 if not generator else 0.9)


def test_a_kernel_without_vlans_is_told_with_its_remedy(folder: Path) -> None:
    lab(folder, "100", "100")
    there = subprocess.run(["ip", "link", "add", "link", "lo", "name", PREFIX, "type", "vlan", "id", "7"], check=False)
    if there.returncode == 0:
        subprocess.run(["ip", "link", "del", PREFIX], check=True)
        assert_measured(measured(folder, "--mode", "var2-64b"), 68, 0.99)
        return
    run = trexbench(folder, *RAMP, "--mode", "64b")
    told = [line for line in run.stderr.splitlines() if line.startswith("trexbench: ")]
    assert run.returncode != 0 and len(told) == 1 and "modprobe 8021q" in told[0] and "Traceback" not in run.stderr
