"""``trexbench tcp --bdp`` as a whole command, simulated: before and after, sweeps, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

from tools import document, succeed, trexbench

SIM = ("tcp", "--bdp", "--dut", "lab-linux", "--sim", "--speedup", "10000", "--ping", "4")


def test_before_and_after(tmp_path: Path) -> None:
    done = succeed(tmp_path, *SIM, "--wan", "20ms,10gbit")
    for words in (
        "SIMULATED",
        "BDP     25.0 MB",
        "16.8 MB, as found (tcp_wmem of the client): window-limited: ",
        "50.0 MB, set: fills the line: ",
    ):
        assert words in done.stdout, done.stdout
    found = document(tmp_path)
    before, after = found["bdp"]
    assert found["command"]["verb"] == "bdp" and found["setup"]["wan_by"] == "the twin" and found["simulated"]
    assert (before["set_bytes"], after["set_bytes"], after["buffer_bytes"]) == (None, 50_000_000, 50_000_000)
    assert (before["limit"], after["limit"]) == ("window", "link")
    assert before["rate_bps"] < 0.6 * after["rate_bps"] and after["rate_bps"] > 0.85 * after["line_bps"]
    assert 0.9 < before["ratio"] < 1.1, "within 10 % of window over round trip"
    (picture,) = tmp_path.glob("results/*/lab-linux/*.png")
    assert picture.read_bytes()[:4] == b"\x89PNG"
    shown = succeed(tmp_path, "results", "show")
    assert shown.stdout == done.stdout
    assert json.loads(trexbench(tmp_path, "results", "show", "--json").stdout)["bdp"] == found["bdp"]
    listed = json.loads(trexbench(tmp_path, "results", "list", "--json").stdout)["runs"]
    assert {one["cell"]["mode"] for one in listed} == {"forward-ipv4", "forward-ipv4-buffers-50000000"}


def test_a_sweep_over_congestion_controls_with_loss(tmp_path: Path) -> None:
    asked = ("--wan", "20ms,1gbit,loss=0.01%", "--sweep", "--cc", "cubic", "--cc", "bbr", "--reverse", "--time", "5s")
    done = succeed(tmp_path, *SIM, *asked, "--no-picture", "--json")
    rows = json.loads(done.stdout)["bdp"]
    assert [row["congestion"] for row in rows] == ["cubic"] * 7 + ["bbr"] * 7
    assert [row["set_bytes"] for row in rows[:7]] == [round(2_500_000 * 2.0**n) for n in range(-4, 3)]
    assert {row["sender"] for row in rows} == {"server"}
    cubic, bbr = rows[6], rows[13]
    assert cubic["predicted_by"] == "loss" and cubic["words"].startswith("loss-limited: ")
    assert bbr["loss_bps"] is None and bbr["words"].startswith("fills the line: ")
    assert 0.85 < cubic["ratio"] < 1.1 and cubic["retransmits"] > 0


def test_tcp_takes_a_wan_and_buffers(tmp_path: Path) -> None:
    asked = ("--forward", "--wan", "20ms,1gbit", "--buffers", "1mb", "--buffers", "4mb", "--time", "5s")
    done = succeed(tmp_path, "tcp", *SIM[2:], *asked, "--no-picture", "-q")
    assert "1.00 MB, set: window-limited: " in done.stdout, done.stderr
    assert document(tmp_path)["command"]["verb"] == "tcp"
