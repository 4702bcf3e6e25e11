"""The shipped examples of network operating systems, through whole commands, on devices that play a prompt."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_device import __file__ as DEVICE
from sshd import WHY_NOT, running_sshd
from tools import ROOT, document, fake_server, trexbench
from verbs import run

from trexbench.transport.ssh import CONFIG_ENV

pytest.importorskip("netmiko", reason="needs pip install 'trexbench[cli]'")
from cli_server import PASSWORD, CliServer, cli_server

MACS = ("02:00:00:00:00:0a", "02:00:00:00:00:0b")


def written(folder: Path, name: str) -> Path:
    """The shipped example with MACs in place of those that a tester would name."""
    text = (ROOT / "dut_configs" / "examples" / f"{name}.yaml").read_text()
    for at, mac in enumerate(MACS):
        text = text.replace(f"{{mac {at}}}", mac)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


@pytest.fixture
def mikrotik(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CliServer]:
    path = written(tmp_path, "mikrotik")
    path.write_text(path.read_text().replace("mikrotik.example.net", "dut"))
    with cli_server(tmp_path, "routeros") as server:
        monkeypatch.setenv(CONFIG_ENV, str(server.client_config))
        monkeypatch.setenv("ROUTER_PASSWORD", PASSWORD)
        yield server


@pytest.fixture
def edgeos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The device's state; behind a real sshd."""
    if WHY_NOT:
        pytest.skip(WHY_NOT)
    state = tmp_path / "edge.json"
    command = f"ForceCommand exec {sys.executable} -E {DEVICE} edgeos {state}"
    with running_sshd(command) as server:
        path = written(tmp_path, "edgeos")
        text = path.read_text().replace("edgerouter.example.net", "dut").replace("  user: ubnt\n", "")
        path.write_text(text.replace("~/.ssh/id_ed25519", str(server.folder / "user")))
        monkeypatch.setenv(CONFIG_ENV, str(server.client_config))
        yield state


def dut(folder: Path, verb: str, name: str, *options: str, code: int = 0) -> str:
    done = trexbench(folder, "dut", verb, f"{name}.yaml", *options)
    assert done.returncode == code, done.stderr + done.stdout
    said = done.stdout + done.stderr
    assert "Traceback" not in said and PASSWORD not in said
    return said


def life(folder: Path, name: str, steps: int, lines: int) -> tuple[Any, Any]:
    """plan, apply, apply again, verify, telemetry, revert: what each says; return facts and counters."""
    planned = dut(folder, "plan", name)
    assert planned.count("# ") - planned.count("  # ") == steps and planned.count("  # ") == lines
    applied = dut(folder, "apply", name)
    assert f"{steps} changes" in applied and applied.endswith("it is what its config says\n")
    assert dut(folder, "apply", name) == "nothing to change\nit is what its config says\n"
    found = json.loads(dut(folder, "verify", name, "--json"))
    assert found["attested"] and not found["mismatches"] and found["facts_sha256"]
    seen = json.loads(dut(folder, "telemetry", name, "--seconds", "1", "--json"))
    assert f"{steps} reverted" in dut(folder, "revert", name)
    assert "NOT what its config says" in dut(folder, "verify", name, code=6)
    return found["facts"], seen["before"]


def test_the_life_of_a_mikrotik(tmp_path: Path, mikrotik: CliServer) -> None:
    facts, seen = life(tmp_path, "mikrotik", steps=6, lines=6)
    assert json.loads(mikrotik.state.read_text()) == []
    typed = mikrotik.state.with_suffix(".log").read_text()
    assert f"/ip arp add address=100.65.1.2 mac-address={MACS[0]} interface=ether2\n" in typed
    assert (facts["version"], facts["board"]) == ("7.15.3", "RB5009UG+S+")
    assert seen["ports"] == [
        {"port": 0, "rx_packets": 2000, "tx_packets": 4000000},
        {"port": 1, "rx_packets": 3000, "tx_packets": 6000000},
    ]
    assert [(one["name"], one["port"], one["count"]) for one in seen["drops"]][:2] == [
        ("rx-drop", 0, 5),
        ("tx-queue-drop", 0, 1234),
    ]
    assert not seen["missing"]


@pytest.mark.nightly
def test_the_life_of_an_edgerouter(tmp_path: Path, edgeos: Path) -> None:
    life(tmp_path, "edgeos", steps=4, lines=18)
    assert json.loads(edgeos.read_text()) == []


@pytest.mark.nightly
def test_facts_and_counters_of_an_edgerouter(tmp_path: Path, edgeos: Path) -> None:
    facts = json.loads(dut(tmp_path, "verify", "edgeos", "--json", code=6))["facts"]
    assert (facts["version"], facts["offload of IPv4"]) == ("v2.0.9-hotfix.7", "enabled")
    seen = json.loads(dut(tmp_path, "telemetry", "edgeos", "--seconds", "1", "--json"))
    assert seen["before"]["ports"][1] == {"port": 1, "rx_packets": 2000, "tx_packets": 4000}
    assert [one["count"] for one in seen["before"]["drops"]] == [7, 7, 3, 3]
    assert seen["before"]["cpus"][0]["clock_hz"] == 880e6 and seen["after"]["at_s"] > seen["before"]["at_s"]
    assert not seen["before"]["missing"]


QUICK = "--ramp-duration 4s --hold 1s --confirm 0s --warmup 1kpps:1s --sample 0.5s --no-picture"


@pytest.mark.nightly
def test_a_run_applies_reads_back_and_counts(tmp_path: Path, mikrotik: CliServer) -> None:
    with fake_server() as server:
        options = [one for one in server.options if one != "--no-apply"]
        done = trexbench(tmp_path, "ramp", "--dut", "mikrotik.yaml", "--mode", "var2-64b", *QUICK.split(), *options)
    assert done.returncode == 0, done.stderr
    found = document(tmp_path)
    assert found["dut"]["attested"] and len(found["dut"]["applied"]) == 6
    assert [one["observation"]["ports"][0]["rx_packets"] for one in found["telemetry"]["readings"]]
    assert PASSWORD not in f"{found}{done.stdout}{done.stderr}" and "ROUTER_PASSWORD" in str(found)


def test_a_line_that_is_refused(tmp_path: Path, mikrotik: CliServer) -> None:
    path = tmp_path / "mikrotik.yaml"
    path.write_text(path.read_text().replace("interface=ether3\n      check", "interface=ether9\n      check", 1))
    said = dut(tmp_path, "apply", "mikrotik", code=6)
    last = said.splitlines()[-1]
    assert last.startswith(
        "trexbench: address of ether3: /ip address add address=100.65.2.1/24 interface=ether9 failed"
    )
    assert "input does not match any value of interface" in last and "dut revert" in last
    assert "2 reverted" in dut(tmp_path, "revert", "mikrotik")


def test_a_configuration_that_fails_half_way_is_left(tmp_path: Path, edgeos: Path) -> None:
    path = tmp_path / "edgeos.yaml"
    path.write_text(path.read_text().replace("set protocols static arp 100.65.2.2", "set nonsense 100.65.2.2"))
    assert "Set failed" in dut(tmp_path, "apply", "edgeos", code=6)
    assert json.loads(edgeos.read_text()) == [  # nothing of the third step, whose session was given up
        "set interfaces ethernet eth1 address 100.65.1.1/24",
        "set interfaces ethernet eth2 address 100.65.2.1/24",
    ]
    assert "3 reverted" in dut(tmp_path, "revert", "edgeos")
    assert json.loads(edgeos.read_text()) == []


def test_netmiko_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "netmiko", None)
    monkeypatch.setenv("ROUTER_PASSWORD", PASSWORD)
    said = "transport cli needs netmiko, which is not installed: pip install 'trexbench[cli]'"
    assert run("dut", "plan", written(tmp_path, "mikrotik")) == (6, "", f"trexbench: {said}\n")
