"""Read the counters of a pfSense, or any FreeBSD, under load; and its machine's platform.

No frame may be in two of the drop counters. host.freebsd says which of a NIC's are read. Of netstat -s, ``packets not
forwardable`` are left out: frames that a full transmit queue refused are in them again. So are ``output packets dropped
due to no bufs, etc.`` where a NIC counts such frames (sys/netinet/ip_fastfwd.c). pf's are in none of netstat's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain, starmap
from typing import TypeVar

from ...config.model import Port
from ...core.dut.telemetry import CpuTime, Detail, DropCount, Gathering, Missing, Observation, PortCount, QueueCount
from ...core.errors import DutError
from ...host import freebsd as parse
from ...transport import TIMEOUT_S, Transport, run_checked
from ..settings import Wanted

T = TypeVar("T")
Counts = Mapping[str, Mapping[str, int]]
"""Counters of each interface, in the host's own words."""

_CPU = ("kern.cp_times", "kern.clockrate")
_REVISION = ("cpucontrol", "-m", "0x8b", "/dev/cpuctl0")
BOOT_MESSAGES = ("/var/run/dmesg.boot", "/var/log/dmesg.boot")
"""FreeBSD's (libexec/rc/rc.d/dmesg) and pfSense's, written once in each boot."""
_NO_ROUTE = "output packets discarded due to no route"
_NO_BUFS = "output packets dropped due to no bufs, etc."


def read_platform(transport: Transport) -> dict[str, str]:
    """Read microcode, BIOS and board, as far as the host reports them, by Linux's names.

    Nothing is written to the CPU, and no module is loaded.
    """
    platform: dict[str, str] = {}
    with suppress(DutError):
        platform = parse.parse_kenv(transport.run(("kenv",), TIMEOUT_S).stdout)
    with suppress(DutError):
        done = transport.run(_REVISION, TIMEOUT_S)
        if done.returncode and "No such file" in done.stderr:
            # without cpuctl(4) what the kernel said at boot holds: nothing can have updated the microcode since
            done = transport.run(("grep", "-sh", "CPU microcode: updated from", *BOOT_MESSAGES), TIMEOUT_S)
        if microcode := parse.parse_microcode(done.stdout):
            platform["microcode"] = microcode
    return platform


class FreebsdCounters:
    """Reader of a FreeBSD DUT's counters, whose names are looked up once."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._ports, self._transport = wanted.config.ports, transport
        self._protocols = ("ip", "ip6") if 6 in wanted.config.versions else ("ip",)
        self._filtered = wanted.config.pfsense.firewall != "off"
        self._names: tuple[str, ...] | None = None
        self._clocks: Mapping[str, str] = {}
        self._shifting = ""

    def read(self) -> Observation:
        """Read all counters; DutError where nothing at all could be read."""
        gathering = Gathering()
        missing = gathering.missing
        values: Mapping[str, str] = gathering.part("sysctl", self._sysctl, {})
        cpus: tuple[CpuTime, ...] = ()
        if values:
            cpus = gathering.part("cpus", partial(parse.parse_cpu_times, values), ())
        if cpus and not all(cpu.clock_hz for cpu in cpus):
            reason = "dev.cpu.0.freq does not exist: cpufreq(4) has no driver for them"
            missing.append(Missing("clock of the CPUs", reason))
        elif self._clocks:
            reason = f"read only once, without load: {self._shifting}(4) stops a CPU for 1 ms at each reading"
            missing.append(Missing("clock of the CPUs under load", reason))
        links: Counts = gathering.part("ports", partial(self._netstat, parse.parse_interface_counts, "-ibdnW"), {})
        netisr = gathering.part("netisr", partial(self._netstat, parse.parse_netisr_drops, "-Q"), None)
        ip: dict[str, int] = {}
        for name in self._protocols:
            reader = partial(self._netstat, parse.parse_protocol, "-s", "-p", name)
            counts: Mapping[str, int] = gathering.part(name, reader, {})
            ip |= {words if name == "ip" else f"{name}: {words}": count for words, count in counts.items()}
        refused: Mapping[str, int] = gathering.part("pf", self._firewall, {}) if self._filtered else {}
        interrupts: Mapping[str, int] = gathering.part("interrupts", self._interrupts, {})
        gathering.require_any()
        ports = [(port, links.get(port.interface, {}), parse.leaves_of(port.interface, values)) for port in self._ports]
        for port, link, leaves in ports:
            missing += _unknown(port, not link and bool(links), leaves if values else None)
        silent = [port.interface for port, _, leaves in ports if not _queues(leaves)]
        if silent and values:
            missing.append(Missing("packets per queue", f"the driver of {', '.join(silent)} does not count them"))
        if ip and _NO_ROUTE not in ip:
            missing.append(Missing("ip", f"netstat -s has no '{_NO_ROUTE}'"))
        drops = list(chain.from_iterable(starmap(_drops, ports)))
        drops += [] if netisr is None else [DropCount("netisr QDrops", netisr)]
        drops += [DropCount(f"pf {reason}", count) for reason, count in refused.items()]
        words = {"no route": _NO_ROUTE, "no route of IPv6": f"ip6: {_NO_ROUTE}"}
        if all(parse.counters_of(port.interface).silent_ring for port in self._ports):
            words["no bufs"] = _NO_BUFS
        return Observation(
            # The same sysctl has the packets of the queues; a CPU that idles may be behind, none is ahead.
            at_s=max((cpu.total_s for cpu in cpus), default=None),
            cpus=cpus,
            ports=tuple(starmap(_packets, ports)),
            queues=tuple(QueueCount(port.tester, *row) for port, _, leaves in ports for row in _queues(leaves).items()),
            drops=(*drops, *(DropCount(name, ip[told]) for name, told in words.items() if told in ip)),
            missing=tuple(missing),
            details=tuple(Detail(f"irq {name}", count) for name, count in interrupts.items()),
        )

    def _netstat(self, parser: Callable[[str], T], *words: str) -> T:
        return parser(run_checked(self._transport, ("netstat", *words)))

    def _firewall(self) -> Mapping[str, int]:
        try:
            return parse.parse_firewall_drops(run_checked(self._transport, ("pfctl", "-s", "info")))
        except DutError as error:
            if "/dev/pf: No such file" in str(error):  # a kernel without pf drops nothing by it
                return {}
            raise

    def _interrupts(self) -> Mapping[str, int]:
        interrupts = parse.parse_interrupts(run_checked(self._transport, ("vmstat", "-ia")))
        ours = tuple(f"{port.interface}:" for port in self._ports)
        return {name: count for _, name, count in interrupts if name.startswith(ours)}

    def _sysctl(self) -> Mapping[str, str]:
        if self._names is None:
            devices = filter(None, (parse.device(port.interface) for port in self._ports))
            trees = (f"dev.{driver}.{unit}" for driver, unit in devices)
            words = ("sysctl", "-Ni", *trees, "dev.cpu", "dev.hwpstate_intel", "dev.hwpstate_amd")
            listed = self._transport.run(words, TIMEOUT_S).stdout.split()
            names = [name for name in listed if parse.is_counter(name) or parse.FREQUENCY.fullmatch(name)]
            self._shifting = next((match[1] for match in map(parse.SHIFTING.fullmatch, listed) if match), "")
            if self._shifting:
                # clocks that must not be read under load are read now, and only once
                clocks = [name for name in names if parse.FREQUENCY.fullmatch(name)]
                self._clocks = parse.parse_sysctl(self._transport.run(("sysctl", "-ei", *clocks), TIMEOUT_S).stdout)
                names = [name for name in names if name not in clocks]
            self._names = tuple(names)
        values = parse.parse_sysctl(run_checked(self._transport, ("sysctl", "-ei", *_CPU, *self._names)))
        if not values:
            raise DutError("sysctl printed none of the values asked for", "is it FreeBSD?")
        return {**values, **self._clocks}


def _queues(leaves: Mapping[str, int]) -> dict[int, int]:
    matches = ((parse.PACKETS_OF_QUEUE.fullmatch(leaf), count) for leaf, count in leaves.items())
    return dict(sorted((int(match[1]), count) for match, count in matches if match))


def _packets(port: Port, link: Mapping[str, int], leaves: Mapping[str, int]) -> PortCount:
    """Count received and sent frames; None where the counter that is right for this driver was not read."""
    received, sent = link.get("Ipkts"), link.get("Opkts")
    if parse.counters_of(port.interface).by_queue:
        queues = _queues(leaves)
        received = sum(queues.values()) if queues else None
        by_queue = [count for leaf, count in leaves.items() if parse.SENT_BY_QUEUE.fullmatch(leaf)]
        sent = sum(by_queue) if by_queue else sent
    return PortCount(port.tester, received, sent)


def _unknown(port: Port, no_row: bool, leaves: Mapping[str, int] | None) -> Iterator[Missing]:
    """Yield what is unknown of one port, without what a tool that failed as a whole has reported already."""
    what, name, counters = f"port {port.tester}", port.interface, parse.counters_of(port.interface)
    if no_row:
        yield Missing(what, f"netstat -i has no row for {name}")
    if not counters.known:
        yield Missing(what, f"the source of {name}'s driver was not read: netstat -i may leave out frames it lost")
    silent = [] if leaves is None else [leaf for leaf in counters.leaves if leaf not in leaves]
    if silent:
        yield Missing(what, f"sysctl has no {', '.join(silent)} of {name}: frames lost there are in no counter")


def _drops(port: Port, link: Mapping[str, int], leaves: Mapping[str, int]) -> Iterator[DropCount]:
    counters = parse.counters_of(port.interface)
    for leaf in counters.leaves:
        if leaf in leaves:
            name = leaf.rpartition(".")[2]
            yield DropCount(name if name.startswith("rx") else f"rx {name}", leaves[leaf], port.tester)
    for leaf, count in leaves.items():
        if match := parse.LOST_BY_QUEUE.fullmatch(leaf):
            yield DropCount("rx nobuffer", count, port.tester, int(match[1]))
    rings = [count for leaf, count in leaves.items() if parse.DROPS_OF_RING.fullmatch(leaf)]
    for name in (name for name in counters.columns if name in link):
        yield DropCount(name, link[name], port.tester)
    if "Drop" in link or rings:
        # What iflib's ring refuses is in Drop in newer releases, only in the ring's counter in older ones (12, 13).
        most = sum if counters.own_drops else max
        yield DropCount("Drop", most((link.get("Drop", 0), sum(rings))), port.tester)
