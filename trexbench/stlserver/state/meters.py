"""Figures that TRex reports for a packet group beside its counters: rates by port, and latencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ..engine import BUCKETS_US, FlowTotals, LatencyTotals
from ..wire import Json

PERIOD_S = 0.5

_SUMMED = ("sent", "sent_bytes", "received", "received_bytes", "sum_s", "out_of_order", "missing", "duplicate")


def merged(first: LatencyTotals | None, then: LatencyTotals) -> LatencyTotals:
    """Both together; the port of arrival and the jitter are those of the later one that received any."""
    if first is None:
        return then
    return replace(
        then if then.received else first,
        **{name: getattr(first, name) + getattr(then, name) for name in _SUMMED},
        min_s=min((one.min_s for one in (first, then) if one.received), default=0.0),
        max_s=max(first.max_s, then.max_s),
        histogram=Counter(first.histogram) + Counter(then.histogram),
    )


_NAMES = {"t": "sent", "r": "received"}


class FlowRates:
    """Packets/s and L2 bit/s by port, to two decimals, over periods of half a second: half the former rate, half the
    period's.
    """

    def __init__(self) -> None:
        self._rates: dict[tuple[int, str], float] = {}
        self._at_s = 0.0
        self._before: Mapping[int, FlowTotals] = {}

    def begin(self, now_s: float) -> None:
        self._at_s = now_s
        self._rates = {}

    def due(self, now_s: float) -> bool:
        return now_s >= self._at_s + PERIOD_S

    def add(self, now_s: float, flows: Mapping[int, FlowTotals]) -> None:
        """Close a period."""
        elapsed_s = now_s - self._at_s
        for port, totals in flows.items():
            before = self._before.get(port, FlowTotals())
            for counter in _NAMES.values():
                for name, unit in ((counter, 1), (f"{counter}_bytes", 8)):
                    rate = (getattr(totals, name) - getattr(before, name)) * unit / elapsed_s
                    former = self._rates.get((port, name), 0.0)
                    self._rates[port, name] = round(0.5 * (former + rate) if former else rate, 2)
        self._at_s, self._before = now_s, flows

    def end(self, now_s: float, flows: Mapping[int, FlowTotals]) -> None:
        """Close the last period, however short; nobody counts from here on."""
        self.begin(now_s)
        self._before = flows

    def to_json(self, flows: Mapping[int, FlowTotals]) -> Json:
        """The member of ``flow_stats``: these totals and the rates, by port."""
        told: dict[str, dict[str, Json]] = {}
        for letter, counter in _NAMES.items():
            for kind, name in (("p", counter), ("b", f"{counter}_bytes")):
                told[letter + kind] = {str(port): getattr(totals, name) for port, totals in flows.items()}
                told[f"{letter}{kind}s"] = {str(port): self._rates.get((port, name), 0.0) for port in flows}
        return told


class GroupMeter:
    """Averages over FlowRates' periods; the average itself counts half the former one, half the period's."""

    def __init__(self) -> None:
        self.average_s = 0.0
        self.last_max_s = 0.0
        self._before: LatencyTotals | None = None

    def add(self, totals: LatencyTotals) -> None:
        """Close a period."""
        before = self._before or LatencyTotals(rx_port=totals.rx_port)
        self._before = totals
        received = totals.received - before.received
        if received <= 0:
            return
        period_s = (totals.sum_s - before.sum_s) / received
        self.average_s = 0.5 * (self.average_s + period_s) if self.average_s else period_s
        self.last_max_s = _period_max_s(before, totals)

    def to_json(self, totals: LatencyTotals) -> Json:
        """Microseconds: whole ones as TRex's, the average with three decimals."""
        # TRex has no average within the first period
        average_s = self.average_s or (totals.sum_s / totals.received if totals.received else 0.0)
        lat: dict[str, Json] = {
            "average": round(average_s * 1e6, 3),
            "jit": int(totals.jitter_s * 1e6),
            "last_max": int((self.last_max_s or totals.max_s) * 1e6),
            "total_max": int(totals.max_s * 1e6),
            "total_min": int(totals.min_s * 1e6),
        }
        if totals.received:
            lat["histogram"] = {str(bound): count for bound, count in sorted(totals.histogram.items()) if count}
        errors = {"drp": totals.missing, "ooo": totals.out_of_order, "dup": totals.duplicate}
        errors["stl"] = totals.out_of_order + totals.duplicate
        told = {name: count for name, count in errors.items() if count}
        return {"lat": lat, "er": told} if told else {"lat": lat}


def _period_max_s(before: LatencyTotals, totals: LatencyTotals) -> float:
    """The period's maximum: exact where it is the greatest ever, else the end of the highest bucket that grew."""
    if totals.max_s > before.max_s:
        return totals.max_s
    grown = [bound for bound, count in totals.histogram.items() if count > before.histogram.get(bound, 0)]
    above = [bound for bound in BUCKETS_US if bound > max(grown, default=0)]
    return min(totals.max_s, min(above) / 1e6) if above else totals.max_s
