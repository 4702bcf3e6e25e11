"""Buffers of a TCP test, and a WAN of a rate alone in the lab (tbf, which more kernels have than netem)."""

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
from tools import begin, trexbench

PREFIX = f"tbb{os.getpid()}"
RAMP = ("ramp", "--dut", "./own.yaml", "--mode", "var2-64b", "--bidir", "--no-picture", "--sample", "200ms")
STEPS = ("--warmup", "1kpps:1s", "--ramp-to", "4kpps", "--ramp-duration", "4s", "--hold", "1s", "--confirm", "1s")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lab that stays."""
    folder = tmp_path_factory.mktemp("bdp")
    write_lab(folder, PREFIX, "{offloads: full}")
    with lab_up(folder):
        yield folder
    eventually(lambda: not list(Path("/run/netns").glob(f"{PREFIX}-*")), "the lab is gone", 30)


def buffers() -> list[str]:
    """Return both hosts' limits of the buffers for receiving and sending."""
    names = [f"/proc/sys/net/ipv4/tcp_{one}mem" for one in ("r", "w")]
    argv = [["ip", "netns", "exec", f"{PREFIX}-{host}", "cat", *names] for host in ("client", "server")]
    return [subprocess.run(one, capture_output=True, text=True, timeout=20, check=True).stdout for one in argv]


def largest() -> set[int]:
    return {int(line.split()[-1]) for text in buffers() for line in text.splitlines()}


@pytest.mark.nightly
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_was_set_is_restored_when_the_command_is_ended(place: Path, how: signal.Signals) -> None:
    found, there = buffers(), inside(PREFIX)
    words = ("tcp", "--dut", "./own.yaml", "-q", "--no-picture", "--forward", "--time", "30s", "--ping", "0")
    with begin(place, *words, "--buffers", "1mb") as running:
        try:
            eventually(
                lambda: running.poll() is not None or (largest() == {1_000_000} and flows(PREFIX)), "its leg", 90
            )
            assert running.poll() is None, running.communicate()
            running.send_signal(how)
            running.communicate(timeout=60)
        finally:
            if running.poll() is None:
                running.kill()
    started = {name: {*pids} - {*there[name]} for name, pids in inside(PREFIX).items()}
    eventually(lambda: not any(map(alive, set().union(*started.values()))), "its processes have ended", 30)
    if how is signal.SIGKILL:
        assert buffers() != found, "nobody was left to restore them"
        done = trexbench(place, "dut", "revert", "./own.yaml")
        assert done.returncode == 0, done.stderr
    assert buffers() == found


def test_packets_go_through_the_line_too(place: Path) -> None:
    """More than its rate is not offered: losing it is not the DUT's fault."""
    done = trexbench(place, *RAMP, *STEPS, "--wan", "100mbit", timeout_s=150)
    assert done.returncode in (0, 1), done.stderr
    run = document(place)
    assert run["over"]["wan"]["rate_bps"] == 100e6 and run["over"]["wan_by"] == "tbf"
    (warning,) = [one["text"] for one in run["warnings"] if one["code"] == "wan" and "in the path" in one["text"]]
    assert warning.startswith("a WAN of 100.0 Mbit/s, by ") and run["status"] == "complete"
    assert {offer["line_rate_bps"] for offer in run["plan"]["offers"]} == {100e6}
    refused = trexbench(place, *RAMP, *STEPS, "--wan", "100mbit", "--sim")
    assert refused.returncode == 2 and "simulated packets pass none" in refused.stderr
