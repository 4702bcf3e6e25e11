"""Packet groups: the streams whose frames are timed, their counters, and TRex's answers about them.

Rules and texts are those of TRex v3.08 without hardware filters (trex_stl_fs.cpp and flow_stat_parser.cpp there).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from .. import packet_parts
from ..engine import BUCKETS_US, EnginePort, LatencyTotals
from ..wire import Json, cannot_execute
from .field_checks import packet_len_range
from .stream import SHORTEST_FRAME_BYTES, Stream

MAX_LATENCY_GROUPS = 128
MAX_GROUPS_ASKED = 1024 + 128
HEADER_BYTES = 16  # what a latency frame carries at its end
PERIOD_S = 0.5

Reading = Callable[[int], Mapping[int, LatencyTotals]]


def check_packet(stream: Stream) -> None:
    """Refuse a latency stream whose frames have no room for the time of their sending."""
    packet = stream.packet
    parts = packet_parts.find(packet)
    if parts.payload is None or parts.payload >= len(packet):
        raise cannot_execute("Failed getting payload len")
    payload_bytes = len(packet) - parts.payload
    if payload_bytes < HEADER_BYTES:
        raise cannot_execute(
            f"Need at least {HEADER_BYTES} payload bytes for payload rules. Packet only has {payload_bytes} bytes"
        )
    shortest, longest = packet_len_range(stream.instructions, len(packet))
    needed = max(parts.payload, SHORTEST_FRAME_BYTES) + HEADER_BYTES
    if shortest != longest and shortest < needed:
        raise cannot_execute(
            f"You specified field engine with minimum packet size of {shortest} bytes. For latency together with "
            f"random packet size, minimum packet size should be at least {needed}"
        )


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


_UNITS = {"sent": 1, "sent_bytes": 8, "received": 1, "received_bytes": 8}
"""The totals that have rates, and the factor of each: packets/s and L2 bit/s."""


class GroupMeter:
    """Rates (two decimals) and averages over periods of half a second; the average itself counts half the former one,
    half the period's.
    """

    def __init__(self) -> None:
        self.rates = dict.fromkeys(_UNITS, 0.0)
        self.average_s = 0.0
        self.last_max_s = 0.0
        self._at_s = 0.0
        self._before: LatencyTotals | None = None

    def begin(self, now_s: float) -> None:
        self._at_s = now_s
        self.rates = dict.fromkeys(_UNITS, 0.0)

    def due(self, now_s: float) -> bool:
        return now_s >= self._at_s + PERIOD_S

    def add(self, now_s: float, totals: LatencyTotals) -> None:
        """Close a period."""
        before = self._before or LatencyTotals(rx_port=totals.rx_port)
        elapsed_s = now_s - self._at_s
        for name, unit in _UNITS.items():
            rate = (getattr(totals, name) - getattr(before, name)) * unit / elapsed_s
            self.rates[name] = round(0.5 * (self.rates[name] + rate) if self.rates[name] else rate, 2)
        self._note_latency(before, totals)
        self._at_s, self._before = now_s, totals

    def end(self, now_s: float, totals: LatencyTotals) -> None:
        """Close the last period, however short: what arrived in it counts, its rates do not."""
        self._note_latency(self._before or LatencyTotals(rx_port=totals.rx_port), totals)
        self._at_s, self._before = now_s, totals
        self.rates = dict.fromkeys(_UNITS, 0.0)

    def _note_latency(self, before: LatencyTotals, totals: LatencyTotals) -> None:
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


@dataclass
class Group:
    """One packet group of the streams on ``port``, whose frames are expected at ``partner``.

    version: no two groups ever have the same. started: it has been sent, hence holds one of TRex's counters until it is
    removed. active: from its start until its filters are removed. past: totals of the starts before the last.
    """

    pg_id: int
    port: int
    partner: int
    version: int
    started: bool = False
    active: bool = False
    past: LatencyTotals | None = None
    meter: GroupMeter = field(default_factory=GroupMeter)

    def totals(self, reading: Reading) -> LatencyTotals:
        """What became of its frames since it was first started."""
        now = reading(self.port).get(self.pg_id) if self.started else None
        return merged(self.past, now or LatencyTotals(rx_port=self.partner))


class Groups:
    """All packet groups of the tester, by their numbers."""

    def __init__(self, ports: Iterable[EnginePort]) -> None:
        self._partners = {port.index: port.index if port.partner is None else port.partner for port in ports}
        self._groups: dict[int, Group] = {}
        self._versions = 0

    def add(self, port: int, stream: Stream) -> None:
        """Take the stream's group in; refused as TRex refuses it, with nothing changed."""
        if stream.pg_id is None:
            return
        check_packet(stream)
        if stream.pg_id in self._groups:
            text = "For payload rules: Can't have two streams with same pg_id, or same stream on more than one port"
            raise cannot_execute(text)
        self._groups[stream.pg_id] = Group(stream.pg_id, port, self._partners[port], self._versions)
        self._versions += 1

    def remove(self, streams: Iterable[Stream]) -> None:
        for stream in streams:
            if stream.pg_id is not None:
                self._groups.pop(stream.pg_id, None)

    def of(self, streams: Iterable[Stream]) -> list[Group]:
        """The groups of these streams."""
        return [self._groups[one.pg_id] for one in streams if one.pg_id is not None]

    def require_counters(self, groups: Iterable[Group]) -> None:
        """Refuse to start more groups than TRex has counters for."""
        fresh = sum(not group.started for group in groups)
        if sum(group.started for group in self._groups.values()) + fresh > MAX_LATENCY_GROUPS:
            raise cannot_execute("Failed allocating statistic counter. Probably all are used for this rule type.")

    def counted(self, groups: Iterable[Group], reading: Reading) -> list[tuple[Group, LatencyTotals | None]]:
        """What their engine has counted of each so far, before a start that lets it begin at zero again."""
        return [(group, group.totals(reading) if group.started else None) for group in groups]

    def started(self, counted: Iterable[tuple[Group, LatencyTotals | None]], now_s: float) -> None:
        """The start was not refused: what was counted before it is kept beside what comes."""
        for group, past in counted:
            group.past = past
            group.started = group.active = True
            group.meter.begin(now_s)

    def filters_removed(self, groups: Iterable[Group], reading: Reading, now_s: float) -> None:
        """Nobody counts them any more: rates are zero from here on."""
        for group in groups:
            if group.active:
                group.meter.end(now_s, group.totals(reading))
                group.active = False

    def advance(self, reading: Reading, now_s: float) -> None:
        """Renew the averages and rates that are due."""
        for group in self._groups.values():
            if group.active and group.meter.due(now_s):
                group.meter.add(now_s, group.totals(reading))

    @property
    def active(self) -> bool:
        """Whether any group is counted now; TRex's receivers then watch for latency frames on every port."""
        return any(group.active for group in self._groups.values())

    def ids(self) -> list[int]:
        return sorted(self._groups)

    def to_json(self, pg_ids: list[int], reading: Reading) -> Json:
        """The answer to ``get_pgid_stats``: of these groups, or of all when none is named."""
        if len(pg_ids) > MAX_GROUPS_ASKED:
            raise cannot_execute(f"Asking information for too many packet group IDs. Max allowed is {MAX_GROUPS_ASKED}")
        flows: dict[str, Json] = {}
        latency: dict[str, Json] = {"g": None}
        versions: dict[str, Json] = {}
        for pg_id in pg_ids or self.ids():
            group = self._groups.get(pg_id)
            if group is None:
                continue
            totals = group.totals(reading)
            versions[str(pg_id)] = group.version
            flows[str(pg_id)] = self._flow_json(group, totals)
            if group.started:
                latency[str(pg_id)] = group.meter.to_json(totals)
        return {"flow_stats": flows or None, "latency": latency, "ver_id": versions or None}

    def _flow_json(self, group: Group, totals: LatencyTotals) -> Json:
        rates = group.meter.rates
        sent = {"tp": totals.sent, "tb": totals.sent_bytes, "tps": rates["sent"], "tbs": rates["sent_bytes"]}
        received: dict[str, float] = {"rp": totals.received, "rb": totals.received_bytes}
        received |= {"rps": rates["received"], "rbs": rates["received_bytes"]}
        return {
            name: {str(port): value if port == at else type(value)(0) for port in self._partners}
            for at, values in ((group.port, sent), (totals.rx_port, received))
            for name, value in values.items()
        }
