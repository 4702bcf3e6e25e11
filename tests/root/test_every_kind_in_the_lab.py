"""Every kind of DUT, frame and port that this kernel can route: suites of ramps and of searches, with real packets.

IPv6 and VLAN tags have tests of their own (test_ipv6_and_vlans.py).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from effort import by_day
from packet_lab import PLAN, namespaces, plan
from routed import routed
from tools import TREXBENCH, environment, folder_with, succeed, trexbench

PREFIX = f"tbk{os.getpid()}"
NETNS = "transport: {type: netns}"
KINDS = {
    "four": routed(NETNS, ports=4) + f"speed: 1gbit\nlab: {{prefix: {PREFIX}}}\n",
    "fast": routed(NETNS) + f"speed: 100gbit\nlab: {{prefix: {PREFIX}, mtu: 3400}}\n",
}
BARE = "driver: none\nspeed: 1gbit\nports: [{tester: 0}, {tester: 1}]\n"
FRAMES = {"fast": 3400}
LINE_RATES_BPS = {"four": 1e9, "fast": 100e9, "bare": 1e9}
SUITES = ["ramps", pytest.param("searches", marks=pytest.mark.nightly)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "dut_configs").mkdir()
    for name, text in {**KINDS, "bare": BARE}.items():
        (tmp_path / "dut_configs" / f"{name}.yaml").write_text(text)
    yield tmp_path
    trexbench(tmp_path, "lab", "down", "--dut", "fast", "--force")
    assert not namespaces(PREFIX)


def suites_of(folder: Path, dut: str) -> None:
    """One of ramps, one of searches, both ways."""
    cells = f"duts: [{dut}]\nmodes: [var2-{FRAMES.get(dut, 64)}b]\ndirections: [bidir]\n"
    searching = json.dumps({key: value for key, value in PLAN.items() if key not in ("ramp_duration", "hold")})
    folder_with(folder, ramps=f"{cells}plan: {plan()}\n", searches=f"method: search\n{cells}plan: {searching}\n")


def assert_measured(folder: Path, dut: str, suite: str) -> None:
    """Frames of this DUT's size went to all its ports, and nearly all came back."""
    every: Any = [json.loads(path.read_text()) for path in folder.glob(f"results/*/{dut}/*.json")]
    (one,) = [each for each in every if each["status"] == "complete"]  # a cell of a busy machine is tried once more
    assert one["plan"]["kind"] == {"ramps": "ramp", "searches": "search"}[suite]
    ports = 4 if dut == "four" else 2
    assert one["status"] == "complete" and not one["generator"]["simulated"]
    assert one["dut"]["attested"] == (dut != "bare") and not one["dut"]["mismatches"]
    offers, results = one["plan"]["offers"], one["analysis"]
    assert len(offers) == len(results) == ports
    assert {offer["mean_frame_bytes"] for offer in offers} == {FRAMES.get(dut, 64)}
    assert {offer["line_rate_bps"] for offer in offers} == {LINE_RATES_BPS[dut]}
    first, last = one["samples"][0]["ports"], one["samples"][-1]["ports"]
    for port, other in ((str(tx), str(tx ^ 1)) for tx in range(ports)):
        sent, came = (last[at][key] - first[at][key] for at, key in ((port, "opackets"), (other, "ipackets")))
        assert sent > 1000 and 0.8 * sent < came <= sent + 64


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("dut", by_day(1, KINDS))
def test_it_is_measured(folder: Path, dut: str, suite: str) -> None:
    suites_of(folder, dut)
    succeed(folder, "suite", "run", suite, "-q")
    assert_measured(folder, dut, suite)


@pytest.mark.nightly
@pytest.mark.parametrize("suite", SUITES)
def test_a_router_that_somebody_else_configured(folder: Path, suite: str) -> None:
    """Nothing of a lab is known to driver none: here it is a router like any other, and its server one like TRex."""
    for verb in (("lab", "up", "--dut", "fast"), ("dut", "apply", "fast")):
        succeed(folder, *verb)
    suites_of(folder, "bare")
    run = subprocess.run(
        ["ip", "netns", "exec", f"{PREFIX}-tester", *TREXBENCH, "suite", "run", suite, "-q", "--server", "127.0.0.1"],
        cwd=folder,
        env=environment(folder / "run"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert_measured(folder, "bare", suite)
