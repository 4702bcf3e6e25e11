"""Packet groups: streams whose frames are counted or timed on arrival, and TRex's answers about them.

Rules and texts are those of TRex v3.08 without hardware filters (trex_stl_fs.cpp and flow_stat_parser.cpp there).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .. import packet_parts
from ..engine import MARKS, EnginePort, FlowTotals, LatencyTotals
from ..wire import Json, cannot_execute
from .stats import FlowRates, GroupMeter, Stats, merged
from .stream import ServerStream

MAX_LATENCY_GROUPS = 128
MAX_GROUPS_ASKED = 1024 + 128
HEADER_BYTES = 16  # carried at the end of a latency frame


def check_timed(stream: ServerStream) -> None:
    """Refuse a latency stream whose frames have no room for the time of their sending."""
    size, payload = len(stream.packet), packet_parts.find(stream.packet).payload
    payload = size if payload is None else min(payload, size)
    if size - payload < HEADER_BYTES:
        raise cannot_execute(f"{size - payload} bytes of payload have no room for the time; it needs {HEADER_BYTES}")


def check_counted(stream: ServerStream) -> int | None:
    """Protocol above IP of a stream with statistics; refused where there is no IP header to mark."""
    parts = packet_parts.find(stream.packet)
    if not parts.version:
        raise cannot_execute("frames are counted in IPv4 and IPv6 only")
    return parts.protocol


@dataclass
class PacketGroup(ABC):
    """One packet group. Streams are known by the ids of their objects."""

    pg_id: int
    version: int  # no two groups ever have the same
    streams: set[int] = field(default_factory=set)
    active: set[int] = field(default_factory=set)  # counted streams: from the start until filters are removed
    rates: FlowRates = field(default_factory=FlowRates)

    @abstractmethod
    def flows(self, reading: Stats) -> Mapping[int, FlowTotals]:
        """Totals of its frames since it was first started, by port."""

    @abstractmethod
    def settle(self, reading: Stats) -> None:
        """Close a period of the latencies, if the group has any."""


@dataclass
class CountedGroup(PacketGroup):
    """Group of streams with statistics alone, on any ports."""

    protocol: int | None = None  # above IP
    mark: int | None = None  # from the first start until a stream is removed while none is active
    before: Mapping[int, Mapping[int, FlowTotals]] = field(default_factory=dict)  # all marks' counts at that start

    def flows(self, reading: Stats) -> Mapping[int, FlowTotals]:
        if self.mark is None:
            return {}
        totals = {}
        for port, marks in reading.flows().items():
            before, now = (vars(one.get(self.mark, FlowTotals())) for one in (self.before.get(port, {}), marks))
            totals[port] = FlowTotals(**{name: max(0, count - before[name]) for name, count in now.items()})
        return totals

    def settle(self, reading: Stats) -> None:
        pass


@dataclass
class TimedGroup(PacketGroup):
    """Group of one latency stream on ``port``, whose frames are expected at ``partner``."""

    port: int = -1
    partner: int = -1
    started: bool = False  # it has been sent, and holds one of TRex's counters until it is removed
    past: LatencyTotals | None = None  # totals of all starts but the last
    meter: GroupMeter = field(default_factory=GroupMeter)

    def totals(self, reading: Stats) -> LatencyTotals:
        """Totals of its frames since it was first started."""
        now = reading.latency(self.port).get(self.pg_id) if self.started else None
        return merged(self.past, now or LatencyTotals(rx_port=self.partner))

    def flows(self, reading: Stats) -> Mapping[int, FlowTotals]:
        totals = self.totals(reading)
        sent, received = (totals.sent, totals.sent_bytes), (totals.received, totals.received_bytes)
        if totals.rx_port == self.port:
            return {self.port: FlowTotals(*sent, *received)}
        return {self.port: FlowTotals(*sent), totals.rx_port: FlowTotals(0, 0, *received)}

    def settle(self, reading: Stats) -> None:
        self.meter.add(self.totals(reading))


Counted = list[tuple[ServerStream, PacketGroup, LatencyTotals | None]]


class Groups:
    """All packet groups of the tester."""

    def __init__(self, ports: Iterable[EnginePort]) -> None:
        self._partners = {port.index: port.index if port.partner is None else port.partner for port in ports}
        self._groups: dict[int, PacketGroup] = {}
        self._versions = 0

    def add(self, port: int, stream: ServerStream) -> None:
        """Add the stream to its group; a refusal, as by TRex, changes nothing."""
        if stream.group_id is None:
            return
        if stream.pg_id is not None:
            check_timed(stream)
        protocol = None if stream.stats_id is None else check_counted(stream)
        group = self._groups.get(stream.group_id)
        if isinstance(group, TimedGroup):
            text = "For payload rules: Can't have two streams with same pg_id, or same stream on more than one port"
            raise cannot_execute(text)
        if isinstance(group, CountedGroup) and (stream.stats_id is None or group.protocol != protocol):
            raise cannot_execute("Can't use same pg_id for streams with different l4 protocol")
        if group is None:
            version, self._versions = self._versions, self._versions + 1
            if stream.stats_id is not None:
                group = CountedGroup(stream.stats_id, version, protocol=protocol)
            else:
                group = TimedGroup(stream.group_id, version, port=port, partner=self._partners[port])
            self._groups[group.pg_id] = group
        group.streams.add(id(stream))

    def remove(self, streams: Iterable[ServerStream]) -> None:
        for stream, group in self._with_groups(streams):
            group.streams.discard(id(stream))
            group.active.discard(id(stream))
            if not group.streams:
                del self._groups[group.pg_id]
            elif isinstance(group, CountedGroup) and not group.active:
                group.mark = None

    def _with_groups(self, streams: Iterable[ServerStream]) -> list[tuple[ServerStream, PacketGroup]]:
        return [(stream, self._groups[stream.group_id]) for stream in streams if stream.group_id is not None]

    def prepare(self, streams: Iterable[ServerStream], reading: Stats) -> None:
        """Give these streams' groups their counters, before a start; refused where TRex has no more of them."""
        groups = [group for _, group in self._with_groups(streams)]
        all_groups = self._groups.values()
        timed = {group.pg_id for group in all_groups if isinstance(group, TimedGroup) and group.started}
        if len(timed | {group.pg_id for group in groups if isinstance(group, TimedGroup)}) > MAX_LATENCY_GROUPS:
            raise _no_counter()
        counted = [group for group in all_groups if isinstance(group, CountedGroup)]
        taken, before = {group.mark for group in counted}, reading.flows() if counted else {}
        free = (mark for mark in range(MARKS) if mark not in taken)
        for group in groups:
            if isinstance(group, CountedGroup) and group.mark is None:
                group.mark, group.before = next(free, None), before
                if group.mark is None:
                    raise _no_counter()

    def mark_of(self, stream: ServerStream) -> int | None:
        """Mark to be written into the stream's frames; None for no mark. A group that has none yet answers 0.

        As in TRex, a stream that is started again before its filters are removed sends frames without a mark.
        """
        group = None if stream.group_id is None else self._groups.get(stream.group_id)
        if not isinstance(group, CountedGroup) or id(stream) in group.active:
            return None
        return group.mark or 0

    def counted(self, streams: Iterable[ServerStream], reading: Stats) -> Counted:
        """Read each stream's latencies, before a start makes the engine count from zero."""
        return [
            (stream, group, group.totals(reading) if isinstance(group, TimedGroup) and group.started else None)
            for stream, group in self._with_groups(streams)
        ]

    def started(self, counted: Counted, now_s: float) -> None:
        """Note that a start succeeded, and keep what ``counted`` read before it."""
        for stream, group, past in counted:
            if isinstance(group, TimedGroup):
                group.past, group.started = past, True
            if not group.active:
                group.rates.begin(now_s)
            group.active.add(id(stream))

    def filters_removed(self, streams: Iterable[ServerStream], reading: Stats, now_s: float) -> None:
        """Stop counting these streams' frames; a group without any other goes to rate zero."""
        for stream, group in self._with_groups(streams):
            if id(stream) in group.active:
                group.active.discard(id(stream))
                if not group.active:
                    group.rates.end(now_s, group.flows(reading))
                    group.settle(reading)

    def advance(self, reading: Stats, now_s: float) -> None:
        """Update the averages and rates that are due."""
        for group in self._groups.values():
            if group.active and group.rates.due(now_s):
                group.rates.add(now_s, group.flows(reading))
                group.settle(reading)

    @property
    def active(self) -> bool:
        """True while any group is counted: TRex's receivers then look into the frames of every port."""
        return any(group.active for group in self._groups.values())

    def ids(self) -> dict[str, Json]:
        """Answer to ``get_active_pgids``."""
        timed = {pg_id: isinstance(group, TimedGroup) for pg_id, group in sorted(self._groups.items())}
        return {
            "flow_stats": [pg_id for pg_id in timed if not timed[pg_id]],
            "latency": [pg_id for pg_id in timed if timed[pg_id]],
        }

    def to_json(self, pg_ids: list[int], reading: Stats) -> Json:
        """Answer to ``get_pgid_stats`` about these groups, or about all if none is named."""
        if len(pg_ids) > MAX_GROUPS_ASKED:
            raise cannot_execute(f"{len(pg_ids)} packet groups are asked for; {MAX_GROUPS_ASKED} can be")
        flows: dict[str, Json] = {}
        latency: dict[str, Json] = {"g": None}
        versions: dict[str, Json] = {}
        for pg_id in pg_ids or sorted(self._groups):
            group = self._groups.get(pg_id)
            if group is None:
                continue
            versions[str(pg_id)] = group.version
            counts = group.flows(reading)
            flows[str(pg_id)] = group.rates.to_json({port: counts.get(port, FlowTotals()) for port in self._partners})
            if isinstance(group, TimedGroup) and group.started:
                latency[str(pg_id)] = group.meter.to_json(group.totals(reading))
        return {"flow_stats": flows or None, "latency": latency, "ver_id": versions or None}


def _no_counter() -> Exception:
    return cannot_execute("Failed allocating statistic counter. Probably all are used for this rule type.")
