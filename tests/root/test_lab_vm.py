"""lab-vm-linux on a real QEMU: one boot for what a lab that is up shows, and one for what a kill leaves.

Its processor is emulated, so that the tests say nothing about KVM; no rate is asserted.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from packet_lab import lab_up, namespaces, share_lab
from sshd import eventually
from tools import begin, document, succeed, trexbench
from vm_disks import lacking, make_disk, with_menu, with_sshd
from vm_labs import made_image, processes, write_vm

from trexbench.config.endpoints import TransportConfig
from trexbench.lab import image, vm
from trexbench.transport import open_transport

pytestmark = pytest.mark.skipif(shutil.which(vm.QEMU) is None, reason=f"{vm.QEMU} is not installed")

PREFIX, OWN = f"tbq{os.getpid()}", f"tbk{os.getpid()}"
"""Prefixes of the lab that stays, and of the labs that a run makes for itself."""
PASSWORD = "s3cret-word"


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


@pytest.mark.nightly
@pytest.mark.parametrize("queues", [2, 3])
def test_queues_of_a_nic_are_set_read_back_predicted_and_counted(tmp_path: Path, up: Path, queues: int) -> None:
    """A ramp configures the guest at its console, and what its NICs count is by queue, as their table says."""
    options = ("--rx-queues", str(queues), "--loss", "50%", "--hold", "8s", "--no-picture", "-q")
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
def test_a_full_queue_does_not_end_all_reception(tmp_path: Path, up: Path) -> None:
    """QEMU stops reading where one of several queues is full: what nudges it makes this an overload like any other."""
    up.write_text(up.read_text().replace("ramp_to: 5kpps", "ramp_to: 300kpps"))
    succeed(
        tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", "--rx-queues", "2", "--hold", "4s", "--no-picture", "-q"
    )
    found = document(tmp_path)
    (direction,) = found["analysis"]
    assert direction["received"] < 0.9 * direction["sent"], "a queue was full"
    assert found["status"] == "complete"
    received = [one["ports"]["1"]["ipackets"] for one in found["samples"] if one["phase"] == "hold"]
    assert received[-1] > received[len(received) // 2], "it still receives"
    assert "link nudger (process" in succeed(tmp_path, "lab", "status").stdout


@pytest.mark.nightly
def test_queues_that_qemu_leaves_empty(tmp_path: Path) -> None:
    """vmxnet3 has as many as the guest has cores, and a table without a key; QEMU's fills only the first of them."""
    config = write_vm(tmp_path / "own.yaml", OWN, nic="vmxnet3")
    config.write_text(config.read_text().replace("rx_queues: [1, 2, 3]", "rx_queues: [1, 2]"))
    options = ("--rx-queues", "2", "--loss", "50%", "--hold", "8s", "--no-picture", "-q")
    succeed(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", *options)
    found = document(tmp_path)
    nic = found["dut"]["facts"]["interfaces"]["eth0"]
    assert nic["channels"]["now"]["combined"] == 2 and nic["rss"]["table"][:4] == [0, 1, 0, 1]
    assert "does not show its key" in found["spread"]["predicted"]["ports"][0]["reason"]
    compared = found["spread"]["measured"]["compared"]
    assert [(one["measured"], one["predicted"]) for one in compared] == [(1.0, None), (0.0, None)]


def state(folder: Path) -> dict[str, Any]:
    """The state of the run's own lab; empty before it has one."""
    path = folder / "run" / f"{OWN}.lab.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


@pytest.mark.parametrize(
    ("command", "victim"),
    [
        (("lab", "up"), "run"),
        (("ramp", "--mode", "64b", "--ramp-duration", "60s", "--no-picture"), "keeper"),
    ],
    ids=["lab up while the guest boots", "the keeper of a run"],
)
def test_a_kill_leaves_no_machine_and_no_namespace(tmp_path: Path, command: Sequence[str], victim: str) -> None:
    """benchmarks/vm_faults.py kills every process at random moments."""
    write_vm(tmp_path / "own.yaml", OWN)
    run = begin(tmp_path, *command, "--dut", "own.yaml")
    try:
        eventually(lambda: state(tmp_path).get("router") is not None, "QEMU runs", 60)
        os.kill(run.pid if victim == "run" else state(tmp_path)["owner"]["pid"], signal.SIGKILL)
        run.communicate(timeout=90)
        assert run.returncode != 0
        eventually(lambda: not processes(OWN) and not namespaces(OWN), "nothing is left", 30)
    finally:
        run.kill()
        trexbench(tmp_path, "lab", "down", "--dut", "own.yaml", "--force")
    assert not list((tmp_path / "run").glob(f"{OWN}*.console"))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ({"append": "init=/nonesuch rdinit=/nonesuch root=/dev/none"}, "panicked"),
        ({"prompt": "'^never$'", "boot": "40s"}, "lab-vm-linux#"),
        ({"memory": "64"}, "Booting from ROM"),
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


TUNNEL = "wireguard,client-dut"


@pytest.mark.parametrize(
    "option",
    [
        pytest.param(("--wan", "60ms"), marks=pytest.mark.nightly),
        pytest.param(
            ("--tunnel", TUNNEL),
            marks=[
                pytest.mark.nightly,
                pytest.mark.skipif(shutil.which("wireguard-go") is None, reason="wireguard-go is not installed"),
            ],
        ),
    ],
)
def test_tcp_passes_its_own_kernel(tmp_path: Path, up: Path, option: tuple[str, str]) -> None:
    """Over a line of netem, and through WireGuard that ends in it, between two hosts; nothing of that is left there.

    A busy machine adds milliseconds to round trips, which a run refuses where they are much of the delay.
    """
    tcp = ("tcp", "--dut", "own.yaml", "--forward", "--time", "2s", "--interval", "500ms", "--ping", "3")
    done = succeed(tmp_path, *tcp, *option, "--no-picture")
    found = document(tmp_path)
    assert found["status"] == "complete" and found["dut"]["attested"] and found["setup"]["dut_is_guest"]
    assert found["dut"]["accelerator"] == "tcg"
    (leg,) = found["legs"]
    assert leg["server"][-1]["streams"][0]["payload_bytes"] > 1e5 and len(leg["dut"]) == 2
    assert (found["setup"].get("wan_by") == "netem") == (option[0] == "--wan") == (pings(found) >= 0.06)
    assert ("tunnel: wireguard" in done.stderr and "by the kernel" in done.stderr) == (option[1] == TUNNEL)
    there = open_transport(TransportConfig("console", f"{PREFIX}-dut"), tmp_path / "run")
    left = there.run(("sh", "-c", "ip link; tc qdisc; nft list tables"), 20).stdout
    there.close()
    assert "eth3" in left and not [word for word in ("tbvpn", "netem", "trexbench_tunnel") if word in left]


def pings(found: Any) -> float:
    """The shortest round trip."""
    return min(time_s for one in found["pings"] for time_s in one["times_s"])


def login_of(**changes: str) -> dict[str, str]:
    """Keys of lab.vm for the disk with a menu."""
    login = "{user: root, password_env: LAB_VM_PASSWORD, then: ['8']}"
    return {"login": login, "prompt": "'(?:Enter an option:|[#$]) *$'", **changes}


@pytest.fixture(scope="module")
def menu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An initramfs whose console asks for a name, a password and what to do."""
    if missing := lacking("openssl"):
        pytest.skip(f"{missing[0]} is not installed")
    return with_menu(image.initrd_file(), PASSWORD, tmp_path_factory.mktemp("menu") / "initrd")


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["raw", "qcow2"])
def test_a_disk_that_asks_for_a_login_is_measured_and_not_written(
    tmp_path: Path, menu: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password is in no file of the run and the lab."""
    monkeypatch.setenv("LAB_VM_PASSWORD", PASSWORD)
    disk = make_disk(tmp_path / f"disk.{kind}", image.kernel_file(), menu, kind=kind)
    before = disk.read_bytes()
    write_vm(tmp_path / "own.yaml", OWN, **login_of(image=str(disk)))
    succeed(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", "--no-picture", "-q")
    assert document(tmp_path)["status"] == "complete" and document(tmp_path)["dut"]["attested"]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith("disk")]
    assert len(written) > 3 and not [path for path in written if PASSWORD.encode() in path.read_bytes()]
    assert disk.read_bytes() == before and not namespaces(OWN) and not processes(OWN)


@pytest.mark.nightly
def test_a_machine_that_is_reached_by_ssh_reaches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing := lacking("dropbear", "ssh"):
        pytest.skip(f"{missing[0]} is not installed")
    key, config = tmp_path / "key", tmp_path / "ssh_config"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    config.write_text(f"Host 127.0.0.1\n  IdentityFile {key}\n  IdentitiesOnly yes\n")
    monkeypatch.setenv("TREXBENCH_SSH_CONFIG", str(config))
    initrd = with_sshd(image.initrd_file(), key, tmp_path / "initrd")
    path = write_vm(tmp_path / "own.yaml", OWN, kernel=str(image.kernel_file()), initrd=str(initrd))
    path.write_text(
        path.read_text().replace("type: console", "{type: ssh, user: root}").replace("transport:\n", "transport:")
    )
    with lab_up(path):
        succeed(tmp_path, "ramp", "--dut", "own.yaml", "--mode", "64b", "--no-picture", "-q")
        assert document(tmp_path)["dut"]["attested"]
        there = open_transport(TransportConfig("ssh", f"{OWN}-tester", "127.0.0.1", "root", 2222), tmp_path)
        # without the restriction this would be the tester's loopback, on which its server listens
        asked = there.run(("nc", "-w", "3", "10.0.2.2", "4501"), 20)
        there.close()
        assert asked.returncode != 0
    assert not namespaces(OWN) and not processes(OWN)


def test_no_interface_leads_out_of_the_lab(standing: Path) -> None:
    listed = subprocess.run(["ip", "-n", f"{PREFIX}-tester", "-br", "link"], capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in listed.stdout.splitlines()} == {"lo", "p0", "p1"}
