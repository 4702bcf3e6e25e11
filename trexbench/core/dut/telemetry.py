"""A DUT's own counters: raw totals as they were read, and what could not be read and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from ..errors import DutError
from ..load.sample import Phase
from ..typed import Amount, Count
from .runtime import ThreadRuntime

T = TypeVar("T")


@dataclass(frozen=True)
class CpuTime:
    """One CPU's time since boot, in seconds. busy_s: without idle, waiting for I/O, and time stolen by a hypervisor.

    packet_s: of it, what the system accounts to packets (Linux: softirq, FreeBSD: interrupt); None: not known.
    clock_hz: of this CPU when it was read. user_s, system_s: of busy_s, in programs and in the kernel for them; the
    rest is interrupts.
    """

    cpu: Count
    total_s: Amount
    busy_s: Amount
    packet_s: Amount | None = None
    clock_hz: Amount | None = None
    user_s: Amount | None = None
    system_s: Amount | None = None


@dataclass(frozen=True)
class PortCount:
    """Totals of the interface that faces the tester's ``port``. None: not reported."""

    port: Count
    rx_packets: Count | None
    tx_packets: Count | None


@dataclass(frozen=True)
class QueueCount:
    """Frames that one receive queue of the interface facing ``port`` has delivered."""

    port: Count
    queue: Count
    packets: Count


QDISC_DROPS = "tx qdisc drops"
"""Name of the DropCount of the queueing discipline that an interface's frames wait in."""


@dataclass(frozen=True)
class DropCount:
    """A total of frames that the DUT says it lost. No frame is in two of them.

    name: as the DUT calls it, for example ``rx_missed_errors``. port: of the tester, which its interface faces.
    """

    name: str
    count: Count
    port: Count | None = None
    queue: Count | None = None


@dataclass(frozen=True)
class Detail:
    """A total that no figure depends on and that may explain one, such as ``softnet_stat time_squeeze cpu1``."""

    name: str
    count: Count


@dataclass(frozen=True)
class Missing:
    """Something that could not be read from the DUT, and why, in words."""

    what: str
    reason: str


@dataclass(frozen=True)
class Observation:
    """One reading of the DUT. threads: VPP's, since its counters were last cleared. All other counts are totals.

    at_s: the DUT's own clock when it read its CPU times and packets, so that rates do not depend on the connection.
    clock_hz: of the counter in which VPP counts cycles. power_w: at that moment; energy_j: a total, where the meter
    keeps one. perf_hz: cycles per second of all CPUs that forward, as ``perf stat`` counted them since the interval
    began, where it is permitted. details: those that the DUT reports.
    """

    at_s: Amount | None = None
    cpus: tuple[CpuTime, ...] = ()
    ports: tuple[PortCount, ...] = ()
    queues: tuple[QueueCount, ...] = ()
    drops: tuple[DropCount, ...] = ()
    threads: tuple[ThreadRuntime, ...] = ()
    clock_hz: Amount | None = None
    power_w: Amount | None = None
    energy_j: Amount | None = None
    perf_hz: Amount | None = None
    missing: tuple[Missing, ...] = ()
    details: tuple[Detail, ...] = ()


class Moment(str, Enum):
    """When an observation was made. START and FINISH: in silence, before the first and after the last frame.

    BEGIN and END: of an interval at a constant rate. TICK: during the ramp.
    """

    START = "start"
    BEGIN = "begin"
    TICK = "tick"
    END = "end"
    FINISH = "finish"


@dataclass(frozen=True)
class DutReading:
    """An observation with its place in the run. t_s: the run's clock when reading began; took_s: how long it took.

    phase and trial: of the samples around it, None in silence.
    """

    moment: Moment
    t_s: Amount
    took_s: Amount
    observation: Observation
    phase: Phase | None = None
    trial: Count = 0


class Gathering:
    """Reads the parts of one reading: a part that fails is named in ``missing`` and stops no other."""

    def __init__(self) -> None:
        self.missing: list[Missing] = []
        self._failure: DutError | None = None
        self._read = False

    def part(self, what: str, reader: Callable[[], T], otherwise: T) -> T:
        """One part, or ``otherwise`` where its reader raises DutError."""
        try:
            found = reader()
        except DutError as error:
            self.missing.append(Missing(what, str(error)))
            self._failure = self._failure or error
            return otherwise
        self._read = True
        return found

    def require_any(self) -> None:
        """DutError, the first reader's own, where not one part could be read: the host itself does not answer."""
        if self._failure is not None and not self._read:
            raise self._failure
