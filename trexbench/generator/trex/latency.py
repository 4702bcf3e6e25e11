"""Packet groups as TRex counts them (``get_pgid_stats``), and a port's groups as one count of tagged frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.load.sample import LatencyCounters, StreamCounters


def count_tagged(answer: Mapping[str, Any], groups: Mapping[int, Sequence[int]]) -> dict[int, LatencyCounters]:
    """By sending port, from the answer about all of its groups; a group that is missing there has sent nothing."""
    stats, latency = answer.get("flow_stats") or {}, answer.get("latency") or {}
    found = {}
    for port, numbers in groups.items():
        counted = [_of_group(stats.get(str(one)) or {}, latency.get(str(one)) or {}) for one in numbers]
        found[port] = _together(counted)
    return found


def count_streams(
    answer: Mapping[str, Any], groups: Mapping[int, Sequence[int]], time_s: float
) -> dict[int, StreamCounters]:
    """By sending port, from the answer about all of its groups; a port is left out unless every group is told."""
    stats = answer.get("flow_stats") or {}
    found = {}
    for port, numbers in groups.items():
        told = [stats.get(str(one)) or {} for one in numbers]
        if not all(str(port) in (one.get("tp") or {}) and "rp" in one for one in told):
            continue
        received = {int(there): tuple(int(one["rp"].get(there, 0)) for one in told) for there in told[0]["rp"]}
        there = {port: counts for port, counts in received.items() if any(counts)}
        found[port] = StreamCounters(time_s, tuple(int(one["tp"][str(port)]) for one in told), there)
    return found


def _of_group(stats: Mapping[str, Any], timed: Mapping[str, Any]) -> LatencyCounters:
    times, errors = timed.get("lat") or {}, timed.get("er") or {}
    received = sum(int(one) for one in (stats.get("rp") or {}).values())
    return LatencyCounters(
        sent=sum(int(one) for one in (stats.get("tp") or {}).values()),
        received=received,
        average_s=(_seconds(times, "average") if received else None) or None,  # 0: none yet, in the first half second
        min_s=_seconds(times, "total_min") if received else None,
        max_s=(_seconds(times, "total_max") if received else None) or None,  # 0: TRex leaves the first frames out
        jitter_s=_seconds(times, "jit") if received else None,
        histogram={int(low): int(count) for low, count in (times.get("histogram") or {}).items()},
        out_of_order=int(errors.get("ooo", 0)),
        duplicate=int(errors.get("dup", 0)),
    )


def _seconds(times: Mapping[str, Any], name: str) -> float | None:
    value = times.get(name)
    return None if value is None else float(value) / 1e6


def _together(counted: Sequence[LatencyCounters]) -> LatencyCounters:
    """Means are weighted by the frames that came back."""
    histogram: Counter[int] = Counter()
    for one in counted:
        histogram.update(one.histogram)
    return LatencyCounters(
        sent=sum(one.sent for one in counted),
        received=sum(one.received for one in counted),
        average_s=_weighted(counted, lambda one: one.average_s),
        min_s=min((one.min_s for one in counted if one.min_s is not None), default=None),
        max_s=max((one.max_s for one in counted if one.max_s is not None), default=None),
        jitter_s=_weighted(counted, lambda one: one.jitter_s),
        histogram=dict(sorted(histogram.items())),
        out_of_order=sum(one.out_of_order for one in counted),
        duplicate=sum(one.duplicate for one in counted),
    )


def _weighted(counted: Sequence[LatencyCounters], of: Callable[[LatencyCounters], float | None]) -> float | None:
    known = [(one.received, value) for one in counted if (value := of(one)) is not None]
    weight = sum(received for received, _ in known)
    return sum(received * value for received, value in known) / weight if weight else None
