"""``trexbench tcp`` over simulated routers, also with --bdp: as a user gives it, and what its documents answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import document, succeed, trexbench

SIM = ("tcp", "--dut", "raspberry-pi", "--sim", "--speedup", "10000", "--time", "4s", "--no-picture", "-q")
QUIET = (*SIM, "--ping", "0")
BDP = ("tcp", "--bdp", "--dut", "lab-linux", "--sim", "--speedup", "10000", "--ping", "4")


def test_a_simulated_run_says_so_and_can_be_asked_for_again(tmp_path: Path) -> None:
    done = succeed(tmp_path, *SIM, "--ping", "2", "--label", "night-1")
    assert "SIMULATED" in done.stdout
    (path,) = map(str, tmp_path.glob("results/*/*/*.json"))
    for command in (("show", path), ("show", "--brief"), ("results", "compare", path, path)):
        assert "raspberry-pi" in succeed(tmp_path, *command).stdout
    found = succeed(tmp_path, "results", "list", "--label", "night-1")
    assert Path(path).name in found.stdout, found.stderr


def test_json_is_the_document_without_its_readings(tmp_path: Path) -> None:
    found = json.loads(succeed(tmp_path, *QUIET, "--json").stdout)
    kept = document(tmp_path)
    assert "legs" not in found and found["simulated"] is True
    assert {key: kept[key] for key in found} == found
    assert json.loads(succeed(tmp_path, "show", "--json").stdout) == found


def test_without_telemetry_nothing_is_read_of_the_dut(tmp_path: Path) -> None:
    succeed(tmp_path, *QUIET, "--forward", "--no-telemetry")
    found = document(tmp_path)
    assert found["legs"][0]["dut"] == [] and found["summaries"][0]["limit"] == "unknown"
    assert found["summaries"][0]["cores_per_gbps"] is None
    rows = json.loads(succeed(tmp_path, "results", "list", "--json").stdout)["runs"]
    assert [row["cell"]["mode"] for row in rows] == ["forward-ipv4-unmonitored"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("trexbench tc", {"tcp"}),
        ("trexbench bdp --dut mini", {"mininet-lab8"}),
        ("trexbench ramp --lat", {"--latency"}),
        ("trexbench tcp --engine ", {"embedded", "iperf3"}),
        ("trexbench suite table home", {"home-routers-2022"}),
        ("trexbench nightly lab --fleet fl", {"fl"}),
        ("trexbench results compare be", {"be"}),
    ],
)
def test_completion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, found: set[str]) -> None:
    monkeypatch.setenv("_TREXBENCH_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    done = trexbench(tmp_path)
    assert found <= {line.partition(",")[2] for line in done.stdout.splitlines()}, done.stderr


def test_before_and_after(tmp_path: Path) -> None:
    done = succeed(tmp_path, *BDP, "--wan", "20ms,10gbit")
    for words in (
        "SIMULATED",
        "BDP     25.0 MB",
        "16.8 MB, as found (tcp_rmem of the server): window-limited: ",
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
    done = succeed(tmp_path, *BDP, *asked, "--no-picture", "--json")
    rows = json.loads(done.stdout)["bdp"]
    assert [row["congestion"] for row in rows] == ["cubic"] * 7 + ["bbr"] * 7
    assert [row["set_bytes"] for row in rows[:7]] == [round(2_500_000 * 2.0**n) for n in range(-4, 3)]
    assert {row["sender"] for row in rows} == {"server"}
    cubic, bbr = rows[6], rows[13]
    assert cubic["predicted_by"] == "loss" and cubic["words"].startswith("loss-limited: ")
    assert bbr["loss_bps"] is None and bbr["words"].startswith("fills the line: ")
    assert 0.85 < cubic["ratio"] < 1.1 and cubic["retransmits"] > 0
