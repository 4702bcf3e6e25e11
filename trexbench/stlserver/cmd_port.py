"""Ports: ownership, attributes, layer 2 and 3, service mode, and what needs a network stack (refused here)."""

from __future__ import annotations

import ipaddress

from trexbench.stlserver.context import Context
from trexbench.stlserver.engine import EngineError
from trexbench.stlserver.method import Method, Table, owned
from trexbench.stlserver.params import Params
from trexbench.stlserver.port import IDLE, STREAMS, UNOWNED, Port, mac_bytes
from trexbench.stlserver.wire import Json, bad_params, cannot_execute

NO_STACK = "this server has no network stack and captures no packets"
UNSUPPORTED_ATTRIBUTES = ("multicast", "link_status", "led_status", "flow_ctrl_mode", "vxlan_fs")


def acquire(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    user, force, session_id = p.string("user"), p.boolean("force"), p.uint32("session_id")
    return ctx.box.acquire(port, user, session_id, force)


def release(ctx: Context, p: Params) -> Json:
    ctx.box.release(ctx.port(p))
    return {}


def get_owner(ctx: Context, p: Params) -> Json:
    owner = ctx.port(p).owner
    return {"owner": owner.name if owner else UNOWNED}


def mac_text(mac: bytes) -> str:
    return ":".join(f"{byte:02x}" for byte in mac)


def attributes(port: Port) -> dict[str, Json]:
    """A port's attributes as TRex describes a virtual one's."""
    return {
        "promiscuous": {"enabled": port.promiscuous},
        "multicast": {"enabled": False},
        "link": {"up": port.link_up},
        "speed": port.info.speed_bps / 1e9,
        "rx_filter_mode": "all" if port.service or port.service_filtered else "hw",
        "vxlan_fs": [],
        "fc": {"mode": -1},
    }


def _layer_cfg(port: Port) -> Json:
    ether = {
        "src": mac_text(port.src_mac),
        "dst": mac_text(port.dst_mac),
        "state": "configured" if port.resolved else "unconfigured",
    }
    ipv4: dict[str, Json] = {"state": "none"}
    if port.src_ipv4:
        state = "resolved" if port.resolved else "unresolved"
        ipv4 = {"src": port.src_ipv4, "dst": port.dst_ipv4 or "0.0.0.0", "state": state}
    return {"ether": ether, "ipv4": ipv4, "ipv6": {"enabled": False}}


def get_port_status(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    status: dict[str, Json] = {
        "owner": port.owner.name if port.owner else "",
        "state": port.state,
        "service": port.service,
        "service_filtered": port.service_filtered,
        "profile_count": len(port.profiles),
        "max_stream_id": max((i for one in port.profiles.values() for i in one.streams), default=0),
        "rx_info": {
            "latency": {"is_active": ctx.box.groups.active},
            **{name: {"is_active": False} for name in ("queue", "stack", "grat_arp", "capture_port", "capwap_proxy")},
        },
    }
    profile = p.profile("")
    if profile == "*":
        status["state_profile"] = {name: one.state for name, one in sorted(port.profiles.items())}
    elif profile:
        status["state_profile"] = port.profile(profile).state
    port.link_up = ctx.engine.link_up(port.index)
    tags = {"vlan": {"tags": list(port.vlans)}, "layer_cfg": _layer_cfg(port)}
    status["attr"] = {**attributes(port), **tags}
    return status


def set_port_attr(ctx: Context, p: Params) -> Json:
    port, attr = ctx.port(p), p.object("attr")
    for name in sorted(attr.value):
        if name == "promiscuous":
            enabled = attr.object(name).boolean("enabled")
            try:
                ctx.engine.set_promiscuous(port.index, enabled)
            except EngineError as err:
                raise cannot_execute(f"Error applying {name}: {err}") from err
            port.promiscuous = enabled
        elif name in UNSUPPORTED_ATTRIBUTES:
            raise cannot_execute(f"Error applying {name}: operation is not supported for this NIC.")
        else:
            raise cannot_execute(f"unknown attribute type: '{name}'")
    return {}


def _mac(text: str) -> bytes:
    try:
        return mac_bytes(text)
    except ValueError as err:
        raise bad_params(f"'invalid MAC address: '{text}'") from err


def _ipv4(text: str, which: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError as err:
        raise bad_params(f"invalid {which} IPv4 address: '{text}'") from err


def set_l2(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    mac = _mac(p.string("dst_mac"))
    port.require("set_l2_mode", IDLE, STREAMS)
    port.dst_mac, port.resolved = mac, True
    port.src_ipv4 = port.dst_ipv4 = None
    return {}


def set_l3(ctx: Context, p: Params) -> Json:
    """Addresses with a MAC that the client resolved, or without: then the destination stays unresolved."""
    port = ctx.port(p)
    source, destination = p.string("src_addr"), p.string("dst_addr")
    source, destination = _ipv4(source, "source"), _ipv4(destination, "destination")
    mac = None if p.get("resolved_mac") is None else _mac(p.string("resolved_mac"))
    port.require("set_l3_mode", IDLE, STREAMS)
    port.src_ipv4, port.dst_ipv4 = source, destination
    port.dst_mac, port.resolved = mac or port.dst_mac, mac is not None
    return {}


def set_vlan(ctx: Context, p: Params) -> Json:
    """As in TRex, the port's VLANs concern its service packets, not its streams."""
    port, tags = ctx.port(p), p.array("vlan")
    if len(tags.value) > 2:
        raise bad_params(f"Maximal number of stacked VLANs is 2, got: {len(tags.value)}")
    vlans = tuple(tags.uint16(index) for index in range(len(tags.value)))
    for vlan in vlans:
        if not 0 < vlan <= 4095:
            raise bad_params(f"invalid VLAN tag: '{vlan}'")
    port.require("set_vlan_cfg", IDLE, STREAMS)
    port.vlans = vlans
    return {}


def conf_ipv6(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    enabled, source = p.boolean("enabled"), p.string("src_ipv6")
    port.require("conf_ipv6", IDLE, STREAMS)
    if enabled:
        raise cannot_execute(f"Could not configure IPv6: {NO_STACK} ({source or 'link local'})")
    return {}


def conf_ns_batch(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    p.string("batch")
    port.require("conf_ns_batch", IDLE, STREAMS)
    raise cannot_execute(f"no name spaces: {NO_STACK}")


def service(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    enabled, filtered = p.boolean("enabled"), p.boolean("filtered", False)
    p.byte("mask", 0)
    port.service, port.service_filtered = enabled, filtered
    return {}


def set_rx_feature(ctx: Context, p: Params) -> Json:
    """Everything may be switched off; nothing that would have to receive packets can be switched on."""
    port = ctx.port(p)
    kind = p.choice("type", ("queue", "server", "capwap_proxy"))
    if kind == "server" or not p.boolean("enabled"):
        return {}
    if kind == "capwap_proxy":
        if not port.service:
            raise cannot_execute(f"Service mode must be enabled on port {port.index} for CAPWAP proxy")
        raise cannot_execute(f"no CAPWAP proxy: {NO_STACK}")
    if not port.service:
        raise cannot_execute("setting RX queue is only available under service mode")
    if p.uint32("size") == 0:
        raise bad_params("queue size cannot be zero")
    raise cannot_execute(f"no RX queue: {NO_STACK}")


def get_rx_queue_pkts(ctx: Context, p: Params) -> Json:
    if not ctx.port(p).service:
        raise cannot_execute("fetching RX queue packets is only available under service mode")
    return {"pkts": []}


def push_pkts(ctx: Context, p: Params) -> Json:
    ctx.port(p)
    p.uint32("ipg_usec", 0)
    p.array("pkts")
    raise cannot_execute("this server sends streams only, no single packets (push_pkts)")


def push_remote(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    name = p.string("pcap_filename")
    port.require("push_remote", IDLE, STREAMS)
    raise cannot_execute(f"this server sends streams only, no capture files ({name})")


def capture(ctx: Context, p: Params) -> Json:
    command = p.choice("command", ("start", "stop", "fetch", "status", "remove"))
    if command == "status":
        return []
    if command == "start":
        raise cannot_execute(f"no capture: {NO_STACK}")
    p.uint32("capture_id")
    raise cannot_execute("capture ID not found")


def capture_port(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    raise cannot_execute(f"Could not enable capture port on port {port.index}: {NO_STACK}")


METHODS: Table = {
    "acquire": Method(acquire),
    "release": owned(release),
    "get_owner": Method(get_owner),
    "get_port_status": Method(get_port_status),
    "set_port_attr": Method(set_port_attr),
    "set_l2": Method(set_l2),
    "set_l3": Method(set_l3),
    "set_vlan": Method(set_vlan),
    "conf_ipv6": Method(conf_ipv6),
    "conf_ns_batch": Method(conf_ns_batch),
    "service": owned(service),
    "set_rx_feature": Method(set_rx_feature),
    "get_rx_queue_pkts": Method(get_rx_queue_pkts),
    "push_pkts": Method(push_pkts),
    "push_remote": owned(push_remote),
    "capture": Method(capture),
    "start_capture_port": Method(capture_port),
    "stop_capture_port": Method(capture_port),
    "set_capture_port_bpf": Method(capture_port),
}
