"""What TRex makes of one packet group's totals: rates, a sliding average and a latest maximum, period by period."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from trexbench.stlserver.engine import BUCKETS_US, LatencyTotals
from trexbench.stlserver.wire import Json

PERIOD_S = 0.5


def merged(first: LatencyTotals | None, then: LatencyTotals) -> LatencyTotals:
    """Both together; where frames arrived and how much they jittered is the later's."""
    if first is None:
        return then
    lows = [one.min_s for one in (first, then) if one.received]
    return LatencyTotals(
        rx_port=then.rx_port if then.received else first.rx_port,
        sent=first.sent + then.sent,
        sent_bytes=first.sent_bytes + then.sent_bytes,
        received=first.received + then.received,
        received_bytes=first.received_bytes + then.received_bytes,
        sum_s=first.sum_s + then.sum_s,
        min_s=min(lows, default=0.0),
        max_s=max(first.max_s, then.max_s),
        histogram=Counter(first.histogram) + Counter(then.histogram),
        out_of_order=first.out_of_order + then.out_of_order,
        missing=first.missing + then.missing,
        duplicate=first.duplicate + then.duplicate,
        jitter_s=then.jitter_s if then.received else first.jitter_s,
    )


@dataclass(frozen=True)
class GroupRates:
    """Packets/s and L2 bit/s, two decimals."""

    tx_pps: float = 0.0
    tx_bps: float = 0.0
    rx_pps: float = 0.0
    rx_bps: float = 0.0


class GroupMeter:
    """Averages over periods of half a second; the average itself counts half the former one, half the period's."""

    def __init__(self) -> None:
        self.rates = GroupRates()
        self.average_s = 0.0
        self.last_max_s = 0.0
        self._at_s = 0.0
        self._before: LatencyTotals | None = None

    def begin(self, now_s: float) -> None:
        self._at_s = now_s
        self.rates = GroupRates()

    def due(self, now_s: float) -> bool:
        return now_s >= self._at_s + PERIOD_S

    def add(self, now_s: float, totals: LatencyTotals) -> None:
        """Close a period."""
        before = self._before or LatencyTotals(rx_port=totals.rx_port)
        elapsed_s = now_s - self._at_s
        self.rates = GroupRates(
            _smoothed(self.rates.tx_pps, (totals.sent - before.sent) / elapsed_s),
            _smoothed(self.rates.tx_bps, (totals.sent_bytes - before.sent_bytes) * 8 / elapsed_s),
            _smoothed(self.rates.rx_pps, (totals.received - before.received) / elapsed_s),
            _smoothed(self.rates.rx_bps, (totals.received_bytes - before.received_bytes) * 8 / elapsed_s),
        )
        self._note_latency(before, totals)
        self._at_s, self._before = now_s, totals

    def end(self, now_s: float, totals: LatencyTotals) -> None:
        """Close the last period, however short: what arrived in it counts, its rates do not."""
        self._note_latency(self._before or LatencyTotals(rx_port=totals.rx_port), totals)
        self._at_s, self._before = now_s, totals
        self.rates = GroupRates()

    def _note_latency(self, before: LatencyTotals, totals: LatencyTotals) -> None:
        received = totals.received - before.received
        if received <= 0:
            return
        period_s = (totals.sum_s - before.sum_s) / received
        self.average_s = 0.5 * (self.average_s + period_s) if self.average_s else period_s
        self.last_max_s = _period_max_s(before, totals)

    def to_json(self, totals: LatencyTotals) -> Json:
        """Microseconds: whole ones as TRex's, the average with three decimals."""
        # within the first period TRex, too, has no average yet; ours need not be without
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


def _smoothed(former: float, now: float) -> float:
    return round(0.5 * (former + now) if former else now, 2)


def _period_max_s(before: LatencyTotals, totals: LatencyTotals) -> float:
    """The period's maximum: exact where it is the greatest ever, else the end of the highest bucket that grew."""
    if totals.max_s > before.max_s:
        return totals.max_s
    grown = [bound for bound, count in totals.histogram.items() if count > before.histogram.get(bound, 0)]
    above = [bound for bound in BUCKETS_US if bound > max(grown, default=0)]
    return min(totals.max_s, min(above) / 1e6) if above else totals.max_s
