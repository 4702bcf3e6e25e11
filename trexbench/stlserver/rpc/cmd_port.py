"""Ports: ownership, attributes, layer 2 and 3, service mode, and what needs a network stack (refused here)."""

from __future__ import annotations

import ipaddress

from ..params import Params
from ..state.port import UNOWNED, PortState, ServerPort, mac_bytes
from ..state.server_state import engine_refusals
from ..wire import Json, bad_params, cannot_execute
from .context import Context, Method, Table, of_port, owned, refused

NO_STACK = "this server has no network stack and captures no packets"
UNSUPPORTED_ATTRIBUTES = ("multicast", "link_status", "led_status", "flow_ctrl_mode", "vxlan_fs")


def acquire(ctx: Context, port: ServerPort, p: Params) -> Json:
    user, force, session_id = p.string("user"), p.boolean("force"), p.uint32("session_id")
    return ctx.state.acquire(port, user, session_id, force)


def release(ctx: Context, port: ServerPort, p: Params) -> None:
    ctx.state.release(port)


def get_owner(ctx: Context, port: ServerPort, p: Params) -> Json:
    return {"owner": port.owner.name if port.owner else UNOWNED}


def attributes(port: ServerPort) -> dict[str, Json]:
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


def _layer_cfg(port: ServerPort) -> Json:
    ether = {
        "src": port.src_mac.hex(":"),
        "dst": port.dst_mac.hex(":"),
        "state": "configured" if port.resolved else "unconfigured",
    }
    ipv4: dict[str, Json] = {"state": "none"}
    if port.src_ipv4:
        state = "resolved" if port.resolved else "unresolved"
        ipv4 = {"src": port.src_ipv4, "dst": port.dst_ipv4 or "0.0.0.0", "state": state}
    return {"ether": ether, "ipv4": ipv4, "ipv6": {"enabled": False}}


def get_port_status(ctx: Context, port: ServerPort, p: Params) -> Json:
    status: dict[str, Json] = {
        "owner": port.owner.name if port.owner else "",
        "state": port.state,
        "service": port.service,
        "service_filtered": port.service_filtered,
        "profile_count": len(port.profiles),
        "max_stream_id": max((i for one in port.profiles.values() for i in one.streams), default=0),
        "rx_info": {
            "latency": {"is_active": ctx.state.groups.active},
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


def set_port_attr(ctx: Context, port: ServerPort, p: Params) -> None:
    attr = p.object("attr")
    for name in sorted(attr.value):
        if name == "promiscuous":
            enabled = attr.object(name).boolean("enabled")
            with engine_refusals(f"Error applying {name}: "):
                ctx.engine.set_promiscuous(port.index, enabled)
            port.promiscuous = enabled
        elif name in UNSUPPORTED_ATTRIBUTES:
            raise cannot_execute(f"Error applying {name}: operation is not supported for this NIC.")
        else:
            raise cannot_execute(f"unknown attribute type: '{name}'")


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


def set_l2(ctx: Context, port: ServerPort, p: Params) -> None:
    mac = _mac(p.string("dst_mac"))
    port.require("set_l2_mode", PortState.IDLE, PortState.STREAMS)
    port.dst_mac, port.resolved = mac, True
    port.src_ipv4 = port.dst_ipv4 = None


def set_l3(ctx: Context, port: ServerPort, p: Params) -> None:
    """Addresses with a MAC that the client resolved, or without: then the destination stays unresolved."""
    source, destination = p.string("src_addr"), p.string("dst_addr")
    source, destination = _ipv4(source, "source"), _ipv4(destination, "destination")
    mac = None if p.get("resolved_mac") is None else _mac(p.string("resolved_mac"))
    port.require("set_l3_mode", PortState.IDLE, PortState.STREAMS)
    port.src_ipv4, port.dst_ipv4 = source, destination
    port.dst_mac, port.resolved = mac or port.dst_mac, mac is not None


def set_vlan(ctx: Context, port: ServerPort, p: Params) -> None:
    """Set the port's VLANs; as in TRex, they concern its service packets, not its streams."""
    tags = p.array("vlan")
    if len(tags.value) > 2:
        raise bad_params(f"Maximal number of stacked VLANs is 2, got: {len(tags.value)}")
    vlans = tuple(tags.uint16(index) for index in range(len(tags.value)))
    for vlan in vlans:
        if not 0 < vlan <= 4095:
            raise bad_params(f"invalid VLAN tag: '{vlan}'")
    port.require("set_vlan_cfg", PortState.IDLE, PortState.STREAMS)
    port.vlans = vlans


def conf_ipv6(ctx: Context, port: ServerPort, p: Params) -> None:
    enabled, source = p.boolean("enabled"), p.string("src_ipv6")
    port.require("conf_ipv6", PortState.IDLE, PortState.STREAMS)
    if enabled:
        raise cannot_execute(f"Could not configure IPv6: {NO_STACK} ({source or 'link local'})")


def conf_ns_batch(ctx: Context, port: ServerPort, p: Params) -> Json:
    p.string("batch")
    port.require("conf_ns_batch", PortState.IDLE, PortState.STREAMS)
    raise cannot_execute(f"no name spaces: {NO_STACK}")


def service(ctx: Context, port: ServerPort, p: Params) -> None:
    enabled, filtered = p.boolean("enabled"), p.boolean("filtered", False)
    p.byte("mask", 0)
    port.service, port.service_filtered = enabled, filtered


def set_rx_feature(ctx: Context, port: ServerPort, p: Params) -> Json:
    """Everything may be switched off; nothing that would have to receive packets can be switched on."""
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


def get_rx_queue_pkts(ctx: Context, port: ServerPort, p: Params) -> Json:
    if not port.service:
        raise cannot_execute("fetching RX queue packets is only available under service mode")
    return {"pkts": []}


def push_remote(ctx: Context, port: ServerPort, p: Params) -> Json:
    name = p.string("pcap_filename")
    port.require("push_remote", PortState.IDLE, PortState.STREAMS)
    raise cannot_execute(f"this server sends streams only, no capture files ({name})")


def capture(ctx: Context, p: Params) -> Json:
    command = p.choice("command", ("start", "stop", "fetch", "status", "remove"))
    if command == "status":
        return []
    if command == "start":
        raise cannot_execute(f"no capture: {NO_STACK}")
    p.uint32("capture_id")
    raise cannot_execute("capture ID not found")


def capture_port(ctx: Context, port: ServerPort, p: Params) -> Json:
    raise cannot_execute(f"Could not enable capture port on port {port.index}: {NO_STACK}")


METHODS: Table = {
    "acquire": of_port(acquire),
    "release": owned(release),
    "get_owner": of_port(get_owner),
    "get_port_status": of_port(get_port_status),
    "set_port_attr": of_port(set_port_attr),
    "set_l2": of_port(set_l2),
    "set_l3": of_port(set_l3),
    "set_vlan": of_port(set_vlan),
    "conf_ipv6": of_port(conf_ipv6),
    "conf_ns_batch": of_port(conf_ns_batch),
    "service": owned(service),
    "set_rx_feature": of_port(set_rx_feature),
    "get_rx_queue_pkts": of_port(get_rx_queue_pkts),
    "push_pkts": refused(
        "this server sends streams only, no single packets (push_pkts)",
        Context.port,
        lambda ctx, p: (p.uint32("ipg_usec", 0), p.array("pkts")),
    ),
    "push_remote": owned(push_remote),
    "capture": Method(capture),
    **dict.fromkeys(("start_capture_port", "stop_capture_port", "set_capture_port_bpf"), of_port(capture_port)),
}
