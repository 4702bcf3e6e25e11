"""The streams of the acquired ports: loaded, tagged, and counted by the server, each by itself where it can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import ConfigError, GeneratorError, PortOwned
from ...core.load.profile import Profile
from ...core.load.sample import LatencyCounters, StreamCounters
from ...signals import uninterrupted
from .client import Client
from .profile_loader import as_profile, behind_vlans, counted_streams, load_streams, own_groups, tagged_streams

_FIRST_TAGGED, _FIRST_COUNTED, _PER_PORT = 0x7B00, 0x10000, 0x100
"""Packet groups are numbered over all of a server's ports; small numbers are other people's."""
MOST_COUNTED = 64
"""Streams of all ports that are counted each: the answer about one takes 400 bytes, at every sample."""


class PortStreams:
    """uncounted: why the streams that were loaded are not counted each; None where they are.

    counted: by port, the packet groups of its streams in their order; missing where not each has its own.
    """

    def __init__(self, client: Client, stl: Any, where: str, ports: Sequence[int]) -> None:
        self._client, self._stl, self._where, self._ports = client, stl, where, tuple(ports)
        self._streams: dict[int, list[Any]] = {}
        self._tagged: dict[int, range] = {}
        self.counted: dict[int, list[int]] = {}
        self.uncounted: str | None = None

    def load(
        self,
        path: Path,
        tunables: Mapping[str, str],
        tx_ports: Sequence[int],
        vlans: Mapping[int, Sequence[int]] | None = None,
    ) -> dict[int, Profile]:
        """Put the profile's streams on these ports, each behind its VLAN tags, and none on the others of ours."""
        for other in sorted(set(self._ports) - set(tx_ports)):
            self._replace(other, [])
        self._streams = {port: self._of_port(path, tunables, port, (vlans or {}).get(port, ())) for port in tx_ports}
        loaded = {port: as_profile(path, tunables, port, streams) for port, streams in self._streams.items()}
        self._tagged, self.counted = {}, {}
        self.uncounted = None if any(map(own_groups, self._streams.values())) else self._why_not_counted()
        for port in tx_ports:
            self._place(port)
        return loaded

    def _of_port(self, path: Path, tunables: Mapping[str, str], port: int, vlans: Sequence[int]) -> list[Any]:
        streams = load_streams(self._client, path, tunables, port)
        try:
            return self._client.call(self._where, behind_vlans, self._client, streams, vlans)
        except ConfigError as error:
            raise ConfigError(f"profile {path.name}: {error}") from None

    def tag(self, rates_pps: Mapping[int, float]) -> None:
        """Add tagged frames at these rates per second beside the others, which are not counted each from here on."""
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
        """The packet groups that are to be read."""
        return [one for numbers in (self._tagged or self.counted).values() for one in numbers]

    def read(
        self, told: Mapping[str, Any], time_s: float
    ) -> tuple[dict[int, LatencyCounters], dict[int, StreamCounters]]:
        """Return the counts of tagged frames and of streams in the server's answer about the groups, of this time."""
        return count_tagged(told, self._tagged), count_streams(told, self.counted, time_s)

    def uncount(self, reason: str) -> None:
        """Take the streams out of their groups."""
        self.uncounted, ports, self.counted = reason, list(self.counted), {}
        for port in ports:
            self._replace(port, self._streams[port])

    def _why_not_counted(self) -> str | None:
        system, streams = self._stl.get_server_system_info(), sum(map(len, self._streams.values()))
        described = [one.get("rx", {}) for one in system["ports"] if int(one["index"]) in self._ports]
        if not all("flow_stats" in one.get("caps", ()) for one in described):
            return "the server's ports count no streams"
        if not system.get("advanced_per_stream_stats"):
            return "the server filters in hardware: marked frames would all go through its one receiving core"
        most = min(MOST_COUNTED, *(one.get("counters") or 0 for one in described))
        return f"{streams} streams are more than {most}" if streams > most else None

    def _place(self, port: int) -> None:
        """Put the port's streams on it, each counted by itself unless there is a reason not to."""
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
        if len(set(groups)) == len(plain):
            self.counted[port] = groups

    def _replace(self, port: int, streams: list[Any]) -> None:
        with uninterrupted():
            self._client.call(self._where, self._stl.remove_all_streams, ports=[port])
            if streams:
                self._client.call(self._where, self._stl.add_streams, streams, ports=[port])


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
