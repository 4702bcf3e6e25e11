"""CPU time of the hosts while one direction of a leg ran: by core, thread and process, and the payload for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ..dut.cycles import TIMES_APART, CpuShare
from ..dut.telemetry import CpuTime, DutReading
from .plan import HostReading, LegReadings, Processes, TcpEnvironment, ThreadTime


@dataclass(frozen=True)
class CoreShare(CpuShare):
    """One core, in shares of its time; None: not known."""

    user: float | None = None  # part of busy in programs
    system: float | None = None  # part of busy in the kernel, but for interrupts


@dataclass(frozen=True)
class ProcessShare:
    """One process of the host, in shares of one core's time: up to 1 for each of its threads."""

    process: int
    name: str
    user: float  # in the program
    system: float  # in the kernel for it
    waiting: float | None = None  # run delay, summed over its threads
    cpus: tuple[int, ...] = ()
    thread: float | None = None  # busy time of the busiest thread, if it has several
    role: str = ""
    whose: str = ""

    @property
    def busy(self) -> float:
        return self.user + self.system


@dataclass(frozen=True)
class ThreadShare:
    """One thread of the program that sends or receives, in shares of one core's time."""

    thread: int  # its number by the kernel
    user: float  # in the program
    system: float  # in the kernel for it
    waiting: float | None  # run delay: it was ready, and others ran; None: not known

    @property
    def busy(self) -> float:
        return self.user + self.system


@dataclass(frozen=True)
class HostShare:
    """CPU time of one host."""

    host: str  # ``client``, ``server`` or ``dut``
    cpus: tuple[CoreShare, ...] = ()  # cores; where hosts share a kernel, those that it may use
    threads: tuple[ThreadShare, ...] = ()  # of the program that sends or receives; none for the DUT
    processes: tuple[ProcessShare, ...] = ()
    """The busiest first, including the kernel's and those elsewhere on the machine."""

    @property
    def cores_busy(self) -> float:
        """Busy time in cores: 1.0 is one whole core."""
        return sum(core.busy for core in self.cpus)

    @property
    def busiest(self) -> CoreShare | None:
        return max(self.cpus, key=lambda core: core.busy, default=None)

    @property
    def waiting(self) -> float | None:
        """The longest run delay of its threads, as a share of the time; None if none is known."""
        return max((thread.waiting for thread in self.threads if thread.waiting is not None), default=None)

    @property
    def tunnels(self) -> tuple[ProcessShare, ...]:
        return tuple(process for process in self.processes if process.role == "tunnel")

    def of_role(self, role: str) -> ProcessShare | None:
        """Sum up all processes of this role under the name of the busiest."""
        same = [process for process in self.processes if process.role == role]
        if not same:
            return None
        first, waits = same[0], [process.waiting for process in same if process.waiting is not None]
        cpus = tuple(dict.fromkeys(cpu for process in same for cpu in process.cpus))
        user, system = sum(process.user for process in same), sum(process.system for process in same)
        name = first.name if len(same) == 1 else f"{first.name} and {len(same) - 1} more"
        waiting = sum(waits) if waits else None
        return ProcessShare(first.process, name, user, system, waiting, cpus, None, role, first.whose)


def share_of_host(
    host: str, readings: Sequence[HostReading], setup: TcpEnvironment, took: tuple[ProcessShare, ...] = ()
) -> HostShare:
    """Compare a host's first and last readings; where hosts share a kernel, only the cores named for this one count."""
    if len(readings) < 2:
        return HostShare(host, processes=took)
    first, last = readings[0], readings[-1]
    named = setup.cpus.get(host) if _on_one_kernel(host, setup) else None
    cpus = tuple(core for core in _cpus(first.cpus, last.cpus) if not named or core.cpu in named)
    return HostShare(host, cpus, tuple(_threads(first.threads, last.threads, last.at_s - first.at_s)), took)


def share_of_dut(
    readings: Sequence[DutReading], setup: TcpEnvironment, took: tuple[ProcessShare, ...], flowed_s: float
) -> HostShare:
    """Compare the DUT's readings; a virtual machine is read around the ``flowed_s`` in which payload flowed."""
    seen = [HostReading(reading.t_s, cpus=reading.observation.cpus) for reading in readings]
    if setup.dut_is_guest and len(readings) > 1:
        first, last = readings[0], readings[-1]
        then_s, now_s = first.observation.at_s, last.observation.at_s
        elapsed_s = last.t_s - first.t_s if then_s is None or now_s is None else now_s - then_s
        old_s = {cpu.cpu: cpu.total_s for cpu in first.observation.cpus}
        flowed: list[CpuTime] = []  # without the idle time before and after, nor cores whose clock lost ticks
        for now in last.observation.cpus:
            advanced_s = now.total_s - old_s.get(now.cpu, now.total_s)
            if abs(advanced_s - elapsed_s) <= TIMES_APART * elapsed_s:
                flowed.append(replace(now, total_s=now.total_s - max(0.0, advanced_s - flowed_s)))
        seen[-1] = replace(seen[-1], cpus=tuple(flowed))
    return share_of_host("dut", seen, setup, took)


def told_processes(shares: Mapping[str, HostShare], setup: TcpEnvironment) -> Mapping[str, tuple[ProcessShare, ...]]:
    """List each process once, by host: those of one kernel, and elsewhere on its machine, at the first host alone."""
    shared = [host for host in shares if _on_one_kernel(host, setup)]
    own = {process.process for host in shared for process in shares[host].processes if not process.whose}
    listed: set[int] = set()
    by_host = {}
    for host, share in shares.items():
        processes = share.processes
        if host in shared:
            taken = listed | own
            processes = tuple(p for p in processes if p.process not in (taken if p.whose else listed))
            listed |= {process.process for process in processes}
        by_host[host] = processes
    return by_host


CARRY = ("tunnel", "endpoint")
"""Roles of the processes that move the payload."""


def bits_per_cpu_second(shares: Mapping[str, HostShare], setup: TcpEnvironment, bps: float | None) -> float | None:
    """Divide payload by the CPU time that the tunnel's and the endpoints' processes took on all hosts.

    None unless the payload is known, and the programs of both endpoints are among them.
    """
    by_host = told_processes(shares, setup)
    busy = sum(process.busy for processes in by_host.values() for process in processes if process.role in CARRY)
    ends = [shares[host].of_role("endpoint") for host in ("client", "server") if host in shares]
    return bps / busy if bps is not None and len(ends) == 2 and all(ends) and busy > 0 else None


COLUMNS = ("client_tunnel", "client", "server_tunnel", "server")
"""Processes whose CPU time tables of tunnels show; the tunnel's far end is the server's, or else the DUT's."""


def columns(shares: Mapping[str, HostShare]) -> dict[str, float]:
    """Return shares of one core by COLUMNS, as far as they were read."""
    far = "server" if "server" in shares and shares["server"].of_role("tunnel") else "dut"
    places = (("client", "tunnel"), ("client", "endpoint"), (far, "tunnel"), ("server", "endpoint"))
    sums = (shares[host].of_role(role) if host in shares else None for host, role in places)
    return {name: process.busy for name, process in zip(COLUMNS, sums, strict=True) if process is not None}


def mean_columns(runs: Sequence[Mapping[str, HostShare]]) -> dict[str, float]:
    """Average the columns that every one of several flows or repetitions has."""
    rows = [columns(shares) for shares in runs]
    return {name: fmean(row[name] for row in rows) for name in COLUMNS if rows and all(name in row for row in rows)}


def process_shares(leg: LegReadings, host: str) -> tuple[ProcessShare, ...]:
    """Return shares of a host's processes; those that move payload by the time it flowed, others by that observed."""
    observed = leg.processes.get(host, Processes(0.0))
    flowed_s = min(observed.over_s, leg.length_s or observed.over_s)
    shares = []
    for p in observed.took if flowed_s > 0 else ():
        over_s = flowed_s if p.role in CARRY else observed.over_s
        waiting = None if p.waiting_s is None else p.waiting_s / over_s
        thread = None if p.busiest_thread_s is None else p.busiest_thread_s / over_s
        times = p.user_s / over_s, p.system_s / over_s, waiting
        shares.append(ProcessShare(p.process, p.name, *times, p.cpus, thread, p.role, p.whose))
    return tuple(shares)


def _on_one_kernel(host: str, setup: TcpEnvironment) -> bool:
    """Test whether the host shares its kernel, and so the numbers of processes and cores, with the others."""
    return setup.one_kernel and not (host == "dut" and setup.dut_is_guest)


def _cpus(before: Sequence[CpuTime], after: Sequence[CpuTime]) -> Iterator[CoreShare]:
    """Yield the cores whose times advanced."""
    old = {core.cpu: core for core in before}
    for now in after:
        then = old.get(now.cpu)
        if then is None or now.total_s <= then.total_s or now.busy_s < then.busy_s:
            continue
        total_s = now.total_s - then.total_s
        parts = (
            _grown(then.packet_s, now.packet_s, total_s),
            now.clock_hz,
            _grown(then.user_s, now.user_s, total_s),
            _grown(then.system_s, now.system_s, total_s),
        )
        yield CoreShare(now.cpu, min(1.0, (now.busy_s - then.busy_s) / total_s), *parts)


def _grown(then_s: float | None, now_s: float | None, total_s: float) -> float | None:
    """Return the increase as a share of the time; None if it is not known, or the value went back."""
    return None if then_s is None or now_s is None or now_s < then_s else (now_s - then_s) / total_s


def _threads(before: Sequence[ThreadTime], after: Sequence[ThreadTime], length_s: float) -> Iterator[ThreadShare]:
    old = {thread.thread: thread for thread in before}
    for now in after:
        then = old.get(now.thread, ThreadTime(now.thread, 0.0, 0.0, 0.0))
        user_s, system_s = now.user_s - then.user_s, now.system_s - then.system_s
        if length_s <= 0 or user_s < 0 or system_s < 0:
            continue
        waiting = _grown(then.waiting_s, now.waiting_s, length_s)
        yield ThreadShare(now.thread, user_s / length_s, system_s / length_s, waiting)
