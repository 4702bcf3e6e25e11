"""Plan the settings of a pfSense; pure.

Facts are what the driver reads: a dictionary of JSON values, None for what the DUT does not report. Queues are not set
here: FreeBSD fixes their number when the driver attaches (iflib's loader tunables).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import product
from typing import Any

from ...config.model import DutConfig, Port, Route
from ...config.readers import Address
from ...core.errors import DutError
from ...host.files import number
from ...transport import TIMEOUT_S
from ..settings import Change, Command, Wanted, require_interfaces, resolver, same_family

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class FreebsdFamily:
    """Differences between IPv4 and IPv6."""

    forward: str
    word: str
    """Word of ifconfig and netstat."""
    route: tuple[str, ...]
    """Options of route."""
    tool: str
    """Tool that sets neighbours, by its option ``pin``; ``published``: its word for one that the host answers for."""
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
"""Time that pfSense takes to react to a link that goes up."""
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
    changes = [change for version in config.versions for change in forwarding(version, facts)]
    links = list[Change]()
    for port in config.ports:
        if not facts["interfaces"][port.interface]["up"]:
            do = Command(("ifconfig", port.interface, "up"), f"cable to the tester's port {port.tester}")
            undo = Command(("ifconfig", port.interface, "down"), "as it was", fine_if=_GONE)
            links.append(Change(f"link of {port.interface}", "down", "up", (do,), (undo,)))
        links += vlans(wanted, port, facts)
    changes += [*links[:-1], *(replace(last, do=(*last.do, SETTLE)) for last in links[-1:])]
    for port in config.ports:
        changes += ends(wanted, port, facts)
    for route in config.routes:
        changes += _route(route, facts)
    return changes + firewall(config, facts)


def forwarding(version: int, facts: Facts) -> list[Change]:
    name = FAMILIES[version].forward
    was = facts[name]
    if was == "1":
        return []
    do = Command(("sysctl", f"{name}=1"), f"forward IPv{version}")
    undo = (Command(("sysctl", f"{name}={was}"), "as it was"),) if was is not None else ()
    return [Change(name, was, "1", (do,), undo)]


def _refuse_addresses(wanted: Wanted, facts: Facts) -> None:
    """Raise DutError for an address that exists in another form: replacing it would delete its routes."""
    ours = [(wanted.routed(port), own) for port in wanted.config.ports for own in port.addresses]
    existing = [(interface, address) for interface, addresses in facts["addresses"].items() for address in addresses]
    for (name, own), (interface, address) in product(ours, existing):
        if address.partition("/")[0] == str(own.ip) and (interface, address) != (name, str(own)):
            raise DutError(
                f"{interface} has the address {address}, but {own} is wanted on {name}",
                f"remove it by hand: ifconfig {interface} {FAMILIES[own.version].word} {own.ip} -alias",
            )


def vlans(wanted: Wanted, port: Port, facts: Facts) -> list[Change]:
    """Create the port's VLAN interfaces; DutError where others with these names are in the way."""
    changes = []
    for vlan in wanted.vlans(port):
        there = facts.get("vlans", {}).get(vlan.name)
        if there and there["vlan"] != {"tag": vlan.tag, "protocol": vlan.protocol.lower(), "parent": vlan.parent}:
            what = f"{wanted.config.name}: {vlan.name} exists, but not as {vlan}"
            raise DutError(what, f"remove it by hand: ifconfig {vlan.name} destroy")
        if there:
            continue
        outer = ("vlanproto", "802.1ad") if vlan.protocol == "802.1ad" else ()
        kind = ("vlan", str(vlan.tag), "vlandev", vlan.parent, *outer)
        do = Command(("ifconfig", vlan.name, "create", *kind, "up"), str(vlan))
        undo = Command(("ifconfig", vlan.name, "destroy"), "it was not there", fine_if=_GONE)
        # rc may switch IPv6 off on an interface that is new.
        reveals = 6 in wanted.config.versions
        changes.append(Change(vlan.name, "none", str(vlan), (do,), (undo,), reveals=reveals))
    return changes


def ends(wanted: Wanted, port: Port, facts: Facts) -> list[Change]:
    """Turn IPv6 on where it is off and needed, then set addresses and pinned neighbours."""
    changes, name, mac = [], wanted.routed(port), wanted.mac(port)
    # Without ``ifconfig_X_ipv6`` in rc.conf an interface drops IPv6, whatever addresses and routes it has.
    if name in facts.get("ipv6_off", ()) and any(own.version == 6 for own in port.addresses):
        do = Command(("ifconfig", name, "inet6", "-ifdisabled"), "else it drops IPv6")
        undo = Command(("ifconfig", name, "inet6", "ifdisabled"), "as it was", fine_if=_GONE)
        changes.append(Change(f"IPv6 of {name}", "off", "on", (do,), (undo,)))
    addresses = facts["addresses"].get(name) or []
    for own, other in port.ends:
        if (address := str(own)) not in addresses:
            word = FAMILIES[own.version].word
            # alias: without it ifconfig would replace the first address of the interface.
            do = Command(("ifconfig", name, word, address, "alias"), "its address")
            undo = Command(("ifconfig", name, word, str(own.ip), "-alias"), "as it was", fine_if=_NO_ADDRESS)
            # Removing an address removes its network's neighbours, also those that another address had before.
            neighbour = facts["neighbours"].get(str(other))
            again = (_pin(neighbour),) if neighbour and stays(neighbour, facts) and neighbour["mac"] else ()
            was = same_family(addresses, own)
            changes.append(Change(f"address of {name}", was, address, (do,), (undo, *again)))
        changes += _neighbour(name, other, mac, facts)
    return changes


def _neighbour(name: str, other: Address, mac: str, facts: Facts) -> list[Change]:
    address, family = str(other), FAMILIES[other.version]
    entry = facts["neighbours"].get(address)
    if entry is not None and stays(entry, facts) and (entry["mac"], entry["interface"]) == (mac, name):
        return []
    do = (
        Command((family.tool, family.pin, address, mac), f"the tester answers no {resolver(other)}"),
        Command((family.tool, "-n", address), f"{family.tool} of FreeBSD 14 and later may fail with exit code 0"),
    )
    undo = Command((family.tool, "-d", address), "it was learnt, or absent", fine_if=_NO_NEIGHBOUR)
    was = "none"
    if entry:
        undo = _pin(entry) if stays(entry, facts) and entry["mac"] else undo
        was = f"{entry['mac']} {'permanent' if entry['permanent'] else 'learnt'} on {entry['interface']}"
    return [Change(f"neighbour {address}", was, f"{mac} permanent on {name}", do, (undo,))]


def stays(entry: Mapping[str, Any], facts: Facts) -> bool:
    """Test whether a neighbour is as permanent as this kernel's arp can make it."""
    date = number(facts.get("kernel_date"))
    forgets = any(date in dates for dates in _FORGETFUL)
    return bool(entry["permanent"] or (forgets and entry["stale"] and entry["mac"]))


def _pin(entry: Mapping[str, Any]) -> Command:
    family = FAMILIES[ip_address(entry["address"]).version]
    public = (family.published,) if entry["published"] else ()
    return Command((family.tool, family.pin, entry["address"], entry["mac"], *public), "as it was")


def _route(route: Route, facts: Facts) -> list[Change]:
    """Add the route and delete all other hops: since FreeBSD 13 ``route add`` adds a second hop to the first."""
    to, via = str(route.to), str(route.via)
    there = [entry for entry in facts["routes"] if entry["to"] == to]
    extra = [entry for entry in there if hop(entry) != f"via {via}"]
    missing = len(extra) == len(there)
    if not extra and not missing:
        return []
    family = FAMILIES[route.to.version].route
    add = Command(("route", *family, "add", "-net", to, via), "where the test traffic goes")
    take = Command(("route", *family, "delete", "-net", to, via), "as it was", fine_if=_NO_ROUTE)
    others = [
        Command(("route", *family, "delete", "-net", to, *_gateway(entry)), "it leads elsewhere", fine_if=_NO_ROUTE)
        for entry in extra
    ]
    do = (*others, *((add,) if missing else ()))
    undo = (*((take,) if missing else ()), *(_restore(route, entry) for entry in extra))
    was = " and ".join(hop(entry) for entry in there) or "none"
    return [Change(f"route {to}", was, f"via {via}", do, undo)]


def hop(entry: Mapping[str, Any]) -> str:
    """Describe one hop of the routing table."""
    if "B" in entry["flags"] or "R" in entry["flags"]:
        return "blackhole" if "B" in entry["flags"] else "reject"
    return f"via {entry['gateway']}" if "G" in entry["flags"] else f"dev {entry['interface']}"


def _gateway(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return (entry["gateway"],) if "G" in entry["flags"] else ()


def _restore(route: Route, entry: Mapping[str, Any]) -> Command:
    # with the flags that route(8) can set
    words = {"B": "-blackhole", "R": "-reject", "1": "-proto1", "2": "-proto2"}
    flags = [word for flag, word in words.items() if flag in entry["flags"]]
    flags += [] if "S" in entry["flags"] else ["-nostatic"]
    way = _gateway(entry) or ("-interface", str(entry["interface"]))
    family = FAMILIES[route.to.version].route
    return Command(("route", *family, "add", "-net", str(route.to), *way, *flags), "as it was", fine_if=_IS_ROUTE)


def firewall(config: DutConfig, facts: Facts) -> list[Change]:
    if config.pfsense.firewall != "off" or facts["firewall"] != "enabled":
        return []
    do = Command(("pfctl", "-d"), "no firewall, as on the other systems", fine_if=_OFF)
    undo = Command(("pfctl", "-e"), "as it was", fine_if=_ON)
    return [Change("firewall", "enabled", "disabled", (do,), (undo,))]
