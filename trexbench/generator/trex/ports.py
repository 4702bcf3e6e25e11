"""TRex, or the embedded server, as a Generator: acquired ports, raw counters, absolute rates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...core.errors import ConfigError, GeneratorError, GeneratorLost, PortOwned
from ...core.load.profile import Profile
from ...core.load.sample import PortCounters, Reading, SenderCounters
from ...core.protocols import Clock
from .client import NO_COUNTER, Client, Meaning, meaning_of
from .guard import Guard
from .rpc import Answer, Call, Channel, Refusal, ServerClock
from .streams import PortStreams

STATUS_EVERY_S = 0.45
"""Interval at which link and owner are polled; a port's status takes twenty times the bytes of its counters.

Under half of the usual window of a second, so that two polls are less than a window apart whatever the sample time: a
link that is down for three windows, after which loss counts, is then seen to be down.
"""

ALL_CORES = 2**64 - 1
IDLE = ("IDLE", "STREAMS")
"""States of a port that sends nothing."""
_DEFAULT_PROFILE = "_"
_TRY_AGAIN = -32001


class TrexGenerator:
    """The STL client's ports behind the ``Generator`` protocol; made by ``connect``. Times are on the run's clock.

    Counters are what TRex reads from its ports when it is asked (``CGlobalTRex::port_stats_to_json`` synchronizes
    first), and the server's own stamps around each port's answer say when that was.
    """

    def __init__(self, client: Client, stl: Any, channel: Channel, ports: Sequence[int], clock: Clock) -> None:
        self.client = client
        self.ports = tuple(ports)
        self._stl = stl
        self._channel = channel
        self._clock = clock
        self._server_clock = ServerClock()
        self._running: dict[int, float] = {}
        self._streams = PortStreams(client, stl, channel.where, ports)
        self._status: dict[int, Mapping[str, Any]] = {}
        self._status_at = -math.inf
        self._sent: dict[int, tuple[int, int]] = {}
        self._marked: set[int] = set()
        """Ports whose counted streams were started before. TRex would start them again without the marks that it counts
        frames by, unless their filters are removed; its client does so at each stop, which would miss the last frames.
        """
        self.guard: Guard | None = None
        """Ended when the ports are given back."""
        self.lost_a_port = False
        """True if PortOwned was raised: a port is not ours any more."""

    # what the protocol asks for

    def start(self, rates_pps: Mapping[int, float], duration_s: float) -> None:
        if not 0 < duration_s < math.inf:
            raise ConfigError(f"a start for {duration_s} s", "every start is bounded: name a positive duration")
        seconds = float(math.ceil(duration_s))
        calls: list[Call] = [
            ("start_traffic", {**self._owned(port), **_multiplier(pps), "duration": seconds, **_START})
            for port, pps in rates_pps.items()
        ]
        unmark: list[Call] = [("remove_rx_filters", self._owned(port)) for port in rates_pps if port in self._marked]
        answer = self._channel.batch([*unmark, *calls])
        if self._streams.counted and any(NO_COUNTER in one.text for one in answer.refusals()):
            self._channel.batch([("stop_traffic", self._owned(port)) for port in rates_pps])
            self._streams.uncount("packet groups of others hold the server's counters")
            answer = self._channel.batch(calls)
        self._running = dict(rates_pps)
        self._marked = self._streams.counted.keys() & {*self._marked, *rates_pps}
        if answer.refusals():
            with suppress(GeneratorError):  # the refusal of the start says more than one of the stop
                self.stop()
            self._refused("start", answer.refusals()[0])

    def update(self, rates_pps: Mapping[int, float]) -> None:
        changed = {port: pps for port, pps in rates_pps.items() if self._running.get(port) != pps}
        if not changed:
            return
        self._all_of(
            "update", [("update_traffic", {**self._owned(port), **_multiplier(pps)}) for port, pps in changed.items()]
        )
        self._running.update(changed)

    def stop(self) -> None:
        self._all_of("stop", [("stop_traffic", self._owned(port)) for port in self.ports])
        self._running = {}

    def tag(self, rates_pps: Mapping[int, float]) -> None:
        self._marked = set()
        self._streams.tag(rates_pps)

    def read(self) -> Reading:
        self._refresh_status()
        calls: list[Call] = [("get_global_stats", {}), ("ping", {})]
        for port in self.ports:
            calls += [("get_port_stats", {"port_id": port}), ("ping", {})]
        groups = self._streams.groups
        if groups:
            calls += [("get_pgid_stats", {"pgids": groups}), ("ping", {})]
        answer = self._all_of("read", calls)
        total, stamps, counters = answer.results[0], answer.results[1::2], answer.results[2::2]
        times = self._times(answer.sent_s, answer.received_s, [float(one["ts"]) for one in stamps])
        ports = {
            port: self._counters(port, time, raw, total)
            for port, time, raw in zip(self.ports, times, counters, strict=False)
        }
        tagged, streams = self._streams.read(counters[-1] if groups else {}, times[-1])
        senders = {port: one for port, raw in zip(self.ports, counters, strict=False) if (one := _sender(raw))}
        return Reading(ports, _whole(total.get("m_total_queue_full")), tagged, streams, senders)

    # more, for connect and the session

    def load(
        self,
        path: Path,
        tunables: Mapping[str, str],
        tx_ports: Sequence[int],
        vlans: Mapping[int, Sequence[int]] | None = None,
    ) -> dict[int, Profile]:
        """Put the profile's streams on these ports, each for its own direction, in place of what they had.

        vlans: the tags in every frame of a port, outer first.
        Our other ports lose theirs as well: streams of an earlier run would keep their packet groups' numbers.
        """
        for port in tx_ports:
            self._require_destination(port)
        self._marked = set()
        return self._streams.load(path, tunables, tx_ports, vlans)

    @property
    def can_tag(self) -> bool:
        """True if every port times the frames of latency streams that come back to it."""
        described = self._described()
        return all("latency" in described[port].get("rx", {}).get("caps", ()) for port in self.ports)

    def speed_bps(self, port: int) -> float:
        """The port's nominal L1 speed; 0 when it does not know one."""
        return nominal_bps(self._described()[port], self._port_status(port))

    def mac(self, port: int) -> str | None:
        """The MAC of any of the server's ports, taken or not; None where it names none."""
        found = ethernet_of(self._port_status(port)).get("src")
        return str(found) if found else None

    def facts(self) -> dict[str, Any]:
        """Who generates here, for the result document."""
        version, system = self._stl.get_server_version(), self._stl.get_server_system_info()
        described, spoken = self._described(), self._stl.ctx.api_ver
        api = f"{spoken['major']}.{spoken['minor']}"
        embedded = is_embedded(version)
        return {
            "kind": "embedded STL server" if embedded else "TRex",
            "simulated": embedded and any(one.get("driver") == SIMULATED for one in described.values()),
            "server": {"address": self._channel.where, **{key: version.get(key) for key in _VERSION}},
            "host": {key: system.get(key) for key in ("hostname", "core_type", "dp_core_count", "uptime")},
            "client": {"origin": self.client.origin, "version": self.client.version, "api": api},
            "ports": [self._port_facts(port, described[port]) for port in self.ports],
            "streams_not_counted": self._streams.uncounted,
        }

    def release(self) -> None:
        """Stop, remove the streams and give the ports back: in one exchange, each port even if others refuse."""
        owned = [self._owned(port) for port in self.ports]
        methods = ("stop_traffic", "remove_all_streams", "release")
        answer = self._channel.batch([(method, one) for method in methods for one in owned])
        self._running = {}
        if self.guard is not None:
            self.guard.done()
        if answer.refusals():
            self._refused("release", answer.refusals()[0])

    def handlers(self) -> dict[int, str]:
        """The proofs of ownership, by port: who has them may stop the ports."""
        return {port: str(self._stl.ports[port].handler) for port in self.ports}

    # inside

    def _all_of(self, doing: str, calls: Sequence[Call]) -> Answer:
        """The answer to a batch of which nothing was refused."""
        answer = self._channel.batch(calls)
        if answer.refusals():
            self._refused(doing, answer.refusals()[0])
        return answer

    def _owned(self, port: int) -> dict[str, Any]:
        return {"port_id": port, "handler": self._stl.ports[port].handler, "profile_id": _DEFAULT_PROFILE}

    def _times(self, sent_s: float, received_s: float, stamps: Sequence[float]) -> list[float]:
        """Return when each port's counters were read: between the stamps around them."""
        offset_s = self._server_clock.offset_s(sent_s, received_s, stamps[0], stamps[-1])
        return [(before + after) / 2 + offset_s for before, after in pairwise(stamps)]

    def _counters(self, port: int, time_s: float, raw: Mapping[str, Any], total: Mapping[str, Any]) -> PortCounters:
        # TRex's value smoothed over half a second: the raw one is of a tenth, and varies too much to blame anybody
        # with. Where the server does not tell the port's own: that of all cores.
        cpu = raw.get("m_cpu_util", total.get("m_cpu_util"))
        sent = self._sent[port] = _without_arp(self._sent.get(port, (0, 0)), (int(raw["opackets"]), int(raw["obytes"])))
        return PortCounters(
            t_s=time_s,
            opackets=sent[0],
            obytes=sent[1],
            **{key: int(raw[key]) for key in _COUNTERS},
            link_up=link_up(self._status[port]),
            queue_full=_whole(raw.get("queue_full")),
            cpu_percent=None if cpu is None else float(cpu),
        )

    def _refresh_status(self) -> None:
        now = self._clock.now()
        if now - self._status_at < STATUS_EVERY_S:
            return
        self._status_at = now
        calls: list[Call] = [("get_port_status", status_of(port)) for port in self.ports]
        answer = self._channel.batch(calls)
        for port, status in zip(self.ports, answer.results, strict=True):
            if not isinstance(status, Refusal):
                self._status[port] = status
                self._still_ours(port, status)
            elif status.code != _TRY_AGAIN or port not in self._status:
                self._refused("read", status)

    def _still_ours(self, port: int, status: Mapping[str, Any]) -> None:
        owner = status.get("owner", "")
        if owner != self._stl.ctx.username:
            self.lost_a_port = True
            raise PortOwned(f"port {port} was taken away by {owner or 'nobody'!r}", "agree on who measures, then rerun")

    def _name_new_owner(self) -> None:
        """PortOwned with the port and its new owner's name, when the server says so."""
        answer = self._channel.batch([("get_port_status", status_of(port)) for port in self.ports])
        for port, status in zip(self.ports, answer.results, strict=True):
            if not isinstance(status, Refusal) and status.get("owner"):
                self._still_ours(port, status)

    def _described(self) -> dict[int, Mapping[str, Any]]:
        return {int(one["index"]): one for one in self._stl.get_server_system_info()["ports"]}

    def _port_status(self, port: int) -> Mapping[str, Any]:
        if port not in self._status:
            self._status[port] = self._channel.call("get_port_status", **status_of(port))
        return self._status[port]

    def _port_facts(self, port: int, described: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "port": port,
            "driver": described.get("driver"),
            "description": described.get("description"),
            "pci": described.get("pci_addr"),
            **({"xdp_mode": mode} if (mode := described.get("xdp_mode")) else {}),
            "numa": described.get("numa"),
            "mac": self.mac(port),
            "destination_mac": ethernet_of(self._port_status(port)).get("dst"),
            "speed_bps": self.speed_bps(port),
        }

    def _require_destination(self, port: int) -> None:
        if (lack := lack_of_destination(self._port_status(port), self._stl.get_server_version())) is not None:
            raise GeneratorError(f"port {port}: {lack[0]}", lack[1])

    def _refused(self, doing: str, refusal: Refusal) -> None:
        where, text = self._channel.where, refusal.text
        meaning = meaning_of(text)
        if meaning is Meaning.NOT_OURS:
            with suppress(GeneratorLost):
                self._name_new_owner()
            self.lost_a_port = True
            raise PortOwned(f"TRex server {where}: {text}", "somebody took the port by force; agree, then rerun")
        if doing == "update" and meaning is Meaning.WRONG_STATE:
            raise GeneratorLost(f"TRex server {where}: traffic ended by itself", f"see its log; it says: {text}")
        if meaning is Meaning.RESTARTED:
            raise GeneratorLost(f"TRex server {where} was restarted, its ports are not ours", "see its log; rerun")
        if meaning is Meaning.TOO_FAST:
            raise GeneratorError(f"TRex server {where} cannot {doing}: {text}", "ask for less, or check the speed")
        raise GeneratorError(f"TRex server {where} cannot {doing}", text)


_START = {"force": False, "core_mask": ALL_CORES, "start_at_ts": 0}
_EMBEDDED, SIMULATED = "trexbench", "net_simulated"
"""Builder that the embedded server names in its version, and the driver of ports behind which no packet moves."""
_DST_MAC = "name it with `trexbench lab serve --dst-mac`"
_RESOLVE = "check the cable and the address, then resolve it: in TRex's console, service mode and `arp`"
_DEST_MAC = "set dest_mac in TRex's trex_cfg.yaml"
MOST_GBPS = 200
"""TRexPortAttr::get_link_speed cuts any speed to this, DPDK's RTE_ETH_SPEED_NUM_UNKNOWN too."""
_VERSION = ("version", "mode", "build_date", "build_time", "built_by")
_OF_SENDER = ("waited_ns", "preempted", "stolen_ns")
_COUNTERS = ("ipackets", "ibytes", "ierrors", "oerrors")
MOST_ARP = 8
"""Frames by which opackets may fall short: TRex takes the ARP frames that it sends of its own accord out of it at once,
and the port may count them before or after.
"""


def status_of(port: int) -> dict[str, Any]:
    return {"port_id": port, "profile_id": "*", "block": False}


def _multiplier(pps: float) -> dict[str, Any]:
    """An absolute rate of all the port's streams together."""
    return {"mul": {"type": "pps", "op": "abs", "value": round(pps, 6)}, "force": False}


def nominal_bps(described: Mapping[str, Any], status: Mapping[str, Any]) -> float:
    """A port's L1 speed; 0 where it is unknown: TRex shows that, as of a virtio port, as the most that it knows."""
    speed = float(status["attr"].get("speed") or 0)
    return 0.0 if described.get("is_virtual") and speed == MOST_GBPS else speed * 1e9


def ethernet_of(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """A port's own and destination MAC, and whether these are configured; empty where the server names none."""
    layers: Mapping[str, Any] = status["attr"].get("layer_cfg", {})
    return layers.get("ether") or {}


def link_up(status: Mapping[str, Any]) -> bool:
    return bool(status["attr"].get("link", {}).get("up", True))


def obstacles(status: Mapping[str, Any], force: bool = False) -> Iterator[tuple[str, str, str]]:
    """Yield what keeps a run from taking a port: a word for it, what was found, and the remedy."""
    owner, state = status.get("owner"), status.get("state")
    if owner and not force:
        yield "owner", f"belongs to {owner!r}", "wait until it is given back, or take it with --force"
    elif state not in IDLE and not force:
        yield "state", f"is busy ({state}) without an owner", "--force stops it and takes it"
    if not link_up(status):
        yield "link", "has no link", "check the cable, and that the interface at its other end is up"


def is_embedded(version: Mapping[str, Any]) -> bool:
    return bool(version.get("built_by") == _EMBEDDED)


def lack_of_destination(status: Mapping[str, Any], version: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a port's frames have no MAC address to go to, and the remedy on this server; None where they have one."""
    ipv4, ether = status["attr"].get("layer_cfg", {}).get("ipv4", {}), ethernet_of(status)
    if ipv4.get("state") == "unresolved":
        what = f"no MAC address is known for its destination {ipv4.get('dst')}"
        return what, _DST_MAC if is_embedded(version) else _RESOLVE
    if ipv4.get("state", "none") == "none" and ether.get("state") == "unconfigured":
        return "no destination MAC address is configured", _DST_MAC if is_embedded(version) else _DEST_MAC
    return None


def _without_arp(before: tuple[int, int], now: tuple[int, int]) -> tuple[int, int]:
    """Frames and bytes sent, which grow also where TRex has just subtracted frames of its own."""
    return before if 0 < before[0] - now[0] <= MOST_ARP else now


def _sender(raw: Mapping[str, Any]) -> SenderCounters | None:
    """Find what the embedded server reports of a port's sender; None of another."""
    said = {name: int(raw[name]) for name in _OF_SENDER if raw.get(name) is not None}
    return SenderCounters(**said) if said else None


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
