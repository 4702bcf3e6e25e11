"""One long conversation with an STL server, call by call, for comparing its answers with TRex's.

``$h0`` and ``$h1`` stand for the handlers of ports 0 and 1, which the calls of ``acquire`` return; ``$session`` for
a new session's number. Every line names what it asks about. Traffic is at most 1000 packets/s.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# 60 bytes of Ethernet, IPv4 and UDP
PACKET = bytes.fromhex("02000000010100000002000008004500002e0001000040113ab710000004300000040401000c001a0000")
PACKET += b"x" * 18
SESSION = "$session"


@dataclass(frozen=True)
class Call:
    """about: a plain line, unique; keep: the handler that the result is kept as."""

    about: str
    method: str
    params: Any
    keep: str | None = None


def packet(frame: bytes) -> dict[str, str]:
    return {"binary": base64.b64encode(frame).decode(), "meta": ""}


def stream(**changes: Any) -> dict[str, Any]:
    """A continuous stream of 1 packet/s, with changes."""
    return {
        "flags": 2,
        "action_count": 0,
        "enabled": True,
        "self_start": True,
        "start_paused": False,
        "isg": 0,
        "core_id": -1,
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": 1}},
        "packet": packet(PACKET),
        "vm": {"instructions": []},
        "flow_stats": {"enabled": False},
        "next_stream_id": -1,
        **changes,
    }


def rate(kind: str, value: Any, **changes: Any) -> dict[str, Any]:
    return stream(mode={"type": "continuous", "rate": {"type": kind, "value": value}}, **changes)


def single_burst(pkts: Any, pps: float, **changes: Any) -> dict[str, Any]:
    mode = {"type": "single_burst", "total_pkts": pkts, "rate": {"type": "pps", "value": pps}}
    return stream(mode=mode, **changes)


def multi_burst(pkts: Any, count: Any, ibg: Any, **changes: Any) -> dict[str, Any]:
    mode = {"type": "multi_burst", "pkts_per_burst": pkts, "count": count, "ibg": ibg}
    return stream(mode={**mode, "rate": {"type": "pps", "value": 1000}}, **changes)


def vm(*instructions: Mapping[str, Any]) -> dict[str, Any]:
    return stream(vm={"instructions": [dict(one) for one in instructions]})


VAR = {"type": "flow_var", "name": "v", "size": 4, "op": "inc", "step": 1, "split_to_cores": True, "next_var": None}
VAR |= {"init_value": 1, "min_value": 1, "max_value": 9}
WRITE = {"type": "write_flow_var", "name": "v", "pkt_offset": 26, "add_value": 0, "is_big_endian": True}


def add(about: str, stream_id: Any, body: Any, **changes: Any) -> Call:
    params = {"handler": "$h0", "port_id": 0, "profile_id": "_", "stream_id": stream_id, "stream": body}
    return Call(about, "add_stream", {**params, **changes})


def own(about: str, method: str, **params: Any) -> Call:
    """A call on port 0 by its owner."""
    return Call(about, method, {"handler": "$h0", "port_id": 0, "profile_id": "_", **params})


def start(about: str, kind: str, value: Any, op: str = "abs", **changes: Any) -> Call:
    params = {"mul": {"type": kind, "op": op, "value": value}, "duration": -1, "force": False, "start_at_ts": 0}
    return own(about, "start_traffic", **{**params, **changes})


def update(about: str, kind: str, op: str, value: Any, force: bool = False) -> Call:
    return own(about, "update_traffic", mul={"type": kind, "op": op, "value": value}, force=force)


def update_streams(about: str, stream_ids: list[int]) -> Call:
    mul = {"type": "pps", "op": "abs", "value": 1}
    return own(about, "update_streams", mul=mul, force=False, stream_ids=stream_ids)


def promiscuous(about: str, enabled: bool) -> Call:
    attr = {"promiscuous": {"enabled": enabled}}
    return Call(about, "set_port_attr", {"port_id": 0, "handler": "$h0", "attr": attr})


def acquire(about: str, port: int = 0, user: str = "me", session: Any = SESSION, keep: str | None = None) -> Call:
    params = {"port_id": port, "user": user, "force": False, "session_id": session}
    return Call(about, "acquire", params, keep)


GENERAL = [
    Call("the name of another mode", "api_sync_v2", {"name": "ASTF", "major": 5, "minor": 1}),
    Call("an older major version", "api_sync_v2", {"name": "STL", "major": 4, "minor": 1}),
    Call("a newer major version", "api_sync_v2", {"name": "STL", "major": 6, "minor": 0}),
    Call("a newer minor version", "api_sync_v2", {"name": "STL", "major": 5, "minor": 2}),
    Call("an older minor version", "api_sync_v2", {"name": "STL", "major": 5, "minor": 0}),
    Call("a version with a fraction", "api_sync_v2", {"name": "STL", "major": 5.5, "minor": 1}),
    Call("a version that is a whole float", "api_sync_v2", {"name": "STL", "major": 5.0, "minor": 1.0}),
    Call("ping", "ping", {}),
    Call("ping with nothing", "ping", None),
    Call("an unknown method", "make_coffee", {}),
    Call("a wrong API handler", "get_system_info", {"api_h": "xxxxxxxx"}),
    Call("an API handler of the wrong type", "get_system_info", {"api_h": 7}),
    Call("params that are missing", "get_system_info", None),
    Call("version", "get_version", {}),
    Call("system info", "get_system_info", {}),
    Call("supported commands", "get_supported_cmds", {}),
    Call("utilisation", "get_utilization", {}),
    Call("global configuration", "get_global_cfg", {}),
    Call("publish", "publish_now", {"key": 5, "baseline": False}),
    Call("publish with a key too large", "publish_now", {"key": 2**32, "baseline": False}),
    Call("events of a new session", "get_async_events", {"session_id": SESSION}),
    Call("global statistics", "get_global_stats", {}),
    Call("no packet groups", "get_active_pgids", {}),
    Call("statistics of no packet groups", "get_pgid_stats", {"pgids": []}),
    Call("statistics of packet groups, not a list", "get_pgid_stats", {"pgids": 1}),
    Call("tagged groups of nobody", "get_tpg_status", {}),
    Call("tagged groups of a user", "get_tpg_status", {"username": "me"}),
    Call("tagged groups' state", "get_tpg_state", {"username": "me"}),
    Call("tagged groups' statistics", "get_tpg_stats", {"port_id": 0, "tpgid": 1, "min_tag": 0, "max_tag": 1}),
    Call("disable tagged groups", "disable_tpg", {"username": "me"}),
    Call("captures", "capture", {"command": "status"}),
    Call("an unknown capture command", "capture", {"command": "sing"}),
]

PORTS = [
    Call("a port that is none", "get_port_stats", {"port_id": "0"}),
    Call("a port too large for a byte", "get_port_stats", {"port_id": 256}),
    Call("statistics of a port", "get_port_stats", {"port_id": 1}),
    Call("status", "get_port_status", {"port_id": 0, "profile_id": "*", "block": False}),
    Call("status of one profile", "get_port_status", {"port_id": 0, "profile_id": "_", "block": False}),
    Call("status without profiles", "get_port_status", {"port_id": 0, "block": False}),
    Call("release a free port", "release", {"port_id": 0, "handler": "x"}),
    Call("release without a handler", "release", {"port_id": 0}),
    Call("acquire without a session", "acquire", {"port_id": 0, "user": "me", "force": False}),
    acquire("acquire", keep="$h0"),
    acquire("acquire again"),
    acquire("acquire from another session", session=9),
    acquire("acquire as another user", user="you", session=9),
    Call("shutdown by another user", "shutdown", {"user": "you", "force": False}),
    acquire("acquire the other port", port=1, keep="$h1"),
    Call("events after acquiring", "get_async_events", {"session_id": SESSION}),
    Call("the wrong handler", "remove_all_streams", {"port_id": 0, "handler": "no", "profile_id": "_"}),
    promiscuous("promiscuous on", True),
    Call("promiscuous shows", "get_port_status", {"port_id": 0, "block": False}),
    promiscuous("promiscuous off", False),
    Call("promiscuous of the wrong type", "set_port_attr", {"port_id": 0, "attr": {"promiscuous": {"enabled": 1}}}),
    Call("an unknown attribute", "set_port_attr", {"port_id": 0, "attr": {"colour": {"red": True}}}),
    Call("LED", "set_port_attr", {"port_id": 0, "attr": {"led_status": {"on": True}}}),
    Call("VLANs, too many", "set_vlan", {"port_id": 0, "handler": "$h0", "vlan": [1, 2, 3], "block": False}),
    Call("a VLAN too large", "set_vlan", {"port_id": 0, "handler": "$h0", "vlan": [5000], "block": False}),
    Call("a bad MAC", "set_l2", {"port_id": 0, "handler": "$h0", "dst_mac": "pear", "block": False}),
    Call("a bad destination address", "set_l3", {"port_id": 0, "src_addr": "1.2.3.4", "dst_addr": "", "block": False}),
    own("a VLAN", "set_vlan", vlan=[100], block=False),
    own("the VLAN shows", "get_port_status", block=False),
    own("no VLAN again", "set_vlan", vlan=[], block=False),
    own("no IPv6", "conf_ipv6", enabled=False, src_ipv6="", block=False),
    own("a neighbour by its MAC", "set_l2", dst_mac="02:00:00:00:01:09", block=False),
    own("layer 2 shows", "get_port_status", block=False),
    own("a neighbour by its address", "set_l3", src_addr="100.65.1.2", dst_addr="100.65.1.1", block=False),
    own("an unresolved neighbour shows", "get_port_status", block=False),
    add("a stream that wants the port's neighbour", 1, stream(flags=0)),
    start("towards an unknown neighbour", "pps", 10, duration=1),
    own("remove that stream", "remove_all_streams"),
    own(
        "a neighbour by address and MAC",
        "set_l3",
        src_addr="100.65.1.2",
        dst_addr="100.65.1.1",
        resolved_mac="02:00:00:00:01:01",
        block=False,
    ),
    own("a resolved neighbour shows", "get_port_status", block=False),
    Call("service on", "service", {"port_id": 0, "handler": "$h0", "enabled": True, "filtered": False}),
    Call("service shows", "get_port_status", {"port_id": 0, "block": False}),
    Call("service off", "service", {"port_id": 0, "handler": "$h0", "enabled": False, "filtered": False}),
    Call("RX queue without service", "set_rx_feature", {"port_id": 0, "type": "queue", "enabled": True, "size": 9}),
    Call("RX queue off", "set_rx_feature", {"port_id": 0, "type": "queue", "enabled": False}),
    Call("an unknown RX feature", "set_rx_feature", {"port_id": 0, "type": "disco", "enabled": False}),
    Call("RX queue packets without service", "get_rx_queue_pkts", {"port_id": 0}),
    Call("names of extended statistics", "get_port_xstats_names", {"port_id": 0}),
    Call("values of extended statistics", "get_port_xstats_values", {"port_id": 0}),
]

STREAMS = [
    own("profiles before streams", "get_profile_list"),
    own(
        "start without streams", "start_traffic", mul={"type": "pps", "op": "abs", "value": 1}, duration=1, force=False
    ),
    own("validate without streams", "validate"),
    add("a stream", 1, stream()),
    add("the same stream again", 1, stream()),
    add("a stream that is text", 2, "x"),
    add("a stream without mode", 2, {}),
    add("a mode that is none", 2, stream(mode={"type": "sing", "rate": {"type": "pps", "value": 1}})),
    add("a rate of zero", 2, rate("pps", 0)),
    add("a rate's unit that is none", 2, rate("bananas", 1)),
    add("a burst of nothing", 2, single_burst(0, 1)),
    add("bursts of nothing", 2, multi_burst(0, 1, 1)),
    add("bursts with a gap below zero", 2, multi_burst(5, 1, -1)),
    add("enabled of the wrong type", 2, stream(enabled=1)),
    add("flags too large", 2, stream(flags=2**31)),
    add("a gap below zero", 2, stream(isg=-1)),
    add("a core that is none", 2, stream(core_id=7)),
    add("a packet of 13 bytes", 2, stream(packet=packet(b"x" * 13))),
    add("a packet of 9300 bytes", 2, stream(packet=packet(b"x" * 9300))),
    add("a packet that is no base64", 2, stream(packet={"binary": "!!", "meta": ""})),
    add("a packet without meta", 2, stream(packet={"binary": base64.b64encode(PACKET).decode()})),
    add("a program that is none", 2, stream(vm={})),
    add("an instruction that is none", 2, vm({"type": "sing"})),
    add("a variable of 3 bytes", 2, vm({**VAR, "size": 3})),
    add("a variable's operation that is none", 2, vm({**VAR, "op": "mul"})),
    add("a variable's step of zero", 2, vm({**VAR, "step": 0})),
    add("a variable's range upside down", 2, vm({**VAR, "min_value": 10, "init_value": 10})),
    add("a variable's start out of range", 2, vm({**VAR, "init_value": 0})),
    add("a variable's range too large", 2, vm({**VAR, "size": 1, "max_value": 256})),
    add("a random variable without limit", 2, vm({**VAR, "type": "flow_var_rand_limit", "limit": 0, "seed": 1})),
    add("a write with an offset too large", 2, vm(VAR, {**WRITE, "pkt_offset": 65536})),
    add("statistics without a group", 2, stream(flow_stats={})),
    own("remove a stream that is none", "remove_stream", stream_id=9),
    own("all streams", "get_all_streams"),
    own("all profiles' streams", "get_all_streams", profile_id="*"),
    own("all streams of an unknown profile", "get_all_streams", profile_id="nix"),
    own("validate one stream", "validate"),
    own("remove it", "remove_stream", stream_id=1),
    own("remove all of none", "remove_all_streams"),
    own("remove all of an unknown profile", "remove_all_streams", profile_id="nix"),
]

PROGRAMS = [
    call
    for about, body in [
        ("a write of an unknown variable", vm(VAR, {**WRITE, "name": "w"})),
        ("a write beyond the packet", vm(VAR, {**WRITE, "pkt_offset": 58})),
        ("two variables of one name", vm(VAR, VAR, WRITE)),
        ("too many variables", vm(*[{**VAR, "name": f"v{i}", "size": 8} for i in range(9)])),
        ("a checksum beyond the packet", vm({"type": "fix_checksum_ipv4", "pkt_offset": 50})),
        ("a trim by an unknown variable", vm({"type": "trim_pkt_size", "name": "w"})),
        ("a trim by 4 bytes", vm(VAR, {"type": "trim_pkt_size", "name": "v"})),
        ("a next variable that does not follow", vm({**VAR, "next_var": "w", "split_to_cores": False}, WRITE)),
        ("a next variable after the last", vm({**VAR, "next_var": "w", "split_to_cores": False})),
        ("a link to nowhere", single_burst(5, 100, next_stream_id=9)),
        ("a continuous stream with a link", stream(next_stream_id=5)),
        ("a stream that nothing starts", stream(self_start=False)),
    ]
    for call in (
        add(about, 5, body),
        start(f"{about}: start", "pps", 10, duration=1),
        own(f"{about}: remove", "remove_all_streams"),
    )
]

TRAFFIC = [
    add("two streams, the first", 1, rate("pps", 3)),
    add("two streams, the second", 2, rate("bps_L2", 1e6, packet=packet(PACKET + bytes(500)))),
    own("validate two streams", "validate"),
    start("more than the line", "percentage", 101),
    start("more than the line by factor", "raw", 1e9),
    start("an unknown kind", "bananas", 1),
    start("nothing", "pps", 0),
    start("relative", "pps", 100, op="add"),
    start("an empty core mask", "pps", 100, core_mask=0),
    start("another core", "pps", 100, core_mask=2),
    start("in the past", "pps", 100, start_at_ts=0.001),
    start("in an unknown profile", "pps", 100, profile_id="nix"),
    start("without duration", "pps", 100, duration=None),
    update("update while idle", "pps", "abs", 1),
    own("pause while idle", "pause_traffic"),
    own("resume while idle", "resume_traffic"),
    own("stop while idle", "stop_traffic"),
    own("stop all while idle", "stop_traffic", profile_id="*"),
    Call("events before the start", "get_async_events", {"session_id": SESSION}),
    start("in packets", "pps", 1000),
    start("twice", "pps", 1000),
    add("a stream while sending", 3, stream()),
    own("remove a stream while sending", "remove_stream", stream_id=1),
    own("remove all while sending", "remove_all_streams"),
    own("remove all profiles' while sending", "remove_all_streams", profile_id="*"),
    Call("a MAC while sending", "set_l2", {"port_id": 0, "dst_mac": "02:00:00:00:01:01", "block": False}),
    Call("events of the start", "get_async_events", {"session_id": SESSION}),
    Call("status while sending", "get_port_status", {"port_id": 0, "profile_id": "*", "block": False}),
    update("to another packet rate", "pps", "abs", 500),
    update("by more packets", "pps", "add", 100),
    update("by fewer packets", "pps", "sub", 50),
    update("by far fewer packets", "pps", "sub", 5000),
    update("to a share of the line", "percentage", "abs", 0.01),
    update("by a share of itself", "percentage", "add", 10),
    update("by a share of itself, down", "percentage", "sub", 20),
    update("to a bit rate", "bps", "abs", 300e3),
    update("to an L1 bit rate", "bpsl1", "abs", 300e3),
    update("to a factor", "raw", "abs", 2),
    update("to nothing", "pps", "abs", 0),
    update("to more than the line", "percentage", "abs", 120),
    update("an unknown operation", "pps", "mul", 3),
    update("a factor by force", "raw", "abs", 1, force=True),
    update_streams("update no single stream", []),
    own("pause no single stream", "pause_streams", stream_ids=[]),
    own("pause", "pause_traffic"),
    own("pause twice", "pause_traffic"),
    own("streams in pause", "get_port_status", block=False),
    update("in pause", "pps", "abs", 100),
    own("resume", "resume_traffic"),
    own("resume twice", "resume_traffic"),
    own("remove filters while sending", "remove_rx_filters"),
    Call("events of pause and resume", "get_async_events", {"session_id": SESSION}),
    own("stop", "stop_traffic"),
    own("remove filters", "remove_rx_filters"),
    Call("events of the stop", "get_async_events", {"session_id": SESSION}),
    own("by force", "start_traffic", mul={"type": "pps", "op": "abs", "value": 500}, duration=0, force=True),
    own("stop what was forced", "stop_traffic"),
    start("for a while", "pps", 1000, duration=30),
    own("pause what ends by itself", "pause_traffic"),
    own("stop all", "stop_traffic", profile_id="*"),
    own("remove all profiles' streams", "remove_all_streams", profile_id="*"),
    add("bursts", 4, multi_burst(10, 0, 1000.0)),
    own("validate endless bursts", "validate"),
    add("a chain, the first", 6, single_burst(2000, 1000, next_stream_id=7, isg=500.0)),
    add("a chain, the second", 7, multi_burst(1500, 3, 10.0, self_start=False)),
    own("validate a chain", "validate"),
    start("bursts, started", "raw", 1),
    own("pause bursts", "pause_traffic"),
    own("stop bursts", "stop_traffic"),
    own("remove the bursts", "remove_all_streams"),
    add("a stream in another profile", 1, rate("percentage", 0.001), profile_id="other"),
    add("the same stream there again", 1, stream(), profile_id="other"),
    own("profiles", "get_profile_list"),
    own("validate another profile", "validate", profile_id="other"),
    start("another profile", "raw", 1, profile_id="other"),
    own("status of two profiles", "get_port_status", profile_id="*", block=False),
    own("stop another profile", "stop_traffic", profile_id="other"),
    own("remove another profile's streams", "remove_all_streams", profile_id="*"),
    own("remove another profile's streams by its name", "remove_all_streams", profile_id="other"),
    own("push a file that is missing, badly", "push_remote", pcap_filename=5),
    Call("release", "release", {"port_id": 0, "handler": "$h0"}),
    Call("release again", "release", {"port_id": 0, "handler": "$h0"}),
    Call("release the other port", "release", {"port_id": 1, "handler": "$h1"}),
    Call("events of the rest", "get_async_events", {"session_id": SESSION}),
]

# Frames as they are, some of them no requests: what about, and the bytes.
FRAMES = {
    "no JSON": b"{",
    "an empty frame": b" ",
    "an empty object": b"{}",
    "an empty batch": b"[]",
    "no id": b'{"jsonrpc": "2.0", "method": "ping", "params": {}}',
    "an id that is null": b'{"jsonrpc": "2.0", "method": "ping", "id": null}',
    "an id that is a fraction": b'{"jsonrpc": "2.0", "method": "coffee", "id": 1.5}',
    "an id that is an object": b'{"jsonrpc": "2.0", "method": "coffee", "id": {"b": [1], "a": true}}',
    "another version of JSON-RPC": b'{"jsonrpc": "1.0", "method": "ping", "id": 1}',
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "a method that is a number": b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
    "a method that is a list": b'{"jsonrpc": "2.0", "id": 1, "method": []}',
    "params that are text": b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}',
    "something behind": b'{"jsonrpc": "2.0", "id": 1, "method": "coffee"} and more',
    "a batch of one": b'[{"jsonrpc": "2.0", "id": 1, "method": "coffee"}]',
    "a batch of two": b'[{"jsonrpc": "2.0", "id": 1, "method": "coffee"}, {"id": 2}]',
    "a batch of an empty object": b"[{}]",
    "text beyond ASCII": '{"jsonrpc": "2.0", "id": 1, "method": "caf\u00e9"}'.encode(),
    "an offset beyond ASCII": (
        '{"jsonrpc": "2.0", "id": "\u00e9", "method": "api_sync_v2", "params": {"name": 1}}'.encode()
    ),
    "a key twice": b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "method": "api_sync_v2", "params": {"name": 1}}',
    "compressed garbage": b"\xab\xe8\x5c\xea\x00\x00\x00\x05garbage",
    "too large": b" " * 1_000_000,
}

CONVERSATION = [*GENERAL, *PORTS, *STREAMS, *PROGRAMS, *TRAFFIC]


def fill(value: Any, handlers: Mapping[str, Any]) -> Any:
    """The params with placeholders replaced."""
    if isinstance(value, dict):
        return {key: fill(one, handlers) for key, one in value.items()}
    return handlers.get(value, value) if isinstance(value, str) else value
