"""A virtual machine as a lab's router: QEMU's words, what its console says, the files that it starts."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configs import shipped
from sshd import eventually
from tools import ROOT

from trexbench.config.endpoints import TransportConfig
from trexbench.config.lab import ConsoleLogin, LabVm
from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.config.schema import dut_of
from trexbench.core.errors import ConfigError, DutError, LabError, NoInterface
from trexbench.dut import Wanted
from trexbench.lab import LabSpec, Placement, RunningLab, image, state, vm, vppimage
from trexbench.lab.conditions import watch_of
from trexbench.lab.cpio import archive_of
from trexbench.lab.state import Process, Server
from trexbench.lock import RUN_DIR_ENV
from trexbench.session.dut import connect_dut
from trexbench.session.loop import Outcome
from trexbench.session.measure import Session

KERNEL = (Path("/k/vmlinuz"), Path("/k/initrd"))


def spec_of(**changes: object) -> LabSpec:
    spec = LabSpec.from_config(load_dut("lab-vm-linux"))
    machine: LabVm = replace(spec.settings.vm, **changes)  # type: ignore[arg-type]
    return replace(spec, settings=replace(spec.settings, vm=machine))


def words_of(spec: LabSpec, files: tuple[Path, ...] = KERNEL, accelerator: str = "tcg") -> str:
    return " ".join(vm.command_line(spec, accelerator, files, Path("/run/tbm-dut.console"), 1))


def test_qemu_gets_a_nic_for_each_port_and_restarts_nothing() -> None:
    said = words_of(spec_of())
    assert said.startswith("qemu-system-x86_64 -accel tcg,thread=multi -smp 1 -m 512 -nodefaults -nographic -no-reboot")
    assert "-chardev socket,id=console,path=/run/tbm-dut.console,server=on,wait=off -serial chardev:console" in said
    assert "-kernel /k/vmlinuz -initrd /k/initrd -append console=ttyS0 quiet panic=-1" in said
    assert re.findall(r"ifname=(\w+),script=no,downscript=no,queues=(\d)", said) == [("p0", "3"), ("p1", "3")]
    nic = "virtio-net-pci,netdev=n1,mac=02:7b:78:00:01:01,addr=0x5,romfile="
    assert f"{nic},rx_queue_size=1024,mq=on,vectors=8,rss=on" in said
    ends = "-netdev tap,id=n3,ifname=e1,script=no,downscript=no -device virtio-net-pci,netdev=n3,mac=02:7b:78:00:03:01"
    assert said.endswith(f"{ends},addr=0x7,romfile=,rx_queue_size=1024"), "NICs of the hosts that test it with TCP"
    assert "socket,id=monitor,path=trexbench-monitor,abstract=on,server=on,wait=off -mon chardev=monitor" in said
    said = words_of(spec_of(rss=False))
    assert "rss" not in said and "monitor" not in said


def test_links_of_the_ports_are_nudged_until_qemu_ends() -> None:
    """QEMU's events come between its replies."""
    launch, name = vm.nudger(spec_of(), Placement(None, (), None)), f"trexbench-test-{os.getpid()}"
    argv = [name if word == "trexbench-monitor" else word for word in launch.argv]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as nudging:
            line, _ = listening.accept()
            with line, line.makefile("rwb", buffering=0) as stream:
                stream.write(b'{"QMP": {}}\r\n')
                asked = []
                for _ in range(5):
                    asked.append(json.loads(stream.readline()))
                    stream.write(b'{"event": "RTC_CHANGE"}\r\n{"return": {}}\r\n')
            assert nudging.stderr is not None and "QEMU has ended" in nudging.stderr.read()
    assert asked[0]["execute"] == "qmp_capabilities"
    links = [(one["execute"], one["arguments"]) for one in asked[1:]]
    assert links == [("set_link", {"name": name, "up": True}) for name in ("n0", "n1", "n0", "n1")]


def test_a_lab_without_its_nudger_is_no_lab() -> None:
    """Without it a full queue ends all reception, and the results are wrong."""
    here = Server("embedded", Process.of(os.getpid()), "")
    lab = replace(state.new_state(spec_of(), "persistent"), status="up", server=here, router=here, nudger=here)
    assert lab.ready and not lab.abandoned
    nudger, placement = Server("link", Process(os.getppid(), 1), "/none"), Placement(0, (1,), 0)
    ended = RunningLab(**vars(replace(lab, nudger=nudger, placement=placement)))
    assert watch_of(ended)._processes[os.getppid()] == (1,), "its time is not that of other programs"
    assert not ended.ready and ended.abandoned and ended.ended.startswith("the lab's nudger ended: ")
    nothing: Any = None
    session = Session(nothing, ended, nothing, nothing, nothing, None, print)
    error = session._read_back(Outcome(())).error
    assert isinstance(error, LabError) and "nudger ended" in str(error) and "is void: measure again" in str(error)


def test_qemus_words_follow_the_config() -> None:
    said = words_of(spec_of(nic="e1000e"))
    assert "e1000e,netdev=n0,mac=02:7b:78:00:01:00,addr=0x4,romfile= " in said and "hostfwd" not in said
    said = words_of(replace(spec_of(), by_ssh=True))
    assert said.endswith(
        "-netdev user,id=m,restrict=on,hostfwd=tcp:127.0.0.1:2222-:22"
        " -device virtio-net-pci,netdev=m,mac=02:7b:78:00:02:00,addr=0x8,romfile="
    )
    said = words_of(spec_of(nic="vmxnet3", append="mitigations=off"), accelerator="kvm")
    assert "-accel kvm -cpu host" in said and "panic=-1 mitigations=off" in said
    assert "queues=" not in said and "vmxnet3,netdev=n0,mac=02:7b:78:00:01:00,addr=0x4,romfile=" in said
    argv = vm.command_line(spec_of(), "tcg", KERNEL, Path("/run/a,b.console"), 1)
    assert "socket,id=console,path=/run/a,,b.console,server=on,wait=off" in argv


def test_a_vpp_gets_a_processor_that_it_runs_on_and_as_many_queues_as_a_run_asks() -> None:
    config = load_dut("lab-vm-vpp")
    spec = LabSpec.from_config(config, queues=2)
    assert spec.most_queues == 2 and LabSpec.from_config(config).most_queues == 1
    files = vm.boot_files(spec.settings.vm)
    assert files[1].name.endswith("-vpp")
    said = words_of(spec, files)
    assert "-cpu Nehalem -smp" in said and "ifname=p0,script=no,downscript=no,queues=2" in said
    assert "-cpu host -smp" in words_of(spec, files, "kvm")


def test_vpp_is_found_in_a_build_and_where_it_is_installed(tmp_path: Path) -> None:
    for place in ("bin", "usr/bin", "usr/lib/x86_64-linux-gnu/vpp_plugins"):
        (tmp_path / place).mkdir(parents=True)
    with pytest.raises(LabError, match=r"no vpp and vppctl in its bin or usr/bin: install the packages vpp and"):
        vppimage.find(tmp_path)
    names = (*(f"bin/{name}" for name in ("vpp", "vppctl")), "lib/x86_64-linux-gnu/vpp_plugins/ping_plugin.so")
    for name in names:
        (tmp_path / "usr" / name).touch()
    found = vppimage.find(tmp_path)
    assert [str(path.relative_to(tmp_path / "usr")) for path in (*found.programs, *found.plugins)] == [*names]
    assert "plugin default { disable } plugin ping_plugin.so { enable } }" in found.startup_conf


@pytest.mark.parametrize(("begins", "kind"), [(b"QFI\xfb\0\0\0\3", "qcow2"), (b"\xeb\x63\x90", "raw"), (b"", "raw")])
def test_the_kind_of_a_disk_is_in_its_first_bytes(tmp_path: Path, begins: bytes, kind: str) -> None:
    disk = tmp_path / "a,b.img"
    disk.write_bytes(begins)
    said = words_of(spec_of(image=str(disk)), (disk,))
    assert f"a,,b.img,format={kind},if=virtio,snapshot=on" in said and "-kernel" not in said


def test_one_emulated_processor_for_each_core_or_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path))
    plain = replace(spec_of(), most_queues=1)
    pinned = vm.launch(plain, Placement(0, (1,), 0), "tcg").argv
    on_its_core = ("nice", "-n", "-20", "taskset", "-c", "1")
    assert pinned[:6] == vm.nudger(plain, Placement(0, (1,), 0)).argv[:6] == on_its_core
    assert pinned[pinned.index("-smp") + 1] == "1"
    free = vm.launch(plain, Placement(0, (), 0), "tcg").argv
    assert free[3] == vm.QEMU and free[free.index("-smp") + 1] == "2"
    stated = vm.launch(spec_of(cores=3), Placement(0, (1,), 0), "tcg").argv
    assert stated[stated.index("-smp") + 1] == "3"
    vpp = LabSpec.from_config(load_dut("lab-vm-vpp"))
    stored = [vm.facts_of(spec, "tcg", [1])["vm"] for spec in (plain, spec_of(), vpp)]
    assert [facts["cores"] for facts in stored if isinstance(facts, dict)] == [1, 3, 1], "Linux: one for each queue"
    few = replace(spec_of(nic="vmxnet3"), most_queues=2)
    assert vm.count_cores(few, (1, 2, 3)) == 2, "Linux gives vmxnet3 as many queues as it has cores"


def test_a_machine_without_qemu_or_without_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PATH", str(tmp_path)), ("XDG_CACHE_HOME", str(tmp_path)), ("TREXBENCH_RUN_DIR", "/run/x")):
        monkeypatch.setenv(name, value)
    with pytest.raises(LabError, match=r"lab tbm needs qemu-system-x86_64: .* apt-get install .* qemu-system-x86$"):
        vm.check(spec_of())
    (tmp_path / vm.QEMU).write_text("#!/bin/sh\n")
    (tmp_path / vm.QEMU).chmod(0o755)
    with pytest.raises(LabError, match=r"lab-vm-linux/vmlinuz-\w{8} is not there: make it: trexbench lab image"):
        vm.check(spec_of())
    with pytest.raises(LabError, match=r"/none.qcow2 is not there: correct lab.vm"):
        vm.check(spec_of(image="/none.qcow2"))
    monkeypatch.setattr(vm, "boot_files", lambda _machine: ())
    with pytest.raises(DutError, match="the environment has no ROUTER_PASSWORD"):
        vm.check(spec_of(login=ConsoleLogin("root", "ROUTER_PASSWORD")))
    with pytest.raises(LabError, match="has no apt-get: make it on Debian amd64, or"):
        image.check()
    (tmp_path / "apt-get").symlink_to("/bin/true")
    with pytest.raises(
        LabError, match=r"needs dpkg-deb, .*grep, nft: install: apt-get install .* iproute2 ethtool grep nftables"
    ):
        image.check()


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_machine_whose_apt_does_not_know_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, "apt-cache", "echo 'E: No packages found' >&2; exit 100")
    with pytest.raises(
        LabError, match=r"apt knows no package linux-image-cloud-amd64: .* Debian amd64, or name kernel:"
    ):
        image._unpack_kernel(tmp_path)


def test_the_initramfs_of_vpp_stays_where_the_kernel_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plain, vpp = image.initrd_file(), image.initrd_file("vpp")
    assert not image._replace(b"kernel", {plain: b"", vpp: b"with VPP"})
    assert not image._replace(b"kernel", {plain: b"new"}) and vpp.read_bytes() == b"with VPP"
    assert image._replace(b"another", {plain: b"new"}) and not vpp.exists()


def test_the_trial_of_kvm_ends_with_whoever_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, vm.QEMU, f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 60")
    script = "from trexbench.lab import vm; vm.KVM_CHECK_S = 60.0; vm.runs_by_kvm(None)"
    with subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}) as asks:
        eventually((tmp_path / "pid").is_file, "the trial runs", 30)
        asks.kill()
    trial = Path("/proc", (tmp_path / "pid").read_text().strip(), "cmdline")
    eventually(lambda: not trial.exists() or not trial.read_bytes(), "the trial has ended", 30)


@pytest.mark.parametrize(("says", "works"), [("Linux version 6", True), ("no KVM", False), ("", False)])
def test_kvm_is_used_where_a_kernel_says_a_word_by_it(
    says: str, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(vm, "KVM_CHECK_S", 5.0 if says else 0.2)
    hangs = "exec sleep 60" if not says else f"echo '{says}'"
    program(tmp_path, vm.QEMU, hangs)
    assert vm.runs_by_kvm(Path("/k/vmlinuz")) is works
    assert vm.choose_accelerator(spec_of(accelerator="tcg")) == "tcg"
    if not works:
        with pytest.raises(LabError, match=r"no processor runs by KVM here within .* s: see whether /dev/kvm"):
            vm.choose_accelerator(spec_of(accelerator="kvm"))


def config(lab: str, driver: str = "linux", way: str = "console", queues: str = "[1, 2, 3]") -> DutConfig:
    text = (
        shipped("lab-vm-linux").replace("driver: linux", f"driver: {driver}").replace("type: console", f"type: {way}")
    )
    text = text.replace("rx_queues: [1, 2, 3]", f"rx_queues: {queues}")
    return dut_of(Path("lab-vm-linux.yaml"), text[: text.index("\nlab:")] + f"\nlab: {lab}\n")


@pytest.mark.parametrize(
    ("lab", "words"),
    [
        ("{router: vm, mtu: 9000}", r"lab-vm-linux.yaml:\d+:.*mtu: has no effect on lab.router: vm"),
        ("{router: vm, vm: {nic: vmxnet3, cores: 2}}", "as many queues as it has cores: 1, 2 or 4: remove cores"),
        ("{router: vm, vm: {nic: vmxnet3}}", r"write rx_queues: \[1, 2, 4\]"),
        ("{router: vm, vm: {image: /a.raw, guest: vpp}}", "guest: has no effect on a machine with an image or"),
        ("{router: vm, vm: {guest: vpp}}", "guest: vpp with driver: linux: write lab.vm.guest: linux"),
        ("{router: vm, vm: {nic: e1000e}}", "nic: e1000e has one queue in QEMU"),
        ("{router: vm, vm: {login: {user: a, password_env: B, password_file: /c}}}", "two places for one password"),
        ("{router: vm, vm: {boot: 0s}}", "boot: no machine starts in 0 s"),
        ("{router: kernel, vm: {memory: 256}}", "a DUT of a lab is reached by netns, not console"),
        ("{router: vm, vm: {kernel: /vmlinuz}}", "kernel and initrd belong together"),
        ("{router: vm, vm: {image: /a.raw, append: x}}", "append: has no effect on a machine with image:"),
    ],
)
def test_configs_that_cannot_be(lab: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(lab)
    assert config("{router: vm, vm: {memory: 256}}").lab is not None
    assert config("{router: vm, vm: {nic: vmxnet3, cores: 2}}", queues="[2]").rx_queues == (2,)


def test_a_machine_that_is_reached_by_ssh_is_on_the_loopback_of_the_tester() -> None:
    lab = "{router: vm, prefix: tbm, vm: {memory: 256}}"
    to = config(lab, way="ssh").transport
    assert (to.type, to.host, to.port, to.namespace) == ("ssh", "127.0.0.1", 2222, "tbm-tester")
    assert LabSpec.from_config(config(lab, way="ssh")).by_ssh and not LabSpec.from_config(config(lab)).by_ssh
    with pytest.raises(ConfigError, match="host: has no effect on a lab's machine"):
        config(lab, way="ssh\n  host: router")
    with pytest.raises(ConfigError, match="login: has no effect with transport ssh"):
        config("{router: vm, vm: {login: {user: root}}}", way="ssh")
    with pytest.raises(ConfigError, match="rpc_port: 2222 is that of the machine's ssh: write another port"):
        config(f"{lab}\ngenerator: {{rpc_port: 2222}}", way="ssh")


def test_a_machine_that_nobody_configures() -> None:
    text = "driver: none\nports: [{tester: 0, interface: a}, {tester: 1, interface: b}]\nlab: {router: vm}\n"
    assert dut_of(Path("box.yaml"), text).in_vm
    own = shipped("lab-vm-vpp").replace("guest: vpp", "kernel: /k\n    initrd: /i\n    nic: vmxnet3")
    assert dut_of(Path("lab-vm-vpp.yaml"), own).in_vm
    with pytest.raises(ConfigError, match="lab: has no effect on driver none"):
        dut_of(Path("box.yaml"), text.replace("vm", "kernel"))


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_the_archive_is_one_that_cpio_unpacks(tmp_path: Path) -> None:
    files = {"init": (0o100755, b"#!/bin/sh\n"), "bin/ls": (0o120777, b"/bin/busybox"), "proc": (0o040755, b"")}
    made = archive_of(files | {"lib/a/b": (0o100644, b"x" * 4097)})
    assert made == archive_of(dict(reversed((files | {"lib/a/b": (0o100644, b"x" * 4097)}).items())))
    subprocess.run(["cpio", "-id", "--quiet"], input=made, cwd=tmp_path, check=True)
    assert (tmp_path / "init").read_bytes() == b"#!/bin/sh\n" and (tmp_path / "init").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "lib/a/b").stat().st_size == 4097 and (tmp_path / "proc").is_dir()
    assert str((tmp_path / "bin/ls").readlink()) == "/bin/busybox"


@pytest.mark.parametrize(("whose", "told"), [("lab-vm-linux", True), ("lab-vm-linux-client", False)])
def test_what_the_machine_said_is_told_where_an_interface_of_its_own_is_missing(
    whose: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUN_DIR_ENV, str(tmp_path))
    state.update(state.new_state(spec_of(), "persistent"), said="its console said: eth1 failed")
    wanted = Wanted(replace(load_dut("lab-vm-linux"), transport=TransportConfig("local")))
    with pytest.raises(NoInterface) as raised, connect_dut(wanted, "a test", temporary=True):
        raise NoInterface(f"{whose}: interface x0 is not there")
    assert ("eth1 failed" in str(raised.value)) is told
