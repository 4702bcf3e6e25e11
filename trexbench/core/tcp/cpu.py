"""CPU of the hosts while one direction of a leg ran: by core, by thread of the program, and bits for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ..dut.cycles import TIMES_APART, CpuShare
from ..dut.telemetry import CpuTime, DutReading
from .model import HostReading, LegReadings, Processes, TcpEnvironment, ThreadTime


@dataclass(frozen=True)
class CoreShare(CpuShare):
    """One core. user, system: of its time in programs and in the kernel for them; None: not known."""

    user: float | None = None
    system: float | None = None


@dataclass(frozen=True)
class ProcessShare:
    """One process of the host, as shares of one core's time. waiting: run delay, of all of its threads in sum.

    thread: of its busiest thread, of a process with several. cpus, role, whose: as of core.tcp.model.ProcessTime.
    """

    process: int
    name: str
    user: float
    system: float
    waiting: float | None = None
    cpus: tuple[int, ...] = ()
    thread: float | None = None
    role: str = ""
    whose: str = ""

    @property
    def busy(self) -> float:
        return self.user + self.system


@dataclass(frozen=True)
class ThreadShare:
    """One thread of the program that sends or receives, as shares of one core's time. waiting: run delay."""

    thread: int
    user: float
    system: float
    waiting: float | None

    @property
    def busy(self) -> float:
        return self.user + self.system


@dataclass(frozen=True)
class HostShare:
    """host: ``client``, ``server`` or ``dut``. cpus: each of its cores. threads: of the program, none for the DUT.

    processes: those that took most, the busiest first, the kernel's and those elsewhere on its machine included.
    """

    host: str
    cpus: tuple[CoreShare, ...] = ()
    threads: tuple[ThreadShare, ...] = ()
    processes: tuple[ProcessShare, ...] = ()

    @property
    def cores_busy(self) -> float:
        """Cores' worth of time that it worked: 1.0 is one core."""
        return sum(one.busy for one in self.cpus)

    @property
    def busiest(self) -> CoreShare | None:
        return max(self.cpus, key=lambda one: one.busy, default=None)

    @property
    def waiting(self) -> float | None:
        """The longest run delay of its threads, as a share of the time; None where none is known."""
        return max((one.waiting for one in self.threads if one.waiting is not None), default=None)

    @property
    def tunnels(self) -> tuple[ProcessShare, ...]:
        return tuple(one for one in self.processes if one.role == "tunnel")

    def of_role(self, role: str) -> ProcessShare | None:
        """All of the host's processes with this part in the test, as if they were one: the busiest, and their sums."""
        found = [one for one in self.processes if one.role == role]
        if not found:
            return None
        first, waits = found[0], [one.waiting for one in found if one.waiting is not None]
        cpus = tuple(dict.fromkeys(cpu for one in found for cpu in one.cpus))
        user, system = sum(one.user for one in found), sum(one.system for one in found)
        own = first.process, first.name if len(found) == 1 else f"{first.name} and {len(found) - 1} more"
        return ProcessShare(*own, user, system, sum(waits) if waits else None, cpus, None, role, first.whose)

    def bits_per_percent(self, bps: float) -> float | None:
        """bit/s for each percent of one core; None where no core's time is known."""
        return bps / (100 * self.cores_busy) if self.cores_busy > 0 else None


def share_of_host(
    host: str, readings: Sequence[HostReading], setup: TcpEnvironment, took: tuple[ProcessShare, ...] = ()
) -> HostShare:
    """Between the first and the last of these readings; where hosts share a kernel, of the cores named for this one."""
    if len(readings) < 2:
        return HostShare(host, processes=took)
    first, last = readings[0], readings[-1]
    threads = tuple(_threads(first.threads, last.threads, last.at_s - first.at_s))
    return HostShare(host, _own(host, _cpus(first.cpus, last.cpus), setup), threads, took)


def share_of_dut(
    readings: Sequence[DutReading], setup: TcpEnvironment, took: tuple[ProcessShare, ...], flowed_s: float
) -> HostShare:
    """flowed_s: for which payload flowed between the readings of a virtual machine, which is read around the leg."""
    seen = [HostReading(one.t_s, cpus=one.observation.cpus) for one in readings]
    if setup.dut_is_guest and len(readings) > 1:
        first, last = readings[0], readings[-1]
        then_s, now_s = first.observation.at_s, last.observation.at_s
        elapsed_s = last.t_s - first.t_s if then_s is None or now_s is None else now_s - then_s
        flowed = _while_flowing(first.observation.cpus, last.observation.cpus, elapsed_s, flowed_s)
        seen[-1] = replace(seen[-1], cpus=tuple(flowed))
    return share_of_host("dut", seen, setup, took)


def _while_flowing(
    before: Sequence[CpuTime], after: Sequence[CpuTime], elapsed_s: float, flowed_s: float
) -> Iterator[CpuTime]:
    """Cores' times without the idle time before and after; none of a core whose clock lost ticks."""
    old_s = {one.cpu: one.total_s for one in before}
    for now in after:
        advanced_s = now.total_s - old_s.get(now.cpu, now.total_s)
        if abs(advanced_s - elapsed_s) <= TIMES_APART * elapsed_s:
            yield replace(now, total_s=now.total_s - max(0.0, advanced_s - flowed_s))


def told_processes(shares: Mapping[str, HostShare], setup: TcpEnvironment) -> Mapping[str, tuple[ProcessShare, ...]]:
    """By host, each process once: of one kernel, its threads and what is elsewhere go with the first host alone."""
    shared = [host for host in shares if _on_one_kernel(host, setup)]
    own = {one.process for host in shared for one in shares[host].processes if not one.whose}
    told: set[int] = set()
    found = {}
    for host, share in shares.items():
        ones = share.processes
        if host in shared:
            ones = tuple(one for one in ones if one.process not in (told | own if one.whose else told))
            told |= {one.process for one in ones}
        found[host] = ones
    return found


CARRY = ("tunnel", "endpoint")
"""Parts of those processes that move the payload."""


def bits_per_cpu_second(shares: Mapping[str, HostShare], setup: TcpEnvironment, bps: float) -> float | None:
    """Payload bits for each second of CPU that the tunnel's and the endpoints' processes took on all hosts.

    None unless the programs of both endpoints are among them.
    """
    told = told_processes(shares, setup)
    busy = sum(one.busy for ones in told.values() for one in ones if one.role in CARRY)
    ends = [shares[host].of_role("endpoint") for host in ("client", "server") if host in shares]
    return bps / busy if len(ends) == 2 and all(ends) and busy > 0 else None


COLUMNS = ("client_tunnel", "client", "server_tunnel", "server")
"""Processes whose CPU a table of tunnels has: the far end of the tunnel is the server's, or the DUT's."""


def columns(shares: Mapping[str, HostShare]) -> dict[str, float]:
    """Shares of one core by COLUMNS, of those that were read."""
    far = "server" if "server" in shares and shares["server"].of_role("tunnel") else "dut"
    places = (("client", "tunnel"), ("client", "endpoint"), (far, "tunnel"), ("server", "endpoint"))
    found = (shares[host].of_role(role) if host in shares else None for host, role in places)
    return {name: one.busy for name, one in zip(COLUMNS, found, strict=True) if one is not None}


def mean_columns(runs: Sequence[Mapping[str, HostShare]]) -> dict[str, float]:
    """Over several flows or repetitions, of those columns that each of them has."""
    found = [columns(shares) for shares in runs]
    return {name: fmean(one[name] for one in found) for name in COLUMNS if found and all(name in one for one in found)}


def process_shares(leg: LegReadings, host: str) -> tuple[ProcessShare, ...]:
    """Shares of a host's processes; those that move payload are of the time it flowed, not all that was observed."""
    found = leg.processes.get(host)
    return tuple(_processes(found, min(found.over_s, leg.length_s or found.over_s))) if found is not None else ()


def _processes(found: Processes, flowed_s: float) -> Iterator[ProcessShare]:
    for one in found.took if flowed_s > 0 else ():
        over_s = flowed_s if one.role in CARRY else found.over_s
        waiting = None if one.waiting_s is None else one.waiting_s / over_s
        thread = None if one.busiest_thread_s is None else one.busiest_thread_s / over_s
        times = one.user_s / over_s, one.system_s / over_s, waiting
        yield ProcessShare(one.process, one.name, *times, one.cpus, thread, one.role, one.whose)


def _on_one_kernel(host: str, setup: TcpEnvironment) -> bool:
    """True if the host shares its kernel with the others, and so the numbers of processes and cores."""
    return setup.one_kernel and not (host == "dut" and setup.dut_is_guest)


def _own(host: str, cpus: Iterator[CoreShare], setup: TcpEnvironment) -> tuple[CoreShare, ...]:
    named = setup.cpus.get(host) if _on_one_kernel(host, setup) else None
    return tuple(one for one in cpus if not named or one.cpu in named)


def _cpus(before: Sequence[CpuTime], after: Sequence[CpuTime]) -> Iterator[CoreShare]:
    """Cores whose times advanced; others are left out."""
    old = {one.cpu: one for one in before}
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
    """Increase as a share of the time; None where it is not known, or went back."""
    return None if then_s is None or now_s is None or now_s < then_s else (now_s - then_s) / total_s


def _threads(before: Sequence[ThreadTime], after: Sequence[ThreadTime], length_s: float) -> Iterator[ThreadShare]:
    old = {one.thread: one for one in before}
    for now in after:
        then = old.get(now.thread, ThreadTime(now.thread, 0.0, 0.0, 0.0))
        user_s, system_s = now.user_s - then.user_s, now.system_s - then.system_s
        if length_s <= 0 or user_s < 0 or system_s < 0:
            continue
        waiting = _grown(then.waiting_s, now.waiting_s, length_s)
        yield ThreadShare(now.thread, user_s / length_s, system_s / length_s, waiting)
