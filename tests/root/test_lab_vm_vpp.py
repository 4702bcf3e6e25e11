"""lab-vm-vpp on a real QEMU with a real VPP: its queues, as many as a run asks for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from packet_lab import namespaces
from tools import document, succeed
from vm_labs import made_image, processes, write_vm

from trexbench.lab import vm

VARIABLE = "TREXBENCH_VPP_DIR"
"""Names a folder with VPP in its bin or usr/bin: a build."""
VPP_DIR = os.environ.get(VARIABLE, "/" if shutil.which("vpp") else "")
PREFIX = f"tbo{os.getpid()}"

pytestmark = [
    pytest.mark.skipif(shutil.which(vm.QEMU) is None, reason=f"{vm.QEMU} is not installed"),
    pytest.mark.skipif(not VPP_DIR, reason=f"needs VPP: no vpp in PATH, and {VARIABLE} names no folder with one"),
]


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with made_image(tmp_path_factory.mktemp("cache"), Path(VPP_DIR)):
        yield


@pytest.mark.parametrize("queues", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_vpp_uses_the_queues_of_its_nics(tmp_path: Path, queues: int) -> None:
    """VPP does not print its table, which the config states: what each queue got must say the same."""
    write_vm(tmp_path / "own.yaml", PREFIX, "lab-vm-vpp", guest="vpp", memory="1024", boot="120s")
    options = ("--rx-queues", str(queues), "--loss", "50%", "--hold", "4s", "--no-picture", "-q")
    succeed(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", *options)
    found = document(tmp_path)
    assert found["status"] == "complete" and found["dut"]["attested"] and found["dut"]["accelerator"] == "tcg"
    assert found["dut"]["facts"]["interfaces"]["virtio-0/0/4/0"]["rx_queues"] == queues
    measured = found["spread"]["measured"]
    assert measured["basis"] == "queues" and not measured["warnings"], measured["sentence"]
    assert [abs(one["deviation"]) < 0.02 for one in measured["compared"]] == [True] * queues
    assert not namespaces(PREFIX) and not processes(PREFIX)
