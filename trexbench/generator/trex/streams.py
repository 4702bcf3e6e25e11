"""Streams of the acquired ports: loads and tags them, and has the server count each by itself where it can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import ConfigError, GeneratorError, PortOwned
from ...core.load.profile import Profile
from ...core.load.sample import LatencyCounters, StreamCounters
from ...signals import uninterrupted
from .client import Client
from .profile_loader import as_profile, behind_vlans, counted_streams, load_streams, own_groups, tagged_streams

_FIRST_TAGGED, _FIRST_COUNTED, _PER_PORT = 0x7B00, 0x10000, 0x100
"""Packet groups are numbered over all of a server's ports; small numbers are left to others."""
MISSES_UNSEEN = "net_ixgbe"
"""Driver in whose ipackets TRex counts what the port missed, too, and in its ierrors only where it is not stateless
(CTRexExtendedDriverBase10G::get_extended_stats): as streams lose it, the DUT would be blamed for it."""
MOST_COUNTED = 64  # most streams of all ports to be counted each: the answer about one takes 400 bytes, at every sample


class PortStreams:
    """Streams on the acquired ports, and the packet groups that count them."""

    def __init__(self, client: Client, stl: Any, where: str, ports: Sequence[int]) -> None:
        self._client, self._stl, self._where, self._ports = client, stl, where, tuple(ports)
        self._streams: dict[int, list[Any]] = {}
        self._tagged: dict[int, range] = {}
        self.counted: dict[int, list[int]] = {}  # packet groups of a port's streams in order, if each has its own
        self.uncounted: str | None = None  # reason why the loaded streams are not counted each

    def load(
        self,
        path: Path,
        tunables: Mapping[str, str],
        tx_ports: Sequence[int],
        vlans: Mapping[int, Sequence[int]] | None = None,
    ) -> dict[int, Profile]:
        """Put the profile's streams on these ports, each behind its VLAN tags, and none on our others."""
        for other in sorted(set(self._ports) - set(tx_ports)):
            self._replace(other, [])
        by_port = {}
        for port in tx_ports:
            streams, tags = load_streams(self._client, path, tunables, port), (vlans or {}).get(port, ())
            try:
                by_port[port] = self._client.call(self._where, behind_vlans, self._client, streams, tags)
            except ConfigError as error:
                raise ConfigError(f"profile {path.name}: {error}") from None
        self._streams = by_port
        loaded = {port: as_profile(path, tunables, port, streams) for port, streams in self._streams.items()}
        self._tagged, self.counted = {}, {}
        own = any(map(own_groups, self._streams.values()))
        self.uncounted = self._why_not_counted(own)
        for port in tx_ports:
            self._place(port)
        if own and self.counted.keys() != self._streams.keys():
            self.uncounted = self.uncounted or "the profile has packet groups of its own, not another for each stream"
        return loaded

    def tag(self, rates_pps: Mapping[int, float]) -> None:
        """Add tagged frames at these rates per second beside the other streams, which are no longer counted each."""
        first = _FIRST_TAGGED
        self._tagged, self.counted = {}, {}
        for port, pps in rates_pps.items():
            streams = self._streams[port]
            tagged = self._client.call(self._where, tagged_streams, self._client, streams, pps, first)
            self._replace(port, [*streams, *tagged])
            self._tagged[port] = range(first, first + len(streams))
            first += len(streams)

    @property
    def groups(self) -> list[int]:
        """Packet groups to be read."""
        return [group for groups in (self._tagged or self.counted).values() for group in groups]

    def read(
        self, answer: Mapping[str, Any], time_s: float
    ) -> tuple[dict[int, LatencyCounters], dict[int, StreamCounters]]:
        """Read the counts of tagged frames and of streams from the server's answer about the groups."""
        return count_tagged(answer, self._tagged), count_streams(answer, self.counted, time_s)

    def uncount(self, reason: str) -> None:
        """Take the streams out of their groups, for a reason that the document will give."""
        self.uncounted, ports, self.counted = reason, list(self.counted), {}
        for port in ports:
            self._replace(port, self._streams[port])

    def _why_not_counted(self, own: bool) -> str | None:
        system, streams = self._stl.get_server_system_info(), sum(map(len, self._streams.values()))
        ports = [port for port in system["ports"] if int(port["index"]) in self._ports]
        if any(port.get("driver") == MISSES_UNSEEN for port in ports):
            return f"a port of {MISSES_UNSEEN} does not tell how many frames its receiver missed"
        if own:
            return None
        receivers = [port.get("rx", {}) for port in ports]
        if not all("flow_stats" in receiver.get("caps", ()) for receiver in receivers):
            return "the server's ports do not count streams"
        if not system.get("advanced_per_stream_stats"):
            return "the server filters in hardware: marked frames would all go through its only receiving core"
        most = min(MOST_COUNTED, *(receiver.get("counters") or 0 for receiver in receivers))
        return f"{streams} streams are more than {most}" if streams > most else None

    def _place(self, port: int) -> None:
        """Load the port's streams, each counted by itself unless there is a reason not to."""
        plain = self._streams[port]
        groups, streams = own_groups(plain), plain
        if not groups and self.uncounted is None:
            first = _FIRST_COUNTED + _PER_PORT * port
            groups = list(range(first, first + len(plain)))
            streams = self._client.call(self._where, counted_streams, self._client, plain, first)
        try:
            self._replace(port, streams)
        except GeneratorError as err:
            if streams is plain or isinstance(err, PortOwned):
                raise
            self.uncount(str(err))
            self._replace(port, plain)
            return
        if self.uncounted is None and len(set(groups)) == len(plain):
            self.counted[port] = groups

    def _replace(self, port: int, streams: list[Any]) -> None:
        with uninterrupted():
            self._client.call(self._where, self._stl.remove_all_streams, ports=[port])
            if streams:
                self._client.call(self._where, self._stl.add_streams, streams, ports=[port])


def count_tagged(answer: Mapping[str, Any], groups: Mapping[int, Sequence[int]]) -> dict[int, LatencyCounters]:
    """Read tagged frames by sending port from the answer about its groups; one that is missing has sent nothing."""
    stats, latency = answer.get("flow_stats") or {}, answer.get("latency") or {}
    return {
        port: _merge([_read_group(stats.get(str(n)) or {}, latency.get(str(n)) or {}) for n in numbers])
        for port, numbers in groups.items()
    }


def count_streams(
    answer: Mapping[str, Any], groups: Mapping[int, Sequence[int]], time_s: float
) -> dict[int, StreamCounters]:
    """Read streams by sending port from the answer about its groups; a port is left out unless all are there."""
    stats = answer.get("flow_stats") or {}
    by_port = {}
    for port, numbers in groups.items():
        counts = [stats.get(str(number)) or {} for number in numbers]
        if not all(str(port) in (count.get("tp") or {}) and "rp" in count for count in counts):
            continue
        arrivals = {int(rx): tuple(int(count["rp"].get(rx, 0)) for count in counts) for rx in counts[0]["rp"]}
        received = {rx: frames for rx, frames in arrivals.items() if any(frames)}
        by_port[port] = StreamCounters(time_s, tuple(int(count["tp"][str(port)]) for count in counts), received)
    return by_port


def _read_group(stats: Mapping[str, Any], timed: Mapping[str, Any]) -> LatencyCounters:
    times, errors = timed.get("lat") or {}, timed.get("er") or {}
    received = sum(map(int, (stats.get("rp") or {}).values()))
    return LatencyCounters(
        sent=sum(map(int, (stats.get("tp") or {}).values())),
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


def _merge(groups: Sequence[LatencyCounters]) -> LatencyCounters:
    histogram: Counter[int] = Counter()
    for group in groups:
        histogram.update(group.histogram)
    return LatencyCounters(
        sent=sum(group.sent for group in groups),
        received=sum(group.received for group in groups),
        average_s=_weighted_mean([(group.received, group.average_s) for group in groups]),
        min_s=min((group.min_s for group in groups if group.min_s is not None), default=None),
        max_s=max((group.max_s for group in groups if group.max_s is not None), default=None),
        jitter_s=_weighted_mean([(group.received, group.jitter_s) for group in groups]),
        histogram=dict(sorted(histogram.items())),
        out_of_order=sum(group.out_of_order for group in groups),
        duplicate=sum(group.duplicate for group in groups),
    )


def _weighted_mean(values: Sequence[tuple[int, float | None]]) -> float | None:
    known = [(weight, value) for weight, value in values if value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total else None
