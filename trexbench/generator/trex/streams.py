"""The streams of the acquired ports: loaded, tagged, and counted each by itself where the server can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import ConfigError, GeneratorError, PortOwned
from ...core.load.profile import Profile
from ...core.load.sample import LatencyCounters, StreamCounters
from ...signals import uninterrupted
from .client import Client
from .latency import count_streams, count_tagged
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
