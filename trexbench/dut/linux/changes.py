"""Plan and compare a Linux router's settings; pure.

Facts are what the driver reads: a dictionary of JSON values, None for what the DUT does not report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...config.model import Port, Route
from ...config.readers import Address
from ...core.errors import DutError
from ...core.load.plan import pair_directions
from ..settings import (
    NO_DEVICE,
    Change,
    Command,
    LinkDown,
    Mismatch,
    Wanted,
    compare_route,
    ends_of,
    require_interfaces,
    resolver,
    same_family,
    unmet,
)
from .firewall import firewall_changes, require_sysctls, sysctl_file
from .tcp import redirect_changes, tunnel_changes
from .tuning import GONE, compare_tuning, host_changes, placement_changes, queue_changes, require_queues, tee, write

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class LinuxFamily:
    """Differences between IPv4 and IPv6."""

    words: tuple[str, ...]
    """Options of ip."""
    forward: str
    """Name of the fact that the host forwards; ``file``: its file; ``conf``: folder of the settings by interface."""
    file: str
    conf: str
    metric: int
    """Metric of a route that is added without one."""
    pins: tuple[str, ...] = ()
    """Options of a test's address."""


FAMILIES = {
    4: LinuxFamily((), "ip_forward", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf", 0),
    # nodad: an address is unusable until duplicate detection ends, which could not find one here
    6: LinuxFamily(
        ("-6",), "ipv6_forward", "/proc/sys/net/ipv6/conf/all/forwarding", "/proc/sys/net/ipv6/conf", 1024, ("nodad",)
    ),
}
FORWARD = FAMILIES[4].file
_SINGLE = {4: "forwarding", 6: "IPv6 forwarding"}
_NO_ADDRESS = ("Cannot assign requested address", "Address not found", *GONE)
_NO_NEIGHBOUR = ("No such file or directory", *GONE)
_NO_ROUTE = ("No such process", *GONE)
_STATES = ("permanent", "noarp", "reachable", "stale")
"""States of a neighbour that can be set; of other states only the MAC is restored."""


def plan(wanted: Wanted, facts: Facts) -> list[Change]:
    """Return the changes to make, in order; none where the facts are as wanted.

    DutError where the box lacks an interface or has too few queues. Interrupts and RPS are planned after links and
    queues, addresses of a tunnel after its interface, see Change.reveals.
    """
    tunnel, whole = tunnel_changes(wanted, facts), wanted
    if any(change.reveals for change in tunnel):
        wanted = wanted.without_tunnel
    require_interfaces(wanted.config, facts)
    require_queues(wanted, facts)
    require_sysctls(wanted, facts)
    changes = host_changes(wanted, facts)
    for version in wanted.config.versions if wanted.forwards else ():
        changes += _forwarding(wanted, version, facts)
    changes += redirect_changes(wanted, facts)
    for port in wanted.config.ports:
        if not facts["interfaces"][port.interface]["admin_up"]:
            argv = ("ip", "link", "set", "dev", port.interface)
            do = Command((*argv, "up"), f"cable to the tester's port {port.tester}")
            undo = Command((*argv, "down"), "as it was", fine_if=GONE)
            # a NIC has its interrupts only while it is up
            reveals = wanted.config.linux.irqs == "spread"
            changes.append(Change(f"link of {port.interface}", "down", "up", (do,), (undo,), reveals=reveals))
    changes += queue_changes(wanted, facts)
    if not any(change.reveals for change in changes):
        changes += placement_changes(wanted, facts)
    for port in wanted.config.ports:
        changes += _vlans(wanted, port, facts)
    for port in wanted.config.ports:
        changes += _port_changes(wanted, port, facts)
    for route in wanted.config.routes:
        changes += _route(wanted, route, facts)
    return changes + _sysctls(wanted, facts) + firewall_changes(whole, facts) + tunnel


def forwarding_of(version: int) -> str:
    """Name of the fact with each interface's own setting."""
    return "forwarding" if version == 4 else f"ipv{version}_forwarding"


def _forwarding(wanted: Wanted, version: int, facts: Facts) -> list[Change]:
    """Turn forwarding on for a family, or for single interfaces where it was turned off since.

    Writing the switch of all also sets every interface's and turns LRO off, IPv4's accept_redirects of all as well: the
    undo restores what it would leave with another value.
    """
    family, why = FAMILIES[version], f"forward IPv{version}"
    former, single = facts[family.forward], facts[forwarding_of(version)]
    if former == 1:
        changes = []
        for name in map(wanted.routed, wanted.config.ports):
            if single.get(name) == 0:
                changes += write(f"{_SINGLE[version]} of {name}", f"{family.conf}/{name}/forwarding", 0, 1, why)
        return changes
    back = former or 0
    undo = [tee(family.file, back)]
    for name, value in single.items():
        if value not in (None, back):
            undo.append(tee(f"{family.conf}/{name}/forwarding", value))
    if version == 4 and facts.get("accept_redirects_all") == back:  # the kernel sets it to the opposite
        undo.append(tee(f"{family.conf}/all/accept_redirects", back))
    for name, link in facts["interfaces"].items():
        if link is not None and (link["offloads"] or {}).get("large-receive-offload"):
            undo.append(Command(("ethtool", "-K", name, "large-receive-offload", "on"), "as it was"))
    was = None if former is None else str(former)
    return [Change(family.forward, was, "1", (tee(family.file, 1, why),), tuple(undo))]


def _vlans(wanted: Wanted, port: Port, facts: Facts) -> list[Change]:
    """Create the port's VLAN interfaces, or set them up; DutError where others with these names are in the way."""
    changes = []
    for vlan in wanted.vlans(port):
        there = facts.get("vlans", {}).get(vlan.name)
        if there and (there["parent"], there["tag"], there["protocol"]) != (vlan.parent, vlan.tag, vlan.protocol):
            what = f"{wanted.config.name}: {vlan.name} exists, but not as {vlan}"
            raise DutError(what, f"remove it by hand: ip link del {vlan.name}")
        if there and there["admin_up"]:
            continue
        kind = ("type", "vlan", "protocol", vlan.protocol, "id", str(vlan.tag))
        remedy = (NO_DEVICE, "the kernel has no VLANs: modprobe 8021q (CONFIG_VLAN_8021Q)")
        add = Command(("ip", "link", "add", "link", vlan.parent, "name", vlan.name, *kind), str(vlan), remedy=remedy)
        up = Command(("ip", "link", "set", "dev", vlan.name, "up"), str(vlan))
        undo = ("ip", "link", "set", "dev", vlan.name, "down") if there else ("ip", "link", "del", vlan.name)
        back = Command(undo, "as it was", fine_if=GONE)
        do = (up,) if there else (add, up)
        changes.append(Change(vlan.name, "down" if there else "none", str(vlan), do, (back,)))
    return changes


def _port_changes(wanted: Wanted, port: Port, facts: Facts) -> list[Change]:
    changes, pinned = [], {other.version: other for _, other in port.ends}
    name = wanted.routed(port)
    interface = facts["interfaces"].get(name) or facts.get("vlans", {}).get(name)
    addresses = interface["addresses"] if interface else []
    for own in port.addresses:
        # a VLAN interface that does not exist yet gets the default, which may be off
        if own.version == 6 and facts["ipv6_off"].get(name, int(bool(port.vlan))) == 1:
            file = f"{FAMILIES[6].conf}/{name}/disable_ipv6"
            changes += write(f"disable_ipv6 of {name}", file, 1, 0, "an interface has no IPv6 with it")
        if (address := str(own)) not in addresses:
            add = ("ip", "address", "replace", address, "dev", name, *FAMILIES[own.version].pins)
            remove = ("ip", "address", "del", address, "dev", name)
            undo = Command(remove, "it was not there", fine_if=_NO_ADDRESS)
            was = same_family(addresses, own)
            changes.append(Change(f"address of {name}", was, address, (Command(add, "its address"),), (undo,)))
        if own.version in pinned:
            changes += _neighbour(wanted, port, pinned[own.version], facts)
    return changes


def _neighbour(wanted: Wanted, port: Port, other: Address, facts: Facts) -> list[Change]:
    mac, name = wanted.mac(port), wanted.routed(port)
    former = facts["neighbours"].get(f"{other}%{name}")
    if former and former["state"] == "PERMANENT" and str(former["mac"]).lower() == mac:
        return []
    address, device = str(other), ("dev", name)
    pin = ("ip", "neigh", "replace", address, "lladdr")
    do = Command((*pin, mac, "nud", "permanent", *device), f"the tester answers no {resolver(other)}")
    state = str(former["state"]).lower() if former else ""
    if former and former["mac"] and state not in ("failed", "incomplete", "none"):
        state = state if state in _STATES else "stale"
        undo = Command((*pin, str(former["mac"]), "nud", state, *device), "as it was", fine_if=GONE)
    else:
        undo = Command(("ip", "neigh", "del", address, *device), "it was not there", fine_if=_NO_NEIGHBOUR)
    was = f"{former['mac']} {former['state']}" if former else "none"
    return [Change(f"neighbour {address} on {name}", was, f"{mac} PERMANENT", (do,), (undo,))]


def _route(wanted: Wanted, route: Route, facts: Facts) -> list[Change]:
    """Replace the route of the usual metric only: verify reports other routes to the same network."""
    hop = ("via", str(route.via), "dev", wanted.routed(wanted.port_of(route)))
    metric = FAMILIES[route.to.version].metric
    former = [entry for entry in facts["routes"] if entry["to"] == str(route.to) and entry["metric"] in (0, metric)]
    if [_hops(entry) for entry in former] == [[wanted.hop(route)]]:
        return []
    do = Command(("ip", "route", "replace", str(route.to), *hop), "where the test traffic goes")
    if former:
        undo = Command(("ip", "route", "replace", *former[0]["words"]), "as it was", fine_if=GONE)
        was = " and ".join(hop for entry in former for hop in _hops(entry))
    else:
        undo, was = Command(("ip", "route", "del", str(route.to), *hop), "it was not there", fine_if=_NO_ROUTE), "none"
    return [Change(f"route {route.to}", was, wanted.hop(route), (do,), (undo,))]


def _sysctls(wanted: Wanted, facts: Facts) -> list[Change]:
    why, changes = f"variant {wanted.config.variant}", []
    for name, value in wanted.config.chosen.sysctls:
        changes += write(name, sysctl_file(name), facts["sysctls"][name], value, why, wanted.variant)
    return changes


def _hops(route: Mapping[str, Any]) -> list[str]:
    return list(route["hops"]) if route["type"] == "unicast" else [str(route["type"])]


def compare(wanted: Wanted, facts: Facts) -> list[Mismatch]:
    """List everything the config asks for that the facts do not show: what plan would change, and what it cannot."""
    config, there = wanted.config, facts["interfaces"]
    if missing := [name for name in wanted.without_tunnel.interfaces if there[name] is None]:  # nothing can be planned
        found = f"only {', '.join(facts['links']) or 'none'}"
        return [Mismatch("interface", name, found, "correct ports[].interface") for name in missing]
    closer = [f"link of {name}" for name in wanted.interfaces] + [f"route {route.to}" for route in config.routes]
    wrong = [mismatch for mismatch in unmet(plan(wanted, facts)) if mismatch.what not in closer]
    for name, link in there.items():
        # operstate lags behind by up to a second; these two flags do not.
        if link is not None and not (link["admin_up"] and link["carrier"]):
            wrong.append(LinkDown(f"link of {name}", "up", "no carrier" if link["admin_up"] else "set down"))
    table = [(entry["to"], _hops(entry)) for entry in facts["routes"]]
    for route in config.routes:
        wrong += compare_route(config, route, wanted.hop(route), table)
    for (route, destination, source, arrival), path in zip(probes(wanted), facts["paths"], strict=True):
        if path["hop"] != wanted.hop(route):
            what = f"path of {source} to {destination}" + (f" arriving at {arrival}" if arrival else "")
            wrong.append(Mismatch(what, wanted.hop(route), str(path["answer"])))
    return wrong + compare_tuning(wanted, facts)


def probes(wanted: Wanted) -> list[tuple[Route, Address, Address, str]]:
    """List packets of the test whose path to ask the kernel for: route, destination, source, interface of arrival.

    They go to the lowest and the highest host of each route. Those of a router arrive at the port that is paired with
    the route's; an endpoint sends them itself, and their interface is empty.
    """
    config, packets = wanted.config, []
    paired = pair_directions(config.tester_ports, bidir=True) if wanted.forwards and config.routes else ()
    arrives = {direction.rx: direction.tx for direction in paired}
    by_tester = {port.tester: port for port in config.ports}
    for route in config.routes:
        port = wanted.port_of(route)
        if wanted.forwards:
            partner = by_tester[arrives[port.tester]]
            other = next(other for own, other in partner.ends if own.version == route.to.version)
            back = next((r.to for r in config.routes if r.via == other), None)
            source, arrival = ends_of(back)[0] if back else other, wanted.routed(partner)
        else:
            source, arrival = next(own.ip for own in port.addresses if own.version == route.to.version), ""
        packets += [(route, destination, source, arrival) for destination in ends_of(route.to)]
    return packets
