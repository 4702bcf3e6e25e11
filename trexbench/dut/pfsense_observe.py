"""What a pfSense, or any FreeBSD, counts: CPUs, ports, queues, and where it admits to have lost frames.

No frame may be in two of the drop counts, so these are left out, which say again what another one has said:
``mac_stats.rx_missed_packets`` of the NIC (it is netstat's Idrop with ix, part of Ierrs with em and igb),
``rx_discarded`` of a queue (part of Ierrs), and of netstat -s ``output packets dropped due to no bufs`` and ``packets
not forwardable`` (frames that a full transmit queue refused are in them again).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ..core.errors import DutError
from ..core.telemetry import CpuTime, Detail, DropCount, Missing, Observation, PortCount, QueueCount
from ..transport import Transport
from ..transport.words import shown
from . import parse_freebsd as parse
from . import parse_freebsd_counters as counters
from .model import Wanted

T = TypeVar("T")
TIMEOUT_S = 10.0
_CPU = ("kern.cp_times", "kern.clockrate")
_NO_ROUTE = "output packets discarded due to no route"


class Observer:
    """Reads one DUT's counters. Names of the drivers' counters are asked for once."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._config = wanted.config
        self._transport = transport
        self._names: tuple[str, ...] | None = None

    def observe(self) -> Observation:
        missing: list[Missing] = []

        def read(what: str, reader: Callable[[], T], otherwise: T) -> T:
            try:
                return reader()
            except DutError as error:
                missing.append(Missing(what, str(error)))
                return otherwise

        values: Mapping[str, str] = read("sysctl", self._sysctl, {})
        cpus: tuple[CpuTime, ...] = read("cpus", lambda: self._cpus(values), ()) if values else ()
        if cpus and not all(cpu.clock_hz for cpu in cpus):
            missing.append(
                Missing("clock of the CPUs", "dev.cpu.0.freq is not there: cpufreq(4) has no driver for them")
            )
        counts: Mapping[str, Mapping[str, int]] = read(
            "ports", lambda: counters.parse_interface_counts(self._say("netstat", "-ibdnW")), {}
        )
        queues = self._queues(values)
        absent = [p.interface for p in self._config.ports if p.tester not in {queue.port for queue in queues}]
        if values and absent:
            missing.append(Missing("packets per queue", f"the driver of {', '.join(absent)} does not count them"))
        drops = self._port_drops(counts, values)
        none: tuple[DropCount, ...] = ()
        drops += read("netisr", self._netisr, none) + read("ip", self._ip, none)
        return Observation(
            cpus=cpus,
            ports=self._ports(counts, missing),
            queues=queues,
            drops=drops,
            details=read("interrupts", self._interrupts, ()),
            missing=tuple(missing),
        )

    def _say(self, *argv: str) -> str:
        done = self._transport.run(argv, TIMEOUT_S)
        if done.returncode:
            raise DutError(f"{shown(argv)} failed on {self._transport.place}", done.complaint)
        return done.stdout

    def _interrupts(self) -> tuple[Detail, ...]:
        """Of the test's interfaces."""
        names = tuple(f"{port.interface}:" for port in self._config.ports)
        totals = counters.parse_interrupt_totals(self._say("vmstat", "-ia"))
        return tuple(Detail(f"irq {name}", count) for name, count in totals.items() if name.startswith(names))

    def _sysctl(self) -> Mapping[str, str]:
        if self._names is None:
            devices = [counters.device(port.interface) for port in self._config.ports]
            trees = [f"dev.{one[0]}.{one[1]}" for one in devices if one]
            listed = self._transport.run(("sysctl", "-Ni", *trees, "dev.cpu"), TIMEOUT_S).stdout.split()
            wanted = (counters.PACKETS_OF_QUEUE, counters.DROPS_OF_RING, counters.FREQUENCY, counters.IFLIB)
            self._names = tuple(name for name in listed if any(form.fullmatch(name) for form in wanted))
        values = parse.parse_sysctl(self._say("sysctl", "-ei", *_CPU, *self._names))
        if not values:
            raise DutError("sysctl told nothing of what it was asked for", "is it a FreeBSD?")
        return values

    def _cpus(self, values: Mapping[str, str]) -> tuple[CpuTime, ...]:
        """iflib's drivers handle packets in task threads, which FreeBSD books as ``sys`` and not as interrupts."""
        iflib = any(counters.IFLIB.fullmatch(name) for name in values)
        return counters.parse_cpu_times(values, booked_as_interrupt=not iflib)

    def _ports(self, counts: Mapping[str, Mapping[str, int]], missing: list[Missing]) -> tuple[PortCount, ...]:
        found = []
        for port in self._config.ports:
            one = counts.get(port.interface)
            if counts and one is None:
                missing.append(Missing(f"port {port.tester}", f"netstat -i has no row for {port.interface}"))
            if one is not None:
                found.append(PortCount(port.tester, one.get("Ipkts"), one.get("Opkts")))
        return tuple(found)

    def _queues(self, values: Mapping[str, str]) -> tuple[QueueCount, ...]:
        found = []
        for name, value in values.items():
            match, count = counters.PACKETS_OF_QUEUE.fullmatch(name), parse.number(value)
            for port in self._config.ports:
                if match and count is not None and port.interface == f"{match[1]}{match[2]}":
                    found.append(QueueCount(port.tester, int(match[3]), count))
        return tuple(sorted(found, key=lambda one: (one.port, one.queue)))

    def _port_drops(self, counts: Mapping[str, Mapping[str, int]], values: Mapping[str, str]) -> tuple[DropCount, ...]:
        found = []
        for port in self._config.ports:
            one = counts.get(port.interface, {})
            found += [DropCount(name, one[name], port.tester) for name in ("Ierrs", "Idrop", "Oerrs") if name in one]
            # Newer releases count what the ring of iflib refuses in Drop, older ones (12, 13) in the ring alone.
            rings = [
                parse.number(value) or 0
                for name, value in values.items()
                if (match := counters.DROPS_OF_RING.fullmatch(name)) and f"{match[1]}{match[2]}" == port.interface
            ]
            if "Drop" in one or rings:
                found.append(DropCount("Drop", max(one.get("Drop", 0), sum(rings)), port.tester))
        return tuple(found)

    def _netisr(self) -> tuple[DropCount, ...]:
        return (DropCount("netisr QDrops", counters.parse_netisr_drops(self._say("netstat", "-Q"))),)

    def _ip(self) -> tuple[DropCount, ...]:
        found = counters.parse_protocol(self._say("netstat", "-s", "-p", "ip")).get(_NO_ROUTE)
        if found is None:
            raise DutError(f"netstat -s does not tell '{_NO_ROUTE}'")
        return (DropCount("no route", found),)
