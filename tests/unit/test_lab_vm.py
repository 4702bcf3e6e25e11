"""A virtual machine as a lab's router: QEMU's words, what its console says, the files that it starts."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.config.schema import dut_of
from trexbench.config.vm import LabVm
from trexbench.core.errors import ConfigError, LabError
from trexbench.lab import LabSpec, Placement, image, vm
from trexbench.lab.cpio import archive_of

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
    assert said.endswith("-device virtio-net-pci,netdev=n1,mac=02:7b:78:00:01:01,addr=0x5,romfile=,mq=on,vectors=8")


def test_qemus_words_follow_the_config() -> None:
    said = words_of(spec_of(nic="vmxnet3", append="mitigations=off"), accelerator="kvm")
    assert "-accel kvm -cpu host" in said and "panic=-1 mitigations=off" in said
    assert "queues=" not in said and "vmxnet3,netdev=n0,mac=02:7b:78:00:01:00,addr=0x4,romfile=" in said
    said = words_of(spec_of(image="/i/a,b.qcow2"), (Path("/i/a,b.qcow2"),))
    assert "-drive file=/i/a,,b.qcow2,format=qcow2,if=virtio,snapshot=on" in said and "-kernel" not in said


def test_one_emulated_processor_for_each_core_that_forwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path))
    pinned = vm.launch(spec_of(), Placement(0, (1,), 0), "tcg").argv
    assert pinned[:6] == ("nice", "-n", "-20", "taskset", "-c", "1") and pinned[pinned.index("-smp") + 1] == "1"
    free = vm.launch(spec_of(), Placement(0, (), 0), "tcg").argv
    assert free[3] == vm.QEMU and free[free.index("-smp") + 1] == "2"
    stated = vm.launch(spec_of(cores=3), Placement(0, (1,), 0), "tcg").argv
    assert stated[stated.index("-smp") + 1] == "3"


@pytest.mark.parametrize("said", [b"boot\r\n\x1b[6nlab-vm-linux# \x1b[6n", b"\x1b[32mroot@OpenWrt\x1b[0m:/# ", b"$ "])
def test_a_prompt_is_found_behind_what_moves_the_cursor(said: bytes) -> None:
    assert vm.at_prompt(said, LabVm().prompt, "it")
    assert not vm.at_prompt(said + b"\r\nmore", LabVm().prompt, "it") and not vm.at_prompt(b"", LabVm().prompt, "it")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"Debian 12\r\nrouter login: ", r"it asks for a login at its console: .* said: Debian 12 \| router login:"),
        (b"x\r\nPassword: ", "it asks for a login"),
        (
            b"[1.0] Kernel panic - not syncing: VFS: no root\r\n[1.1] more\r\n",
            r"it panicked: .*no root \| \[1.1\] more",
        ),
    ],
)
def test_a_console_at_which_no_shell_will_wait(said: bytes, words: str) -> None:
    with pytest.raises(LabError, match=words):
        vm.at_prompt(said, LabVm().prompt, "it")


def test_a_machine_without_qemu_or_without_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PATH", str(tmp_path)), ("XDG_CACHE_HOME", str(tmp_path)), ("TREXBENCH_RUN_DIR", "/run/x")):
        monkeypatch.setenv(name, value)
    with pytest.raises(LabError, match=r"lab tbm needs qemu-system-x86_64: .* apt-get install .* qemu-system-x86$"):
        vm.check(spec_of())
    (tmp_path / vm.QEMU).write_text("#!/bin/sh\n")
    (tmp_path / vm.QEMU).chmod(0o755)
    with pytest.raises(LabError, match=r"lab-vm-linux/vmlinuz is not there: make it: trexbench lab image"):
        vm.check(spec_of())
    with pytest.raises(LabError, match=r"/none.qcow2 is not there: correct lab.vm"):
        vm.check(spec_of(image="/none.qcow2"))
    with pytest.raises(LabError, match="has no apt-get: make it on a Debian"):
        image.check()
    (tmp_path / "apt-get").symlink_to("/bin/true")
    with pytest.raises(
        LabError, match=r"needs dpkg-deb, .*ethtool, grep: install: apt-get install .* iproute2 ethtool"
    ):
        image.check()


@pytest.mark.parametrize(("says", "works"), [("Linux version 6", True), ("no KVM", False), ("", False)])
def test_kvm_is_used_where_a_kernel_says_a_word_by_it(
    says: str, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(vm, "KVM_CHECK_S", 5.0 if says else 0.2)
    hangs = "exec sleep 60" if not says else f"echo '{says}'"
    (tmp_path / vm.QEMU).write_text(f"#!/bin/sh\n{hangs}\n")
    (tmp_path / vm.QEMU).chmod(0o755)
    assert vm.runs_by_kvm(Path("/k/vmlinuz")) is works
    assert vm.choose_accelerator(spec_of(accelerator="tcg")) == "tcg"
    if not works:
        with pytest.raises(LabError, match=r"no processor runs by KVM here within .* s: see whether /dev/kvm"):
            vm.choose_accelerator(spec_of(accelerator="kvm"))


def config(lab: str, driver: str = "linux", way: str = "console") -> DutConfig:
    text = (Path(load_dut("lab-vm-linux").file)).read_text()
    text = text.replace("driver: linux", f"driver: {driver}").replace("type: console", f"type: {way}")
    return dut_of(Path("lab-vm-linux.yaml"), text[: text.index("\nlab:")] + f"\nlab: {lab}\n")


@pytest.mark.parametrize(
    ("lab", "words"),
    [
        ("{router: vm, gro: false}", "gro: has no effect on lab.router: vm"),
        ("{router: kernel, vm: {memory: 256}}", "a DUT of a lab is reached by netns, not console"),
        ("{router: vm, vm: {kernel: /vmlinuz}}", "kernel and initrd belong together"),
        ("{router: vm, vm: {image: /a.raw, append: x}}", "append: has no effect on a machine with image:"),
        ("{router: vm, vm: {prompt: '['}}", "no regular expression"),
    ],
)
def test_configs_that_cannot_be(lab: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(lab)
    assert config("{router: vm, vm: {memory: 256}}").lab is not None


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_the_archive_is_one_that_cpio_unpacks(tmp_path: Path) -> None:
    files = {"init": (0o100755, b"#!/bin/sh\n"), "bin/ls": (0o120777, b"/bin/busybox"), "proc": (0o040755, b"")}
    made = archive_of(files | {"lib/a/b": (0o100644, b"x" * 4097)})
    assert made == archive_of(dict(reversed((files | {"lib/a/b": (0o100644, b"x" * 4097)}).items())))
    subprocess.run(["cpio", "-id", "--quiet"], input=made, cwd=tmp_path, check=True)
    assert (tmp_path / "init").read_bytes() == b"#!/bin/sh\n" and (tmp_path / "init").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "lib/a/b").stat().st_size == 4097 and (tmp_path / "proc").is_dir()
    assert str((tmp_path / "bin/ls").readlink()) == "/bin/busybox"
