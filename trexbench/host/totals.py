"""Counts of a host since its boot, whichever system it runs, and which counters could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ..config.model import DutConfig
from ..core.dut.telemetry import CpuTime, Detail, DropCount, Missing, Observation, PortCount, QueueCount
from ..core.errors import DutError

T = TypeVar("T")
Counts = Mapping[str, Mapping[str, int]]
"""Counters of each interface, in the host's own words."""


@dataclass(frozen=True)
class HostTotals:
    """One reading of a host's counters; what it does not tell is left out, and ``missing`` says why.

    at_s: the host's clock when it read CPU times and packets. packets: received and sent, by interface. queues: packets
    of each receive queue, by interface. links: counters of each interface. ip: of the IP layer. details: interrupts and
    the like.
    """

    at_s: float | None
    cpus: tuple[CpuTime, ...]
    packets: Mapping[str, tuple[int | None, int | None]]
    queues: Mapping[str, Mapping[int, int]]
    links: Counts
    ip: Mapping[str, int]
    details: tuple[Detail, ...]
    missing: tuple[Missing, ...]

    def observation(self, config: DutConfig, drops: Iterable[DropCount]) -> Observation:
        """Return the counts by the tester's port that each interface is connected to."""
        ports = [(port.tester, port.interface) for port in config.ports]
        queues = [(port, queue, n) for port, name in ports for queue, n in self.queues.get(name, {}).items()]
        return Observation(
            at_s=self.at_s,
            cpus=self.cpus,
            ports=tuple(PortCount(port, *self.packets[name]) for port, name in ports if name in self.packets),
            queues=tuple(QueueCount(*one) for one in queues),
            drops=tuple(drops),
            missing=self.missing,
            details=self.details,
        )


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
