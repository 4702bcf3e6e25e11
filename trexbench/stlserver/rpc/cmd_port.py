"""Methods of ports: ownership, attributes, layer 2 and 3, service mode; what needs a network stack is refused."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import TypeVar

from ..state.port import PortState, ServerPort, mac_bytes
from ..state.server_state import ServerState, engine_refusals
from ..wire import Json, Params, bad_params, cannot_execute
from .methods import Method, Table, of_port, owned, refused

T = TypeVar("T")
NO_STACK = "this server has no network stack and captures no packets"
_STACK_METHODS = """
    conf_ns_batch get_rx_queue_pkts push_pkts push_remote start_capture_port stop_capture_port set_capture_port_bpf
"""


def acquire(ctx: ServerState, port: ServerPort, p: Params) -> Json:
    user, force, session_id = p.string("user"), p.boolean("force"), p.uint32("session_id")
    return ctx.acquire(port, user, session_id, force)


def attributes(port: ServerPort) -> dict[str, Json]:
    """Attributes of a port, as TRex gives them for a virtual one."""
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
    ether = {"src": port.src_mac.hex(":"), "dst": port.dst_mac.hex(":")}
    ether["state"] = "configured" if port.resolved else "unconfigured"
    ipv4: dict[str, Json] = {"state": "none"}
    if port.src_ipv4:
        state = "resolved" if port.resolved else "unresolved"
        ipv4 = {"src": port.src_ipv4, "dst": port.dst_ipv4 or "0.0.0.0", "state": state}
    return {"ether": ether, "ipv4": ipv4, "ipv6": {"enabled": False}}


def get_port_status(ctx: ServerState, port: ServerPort, p: Params) -> Json:
    status: dict[str, Json] = {
        "owner": port.owner.name if port.owner else "",
        "state": port.state,
        "service": port.service,
        "service_filtered": port.service_filtered,
        "profile_count": len(port.profiles),
        "max_stream_id": max((i for profile in port.profiles.values() for i in profile.streams), default=0),
        "rx_info": {
            "latency": {"is_active": ctx.groups.active},
            **{name: {"is_active": False} for name in ("queue", "stack", "grat_arp", "capture_port", "capwap_proxy")},
        },
    }
    asked = p.profile("")
    if asked == "*":
        status["state_profile"] = {name: profile.state for name, profile in sorted(port.profiles.items())}
    elif asked:
        status["state_profile"] = port.profile(asked).state
    port.link_up = ctx.engine.link_up(port.index)
    status["attr"] = {**attributes(port), "vlan": {"tags": list(port.vlans)}, "layer_cfg": _layer_cfg(port)}
    return status


def set_port_attr(ctx: ServerState, port: ServerPort, p: Params) -> None:
    attr = p.object("attr")
    for name in sorted(attr.value):
        if name == "promiscuous":
            enabled = attr.object(name).boolean("enabled")
            with engine_refusals(f"Error applying {name}: "):
                ctx.engine.set_promiscuous(port.index, enabled)
            port.promiscuous = enabled
        else:
            raise cannot_execute(f"attribute '{name}' cannot be set here")


def _address(read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except ValueError as err:
        raise bad_params(str(err)) from err


def set_l2(ctx: ServerState, port: ServerPort, p: Params) -> None:
    mac = _address(mac_bytes, p.string("dst_mac"))
    port.require("set_l2_mode", PortState.IDLE, PortState.STREAMS)
    port.dst_mac, port.resolved = mac, True
    port.src_ipv4 = port.dst_ipv4 = None


def set_l3(ctx: ServerState, port: ServerPort, p: Params) -> None:
    """Set the addresses; the destination is resolved only if the client gives its MAC."""
    source, destination = (str(_address(ipaddress.IPv4Address, p.string(name))) for name in ("src_addr", "dst_addr"))
    mac = None if p.get("resolved_mac") is None else _address(mac_bytes, p.string("resolved_mac"))
    port.require("set_l3_mode", PortState.IDLE, PortState.STREAMS)
    port.src_ipv4, port.dst_ipv4 = source, destination
    port.dst_mac, port.resolved = mac or port.dst_mac, mac is not None


def set_vlan(ctx: ServerState, port: ServerPort, p: Params) -> None:
    """Set the port's VLANs: as in TRex, those of its service packets, not of its streams."""
    tags = p.array("vlan")
    vlans = tuple(tags.uint16(index) for index in range(len(tags.value)))
    if len(vlans) > 2 or not all(0 < vlan <= 4095 for vlan in vlans):
        raise bad_params(f"VLANs {list(vlans)}: at most 2 tags, from 1 to 4095")
    port.require("set_vlan_cfg", PortState.IDLE, PortState.STREAMS)
    port.vlans = vlans


def conf_ipv6(ctx: ServerState, port: ServerPort, p: Params) -> None:
    if p.boolean("enabled"):
        raise cannot_execute(NO_STACK)


def service(ctx: ServerState, port: ServerPort, p: Params) -> None:
    port.service, port.service_filtered = p.boolean("enabled"), p.boolean("filtered", False)


def set_rx_feature(ctx: ServerState, port: ServerPort, p: Params) -> None:
    """Accept any switching off, but no switching on of what would have to receive packets."""
    kind = p.choice("type", ("queue", "server", "capwap_proxy"))
    if kind != "server" and p.boolean("enabled"):
        raise cannot_execute(NO_STACK)


def capture(ctx: ServerState, p: Params) -> Json:
    """Answer that there are no captures; everything else is refused."""
    if p.get("command") != "status":
        raise cannot_execute(NO_STACK)
    return []


METHODS: Table = {
    "acquire": of_port(acquire),
    "release": owned(lambda ctx, port, p: ctx.release(port)),
    "get_port_status": of_port(get_port_status),
    "set_port_attr": of_port(set_port_attr),
    "set_l2": of_port(set_l2),
    "set_l3": of_port(set_l3),
    "set_vlan": of_port(set_vlan),
    "conf_ipv6": of_port(conf_ipv6),
    "service": owned(service),
    "set_rx_feature": of_port(set_rx_feature),
    "capture": Method(capture),
    **dict.fromkeys(_STACK_METHODS.split(), refused(NO_STACK)),
}
