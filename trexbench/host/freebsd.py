"""Parse counters that FreeBSD's tools print, and select those that are right for a NIC, by its driver's source.

Pure; absent is None, never zero; DutError for other text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.dut.telemetry import CpuTime
from ..core.errors import DutError
from .files import counts, number

_SYSCTL = re.compile(r"([A-Za-z_][A-Za-z0-9_%-]*(?:\.[A-Za-z0-9_%-]+)+)=(.*)")
_IRQ = re.compile(r"irq([0-9]{1,5}): (\S.*?)\s+([0-9]{1,20})\s+[0-9]+\s*")
_RXQ = re.compile(r"([a-z][a-z0-9_]*[0-9]+):(?:rxq|rx|que|q) ?([0-9]{1,4})\+?")
_LEAF = re.compile(r"dev\.([a-z][a-z0-9_]*)\.([0-9]{1,4})\.(.+)")
_REASON = re.compile(r"  ([a-z-]{1,25}) +([0-9]{1,20})(?![0-9])")
_CPU_STATES = 5
"""user, nice, sys, intr, idle: sys/sys/resource.h."""

PACKETS_OF_QUEUE = re.compile(
    r"(?:[a-z_]+\.(?:0\.)?)?(?:queue|que|rxq|rxqs\.|rxstat|queue_rx_)([0-9]{1,4})\.(?:rx_|i)?packets"
)
"""Packets of one receive queue: ix ``queue0.rx_packets``, ixl ``pf.rxq00.packets``, ice ``pf.rxqs.0.rx_packets``, mce
``rxstat0.packets``, vtnet ``rxq0.ipackets``."""
LOST_BY_QUEUE = re.compile(r"rxq([0-9]{1,4})\.[a-z]+\.nobuffer")
"""Frames for which one receive queue of vmx had no buffer, in none of netstat's columns (sys/dev/vmware/vmxnet3)."""
SENT_BY_QUEUE = re.compile(r"queue[0-9]{1,4}\.tx_packets")
DROPS_OF_RING = re.compile(r"iflib\.txq[0-9]{1,4}\.r_drops")
"""Frames that found the ring in front of one transmit queue full (iflib)."""

FREQUENCY = re.compile(r"dev\.cpu\.[0-9]{1,4}\.freq")
SHIFTING = re.compile(r"dev\.(hwpstate_(?:intel|amd))\.[0-9]{1,4}\.epp")
"""Exists where CPUs choose their clocks themselves. Each reading of FREQUENCY then measures one, with the CPU's
interrupts off for 1 ms (sys/x86/cpufreq, cpu_est_clockrate): frames are lost meanwhile."""

PLATFORM_VARIABLES: Mapping[str, str] = {
    "bios_vendor": "smbios.bios.vendor",
    "bios_version": "smbios.bios.version",
    "bios_date": "smbios.bios.reldate",
    "product_name": "smbios.system.product",
    "board_name": "smbios.planar.product",
    "board_version": "smbios.planar.version",
}
"""Kernel variables that the loader sets (stand/libsa/smbios.c), by Linux' names; without SMBIOS there are none."""
_KENV = re.compile(r'([^=]+)="(.*)"')
_MICROCODE = re.compile(
    r"MSR 0x8b: 0x([0-9a-f]{1,8}) 0x([0-9a-f]{1,8})|CPU microcode: updated from 0x[0-9a-f]{1,16} to 0x([0-9a-f]{1,16})"
)
"""Printed by ``cpucontrol -m 0x8b`` (usr.sbin/cpucontrol), and by the kernel while it boots (sys/x86/x86/ucode.c)."""


def parse_sysctl(text: str) -> dict[str, str]:
    """Parse ``sysctl -e``: value by name; a value may take several lines."""
    values: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if match := _SYSCTL.fullmatch(line):
            name = match[1]
            values[name] = match[2].strip()
        elif name and line.strip():
            values[name] += f" {line.strip()}"
    return values


def parse_kenv(text: str) -> dict[str, str]:
    """Parse ``kenv``: PLATFORM_VARIABLES that are not empty, by name."""
    values = {match[1]: match[2].strip() for match in map(_KENV.fullmatch, text.splitlines()) if match}
    return {name: values[variable] for name, variable in PLATFORM_VARIABLES.items() if values.get(variable)}


def parse_microcode(text: str) -> str | None:
    """Parse the revision, as in ``0x24``: Intel has it in the register's upper half, AMD in its lower one."""
    match = _MICROCODE.search(text)
    revision = next((int(digits, 16) for digits in match.groups("0") if int(digits, 16)), 0) if match else 0
    return f"{revision:#x}" if revision else None


def device(interface: str) -> tuple[str, str] | None:
    """Split ``ix0`` into driver and unit, (``ix``, ``0``); None for other names, such as a VLAN's."""
    match = re.fullmatch(r"([a-z][a-z0-9_]*?)([0-9]{1,4})", interface)
    return (match[1], match[2]) if match else None


def parse_interrupts(text: str) -> list[tuple[int, str, int]]:
    """Parse ``vmstat -ia``: interrupt number, name, and count since boot, as in (264, ``ix0:rxq0``, 1218965)."""
    return [(int(match[1]), match[2], int(match[3])) for match in map(_IRQ.fullmatch, text.splitlines()) if match]


def receive_queues(interrupts: Iterable[tuple[int, str, int]]) -> dict[str, dict[int, int]]:
    """Interrupt number of each receive queue, by interface and queue."""
    queues: dict[str, dict[int, int]] = {}
    for irq, name, _ in interrupts:
        if match := _RXQ.fullmatch(name):
            queues.setdefault(match[1], {})[int(match[2])] = irq
    return queues


def parse_cpus(text: str) -> tuple[int, ...]:
    """Parse ``cpuset -g -x IRQ``, ``irq 264 mask: 0, 1``: the CPUs that may serve the interrupt."""
    match = re.search(r"^irq [0-9]+ mask: ([0-9]{1,5}(?:, ?[0-9]{1,5})*)\s*$", text, re.MULTILINE)
    if not match:
        raise DutError(f"cpuset printed no CPUs ({text.strip()[:60]!r})")
    return tuple(map(int, match[1].split(",")))


def parse_cpu_times(values: Mapping[str, str]) -> tuple[CpuTime, ...]:
    """Parse ``kern.cp_times``, ``kern.clockrate`` and ``dev.cpu.N.freq`` (MHz), as sysctl prints them.

    A CPU that is absent, or a hyperthread that is off, has no ticks (sys/kern/kern_clock.c) and is left out. A
    frequency that only the first CPU has holds for all: cpufreq(4) then sets them together. What packets take is not
    known: under load most drivers hand them to threads, which count as ``sys``.
    """
    ticks = counts(values.get("kern.cp_times", "").split())
    hz = re.search(r"\bstathz = ([0-9]{1,9})\b", values.get("kern.clockrate", ""))
    if not ticks or not any(ticks) or len(ticks) % _CPU_STATES or not hz or not int(hz[1]):
        raise DutError("sysctl printed no CPU times (kern.cp_times, kern.clockrate)")
    first = number(values.get("dev.cpu.0.freq"))
    times = []
    for cpu in range(len(ticks) // _CPU_STATES):
        user, nice, kernel, interrupt, idle = ticks[cpu * _CPU_STATES :][:_CPU_STATES]
        mhz = number(values.get(f"dev.cpu.{cpu}.freq")) or first
        busy = user + nice + kernel + interrupt
        if not busy + idle:
            continue
        times.append(
            CpuTime(
                cpu,
                total_s=(busy + idle) / int(hz[1]),
                busy_s=busy / int(hz[1]),
                clock_hz=mhz * 1e6 if mhz and mhz > 0 else None,
            )
        )
    return tuple(times)


def parse_interface_counts(text: str) -> dict[str, dict[str, int]]:
    """Parse ``netstat -ibdnW``: the row of each interface itself (``<Link#1>``), by the header's names.

    Values are taken from the row's end, since its address may be missing. What is not printed is left out.
    """
    interfaces: dict[str, dict[str, int]] = {}
    columns: Sequence[str] = ()
    for line in text.splitlines():
        words = line.split()
        if words[:4] == ["Name", "Mtu", "Network", "Address"]:
            columns = words[4:]
        elif columns and len(words) >= 3 + len(columns) and words[2].startswith("<Link#"):
            values = zip(columns, map(number, words[-len(columns) :]), strict=True)
            interfaces[words[0].rstrip("*")] = {name: value for name, value in values if value is not None}
    if not columns:
        raise DutError(f"netstat -i printed no table of interfaces ({text.strip()[:60]!r})")
    return interfaces


def parse_netisr_drops(text: str) -> int:
    """Parse ``netstat -Q``: packets of IPv4 and IPv6 that found a netisr queue full, over all workstreams."""
    drops: int | None = None
    at = -1
    for line in text.splitlines():
        words = line.split()
        if words[:3] == ["WSID", "CPU", "Name"]:
            at = words.index("QDrops") if "QDrops" in words else -1
        elif at > 0 and len(words) > at and words[2] in ("ip", "ip6"):
            count = number(words[at])
            if count is None:
                raise DutError(f"netstat -Q printed a line that cannot be read ({line[:80]!r})")
            drops = (drops or 0) + count
    if drops is None:
        raise DutError(f"netstat -Q printed no workstreams of ip ({text.strip()[:60]!r})")
    return drops


def parse_protocol(text: str) -> dict[str, int]:
    """Parse ``netstat -s -p ip``: count by its words, in the plural (``output packets discarded due to no route``)."""
    lines = (re.fullmatch(r"\s+([0-9]{1,20}) (\S.*?)", line) for line in text.splitlines())
    counters = {re.sub(r"\bpacket\b", "packets", match[2]): int(match[1]) for match in lines if match}
    if not counters:
        raise DutError(f"netstat -s printed no counts ({text.strip()[:60]!r})")
    return counters


def parse_firewall_drops(text: str) -> dict[str, int]:
    """Parse ``pfctl -s info``: packets dropped by reason (net/pfvar.h); ``match`` is left out, it has those passed."""
    lines = text.splitlines()
    counted = lines[lines.index("Counters") + 1 :] if "Counters" in lines else []
    reasons = filter(None, map(_REASON.match, counted))
    return {match[1]: int(match[2]) for match in reasons if match[1] != "match"}


@dataclass(frozen=True)
class NicCounters:
    """Counters of frames that a driver loses, each frame in one of them."""

    columns: tuple[str, ...] = ("Ierrs", "Idrop", "Oerrs")
    """Columns of ``netstat -i``."""
    leaves: tuple[str, ...] = ()
    """Sysctls below the device."""
    by_queue: bool = False
    """Received and sent frames are the sums over its queues, counted by software; else netstat's Ipkts and Opkts."""
    own_drops: bool = False
    """Netstat's Drop is the NIC's alone, without what iflib's rings refused."""
    silent_ring: bool = False
    """Frames that a full transmit ring refused are in ``netstat -s`` alone."""
    known: bool = True
    """The driver's source was read."""


_IX = NicCounters(
    columns=(),
    leaves=(
        *("mac_stats.rx_missed_packets", "mac_stats.crc_errs", "mac_stats.ill_errs", "mac_stats.rec_len_errs"),
        *("mac_stats.recv_undersized", "mac_stats.recv_fragmented", "mac_stats.recv_oversized"),
        "mac_stats.recv_jabberd",
    ),
    by_queue=True,
)
"""sys/dev/ixgbe/if_ix.c, ixgbe_update_stats_counters, 12 to 15. Idrop is always 0. Ierrs has no missed frames in 12;
since 13 it has them, in 13 also bad checksums (xec) of frames that are not lost. Ipkts has the missed frames in it, and
is up to half a second old, as Opkts is. Oerrs is no more than iflib's, of frames that no ring refused; Drop is 0."""

_E1000 = NicCounters(columns=("Ierrs",))
"""sys/dev/e1000/if_em.c, sys/dev/igc/if_igc.c, *_if_get_counter: Ierrs has the missed frames (mpc) in it, so
``mac_stats.missed_packets`` is left out. Oerrs has collisions, which full duplex has none of. Ipkts and Opkts are
counted by software. No queue counts its packets."""

_IXL = NicCounters(own_drops=True)
"""sys/dev/ixl/ixl_pf_main.c, ixl_update_vsi_stats: Idrop has the frames for which queue or port had no buffer, Ierrs
broken ones, Oerrs and Drop what the NIC did not send."""

_ICE = NicCounters(leaves=("hw.mac.rx_discards",), own_drops=True)
"""sys/dev/ice/ice_lib.c, ice_get_ifnet_counter: Idrop has the frames for which a queue had no descriptor, and not those
for which the port had no room. Drop has frames for a link that is down."""

_VMX = NicCounters()
"""sys/dev/vmware/vmxnet3/if_vmx.c, vmxnet3_get_counter: all are iflib's; its host's are read as LOST_BY_QUEUE."""

_CXGBE = NicCounters()
"""sys/dev/cxgbe/t4_main.c, cxgbe_get_counter: Idrop has the frames for which port or queue had no room, Drop those that
its own rings refused."""

_VTNET = NicCounters(silent_ring=True)
"""sys/dev/virtio/network/if_vtnet.c, vtnet_get_counter: Idrop has frames for which there was no mbuf; what its
host drops before is in no counter here. Its ring is a buf_ring (sys/net/ifq.c, drbr_enqueue)."""

_BY_DRIVER: dict[str, NicCounters] = {"ix": _IX, "ixl": _IXL, "ice": _ICE, "vmx": _VMX, "vtnet": _VTNET}
_BY_DRIVER |= dict.fromkeys(("em", "igb", "igc"), _E1000) | dict.fromkeys(("cxgbe", "cxl", "cc"), _CXGBE)
_ANY = NicCounters(known=False)


def counters_of(interface: str) -> NicCounters:
    """Counters that are right for this NIC; all of ``netstat -i`` where the source of its driver was not read."""
    driver, _unit = device(interface) or ("", "")
    return _BY_DRIVER.get(driver, _ANY)


def leaf_of(name: str) -> tuple[str, str] | None:
    """Split a sysctl's name: ``dev.ix.0.mac_stats.crc_errs`` into ``ix0`` and ``mac_stats.crc_errs``."""
    match = _LEAF.fullmatch(name)
    return (f"{match[1]}{match[2]}", match[3]) if match else None


def leaves_of(interface: str, values: Mapping[str, str]) -> dict[str, int]:
    """Counts below the device of this interface, by the rest of their names."""
    counters = ((leaf_of(name), number(value)) for name, value in values.items())
    return {leaf[1]: count for leaf, count in counters if leaf and leaf[0] == interface and count is not None}


def is_counter(name: str) -> bool:
    """Test for a device's sysctl to be read: one that its driver needs, or of a queue or ring."""
    interface, leaf = leaf_of(name) or ("", "")
    row = counters_of(interface)
    forms = (PACKETS_OF_QUEUE, LOST_BY_QUEUE, DROPS_OF_RING, *((SENT_BY_QUEUE,) if row.by_queue else ()))
    return leaf in row.leaves or any(form.fullmatch(leaf) for form in forms)
