"""Counters and what TRex makes of them: raw totals read at the call, rates smoothed once a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ..engine import Engine, EngineCounters, EngineLoad, FlowTotals, LatencyTotals
from ..wire import Json
from ..wiring import core_count, core_of

RATE_PERIOD_S = 1.0
CPU_HISTORY = 20
_METERED = ("opackets", "ipackets", "obytes", "ibytes")
CPU_KEPT = 0.75  # weight of the past in the smoothed CPU utilisation, renewed once a second


class RateMeter:
    """A rate per second: half the last period's, half the former value; renewed when a second has passed."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None
        self.value = 0.0

    def add(self, now_s: float, total: int) -> float:
        """Take one reading of the total; returns the rate as it now stands."""
        if self._last is None:
            self._last = (now_s, total)
        elapsed_s = now_s - self._last[0]
        if elapsed_s >= RATE_PERIOD_S:
            self.value = 0.5 * (total - self._last[1]) / elapsed_s + 0.5 * self.value
            self._last = (now_s, total)
        return self.value


@dataclass(frozen=True)
class Snapshot:
    """All ports' counters read one after the other without a pause, and as of then the rates of those in _METERED."""

    counters: Mapping[int, EngineCounters]
    rates: Mapping[int, Mapping[str, float]]
    load: EngineLoad


class Stats:
    """Reads the engine, keeps the meters."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._meters = {port.index: {name: RateMeter() for name in _METERED} for port in engine.ports}
        self._cpu_s: float | None = None
        self._cpu_percent = 0.0
        self._port_cpu_percent = dict.fromkeys(self._meters, 0.0)
        self.cpu_history = {core: [0] * CPU_HISTORY for core in range(core_count(len(self._meters)))}
        self._snapshot: Snapshot | None = None
        self._latency: dict[int, Mapping[int, LatencyTotals]] = {}
        self._flows: Mapping[int, Mapping[int, FlowTotals]] | None = None

    def forget(self) -> None:
        """The next reading goes to the engine again."""
        self._snapshot = None
        self._latency.clear()
        self._flows = None

    def read(self, now_s: float) -> Snapshot:
        """The counters; calls between two ``forget`` share one reading, so that all ports' are of one moment."""
        if self._snapshot is None:
            counters = {index: self._engine.counters(index) for index in self._meters}
            load = self._engine.load()
            rates = {
                index: {name: meter.add(now_s, getattr(counters[index], name)) for name, meter in meters.items()}
                for index, meters in self._meters.items()
            }
            self._note_cpu(now_s, load)
            self._snapshot = Snapshot(counters, rates, load)
        return self._snapshot

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        """Totals of the latency streams that the port sends, by packet group; shared as counters are."""
        if port not in self._latency:
            self._latency[port] = self._engine.latency(port)
        return self._latency[port]

    def flows(self) -> Mapping[int, Mapping[int, FlowTotals]]:
        """By port and mark, what was counted of marked frames; shared likewise."""
        if self._flows is None:
            self._flows = self._engine.flows()
        return self._flows

    def _note_cpu(self, now_s: float, load: EngineLoad) -> None:
        if self._cpu_s is None or now_s - self._cpu_s >= RATE_PERIOD_S:
            self._cpu_s = now_s
            self._cpu_percent = _smoothed_cpu(self._cpu_percent, load.cpu_percent)
            for port, one in load.ports.items():
                self._port_cpu_percent[port] = _smoothed_cpu(self._port_cpu_percent[port], one.cpu_percent)
            for core, history in self.cpu_history.items():
                busiest = max((one.cpu_percent for port, one in load.ports.items() if core_of(port) == core), default=0)
                self.cpu_history[core] = [min(int(busiest), 255), *history[: CPU_HISTORY - 1]]

    def port_json(self, now_s: float, port: int, sending: bool) -> dict[str, Json]:
        """The answer to ``get_port_stats``."""
        snapshot = self.read(now_s)
        rates = snapshot.rates[port]
        return {
            **asdict(snapshot.counters[port]),
            "m_total_tx_bps": 8 * rates["obytes"],
            "m_total_tx_pps": rates["opackets"],
            "m_total_rx_bps": 8 * rates["ibytes"],
            "m_total_rx_pps": rates["ipackets"],
            "m_cpu_util": self._port_cpu_percent[port] if sending else 0.0,
        }

    def global_json(self, now_s: float) -> dict[str, Json]:
        """The answer to ``get_global_stats``; what only stateful modes count is zero, as in TRex."""
        snapshot = self.read(now_s)
        counters, rates = snapshot.counters.values(), snapshot.rates.values()
        tx_bps, rx_bps = (8 * sum(r[name] for r in rates) for name in ("obytes", "ibytes"))
        drop_bps = tx_bps - rx_bps
        cpu, cores = self._cpu_percent, core_count(len(snapshot.counters))
        return {
            **dict.fromkeys(_ZERO_INTEGERS.split(), 0),
            **dict.fromkeys(_ZERO_FLOATS.split(), 0.0),
            "m_platform_factor": 1.0,
            "m_cpu_util": cpu,
            "m_cpu_util_raw": float(snapshot.load.cpu_percent),
            "m_rx_cpu_util": float(snapshot.load.rx_cpu_percent),
            "m_bw_per_core": 2 * (tx_bps / 1e9) * 100.0 / (cpu * cores) if cpu >= 0.0001 else 0.0,
            "m_tx_bps": tx_bps,
            "m_rx_bps": rx_bps,
            "m_tx_pps": sum(r["opackets"] for r in rates),
            "m_rx_pps": sum(r["ipackets"] for r in rates),
            "m_rx_drop_bps": drop_bps if drop_bps >= 0.1 * tx_bps and drop_bps > 0 else 0.0,
            "m_total_queue_full": snapshot.load.queue_full,
            "m_total_tx_pkts": sum(c.opackets for c in counters),
            "m_total_rx_pkts": sum(c.ipackets for c in counters),
            "m_total_tx_bytes": sum(c.obytes for c in counters),
            "m_total_rx_bytes": sum(c.ibytes for c in counters),
        }

    def event_json(self, now_s: float, sending: Mapping[int, bool], baseline: bool) -> dict[str, Json]:
        """The ``trex-global`` event: all of the above in one flat object, per-port names ending in -N."""
        data = self.global_json(now_s)
        for port, active in sending.items():
            data.update({f"{name}-{port}": v for name, v in self.port_json(now_s, port, active).items()})
        data["ts"] = {"value": int(now_s * TICKS_PER_S), "freq": TICKS_PER_S}
        data.update(template=[0] * 32, unknown=0)
        event: dict[str, Json] = {"name": "trex-global", "type": 0, "data": data}
        if baseline:
            event["baseline"] = True
        return event


TICKS_PER_S = 1_000_000_000

_ZERO_INTEGERS = """
    m_active_sockets m_total_alloc_error m_total_clients m_total_nat_active m_total_nat_learn_error m_total_nat_no_fid
    m_total_nat_open m_total_nat_syn_wait m_total_nat_time_out m_total_nat_time_out_wait_ack m_total_queue_drop
    m_total_servers
"""
_ZERO_FLOATS = """
    m_active_flows m_open_flows m_rx_core_pps m_socket_util m_tx_cps m_tx_expected_bps m_tx_expected_cps
    m_tx_expected_pps
"""


def _smoothed_cpu(before: float, now: float) -> float:
    return CPU_KEPT * before + (1 - CPU_KEPT) * now
