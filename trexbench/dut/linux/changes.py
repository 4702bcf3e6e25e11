"""A Linux router's settings, pure: what differs from what is wanted, how to change it and how to undo that.

Facts are what the driver reads: a dictionary of JSON values, None for what the box does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...config.model import Port, Route
from ...config.readers import Address, Interface
from ...core.errors import DutError
from ...core.load.plan import pair_directions
from ..model import (
    NO_DEVICE,
    Change,
    Command,
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
    """Differences between IPv4 and IPv6. words: ip's options. forward: the fact that it forwards; file: its file.

    conf: settings by interface. metric: of a route for which none was named. pins: options of a test's address.
    """

    words: tuple[str, ...]
    forward: str
    file: str
    conf: str
    metric: int
    pins: tuple[str, ...] = ()


FAMILIES = {
    4: LinuxFamily((), "ip_forward", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf", 0),
    # nodad: a duplicate could not answer, and until it is known that none does the address cannot be used
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
"""States of a neighbour that can be set; of others only the MAC is restored, if it has one."""


def plan(wanted: Wanted, facts: Facts) -> list[Change]:
    """Return the changes to make, in order; none where the facts are as wanted.

    DutError where the box lacks an interface or has too few queues. Interrupts and RPS are planned after links and
    queues, addresses of a tunnel after its interface, see Change.reveals.
    """
    made, whole = tunnel_changes(wanted, facts), wanted
    if any(change.reveals for change in made):
        wanted = wanted.without_tunnel
    require_interfaces(wanted.config, facts)
    require_queues(wanted, facts)
    require_sysctls(wanted, facts)
    found = host_changes(wanted, facts)
    for version in wanted.config.versions if wanted.forwards else ():
        found += _forwarding(wanted, version, facts)
    found += redirect_changes(wanted, facts)
    for port in wanted.config.ports:
        found += _link(port, facts, reveals=wanted.config.linux.irqs == "spread")
    found += queue_changes(wanted, facts)
    if not any(change.reveals for change in found):
        found += placement_changes(wanted, facts)
    for port in wanted.config.ports:
        found += _vlans(wanted, port, facts)
    for port in wanted.config.ports:
        found += _port_changes(wanted, port, facts)
    for route in wanted.config.routes:
        found += _route(wanted, route, facts)
    return found + _sysctls(wanted, facts) + firewall_changes(whole, facts) + made


def forwarding_of(version: int) -> str:
    """The fact that has each interface's own setting."""
    return "forwarding" if version == 4 else f"ipv{version}_forwarding"


def _forwarding(wanted: Wanted, version: int, facts: Facts) -> list[Change]:
    """Forwarding of a family, or of single interfaces that was turned off since.

    Writing it for all also sets it of every interface and turns LRO off, that of IPv4 accept_redirects of all, too: the
    undo restores those that it would leave with another value.
    """
    family, why = FAMILIES[version], f"forward IPv{version}"
    former, single = facts[family.forward], facts[forwarding_of(version)]
    if former == 1:
        off = [name for name in map(wanted.routed, wanted.config.ports) if single.get(name) == 0]
        files = {name: f"{family.conf}/{name}/forwarding" for name in off}
        return [change for name in off for change in write(f"{_SINGLE[version]} of {name}", files[name], 0, 1, why)]
    back = former or 0
    undo = [tee(family.file, back)]
    for name, value in single.items():
        if value is not None and value != back:
            undo.append(tee(f"{family.conf}/{name}/forwarding", value))
    if version == 4 and facts.get("accept_redirects_all") == back:  # the kernel sets it to the opposite
        undo.append(tee(f"{family.conf}/all/accept_redirects", back))
    for name, link in facts["interfaces"].items():
        if link is not None and (link["offloads"] or {}).get("large-receive-offload"):
            undo.append(Command(("ethtool", "-K", name, "large-receive-offload", "on"), "as it was"))
    was = None if former is None else str(former)
    return [Change(family.forward, was, "1", (tee(family.file, 1, why),), tuple(undo))]


def _link(port: Port, facts: Facts, reveals: bool) -> list[Change]:
    """reveals: a NIC has its interrupts only while it is up."""
    if facts["interfaces"][port.interface]["admin_up"]:
        return []
    argv = ("ip", "link", "set", "dev", port.interface)
    do = Command((*argv, "up"), f"cable to the tester's port {port.tester}")
    undo = Command((*argv, "down"), "as it was", fine_if=GONE)
    return [Change(f"link of {port.interface}", "down", "up", (do,), (undo,), reveals=reveals)]


def _vlans(wanted: Wanted, port: Port, facts: Facts) -> list[Change]:
    """The interfaces of a VLAN on the port's; DutError where others of these names are in the way."""
    found = []
    for one in wanted.vlans(port):
        there = facts.get("vlans", {}).get(one.name)
        if there and (there["parent"], there["tag"], there["protocol"]) != (one.parent, one.tag, one.protocol):
            what = f"{wanted.config.name}: {one.name} is there, but not as {one}"
            raise DutError(what, f"remove it by hand: ip link del {one.name}")
        if there and there["admin_up"]:
            continue
        kind = ("type", "vlan", "protocol", one.protocol, "id", str(one.tag))
        remedy = (NO_DEVICE, "the kernel has no VLANs: modprobe 8021q (CONFIG_VLAN_8021Q)")
        add = Command(("ip", "link", "add", "link", one.parent, "name", one.name, *kind), str(one), remedy=remedy)
        up = Command(("ip", "link", "set", "dev", one.name, "up"), str(one))
        undo = ("ip", "link", "set", "dev", one.name, "down") if there else ("ip", "link", "del", one.name)
        back = Command(undo, "as it was", fine_if=GONE)
        do = (up,) if there else (add, up)
        found.append(Change(one.name, "down" if there else "none", str(one), do, (back,)))
    return found


def _port_changes(wanted: Wanted, port: Port, facts: Facts) -> list[Change]:
    """Addresses and pinned neighbours, by family; and IPv6 itself, where it is off."""
    found, pinned = [], {other.version: other for _, other in port.ends}
    for own in port.addresses:
        name = wanted.routed(port)
        # a VLAN's interface that is still to be made gets the default, which may be off
        if own.version == 6 and facts["ipv6_off"].get(name, int(bool(port.vlan))) == 1:
            file = f"{FAMILIES[6].conf}/{name}/disable_ipv6"
            found += write(f"disable_ipv6 of {name}", file, 1, 0, "an interface has no IPv6 with it")
        found += _address(name, own, facts)
        if own.version in pinned:
            found += _neighbour(wanted, port, pinned[own.version], facts)
    return found


def _address(name: str, own: Interface, facts: Facts) -> list[Change]:
    address, device = str(own), ("dev", name)
    found = facts["interfaces"].get(name) or facts.get("vlans", {}).get(name)
    there = found["addresses"] if found else []
    if address in there:
        return []
    do = Command(("ip", "address", "replace", address, *device, *FAMILIES[own.version].pins), "its address")
    undo = Command(("ip", "address", "del", address, *device), "it was not there", fine_if=_NO_ADDRESS)
    return [Change(f"address of {name}", same_family(there, own), address, (do,), (undo,))]


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
    """Only the route of the usual metric is replaced: verify names other routes to the same network."""
    hop = ("via", str(route.via), "dev", wanted.routed(wanted.port_of(route)))
    metric = FAMILIES[route.to.version].metric
    former = [one for one in facts["routes"] if one["to"] == str(route.to) and one["metric"] in (0, metric)]
    if [_hops(one) for one in former] == [[wanted_hop(wanted, route)]]:
        return []
    do = Command(("ip", "route", "replace", str(route.to), *hop), "where the test traffic goes")
    if former:
        undo = Command(("ip", "route", "replace", *former[0]["words"]), "as it was", fine_if=GONE)
        was = " and ".join(hop for one in former for hop in _hops(one))
    else:
        undo, was = Command(("ip", "route", "del", str(route.to), *hop), "it was not there", fine_if=_NO_ROUTE), "none"
    return [Change(f"route {route.to}", was, wanted_hop(wanted, route), (do,), (undo,))]


def _sysctls(wanted: Wanted, facts: Facts) -> list[Change]:
    """Changes to the variant's sysctls; see require_sysctls for those that are not there."""
    variant = wanted.config.variant
    found = []
    for name, value in wanted.config.chosen.sysctls:
        former = facts["sysctls"][name]
        found += write(name, sysctl_file(name), former, value, f"variant {variant}", wanted.variant)
    return found


def _hops(route: Mapping[str, Any]) -> list[str]:
    return list(route["hops"]) if route["type"] == "unicast" else [str(route["type"])]


def compare(wanted: Wanted, facts: Facts) -> list[Mismatch]:
    """Everything the config asks for that the facts do not show; pure."""
    config, wrong = wanted.config, []
    for name in (FAMILIES[version].forward for version in config.versions if wanted.forwards):
        if facts[name] != 1:
            wrong.append(Mismatch(name, "1", str(facts[name])))
    for port in config.ports:
        wrong += _compare_port(wanted, port, facts)
    table = [(found["to"], _hops(found)) for found in facts["routes"]]
    for route in config.routes:
        wrong += compare_route(config, route, wanted_hop(wanted, route), table)
    for (route, destination, source, arrival), path in zip(probes(wanted), facts["paths"], strict=True):
        hop = wanted_hop(wanted, route)
        if path["hop"] != hop:
            what = f"path of {source} to {destination}" + (f" arriving at {arrival}" if arrival else "")
            wrong.append(Mismatch(what, hop, str(path["answer"])))
    settings = _sysctls(wanted, facts) + firewall_changes(wanted, facts) + redirect_changes(wanted, facts)
    settings += tunnel_changes(wanted, facts)
    return wrong + compare_tuning(wanted, facts) + unmet(settings)


def _compare_port(wanted: Wanted, port: Port, facts: Facts) -> list[Mismatch]:
    name = port.interface
    found = facts["interfaces"].get(name)
    if found is None:
        return [Mismatch("interface", name, f"only {', '.join(facts['links'])}")]
    wrong, routed = [], wanted.routed(port)
    if not (found["admin_up"] and found["carrier"]):
        # operstate lags behind by up to a second; these two flags do not.
        wrong.append(Mismatch(f"link of {name}", "up", "no carrier" if found["admin_up"] else "set down"))
    for version in wanted.config.versions if wanted.forwards else ():
        single = facts[forwarding_of(version)].get(routed)
        if single not in (1, None):
            wrong.append(Mismatch(f"{_SINGLE[version]} of {routed}", "1", str(single)))
    return wrong + unmet(_vlans(wanted, port, facts) + _port_changes(wanted, port, facts))


def wanted_hop(wanted: Wanted, route: Route) -> str:
    return f"via {route.via} dev {wanted.routed(wanted.port_of(route))}"


def probes(wanted: Wanted) -> list[tuple[Route, Address, Address, str]]:
    """Packets of the test whose path the kernel is asked for: route, destination, source, interface of arrival.

    For each route its lowest and highest host, arriving at the port that is paired with the route's; or, from an
    endpoint, sent by itself.
    """
    config, found = wanted.config, []
    paired = pair_directions(config.tester_ports, bidir=True) if wanted.forwards and config.routes else ()
    arrives = {one.rx: one.tx for one in paired}
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
        found += [(route, destination, source, arrival) for destination in ends_of(route.to)]
    return found
