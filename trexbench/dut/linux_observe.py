"""What a Linux DUT counts about itself, in as few commands as it takes: it is asked while it is loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ..core.errors import DutError
from ..core.telemetry import CpuTime, Detail, DropCount, Missing, Observation, PortCount, QueueCount
from ..transport import Transport
from ..transport.words import shown
from . import linux_drops as drops
from . import parse_linux_counters as parse
from .linux_tuning import lab_of
from .model import TIMEOUT_S, Wanted
from .parse_linux_nic import parse_cpus, parse_driver

T = TypeVar("T")
Counts = Mapping[str, Mapping[str, int]]
Lines = Mapping[str, Sequence[str]]

_FILES = (
    "/proc/uptime",
    "/proc/stat",
    "/proc/net/dev",
    "/proc/net/snmp",
    "/proc/net/netstat",
    "/proc/net/softnet_stat",
    "/proc/softirqs",
    "/proc/interrupts",
    "/proc/cpuinfo",
)
"""In the order of reading: the clock, CPU times and packets next to each other, for they are divided by one another."""
_ONLINE = "/sys/devices/system/cpu/online"
_IRQS = ("/sys/class/net/{}/device/msi_irqs", "/sys/class/net/{}/device/../msi_irqs")
_CLOCK = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"


@dataclass
class _Look:
    """What is being gathered, and what could not be."""

    missing: list[Missing] = field(default_factory=list)

    def part(self, what: str, reader: Callable[[], T], otherwise: T) -> T:
        """One reader's part; where it fails the others go on."""
        try:
            return reader()
        except DutError as error:
            self.missing.append(Missing(what, str(error)))
            return otherwise


class Observer:
    """Reads the counters of the box behind a transport."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted = wanted
        self._transport = transport
        self._ports = {port.tester: port.interface for port in wanted.config.ports}
        self._lab = lab_of(wanted)
        self._drivers: dict[str, str] = {}
        self._cpus: Sequence[int] | None = None
        self._irqs: frozenset[int] = frozenset()
        self.router: tuple[int, ...] = wanted.config.linux.cpus or tuple(self._lab.get("router_cpus") or ())
        """CPUs that forward; none: nobody says, so all may."""

    def look(self) -> Observation:
        """NICs first and IP after them: what lies between two readings then never passes for a loss."""
        look = _Look()
        nics: dict[str, Mapping[str, int]] = {}
        for name in self._ports.values():
            nics[name] = look.part(f"counters of {name}", partial(self._nic, name), {})
        links: Counts = look.part("packets by interface", self._links, {})
        qdiscs: Mapping[str, int] = look.part("drops of queueing disciplines", self._qdiscs, {})
        files: Lines = look.part("/proc", self._files, {})
        ip: Mapping[str, int] = look.part("IP's counters", partial(self._ip, files), {})
        found = drops.Counted(links, nics, qdiscs, ip, dict(self._drivers))
        return Observation(
            at_s=parse.parse_uptime(files.get("/proc/uptime", ())),
            cpus=look.part("CPU time", partial(self._times, files, look), ()),
            ports=tuple(self._port_counts(files, links)),
            queues=tuple(self._queue_counts(nics)),
            drops=tuple(self._drops(found)),
            missing=tuple(look.missing),
            details=tuple(self._details(files)),
        )

    def _links(self) -> Counts:
        """Twice -s, for missed_errors."""
        return parse.parse_link_counters(self._must(("ip", "-s", "-s", "-json", "link", "show")))

    def _nic(self, name: str) -> Mapping[str, int]:
        if name not in self._drivers:
            self._drivers[name] = parse_driver(self._must(("ethtool", "-i", name))).get("driver", "")
        return parse.parse_nic_counters(self._must(("ethtool", "-S", name)))

    def _qdiscs(self) -> Mapping[str, int]:
        return parse.parse_qdisc_drops(self._must(("tc", "-s", "-json", "qdisc", "show")))

    def _files(self) -> Lines:
        """All files at once; grep's exit code says only whether some were missing, which shows in what it printed."""
        if self._cpus is None:
            self._cpus, self._irqs = self._lasting()
        paths = [*_FILES, *(_CLOCK.format(cpu) for cpu in self._cpus)]
        return parse.parse_lines(self._transport.run(("grep", "-sH", "", *paths), TIMEOUT_S).stdout)

    def _lasting(self) -> tuple[Sequence[int], frozenset[int]]:
        """What is asked once: the CPUs whose clock is read, and the numbers of the test interfaces' interrupts."""
        folders = [path.format(name) for name in self._ports.values() for path in _IRQS]
        found = parse.parse_lines(self._transport.run(("grep", "-rsH", "", _ONLINE, *folders), TIMEOUT_S).stdout)
        online = parse_cpus("".join(found.get(_ONLINE, ())).strip())
        numbers = (path.rpartition("/")[2] for path in found if "/msi_irqs/" in path)
        irqs = frozenset(int(number) for number in numbers if re.fullmatch("[0-9]{1,9}", number))
        return self._wanted.config.linux.cpus or online or (), irqs

    def _ip(self, files: Lines) -> Mapping[str, int]:
        found = parse.parse_snmp(files.get("/proc/net/snmp", ())) | parse.parse_snmp(files.get("/proc/net/netstat", ()))
        if "Ip.InReceives" not in found:
            raise DutError("/proc/net/snmp does not tell Ip's InReceives")
        return found

    def _times(self, files: Lines, look: _Look) -> tuple[CpuTime, ...]:
        """Of the CPUs that forward.

        cpumap's thread and NAPI threads are booked as system time, not as soft interrupts.
        """
        steer, threaded = self._lab.get("steer"), bool(self._lab.get("threaded"))
        if steer == "none" and not threaded:
            raise DutError("lab.steer is none: the router works in the sender's time")
        if steer == "rps" and not threaded:
            look.missing.append(Missing("CPU time of receiving", "lab.steer is rps: its first half runs on the sender"))
        packets_known = steer != "cpumap" and not threaded
        times = parse.parse_stat(files.get("/proc/stat", ()), parse.parse_clocks(files), packets_known)
        return tuple(time for time in times if self._forwards(time.cpu))

    def _forwards(self, cpu: int) -> bool:
        return not self.router or cpu in self.router

    def _port_counts(self, files: Lines, links: Counts) -> list[PortCount]:
        """As they were when CPU times were read; of a moment before where /proc/net/dev does not tell them."""
        counts = parse.parse_net_dev(files.get("/proc/net/dev", ()))
        found = []
        for port, name in self._ports.items():
            if name in counts:
                found.append(PortCount(port, *counts[name]))
            elif name in links:
                found.append(PortCount(port, links[name].get("rx.packets"), links[name].get("tx.packets")))
        return found

    def _details(self, files: Lines) -> Iterator[Detail]:
        """Of the CPUs that forward, and of the test interfaces' interrupts."""
        raised = parse.parse_softirqs(files.get("/proc/softirqs", ()))
        for kind in ("NET_RX", "NET_TX"):
            for cpu, count in raised.get(kind, {}).items():
                if self._forwards(cpu):
                    yield Detail(f"softirqs {kind} cpu{cpu}", count)
        for cpu, counts in parse.parse_softnet(files.get("/proc/net/softnet_stat", ())).items():
            for word, count in counts.items():
                if self._forwards(cpu):
                    yield Detail(f"softnet_stat {word} cpu{cpu}", count)
        came: Counter[str] = Counter()
        for number, (name, count) in parse.parse_interrupts(files.get("/proc/interrupts", ())).items():
            if number in self._irqs or any(_belongs(name, interface) for interface in self._ports.values()):
                came[name] += count
        yield from (Detail(f"interrupts {name}", count) for name, count in came.items())

    def _queue_counts(self, nics: Counts) -> list[QueueCount]:
        return [
            QueueCount(port, queue, packets)
            for port, name in self._ports.items()
            for queue, packets in parse.queue_counts(nics[name]).items()
        ]

    def _drops(self, found: drops.Counted) -> list[DropCount]:
        counts = drops.of_ports(found, self._ports) + drops.of_ip(found)
        if self._lab.get("steer") == "cpumap":
            counts += drops.of_cpumap(found, tuple(self._ports.values()))
        return counts

    def _must(self, argv: Sequence[str]) -> str:
        done = self._transport.run(argv, TIMEOUT_S)
        if done.returncode:
            raise DutError(f"{shown(argv)} failed on {self._transport.place}", done.complaint)
        return done.stdout


def _belongs(interrupt: str, interface: str) -> bool:
    """Whether it is named after the interface: eth1-rx-0 and i40e-eth1-TxRx-0 are eth1's, eth10-rx-0 is not."""
    return re.search(rf"(?<![\w.]){re.escape(interface)}(?![\w.])", interrupt) is not None
