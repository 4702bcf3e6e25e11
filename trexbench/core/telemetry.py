"""What a DUT counts about itself: raw totals, as they were read, and what could not be read and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from math import inf
from typing import Any, TypeVar

from .efficiency import NodeRuntime, ThreadRuntime
from .sample import Phase

T = TypeVar("T")


@dataclass(frozen=True)
class CpuTime:
    """One CPU's time since boot, in seconds. busy_s: all but idle and waiting for I/O, what the host stole left out.

    packet_s: of it, what the system books on handling packets (Linux: softirq, FreeBSD: interrupt); None: not told.
    clock_hz: of this CPU when it was read.
    """

    cpu: int
    total_s: float
    busy_s: float
    packet_s: float | None = None
    clock_hz: float | None = None


@dataclass(frozen=True)
class PortCount:
    """Totals of the interface that faces the tester's ``port``. None: the DUT does not say."""

    port: int
    rx_packets: int | None
    tx_packets: int | None


@dataclass(frozen=True)
class QueueCount:
    """Frames that one receive queue of the interface facing ``port`` has delivered."""

    port: int
    queue: int
    packets: int


@dataclass(frozen=True)
class DropCount:
    """A total by which the DUT admits to have lost frames. No frame is in two of them.

    name: the DUT's own word, as in ``rx_missed_errors``. port: facing which port of the tester's it is counted.
    """

    name: str
    count: int
    port: int | None = None
    queue: int | None = None


@dataclass(frozen=True)
class Detail:
    """A total that decides no figure and explains some, as in ``softnet_stat time_squeeze cpu1``."""

    name: str
    count: int


@dataclass(frozen=True)
class Missing:
    """What was asked of the DUT and not learnt, and why, in words."""

    what: str
    reason: str


@dataclass(frozen=True)
class Observation:
    """One look at the DUT. threads: VPP's, since its counters were last cleared. All other counts are totals.

    at_s: the DUT's own clock when it read its CPU times and packets, so that rates depend on no way to it.
    clock_hz: of the counter that VPP counts its clocks in. power_w: at that moment; energy_j: a total, where the meter
    keeps one. perf_hz: cycles per second of all CPUs that forward, as ``perf stat`` counted them since the interval
    began, where it is allowed to. details: what the DUT does not tell of them is left out.
    """

    at_s: float | None = None
    cpus: tuple[CpuTime, ...] = ()
    ports: tuple[PortCount, ...] = ()
    queues: tuple[QueueCount, ...] = ()
    drops: tuple[DropCount, ...] = ()
    threads: tuple[ThreadRuntime, ...] = ()
    clock_hz: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    perf_hz: float | None = None
    missing: tuple[Missing, ...] = ()
    details: tuple[Detail, ...] = ()


class Moment(str, Enum):
    """When an observation was taken. START and FINISH: in silence, before the first and after the last frame.

    BEGIN and END: of a stretch at a constant rate. TICK: during the ramp.
    """

    START = "start"
    BEGIN = "begin"
    TICK = "tick"
    END = "end"
    FINISH = "finish"


@dataclass(frozen=True)
class Sighting:
    """An observation with its place in the run. t_s: the run's clock when reading began; took_s: how long it took.

    phase and trial: of the samples around it, None in silence.
    """

    moment: Moment
    t_s: float
    took_s: float
    observation: Observation
    phase: Phase | None = None
    trial: int = 0


def sighting_to_dict(sighting: Sighting) -> dict[str, Any]:
    """JSON values."""
    phase = sighting.phase.value if sighting.phase else None
    return {**asdict(sighting), "moment": sighting.moment.value, "phase": phase}


def sighting_from_dict(values: Mapping[str, Any]) -> Sighting:
    """KeyError, TypeError or ValueError for what is no sighting. Those of before there were details have none."""
    seen = values["observation"]
    parts: dict[str, Any] = {
        "cpus": tuple(_made(CpuTime, one) for one in seen["cpus"]),
        "ports": tuple(_made(PortCount, one) for one in seen["ports"]),
        "queues": tuple(_made(QueueCount, one) for one in seen["queues"]),
        "drops": tuple(_made(DropCount, one) for one in seen["drops"]),
        "threads": tuple(_thread(one) for one in seen["threads"]),
        "missing": tuple(_made(Missing, one) for one in seen["missing"]),
        "details": tuple(_made(Detail, one) for one in seen.get("details", ())),
    }
    phase = None if values["phase"] is None else Phase(values["phase"])
    return _made(
        Sighting,
        {
            **values,
            "moment": Moment(values["moment"]),
            "phase": phase,
            "observation": _made(Observation, {**seen, **parts}),
        },
    )


def _thread(values: Mapping[str, Any]) -> ThreadRuntime:
    return _made(ThreadRuntime, {**values, "nodes": tuple(_made(NodeRuntime, node) for node in values["nodes"])})


def _made(kind: type[T], values: Mapping[str, Any]) -> T:
    """One of these of a mapping's values, where every number is one, finite and not below 0, and every text a text."""
    known = _types(kind)
    for name, value in values.items():
        own, types = type(value), known[name]
        if (types is not None and own not in types) or ((own is int or own is float) and not 0 <= value < inf):
            raise ValueError(f"{kind.__name__}: {name} is {value!r}")
    return kind(**values)


def _types(kind: type) -> dict[str, frozenset[type] | None]:
    """What each field of this dataclass may be; None: that is not looked at. Asked for every node of every look."""
    if kind not in _TYPES:
        _TYPES[kind] = {field.name: _types_of(str(field.type)) for field in fields(kind)}
    return _TYPES[kind]


_TYPES: dict[type, dict[str, frozenset[type] | None]] = {}
_NAMED: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,), "None": (type(None),)}


def _types_of(annotation: str) -> frozenset[type] | None:
    words = annotation.split(" | ")
    known = {"int", "float", "str"} & set(words)
    return frozenset(kind for word in words for kind in _NAMED[word]) if known else None
