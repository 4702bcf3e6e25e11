"""Packet groups: the streams whose frames are timed, what became of them, and how TRex words it.

Rules and texts are those of TRex v3.08 without hardware filters (trex_stl_fs.cpp and flow_stat_parser.cpp there).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from trexbench.stlserver import packet_parts
from trexbench.stlserver.engine import LatencyTotals
from trexbench.stlserver.group_meter import GroupMeter, merged
from trexbench.stlserver.stream import SHORTEST_FRAME_BYTES, Stream
from trexbench.stlserver.vm import packet_len_range
from trexbench.stlserver.wire import Json, cannot_execute

MAX_LATENCY_GROUPS = 128
MAX_GROUPS_ASKED = 1024 + 128
HEADER_BYTES = 16  # what a latency frame carries at its end

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


@dataclass
class Group:
    """One packet group of the streams on ``port``. version: no two groups ever have the same.

    started: it has been sent, hence holds one of TRex's counters until it is removed. active: from its start until
    its filters are removed. past: totals of the starts before the last.
    """

    pg_id: int
    port: int
    version: int
    started: bool = False
    active: bool = False
    past: LatencyTotals | None = None
    meter: GroupMeter = field(default_factory=GroupMeter)

    def totals(self, reading: Reading) -> LatencyTotals:
        """What became of its frames since it was first started."""
        now = reading(self.port).get(self.pg_id) if self.started else None
        return merged(self.past, now or LatencyTotals(rx_port=self.port ^ 1))


class Groups:
    """All packet groups of the tester, by their numbers."""

    def __init__(self, ports: Iterable[int]) -> None:
        self._ports = list(ports)
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
        self._groups[stream.pg_id] = Group(stream.pg_id, port, self._versions)
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
            text = "Failed allocating statistic counter. Probably all are used for this rule type."
            raise cannot_execute(text)

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
            text = f"Asking information for too many packet group IDs. Max allowed is {MAX_GROUPS_ASKED}"
            raise cannot_execute(text)
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
        sent = {"tp": totals.sent, "tb": totals.sent_bytes, "tps": rates.tx_pps, "tbs": rates.tx_bps}
        received = {"rp": totals.received, "rb": totals.received_bytes, "rps": rates.rx_pps, "rbs": rates.rx_bps}
        return {
            name: {str(port): value if port == at else type(value)(0) for port in self._ports}
            for at, values in ((group.port, sent), (totals.rx_port, received))
            for name, value in values.items()
        }
