"""``trexbench tcp --bdp`` and runs of packets through a real WAN in the lab; what was set is restored."""

from __future__ import annotations

import os
import re
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
LINE = "20ms,100mbit"
BDP = ("tcp", "--bdp", "--dut", "./own.yaml", "--no-picture", "--cc", "cubic", "--buffers", "120kb", "--buffers", "1mb")
SHORT = ("--ping", "1", "--time", "1s", "--omit", "1s", "--interval", "200ms")
RAMP = ("ramp", "--dut", "./own.yaml", "--mode", "var2-64b", "--bidir", "--no-picture", "--sample", "200ms")
STEPS = ("--warmup", "1kpps:1s", "--ramp-to", "4kpps", "--ramp-duration", "4s", "--hold", "1s", "--confirm", "1s")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lab with the line, which stays."""
    folder = tmp_path_factory.mktemp("bdp")
    write_lab(folder, PREFIX, "{offloads: full}", f"wan: {LINE}\n")
    with lab_up(folder):
        yield folder
    eventually(lambda: not list(Path("/run/netns").glob(f"{PREFIX}-*")), "the lab is gone", 10)


def buffers() -> list[str]:
    """Return both hosts' limits of the buffers for receiving and sending."""
    names = [f"/proc/sys/net/ipv4/tcp_{one}mem" for one in ("r", "w")]
    argv = [["ip", "netns", "exec", f"{PREFIX}-{host}", "cat", *names] for host in ("client", "server")]
    return [subprocess.run(one, capture_output=True, text=True, timeout=20, check=True).stdout for one in argv]


def largest() -> set[int]:
    return {int(line.split()[-1]) for text in buffers() for line in text.splitlines()}


@pytest.mark.measures
def test_a_small_buffer_is_the_limit_and_a_large_one_fills_the_line(place: Path) -> None:
    """A busy machine may halve what a window carries, since answers come late, and make that an endpoint's limit.

    It is never more than was predicted, the doubt is stored, and the larger buffer still fills more of the line.
    """
    before = buffers()
    done = trexbench(place, *BDP, *SHORT, timeout_s=150)
    assert done.returncode == 0, done.stderr
    assert buffers() == before, "restored"
    run = document(place)
    assert run["command"]["verb"] == "bdp" and run["setup"]["wan_by"] in ("cable", "netem")
    tried = [trial["wan"]["rate_bps"] for trial in run["calibration"]["trials"]]
    assert tried[0] == 130e6 and tried[-1] == 100e6
    assert min(run["calibration"]["pings"][0]["times_s"]) > 0.0195
    _, small, large = run["bdp"]
    assert (small["set_bytes"], large["set_bytes"]) == (120_000, 1_000_000)
    assert small["ratio"] < 1.1
    if small["limit"] == "window":
        assert small["ratio"] > 0.5 and "window-limited: " in done.stdout
    else:
        assert small["limit"] == "endpoint-cpu", small["words"]
        assert {"foreign-load", "cores-shared"} & {one["code"] for one in run["warnings"] if "waited" in one["text"]}
    assert large["rate_bps"] > 1.5 * small["rate_bps"] and large["rate_bps"] < 1.05 * large["line_bps"]
    assert "BDP     250 kB: 100.0 Mbit/s x 20.0 ms (the WAN)" in done.stdout


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
            running.communicate(timeout=30)
        finally:
            if running.poll() is None:
                running.kill()
    started = {name: {*pids} - {*there[name]} for name, pids in inside(PREFIX).items()}
    eventually(lambda: not any(map(alive, set().union(*started.values()))), "its processes have ended", 10)
    if how is signal.SIGKILL:
        assert buffers() != found, "nobody was left to restore them"
        done = trexbench(place, "dut", "revert", "./own.yaml")
        assert done.returncode == 0, done.stderr
    assert buffers() == found
    (told,) = [one for one in trexbench(place, "lab", "status").stdout.splitlines() if f"lab {PREFIX}:" in one]
    assert ": up, " in told and "dead" not in told, "its line is still there"


@pytest.mark.measures
def test_packets_go_through_the_line_too(place: Path) -> None:
    """Half of the delay each way: a busy machine adds a few milliseconds, and 10 tell half of it from all of it."""
    done = trexbench(place, *RAMP, *STEPS, "--latency", "2s", timeout_s=150)
    assert done.returncode in (0, 1), done.stderr
    run = document(place)
    assert (
        run["over"]["wan"]["rate_bps"] == 100e6
        and run["over"]["wan_by"] == "cable"
        and run["dut"]["facts"]["lab"]["wan"]
    )
    (warning,) = [one["text"] for one in run["warnings"] if one["code"] == "wan" and "in the path" in one["text"]]
    assert warning.startswith("a WAN of 20.0 ms, 100.0 Mbit/s, by ") and run["status"] == "complete"
    offers = run["plan"]["offers"]
    assert {offer["line_rate_bps"] for offer in offers} == {100e6}, (
        "more is not offered: losing it is not the DUT's fault"
    )
    shown = trexbench(place, "show").stdout
    (line,) = [one for one in shown.splitlines() if one.startswith("latency at 50 %")]
    means = [float(one) for one in re.findall(r"([0-9.]+) ms \(", line)]
    assert len(means) == 2 and all(9.5 < one < 20 for one in means), line
    assert "did not carry" not in shown
    refused = trexbench(place, *RAMP, *STEPS, "--sim")
    assert refused.returncode == 2 and "simulated packets pass none" in refused.stderr
