"""``trexbench tcp``: forms of output, options that no other test gives, and completion."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tools import document, succeed, trexbench

SIM = ("tcp", "--dut", "raspberry-pi", "--sim", "--speedup", "10000", "--time", "4s", "--ping", "0", "--no-picture")


def told(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = succeed(place, *arguments, timeout_s=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_json_is_the_document_without_its_readings(tmp_path: Path) -> None:
    found = json.loads(told(tmp_path, *SIM, "-q", "--json").stdout)
    kept = document(tmp_path)
    assert "legs" not in found and found["simulated"] is True
    assert {key: kept[key] for key in found} == found
    assert json.loads(told(tmp_path, "show", "--json").stdout) == found


def test_brief_is_a_few_lines(tmp_path: Path) -> None:
    told_briefly = told(tmp_path, *SIM, "-q", "--brief").stdout
    assert len(told_briefly.splitlines()) <= 10
    assert "TCP through raspberry-pi: forward IPv4 65." in told_briefly and "SIMULATED" in told_briefly


def test_a_seed_makes_the_same_run_again_and_another_another(tmp_path: Path) -> None:
    rates = []
    for number, seed in enumerate((7, 7, 8)):
        (place := tmp_path / str(number)).mkdir()
        told(place, *SIM, "-q", "--forward", "--seed", str(seed))
        found = document(place)
        assert found["dut"]["seed"] == seed
        rates.append([one["received_bps"] for one in found["analysis"][0]["intervals"]])
    assert rates[0] == rates[1] != rates[2]


def test_without_telemetry_nothing_is_read_of_the_dut(tmp_path: Path) -> None:
    told(tmp_path, *SIM, "-q", "--forward", "--no-telemetry")
    found = document(tmp_path)
    assert found["legs"][0]["dut"] == [] and found["summaries"][0]["limit"] == "unknown"
    assert found["summaries"][0]["cores_per_gbps"] is None
    rows = json.loads(told(tmp_path, "results", "list", "--json").stdout)["runs"]
    assert [row["cell"]["mode"] for row in rows] == ["forward-ipv4-unmonitored"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("trexbench tc", {"tcp"}),
        ("trexbench tcp --dut rasp", {"raspberry-pi"}),
        ("trexbench suite ta", {"table"}),
        ("trexbench lab pro", {"profile"}),
        ("trexbench bdp --dut mini", {"mininet-lab8"}),
        ("trexbench tcp --bd", {"--bdp"}),
        ("trexbench ramp --zo", {"--zoom"}),
        ("trexbench tcp --bdp --dut mini", {"mininet-lab8"}),
        ("trexbench tcp --engine ", {"embedded", "iperf3"}),
        ("trexbench tcp --ip ", {"4", "6", "both"}),
        ("trexbench suite table home", {"home-routers-2022"}),
    ],
)
def test_completion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, found: set[str]) -> None:
    monkeypatch.setenv("_TREXBENCH_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    done = trexbench(tmp_path)
    assert found <= {line.partition(",")[2] for line in done.stdout.splitlines()}, done.stderr
