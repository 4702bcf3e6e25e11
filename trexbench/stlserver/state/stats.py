"""Counters, and what TRex derives from them: rates by port and by packet group, latencies, CPU load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache

from ..engine import BUCKETS_US, Engine, EngineCounters, FlowTotals, LatencyTotals, PortLoad, core_count, core_of
from ..wire import Json

RATE_PERIOD_S, GROUP_PERIOD_S = 1.0, 0.5
CPU_HISTORY = 20
CPU_KEPT = 0.75  # weight of the past in the smoothed CPU utilisation, which is updated once a second
_METERED = ("opackets", "ipackets", "obytes", "ibytes")
_DIRECTIONS = {"t": "sent", "r": "received"}
_SUMMED = ("sent", "sent_bytes", "received", "received_bytes", "sum_s", "out_of_order", "missing", "duplicate")
_ZERO_INTEGERS = """
    m_active_sockets m_total_alloc_error m_total_clients m_total_nat_active m_total_nat_learn_error m_total_nat_no_fid
    m_total_nat_open m_total_nat_syn_wait m_total_nat_time_out m_total_nat_time_out_wait_ack m_total_queue_drop
    m_total_servers
"""
_ZERO_FLOATS = """
    m_active_flows m_open_flows m_rx_core_pps m_rx_cpu_util m_socket_util m_tx_cps m_tx_expected_bps m_tx_expected_cps
    m_tx_expected_pps
"""


class RateMeter:
    """Rate per second: the mean of the last period's and the former value, updated when a second has passed."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None
        self.value = 0.0

    def add(self, now_s: float, total: int) -> float:
        """Add a reading of the total; returns the present rate."""
        if self._last is None:
            self._last = (now_s, total)
        elapsed_s = now_s - self._last[0]
        if elapsed_s >= RATE_PERIOD_S:
            self.value = 0.5 * (total - self._last[1]) / elapsed_s + 0.5 * self.value
            self._last = (now_s, total)
        return self.value


@dataclass(frozen=True)
class Snapshot:
    """Counters of all ports, read one after the other without a pause, and the rates of those in _METERED."""

    counters: Mapping[int, EngineCounters]
    rates: Mapping[int, Mapping[str, float]]
    load: Mapping[int, PortLoad]


class Stats:
    """Readings of the engine, cached until ``forget``, and the rates derived from them.

    ``latency`` (of a port) and ``flows`` are the engine's own, cached likewise.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._meters = {port.index: {name: RateMeter() for name in _METERED} for port in engine.ports}
        self._cpu_s: float | None = None
        self._cpu_percent = dict.fromkeys(self._meters, 0.0)
        self.cpu_history = {core: [0] * CPU_HISTORY for core in range(core_count(len(self._meters)))}
        self.forget()

    def forget(self) -> None:
        """Let the next readings ask the engine again."""
        self._snapshot: Snapshot | None = None
        self.latency, self.flows = cache(self._engine.latency), cache(self._engine.flows)

    def read(self, now_s: float) -> Snapshot:
        if self._snapshot is None:
            counters = {index: self._engine.counters(index) for index in self._meters}
            load = self._engine.load()
            rates = {
                index: {name: meter.add(now_s, getattr(counters[index], name)) for name, meter in meters.items()}
                for index, meters in self._meters.items()
            }
            if self._cpu_s is None or now_s - self._cpu_s >= RATE_PERIOD_S:
                self._cpu_s = now_s
                self._update_cpu(load)
            self._snapshot = Snapshot(counters, rates, load)
        return self._snapshot

    def _update_cpu(self, load: Mapping[int, PortLoad]) -> None:
        for port, sender in load.items():
            self._cpu_percent[port] = CPU_KEPT * self._cpu_percent[port] + (1 - CPU_KEPT) * sender.cpu_percent
        for core, history in self.cpu_history.items():
            busiest = max((sender.cpu_percent for port, sender in load.items() if core_of(port) == core), default=0)
            self.cpu_history[core] = [min(int(busiest), 255), *history[: CPU_HISTORY - 1]]

    def port_json(self, now_s: float, port: int, sending: bool) -> dict[str, Json]:
        """Answer to ``get_port_stats``."""
        snapshot = self.read(now_s)
        rates = snapshot.rates[port]
        return {
            **asdict(snapshot.counters[port]),
            "m_total_tx_bps": 8 * rates["obytes"],
            "m_total_tx_pps": rates["opackets"],
            "m_total_rx_bps": 8 * rates["ibytes"],
            "m_total_rx_pps": rates["ipackets"],
            "m_cpu_util": self._cpu_percent[port] if sending else 0.0,
        }

    def global_json(self, now_s: float) -> dict[str, Json]:
        """Answer to ``get_global_stats``; what only stateful modes count is zero, as in TRex."""
        snapshot = self.read(now_s)
        counters, rates = snapshot.counters.values(), snapshot.rates.values()
        tx_bps, rx_bps = (8 * sum(r[name] for r in rates) for name in ("obytes", "ibytes"))
        drop_bps = tx_bps - rx_bps
        cpu, cores = max(self._cpu_percent.values()), core_count(len(snapshot.counters))
        return {
            **dict.fromkeys(_ZERO_INTEGERS.split(), 0),
            **dict.fromkeys(_ZERO_FLOATS.split(), 0.0),
            "m_platform_factor": 1.0,
            "m_cpu_util": cpu,
            "m_cpu_util_raw": max(float(sender.cpu_percent) for sender in snapshot.load.values()),
            "m_bw_per_core": 2 * (tx_bps / 1e9) * 100.0 / (cpu * cores) if cpu >= 0.0001 else 0.0,
            "m_tx_bps": tx_bps,
            "m_rx_bps": rx_bps,
            "m_tx_pps": sum(r["opackets"] for r in rates),
            "m_rx_pps": sum(r["ipackets"] for r in rates),
            "m_rx_drop_bps": drop_bps if drop_bps >= 0.1 * tx_bps and drop_bps > 0 else 0.0,
            "m_total_queue_full": sum(sender.queue_full for sender in snapshot.load.values()),
            "m_total_tx_pkts": sum(c.opackets for c in counters),
            "m_total_rx_pkts": sum(c.ipackets for c in counters),
            "m_total_tx_bytes": sum(c.obytes for c in counters),
            "m_total_rx_bytes": sum(c.ibytes for c in counters),
        }


class FlowRates:
    """Packets/s and L2 bit/s of a packet group by port, smoothed over periods of half a second."""

    def __init__(self) -> None:
        self._rates: dict[tuple[int, str], float] = {}
        self._at_s = 0.0
        self._before: Mapping[int, FlowTotals] = {}

    def begin(self, now_s: float) -> None:
        self._at_s = now_s
        self._rates = {}

    def due(self, now_s: float) -> bool:
        return now_s >= self._at_s + GROUP_PERIOD_S

    def add(self, now_s: float, flows: Mapping[int, FlowTotals]) -> None:
        """Close a period."""
        elapsed_s = now_s - self._at_s
        for port, totals in flows.items():
            before = self._before.get(port, FlowTotals())
            for counter in _DIRECTIONS.values():
                for name, unit in ((counter, 1), (f"{counter}_bytes", 8)):
                    rate = (getattr(totals, name) - getattr(before, name)) * unit / elapsed_s
                    self._rates[port, name] = round(_smoothed(self._rates.get((port, name), 0.0), rate), 2)
        self._at_s, self._before = now_s, flows

    def end(self, now_s: float, flows: Mapping[int, FlowTotals]) -> None:
        """Close the last period, however short, before counting stops."""
        self.begin(now_s)
        self._before = flows

    def to_json(self, flows: Mapping[int, FlowTotals]) -> Json:
        """Member of ``flow_stats``: these totals and the rates, by port."""
        member: dict[str, dict[str, Json]] = {}
        for letter, counter in _DIRECTIONS.items():
            for kind, name in (("p", counter), ("b", f"{counter}_bytes")):
                member[letter + kind] = {str(port): getattr(totals, name) for port, totals in flows.items()}
                member[f"{letter}{kind}s"] = {str(port): self._rates.get((port, name), 0.0) for port in flows}
        return member


class GroupMeter:
    """Latencies of a packet group, averaged over the periods of FlowRates."""

    def __init__(self) -> None:
        self.average_s = 0.0
        self.last_max_s = 0.0
        self._before: LatencyTotals | None = None

    def add(self, totals: LatencyTotals) -> None:
        """Close a period."""
        before = self._before or LatencyTotals(rx_port=totals.rx_port)
        self._before = totals
        received = totals.received - before.received
        if received > 0:
            self.average_s = _smoothed(self.average_s, (totals.sum_s - before.sum_s) / received)
            self.last_max_s = _period_max_s(before, totals)

    def to_json(self, totals: LatencyTotals) -> Json:
        """Convert to TRex's microseconds: whole ones, but for the average."""
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
        nonzero = {name: count for name, count in errors.items() if count}
        return {"lat": lat, "er": nonzero} if nonzero else {"lat": lat}


def _smoothed(former: float, period: float) -> float:
    return 0.5 * (former + period) if former else period


def _period_max_s(before: LatencyTotals, totals: LatencyTotals) -> float:
    """Maximum of a period: exact if it is the greatest ever, else the end of the highest bucket that grew."""
    if totals.max_s > before.max_s:
        return totals.max_s
    grown = [bound for bound, count in totals.histogram.items() if count > before.histogram.get(bound, 0)]
    above = [bound for bound in BUCKETS_US if bound > max(grown, default=0)]
    return min(totals.max_s, min(above) / 1e6) if above else totals.max_s


def merged(first: LatencyTotals | None, then: LatencyTotals) -> LatencyTotals:
    """Add up two starts' totals; port of arrival and jitter are those of the later start that received any frame."""
    if first is None:
        return then
    return replace(
        then if then.received else first,
        **{name: getattr(first, name) + getattr(then, name) for name in _SUMMED},
        min_s=min((start.min_s for start in (first, then) if start.received), default=0.0),
        max_s=max(first.max_s, then.max_s),
        histogram=Counter(first.histogram) + Counter(then.histogram),
    )
