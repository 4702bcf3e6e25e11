"""What a Linux DUT says of itself under load, and where it admits to have lost frames; pure.

The counters of losses are chosen so that no frame is in two of them:

- An interface's ``dropped``, ``missed`` and ``errors`` are disjoint by definition (linux/if_link.h); errors hold crc,
  length, frame and fifo errors where a driver counts those, so that they are left out. ``dropped`` holds what receive
  packet steering found no room for: that the same frame is in softnet_stat's second column was seen in the lab, hence
  softnet_stat is left out. It also holds what did not fit into a veth's ring.
- What a queueing discipline drops never reaches the interface, and is in no counter of its.
- ethtool's counters are mostly the same ones by other names; EXTRA are those that no total holds.
- IP counts only what passed the interface. Ip.InHdrErrors holds IpExt.InCsumErrors; a reverse path failure is
  TcpExt's alone.
- cpumap's queue counts nothing that can be read: what XDP handed over and IP never got was lost there. The program
  hands over every frame, and rx_packets has them all, also those of queues that are no longer in use (of which
  ethtool's rx_queue_N_xdp_redirect are gone). A few frames that are no IPv4 (ARP) pass for lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...config.model import DutConfig
from ...core.dut.telemetry import DropCount, Missing, Observation
from ...host.read_linux import LinuxTotals

_LINK = {
    "rx.dropped": "rx_dropped",
    "rx.missed_errors": "rx_missed_errors",
    "rx.errors": "rx_errors",
    "tx.dropped": "tx_dropped",
    "tx.errors": "tx_errors",
}
_EXTRA = {"ixgbe": r"rx_no_dma_resources", "igb": r"rx_queue_([0-9]{1,5})_drops"}
"""By driver: of frames for which a queue had no descriptor. ixgbe's queues drop by themselves (QPRDC) when there are
several; igb books them as fifo errors, which are in no other total of its."""
_IP = (
    "Ip.InHdrErrors",
    "Ip.InAddrErrors",
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Ip.FragFails",
    "IpExt.InNoRoutes",
    "IpExt.InTruncatedPkts",
    "TcpExt.IPReversePathFilter",
)


def observed(totals: LinuxTotals, config: DutConfig, lab: Mapping[str, Any]) -> Observation:
    """One reading of the host, as the tester's ports see it. lab: how the DUT's lab is placed, empty without one.

    cpumap's thread and NAPI threads are booked as system time, not as soft interrupts.
    """
    ports = {port.tester: port.interface for port in config.ports}
    steer, threaded = lab.get("steer"), bool(lab.get("threaded"))
    counts = _of_ports(totals, ports) + _of_ip(totals)
    if steer == "cpumap":
        counts += _of_cpumap(totals, tuple(ports.values()))
    found = totals.observation(config, counts)
    if steer == "cpumap" or threaded:
        return replace(found, cpus=tuple(replace(cpu, packet_s=None) for cpu in found.cpus))
    if steer == "none":
        hidden = Missing("CPU time", "lab.steer is none: the router works in the sender's time")
        return replace(found, cpus=(), missing=(*found.missing, hidden))
    if steer == "rps":
        hidden = Missing("CPU time of receiving", "lab.steer is rps: its first half runs on the sender")
        return replace(found, missing=(*found.missing, hidden))
    return found


def _of_ports(found: LinuxTotals, ports: Mapping[int, str]) -> list[DropCount]:
    """ports: interface by the tester's port."""
    counts = []
    for port, name in ports.items():
        link = found.links.get(name, {})
        counts += [DropCount(word, link[key], port) for key, word in _LINK.items() if key in link]
        if name in found.qdiscs:
            counts.append(DropCount("tx qdisc drops", found.qdiscs[name], port))
        extra = _EXTRA.get(found.drivers.get(name, ""))
        for counter, count in found.nics.get(name, {}).items():
            if extra and (match := re.fullmatch(extra, counter)):
                counts.append(DropCount(counter, count, port, int(match[1]) if match.groups() else None))
    return counts


def _of_ip(found: LinuxTotals) -> list[DropCount]:
    """Of the whole box, or namespace."""
    return [DropCount(name, found.ip[name]) for name in _IP if name in found.ip]


def _of_cpumap(found: LinuxTotals, interfaces: Sequence[str]) -> list[DropCount]:
    """Of all interfaces together: they share the queue, and IP does not count by interface."""
    handed = [found.links[name]["rx.packets"] for name in interfaces if "rx.packets" in found.links.get(name, {})]
    if len(handed) < len(interfaces) or "Ip.InReceives" not in found.ip:
        return []
    lost = max(0, sum(handed) - found.ip["Ip.InReceives"])
    return [DropCount("cpumap queue (redirected, not received)", lost)]
