"""What a pfSense, or any FreeBSD, counts under load, and the drops that it counts.

No frame may be in two of the drop counters. These are left out, since others include them:
``mac_stats.rx_missed_packets`` of the NIC (it is netstat's Idrop with ix, part of Ierrs with em and igb),
``rx_discarded`` of a queue (part of Ierrs), and of netstat -s ``output packets dropped due to no bufs`` and ``packets
not forwardable`` (frames that a full transmit queue refused are in them again).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...config.model import DutConfig
from ...core.dut.telemetry import DropCount, Missing, Observation
from ...host.read_freebsd import FreebsdTotals

_NO_ROUTE = "output packets discarded due to no route"


def observed(totals: FreebsdTotals, config: DutConfig) -> Observation:
    """One reading of the host, by the tester's ports."""
    found = totals.observation(config, _drops(totals, config))
    missing = [
        Missing(f"port {port.tester}", f"netstat -i has no row for {port.interface}")
        for port in config.ports
        if totals.links and port.interface not in totals.links
    ]
    silent = [port.interface for port in config.ports if not totals.queues.get(port.interface)]
    if silent and "sysctl" not in {one.what for one in totals.missing}:
        missing.append(Missing("packets per queue", f"the driver of {', '.join(silent)} does not count them"))
    if totals.ip and _NO_ROUTE not in totals.ip:
        missing.append(Missing("ip", f"netstat -s has no '{_NO_ROUTE}'"))
    return replace(found, missing=(*found.missing, *missing))


def _drops(totals: FreebsdTotals, config: DutConfig) -> Iterator[DropCount]:
    for port in config.ports:
        counted, rings = totals.links.get(port.interface, {}), totals.ring_drops.get(port.interface, ())
        for name in ("Ierrs", "Idrop", "Oerrs"):
            if name in counted:
                yield DropCount(name, counted[name], port.tester)
        if "Drop" in counted or rings:
            # What iflib's ring refuses is in Drop in newer releases, only in the ring's counter in older ones (12, 13).
            yield DropCount("Drop", max(counted.get("Drop", 0), sum(rings)), port.tester)
    if totals.netisr_drops is not None:
        yield DropCount("netisr QDrops", totals.netisr_drops)
    if _NO_ROUTE in totals.ip:
        yield DropCount("no route", totals.ip[_NO_ROUTE])
    if (six := f"ip6: {_NO_ROUTE}") in totals.ip:
        yield DropCount("no route of IPv6", totals.ip[six])
