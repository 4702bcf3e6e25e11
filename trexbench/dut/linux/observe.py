"""Counters of a Linux DUT, read with few commands, since it forwards meanwhile; its drops; and perf's cycles.

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
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ...core.dut.telemetry import (
    QDISC_DROPS,
    CpuTime,
    Detail,
    DropCount,
    Gathering,
    Missing,
    Observation,
    PortCount,
    QueueCount,
)
from ...core.errors import DutError
from ...host import linux as parse
from ...host.files import parse_cpus, read_lines
from ...transport import TIMEOUT_S, Transport, run_checked
from ..model import Wanted
from .tuning import lab_of

Counts = Mapping[str, Mapping[str, int]]
"""Counters of each interface, in the host's own words."""
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
_CLOCK = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
PERF_SPAN_S = 2.0
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


class LinuxCounters:
    """Reads the counters of a Linux DUT, any number of times. cpus: those that forward are reported; none: all are."""

    def __init__(self, wanted: Wanted, transport: Transport, cpus: Sequence[int]) -> None:
        ports = wanted.config.ports
        self._ports = {port.tester: port.interface for port in ports}
        self._interfaces = tuple(dict.fromkeys(self._ports.values()))
        six = (wanted.routed(port) for port in ports if any(own.version == 6 for own in port.addresses))
        self._ipv6 = tuple(_IPV6.format(name) for name in dict.fromkeys(six))
        self._transport, self._lab, self._cpus = transport, lab_of(wanted), cpus
        self._clocks_of = wanted.config.linux.cpus
        self._drivers: dict[str, str] = {}
        self._clocks: list[str] | None = None
        self._irqs: frozenset[int] = frozenset()

    def read(self) -> Observation:
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
        # read together with CPU times; else by ``ip link``, a moment before
        before = {name: (links[name].get("rx.packets"), links[name].get("tx.packets")) for name in links}
        packets = {**before, **parse.parse_net_dev(files.get("/proc/net/dev", ()))}
        queues = {name: parse.queue_counts(nic) for name, nic in nics.items()}
        found = Observation(
            at_s=parse.parse_uptime(files.get("/proc/uptime", ())),
            cpus=cpus,
            ports=tuple(PortCount(port, *packets[name]) for port, name in self._ports.items() if name in packets),
            queues=tuple(QueueCount(port, *one) for port, name in self._ports.items() for one in queues[name].items()),
            drops=(*self._drops(links, qdiscs, nics), *(DropCount(name, ip[name]) for name in _IP if name in ip)),
            missing=tuple(gathering.missing),
            details=tuple(self._details(files)),
        )
        return self._steered(found, links, ip)

    def _steered(self, found: Observation, links: Counts, ip: Mapping[str, int]) -> Observation:
        """cpumap's thread and NAPI threads count as system time, not as soft interrupts."""
        steer, hidden = self._lab.get("steer"), list[Missing]()
        if steer == "cpumap":
            found = replace(found, drops=(*found.drops, *self._lost_in_cpumap(links, ip)))
        if steer == "cpumap" or self._lab.get("threaded"):
            return replace(found, cpus=tuple(replace(cpu, packet_s=None) for cpu in found.cpus))
        if steer == "none":
            found = replace(found, cpus=())
            hidden.append(Missing("CPU time", "lab.steer is none: the router works on the sender's CPU"))
        if steer == "rps":
            why = "lab.steer is rps: receiving begins on the sender's CPU"
            hidden.append(Missing("CPU time of receiving", why))
        return replace(found, missing=(*found.missing, *hidden))

    def _drops(self, links: Counts, qdiscs: Mapping[str, int], nics: Counts) -> Iterator[DropCount]:
        for port, name in self._ports.items():
            link = links.get(name, {})
            yield from (DropCount(word, link[key], port) for key, word in _LINK.items() if key in link)
            if name in qdiscs:
                yield DropCount(QDISC_DROPS, qdiscs[name], port)
            extra = _EXTRA.get(self._drivers.get(name, ""))
            for counter, count in nics[name].items():
                if extra and (match := re.fullmatch(extra, counter)):
                    yield DropCount(counter, count, port, int(match[1]) if match.groups() else None)

    def _lost_in_cpumap(self, links: Counts, ip: Mapping[str, int]) -> Iterator[DropCount]:
        """Losses in cpumap's queue, of all interfaces together: they share it, and IP has no counters by interface."""
        handed = [links[name]["rx.packets"] for name in self._interfaces if "rx.packets" in links.get(name, {})]
        if len(handed) == len(self._interfaces) and "Ip.InReceives" in ip:
            lost = max(0, sum(handed) - ip["Ip.InReceives"] - ip.get("Ip6.InReceives", 0))
            yield DropCount("cpumap queue (redirected, not received)", lost)

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
        return read_lines(self._transport, "-sH", "", *_FILES, *self._ipv6, *self._clocks)

    def _read_once(self) -> tuple[list[str], frozenset[int]]:
        """Read what does not change: the files of the CPUs' clocks, and the numbers of the interfaces' interrupts."""
        folders = [path.format(name) for name in self._interfaces for path in _IRQS]
        found = read_lines(self._transport, "-rsH", "", _ONLINE, *folders)
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


def measure_cycles(transport: Transport, cpus: Sequence[int]) -> float | None:
    """Unhalted cycles per second of these CPUs together, counted for PERF_SPAN_S from now on; returns after that.

    cpus: none: all of them. None where perf cannot count: not installed, not permitted, not supported.
    """
    chosen = ("-C", ",".join(map(str, cpus))) if cpus else ()
    argv = ("perf", "stat", "-x,", "-a", *chosen, "-e", "cycles", "sleep", f"{PERF_SPAN_S:g}")
    try:
        done = transport.run(argv, PERF_SPAN_S + TIMEOUT_S)
        counted = None if done.returncode else parse.parse_perf(done.stderr)
    except DutError:
        return None
    return None if counted is None else counted / PERF_SPAN_S


class BackgroundPerf:
    """Counts cycles in a thread of its own, while other counters are read: no reading ever waits for it.

    Where perf cannot count it is tried only once. No warning says so: results rest on CPU time.
    """

    def __init__(self, transport: Transport, cpus: Sequence[int]) -> None:
        self._transport, self._cpus = transport, cpus
        self._thread: threading.Thread | None = None
        self._found: list[float | None] = []

    def begin(self) -> None:
        """Count from now on, and forget what was counted before.

        While an earlier count still runs no other is begun; its result belongs to no interval and is dropped.
        """
        if None in self._found:
            return
        self._found = found = []
        if self._thread is not None and self._thread.is_alive():
            return

        def count() -> None:
            found.append(measure_cycles(self._transport, self._cpus))

        self._thread = threading.Thread(target=count, name="perf", daemon=True)
        self._thread.start()

    def take(self) -> float | None:
        """Cycles per second if the count is over, and only once; else None."""
        if not self._found or self._found[0] is None:
            return None
        counted, self._found = self._found[0], []
        return counted
