"""Long lines and tunnels, which this machine's kernel lacks, in a guest that has them, by what their laws predict.

The guest's processor is emulated, so every rate is far below what that carries: the line or the window is the limit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from guest import lacking, python_in_guest, trexbench_in_guest
from labs import write_lab
from tools import ROOT, documents

pytestmark = [pytest.mark.root, pytest.mark.skipif(lacking() != "", reason=lacking())]

UP = ("lab", "up", "--dut", "./own.yaml")
TCP = ("tcp", "--dut", "./own.yaml", "--forward", "--no-picture", "--ping", "3", "--time", "4s", "--omit", "2s")
TIMESTAMPED = 32
"""Bytes of TCP's header with its time stamps."""
ETHERNET = 14
"""Bytes that a qdisc counts of each frame besides its packet."""
WITHIN_S = 840


def measured(folder: Path, *options: Sequence[str], offloads: str = "full") -> list[Any]:
    """Documents of a lab's TCP runs with these options, one after the other."""
    write_lab(folder, "tbx", f"{{offloads: {offloads}}}")
    runs = trexbench_in_guest(folder, UP, *((*TCP, *words) for words in options), timeout_s=WITHIN_S)
    assert [run.code for run in runs] == [0] * (1 + len(options)), runs[-1].stdout + runs[-1].stderr
    return documents(folder)


def rate_bps(run: Any) -> float:
    """Payload that the receiver got."""
    (flow,) = run["analysis"]
    received: float = flow["received_bps"]
    return received


def limit(run: Any) -> str:
    (flow,) = run["analysis"]
    found: str = flow["limit"]
    return found


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.measures
def test_a_window_over_the_delay_is_the_rate_until_the_line_is_full(tmp_path: Path) -> None:
    """The lab of "Bandwidth-delay Product and TCP Buffer Size": five times its delay, a 1000th of its rate.

    Half of a buffer is window in this kernel. A busy machine makes round trips longer, and rates lower by a quarter; or
    an endpoint's CPU is the limit where the line is not full, and the run says so. What is received once a lost
    segment is repaired may have come a round trip before, of four seconds.
    """
    sizes = ("--cc", "reno", "--buffers", "84kb", "--buffers", "262kb")
    (run,) = measured(tmp_path, ("--bdp", "--wan", "100ms,10mbit", *sizes))
    assert run["setup"]["wan_by"] == "netem" and 0.1 <= min(run["calibration"]["pings"][0]["times_s"]) < 0.11
    found, small, large = run["bdp"]
    assert small["window_bytes"] == pytest.approx(84_000 / 2, rel=0.1)
    assert 0.75 < small["rate_bps"] / (84_000 / 2 * 8 / 0.1) < 1.05
    line_bps = 10e6 * 1448 / (1500 + ETHERNET)
    for full in (found, large):
        assert 1.4 * small["rate_bps"] < full["rate_bps"] < (1.02 + 0.1 / 4) * line_bps
        assert full["rate_bps"] > 0.75 * line_bps or full["limit"] == "endpoint-cpu", full


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.measures
def test_wans_delay_vary_and_lose(tmp_path: Path) -> None:
    """A busy machine adds milliseconds to round trips, and lowers rates by a third.

    Reno, since cubic ends its slow start too early where round trips vary. Few seconds have few losses: a wide range.
    What waits behind a lost segment is received once that is repaired: what came in a round trip before counts, too.
    """
    lines = ("200ms,5mbit", "100ms,5mbit,jitter=20ms", "40ms,10mbit,loss=1%")
    options = [("--wan", line, "--cc", "reno", "--time", "8s") for line in lines]
    delayed, varied, lossy = measured(tmp_path, *options, offloads="packet")
    assert 0.2 <= min(delayed["pings"][0]["times_s"]) < 0.22
    ratio = rate_bps(delayed) / (5e6 * 1448 / (1500 + ETHERNET))
    assert 0.6 < ratio < 1.02 + 0.2 / 8 or limit(delayed) == "endpoint-cpu"
    trips_s = varied["pings"][0]["times_s"]
    assert all(0.06 <= one < 0.16 for one in trips_s) and len({round(one, 3) for one in trips_s}) > 1
    (row,) = lossy["bdp"]
    assert row["predicted_by"] == "loss" and 0.4 < row["ratio"] < 1.7


TUNNELS = {
    "none": ("", 0),
    "gre": ("", 24),
    "vxlan": ("", 50),
    "wireguard": ("the kernel", 60),
    "ipsec": ("", 54),
    "6in4": ("sit", 20),
}
"""Kind -> how it is made, and bytes that it puts around each packet."""


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.measures
@pytest.mark.parametrize("kinds", [("none", "gre", "vxlan"), ("wireguard", "ipsec", "6in4")])
def test_a_tunnel_costs_its_header(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """Each segment on a line of 5 Mbit/s carries its header less. On a busy machine some are sent twice."""
    options = [("--wan", "5mbit", "--tunnel", kind, "--ping", "0", *six(kind)) for kind in kinds]
    for kind, run in zip(kinds, measured(tmp_path, *options, offloads="packet"), strict=True):
        by, header = TUNNELS[kind]
        assert run["setup"]["tunnel"] == kind and by in run["setup"].get("tunnel_by", "")
        payload = 1500 - header - (40 if kind == "6in4" else 20) - TIMESTAMPED
        (leg,) = run["legs"]
        before, after = (leg["dut"][at]["observation"]["ports"][1]["tx_packets"] for at in (0, -1))
        sent, came = (leg[end][-1]["streams"][0] for end in ("client", "server"))
        assert sent["info"]["snd_mss"] == pytest.approx(payload, rel=0.01), kind
        assert 0.8 * payload < came["payload_bytes"] / (after - before) < 1.03 * payload, kind
        assert 0.5 < rate_bps(run) / (5e6 * payload / (1500 + ETHERNET)) < 1.02, kind


def six(kind: str) -> tuple[str, ...]:
    return ("--ip", "6") if kind == "6in4" else ()


@pytest.mark.nightly
@pytest.mark.timeout(1600)
@pytest.mark.parametrize("file", ["test_sixinfour.py", "test_pppoe.py", "test_pppoe_in_the_lab.py"])
def test_tests_that_need_its_kernel(tmp_path: Path, file: str) -> None:
    argv = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "0", f"tests/root/{file}")
    done = python_in_guest(tmp_path, [["env", "-C", str(ROOT), *argv]], 1500)[-1]
    assert done.code == 0 and re.search(r"\d+ passed", done.stdout) and "skipped" not in done.stdout, done.stdout
