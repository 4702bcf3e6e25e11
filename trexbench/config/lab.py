"""The ``lab:`` section of a DUT config: a router in network namespaces or a virtual machine on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from . import readers as r
from .commands import pattern
from .readers import section
from .settings import sysctls

_APPEND = r.pattern(r"[ -~]+", "words of a kernel's command line", "mitigations=off", 500)
NICS = {"virtio": "virtio-net-pci", "vmxnet3": "vmxnet3", "e1000e": "e1000e"}
"""QEMU's devices. Of these only virtio receives into more than one queue there."""
MANAGEMENT_PORT = 2222
"""Port of the machine's ssh on the tester's loopback, where ssh is its transport."""
_CPU = r.or_word(("auto", "any"), r.integer(0, 4095))
_CPUS = r.or_word(("auto", "any"), r.integers(0, 4095))


@dataclass(frozen=True)
class ConsoleLogin:
    """Login at a console that asks for a name and a password, and the way from there to a POSIX shell as root."""

    user: Annotated[str, r.user]  # name with which it logs in
    password_env: Annotated[str | None, r.variable] = None
    """Environment variable with the password; the password is empty without this and ``password_file``."""
    password_file: Annotated[str | None, r.path] = None
    """File whose first line is the password."""
    then: Annotated[tuple[str, ...], r.list_of("line", r.pattern(r"[ -~]+", "a line to type", "sudo -i", 200))] = ()
    """Lines to type, each at a prompt."""


@dataclass(frozen=True)
class LabVm:
    """A virtual machine, by QEMU, with a NIC for each of the DUT's ports."""

    guest: Annotated[str, r.choice("linux", "vpp")] = "linux"
    """Guest that ``trexbench lab image`` made."""
    kernel: Annotated[str | None, r.path] = None
    """Kernel to boot in place of the guest's, with ``initrd``."""
    initrd: Annotated[str | None, r.path] = None
    """Initial RAM disk of ``kernel``."""
    append: Annotated[str, _APPEND] = ""
    """Further words for the kernel's command line."""
    image: Annotated[str | None, r.path] = None
    """Disk, qcow2 or raw, to boot from in place of any kernel; it is never written."""
    memory_mib: Annotated[int, r.integer(64, 1_000_000), "memory"] = 512
    """Size of its memory in MiB."""
    cores: Annotated[int | None, r.integer(1, 64)] = None
    """Virtual cores; None: as many as lab.router_cpus, or two; for Linux no fewer than a NIC has queues, and with
    vmxnet3 just as many."""
    nic: Annotated[str, r.choice(*NICS)] = "virtio"
    """Model of its NICs."""
    rss: Annotated[bool, r.boolean] = True
    """Virtio NICs choose a queue by a readable hash of addresses and ports; without RSS, the TAP uses a hash of its
    own."""
    accelerator: Annotated[str, r.choice("auto", "kvm", "tcg")] = "auto"
    """``kvm`` runs the guest on this machine's processor, ``tcg`` emulates one; ``auto``: KVM where it works."""
    prompt: Annotated[str, pattern()] = "[#$] *$"
    """Pattern that matches the console's last line once a shell waits there."""
    login: Annotated[ConsoleLogin | None, section(ConsoleLogin, "a login")] = None
    """Login at its console; None: it logs in by itself."""
    boot_s: Annotated[float, r.seconds, "boot"] = 60.0
    """Longest time until the shell is there."""


@dataclass(frozen=True)
class LabEndpoints:
    """Cables from a lab's endpoints to the DUT."""

    offloads: Annotated[str | None, r.choice("full", "mtu", "packet")] = None
    """``full`` (frames of up to 64 KB, the default of hosts and veth), ``mtu`` (endpoints send no frame longer than the
    MTU; the router may merge them by GRO) or ``packet`` (frames are neither merged nor split anywhere); None: ``full``,
    or ``mtu`` with a line."""
    line_bps: Annotated[float | None, r.speed, "line"] = None
    """L1 rate of each endpoint's cable; None: unlimited."""

    @property
    def mode(self) -> str:
        return self.offloads or ("full" if self.line_bps is None else "mtu")


@dataclass(frozen=True)
class LabConfig:
    """A DUT in network namespaces on this machine."""

    prefix: Annotated[str, r.prefix] = "tbx"  # of its namespaces' names, ``tbx-tester`` and ``tbx-dut``
    sender_cpu: Annotated[int | str, _CPU] = "auto"
    """Core of the generator's packet engine; ``auto`` is the first usable core, ``any`` does not pin."""
    router_cpus: Annotated[tuple[int, ...] | str, _CPUS] = "auto"
    """Cores that forward; ``auto`` is the first core that shares no hardware with the sender's."""
    harness_cpu: Annotated[int | str, _CPU] = "auto"
    """Core of trexbench itself; ``auto`` keeps it off the router's cores, ``any`` does not pin."""
    steer: Annotated[str, r.choice("cpumap", "rps", "none")] = "cpumap"
    """Path of received frames to router_cpus, since veth has no interrupt of its own: ``cpumap`` (queues that a kernel
    thread on each of them empties), ``rps`` (receive packet steering) or ``none``: they stay on the sender's core."""
    threaded: Annotated[bool, r.boolean] = False
    """Run NAPI of the DUT's interfaces in kernel threads, pinned to router_cpus."""
    gro: Annotated[bool, r.boolean] = True
    """Generic receive offload on the DUT's interfaces; without it (or an XDP program), veth does not poll."""
    router: Annotated[str, r.choice("kernel", "vpp", "vm", "bypass")] = "kernel"
    """Forwarder: the ``kernel``; a ``vpp`` started in the DUT's namespace with its workers on router_cpus; a ``vm``
    on router_cpus; or nothing: in a ``bypass`` the tester's ports are cabled together, to calibrate it."""
    vm: Annotated[LabVm, section(LabVm, "a virtual machine")] = field(default_factory=LabVm)
    queues: Annotated[int, r.integer(1, 64)] = 1
    """Receive and transmit queues of every veth, unless the run asks for another number."""
    txqueuelen: Annotated[int, r.integer(0, 1_000_000)] = 1000
    """Length in frames of the transmit queue of every veth, or of a virtual machine's TAPs."""
    mtu: Annotated[int, r.integer(576, 65535)] = 1500
    """MTU of every veth."""
    sender_limit_pps: Annotated[float | None, r.pps, "sender_limit"] = None
    """Highest rate per port of the embedded server, to see how a weak generator is reported."""
    sysctls: Annotated[tuple[tuple[str, str], ...], sysctls(r.text)] = (("net.core.netdev_max_backlog", "4096"),)
    """Kernel settings in the DUT's namespace; one that exists only on the host is set there and restored afterwards."""
    endpoints: Annotated[LabEndpoints, section(LabEndpoints, "a lab's endpoints")] = field(default_factory=LabEndpoints)
    """Cables to client and server."""
