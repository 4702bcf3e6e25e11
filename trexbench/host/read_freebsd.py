"""The counters of a FreeBSD host. The names of its drivers' counters are read only once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ..core.dut.telemetry import CpuTime, Detail, Missing
from ..core.errors import DutError
from ..transport import TIMEOUT_S, Transport, run_checked
from . import freebsd as parse
from . import freebsd_nics as nics
from .files import number
from .totals import Counts, Gathering, HostTotals

_CPU = ("kern.cp_times", "kern.clockrate")
_REVISION = ("cpucontrol", "-m", "0x8b", "/dev/cpuctl0")
BOOT_MESSAGES = ("/var/run/dmesg.boot", "/var/log/dmesg.boot")
"""FreeBSD's (libexec/rc/rc.d/dmesg) and pfSense's, written once in each boot."""
_COUNTERS = (parse.PACKETS_OF_QUEUE, parse.DROPS_OF_RING, parse.FREQUENCY, parse.IFLIB)


@dataclass(frozen=True)
class FreebsdTotals(HostTotals):
    """links: of ``netstat -i``. ip: of ``netstat -s``. netisr_drops: None where they could not be read.

    ring_drops: of iflib's transmit rings. nic_drops: of the NIC itself, by interface and sysctl leaf.
    """

    ring_drops: Mapping[str, Sequence[int]]
    nic_drops: Counts
    netisr_drops: int | None


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


class FreebsdHost:
    """Reads one host's counters, any number of times."""

    def __init__(self, transport: Transport, interfaces: Sequence[str], ipv6: bool = False) -> None:
        self._protocols = ("ip", "ip6") if ipv6 else ("ip",)
        self._transport = transport
        self._interfaces = interfaces
        self._names: tuple[str, ...] | None = None
        self._clocks: Mapping[str, str] = {}

    def read(self) -> FreebsdTotals:
        """DutError where nothing at all could be read."""
        gathering = Gathering()
        values: Mapping[str, str] = gathering.part("sysctl", self._sysctl, {})
        cpus: tuple[CpuTime, ...] = gathering.part("cpus", lambda: _cpus(values), ()) if values else ()
        if cpus and not all(cpu.clock_hz for cpu in cpus):
            reason = "dev.cpu.0.freq does not exist: cpufreq(4) has no driver for them"
            gathering.missing.append(Missing("clock of the CPUs", reason))
        elif self._clocks:
            reason = "read only once, without load: hwpstate_intel(4) stops a CPU for 1 ms at each reading"
            gathering.missing.append(Missing("clock of the CPUs under load", reason))
        links: Counts = gathering.part("ports", lambda: parse.parse_interface_counts(self._netstat("-ibdnW")), {})
        netisr = gathering.part("netisr", lambda: parse.parse_netisr_drops(self._netstat("-Q")), None)
        ip: dict[str, int] = {}
        for name in self._protocols:
            told: Mapping[str, int] = gathering.part(name, partial(self._protocol, name), {})
            ip |= {words if name == "ip" else f"{name}: {words}": count for words, count in told.items()}
        interrupts: Mapping[str, int] = gathering.part("interrupts", self._interrupts, {})
        gathering.require_any()
        queues = {name: _queues(name, values) for name in self._interfaces}
        return FreebsdTotals(
            # The same sysctl has the packets of the queues; a CPU that idles may be behind, none is ahead.
            at_s=max((cpu.total_s for cpu in cpus), default=None),
            cpus=cpus,
            packets={name: _packets(name, links.get(name), queues[name], values) for name in self._interfaces},
            queues=queues,
            links=links,
            ip=ip,
            details=tuple(Detail(f"irq {name}", count) for name, count in interrupts.items()),
            missing=tuple(gathering.missing),
            ring_drops={name: _ring_drops(name, values) for name in self._interfaces},
            nic_drops={name: _nic_drops(name, values) for name in self._interfaces},
            netisr_drops=netisr,
        )

    def _protocol(self, name: str) -> Mapping[str, int]:
        return parse.parse_protocol(self._netstat("-s", "-p", name))

    def _netstat(self, *words: str) -> str:
        return run_checked(self._transport, ("netstat", *words))

    def _interrupts(self) -> Mapping[str, int]:
        found = parse.parse_interrupts(run_checked(self._transport, ("vmstat", "-ia")))
        mine = tuple(f"{name}:" for name in self._interfaces)
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
        devices = [parse.device(name) for name in self._interfaces]
        trees = [f"dev.{one[0]}.{one[1]}" for one in devices if one]
        words = ("sysctl", "-Ni", *trees, "dev.cpu", "dev.hwpstate_intel")
        listed = self._transport.run(words, TIMEOUT_S).stdout.split()
        found = [name for name in listed if nics.is_counter(name) or any(form.fullmatch(name) for form in _COUNTERS)]
        if any(parse.SHIFTING.fullmatch(name) for name in listed):
            clocks = [name for name in found if parse.FREQUENCY.fullmatch(name)]
            self._clocks = parse.parse_sysctl(self._transport.run(("sysctl", "-ei", *clocks), TIMEOUT_S).stdout)
            found = [name for name in found if name not in clocks]
        return tuple(found)


def _cpus(values: Mapping[str, str]) -> tuple[CpuTime, ...]:
    """Drivers on iflib handle packets in task threads, whose time counts as ``sys`` and not as interrupts."""
    return parse.parse_cpu_times(values, booked_as_interrupt=not any(parse.IFLIB.fullmatch(name) for name in values))


def _queues(interface: str, values: Mapping[str, str]) -> dict[int, int]:
    found = {}
    for name, value in values.items():
        match, count = parse.PACKETS_OF_QUEUE.fullmatch(name), number(value)
        if match and count is not None and f"{match[1]}{match[2]}" == interface:
            found[int(match[3])] = count
    return dict(sorted(found.items()))


def _ring_drops(interface: str, values: Mapping[str, str]) -> list[int]:
    matches = ((parse.DROPS_OF_RING.fullmatch(name), value) for name, value in values.items())
    return [number(value) or 0 for match, value in matches if match and f"{match[1]}{match[2]}" == interface]


def _leaves(interface: str, values: Mapping[str, str]) -> dict[str, int]:
    """Counts below the device of this interface, by the rest of their names."""
    found = ((nics.leaf_of(name), number(value)) for name, value in values.items())
    return {leaf[1]: count for leaf, count in found if leaf and leaf[0] == interface and count is not None}


def _nic_drops(interface: str, values: Mapping[str, str]) -> dict[str, int]:
    told = _leaves(interface, values)
    return {leaf: told[leaf] for leaf in nics.counters_of(interface).leaves if leaf in told}


def _packets(
    interface: str, link: Mapping[str, int] | None, queues: Mapping[int, int], values: Mapping[str, str]
) -> tuple[int | None, int | None]:
    """Received and sent frames; None where the counter that is right for this driver was not read."""
    row, netstat = nics.counters_of(interface), link or {}
    if not row.by_queue:
        return netstat.get("Ipkts"), netstat.get("Opkts")
    sent = [count for leaf, count in _leaves(interface, values).items() if nics.SENT_BY_QUEUE.fullmatch(leaf)]
    return sum(queues.values()) if queues else None, sum(sent) if sent else netstat.get("Opkts")
