"""A pfSense's settings, pure: what differs from what is wanted, how to change it and how to undo that.

Facts are what the driver reads: a dictionary of JSON values, None for what the box does not tell. Queues are not set
here: FreeBSD fixes their number when the driver attaches (iflib's loader tunables).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import product
from typing import Any

from ...config.model import DutConfig, Port, Route
from ...config.readers import Address, Interface
from ...core.errors import DutError
from ...transport import TIMEOUT_S
from ..model import Change, Command, Wanted, require_interfaces, resolver, same_family

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class FreebsdFamily:
    """Differences between IPv4 and IPv6. forward: its sysctl. word: of ifconfig and netstat. route: its option.

    tool: sets neighbours, by its option ``pin``. published: its word for an entry that is answered for.
    """

    forward: str
    word: str
    route: tuple[str, ...]
    tool: str
    pin: str
    published: str


FAMILIES = {
    # arp -S replaces an entry, where -s would fail; ndp -s replaces
    4: FreebsdFamily("net.inet.ip.forwarding", "inet", (), "arp", "-S", "pub"),
    6: FreebsdFamily("net.inet6.ip6.forwarding", "inet6", ("-6",), "ndp", "-s", "proxy"),
}
FORWARD = FAMILIES[4].forward
_GONE = ("does not exist",)
_NO_ADDRESS = ("Can't assign requested address", *_GONE)
_NO_NEIGHBOUR = ("cannot locate", "No such file or directory", "No such process", "no entry", "not found")
_NO_ROUTE = ("not in table", "has not been found", "No such process")
_IS_ROUTE = ("already in table",)
_OFF, _ON = ("pf not enabled",), ("pf already enabled",)
_FORGETFUL = (range(1400000, 1401000), range(1500000, 1500020))
"""Values of kern.osreldate, FreeBSD 14.0 and pfSense's builds of 2023 and early 2024 among them, whose arp sets no
RTF_STATIC (usr.sbin/arp/arp_netlink.c, D43983): the kernel then calls its entry expired, or to expire in 136 years."""
SETTLE_S = 15
"""Between a link that goes up and the end of what pfSense does for it."""
SETTLE = Command(
    ("sleep", str(SETTLE_S)),
    "pfSense reloads its rules and neighbours when a link goes up",
    timeout_s=SETTLE_S + TIMEOUT_S,
)


def plan(wanted: Wanted, facts: Facts) -> list[Change]:
    """Return the changes to make, in order; none where the facts are as wanted.

    Links come first, and a wait: some seconds after one goes up pfSense reloads its rules, which turns the firewall on
    again, and on a port of its own it deletes all neighbours (etc/rc.linkup).
    """
    config = wanted.config
    require_interfaces(config, facts)
    _refuse_addresses(wanted, facts)
    found = [change for version in config.versions for change in forwarding(version, facts)]
    links = [one for port in config.ports for one in _link(port, facts) + vlans(wanted, port, facts)]
    found += [*links[:-1], *(replace(last, do=(*last.do, SETTLE)) for last in links[-1:])]
    for port in config.ports:
        found += ends(wanted, port, facts)
    for route in config.routes:
        found += _route(route, facts)
    return found + firewall(config, facts)


def forwarding(version: int, facts: Facts) -> list[Change]:
    name = FAMILIES[version].forward
    was = facts[name]
    if was == "1":
        return []
    do = Command(("sysctl", f"{name}=1"), f"forward IPv{version}")
    undo = (Command(("sysctl", f"{name}={was}"), "as it was"),) if was is not None else ()
    return [Change(name, was, "1", (do,), undo)]


def _refuse_addresses(wanted: Wanted, facts: Facts) -> None:
    """DutError for an address that exists in another form: replacing it would delete its routes."""
    config = wanted.config
    own_ones = [(wanted.routed(port), own) for port in config.ports for own in port.addresses]
    there = [(interface, found) for interface, addresses in facts["addresses"].items() for found in addresses]
    for (name, own), (interface, found) in product(own_ones, there):
        if found.partition("/")[0] == str(own.ip) and (interface, found) != (name, str(own)):
            raise DutError(
                f"{interface} has the address {found}, but {own} is wanted on {name}",
                f"remove it by hand: ifconfig {interface} {FAMILIES[own.version].word} {own.ip} -alias",
            )


def _link(port: Port, facts: Facts) -> list[Change]:
    if facts["interfaces"][port.interface]["up"]:
        return []
    do = Command(("ifconfig", port.interface, "up"), f"cable to the tester's port {port.tester}")
    undo = Command(("ifconfig", port.interface, "down"), "as it was", fine_if=_GONE)
    return [Change(f"link of {port.interface}", "down", "up", (do,), (undo,))]


def vlans(wanted: Wanted, port: Port, facts: Facts) -> list[Change]:
    """The interfaces of a VLAN on the port's; DutError where others of these names are in the way."""
    found = []
    for one in wanted.vlans(port):
        there = facts.get("vlans", {}).get(one.name)
        if there and there["vlan"] != {"tag": one.tag, "protocol": one.protocol.lower(), "parent": one.parent}:
            what = f"{wanted.config.name}: {one.name} is there, but not as {one}"
            raise DutError(what, f"remove it by hand: ifconfig {one.name} destroy")
        if there:
            continue
        outer = ("vlanproto", "802.1ad") if one.protocol == "802.1ad" else ()
        kind = ("vlan", str(one.tag), "vlandev", one.parent, *outer)
        do = Command(("ifconfig", one.name, "create", *kind, "up"), str(one))
        undo = Command(("ifconfig", one.name, "destroy"), "it was not there", fine_if=_GONE)
        # rc may switch IPv6 off on an interface that is new.
        reveals = 6 in wanted.config.versions
        found.append(Change(one.name, "none", str(one), (do,), (undo,), reveals=reveals))
    return found


def ends(wanted: Wanted, port: Port, facts: Facts) -> list[Change]:
    """IPv6 switched on, then addresses and pinned neighbours, by family."""
    name, mac = wanted.routed(port), wanted.mac(port)
    return _ipv6(port, name, facts) + [
        change
        for own, other in port.ends
        for change in (*_address(name, own, other, facts), *_neighbour(name, other, mac, facts))
    ]


def _ipv6(port: Port, name: str, facts: Facts) -> list[Change]:
    """Without ``ifconfig_X_ipv6`` in rc.conf an interface drops IPv6, whatever addresses and routes it has."""
    if name not in facts.get("ipv6_off", ()) or all(own.version == 4 for own in port.addresses):
        return []
    do = Command(("ifconfig", name, "inet6", "-ifdisabled"), "else it drops IPv6")
    undo = Command(("ifconfig", name, "inet6", "ifdisabled"), "as it was", fine_if=_GONE)
    return [Change(f"IPv6 of {name}", "off", "on", (do,), (undo,))]


def _address(name: str, own: Interface, other: Address, facts: Facts) -> list[Change]:
    """Added to the addresses that are there."""
    wanted, word = str(own), FAMILIES[own.version].word
    there = facts["addresses"].get(name) or []
    if wanted in there:
        return []
    # alias: without it ifconfig would replace the first address of the interface.
    do = Command(("ifconfig", name, word, wanted, "alias"), "its address")
    undo = Command(("ifconfig", name, word, str(own.ip), "-alias"), "as it was", fine_if=_NO_ADDRESS)
    # Removing an address removes its network's neighbours, also those that another address had before.
    neighbour = facts["neighbours"].get(str(other))
    again = (_pin(neighbour),) if neighbour is not None and _pinned(neighbour) else ()
    return [Change(f"address of {name}", same_family(there, own), wanted, (do,), (undo, *again))]


def _neighbour(name: str, other: Address, mac: str, facts: Facts) -> list[Change]:
    address, family = str(other), FAMILIES[other.version]
    found = facts["neighbours"].get(address)
    if found is not None and stays(found, facts) and (found["mac"], found["interface"]) == (mac, name):
        return []
    do = (
        Command((family.tool, family.pin, address, mac), f"the tester answers no {resolver(other)}"),
        Command((family.tool, "-n", address), f"{family.tool} of FreeBSD 14 and later may fail with exit code 0"),
    )
    if found is not None and _pinned(found):
        undo = _pin(found)
    else:
        undo = Command((family.tool, "-d", address), "it was learnt, or absent", fine_if=_NO_NEIGHBOUR)
    was = "none"
    if found:
        was = f"{found['mac']} {'permanent' if found['permanent'] else 'learnt'} on {found['interface']}"
    return [Change(f"neighbour {address}", was, f"{mac} permanent on {name}", do, (undo,))]


def stays(found: Mapping[str, Any], facts: Facts) -> bool:
    """Test for an entry as permanent as this kernel's arp can make it."""
    date = facts.get("kernel_date") or ""
    forgets = date.isdecimal() and any(int(date) in dates for dates in _FORGETFUL)
    return bool(found["permanent"] or (forgets and found["stale"] and found["mac"]))


def _pinned(found: Mapping[str, Any]) -> bool:
    return bool(found["permanent"] and found["mac"])


def _pin(found: Mapping[str, Any]) -> Command:
    family = FAMILIES[ip_address(found["address"]).version]
    public = (family.published,) if found["published"] else ()
    return Command((family.tool, family.pin, found["address"], found["mac"], *public), "as it was")


def _route(route: Route, facts: Facts) -> list[Change]:
    """Since FreeBSD 13 ``route add`` adds a second hop to the first; all hops but the wanted one are deleted."""
    to, via = str(route.to), str(route.via)
    there = [found for found in facts["routes"] if found["to"] == to]
    extra = [found for found in there if hop(found) != f"via {via}"]
    missing = len(extra) == len(there)
    if not extra and not missing:
        return []
    family = FAMILIES[route.to.version].route
    add = Command(("route", *family, "add", "-net", to, via), "where the test traffic goes")
    take = Command(("route", *family, "delete", "-net", to, via), "as it was", fine_if=_NO_ROUTE)
    others = [
        Command(("route", *family, "delete", "-net", to, *_gateway(found)), "it leads elsewhere", fine_if=_NO_ROUTE)
        for found in extra
    ]
    do = (*others, *((add,) if missing else ()))
    undo = (*((take,) if missing else ()), *(_restore(route, found) for found in extra))
    was = " and ".join(hop(found) for found in there) or "none"
    return [Change(f"route {to}", was, f"via {via}", do, undo)]


def hop(found: Mapping[str, Any]) -> str:
    """One hop of the routing table, in words."""
    if "B" in found["flags"] or "R" in found["flags"]:
        return "blackhole" if "B" in found["flags"] else "reject"
    return f"via {found['gateway']}" if "G" in found["flags"] else f"dev {found['interface']}"


def _gateway(found: Mapping[str, Any]) -> tuple[str, ...]:
    return (found["gateway"],) if "G" in found["flags"] else ()


def _restore(route: Route, found: Mapping[str, Any]) -> Command:
    """Add the route as it was, with the flags that route(8) can set."""
    words = {"B": "-blackhole", "R": "-reject", "1": "-proto1", "2": "-proto2"}
    flags = [word for flag, word in words.items() if flag in found["flags"]]
    flags += [] if "S" in found["flags"] else ["-nostatic"]
    way = _gateway(found) or ("-interface", str(found["interface"]))
    family = FAMILIES[route.to.version].route
    return Command(("route", *family, "add", "-net", str(route.to), *way, *flags), "as it was", fine_if=_IS_ROUTE)


def firewall(config: DutConfig, facts: Facts) -> list[Change]:
    if config.pfsense.firewall != "off" or facts["firewall"] != "enabled":
        return []
    do = Command(("pfctl", "-d"), "no firewall, as on the other systems", fine_if=_OFF)
    undo = Command(("pfctl", "-e"), "as it was", fine_if=_ON)
    return [Change("firewall", "enabled", "disabled", (do,), (undo,))]
