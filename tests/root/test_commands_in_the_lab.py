"""The steps of the OpenWrt example on a real kernel: with real packets in the lab, and through a real sshd."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from openwrt import SSH, example, in_lab
from packet_lab import namespaces, plan
from sshd import WHY_NOT, running_sshd
from tools import document, succeed, trexbench

from trexbench.transport.ssh import CONFIG_ENV

PREFIX = f"tbc{os.getpid()}"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "own.yaml"
    path.write_text(f"{in_lab(PREFIX)}plan: {plan()}\n")
    yield path
    trexbench(tmp_path, "lab", "down", "--dut", str(path), "--force")
    assert not namespaces(PREFIX)


@pytest.mark.measures
def test_real_packets_pass_a_router_that_only_commands_set_up(tmp_path: Path, lab: Path) -> None:
    """Each reading of the DUT is a row of commands: beside three other labs they took seconds, and traffic ended."""
    succeed(tmp_path, "ramp", "--dut", str(lab), "--mode", "var2-64b", "--no-picture")
    found = document(tmp_path)
    assert found["dut"]["attested"] and not found["dut"]["mismatches"] and len(found["dut"]["applied"]) >= 6
    assert found["dut"]["facts"]["forwarding"] == "1"
    first, last = (found["telemetry"]["readings"][at]["observation"] for at in (0, -1))
    sent = found["analysis"][0]["sent"]
    arrived, left = (
        last["ports"][port][key] - first["ports"][port][key] for port, key in ((0, "rx_packets"), (1, "tx_packets"))
    )
    assert sent > 1000 and arrived == pytest.approx(sent, rel=0.01) and 0 < left <= arrived + 100
    assert last["at_s"] > first["at_s"] and len(last["cpus"]) == len(first["cpus"]) >= 1


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "runs")
def test_the_example_lives_through_ssh(tmp_path: Path, lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    succeed(tmp_path, "lab", "up", "--dut", str(lab))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("ip", "sysctl", "cat", "uname"):
        real = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        (programs / name).write_text(f'#!/bin/sh\nexec {shutil.which("ip")} netns exec {PREFIX}-dut {real} "$@"\n')
        (programs / name).chmod(0o755)
    box = tmp_path / "box.yaml"
    text = example().replace(SSH, "transport: {type: ssh, host: dut}\n")
    box.write_text(text.replace("{mac 0}", "02:00:00:00:00:0a").replace("{mac 1}", "02:00:00:00:00:0b"))

    def dut(verb: str, *options: str, code: int = 0) -> str:
        done = trexbench(tmp_path, "dut", verb, str(box), *options)
        assert done.returncode == code, done.stderr
        return done.stdout

    with running_sshd(path=f"{programs}:{os.environ['PATH']}") as server:
        monkeypatch.setenv(CONFIG_ENV, str(server.client_config))
        before = dut("verify", code=6)
        assert "7 changes" in dut("apply")  # the links of a lab are up already
        assert dut("apply") == "nothing to change\nit is what its config says\n"
        facts = json.loads(dut("verify", "--json"))["facts"]
        assert facts["the tester at d0"].startswith("100.65.1.2 lladdr 02:00:00:00:00:0a")
        seen = json.loads(dut("telemetry", "--seconds", "1", "--json"))["after"]
        assert [one["port"] for one in seen["ports"]] == [0, 1] and not seen["missing"]
        assert "reverted" in dut("revert")
        assert dut("verify", code=6) == before
