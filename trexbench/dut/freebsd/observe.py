"""Counters of a pfSense, or any FreeBSD, under load, and the drops that it counts.

No frame may be in two of the drop counters. host.freebsd_nics says which of a NIC's are read. Of netstat -s, ``output
packets dropped due to no bufs`` and ``packets not forwardable`` are left out: frames that a full transmit queue refused
are in them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...config.model import DutConfig, Port
from ...core.dut.telemetry import DropCount, Missing, Observation
from ...host.freebsd_nics import counters_of
from ...host.read_freebsd import FreebsdTotals

_NO_ROUTE = "output packets discarded due to no route"


def observed(totals: FreebsdTotals, config: DutConfig) -> Observation:
    """One reading of the host, by the tester's ports."""
    found = totals.observation(config, _drops(totals, config))
    missing = [one for port in config.ports for one in _missing(totals, port)]
    silent = [port.interface for port in config.ports if not totals.queues.get(port.interface)]
    if silent and "sysctl" not in {one.what for one in totals.missing}:
        missing.append(Missing("packets per queue", f"the driver of {', '.join(silent)} does not count them"))
    if totals.ip and _NO_ROUTE not in totals.ip:
        missing.append(Missing("ip", f"netstat -s has no '{_NO_ROUTE}'"))
    return replace(found, missing=(*found.missing, *missing))


def _missing(totals: FreebsdTotals, port: Port) -> Iterator[Missing]:
    """Yield what is not known of one port; nothing that a reader which failed as a whole would have reported."""
    what, name, counters = f"port {port.tester}", port.interface, counters_of(port.interface)
    if totals.links and name not in totals.links:
        yield Missing(what, f"netstat -i has no row for {name}")
    if not counters.known:
        yield Missing(what, f"the source of {name}'s driver was not read: netstat -i may leave out frames it lost")
    if "sysctl" not in {one.what for one in totals.missing}:
        silent = [leaf for leaf in counters.leaves if leaf not in totals.nic_drops.get(name, {})]
        if silent:
            yield Missing(what, f"sysctl has no {', '.join(silent)} of {name}: frames lost there are in no counter")


def _drops(totals: FreebsdTotals, config: DutConfig) -> Iterator[DropCount]:
    for port in config.ports:
        counted, rings = totals.links.get(port.interface, {}), totals.ring_drops.get(port.interface, ())
        counters = counters_of(port.interface)
        for leaf, count in totals.nic_drops.get(port.interface, {}).items():
            name = leaf.rpartition(".")[2]
            yield DropCount(name if name.startswith("rx") else f"rx {name}", count, port.tester)
        for name in counters.columns:
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
