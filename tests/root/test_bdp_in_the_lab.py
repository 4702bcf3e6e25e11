"""``trexbench bdp`` and runs of packets through a real WAN in the lab; what was set is restored, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoints import alive
from labs import document, flows, inside, lab_up, write_lab
from sshd import eventually
from targets import NEEDS_ROOT
from tools import begin, trexbench

pytestmark = [pytest.mark.root, NEEDS_ROOT]

PREFIX = f"tbb{os.getpid()}"
LINE = "20ms,100mbit"
BDP = ("bdp", "--dut", "./own.yaml", "--no-picture", "--ping", "2", "--time", "3s", "--omit", "1s")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    write_lab(tmp_path, PREFIX, "{offloads: full}", f"wan: {LINE}\n")
    yield tmp_path
    eventually(lambda: not list(Path("/run/netns").glob(f"{PREFIX}-*")), "the lab is gone", 10)


@pytest.fixture
def stays(place: Path) -> Iterator[Path]:
    """The same, in a lab that stays."""
    with lab_up(place):
        yield place


def buffers() -> list[str]:
    """Those of both hosts, of what they receive and send."""
    names = [f"/proc/sys/net/ipv4/tcp_{one}mem" for one in ("r", "w")]
    argv = [["ip", "netns", "exec", f"{PREFIX}-{host}", "cat", *names] for host in ("client", "server")]
    return [subprocess.run(one, capture_output=True, text=True, timeout=20, check=True).stdout for one in argv]


def largest() -> set[int]:
    return {int(line.split()[-1]) for text in buffers() for line in text.splitlines()}


def test_a_small_buffer_is_the_limit_and_a_large_one_fills_the_line(stays: Path) -> None:
    found = buffers()
    done = trexbench(stays, *BDP, "--cc", "cubic", "--buffers", "120kb", "--buffers", "1mb", timeout_s=150)
    assert done.returncode == 0, done.stderr
    assert buffers() == found, "restored"
    run = document(stays)
    assert run["command"]["verb"] == "bdp" and run["setup"]["wan_by"] in ("cable", "netem")
    tried = [trial["wan"]["rate_bps"] for trial in run["calibration"]["trials"]]
    assert tried[0] == 130e6 and tried[-1] == 100e6
    assert min(run["calibration"]["pings"][0]["times_s"]) > 0.0195
    _, small, large = run["bdp"]
    assert (small["set_bytes"], large["set_bytes"]) == (120_000, 1_000_000)
    assert 0.6 < small["ratio"] < 1.1 and small["limit"] == "window", small["words"]
    assert large["rate_bps"] > 0.7 * large["line_bps"] > 1.5 * small["rate_bps"]
    assert "BDP     250 kB: 100.0 Mbit/s x 20.0 ms (the WAN)" in done.stdout
    assert "window-limited: " in done.stdout


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_was_set_is_restored_when_the_command_is_ended(stays: Path, how: signal.Signals) -> None:
    found, there = buffers(), inside(PREFIX)
    words = ("tcp", "--dut", "./own.yaml", "-q", "--no-picture", "--forward", "--time", "30s", "--ping", "0")
    with begin(stays, *words, "--buffers", "1mb") as running:
        try:
            eventually(
                lambda: running.poll() is not None or (largest() == {1_000_000} and flows(PREFIX)), "its leg", 90
            )
            assert running.poll() is None, running.communicate()
            running.send_signal(how)
            running.communicate(timeout=30)
        finally:
            if running.poll() is None:
                running.kill()
    started = {name: {*pids} - {*there[name]} for name, pids in inside(PREFIX).items()}
    eventually(lambda: not any(map(alive, set().union(*started.values()))), "its processes have ended", 10)
    if how is signal.SIGKILL:
        assert buffers() != found, "nobody was left to restore them"
        done = trexbench(stays, "dut", "revert", "./own.yaml")
        assert done.returncode == 0, done.stderr
    assert buffers() == found
    (told,) = [one for one in trexbench(stays, "lab", "status").stdout.splitlines() if f"lab {PREFIX}:" in one]
    assert ": up, " in told and "dead" not in told, "its line is still there"


def test_packets_go_through_the_line_too(place: Path) -> None:
    ramp = ("ramp", "--dut", "./own.yaml", "--mode", "var2-64b", "--ramp-to", "4kpps", "--ramp-duration", "4s")
    done = trexbench(place, *ramp, "--no-picture", "--telemetry", "off", timeout_s=150)
    assert done.returncode == 0, done.stderr
    run = document(place)
    (told,) = [one["text"] for one in run["warnings"] if one["code"] == "wan" and "in the path" in one["text"]]
    assert told.startswith("a WAN of 20.0 ms, 100.0 Mbit/s, by ") and run["status"] == "complete"
    (offer,) = run["plan"]["offers"]
    assert offer["line_rate_bps"] == 100e6, "what the line does not carry is not offered: it is not the DUT's"
    refused = trexbench(place, *ramp, "--sim")
    assert refused.returncode == 2 and "simulated packets pass none" in refused.stderr
