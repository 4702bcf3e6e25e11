"""How long frames take from port to port, at shares of the throughput that the run found.

RFC 2544 (26.2) measures latency at the throughput; so close to the limit it says how long a queue is. Here every load
is a trial of its own after the run: tagged frames among the others, silence, then the generator's counts of the tagged.
The tester's own time from its clock to the wire and back is part of every figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from statistics import fmean
from typing import Any

from ..load.plan import LATENCY_LOADS, Direction, Plan
from ..load.sample import LATENCY_PHASES, LatencyCounters, Phase, Sample
from ..units import format_pps, format_share
from .blame import misses
from .model import Caveat
from .trials import find_held

TAGGED_PPS, TAGGED_SHARE = 1000.0, 0.1
"""Tagged frames per second and direction, at most; and of all frames, at most."""
HISTORY_LOAD = 0.5
"""The share of the throughput whose latency has a history: far from idle, and from a queue that fills by chance."""


@dataclass(frozen=True)
class Latency:
    """One direction at one load; times in seconds, rates in frames per second of that direction.

    share: of the throughput found. sent_pps, loss: of all frames, tagged or not; ierrors: those that the tester's own
    port lost. lossy: more than the plan's threshold. sent, received: tagged frames. mean_s: of the generator's own
    averages, one a sample; p50_s, p99_s: so many did not take longer (upper ends of its buckets, which have one
    significant digit); jitter_s: RFC 3550's, at the end. All are None where no tagged frame came back, or nothing was
    told of their times.
    """

    direction: Direction
    share: float
    trial: int
    offered_pps: float
    sent_pps: float
    loss: float | None
    lossy: bool
    ierrors: int
    sent: int
    received: int
    mean_s: float | None = None
    min_s: float | None = None
    max_s: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    jitter_s: float | None = None
    out_of_order: int = 0
    duplicate: int = 0

    @property
    def short(self) -> bool:
        """The generator did not send this load."""
        return misses(self.offered_pps, self.sent_pps)

    @property
    def history_s(self) -> float | None:
        """The mean, if it is that of a DUT at this load: none under loss, nor where the generator fell short."""
        return None if self.lossy or self.short else self.mean_s

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"direction": str(self.direction), "history_s": self.history_s}


def tagged_pps(offered_pps: float) -> float:
    """How many of the frames offered in one direction are tagged."""
    return min(TAGGED_PPS, TAGGED_SHARE * offered_pps)


def find_latencies(plan: Plan, samples: Sequence[Sample]) -> tuple[Latency, ...]:
    """Every direction at every load that was measured to its end, loads ascending."""
    ended = sorted({sample.trial for sample in samples if sample.phase is Phase.LATENCY_DRAIN})
    return tuple(_latency(plan, samples, trial, direction) for trial in ended for direction in plan.directions)


def find_latency_caveats(latencies: Sequence[Latency]) -> tuple[Caveat, ...]:
    """What casts doubt on these figures."""
    found = []
    for one in latencies:
        where = f"latency of {one.direction} at {100 * one.share:g} % of the throughput"
        if one.mean_s is None:
            seen = f"{one.received} tagged frames came back, but the generator told no average of their times"
            text = seen if one.received else f"no tagged frame came back of {one.sent}"
            found.append(Caveat("no-latency", f"{where}: {text}"))
        elif one.lossy:
            whose = f" ({one.ierrors} frames by the tester's own port)" if one.ierrors else ""
            text = (
                f"{where}: {format_share(one.loss or 0.0)} of the frames were lost{whose}, so it is that of full queues"
            )
            found.append(Caveat("latency-under-loss", text))
        if one.short:
            text = f"{where}: the generator sent {format_pps(one.sent_pps)} of {format_pps(one.offered_pps)} asked"
            found.append(Caveat("latency-load", text))
        if one.out_of_order or one.duplicate:
            text = f"{where}: of {one.received} tagged frames {one.out_of_order} came out of order"
            text += f", {one.duplicate} twice" if one.duplicate else ""
            found.append(Caveat("reordered", text))
    return tuple(found)


def history_latency(latencies: Sequence[Latency]) -> float | None:
    """The mean that has a history, of the direction that is worst off.

    None also where one direction has none: the other's alone would look like a change.
    """
    told = [one.history_s for one in latencies if one.share == HISTORY_LOAD]
    means = [mean for mean in told if mean is not None]
    return max(means, default=None) if len(means) == len(told) else None


def bucket_end_us(low_us: int) -> int:
    """Where the bucket of one significant digit that begins here ends: 0 -> 10, 20 -> 30, 900 -> 1000."""
    digits = max(1, len(str(low_us)) - 1)
    return low_us + int("1" + digits * "0")


def quantile_s(counters: LatencyCounters, share: float) -> float | None:
    """So long took this share of the frames at most; the largest time seen where the buckets do not hold so many."""
    if not counters.received:
        return None
    wanted, seen = ceil(share * counters.received), 0
    longest = counters.max_s if counters.max_s is not None else float("inf")
    for low_us, count in sorted(counters.histogram.items()):
        seen += count
        if seen >= wanted:
            # A maximum below the bucket leaves out what is in it: TRex's does the first ten frames.
            end_s = bucket_end_us(low_us) / 1e6
            return end_s if longest < low_us / 1e6 else min(end_s, longest)
    return counters.max_s


def _latency(plan: Plan, samples: Sequence[Sample], trial: int, direction: Direction) -> Latency:
    held, after, window, offered_pps, sent_pps = find_held(samples, direction, LATENCY_PHASES, trial)
    last = after.reading.latency.get(direction.tx) or LatencyCounters(0, 0)
    # The first reading still holds what a start brings with it.
    looks = [s.reading.latency[direction.tx] for s in held[1:] or held if direction.tx in s.reading.latency]
    known = _averages(looks) or _averages([last])
    return Latency(
        direction=direction,
        share=LATENCY_LOADS[trial - 1],
        trial=trial,
        offered_pps=offered_pps,
        sent_pps=sent_pps,
        loss=window.loss,
        lossy=window.loss is not None and window.loss > plan.loss_threshold,
        ierrors=window.ierrors,
        sent=last.sent,
        received=last.received,
        mean_s=fmean(known) if known else None,
        min_s=last.min_s if known else None,
        max_s=last.max_s if known else None,
        p50_s=quantile_s(last, 0.5) if known else None,
        p99_s=quantile_s(last, 0.99) if known else None,
        jitter_s=last.jitter_s if known else None,
        out_of_order=last.out_of_order,
        duplicate=last.duplicate,
    )


def _averages(looks: Iterable[LatencyCounters]) -> list[float]:
    return [one.average_s for one in looks if one.average_s is not None and one.received]
