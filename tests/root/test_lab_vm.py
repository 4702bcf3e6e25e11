"""lab-vm-linux on a real QEMU: one boot for what a lab that is up shows, and one for what a kill leaves.

Its processor is emulated, so that the tests say nothing about KVM; no rate is asserted.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from packet_lab import lab_up, namespaces, share_lab
from sshd import eventually
from tools import begin, document, succeed, trexbench
from vm_labs import made_image, processes, write_vm

from trexbench.lab import image, vm

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes network namespaces"),
    pytest.mark.skipif(shutil.which(vm.QEMU) is None, reason=f"{vm.QEMU} is not installed"),
]

PREFIX, OWN = f"tbq{os.getpid()}", f"tbk{os.getpid()}"
"""Prefixes of the lab that stays, and of the labs that a run makes for itself."""


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with made_image(tmp_path_factory.mktemp("cache")):
        yield


def test_an_image_replaces_that_of_another_release() -> None:
    assert {*image.folder().iterdir()} == {image.kernel_file(), image.initrd_file()}


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("vm")
    with lab_up(write_vm(folder / "own.yaml", PREFIX)):
        yield folder
    assert not namespaces(PREFIX) and not processes(PREFIX)


@pytest.fixture
def up(standing: Path, tmp_path: Path) -> Path:
    share_lab(standing, tmp_path)
    return write_vm(tmp_path / "own.yaml", PREFIX)


@pytest.mark.parametrize("queues", [2, *(pytest.param(count, marks=pytest.mark.nightly) for count in (1, 3))])
def test_queues_of_a_nic_are_set_read_back_predicted_and_counted(tmp_path: Path, up: Path, queues: int) -> None:
    """A ramp configures the guest at its console, and what its NICs count is by queue, as their table says."""
    options = ("--rx-queues", str(queues), "--loss", "50%", "--hold", "4s", "--no-picture", "-q")
    succeed(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", *options)
    found = document(tmp_path)
    assert found["status"] == "complete" and found["simulated"] is False
    assert found["dut"]["accelerator"] == "tcg" and found["dut"]["attested"]
    nic = found["dut"]["facts"]["interfaces"]["eth0"]
    assert nic["driver"]["driver"] == "virtio_net" and nic["channels"]["now"]["combined"] == queues
    assert found["dut"]["facts"]["kernel"].endswith("-cloud-amd64") and {*nic["rss"]["table"]} == {*range(queues)}
    workers = [place["worker"] for place in found["dut"]["spreading"]["queues"] if place["port"] == 0]
    assert len({*workers} - {None}) == queues, "each queue's interrupt on a core of its own"
    (direction,) = found["analysis"]
    assert direction["received"] > 0.5 * direction["sent"] > 500
    assert "EMULATED" in succeed(tmp_path, "results", "show").stdout
    measured = found["spread"]["measured"]
    assert measured["basis"] == "queues" and not measured["warnings"], measured["sentence"]
    assert [abs(one["deviation"]) < 0.02 for one in measured["compared"]] == [True] * queues


@pytest.mark.nightly
def test_queues_that_qemu_leaves_empty(tmp_path: Path) -> None:
    """vmxnet3 has as many as the guest has cores, and a table without a key; QEMU's fills only the first of them."""
    write_vm(tmp_path / "own.yaml", OWN, nic="vmxnet3")
    options = ("--rx-queues", "2", "--loss", "50%", "--hold", "4s", "--no-picture", "-q")
    succeed(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", *options)
    found = document(tmp_path)
    nic = found["dut"]["facts"]["interfaces"]["eth0"]
    assert nic["channels"]["now"]["combined"] == 2 and nic["rss"]["table"][:4] == [0, 1, 0, 1]
    assert "does not show its key" in found["spread"]["predicted"]["ports"][0]["reason"]
    compared = found["spread"]["measured"]["compared"]
    assert [(one["measured"], one["predicted"]) for one in compared] == [(1.0, None), (0.0, None)]


@pytest.mark.parametrize(
    "victim", [pytest.param("run"), pytest.param("keeper"), pytest.param("qemu", marks=pytest.mark.nightly)]
)
def test_a_kill_leaves_no_machine_and_no_namespace(tmp_path: Path, victim: str) -> None:
    write_vm(tmp_path / "own.yaml", OWN)
    run = begin(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", "--ramp-duration", "60s", "--no-picture")
    try:
        eventually(lambda: "qemu-system-x86" in " ".join(processes(OWN).values()), "QEMU runs", 60)
        state = json.loads((tmp_path / "run" / f"{OWN}.lab.json").read_text())
        kept = {
            "run": run.pid,
            "keeper": state["owner"]["pid"],
            "qemu": (state["router"] or {}).get("process", {}).get("pid"),
        }
        os.kill(kept[victim], signal.SIGKILL)
        run.communicate(timeout=90)
        assert run.returncode != 0
        eventually(lambda: not processes(OWN) and not namespaces(OWN), "nothing is left", 30)
    finally:
        run.kill()
        trexbench(tmp_path, "lab", "down", "--dut", "own.yaml", "--force")
    assert not list((tmp_path / "run").glob(f"{OWN}*.console"))


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        pytest.param({"append": "init=/nonesuch rdinit=/nonesuch root=/dev/none"}, "panicked"),
        pytest.param(
            {"append": "rdinit=/bin/cat", "boot": "8s"}, "shows no prompt within 8 s", marks=pytest.mark.nightly
        ),
        pytest.param({"prompt": "'^never$'", "boot": "9s"}, "lab-vm-linux#", marks=pytest.mark.nightly),
        pytest.param({"memory": "64"}, "Booting from ROM", marks=pytest.mark.nightly),
    ],
)
def test_a_machine_that_does_not_start_is_quoted_in_one_line(
    tmp_path: Path, machine: dict[str, str], words: str
) -> None:
    write_vm(tmp_path / "own.yaml", OWN, **machine)
    done = trexbench(tmp_path, "lab", "up", "--dut", "own.yaml")
    assert done.returncode == 7 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not namespaces(OWN) and not processes(OWN)


@pytest.mark.nightly
@pytest.mark.parametrize("variant", ["20ms", "nat", "stateful"])
def test_what_its_own_kernel_does(tmp_path: Path, up: Path, variant: str) -> None:
    """netem and nftables of the guest; a line of 20 ms holds each frame back for 10 ms."""
    options = ("--variant", variant, "--ramp-to", "2kpps", "--latency", "1s", "--no-picture", "-q")
    succeed(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", *options)
    found = document(tmp_path)
    assert found["status"] == "complete" and found["command"]["variant"] == variant and found["dut"]["attested"]
    assert (found["latency"][0]["min_s"] > 9e-3) == (variant == "20ms"), found["latency"]
    assert (found["over"] or {}).get("wan_by", "") == ("netem" if variant == "20ms" else "")


@pytest.mark.nightly
def test_an_image_that_does_not_boot_is_quoted_and_not_written(tmp_path: Path) -> None:
    disk = tmp_path / "disk.raw"
    disk.write_bytes(bytes(1 << 20))
    write_vm(tmp_path / "own.yaml", OWN, image=str(disk), boot="8s")
    done = trexbench(tmp_path, "lab", "up", "--dut", "own.yaml")
    assert done.returncode == 7 and "Boot failed" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert disk.read_bytes() == bytes(1 << 20) and not namespaces(OWN)


@pytest.mark.nightly
def test_an_interface_that_the_machine_does_not_have_is_named(tmp_path: Path) -> None:
    path = write_vm(tmp_path / "own.yaml", OWN)
    path.write_text(path.read_text().replace("interface: eth1", "interface: eth7"))
    done = trexbench(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", "--no-picture")
    assert done.returncode == 6 and "eth7" in done.stderr.splitlines()[-1], done.stderr
    assert not namespaces(OWN) and not processes(OWN)


def test_no_interface_leads_out_of_the_lab(standing: Path) -> None:
    listed = subprocess.run(["ip", "-n", f"{PREFIX}-tester", "-br", "link"], capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in listed.stdout.splitlines()} == {"lo", "p0", "p1"}
