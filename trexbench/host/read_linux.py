"""The counters of a Linux host, with few commands, since it is under load meanwhile; and perf's cycles."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..core.dut.telemetry import CpuTime, Detail, Missing
from ..core.errors import DutError
from ..transport import TIMEOUT_S, Transport, run_checked
from . import linux as parse
from .files import parse_cpus, parse_files, parse_lines
from .totals import Counts, Gathering, HostTotals

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
"""In the order of reading: clock, CPU times and packets side by side, since they are divided by one another."""
_IPV6 = "/proc/net/dev_snmp6/{}"
"""By interface: the host's own total holds what its other interfaces said for themselves, and dropped."""
_ONLINE = "/sys/devices/system/cpu/online"
_IRQS = ("/sys/class/net/{}/device/msi_irqs", "/sys/class/net/{}/device/../msi_irqs")
PERF_SPAN_S = 2.0
_CLOCK = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"


@dataclass(frozen=True)
class LinuxTotals(HostTotals):
    """By interface: links, of ``ip -s link``; nics, of ``ethtool -S``; qdiscs, their drops; drivers."""

    nics: Counts
    qdiscs: Mapping[str, int]
    drivers: Mapping[str, str]


def read_platform(transport: Transport) -> dict[str, str]:
    """Microcode, BIOS and board, as far as the host tells; they are no setting of it, so no part of a DUT's facts."""
    try:  # grep's exit code only tells that some file is missing
        done = transport.run(("grep", "-sH", "", *parse.PLATFORM_FILES.values()), TIMEOUT_S)
    except DutError:
        return {}
    return parse.platform_of(parse_files(done.stdout))


class LinuxHost:
    """Reads one host's counters, any number of times.

    clocks: CPUs whose clock is read; none: all that are online. cpus: CPUs that are reported; none: all. ipv6:
    interfaces whose counters of IPv6 are read, and added up.
    """

    def __init__(
        self,
        transport: Transport,
        interfaces: Sequence[str],
        clocks: Sequence[int] = (),
        cpus: Sequence[int] = (),
        ipv6: Sequence[str] = (),
    ) -> None:
        self._ipv6 = tuple(_IPV6.format(name) for name in ipv6)
        self._transport = transport
        self._interfaces = interfaces
        self._clocks_of = clocks
        self._cpus = cpus
        self._drivers: dict[str, str] = {}
        self._clocks: list[str] | None = None
        self._irqs: frozenset[int] = frozenset()

    def read(self) -> LinuxTotals:
        """NICs first and IP after them: packets that arrive between the two readings then never count as lost.

        DutError where nothing at all could be read.
        """
        gathering = Gathering()
        nics: dict[str, Mapping[str, int]] = {}
        for name in self._interfaces:
            nics[name] = gathering.part(f"counters of {name}", partial(self._nic, name), {})
        links: Counts = gathering.part("packets by interface", self._links, {})
        qdiscs: Mapping[str, int] = gathering.part("drops of queueing disciplines", self._qdiscs, {})
        files: Lines = gathering.part("/proc", self._files, {})
        ip: Mapping[str, int] = gathering.part("IP's counters", partial(self._ip, files), {})
        cpus: tuple[CpuTime, ...] = gathering.part("CPU time", partial(self._times, files), ())
        gathering.require_any()
        return LinuxTotals(
            at_s=parse.parse_uptime(files.get("/proc/uptime", ())),
            cpus=cpus,
            packets=self._packets(files, links),
            queues={name: parse.queue_counts(nic) for name, nic in nics.items()},
            links=links,
            ip=ip,
            details=tuple(self._details(files)),
            missing=tuple(gathering.missing),
            nics=nics,
            qdiscs=qdiscs,
            drivers=dict(self._drivers),
        )

    def _links(self) -> Counts:
        """Twice -s, for missed_errors."""
        return parse.parse_link_counters(run_checked(self._transport, ("ip", "-s", "-s", "-json", "link", "show")))

    def _nic(self, name: str) -> Mapping[str, int]:
        if name not in self._drivers:
            told = parse.parse_driver(run_checked(self._transport, ("ethtool", "-i", name)))
            self._drivers[name] = told.get("driver", "")
        return parse.parse_nic_counters(run_checked(self._transport, ("ethtool", "-S", name)))

    def _qdiscs(self) -> Mapping[str, int]:
        return parse.parse_qdisc_drops(run_checked(self._transport, ("tc", "-s", "-json", "qdisc", "show")))

    def _files(self) -> Lines:
        """All files at once; grep's exit code says only whether some were missing, which shows in what it printed."""
        if self._clocks is None:
            self._clocks, self._irqs = self._read_once()
        return parse_lines(
            self._transport.run(("grep", "-sH", "", *_FILES, *self._ipv6, *self._clocks), TIMEOUT_S).stdout
        )

    def _read_once(self) -> tuple[list[str], frozenset[int]]:
        """Read what does not change: the files of the CPUs' clocks, and the numbers of the interfaces' interrupts."""
        folders = [path.format(name) for name in self._interfaces for path in _IRQS]
        found = parse_lines(self._transport.run(("grep", "-rsH", "", _ONLINE, *folders), TIMEOUT_S).stdout)
        online = parse_cpus("".join(found.get(_ONLINE, ())).strip())
        numbers = (path.rpartition("/")[2] for path in found if "/msi_irqs/" in path)
        irqs = frozenset(int(number) for number in numbers if re.fullmatch("[0-9]{1,9}", number))
        return [_CLOCK.format(cpu) for cpu in self._clocks_of or online or ()], irqs

    def _times(self, files: Lines) -> tuple[CpuTime, ...]:
        times = parse.parse_stat(files.get("/proc/stat", ()), parse.parse_clocks(files))
        return tuple(time for time in times if self._reports(time.cpu))

    def _ip(self, files: Lines) -> Mapping[str, int]:
        found = parse.parse_snmp(files.get("/proc/net/snmp", ())) | parse.parse_snmp(files.get("/proc/net/netstat", ()))
        if "Ip.InReceives" not in found:
            raise DutError("/proc/net/snmp has no InReceives of Ip")
        of_ipv6: Counter[str] = Counter()
        for path in self._ipv6:
            of_ipv6.update(parse.parse_snmp6(files.get(path, ())))
        return {**found, **of_ipv6}

    def _reports(self, cpu: int) -> bool:
        return not self._cpus or cpu in self._cpus

    def _packets(self, files: Lines, links: Counts) -> dict[str, tuple[int | None, int | None]]:
        """From /proc/net/dev, read together with CPU times; else from ``ip link``, read a moment before."""
        before = {name: (links[name].get("rx.packets"), links[name].get("tx.packets")) for name in links}
        found = {**before, **parse.parse_net_dev(files.get("/proc/net/dev", ()))}
        return {name: found[name] for name in self._interfaces if name in found}

    def _details(self, files: Lines) -> Iterator[Detail]:
        """Soft interrupts of the CPUs, and interrupts of the interfaces."""
        raised = parse.parse_softirqs(files.get("/proc/softirqs", ()))
        for kind in ("NET_RX", "NET_TX"):
            for cpu, count in raised.get(kind, {}).items():
                if self._reports(cpu):
                    yield Detail(f"softirqs {kind} cpu{cpu}", count)
        for cpu, counts in parse.parse_softnet(files.get("/proc/net/softnet_stat", ())).items():
            for word, count in counts.items():
                if self._reports(cpu):
                    yield Detail(f"softnet_stat {word} cpu{cpu}", count)
        counted: Counter[str] = Counter()
        for number, (name, count) in parse.parse_interrupts(files.get("/proc/interrupts", ())).items():
            if number in self._irqs or any(_belongs(name, interface) for interface in self._interfaces):
                counted[name] += count
        yield from (Detail(f"interrupts {name}", count) for name, count in counted.items())


def _belongs(interrupt: str, interface: str) -> bool:
    """Is the interrupt named after the interface? eth1-rx-0 and i40e-eth1-TxRx-0 are eth1's, eth10-rx-0 is not."""
    return re.search(rf"(?<![\w.]){re.escape(interface)}(?![\w.])", interrupt) is not None


def measure_cycles(transport: Transport, cpus: Sequence[int], span_s: float) -> float | Missing:
    """Unhalted cycles per second of these CPUs together, counted for span_s from now on; returns when that is over.

    cpus: none: all of them.
    """
    chosen = ("-C", ",".join(map(str, cpus))) if cpus else ()
    argv = ("perf", "stat", "-x,", "-a", *chosen, "-e", "cycles", "sleep", f"{span_s:g}")
    try:
        done = transport.run(argv, span_s + TIMEOUT_S)
        if done.returncode:
            return Missing("perf stat", done.complaint)
        counted = parse.parse_perf(done.stderr)
    except DutError as error:
        return Missing("perf stat", str(error))
    if counted is None:
        return Missing("perf stat", "it cannot count cycles there (not supported: a virtual machine without counters?)")
    return counted / span_s


class BackgroundPerf:
    """Counts cycles in a thread of its own, while other counters are read: no reading ever waits for it.

    Where perf cannot count (not installed, not permitted, not supported) it is tried only once. No warning says so:
    results rest on CPU time.
    """

    def __init__(self, transport: Transport, span_s: float = PERF_SPAN_S) -> None:
        self._transport = transport
        self._span_s = span_s
        self._thread: threading.Thread | None = None
        self._found: list[float | Missing] = []

    def begin(self, cpus: Sequence[int]) -> None:
        """Count from now on, and forget what was counted before.

        While an earlier count still runs no other is begun; its result belongs to no interval and is dropped.
        """
        if any(isinstance(one, Missing) for one in self._found):
            return
        self._found = found = []
        if self._thread is not None and self._thread.is_alive():
            return

        def count() -> None:
            found.append(measure_cycles(self._transport, cpus, self._span_s))

        self._thread = threading.Thread(target=count, name="perf", daemon=True)
        self._thread.start()

    def take(self) -> float | None:
        """Cycles per second if the count is over, and only once; else None."""
        if not self._found or isinstance(self._found[0], Missing):
            return None
        counted, self._found = self._found[0], []
        return counted
