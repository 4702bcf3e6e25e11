"""Counters that a simulated router's workers keep of themselves, from which telemetry is rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class QueueCounters:
    """One receive queue's frames since the router's start: ``packets`` were fetched, ``drops`` found the ring full."""

    port: int
    queue: int
    packets: float = 0.0
    drops: float = 0.0


@dataclass
class WorkerCounters:
    """One worker's totals since the router's start; for rates, take differences.

    packets: frames forwarded, in ``vectors`` polls that found frames and ``busy_clocks`` clocks (forwarding them, all
    nodes but the polling of the NIC when nothing was there). idle_polls: polls that found nothing, which took
    idle_clocks. time_s: the router's own time since its start. clock_hz: of this worker. queues: those it polls, in
    the order of registration.
    """

    name: str
    packets: float = 0.0
    vectors: float = 0.0
    busy_clocks: float = 0.0
    idle_polls: float = 0.0
    idle_clocks: float = 0.0
    time_s: float = 0.0
    clock_hz: float = 0.0
    queues: Sequence[QueueCounters] = ()
