"""Counters of a Linux DUT under load, and the drops that it counts; pure.

The drop counters are chosen so that no frame is in two of them:

- An interface's ``dropped``, ``missed`` and ``errors`` are disjoint by definition (linux/if_link.h); errors hold crc,
  length, frame and fifo errors where a driver counts those, so that they are left out. ``dropped`` includes what RPS
  had no room for; in the lab the same frames were in softnet_stat's second column, hence softnet_stat is left out. It
  also includes what did not fit into a veth's ring.
- What a queueing discipline drops never reaches the interface, and is in none of the interface's counters.
- ethtool's counters are mostly the same ones by other names; _EXTRA are those that no total includes.
- IP counts only what passed the interface. Ip.InHdrErrors includes IpExt.InCsumErrors; reverse path failures are only
  in TcpExt. IPv6 counts for itself, each frame it drops once, and by interface: only those of the ports are read.
- cpumap's queue has no readable counter: what XDP handed over and IP never got was lost there. The program hands over
  every frame, and rx_packets has them all, also those of queues that are no longer in use (whose
  rx_queue_N_xdp_redirect ethtool no longer shows). A few frames that are not IP (ARP) count as lost,
  and IPv6 where the config has none of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...config.model import DutConfig
from ...core.dut.telemetry import QDISC_DROPS, DropCount, Missing, Observation
from ...host.read_linux import LinuxTotals

_LINK = {
    "rx.dropped": "rx_dropped",
    "rx.missed_errors": "rx_missed_errors",
    "rx.errors": "rx_errors",
    "tx.dropped": "tx_dropped",
    "tx.errors": "tx_errors",
}
_EXTRA = {"ixgbe": r"rx_no_dma_resources", "igb": r"rx_queue_([0-9]{1,5})_drops"}
"""By driver: frames for which a queue had no descriptor. With several queues ixgbe counts them per queue (QPRDC); igb
counts them as fifo errors, which are in none of its other totals."""
_IP = (
    "Ip.InHdrErrors",
    "Ip.InAddrErrors",
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Ip.FragFails",
    "IpExt.InNoRoutes",
    "IpExt.InTruncatedPkts",
    "TcpExt.IPReversePathFilter",
    "Ip6.InHdrErrors",
    "Ip6.InTooBigErrors",
    "Ip6.InNoRoutes",
    "Ip6.InAddrErrors",
    "Ip6.InTruncatedPkts",
    "Ip6.InDiscards",
    "Ip6.OutDiscards",
)


def observed(totals: LinuxTotals, config: DutConfig, lab: Mapping[str, Any]) -> Observation:
    """One reading of the host, by the tester's ports. lab: how the DUT's lab is placed, empty without one.

    cpumap's thread and NAPI threads count as system time, not as soft interrupts.
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
        hidden = Missing("CPU time", "lab.steer is none: the router works on the sender's CPU")
        return replace(found, cpus=(), missing=(*found.missing, hidden))
    if steer == "rps":
        hidden = Missing("CPU time of receiving", "lab.steer is rps: receiving begins on the sender's CPU")
        return replace(found, missing=(*found.missing, hidden))
    return found


def _of_ports(found: LinuxTotals, ports: Mapping[int, str]) -> list[DropCount]:
    """ports: interface by the tester's port."""
    counts = []
    for port, name in ports.items():
        link = found.links.get(name, {})
        counts += [DropCount(word, link[key], port) for key, word in _LINK.items() if key in link]
        if name in found.qdiscs:
            counts.append(DropCount(QDISC_DROPS, found.qdiscs[name], port))
        extra = _EXTRA.get(found.drivers.get(name, ""))
        for counter, count in found.nics.get(name, {}).items():
            if extra and (match := re.fullmatch(extra, counter)):
                counts.append(DropCount(counter, count, port, int(match[1]) if match.groups() else None))
    return counts


def _of_ip(found: LinuxTotals) -> list[DropCount]:
    """Drops that IP counts, of the whole host or namespace."""
    return [DropCount(name, found.ip[name]) for name in _IP if name in found.ip]


def _of_cpumap(found: LinuxTotals, interfaces: Sequence[str]) -> list[DropCount]:
    """Losses in cpumap's queue, of all interfaces together: they share it, and IP has no counters by interface."""
    handed = [found.links[name]["rx.packets"] for name in interfaces if "rx.packets" in found.links.get(name, {})]
    if len(handed) < len(interfaces) or "Ip.InReceives" not in found.ip:
        return []
    lost = max(0, sum(handed) - found.ip["Ip.InReceives"] - found.ip.get("Ip6.InReceives", 0))
    return [DropCount("cpumap queue (redirected, not received)", lost)]
