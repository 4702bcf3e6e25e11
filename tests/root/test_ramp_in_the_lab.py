"""The whole line on real packets: profile, genuine client, embedded server, veth, a kernel router that forwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shaper import RAMP, SEARCH, assert_large_frames_are_lost_first, assert_the_shapers_rate_is_found, shape
from tools import ROOT, begin, trexbench

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes network namespaces"),
]

PREFIX = f"tbr{os.getpid()}"
SHORT = ("--warmup", "1kpps:2s", "--ramp-duration", "6", "--hold", "1", "--confirm", "1")


@pytest.fixture
def dut(tmp_path: Path) -> Iterator[Path]:
    """lab-linux in namespaces of our own."""
    text = (ROOT / "dut_configs" / "lab-linux.yaml").read_text().replace("prefix: tbx ", f"prefix: {PREFIX} ")
    path = tmp_path / "own.yaml"
    path.write_text(text)
    yield path
    trexbench(tmp_path, "lab", "down", "--dut", str(path), "--force")
    assert not namespaces()


def namespaces() -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith(PREFIX)]


def arrived(interface: str) -> int:
    """Frames that have reached this interface of the DUT."""
    path = f"/sys/class/net/{interface}/statistics/rx_packets"
    done = subprocess.run(
        ["ip", "netns", "exec", f"{PREFIX}-dut", "cat", path], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def silent() -> bool:
    """No frame reaches the DUT for half a second."""
    before = [arrived("d0"), arrived("d1")]
    time.sleep(0.5)
    return before == [arrived("d0"), arrived("d1")]


def document(folder: Path) -> dict[str, object]:
    (path,) = folder.glob("results/*/*/*.json")
    found: dict[str, object] = json.loads(path.read_text())
    return found


def started(run: subprocess.Popen[str]) -> None:
    """Wait for the ramp to be under way."""
    assert run.stderr is not None
    for line in run.stderr:
        if "ramp" in line and "asked" in line:
            return
    pytest.fail("the ramp did not begin")


def test_ramp_measures_a_router_that_forwards(tmp_path: Path, dut: Path) -> None:
    # On a busy machine some tenths of a percent are lost at any load; a throughput of 0 would have no latency.
    command = ("ramp", "--dut", str(dut), "--mode", "var2-64b", "--bidir", "--latency", "2s", "--loss", "20%", "-q")
    done = trexbench(tmp_path, *command, *SHORT)
    assert done.returncode == 0, done.stderr
    found = document(tmp_path)
    assert found["status"] == "complete" and found["simulated"] is False
    assert [one["direction"] for one in found["analysis"]] == ["0->1", "1->0"]  # type: ignore[attr-defined]
    assert all(one["received"] > 10_000 for one in found["analysis"])  # type: ignore[attr-defined]
    assert found["dut"]["attested"] and found["dut"]["facts"]["ip_forward"] == 1  # type: ignore[index]
    assert [one["flows"] for one in found["profiles"].values()] == [251, 251]  # type: ignore[attr-defined]
    latencies: list[dict[str, float]] = found["latency"]  # type: ignore[assignment]
    assert [(one["share"], one["direction"]) for one in latencies] == [
        (share, direction) for share in (0.1, 0.5, 0.9) for direction in ("0->1", "1->0")
    ]
    assert all(one["received"] and one["min_s"] <= one["mean_s"] <= one["max_s"] for one in latencies)
    assert all(one["min_s"] >= 0 and one["mean_s"] > 1e-6 for one in latencies)  # counted in whole microseconds
    assert next(tmp_path.glob("results/*/*/*.png")).read_bytes().startswith(b"\x89PNG")
    assert not namespaces()


def test_a_limited_generator_is_named_and_the_dut_is_not(tmp_path: Path, dut: Path) -> None:
    assert "  txqueuelen: 1000\n" in dut.read_text()
    dut.write_text(dut.read_text().replace("  txqueuelen: 1000\n", "  txqueuelen: 1000\n  sender_limit: 50kpps\n"))
    done = trexbench(tmp_path, "ramp", "--dut", str(dut), "--mode", "var2-64b", "-q", "--no-picture", *SHORT)
    assert done.returncode == 0, done.stderr
    (one,) = document(tmp_path)["analysis"]  # type: ignore[misc]
    assert one["limit"] == "generator-tx" and one["at_least"]
    assert 30e3 < one["maximum_pps"] < 60e3
    assert ">=" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_whatever_ends_the_run_its_lab_goes_with_it(
    tmp_path: Path, dut: Path, number: signal.Signals, code: int
) -> None:
    run = begin(tmp_path, "ramp", "--dut", str(dut), "--mode", "64b", "--warmup", "1kpps:2s", "--no-picture")
    started(run)
    run.send_signal(number)
    run.communicate(timeout=30)
    assert run.returncode == code
    assert until(lambda: not namespaces(), 10)
    expected = "running" if number == signal.SIGKILL else "incomplete"
    assert document(tmp_path)["status"] == expected


def test_kill_9_silences_the_ports_of_a_lab_that_stays(tmp_path: Path, dut: Path) -> None:
    up = trexbench(tmp_path, "lab", "up", "--dut", str(dut))
    assert up.returncode == 0, up.stderr
    run = begin(tmp_path, "ramp", "--dut", str(dut), "--mode", "64b", "--warmup", "1kpps:2s", "--no-picture")
    started(run)
    assert not silent()
    run.kill()
    run.communicate()
    assert until(silent, 5)
    assert len(namespaces()) == 4
    status = trexbench(tmp_path, "lab", "status")
    assert PREFIX in status.stdout and "up" in status.stdout
    again = trexbench(tmp_path, "ramp", "--dut", str(dut), "--mode", "64b", "-q", "--no-picture", *SHORT)
    assert again.returncode == 0, again.stderr
    down = trexbench(tmp_path, "lab", "down", "--dut", str(dut))
    assert down.returncode == 0 and not namespaces()


def test_a_dead_server_ends_the_run_and_is_quoted(tmp_path: Path, dut: Path) -> None:
    run = begin(tmp_path, "ramp", "--dut", str(dut), "--mode", "64b", "--warmup", "1kpps:2s", "--no-picture")
    started(run)
    mark = f"TREXBENCH_LAB={PREFIX}".encode()
    servers = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                servers.append(int(entry.name))
        except OSError:
            continue
    for pid in servers:
        os.kill(pid, signal.SIGKILL)
    _, said = run.communicate(timeout=40)
    assert run.returncode == 5 and "Traceback" not in said
    found = document(tmp_path)
    assert found["status"] == "incomplete" and "the lab's server ended: " in str(found["reason"])
    assert f"{PREFIX}-server.log)" in str(found["reason"])
    assert until(lambda: not namespaces(), 10)


def test_a_cable_pulled_in_the_ramp_ends_it(tmp_path: Path, dut: Path) -> None:
    run = begin(tmp_path, "ramp", "--dut", str(dut), "--mode", "64b", "--warmup", "1kpps:2s", "--no-picture")
    started(run)
    subprocess.run(["ip", "-n", f"{PREFIX}-dut", "link", "set", "d1", "down"], check=True)
    run.communicate(timeout=40)
    assert run.returncode == 5
    found = document(tmp_path)
    assert found["status"] == "incomplete" and "link of port 1" in str(found["reason"])


def test_nothing_comes_back_without_a_route(tmp_path: Path, dut: Path) -> None:
    up = trexbench(tmp_path, "lab", "up", "--dut", str(dut))
    assert up.returncode == 0, up.stderr
    first = trexbench(tmp_path, "ramp", "--dut", str(dut), "--mode", "64b", "-q", "--no-picture", *SHORT)
    assert first.returncode == 0, first.stderr
    subprocess.run(["ip", "-n", f"{PREFIX}-dut", "route", "del", "48.0.0.0/8"], check=True)
    done = trexbench(tmp_path, "ramp", "--dut", str(dut), "--mode", "64b", "--no-apply", "--no-picture", "-q", *SHORT)
    assert done.returncode == 6
    assert "nothing came back on port 1" in done.stderr and "missing route" in done.stderr


def test_saturate_counts_what_emerges(tmp_path: Path, dut: Path) -> None:
    done = trexbench(
        tmp_path, "saturate", "--dut", str(dut), "--mode", "1flow", "--warmup", "1kpps:2s", "--hold", "5",
        "-q", "--json", "--no-picture",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["analysis"]
    assert one["max_received_pps"] > 10_000


def test_a_search_finds_a_routers_rate(dut: Path, tmp_path: Path) -> None:
    assert trexbench(tmp_path, "lab", "up", "--dut", str(dut)).returncode == 0
    shape(f"{PREFIX}-dut")
    run = trexbench(tmp_path, "search", "--dut", str(dut), *SEARCH)
    assert run.returncode == 0, run.stderr
    assert_the_shapers_rate_is_found(document(tmp_path), run.stdout)


def test_a_router_short_of_bytes_loses_the_largest_frames_first(dut: Path, tmp_path: Path) -> None:
    assert trexbench(tmp_path, "lab", "up", "--dut", str(dut)).returncode == 0
    shape(f"{PREFIX}-dut")
    run = trexbench(tmp_path, "ramp", "--dut", str(dut), *RAMP, "--confirm", "0")
    assert run.returncode == 0, run.stderr
    found = document(tmp_path)
    assert_large_frames_are_lost_first(found, run.stdout)
    last = found["samples"][-1]  # type: ignore[index]
    received = last["ports"]["1"]["ipackets"] - found["samples"][0]["ports"]["1"]["ipackets"]  # type: ignore[index]
    assert sum(last["streams"]["0"]["received"]["1"]) == received


def test_doctor_examines_a_lab_that_is_up_and_one_that_is_down(dut: Path, tmp_path: Path) -> None:
    down = trexbench(tmp_path, "doctor", "--dut", str(dut))
    assert down.returncode == 0 and "its lab is down" in down.stdout and "trexbench lab up" in down.stdout
    assert trexbench(tmp_path, "lab", "up", "--dut", str(dut)).returncode == 0
    up = trexbench(tmp_path, "doctor", "--dut", str(dut), "--json")
    found = json.loads(up.stdout)
    assert up.returncode == 0, up.stdout + up.stderr
    named = {one["what"]: one for one in found if one["area"] in ("tester", "DUT")}
    assert {"server", "port 0", "port 1", "reached", "time", "settings", "counters"} <= set(named)
    assert "veth" in named["port 0"]["found"] and named["time"]["state"] == "good"


def test_a_labs_tester_is_calibrated_through_a_bypass(dut: Path, tmp_path: Path) -> None:
    options = ("--modes", "64b", "--ramp-duration", "4", "--latency", "2", "--no-picture", "-q", "--json")
    done = trexbench(tmp_path, "calibrate", "--dut", str(dut), *options)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["tester"] == f"lab-{PREFIX}" and not made["simulated"] and not namespaces()
    assert all(one["carried_pps"] > 1e4 and one["floor_s"] < 0.1 for one in made["limits"]), made
    examined = trexbench(tmp_path, "doctor", "--dut", str(dut), "--json")
    assert {one["what"]: one["state"] for one in json.loads(examined.stdout)}["calibration"] == "good"
    run = trexbench(tmp_path, "ramp", "--dut", str(dut), "--mode", "64b", *SHORT, "-q")
    assert run.returncode == 0, run.stderr
    (path,) = tmp_path.glob("results/*/own/*.json")
    kept = json.loads(path.read_text())["generator"]["calibration"]
    assert kept["measured"] == made["measured"] and [one["direction"] for one in kept["limits"]] == ["0->1"]


def test_two_pairs_of_ports_each_their_own_way(dut: Path, tmp_path: Path) -> None:
    ports = "".join(
        f"""  - tester: {at}
    interface: d{at}
    address: [100.65.{at + 1}.1/24, "2001:2:0:{at + 1}::1/64"]
    neighbour: {{address: [100.65.{at + 1}.2, "2001:2:0:{at + 1}::2"]}}
"""
        for at in (2, 3)
    )
    routes = "  - {to: 16.1.0.0/16, via: 100.65.3.2}\n  - {to: 48.1.0.0/16, via: 100.65.4.2}\n"
    dut.write_text(dut.read_text().replace("\nroutes:\n", f"{ports}\nroutes:\n{routes}"))
    options = ("--mode", "64b", "--bidir", "--ramp-to", "20kpps", "--loss", "20%", *SHORT, "-q")
    done = trexbench(tmp_path, "ramp", "--dut", str(dut), *options)
    assert done.returncode == 0, done.stderr
    found = document(tmp_path)
    assert [one["direction"] for one in found["analysis"]] == ["0->1", "2->3", "1->0", "3->2"]  # type: ignore[attr-defined]
    for one in found["analysis"]:  # type: ignore[attr-defined]
        assert one["received"] > 0.8 * one["sent"] > 0, one
