"""Latency from port to port, at shares of the throughput that the run found.

RFC 2544 (26.2) measures latency at the throughput; so close to the limit it mostly measures the length of a queue. Here
every load is a trial of its own after the run: tagged frames among the others, a drain, then the generator's counts of
the tagged ones. Every figure includes the tester's own time, from its clock to the wire and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from statistics import fmean, median
from typing import Any

from ..load.plan import LATENCY_LOADS, Direction, Plan
from ..load.sample import LATENCY_PHASES, LatencyCounters, Phase, Sample, by_trial
from ..load.windows import RunWindows
from ..units import format_pps, format_share
from .blame import misses
from .parts import RunWarning
from .path import find_path
from .settle import find_held

TAGGED_PPS, TAGGED_SHARE = 1000.0, 0.1
"""The most tagged frames per second and direction; and the largest share of all frames."""
CUT_S = 1e-6
"""TRex cuts its maximum to whole microseconds: up to so much is missing."""
HISTORY_LOAD = median(LATENCY_LOADS)
"""The share of the throughput whose latency is followed over the nights: far from idle, and from full queues."""


@dataclass(frozen=True)
class Latency:
    """Latency of one direction at one load. Times are None where no tagged frame came back, or none was timed.

    Percentiles are upper ends of the generator's buckets, which have one significant digit.
    """

    direction: Direction  # as ``0->1``
    share: float  # load, of the throughput found: 0.1, 0.5 or 0.9
    trial: int  # number of the load, from 1
    offered_pps: float  # asked for
    sent_pps: float  # all frames, tagged or not
    loss: float | None  # share of all frames
    lossy: bool  # the loss is above the plan's threshold, beyond what the path loses at every rate
    ierrors: int  # frames that the tester's own port lost
    sent: int  # tagged frames
    received: int  # tagged frames
    mean_s: float | None = None  # of the generator's averages, one per sample
    min_s: float | None = None  # the generator's, of this load
    max_s: float | None = None  # the generator's, of this load
    p50_s: float | None = None  # half of the frames took no longer
    p99_s: float | None = None  # 99 % of the frames took no longer
    jitter_s: float | None = None  # RFC 3550, at the end
    out_of_order: int = 0  # tagged frames that came after a later one
    duplicate: int = 0  # tagged frames that came again

    @property
    def short(self) -> bool:
        """True if the generator sent less than this load."""
        return misses(self.offered_pps, self.sent_pps)

    @property
    def history_s(self) -> float | None:
        """The mean, if it is the DUT's at this load: None under loss, and where the generator fell short."""
        return None if self.lossy or self.short else self.mean_s

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"direction": str(self.direction), "history_s": self.history_s}


def tagged_pps(offered_pps: float) -> float:
    """Rate of tagged frames among those offered in one direction."""
    return min(TAGGED_PPS, TAGGED_SHARE * offered_pps)


def find_latencies(plan: Plan, samples: Sequence[Sample]) -> tuple[Latency, ...]:
    """Every direction's latency at every load that was held to its end, loads ascending."""
    measured, loads = RunWindows(plan, samples), by_trial(samples, Phase.LATENCY_DRAIN)
    return tuple(_latency(measured, trial, direction) for trial in loads for direction in plan.directions)


def find_latency_warnings(latencies: Sequence[Latency]) -> Iterator[RunWarning]:
    for latency in latencies:
        where = f"latency of {latency.direction} at {100 * latency.share:g} % of the throughput"
        if latency.mean_s is None:
            seen = f"{latency.received} tagged frames came back, but the generator reports no average of their times"
            text = seen if latency.received else f"none of {latency.sent} tagged frames came back"
            yield RunWarning("no-latency", f"{where}: {text}")
        elif latency.lossy:
            whose = f" ({latency.ierrors} frames by the tester's own port)" if latency.ierrors else ""
            text = f"{format_share(latency.loss or 0.0)} of the frames were lost{whose}: latency of full queues"
            yield RunWarning("latency-under-loss", f"{where}: {text}")
        if latency.short:
            sent, asked = format_pps(latency.sent_pps), format_pps(latency.offered_pps)
            yield RunWarning("latency-load", f"{where}: the generator sent {sent}, asked for {asked}")
        if latency.out_of_order or latency.duplicate:
            text = f"{where}: of {latency.received} tagged frames {latency.out_of_order} came out of order"
            text += f", {latency.duplicate} twice" if latency.duplicate else ""
            yield RunWarning("reordered", text)


def history_latency(latencies: Sequence[Latency]) -> float | None:
    """The worst direction's mean, for the nights; None where one has none, as the other's would look like a change."""
    means = [latency.history_s for latency in latencies if latency.share == HISTORY_LOAD]
    return None if None in means else max((mean for mean in means if mean is not None), default=None)


def bucket_end_us(low_us: int) -> int:
    """The end of the bucket, of one significant digit, that begins here: 0 -> 10, 20 -> 30, 900 -> 1000."""
    digits = max(1, len(str(low_us)) - 1)
    return low_us + int("1" + digits * "0")


def quantile_s(counters: LatencyCounters, share: float) -> float | None:
    """Time within which this share of the frames came back; the maximum where the buckets hold too few frames."""
    if not counters.received:
        return None
    wanted, seen = ceil(share * counters.received), 0
    longest = counters.max_s if counters.max_s is not None else float("inf")
    for low_us, count in sorted(counters.histogram.items()):
        seen += count
        if seen >= wanted:
            # A maximum below the bucket missed what is in it: TRex's leaves out the first ten frames.
            end_s = bucket_end_us(low_us) / 1e6
            return end_s if longest < low_us / 1e6 else min(end_s, round(longest + CUT_S, 9))
    return counters.max_s


def _latency(measured: RunWindows, trial: int, direction: Direction) -> Latency:
    held, after, window, _, offered_pps = find_held(measured.samples, direction, LATENCY_PHASES, trial)
    last = after.reading.latency.get(direction.tx) or LatencyCounters(0, 0)

    def averages(readings: Iterable[LatencyCounters]) -> list[float]:
        return [counters.average_s for counters in readings if counters.average_s is not None and counters.received]

    # The first reading still contains effects of the start.
    readings = (s.reading.latency[direction.tx] for s in held[1:] or held if direction.tx in s.reading.latency)
    known = averages(readings) or averages([last])
    return Latency(
        direction=direction,
        share=LATENCY_LOADS[trial - 1],
        trial=trial,
        offered_pps=offered_pps,
        sent_pps=window.sent_pps,
        loss=window.loss,
        lossy=find_path(measured, direction).correct(window).is_bad(measured.plan.loss_threshold),
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
