"""A DUT's own counters: raw totals as they were read, and what could not be read and why. Pure."""

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
    """One CPU's time since boot, in seconds."""

    cpu: Count
    total_s: Amount  # since boot
    busy_s: Amount
    """Without idle, waiting for I/O, and time stolen by a hypervisor."""
    packet_s: Amount | None = None
    """Part of it that the system accounts to packets (Linux: softirq, FreeBSD: interrupt); None: not known."""
    clock_hz: Amount | None = None
    user_s: Amount | None = None
    """Parts of busy_s: in programs, in the kernel for them; the rest is interrupts."""
    system_s: Amount | None = None


@dataclass(frozen=True)
class PortCount:
    """Totals of the interface that faces the tester's ``port``; None: not reported."""

    port: Count  # the tester's port on the cable
    rx_packets: Count | None  # received by the DUT
    tx_packets: Count | None  # sent by the DUT


@dataclass(frozen=True)
class QueueCount:
    """Frames that one receive queue of the interface facing ``port`` has delivered."""

    port: Count  # the tester's port on the cable
    queue: Count
    packets: Count  # total


QDISC_DROPS = "tx qdisc drops"
"""Name of the DropCount of the queueing discipline in which an interface's frames wait."""


@dataclass(frozen=True)
class DropCount:
    """A total of frames that the DUT reports as lost; no frame is in two of them."""

    name: str
    """The DUT's own, for example ``rx_missed_errors``."""
    count: Count  # frames, total
    port: Count | None = None
    """The tester's, which the interface faces."""
    queue: Count | None = None


@dataclass(frozen=True)
class Detail:
    """A total that no figure depends on but that may explain one, such as ``softnet_stat time_squeeze cpu1``."""

    name: str
    count: Count


@dataclass(frozen=True)
class Missing:
    """Something that could not be read from the DUT, and why, in words."""

    what: str  # the counter
    reason: str  # why it could not be read


@dataclass(frozen=True)
class Observation:
    """One reading of the DUT; counts are totals."""

    at_s: Amount | None = None
    """The DUT's own clock when it read CPU times and packets, so that rates do not depend on the connection."""
    cpus: tuple[CpuTime, ...] = ()  # CPU times
    ports: tuple[PortCount, ...] = ()  # packets by port
    queues: tuple[QueueCount, ...] = ()  # packets by receive queue
    drops: tuple[DropCount, ...] = ()  # frames that the DUT counted as lost
    threads: tuple[ThreadRuntime, ...] = ()
    """VPP's, since its counters were last cleared."""
    clock_hz: Amount | None = None
    """Clock of the counter in which VPP counts cycles."""
    power_w: Amount | None = None  # at that moment
    energy_j: Amount | None = None  # total
    perf_hz: Amount | None = None
    """Cycles per second of all CPUs that forward, as ``perf stat`` counted them in the interval, if permitted."""
    missing: tuple[Missing, ...] = ()  # what could not be read
    details: tuple[Detail, ...] = ()  # counters beside the DUT's usual ones


class Moment(str, Enum):
    """The occasion of an observation."""

    START = "start"
    """In silence before the first frame; FINISH: after the last."""
    BEGIN = "begin"
    """Start of an interval at a constant rate; END: its end."""
    TICK = "tick"
    """During the ramp."""
    END = "end"
    FINISH = "finish"


@dataclass(frozen=True)
class DutReading:
    """An observation with its place in the run."""

    moment: Moment  # occasion of the reading
    t_s: Amount
    """The run's clock when reading began."""
    took_s: Amount  # how long it took
    observation: Observation  # what was read
    phase: Phase | None = None
    """Phase of the samples around it, like the trial; None in silence."""
    trial: Count = 0  # its number; 0 outside of trials


class Gathering:
    """Reads the parts of one reading: a part that fails is noted in ``missing`` and does not stop the others."""

    def __init__(self) -> None:
        self.missing: list[Missing] = []
        self._failure: DutError | None = None
        self._read = False

    def part(self, what: str, reader: Callable[[], T], otherwise: T) -> T:
        """Read one part; ``otherwise`` if its reader raises DutError."""
        try:
            value = reader()
        except DutError as error:
            self.missing.append(Missing(what, str(error)))
            self._failure = self._failure or error
            return otherwise
        self._read = True
        return value

    def require_any(self) -> None:
        """Raise the first reader's DutError if not one part could be read: the host itself does not answer."""
        if self._failure is not None and not self._read:
            raise self._failure
