"""A TRex server, real or embedded, as a Generator: acquired ports, raw counters, absolute rates."""

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
IDLE = ("IDLE", "STREAMS")  # states of a port that sends nothing
_DEFAULT_PROFILE = "_"
_TRY_AGAIN = -32001


class TrexGenerator:
    """The STL client's ports behind the ``Generator`` protocol; made by ``connect``. Times are on the run's clock.

    TRex reads its ports' counters when it is asked (``CGlobalTRex::port_stats_to_json`` synchronizes first), and the
    server's own stamps around each port's answer say when.
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
        # Ports whose counted streams were started before. TRex would start them again without the marks that it counts
        # frames by, unless their filters are removed. Its client does so at each stop, and misses the last frames.
        self._marked: set[int] = set()
        self._dropped: int | None = None  # when the streams were loaded
        self.guard: Guard | None = None  # ended when the ports are given back
        self.lost_a_port = False  # True once PortOwned was raised

    # the Generator protocol

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
        if self._streams.counted and any(NO_COUNTER in refusal.text for refusal in answer.refusals()):
            self._channel.batch([("stop_traffic", self._owned(port)) for port in rates_pps])
            self._streams.uncount("other users' packet groups hold the server's counters")
            answer = self._channel.batch(calls)
        self._running = dict(rates_pps)
        self._marked = self._streams.counted.keys() & {*self._marked, *rates_pps}
        if answer.refusals():
            with suppress(GeneratorError):  # the refusal of the start says more than one of the stop
                self.stop()
            self._raise_refusal("start", answer.refusals()[0])

    def update(self, rates_pps: Mapping[int, float]) -> None:
        changed = {port: pps for port, pps in rates_pps.items() if self._running.get(port) != pps}
        if not changed:
            return
        calls = [("update_traffic", {**self._owned(port), **_multiplier(pps)}) for port, pps in changed.items()]
        self._batch("update", calls)
        self._running.update(changed)

    def stop(self) -> None:
        self._batch("stop", [("stop_traffic", self._owned(port)) for port in self.ports])
        self._running = {}

    def tag(self, rates_pps: Mapping[int, float]) -> None:
        self._marked = set()
        self._streams.tag(rates_pps)

    def read(self) -> Reading:
        self._refresh_status()
        self._server_clock.set_by(self._channel)
        calls: list[Call] = [("get_global_stats", {}), ("ping", {})]
        for port in self.ports:
            calls += [("get_port_stats", {"port_id": port}), ("ping", {})]
        groups = self._streams.groups
        if groups:
            calls += [("get_pgid_stats", {"pgids": groups}), ("ping", {})]
        answer = self._batch("read", calls)
        total, counters = answer.results[0], answer.results[2::2]
        stamps = [float(ping["ts"]) for ping in answer.results[1::2]]
        offset_s = self._server_clock.offset_s(answer.sent_s, answer.received_s, stamps[0], stamps[-1])
        times = [(before + after) / 2 + offset_s for before, after in pairwise(stamps)]
        ports = {
            port: self._counters(port, time, raw, total)
            for port, time, raw in zip(self.ports, times, counters, strict=False)
        }
        tagged, streams = self._streams.read(counters[-1] if groups else {}, times[-1])
        senders = {port: sender for port, raw in zip(self.ports, counters, strict=False) if (sender := _sender(raw))}
        # where it does not try again (low_end, --queue-drop) TRex counts frames in the second (CCoreEthIF::send_burst)
        full, dropped = (_optional_int(total.get(f"m_total_queue_{what}")) for what in ("full", "drop"))
        self._dropped = dropped if self._dropped is None else self._dropped
        streams = streams if dropped == self._dropped else {}  # which have counted the dropped frames as sent
        return Reading(ports, None if full is None else full + (dropped or 0), tagged, streams, senders)

    # for connect and the session

    def load(
        self,
        path: Path,
        tunables: Mapping[str, str],
        tx_ports: Sequence[int],
        vlans: Mapping[int, Sequence[int]] | None = None,
    ) -> dict[int, Profile]:
        """Replace the streams of these ports by the profile's, each for its own direction.

        vlans: the tags in every frame of a port, outer first. Our other ports lose their streams: those of an earlier
        run would keep their packet groups' numbers.
        """
        for port in tx_ports:
            if lack := lack_of_destination(self._port_status(port), self._stl.get_server_version()):
                raise GeneratorError(f"port {port}: {lack[0]}", lack[1])
        self._marked, self._dropped = set(), None
        return self._streams.load(path, tunables, tx_ports, vlans)

    @property
    def can_tag(self) -> bool:
        """True if every port times the frames of latency streams that come back to it."""
        described = self._described()
        return all("latency" in described[port].get("rx", {}).get("caps", ()) for port in self.ports)

    @property
    def flow_controlled(self) -> tuple[int, ...]:
        """Ports with flow control."""
        return tuple(port for port in self.ports if has_flow_control(self._port_status(port)))

    def speed_bps(self, port: int) -> float:
        """Nominal L1 speed of the port; 0 if it is unknown."""
        return nominal_bps(self._described()[port], self._port_status(port))

    def mac(self, port: int) -> str | None:
        """MAC of any of the server's ports, taken or not; None if it names none."""
        source = ethernet_of(self._port_status(port)).get("src")
        return str(source) if source else None

    def facts(self) -> dict[str, Any]:
        """Description of the generator for the result document."""
        version, system = self._stl.get_server_version(), self._stl.get_server_system_info()
        described, api = self._described(), self._stl.ctx.api_ver
        embedded = is_embedded(version)
        client = {"origin": self.client.origin, "version": self.client.version, "api": f"{api['major']}.{api['minor']}"}
        return {
            "kind": "embedded STL server" if embedded else "TRex",
            "simulated": embedded and any(port.get("driver") == SIMULATED for port in described.values()),
            "server": {"address": self._channel.where, **{key: version.get(key) for key in _VERSION}},
            "host": {key: system.get(key) for key in ("hostname", "core_type", "dp_core_count", "uptime")},
            "client": client,
            "ports": [self._port_facts(port, described[port]) for port in self.ports],
            "streams_not_counted": self._streams.uncounted,
        }

    def release(self) -> None:
        """Stop, remove the streams and give the ports back, each even if others refuse, in one exchange."""
        owned = [self._owned(port) for port in self.ports]
        methods = ("stop_traffic", "remove_all_streams", "release")
        answer = self._channel.batch([(method, params) for method in methods for params in owned])
        self._running = {}
        if self.guard is not None:
            self.guard.done()
        if answer.refusals():
            self._raise_refusal("release", answer.refusals()[0])

    def handlers(self) -> dict[int, str]:
        """Proofs of ownership by port: whoever has them may stop the ports."""
        return {port: str(self._stl.ports[port].handler) for port in self.ports}

    def _batch(self, doing: str, calls: Sequence[Call]) -> Answer:
        """Send a batch of commands, none of which may be refused."""
        answer = self._channel.batch(calls)
        if answer.refusals():
            self._raise_refusal(doing, answer.refusals()[0])
        return answer

    def _owned(self, port: int) -> dict[str, Any]:
        return {"port_id": port, "handler": self._stl.ports[port].handler, "profile_id": _DEFAULT_PROFILE}

    def _counters(self, port: int, time_s: float, raw: Mapping[str, Any], total: Mapping[str, Any]) -> PortCounters:
        # TRex's value smoothed over half a second: the raw one, over a tenth, varies too much to blame anybody. Where
        # the server does not report the port's own, that of all cores.
        cpu = raw.get("m_cpu_util", total.get("m_cpu_util"))
        before, sent = self._sent.get(port, (0, 0)), (int(raw["opackets"]), int(raw["obytes"]))
        if 0 < before[0] - sent[0] <= MOST_ARP:  # TRex has just subtracted frames of its own
            sent = before
        self._sent[port] = sent
        return PortCounters(
            t_s=time_s,
            opackets=sent[0],
            obytes=sent[1],
            **{key: int(raw[key]) for key in _COUNTERS},
            link_up=link_up(self._status[port]),
            queue_full=_optional_int(raw.get("queue_full")),
            cpu_percent=None if cpu is None else float(cpu),
        )

    def _refresh_status(self) -> None:
        now = self._clock.now()
        if now - self._status_at < STATUS_EVERY_S:
            return
        self._status_at = now
        for port, status in self._ask_status():
            if not isinstance(status, Refusal):
                self._status[port] = status
                self._check_owner(port, status)
            elif status.code != _TRY_AGAIN or port not in self._status:
                self._raise_refusal("read", status)

    def _ask_status(self) -> Iterator[tuple[int, Any]]:
        answer = self._channel.batch([("get_port_status", status_of(port)) for port in self.ports])
        return zip(self.ports, answer.results, strict=True)

    def _check_owner(self, port: int, status: Mapping[str, Any]) -> None:
        owner = status.get("owner", "")
        if owner != self._stl.ctx.username:
            self.lost_a_port = True
            raise PortOwned(f"port {port} was taken away by {owner or 'nobody'!r}", "agree on who measures, then rerun")

    def _described(self) -> dict[int, Mapping[str, Any]]:
        return {int(port["index"]): port for port in self._stl.get_server_system_info()["ports"]}

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

    def _raise_refusal(self, doing: str, refusal: Refusal) -> None:
        where, text = self._channel.where, refusal.text
        meaning = meaning_of(text)
        if meaning is Meaning.NOT_OURS:
            with suppress(GeneratorLost):
                for port, status in self._ask_status():
                    if not isinstance(status, Refusal) and status.get("owner"):
                        self._check_owner(port, status)
            self.lost_a_port = True
            raise PortOwned(f"TRex server {where}: {text}", "somebody took the port by force; agree, then rerun")
        if doing == "update" and meaning is Meaning.WRONG_STATE:
            raise GeneratorLost(f"TRex server {where}: traffic ended by itself", f"see its log; it says: {text}")
        if meaning is Meaning.RESTARTED:
            raise GeneratorLost(
                f"TRex server {where} was restarted: its ports are no longer ours", "see its log; rerun"
            )
        if meaning is Meaning.TOO_FAST:
            raise GeneratorError(f"TRex server {where} cannot {doing}: {text}", "ask for less, or check the speed")
        raise GeneratorError(f"TRex server {where} cannot {doing}", text)


_START = {"force": False, "core_mask": ALL_CORES, "start_at_ts": 0}
_EMBEDDED, SIMULATED = "trexbench", "net_simulated"
"""Builder in the embedded server's version, and driver of its ports in a simulation."""
_DST_MAC = "name it with `trexbench lab serve --dst-mac`"
_RESOLVE = "check the cable and the address, then resolve it: in TRex's console, service mode and `arp`"
_DEST_MAC = "set dest_mac in TRex's trex_cfg.yaml"
CUT_GBPS = (100, 200)
"""TRexPortAttr::get_link_speed cuts any speed to the first up to v3.02, to the second since: DPDK's "unknown", too."""
_VERSION = ("version", "mode", "build_date", "build_time", "built_by")
_SENDER_COUNTERS = ("waited_ns", "preempted", "stolen_ns")
_COUNTERS = ("ipackets", "ibytes", "ierrors", "oerrors")
MOST_ARP = 8
"""Most frames by which opackets goes back: TRex subtracts its own ARP frames at once, but may count them later."""


def status_of(port: int) -> dict[str, Any]:
    return {"port_id": port, "profile_id": "*", "block": False}


def _multiplier(pps: float) -> dict[str, Any]:
    """Make an absolute rate for all streams of the port together."""
    return {"mul": {"type": "pps", "op": "abs", "value": round(pps, 6)}, "force": False}


def nominal_bps(described: Mapping[str, Any], status: Mapping[str, Any]) -> float:
    """L1 speed of a port; 0 if unknown, which TRex shows as one of CUT_GBPS; a VF may well have the lower one."""
    speed = float(status["attr"].get("speed") or 0)
    cut = CUT_GBPS if described.get("driver") == "net_virtio" else CUT_GBPS[1:]
    return 0.0 if described.get("is_virtual") and speed in cut else speed * 1e9


def ethernet_of(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Own and destination MAC of a port, and whether they are configured; empty if the server names none."""
    layers: Mapping[str, Any] = status["attr"].get("layer_cfg", {})
    return layers.get("ether") or {}


def link_up(status: Mapping[str, Any]) -> bool:
    return bool(status["attr"].get("link", {}).get("up", True))


def has_flow_control(status: Mapping[str, Any]) -> bool:
    """True if PAUSE frames (IEEE 802.3x) may hold the port's sender back, or the DUT's; TRex switches that off."""
    return int(status["attr"].get("fc", {}).get("mode", -1)) > 0


def obstacles(status: Mapping[str, Any], force: bool = False) -> Iterator[tuple[str, str, str]]:
    """Yield each obstacle to taking a port: a word for it, a description, and the remedy."""
    owner, state = status.get("owner"), status.get("state")
    if owner and not force:
        yield "owner", f"belongs to {owner!r}", "wait until it is given back, or take it with --force"
    elif state not in IDLE and not force:
        yield "state", f"is busy ({state}) without an owner", "--force stops it and takes it"
    if status.get("captured"):
        yield "capture", "is captured, and stays in service mode", "end that: in TRex's console, `capture clear`"
    if not link_up(status):
        yield "link", "has no link", "check the cable, and that the interface at its other end is up"


def is_embedded(version: Mapping[str, Any]) -> bool:
    return bool(version.get("built_by") == _EMBEDDED)


def lack_of_destination(status: Mapping[str, Any], version: Mapping[str, Any]) -> tuple[str, str] | None:
    """Explain why a port's frames have no destination MAC, with this server's remedy; None if they have one."""
    ipv4, ether = status["attr"].get("layer_cfg", {}).get("ipv4", {}), ethernet_of(status)
    if ipv4.get("state") == "unresolved":
        reason = f"no MAC address is known for its destination {ipv4.get('dst')}"
        return reason, _DST_MAC if is_embedded(version) else _RESOLVE
    if ipv4.get("state", "none") == "none" and ether.get("state") == "unconfigured":
        return "no destination MAC address is configured", _DST_MAC if is_embedded(version) else _DEST_MAC
    return None


def _sender(raw: Mapping[str, Any]) -> SenderCounters | None:
    """Counters of a port's sender, which the embedded server alone reports."""
    counters = {name: int(raw[name]) for name in _SENDER_COUNTERS if raw.get(name) is not None}
    return SenderCounters(**counters) if counters else None


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)
