"""Counters of a pfSense, or any FreeBSD, under load, and the drops that it counts; and its machine's platform.

No frame may be in two of the drop counters. host.freebsd says which of a NIC's are read. Of netstat -s, ``output
packets dropped due to no bufs`` and ``packets not forwardable`` are left out: frames that a full transmit queue refused
are in them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import starmap

from ...config.model import Port
from ...core.dut.telemetry import CpuTime, Detail, DropCount, Gathering, Missing, Observation, PortCount, QueueCount
from ...core.errors import DutError
from ...host import freebsd as parse
from ...transport import TIMEOUT_S, Transport, run_checked
from ..model import Wanted

Counts = Mapping[str, Mapping[str, int]]
"""Counters of each interface, in the host's own words."""

_CPU = ("kern.cp_times", "kern.clockrate")
_REVISION = ("cpucontrol", "-m", "0x8b", "/dev/cpuctl0")
BOOT_MESSAGES = ("/var/run/dmesg.boot", "/var/log/dmesg.boot")
"""FreeBSD's (libexec/rc/rc.d/dmesg) and pfSense's, written once in each boot."""
_NO_ROUTE = "output packets discarded due to no route"


def read_platform(transport: Transport) -> dict[str, str]:
    """Microcode, BIOS and board, as far as the host tells, by the names that Linux has for them."""
    found: dict[str, str] = {}
    with suppress(DutError):
        found = parse.parse_kenv(transport.run(("kenv",), TIMEOUT_S).stdout)
    with suppress(DutError):
        if microcode := _microcode(transport):
            found["microcode"] = microcode
    return found


def _microcode(transport: Transport) -> str | None:
    """The CPU's answer where cpuctl(4) is loaded; else what the kernel said at boot: nothing can have updated it since.

    Nothing is written to the CPU, and no module is loaded.
    """
    done = transport.run(_REVISION, TIMEOUT_S)
    if done.returncode and "No such file" in done.stderr:
        done = transport.run(("grep", "-sh", "CPU microcode: updated from", *BOOT_MESSAGES), TIMEOUT_S)
    return parse.parse_microcode(done.stdout)


class FreebsdCounters:
    """Reads the counters of a FreeBSD DUT, any number of times; their names only once."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._ports, self._transport = wanted.config.ports, transport
        self._protocols = ("ip", "ip6") if 6 in wanted.config.versions else ("ip",)
        self._names: tuple[str, ...] | None = None
        self._clocks: Mapping[str, str] = {}

    def read(self) -> Observation:
        """DutError where nothing at all could be read."""
        gathering = Gathering()
        missing = gathering.missing
        values: Mapping[str, str] = gathering.part("sysctl", self._sysctl, {})
        # drivers on iflib handle packets in task threads, whose time counts as ``sys`` and not as interrupts
        booked = not any(name.endswith(parse.IFLIB) for name in values)
        cpus: tuple[CpuTime, ...] = ()
        if values:
            cpus = gathering.part("cpus", lambda: parse.parse_cpu_times(values, booked_as_interrupt=booked), ())
        if cpus and not all(cpu.clock_hz for cpu in cpus):
            reason = "dev.cpu.0.freq does not exist: cpufreq(4) has no driver for them"
            missing.append(Missing("clock of the CPUs", reason))
        elif self._clocks:
            reason = "read only once, without load: hwpstate_intel(4) stops a CPU for 1 ms at each reading"
            missing.append(Missing("clock of the CPUs under load", reason))
        links: Counts = gathering.part("ports", lambda: parse.parse_interface_counts(self._netstat("-ibdnW")), {})
        netisr = gathering.part("netisr", lambda: parse.parse_netisr_drops(self._netstat("-Q")), None)
        ip: dict[str, int] = {}
        for name in self._protocols:
            told: Mapping[str, int] = gathering.part(name, partial(self._protocol, name), {})
            ip |= {words if name == "ip" else f"{name}: {words}": count for words, count in told.items()}
        interrupts: Mapping[str, int] = gathering.part("interrupts", self._interrupts, {})
        gathering.require_any()
        found = [(port, links.get(port.interface, {}), parse.leaves_of(port.interface, values)) for port in self._ports]
        for port, link, leaves in found:
            missing += _missing(port, not link and bool(links), leaves if values else None)
        silent = [port.interface for port, _, leaves in found if not _queues(leaves)]
        if silent and values:
            missing.append(Missing("packets per queue", f"the driver of {', '.join(silent)} does not count them"))
        if ip and _NO_ROUTE not in ip:
            missing.append(Missing("ip", f"netstat -s has no '{_NO_ROUTE}'"))
        drops = [one for parts in found for one in _drops(*parts)]
        drops += [] if netisr is None else [DropCount("netisr QDrops", netisr)]
        unrouted = (("no route", _NO_ROUTE), ("no route of IPv6", f"ip6: {_NO_ROUTE}"))
        return Observation(
            # The same sysctl has the packets of the queues; a CPU that idles may be behind, none is ahead.
            at_s=max((cpu.total_s for cpu in cpus), default=None),
            cpus=cpus,
            ports=tuple(starmap(_packets, found)),
            queues=tuple(QueueCount(port.tester, *one) for port, _, leaves in found for one in _queues(leaves).items()),
            drops=(*drops, *(DropCount(name, ip[words]) for name, words in unrouted if words in ip)),
            missing=tuple(missing),
            details=tuple(Detail(f"irq {name}", count) for name, count in interrupts.items()),
        )

    def _protocol(self, name: str) -> Mapping[str, int]:
        return parse.parse_protocol(self._netstat("-s", "-p", name))

    def _netstat(self, *words: str) -> str:
        return run_checked(self._transport, ("netstat", *words))

    def _interrupts(self) -> Mapping[str, int]:
        found = parse.parse_interrupts(run_checked(self._transport, ("vmstat", "-ia")))
        mine = tuple(f"{port.interface}:" for port in self._ports)
        return {name: count for _, name, count in found if name.startswith(mine)}

    def _sysctl(self) -> Mapping[str, str]:
        if self._names is None:
            self._names = self._find_names()
        values = parse.parse_sysctl(run_checked(self._transport, ("sysctl", "-ei", *_CPU, *self._names)))
        if not values:
            raise DutError("sysctl printed none of the values asked for", "is it a FreeBSD?")
        return {**values, **self._clocks}

    def _find_names(self) -> tuple[str, ...]:
        """Names of the counters; clocks that must not be read under load are read here, and not named."""
        devices = [parse.device(port.interface) for port in self._ports]
        trees = [f"dev.{one[0]}.{one[1]}" for one in devices if one]
        words = ("sysctl", "-Ni", *trees, "dev.cpu", "dev.hwpstate_intel")
        listed = self._transport.run(words, TIMEOUT_S).stdout.split()
        found = [name for name in listed if parse.is_counter(name) or parse.FREQUENCY.fullmatch(name)]
        if any(name.startswith(parse.SHIFTING) for name in listed):
            clocks = [name for name in found if parse.FREQUENCY.fullmatch(name)]
            self._clocks = parse.parse_sysctl(self._transport.run(("sysctl", "-ei", *clocks), TIMEOUT_S).stdout)
            found = [name for name in found if name not in clocks]
        return tuple(found)


def _queues(leaves: Mapping[str, int]) -> dict[int, int]:
    matches = ((parse.PACKETS_OF_QUEUE.fullmatch(leaf), count) for leaf, count in leaves.items())
    return dict(sorted((int(match[1]), count) for match, count in matches if match))


def _packets(port: Port, link: Mapping[str, int], leaves: Mapping[str, int]) -> PortCount:
    """Received and sent frames; None where the counter that is right for this driver was not read."""
    received, sent = link.get("Ipkts"), link.get("Opkts")
    if parse.counters_of(port.interface).by_queue:
        queues = _queues(leaves)
        received = sum(queues.values()) if queues else None
        by_queue = [count for leaf, count in leaves.items() if parse.SENT_BY_QUEUE.fullmatch(leaf)]
        sent = sum(by_queue) if by_queue else sent
    return PortCount(port.tester, received, sent)


def _missing(port: Port, no_row: bool, leaves: Mapping[str, int] | None) -> Iterator[Missing]:
    """Yield what is not known of one port; nothing that a reader which failed as a whole would have reported."""
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
    yield from (DropCount(name, link[name], port.tester) for name in counters.columns if name in link)
    rings = [count for leaf, count in leaves.items() if parse.DROPS_OF_RING.fullmatch(leaf)]
    if "Drop" in link or rings:
        # What iflib's ring refuses is in Drop in newer releases, only in the ring's counter in older ones (12, 13).
        yield DropCount("Drop", max(link.get("Drop", 0), sum(rings)), port.tester)
