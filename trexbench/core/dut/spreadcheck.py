"""The measured share of each queue or worker beside the predicted one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..units import format_share
from ..verdict.model import RunWarning
from .flowspread import FlowSpread
from .runtime import packets_of
from .telemetry import Observation

TOLERANCE = 0.02
"""Between the two shares. Other traffic, and an incomplete round of the flows, matter far less."""
SAMPLED = 0.03
"""Tolerance where the prediction comes from a sample of the flows."""
MIN_PACKETS = 10_000
"""Fewer say nothing about how a load spreads."""
TENTH = 0.001
DROPPED = 0.001
"""If the DUT drops more than this share, what its queues deliver is not what they were sent."""


@dataclass(frozen=True)
class Compared:
    """One queue or worker in the interval."""

    name: str
    packets: int
    measured: float
    """Share of its port's packets, or of all."""
    predicted: float | None
    deviation: float | None


@dataclass(frozen=True)
class SpreadCheck:
    """basis: what was counted, ``queues``, ``workers`` or ``nothing``."""

    basis: str
    compared: tuple[Compared, ...] = ()
    warnings: tuple[RunWarning, ...] = ()

    @property
    def sentence(self) -> str:
        """The comparison in one line."""
        known = [one for one in self.compared if one.deviation is not None]
        if not known:
            return "the spread of the flows was not compared with a prediction"
        worst = max(known, key=lambda one: abs(one.deviation or 0.0))
        codes = {warning.code for warning in self.warnings}
        how = "not as predicted" if codes & {"spread-deviates", "spread-while-losing"} else "as predicted"
        if abs(worst.deviation or 0.0) < TENTH:
            return f"the flows spread {how}, to a tenth of a percent"
        got, predicted = format_share(worst.measured), format_share(worst.predicted or 0.0)
        return f"the flows spread {how}: the largest difference is {worst.name} with {got} instead of {predicted}"

    def to_dict(self) -> dict[str, Any]:
        return {**msgspec.to_builtins(self), "sentence": self.sentence}


def compare_spread(prediction: FlowSpread, before: Observation, after: Observation) -> SpreadCheck:
    """From the queues' counters between two readings; where the DUT has none, from its threads' counters."""
    counted, set_back = _queue_packets(before, after)
    warnings = [
        RunWarning("spread-set-back", f"{name}: its counter went back during the interval") for name in set_back
    ]
    if counted and not set_back:
        basis, compared = "queues", tuple(_of_queues(prediction, counted))
    else:
        workers = _worker_packets(after)
        compared = tuple(_compared(workers, {load.worker: load.share for load in prediction.workers}))
        basis = "workers" if workers else "nothing"
    if not compared:
        unseen = "the DUT counts packets neither by queue nor by worker: the predicted spread cannot be checked"
        few = f"fewer than {MIN_PACKETS} packets in the interval: too few to tell how the flows spread"
        warnings.append(RunWarning("spread-unseen", unseen if basis == "nothing" else few))
    then = {(one.name, one.port, one.queue): one.count for one in before.drops}
    dropped = sum(max(0, one.count - then.get((one.name, one.port, one.queue), one.count)) for one in after.drops)
    warnings += _deviations(prediction, compared, dropped)
    return SpreadCheck(basis, compared, tuple(warnings))


def _queue_packets(before: Observation, after: Observation) -> tuple[dict[tuple[int, int], int], list[str]]:
    """Packets of each queue between the two readings, if both have the same queues; and queues that went back."""
    then = {(one.port, one.queue): one.packets for one in before.queues}
    now = {(one.port, one.queue): one.packets for one in after.queues}
    if now.keys() != then.keys():
        return {}, []
    found = {key: count - then[key] for key, count in now.items()}
    return found, [_name(*key) for key, count in found.items() if count < 0]


def _worker_packets(after: Observation) -> dict[str, int]:
    """Packets of each VPP thread, of the main one only if it is alone or has some; empty: not counted."""
    counts = {thread.name or "vpp_main": packets_of(thread) for thread in after.threads}
    return {name: count for name, count in counts.items() if count or name != "vpp_main" or len(counts) == 1}


def _of_queues(prediction: FlowSpread, counted: Mapping[tuple[int, int], int]) -> Iterator[Compared]:
    """Every queue of the ports that had traffic."""
    for port in prediction.ports:
        mine = {queue: count for (of, queue), count in counted.items() if of == port.port}
        predicted = {queue.queue: queue.share for queue in prediction.of(port.port)}
        every = sorted({*mine, *(queue for queue, share in predicted.items() if share)})
        named = {_name(port.port, queue): mine.get(queue, 0) for queue in every}
        yield from _compared(named, {_name(port.port, queue): share for queue, share in predicted.items()})


def _compared(counted: Mapping[str, int], predicted: Mapping[str, float | None]) -> Iterator[Compared]:
    """A queue or worker without a prediction is expected to get nothing, if all shares are known."""
    unnamed = None if not predicted or None in predicted.values() else 0.0
    if (total := sum(counted.values())) < MIN_PACKETS:
        return
    for name in dict.fromkeys([*counted, *(name for name, share in predicted.items() if share)]):
        count, share = counted.get(name, 0), predicted.get(name, unnamed)
        yield Compared(name, count, count / total, share, None if share is None else count / total - share)


def _deviations(prediction: FlowSpread, compared: Sequence[Compared], dropped: int) -> Iterator[RunWarning]:
    tolerance = TOLERANCE if all(port.exact for port in prediction.ports) else SAMPLED
    off = [one for one in compared if one.deviation is not None and abs(one.deviation) > tolerance]
    losing = dropped > DROPPED * sum(one.packets for one in compared)
    for one in off:
        got, predicted = format_share(one.measured), format_share(one.predicted or 0.0)
        text = f"{one.name} got {got} of the packets instead of {predicted}"
        why = f": the DUT dropped {dropped} packets meanwhile, so a queue delivers less than it was sent"
        other = ": the hash, its table or the placement of the queues is not what was read"
        yield RunWarning("spread-while-losing" if losing else "spread-deviates", text + (why if losing else other))


def _name(port: int, queue: int) -> str:
    return f"port {port} queue {queue}"
