"""Virtual machine as the lab's router: QEMU, with a NIC on a TAP in the tester's namespace for each of its ports.

    tester's p0 (TAP) --- QEMU: NIC of the first port, guest, NIC of the second --- p1

Its disks are opened as snapshots and it never restarts, so that killing it is all that a shutdown takes.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..config.endpoints import lab_namespace
from ..config.lab import MANAGEMENT_PORT, NICS, LabVm
from ..core.errors import LabError
from ..core.run import EMULATOR
from ..lock import run_dir
from ..transport.cli import stated_password
from ..transport.console import console_socket
from . import image, net, nudge, server
from .server import Launch
from .spec import LabSpec, Placement

KIND = "vm"
QEMU = "qemu-system-x86_64"
KVM_CHECK_S = 3.0
"""Enough for a kernel to print its first word; if no processor works, all of it is waited for."""
_PROCESSOR = re.compile(r"CPU (\d+)/")
"""Name of a thread of QEMU that is a processor."""
_QCOW2 = b"QFI\xfb"
_KERNEL_WORDS = "console=ttyS0 quiet panic=-1"
_ALONE = ("-nodefaults", "-nographic", "-no-reboot", "-no-user-config")
_VPP_PROCESSOR = ("-cpu", "Nehalem")
"""Oldest processor that runs Debian's VPP (x86-64-v2)."""
NICENESS = -20
RING = 1024
"""Buffers of each queue of a virtio NIC, QEMU's most: one that is full stops all of several until the next nudge."""
_SANDBOX = "on,spawn=deny,elevateprivileges=deny,resourcecontrol=deny"
_FIRST_SLOT = 4
_MANAGEMENT_MAC = "02:7b:78:00:02:00"
_ENDPOINT_MAC = "02:7b:78:00:03:{:02x}"
_LINK = "n{}"
"""QEMU's name of a NIC's end outside of the machine, by number."""
_MONITOR = "trexbench-monitor"
"""Abstract name of QEMU's socket for commands, in the tester's namespace."""
_TAP = "e{}"
"""Interface of an endpoint, by number, until QEMU has opened it and it is moved to the endpoint's namespace."""


def check(spec: LabSpec) -> None:
    """Raise LabError, before anything is made, if this machine cannot start the virtual machine."""
    if shutil.which(QEMU) is None:
        raise LabError(f"lab {spec.prefix} needs {QEMU}", f"install it: {image.install_command(['qemu-system-x86'])}")
    for path in boot_files(spec.settings.vm):
        if not path.is_file():
            made = "correct lab.vm of the DUT config"
            if path.parent == image.folder():
                made = f"make it: trexbench lab image{' --vpp /' if spec.settings.vm.guest == 'vpp' else ''}"
            raise LabError(f"lab {spec.prefix}: {path} is not there", made)
    if (login := spec.settings.vm.login) is not None:
        stated_password(login.password_env, login.password_file)
    server.require_short(spec, console_socket(run_dir(), spec.dut))


def boot_files(machine: LabVm) -> tuple[Path, ...]:
    """Return the image from which a machine starts, or kernel and initrd."""
    if machine.image is not None:
        return (Path(machine.image).expanduser(),)
    if machine.kernel is None or machine.initrd is None:
        return image.kernel_file(), image.initrd_file(machine.guest)
    return Path(machine.kernel).expanduser(), Path(machine.initrd).expanduser()


def choose_accelerator(spec: LabSpec) -> str:
    """Return the config's accelerator; for ``auto`` KVM if a processor really runs by it, else TCG.

    LabError if the config asks for KVM and it does not work.
    """
    asked = spec.settings.vm.accelerator
    if asked == EMULATOR:
        return asked
    kernel = boot_files(spec.settings.vm)[0] if spec.settings.vm.image is None else image.kernel_file()
    works = os.access("/dev/kvm", os.R_OK | os.W_OK) and runs_by_kvm(kernel if kernel.is_file() else None)
    if asked == "kvm" and not works:
        what = f"lab {spec.prefix}: no processor runs by KVM here within {KVM_CHECK_S:g} s"
        raise LabError(what, "see whether /dev/kvm is there, or write lab.vm.accelerator: auto, which emulates it")
    return "kvm" if works else EMULATOR


def runs_by_kvm(kernel: Path | None) -> bool:
    """Test whether a kernel prints its first word by KVM; without one the firmware, which proves less."""
    boot = ("-kernel", str(kernel), "-append", "console=ttyS0 panic=-1") if kernel is not None else ()
    word = b"Linux version" if kernel is not None else b"SeaBIOS"
    argv = [QEMU, "-accel", "kvm", "-cpu", "host", "-m", "256", *_ALONE, "-serial", "stdio", *boot]
    trial = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        preexec_fn=server.die_with_parent(),
    )  # fmt: skip
    heard, deadline = b"", time.monotonic() + KVM_CHECK_S
    with trial:
        assert trial.stdout is not None
        try:
            while word not in heard and (left_s := deadline - time.monotonic()) > 0:
                if select.select([trial.stdout], [], [], left_s)[0]:
                    if not (piece := os.read(trial.stdout.fileno(), 4096)):
                        break
                    heard += piece
        finally:
            trial.kill()
    return word in heard


def command_line(spec: LabSpec, accelerator: str, files: tuple[Path, ...], console: Path, cores: int) -> list[str]:
    """Compose QEMU's command line. files: as of boot_files; console: socket of the serial line; cores: of the guest."""
    machine = spec.settings.vm
    processor = ["-accel", "kvm", "-cpu", "host"] if accelerator == "kvm" else ["-accel", "tcg,thread=multi"]
    processor += [*_VPP_PROCESSOR] if machine.guest == "vpp" and accelerator == EMULATOR else []
    argv = [QEMU, *processor, "-smp", str(cores), "-m", str(machine.memory_mib), *_ALONE]
    argv += ["-sandbox", _SANDBOX, "-name", f"{spec.dut},debug-threads=on"]
    argv += ["-chardev", f"socket,id=console,path={_value(console)},server=on,wait=off", "-serial", "chardev:console"]
    if spreads_itself(spec):
        argv += ["-chardev", f"socket,id=monitor,path={_MONITOR},abstract=on,server=on,wait=off"]
        argv += ["-mon", "chardev=monitor,mode=control"]
    if machine.image is not None:
        with files[0].open("rb") as disk:
            kind = "qcow2" if disk.read(len(_QCOW2)) == _QCOW2 else "raw"
        argv += ["-drive", f"file={_value(files[0])},format={kind},if=virtio,snapshot=on"]
    else:
        words = f"{_KERNEL_WORDS} {machine.append}".strip()
        argv += ["-kernel", str(files[0]), "-initrd", str(files[1]), "-append", words]
    macs, slots = spec.dut_macs, range(len(spec.endpoints))
    nics = [(name, mac, spec.most_queues) for name, mac in zip(spec.tester_interfaces, macs.values(), strict=True)]
    nics += [(_TAP.format(slot), _ENDPOINT_MAC.format(slot), 1) for slot in slots]
    for index, (name, mac, queues) in enumerate(nics):
        argv += _nic(machine, index, name, mac, queues)
    if spec.by_ssh:
        to = f"user,id=m,restrict=on,hostfwd=tcp:127.0.0.1:{MANAGEMENT_PORT}-:22"
        slot = _FIRST_SLOT + len(nics)
        device = f"{NICS[machine.nic]},netdev=m,mac={_MANAGEMENT_MAC},addr={slot:#x},romfile="
        argv += ["-netdev", to, "-device", device]
    return argv


def _nic(machine: LabVm, index: int, name: str, mac: str, queues: int) -> list[str]:
    """Compose the options of a NIC, in the order of slots, without firmware, which would boot from a network."""
    queues = queues if machine.nic == "virtio" else 1
    more = f",rx_queue_size={RING}" if machine.nic == "virtio" else ""
    more += f",mq=on,vectors={2 * queues + 2}" if queues > 1 else ""
    more += ",rss=on" if queues > 1 and machine.rss else ""
    link = _LINK.format(index)
    tap_words = f"tap,id={link},ifname={name},script=no,downscript=no" + (f",queues={queues}" if queues > 1 else "")
    slot = _FIRST_SLOT + index
    device = f"{NICS[machine.nic]},netdev={link},mac={mac},addr={slot:#x},romfile={more}"
    return ["-netdev", tap_words, "-device", device]


def _value(path: Path) -> str:
    """Quote a path for QEMU's options, where a comma is written twice."""
    return str(path).replace(",", ",,")


def make_taps(spec: LabSpec) -> None:
    """Make the tester's ports, and interfaces of the endpoints; without carrier until QEMU is attached."""
    settings, macs = spec.settings, spec.tester_macs
    queues = spec.most_queues if settings.vm.nic == "virtio" else 1
    common = {"mtu": settings.mtu, "txqlen": settings.txqueuelen}
    for index, name in enumerate(spec.tester_interfaces):
        net.make_tap(spec.tester, name, several=queues > 1)
        net.set_link(spec.tester, name, **common, address=macs[index], state="up")
    net.set_up(spec.tester)
    for index in range(len(spec.endpoints)):
        net.make_tap(spec.tester, _TAP.format(index))


def hand_out_taps(spec: LabSpec) -> None:
    """Move the endpoints' interfaces, which QEMU has opened, to where the endpoints are."""
    settings = spec.settings
    for index, end in enumerate(spec.endpoints):
        there = {"net_ns_fd": lab_namespace(spec.prefix, end.role), "ifname": end.interface}
        net.set_link(spec.tester, _TAP.format(index), mtu=settings.mtu, txqlen=settings.txqueuelen, **there)


def launch(spec: LabSpec, placement: Placement, accelerator: str) -> Launch:
    """Return how to launch QEMU on the cores that forward, ahead of others there, like a lab's kernel threads."""
    console = console_socket(run_dir(), spec.dut)
    cores = count_cores(spec, placement.router)
    argv = command_line(spec, accelerator, boot_files(spec.settings.vm), console, cores)
    return Launch(KIND, (*_before_others(placement), *argv), {})


def _before_others(placement: Placement) -> tuple[str, ...]:
    pinned = ["taskset", "-c", ",".join(map(str, placement.router))] if placement.router else []
    return ("nice", "-n", str(NICENESS), *pinned)


def spreads_itself(spec: LabSpec) -> bool:
    """Test whether QEMU itself spreads frames over a NIC's queues, and so needs nudging."""
    machine = spec.settings.vm
    return machine.nic == "virtio" and machine.rss and spec.most_queues > 1


def nudger(spec: LabSpec, placement: Placement) -> Launch:
    """Return how to launch the program that nudges the links of the ports; it ends with QEMU."""
    links = (_LINK.format(index) for index in range(len(spec.tester_interfaces)))
    return Launch("link", (*_before_others(placement), sys.executable, "-IS", nudge.__file__, _MONITOR, *links), {})


def count_cores(spec: LabSpec, router: Sequence[int]) -> int:
    """Count the machine's processors. router: the cores that forward; two emulated on one wait for each other.

    Linux gets one for each queue of a NIC: 6.1 reports to a virtio NIC as many queues as processors, however many are
    in use, and gives a vmxnet3 as many. VPP's threads poll, and VPP ends if one waits too long for another.
    """
    machine, needed = spec.settings.vm, len(router) or 2
    if machine.guest == "linux":
        needed = spec.most_queues if machine.nic == "vmxnet3" else max(needed, spec.most_queues)
    return machine.cores or needed


def pin(process: int, router: Sequence[int]) -> None:
    """Give each processor of a machine a core of its own, if there are several. router: the cores that forward."""
    for task in Path("/proc").glob(f"{process}/task/*") if len(router) > 1 else ():
        with suppress(OSError):
            match = _PROCESSOR.match((task / "comm").read_text())
            if match is not None:
                os.sched_setaffinity(int(task.name), {router[int(match[1]) % len(router)]})


def notes_of(accelerator: str) -> tuple[str, ...]:
    return ("the router's processor is emulated (QEMU's TCG), and so are its figures",) * (accelerator == EMULATOR)


def clean(prefix: str) -> None:
    """Remove the socket that a killed QEMU leaves."""
    console_socket(run_dir(), lab_namespace(prefix, "dut")).unlink(missing_ok=True)


def facts_of(spec: LabSpec, accelerator: str, router: Sequence[int]) -> dict[str, object]:
    """Return facts of a run that its guest does not report. router: the cores that forward."""
    machine = spec.settings.vm
    cores = count_cores(spec, router)
    facts = {"accelerator": accelerator, "nic": machine.nic, "cores": cores, "memory_mib": machine.memory_mib}
    return {"vm": {**facts, **({"rx_queue_size": RING} if machine.nic == "virtio" else {})}}
