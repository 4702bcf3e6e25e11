"""Compare the measured share of each queue or worker with the predicted one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..units import format_share
from ..verdict.parts import RunWarning
from .flowspread import FlowSpread
from .runtime import packets_of
from .telemetry import Observation

TOLERANCE = 0.02
"""Between the two shares. Other traffic, and an incomplete round of the flows, matter far less."""
SAMPLED = 0.03
"""Tolerance if the prediction comes from a sample of the flows."""
MIN_PACKETS = 10_000
"""Fewer say nothing about how a load spreads."""
TENTH = 0.001
DROPPED = 0.001
"""If the DUT drops more than this share, its queues deliver less than they were sent."""


@dataclass(frozen=True)
class Compared:
    """One queue or worker in the hold that lost least."""

    name: str  # ``port 0 queue 1``, or the worker's
    packets: int  # in that hold
    measured: float  # share of its port's packets, or of all
    predicted: float | None  # share; None: not known
    deviation: float | None  # measured less predicted share


@dataclass(frozen=True)
class SpreadCheck:
    """Measured and predicted shares, and warnings."""

    basis: str  # counters used: ``queues``, ``workers`` or ``nothing``
    compared: tuple[Compared, ...] = ()
    warnings: tuple[RunWarning, ...] = ()  # also in the document's

    @property
    def sentence(self) -> str:
        """The comparison in one line."""
        known = [share for share in self.compared if share.deviation is not None]
        if not known:
            return "the spread of the flows was not compared with a prediction"
        worst = max(known, key=lambda share: abs(share.deviation or 0.0))
        codes = {warning.code for warning in self.warnings}
        how = "not as predicted" if codes & {"spread-deviates", "spread-while-losing"} else "as predicted"
        if abs(worst.deviation or 0.0) < TENTH:
            return f"the flows spread {how}, to a tenth of a percent"
        got, predicted = format_share(worst.measured), format_share(worst.predicted or 0.0)
        return f"the flows spread {how}: the largest difference is {worst.name} with {got} instead of {predicted}"

    def to_dict(self) -> dict[str, Any]:
        return {**msgspec.to_builtins(self), "sentence": self.sentence}


def compare_spread(prediction: FlowSpread, before: Observation, after: Observation) -> SpreadCheck:
    """Compare by the queues' counters between two readings; if the DUT has none, by its threads' counters."""
    then = {(queue.port, queue.queue): queue.packets for queue in before.queues}
    now = {(queue.port, queue.queue): queue.packets for queue in after.queues}
    counted = {key: count - then[key] for key, count in now.items()} if now.keys() == then.keys() else {}
    warnings = [
        RunWarning("spread-set-back", f"{_name(*key)}: its counter went back during the interval")
        for key, count in counted.items()
        if count < 0
    ]
    if counted and not warnings:
        basis, compared = "queues", tuple(_compare_queues(prediction, counted))
    else:
        threads = {thread.name or "vpp_main": packets_of(thread) for thread in after.threads}
        # the main one only if it is alone, or has packets
        workers = {name: n for name, n in threads.items() if n or name != "vpp_main" or len(threads) == 1}
        compared = tuple(_compare(workers, {load.worker: load.share for load in prediction.workers}))
        basis = "workers" if workers else "nothing"
    if not compared:
        unseen = "the DUT counts packets neither by queue nor by worker: the predicted spread cannot be checked"
        few = f"fewer than {MIN_PACKETS} packets in the interval: too few to tell how the flows spread"
        warnings.append(RunWarning("spread-unseen", unseen if basis == "nothing" else few))
    drops = {(drop.name, drop.port, drop.queue): drop.count for drop in before.drops}
    dropped = sum(max(0, one.count - drops.get((one.name, one.port, one.queue), one.count)) for one in after.drops)
    warnings += _deviations(prediction, compared, dropped)
    return SpreadCheck(basis, compared, tuple(warnings))


def _compare_queues(prediction: FlowSpread, counted: Mapping[tuple[int, int], int]) -> Iterator[Compared]:
    """Compare every queue of the ports that had traffic."""
    for port in prediction.ports:
        mine = {queue: count for (of, queue), count in counted.items() if of == port.port}
        predicted = {queue.queue: queue.share for queue in prediction.of(port.port)}
        every = sorted({*mine, *(queue for queue, share in predicted.items() if share)})
        named = {_name(port.port, queue): mine.get(queue, 0) for queue in every}
        yield from _compare(named, {_name(port.port, queue): share for queue, share in predicted.items()})


def _compare(counted: Mapping[str, int], predicted: Mapping[str, float | None]) -> Iterator[Compared]:
    """Compare by name. A queue or worker without a prediction should get nothing, if all shares are known."""
    unnamed = None if not predicted or None in predicted.values() else 0.0
    if (total := sum(counted.values())) < MIN_PACKETS:
        return
    for name in dict.fromkeys([*counted, *(name for name, share in predicted.items() if share)]):
        count, share = counted.get(name, 0), predicted.get(name, unnamed)
        yield Compared(name, count, count / total, share, None if share is None else count / total - share)


def _deviations(prediction: FlowSpread, compared: Sequence[Compared], dropped: int) -> Iterator[RunWarning]:
    tolerance = TOLERANCE if all(port.exact for port in prediction.ports) else SAMPLED
    off = [share for share in compared if share.deviation is not None and abs(share.deviation) > tolerance]
    losing = dropped > DROPPED * sum(share.packets for share in compared)
    for share in off:
        got, predicted = format_share(share.measured), format_share(share.predicted or 0.0)
        text = f"{share.name} got {got} of the packets instead of {predicted}"
        why = f": the DUT dropped {dropped} packets meanwhile, so a queue delivers less than it was sent"
        other = ": the hash, its table or the placement of the queues is not what was read"
        yield RunWarning("spread-while-losing" if losing else "spread-deviates", text + (why if losing else other))


def _name(port: int, queue: int) -> str:
    return f"port {port} queue {queue}"
