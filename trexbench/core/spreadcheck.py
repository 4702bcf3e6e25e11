"""What the queues and workers really got, beside what was predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .efficiency import packets_of
from .flowspread import FlowSpread
from .telemetry import Observation
from .units import format_share
from .verdict import Caveat

TOLERANCE = 0.02
"""Between the two shares. What else arrives, and a round of the flows that is not complete, are far less."""
SAMPLED = 0.03
"""The same, where the prediction is from a sample of the flows."""
MIN_PACKETS = 10_000
"""Fewer say nothing of how a load spreads."""
TENTH = 0.001
DROPPED = 0.001
"""Queues that drop more than this deliver other shares than they are sent."""


@dataclass(frozen=True)
class Compared:
    """One queue (of a port's frames) or worker (of all): packets of the interval, their share, the predicted one."""

    name: str
    packets: int
    measured: float
    predicted: float | None

    @property
    def deviation(self) -> float | None:
        return None if self.predicted is None else self.measured - self.predicted


@dataclass(frozen=True)
class SpreadCheck:
    """basis: what was counted, ``queues``, ``workers`` or ``nothing``."""

    basis: str
    compared: tuple[Compared, ...] = ()
    caveats: tuple[Caveat, ...] = ()

    @property
    def sentence(self) -> str:
        """All in one line."""
        told = [one for one in self.compared if one.deviation is not None]
        if not told:
            return "the spread of the flows was not compared with a prediction"
        worst = max(told, key=lambda one: abs(one.deviation or 0.0))
        codes = {caveat.code for caveat in self.caveats}
        held = "not as predicted" if codes & {"spread-deviates", "spread-while-losing"} else "as predicted"
        if abs(worst.deviation or 0.0) < TENTH:
            return f"the flows spread {held}, to a tenth of a percent"
        got, foretold = format_share(worst.measured), format_share(worst.predicted or 0.0)
        return f"the flows spread {held}: {worst.name} got {got} in place of {foretold}, which is most off"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "basis": self.basis,
            "sentence": self.sentence,
            "compared": [{**asdict(one), "deviation": one.deviation} for one in self.compared],
            "caveats": [asdict(caveat) for caveat in self.caveats],
        }


def compare_spread(prediction: FlowSpread, before: Observation, after: Observation) -> SpreadCheck:
    """The queues' counters between two looks, or where the DUT has none its threads' since they were last cleared."""
    counted, set_back = _queue_packets(before, after)
    caveats = [Caveat("spread-set-back", f"{name}: its counter went back meanwhile") for name in set_back]
    if counted and not set_back:
        basis, compared = "queues", tuple(_of_queues(prediction, counted))
    else:
        workers = _worker_packets(after)
        basis, compared = ("workers", tuple(_of_workers(prediction, workers))) if workers else ("nothing", ())
    if basis == "nothing":
        text = (
            "the DUT counts packets neither by queue nor by worker: whether the flows spread as predicted is not known"
        )
        caveats.append(Caveat("spread-unseen", text))
    elif not compared:
        few = f"fewer than {MIN_PACKETS} packets came meanwhile: they say nothing of how the flows spread"
        caveats.append(Caveat("spread-unseen", few))
    caveats += _deviations(prediction, compared, _dropped(before, after))
    return SpreadCheck(basis, compared, tuple(caveats))


def _queue_packets(before: Observation, after: Observation) -> tuple[dict[tuple[int, int], int], list[str]]:
    """Packets of each queue between the two, if both tell of the same queues; and those whose counter went back."""
    then = {(one.port, one.queue): one.packets for one in before.queues}
    now = {(one.port, one.queue): one.packets for one in after.queues}
    if now.keys() != then.keys():
        return {}, []
    found = {key: count - then[key] for key, count in now.items()}
    return found, [_name(*key) for key, count in found.items() if count < 0]


def _worker_packets(after: Observation) -> dict[str, int]:
    """Packets of each thread of VPP, the main one only where it is alone or has some; empty: not counted."""
    counts = {thread.name or "vpp_main": packets_of(thread) for thread in after.threads}
    known = {name: count for name, count in counts.items() if count is not None}
    if len(known) < len(counts):
        return {}
    return {name: count for name, count in known.items() if count or name != "vpp_main" or len(known) == 1}


def _of_queues(prediction: FlowSpread, counted: Mapping[tuple[int, int], int]) -> Iterator[Compared]:
    """Ports that send, as far as they had traffic."""
    for port in prediction.ports:
        mine = {queue: count for (of, queue), count in counted.items() if of == port.port}
        foretold = {queue.queue: queue.share for queue in prediction.of(port.port)}
        if (total := sum(mine.values())) < MIN_PACKETS:
            continue
        for queue in sorted({*mine, *(queue for queue, share in foretold.items() if share)}):
            count = mine.get(queue, 0)
            yield Compared(_name(port.port, queue), count, count / total, _foretold(foretold, queue))


def _foretold(shares: Mapping[int, float | None], queue: int) -> float | None:
    """A queue that was not named gets nothing, where all the others' shares are known."""
    return shares.get(queue, None if not shares or None in shares.values() else 0.0)


def _of_workers(prediction: FlowSpread, counted: Mapping[str, int]) -> Iterator[Compared]:
    foretold = {load.worker: load.share for load in prediction.workers}
    unplaced = any(queue.worker is None and queue.share != 0 for queue in prediction.queues)
    if (total := sum(counted.values())) < MIN_PACKETS:
        return
    for worker in dict.fromkeys([*counted, *(worker for worker, share in foretold.items() if share)]):
        share = foretold.get(worker, None if unplaced or not foretold or None in foretold.values() else 0.0)
        yield Compared(worker, counted.get(worker, 0), counted.get(worker, 0) / total, share)


def _deviations(prediction: FlowSpread, compared: Sequence[Compared], dropped: int) -> Iterator[Caveat]:
    tolerance = TOLERANCE if all(port.exact for port in prediction.ports) else SAMPLED
    off = [one for one in compared if one.deviation is not None and abs(one.deviation) > tolerance]
    losing = dropped > DROPPED * sum(one.packets for one in compared)
    for one in off:
        text = (
            f"{one.name} got {format_share(one.measured)} of the packets, {format_share(one.predicted or 0.0)} foretold"
        )
        why = f": the DUT dropped {dropped} packets meanwhile, and what a queue delivers is not what it was sent"
        other = ": the hash, its table or the placement of the queues is not what was read"
        yield Caveat("spread-while-losing" if losing else "spread-deviates", text + (why if losing else other))


def _dropped(before: Observation, after: Observation) -> int:
    then = {(one.name, one.port, one.queue): one.count for one in before.drops}
    return sum(max(0, one.count - then.get((one.name, one.port, one.queue), one.count)) for one in after.drops)


def _name(port: int, queue: int) -> str:
    return f"port {port} queue {queue}"
