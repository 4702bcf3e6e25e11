"""The embedded engine on NICs that have drivers: two of each model in a guest, wired to one another."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from guest import lacking, run_in_guest

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(lacking() != "", reason=lacking())]

PROGRAM = Path(__file__).parents[1] / "helpers" / "engine_on_nics.py"
NICS = {"virtio_net": "virtio-net-pci", "vmxnet3": "vmxnet3", "e1000e": "e1000e"}
"""QEMU's models by the drivers of Linux. Of these only virtio's can do XDP in Linux 6.1."""
BURST = 1200


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the program; its output by driver."""
    hardware = list[str]()
    for number, model in enumerate(NICS.values()):
        for side in (1, 2):
            name = f"h{number}{side}"
            nic = f"{model},netdev={name},mac=02:00:00:00:0{number}:0{side},romfile="
            hardware += ["-netdev", f"hubport,id={name},hubid={number}", "-device", nic]
    paths = f"{PROGRAM.parents[2]}:{PROGRAM.parent}"
    argv, folder = [sys.executable, str(PROGRAM), *NICS], tmp_path_factory.mktemp("nics")
    done = run_in_guest(argv, folder, timeout_s=400, environment={"PYTHONPATH": paths}, hardware=hardware)
    assert done.code == 0, done.stderr
    return dict(zip(NICS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("driver", NICS)
def test_what_is_sent_arrives_whole_with_and_without_a_tag(driver: str, seen: dict[str, Any]) -> None:
    for port, size in (("0", 64), ("1", 68)):
        counts = seen[driver]["counts"][port]
        assert counts == {
            "sent": BURST, "received": BURST, "sent_bytes": size * BURST, "received_bytes": size * BURST,
            "errors": 0, "marked": BURST,
        }  # fmt: skip


@pytest.mark.parametrize("driver", NICS)
def test_the_server_says_what_the_nic_is_and_cannot_do(driver: str, seen: dict[str, Any]) -> None:
    one, number = seen[driver], list(NICS).index(driver)
    mode = "driver" if driver == "virtio_net" else "skb"
    assert one["ready"].endswith(f"modes={mode},{mode}\n")
    port = one["port"]
    assert (port["driver"], port["xdp_mode"], port["is_virtual"]) == (driver, mode, False)
    assert port["pci_addr"].startswith("0000:00:") and port["hw_mac"] == f"02:00:00:00:0{number}:01"
    assert one["attr"]["link"]["up"] and not one["up_when_down"]
    assert one["attr"]["speed"] == (10.0 if driver == "virtio_net" else 1.0)
    said = one["said"].splitlines()
    assert sum("cannot do XDP" in line for line in said) == (0 if mode == "driver" else 2)
    assert sum("knows no speed" in line for line in said) == (2 if mode == "driver" else 0)
