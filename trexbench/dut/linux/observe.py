"""Read the counters of a Linux DUT, with few commands since it forwards meanwhile: drops, CPU time, perf's cycles.

The drop counters are chosen so that no frame is in two of them:

- An interface's ``dropped``, ``missed`` and ``errors`` are disjoint by definition (linux/if_link.h); errors hold crc,
  length, frame and fifo errors where a driver counts those, so that they are left out. ``dropped`` includes what RPS
  had no room for; in the lab the same frames were in softnet_stat's second column, hence softnet_stat is left out. It
  also includes what did not fit into a veth's ring.
- ``otherhost`` are frames for another MAC (Linux 5.19 on), which no driver counts and IP drops before it counts them.
- What a queueing discipline drops never reaches the interface, and is in none of the interface's counters.
- ethtool's counters are mostly the same ones by other names; _EXTRA are those that no total includes. Totals that hold
  more or less than lost frames are corrected by _corrected.
- IP counts only what passed the interface. Ip.InHdrErrors includes IpExt.InCsumErrors; reverse path failures are only
  in TcpExt. IPv6 counts for itself, each frame it drops once, and by interface: only those of the ports are read.
- Netfilter's verdicts are in none of IP's counters: what conntrack dropped, for lack of room, it counts itself; what a
  rule drops is counted only if the rule says so.
- cpumap's queue has no readable counter: what XDP handed over and IP never got was lost there. The program hands over
  every frame, and rx_packets has them all, also those of queues that are no longer in use (whose
  rx_queue_N_xdp_redirect ethtool no longer shows). A few frames that are not IP (ARP) count as lost,
  and IPv6 where the config has none of it.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

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
from ..settings import Wanted
from .tuning import lab_of

T = TypeVar("T")
Counts = Mapping[str, Mapping[str, int]]
"""Counters of each interface, in the host's own words."""
Lines = Mapping[str, Sequence[str]]

_FILES = (
    *("/proc/uptime", "/proc/stat", "/proc/net/dev", "/proc/net/snmp", "/proc/net/netstat"),
    *("/proc/net/softnet_stat", "/proc/softirqs", "/proc/interrupts", "/proc/cpuinfo"),
)
"""In the order of reading: clock, CPU times and packets side by side, since they are divided by one another."""
_CONNTRACK = "/proc/net/stat/nf_conntrack"
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
    "rx.otherhost": "rx_otherhost_dropped",
    "tx.dropped": "tx_dropped",
    "tx.errors": "tx_errors",
}
_EXTRA = {
    "ixgbe": r"rx_no_dma_resources",
    "igb": r"rx_queue_([0-9]{1,5})_drops",
    "i40e": r"port\.rx_(?:dropped|discards)",
    "mlx5_core": r"rx_discards_phy",
    "mtk_soc_eth": r"rx_overflow",
    "vmxnet3": r"Rx Queue# ([0-9]{1,5}): pkts rx OOB",
    "amd-xgbe": r"rx_fifo_overflow_errors",
    **dict.fromkeys(("st_gmac", "st_xgmac"), r"mmc_rx_fifo_overflow"),
    "mvneta": r"rx_(?:discard|overrun)",
    "mvpp2": r"rx_fifo_or_parser_overrun_drops|rxq_([0-9]{1,5})_(?:queue_full|packets_early|packets_bm)_drops",
}
"""By driver: frames for which there was no descriptor or buffer, and that are in none of its totals. With several
queues ixgbe counts them per queue (QPRDC); no driver's fifo or over errors are read. i40e's totals are those of
its queues; its port's own (RDPC, ``port.rx_discards`` since 2023) come on top, as in DPDK's imissed."""
_HARMLESS = {"ice": "rx_csum_bad.nic", "mtk_soc_eth": "rx_checksum_errors"}
"""By driver: part of rx_errors that was forwarded all the same, frames with a wrong checksum."""
_OF_16_BITS = ("r8169", "rtase")
"""Drivers of Realtek's whose rx_missed_errors begin anew every 65536 frames, several times in a second of overload."""
_PORT_DROPS = {"mlx5_core": "rx_discards_phy"}
"""By driver: the counter of _EXTRA that rx_dropped includes in kernels of late."""
_IP = (
    *("Ip.InHdrErrors", "Ip.InAddrErrors", "Ip.InDiscards", "Ip.OutDiscards", "Ip.FragFails"),
    *("IpExt.InNoRoutes", "IpExt.InTruncatedPkts", "TcpExt.IPReversePathFilter"),
    *("Ip6.InHdrErrors", "Ip6.InTooBigErrors", "Ip6.InNoRoutes", "Ip6.InAddrErrors", "Ip6.InTruncatedPkts"),
    *("Ip6.InDiscards", "Ip6.OutDiscards"),
)


class LinuxCounters:
    """Reader of a Linux DUT's counters. cpus: the ones that forward, which are reported; empty: all are."""

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
        """Read NICs first and IP after them, so that packets arriving in between never count as lost.

        DutError where nothing at all could be read.
        """
        gathering = Gathering()
        nics: dict[str, Mapping[str, int]] = {}
        for name in self._interfaces:
            nics[name] = gathering.part(f"counters of {name}", partial(self._nic, name), {})
        reader = partial(self._run, parse.parse_link_counters, "ip", "-s", "-s", "-json", "link", "show")
        links: Counts = gathering.part("packets by interface", reader, {})  # -s twice: missed_errors
        drops = partial(self._run, parse.parse_qdisc_drops, "tc", "-s", "-json", "qdisc", "show")
        qdiscs: Mapping[str, int] = gathering.part("drops of queueing disciplines", drops, {})
        files: Lines = gathering.part("/proc", self._files, {})
        ip: Mapping[str, int] = gathering.part("IP's counters", partial(self._ip, files), {})
        times: tuple[CpuTime, ...] = gathering.part(
            "CPU time", lambda: parse.parse_stat(files.get("/proc/stat", ()), parse.parse_clocks(files)), ()
        )
        gathering.require_any()
        # read together with CPU times; otherwise by ``ip link``, a moment before
        before = {name: (links[name].get("rx.packets"), links[name].get("tx.packets")) for name in links}
        packets = {**before, **parse.parse_net_dev(files.get("/proc/net/dev", ()))}
        queues = {name: parse.queue_counts(nic) for name, nic in nics.items()}
        full = parse.parse_conntrack(files.get(_CONNTRACK, ()))
        table = () if full is None else (DropCount("nf_conntrack drop", full),)
        observation = Observation(
            at_s=parse.parse_uptime(files.get("/proc/uptime", ())),
            cpus=tuple(time for time in times if self._reports(time.cpu)),
            ports=tuple(PortCount(port, *packets[name]) for port, name in self._ports.items() if name in packets),
            queues=tuple(QueueCount(port, *row) for port, name in self._ports.items() for row in queues[name].items()),
            drops=(
                *self._drops(links, qdiscs, nics),
                *(DropCount(name, ip[name]) for name in _IP if name in ip),
                *table,
            ),
            missing=(*gathering.missing, *self._uncounted()),
            details=tuple(self._details(files)),
        )
        return self._steered(observation, links, ip)

    def _steered(self, seen: Observation, links: Counts, ip: Mapping[str, int]) -> Observation:
        steer = self._lab.get("steer")
        handed = [links[name]["rx.packets"] for name in self._interfaces if "rx.packets" in links.get(name, {})]
        if steer == "cpumap" and len(handed) == len(self._interfaces) and "Ip.InReceives" in ip:
            # all interfaces share the queue, and IP has no counters by interface either
            others = sum(links[name].get("rx.otherhost", 0) for name in self._interfaces)
            lost = max(0, sum(handed) - others - ip["Ip.InReceives"] - ip.get("Ip6.InReceives", 0))
            seen = replace(seen, drops=(*seen.drops, DropCount("cpumap queue (redirected, not received)", lost)))
        if steer == "cpumap" or self._lab.get("threaded"):
            # cpumap's thread and NAPI threads count as system time, not as soft interrupts
            return replace(seen, cpus=tuple(replace(cpu, packet_s=None) for cpu in seen.cpus))
        if steer == "none":
            hidden = Missing("CPU time", "lab.steer is none: the router works on the sender's CPU")
            return replace(seen, cpus=(), missing=(*seen.missing, hidden))
        if steer == "rps":
            hidden = Missing("CPU time of receiving", "lab.steer is rps: receiving begins on the sender's CPU")
            return replace(seen, missing=(*seen.missing, hidden))
        return seen

    def _drops(self, links: Counts, qdiscs: Mapping[str, int], nics: Counts) -> Iterator[DropCount]:
        for port, name in self._ports.items():
            driver = self._drivers.get(name, "")
            link = _corrected(links.get(name, {}), nics[name], driver)
            yield from (DropCount(word, link[key], port) for key, word in _LINK.items() if key in link)
            if name in qdiscs:
                yield DropCount(QDISC_DROPS, qdiscs[name], port)
            extra = _EXTRA.get(driver)
            for counter, count in nics[name].items():
                if extra and (match := re.fullmatch(extra, counter)):
                    yield DropCount(counter, count, port, int(match[1]) if match.lastindex else None)

    def _uncounted(self) -> Iterator[Missing]:
        for name, driver in self._drivers.items():
            if driver in _OF_16_BITS:
                reason = f"{driver} counts them modulo 65536: frames that it had no room for are in no counter"
                yield Missing(f"rx_missed_errors of {name}", reason)

    def _run(self, parser: Callable[[str], T], *argv: str) -> T:
        return parser(run_checked(self._transport, argv))

    def _nic(self, name: str) -> Mapping[str, int]:
        if name not in self._drivers:
            self._drivers[name] = self._run(parse.parse_driver, "ethtool", "-i", name).get("driver", "")
        try:
            return self._run(parse.parse_nic_counters, "ethtool", "-S", name)
        except DutError as error:
            if "no stats available" in str(error):  # of a bond, a VLAN, a small NIC
                return {}
            raise

    def _files(self) -> Lines:
        """Read all files at once; what does not change, clock files and interrupt numbers, is looked up only once."""
        if self._clocks is None:
            folders = [path.format(name) for name in self._interfaces for path in _IRQS]
            listed = read_lines(self._transport, "-rsH", "", _ONLINE, *folders)
            online = parse_cpus("".join(listed.get(_ONLINE, ())).strip())
            numbers = (path.rpartition("/")[2] for path in listed if "/msi_irqs/" in path)
            self._irqs = frozenset(int(number) for number in numbers if re.fullmatch("[0-9]{1,9}", number))
            self._clocks = [_CLOCK.format(cpu) for cpu in self._clocks_of or online or ()]
        return read_lines(self._transport, "-sH", "", *_FILES, _CONNTRACK, *self._ipv6, *self._clocks)

    def _ip(self, files: Lines) -> Mapping[str, int]:
        ipv4 = parse.parse_snmp(files.get("/proc/net/snmp", ())) | parse.parse_snmp(files.get("/proc/net/netstat", ()))
        if "Ip.InReceives" not in ipv4:
            raise DutError("/proc/net/snmp has no InReceives of Ip")
        ipv6: Counter[str] = Counter()
        for path in self._ipv6:
            ipv6.update(parse.parse_snmp6(files.get(path, ())))
        return {**ipv4, **ipv6}

    def _reports(self, cpu: int) -> bool:
        return not self._cpus or cpu in self._cpus

    def _details(self, files: Lines) -> Iterator[Detail]:

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
        # eth1-rx-0 and i40e-eth1-TxRx-0 are named after eth1, eth10-rx-0 is not
        ours = [re.compile(rf"(?<![\w.]){re.escape(interface)}(?![\w.])") for interface in self._interfaces]
        for number, (name, count) in parse.parse_interrupts(files.get("/proc/interrupts", ())).items():
            if number in self._irqs or any(interface.search(name) for interface in ours):
                counted[name] += count
        yield from (Detail(f"interrupts {name}", count) for name, count in counted.items())


def _corrected(link: Mapping[str, int], nic: Mapping[str, int], driver: str) -> Mapping[str, int]:
    """Return an interface's totals with each lost frame in one of them, and no other."""
    errors = link.get("rx.errors", 0) - nic.get(_HARMLESS.get(driver, ""), 0)
    if driver == "bnxt_en":  # bnxt_get_stats64: only false carriers and jabbers are among its errors
        errors += sum(link.get(f"rx.{kind}_errors", 0) for kind in ("crc", "frame", "length"))
    if driver == "bcmgenet" and errors == link.get("rx.missed_errors"):  # until 2025 it gave the one number for both
        errors = 0
    dropped, of_port = link.get("rx.dropped", 0), nic.get(_PORT_DROPS.get(driver, ""), 0)
    dropped -= of_port if of_port <= dropped else 0  # else it is an older kernel's
    totals = {**link, "rx.errors": max(0, errors), "rx.dropped": dropped}
    return {name: totals[name] for name in link if name != "rx.missed_errors" or driver not in _OF_16_BITS}


def measure_cycles(transport: Transport, cpus: Sequence[int]) -> float | None:
    """Count unhalted cycles per second of these CPUs together (none: of all), for PERF_SPAN_S.

    None where perf cannot count: it is not installed, not permitted or not supported.
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
    """Counter of cycles in a thread of its own, so that no reading of other counters waits for it.

    Where perf cannot count it is tried only once, without a warning: results rest on CPU time.
    """

    def __init__(self, transport: Transport, cpus: Sequence[int]) -> None:
        self._transport, self._cpus = transport, cpus
        self._thread: threading.Thread | None = None
        self._cycles: list[float | None] = []

    def begin(self) -> None:
        """Forget what was counted before, and count anew unless an earlier count still runs.

        The result of such a count belongs to no interval and is dropped.
        """
        if None in self._cycles:
            return
        self._cycles = cycles = []
        if self._thread is None or not self._thread.is_alive():
            count = partial(measure_cycles, self._transport, self._cpus)
            self._thread = threading.Thread(target=lambda: cycles.append(count()), name="perf", daemon=True)
            self._thread.start()

    def take(self) -> float | None:
        """Return the cycles per second of a count that is over, once; otherwise None."""
        return self._cycles.pop() if self._cycles and None not in self._cycles else None
