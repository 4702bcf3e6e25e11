"""``lab: vm:`` - a virtual machine as a lab's router."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from . import readers as r
from .commands import pattern
from .readers import section

_APPEND = r.pattern(r"[ -~]+", "words of a kernel's command line", "mitigations=off", 500)
NICS = {"virtio": "virtio-net-pci", "vmxnet3": "vmxnet3", "e1000e": "e1000e"}
"""QEMU's devices. Of these only virtio receives into more than one queue there."""
MANAGEMENT_PORT = 2222
"""On the tester's loopback: the machine's ssh, where that is its transport."""


@dataclass(frozen=True)
class ConsoleLogin:
    """A console's questions for a name and a password, and what leads from there to a POSIX shell as root.

    password_env, password_file: where the password is; neither: it is empty. then: lines, each typed at a prompt.
    """

    user: Annotated[str, r.user]
    password_env: Annotated[str | None, r.variable] = None
    password_file: Annotated[str | None, r.path] = None
    then: Annotated[tuple[str, ...], r.list_of("line", r.pattern(r"[ -~]+", "a line to type", "sudo -i", 200))] = ()


@dataclass(frozen=True)
class LabVm:
    """A virtual machine, by QEMU, with a NIC for each of the DUT's ports.

    guest: which one it is of those that ``trexbench lab image`` makes. kernel, initrd: what it starts instead. append:
    words for its kernel. image: a disk, qcow2 or raw, that it starts from in their place, and that is never written.
    memory_mib: of its memory. cores: of its own; None: as many as lab.router_cpus, or two, but for Linux no fewer than
    its NICs have queues, and with vmxnet3 no more. nic: its NICs' model.
    rss: virtio NICs of several queues choose one by a hash of addresses and ports, and a table, both readable; else
    the TAP chooses, by a hash of its own. accelerator: what runs its processor: ``kvm``, which is this machine's own,
    ``tcg``, which emulates it, or ``auto``: KVM where it works. prompt: a pattern, which the last line of its console
    matches once a shell waits there. login: at its console; None: it logs in by itself. boot_s: until then, at most.
    """

    guest: Annotated[str, r.choice("linux", "vpp")] = "linux"
    kernel: Annotated[str | None, r.path] = None
    initrd: Annotated[str | None, r.path] = None
    append: Annotated[str, _APPEND] = ""
    image: Annotated[str | None, r.path] = None
    memory_mib: Annotated[int, r.integer(64, 1_000_000), "memory"] = 512
    cores: Annotated[int | None, r.integer(1, 64)] = None
    nic: Annotated[str, r.choice(*NICS)] = "virtio"
    rss: Annotated[bool, r.boolean] = True
    accelerator: Annotated[str, r.choice("auto", "kvm", "tcg")] = "auto"
    prompt: Annotated[str, pattern()] = "[#$] *$"
    login: Annotated[ConsoleLogin | None, section(ConsoleLogin, "a login")] = None
    boot_s: Annotated[float, r.seconds, "boot"] = 60.0
