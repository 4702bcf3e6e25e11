"""Runs of TCP from files of iperf3, as whole commands; with the genuine iperf3 where it is."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tools import trexbench

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "iperf3"


def said(place: Path, *arguments: str, code: int = 0) -> str:
    done = trexbench(place, *arguments, timeout_s=120)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def listed(place: Path, *more: str) -> dict[str, dict[str, Any]]:
    """The runs by DUT and mode."""
    runs = json.loads(said(place, "results", "list", "--json", *more))["runs"]
    return {f"{one['cell']['dut']} {one['cell']['mode']}": one for one in runs}


def test_every_reader_takes_what_was_imported(tmp_path: Path) -> None:
    names = ("forward.json", "bidir-both-ends.json", "reverse.json")
    for name in names:
        shutil.copy(FIXTURES / name, tmp_path)
    said(tmp_path, "results", "import", "--dut", "box", *names)
    paths = said(tmp_path, "results", "import", "--dut", "other", *names[:2]).split()
    found = listed(tmp_path)
    modes = ("forward-ipv4-2-streams-unmonitored", "bidir-ipv4-unmonitored", "reverse-ipv4-unmonitored")
    assert {f"box {mode}" for mode in modes} | {f"other {mode}" for mode in modes[:2]} == set(found)
    shown = said(tmp_path, "results", "show", paths[1])
    assert "bidir IPv4 >= 100.1 Mbit/s" in shown and "imported from iperf3 3.12" in shown
    assert said(tmp_path, "results", "show", "--brief", paths[0]).startswith("TCP through other: forward IPv4 >= ")
    assert "forward-ipv4-2-streams" in said(tmp_path, "results", "compare", "box", "other")
    said(tmp_path, "results", "show", paths[0], "--picture", "x.png")
    said(tmp_path, "report", "-o", "page.html")
    assert "forward-ipv4-2-streams-unmonitored" in (tmp_path / "page.html").read_text()
    assert "needs 7 nights, has 1" in trexbench(tmp_path, "regress").stdout
    said(tmp_path, "results", "import", "--dut", "named", "--speed", "100mbit", "forward.json")
    assert listed(tmp_path)["named forward-ipv4-2-streams-unmonitored"]["limit"] == "link"


def test_nights_of_imported_runs_are_judged(tmp_path: Path) -> None:
    """Segments sent again; their rates are only what the router carries at least."""
    for night in range(1, 16):
        document = json.loads((FIXTURES / "forward.json").read_text())
        document["start"]["timestamp"]["timesecs"] += 86400 * night
        for interval in document["intervals"]:
            interval["streams"][0]["retransmits"] = 20 if night > 12 else 10 + night % 3
        (tmp_path / f"{night}.json").write_text(json.dumps(document))
    said(tmp_path, "results", "import", "--dut", "box", *(f"{night}.json" for night in range(1, 16)))
    judged = trexbench(tmp_path, "regress")
    assert judged.returncode == 3 and "retransmitted" in judged.stdout, judged.stdout
    assert "TCP rate" not in judged.stdout, judged.stdout


def test_a_lower_rate_of_unknown_limit_is_remarked_and_no_regression(tmp_path: Path) -> None:
    for night in range(1, 10):
        document = json.loads((FIXTURES / "forward.json").read_text())
        document["start"]["timestamp"]["timesecs"] += 86400 * night
        for stream in (stream for one in document["intervals"] for stream in one["streams"]):
            stream["bytes"] = int((0.7 if night == 9 else 1.0) * stream["bytes"])
        (tmp_path / f"{night}.json").write_text(json.dumps(document))
    said(tmp_path, "results", "import", "--dut", "box", *(f"{night}.json" for night in range(1, 10)))
    told = " ".join(said(tmp_path, "regress").split())
    assert "not known to be limited by the DUT since 2026-12-02" in told


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="no iperf3 here")
@pytest.mark.parametrize("more", [("-P", "2", "-O", "1"), ("--bidir", "--get-server-output")])
def test_what_iperf3_prints_here_is_imported(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Over loopback, at a rate that costs nobody anything, in blocks so small that one more or less is 0.3 % of it.

    iperf3 counts the time in which the last blocks arrive; the run ends with its 2 s. Both rates are bounds of ours:
    with 1 to 12 other processes on two cores, 72 runs of one stream lay at most 1.3 % outside of them.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    listen = ("timeout", "20", "iperf3", "-s", "-1", "-J", "-B", "127.0.0.1", "-p", port)
    with subprocess.Popen(listen, stdout=subprocess.DEVNULL) as server:
        send = f"timeout 20 iperf3 -c 127.0.0.1 -p {port} -J -t 2 -b 20M -l 16K {' '.join(more)}".split()
        for _ in range(20):  # until it listens
            time.sleep(0.2)
            printed = subprocess.run(send, capture_output=True, text=True, check=False).stdout
            if "Connection refused" not in printed:
                break
        server.terminate()
    (tmp_path / "here.json").write_text(printed)
    said(tmp_path, "results", "import", "here.json")
    (run,) = listed(tmp_path).values()
    streams = 2 if "-P" in more or "--bidir" in more else 1
    assert run["status"] == "complete" and run["total_bps"] < 1.15 * streams * 20e6
    end = json.loads(printed)["end"]
    received = [end[name] for name in ("sum_received", "sum_received_bidir_reverse") if name in end]
    least = sum(one["bits_per_second"] for one in received)
    most = sum(max(one["bits_per_second"], 8 * one["bytes"] / 2.0) for one in received)
    assert 0.95 * least < run["total_bps"] < 1.05 * most
