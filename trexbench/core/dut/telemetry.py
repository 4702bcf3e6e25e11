"""A DUT's own counters: raw totals as they were read, and what could not be read and why. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from statistics import fmean
from typing import TypeVar

from ..errors import DutError
from ..load.sample import Phase
from ..means import of_known
from ..typed import Amount, Count
from .runtime import ThreadRuntime

T = TypeVar("T")


@dataclass(frozen=True)
class CpuTime:
    """One CPU's time since boot, in seconds."""

    cpu: Count  # its number on that host
    total_s: Amount  # all of it
    busy_s: Amount  # without idle, waiting for I/O, and time stolen by a hypervisor
    packet_s: Amount | None = None
    """Part of busy_s that the system accounts to packets (Linux: softirq); None: not known."""
    clock_hz: Amount | None = None  # clock rate at that moment, or as the config says; None: not known
    user_s: Amount | None = None  # part of busy_s in programs; None: not known
    system_s: Amount | None = None  # part of busy_s in the kernel, but for interrupts; None: not known


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
    queue: Count  # its number, from 0
    packets: Count  # total


QDISC_DROPS = "tx qdisc drops"
"""Name of the DropCount of the queueing discipline in which an interface's frames wait."""


@dataclass(frozen=True)
class DropCount:
    """A total of frames that the DUT reports as lost; no frame is in two of them."""

    name: str
    """The DUT's own, for example ``rx_missed_errors``."""
    count: Count  # frames, total
    port: Count | None = None  # the tester's, which the interface faces; None: the whole DUT's
    queue: Count | None = None  # the interface's receive queue; None: the whole interface's


@dataclass(frozen=True)
class Detail:
    """A total that no figure depends on but that may explain one, such as ``softnet_stat time_squeeze cpu1``."""

    name: str  # in the DUT's words
    count: Count  # total


POWER = "power"
"""Word for what a meter that did not answer leaves unknown."""


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
    cpus: tuple[CpuTime, ...] = ()  # times of the CPUs that forward, where that is known, else of all
    ports: tuple[PortCount, ...] = ()  # packets by interface
    queues: tuple[QueueCount, ...] = ()  # packets by receive queue
    drops: tuple[DropCount, ...] = ()  # frames that the DUT counted as lost
    threads: tuple[ThreadRuntime, ...] = ()  # VPP's, since its counters were last cleared
    clock_hz: Amount | None = None  # of the time stamp counter in which VPP counts cycles; None: no VPP
    power_w: Amount | None = None  # by the meter, at that moment or since its last reading; None: not known
    energy_j: Amount | None = None  # running total, of a meter that keeps a fine one
    perf_hz: Amount | None = None
    """Cycles per second of all CPUs that forward, as ``perf stat`` counted them in the interval, if permitted."""
    missing: tuple[Missing, ...] = ()  # what could not be read
    details: tuple[Detail, ...] = ()  # totals that may explain a figure


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

    moment: Moment
    """``start``, ``finish``: before and after a run, or a leg of TCP; ``begin``, ``end``: of an interval at one rate,
    or of idle pings; ``tick``: between."""
    t_s: Amount  # the run's clock when reading began
    took_s: Amount  # how long it took
    observation: Observation  # what was read
    phase: Phase | None = None  # part of the run that it belongs to; None: before or after the run, and in TCP
    trial: Count = 0  # number of the trial that it belongs to; 0: none


def mean_power(readings: Sequence[DutReading]) -> float | None:
    """Return the DUT's mean power over the readings, in W: by its energy counter, or without one the readings' mean."""
    total = [
        (reading.t_s if reading.observation.at_s is None else reading.observation.at_s, energy_j)
        for reading in readings
        if (energy_j := reading.observation.energy_j) is not None
    ]
    if not total:
        return of_known(fmean, (reading.observation.power_w for reading in readings))
    span_s, energy_j = total[-1][0] - total[0][0], total[-1][1] - total[0][1]
    # A counter that stands still has not been renewed meanwhile, one that falls began anew, one not read may have done
    # either. What such a meter says of power is since its last reading, the first time from before these.
    whole = len(total) == len(readings) and all(b[1] >= a[1] for a, b in pairwise(total))
    return energy_j / span_s if whole and span_s > 0 and energy_j > 0 else None


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
