"""The steps of the OpenWrt example on a real kernel, with real packets in the lab."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from packet_lab import namespaces, plan
from tools import ROOT, document, succeed, trexbench

PREFIX = f"tbc{os.getpid()}"
SSH = "transport: {type: ssh, host: openwrt.example.net, user: root}\n"
HERE = f"transport: {{type: netns}}\nlab: {{prefix: {PREFIX}}}\nplan: {plan()}\n"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    """The shipped example for the lab's interfaces, without the firewall, which is OpenWrt's own script."""
    text = (ROOT / "dut_configs" / "examples" / "openwrt.yaml").read_text()
    text, dropped = re.subn(r"    - what: firewall stopped\n(?:      .*\n)+", "", text)
    assert dropped == 1 and SSH in text
    path = tmp_path / "own.yaml"
    path.write_text(text.replace("eth1", "d0").replace("eth2", "d1").replace(SSH, HERE))
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
