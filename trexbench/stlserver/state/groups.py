"""Packet groups: the streams whose frames are counted or timed on their return, and TRex's answers about them.

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
HEADER_BYTES = 16  # what a latency frame carries at its end


def check_timed(stream: ServerStream) -> None:
    """Refuse a latency stream whose frames have no room for the time of their sending."""
    size, payload = len(stream.packet), packet_parts.find(stream.packet).payload
    payload = size if payload is None else min(payload, size)
    if size - payload < HEADER_BYTES:
        raise cannot_execute(f"{size - payload} bytes of payload have no room for the time; it needs {HEADER_BYTES}")


def check_counted(stream: ServerStream) -> int | None:
    """The protocol above IP of a stream with statistics; refused where there is no IP header to mark."""
    parts = packet_parts.find(stream.packet)
    if not parts.version:
        raise cannot_execute("frames are counted in IPv4 and IPv6 only")
    return parts.protocol


@dataclass
class PacketGroup(ABC):
    """One packet group. version: no two ever have the same. streams: that are in it, by their objects' ids; active: of
    those, the ones whose filters are set: from their start until these are removed.
    """

    pg_id: int
    version: int
    streams: set[int] = field(default_factory=set)
    active: set[int] = field(default_factory=set)
    rates: FlowRates = field(default_factory=FlowRates)

    @abstractmethod
    def flows(self, reading: Stats) -> Mapping[int, FlowTotals]:
        """Totals of its frames since it was first started, by port."""

    @abstractmethod
    def settle(self, reading: Stats) -> None:
        """A period of the latencies ends."""


@dataclass
class CountedGroup(PacketGroup):
    """Group of streams with statistics alone, on any ports. protocol: what is above IP in their packets. mark: in their
    frames, from the first start until no stream of it is active any more and one is removed; before: what had been
    counted of that mark until then.
    """

    protocol: int | None = None
    mark: int | None = None
    before: Mapping[int, Mapping[int, FlowTotals]] = field(default_factory=dict)

    def flows(self, reading: Stats) -> Mapping[int, FlowTotals]:
        if self.mark is None:
            return {}
        return {port: _since(self.before, port, self.mark, now) for port, now in reading.flows().items()}

    def settle(self, reading: Stats) -> None:
        """It has none."""


def _since(
    before: Mapping[int, Mapping[int, FlowTotals]], port: int, mark: int, now: Mapping[int, FlowTotals]
) -> FlowTotals:
    then, found = (one.get(mark, FlowTotals()) for one in (before.get(port, {}), now))
    return FlowTotals(*(max(0, b - a) for a, b in zip(vars(then).values(), vars(found).values(), strict=True)))


@dataclass
class TimedGroup(PacketGroup):
    """Group of one latency stream on ``port``, whose frames are expected at ``partner``.

    started: it has been sent, hence holds one of TRex's counters until it is removed. past: totals of the starts before
    the last.
    """

    port: int = -1
    partner: int = -1
    started: bool = False
    past: LatencyTotals | None = None
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
    """All packet groups of the tester, by their numbers."""

    def __init__(self, ports: Iterable[EnginePort]) -> None:
        self._partners = {port.index: port.index if port.partner is None else port.partner for port in ports}
        self._groups: dict[int, PacketGroup] = {}
        self._versions = 0

    def add(self, port: int, stream: ServerStream) -> None:
        """Take the stream into its group; refused as TRex refuses it, with nothing changed."""
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
            group = self._new(port, stream, protocol)
        group.streams.add(id(stream))

    def _new(self, port: int, stream: ServerStream, protocol: int | None) -> PacketGroup:
        version, self._versions = self._versions, self._versions + 1
        group: PacketGroup
        if stream.stats_id is not None:
            group = CountedGroup(stream.stats_id, version, protocol=protocol)
        else:
            group = TimedGroup(stream.pg_id or 0, version, port=port, partner=self._partners[port])
        self._groups[group.pg_id] = group
        return group

    def remove(self, streams: Iterable[ServerStream]) -> None:
        for stream, group in self._of(streams):
            group.streams.discard(id(stream))
            group.active.discard(id(stream))
            if not group.streams:
                del self._groups[group.pg_id]
            elif isinstance(group, CountedGroup) and not group.active:
                group.mark = None

    def _of(self, streams: Iterable[ServerStream]) -> list[tuple[ServerStream, PacketGroup]]:
        return [(one, self._groups[one.group_id]) for one in streams if one.group_id is not None]

    def prepare(self, streams: Iterable[ServerStream], reading: Stats) -> None:
        """Give these streams' groups their counters, before a start; refused where TRex has no more of them."""
        groups = [group for _, group in self._of(streams)]
        timed = {one.pg_id for one in self._groups.values() if isinstance(one, TimedGroup) and one.started}
        if len(timed | {one.pg_id for one in groups if isinstance(one, TimedGroup)}) > MAX_LATENCY_GROUPS:
            raise _no_counter()
        counted = [one for one in self._groups.values() if isinstance(one, CountedGroup)]
        taken, before = {one.mark for one in counted}, reading.flows() if counted else {}
        free = (mark for mark in range(MARKS) if mark not in taken)
        for group in groups:
            if isinstance(group, CountedGroup) and group.mark is None:
                group.mark, group.before = next(free, None), before
                if group.mark is None:
                    raise _no_counter()

    def mark_of(self, stream: ServerStream) -> int | None:
        """Mark that is written into the stream's frames: any before there is one; None where nothing is.

        As in TRex, a stream that is started again before its filters are removed sends frames without one.
        """
        group = None if stream.group_id is None else self._groups.get(stream.group_id)
        if not isinstance(group, CountedGroup) or id(stream) in group.active:
            return None
        return group.mark or 0

    def counted(self, streams: Iterable[ServerStream], reading: Stats) -> Counted:
        """Return what the engine has timed of each so far, before a start that lets it begin at zero again."""
        return [
            (stream, group, group.totals(reading) if isinstance(group, TimedGroup) and group.started else None)
            for stream, group in self._of(streams)
        ]

    def started(self, counted: Counted, now_s: float) -> None:
        """The start was not refused: what was counted before it is kept beside what comes."""
        for stream, group, past in counted:
            if isinstance(group, TimedGroup):
                group.past, group.started = past, True
            if not group.active:
                group.rates.begin(now_s)
            group.active.add(id(stream))

    def filters_removed(self, streams: Iterable[ServerStream], reading: Stats, now_s: float) -> None:
        """Nobody counts them any more: rates are zero from here on."""
        for stream, group in self._of(streams):
            if id(stream) in group.active:
                group.active.discard(id(stream))
                if not group.active:
                    group.rates.end(now_s, group.flows(reading))
                    group.settle(reading)

    def advance(self, reading: Stats, now_s: float) -> None:
        """Renew the averages and rates that are due."""
        for group in self._groups.values():
            if group.active and group.rates.due(now_s):
                group.rates.add(now_s, group.flows(reading))
                group.settle(reading)

    @property
    def active(self) -> bool:
        """True if any group is counted now; TRex's receivers then look into the frames of every port."""
        return any(group.active for group in self._groups.values())

    def ids(self) -> dict[str, Json]:
        """By kind, as the answer to ``get_active_pgids`` has them."""
        timed = {pg_id: isinstance(group, TimedGroup) for pg_id, group in sorted(self._groups.items())}
        return {
            "flow_stats": [pg_id for pg_id in timed if not timed[pg_id]],
            "latency": [pg_id for pg_id in timed if timed[pg_id]],
        }

    def to_json(self, pg_ids: list[int], reading: Stats) -> Json:
        """The answer to ``get_pgid_stats``: of these groups, or of all when none is named."""
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
            found = group.flows(reading)
            flows[str(pg_id)] = group.rates.to_json({port: found.get(port, FlowTotals()) for port in self._partners})
            if isinstance(group, TimedGroup) and group.started:
                latency[str(pg_id)] = group.meter.to_json(group.totals(reading))
        return {"flow_stats": flows or None, "latency": latency, "ver_id": versions or None}


def _no_counter() -> Exception:
    return cannot_execute("Failed allocating statistic counter. Probably all are used for this rule type.")
