"""Differences between a pfSense's settings and its config, and doubts of what it may undo by itself. Pure."""

from __future__ import annotations

from dataclasses import replace

from ...config.model import DutConfig, Port, Route
from ...config.readers import Address
from ...core.units import format_bits
from ...host.freebsd import device
from ..model import Mismatch, Wanted, compare_route, ends_of, unmet
from .changes import Facts, ends, firewall, forwarding, hop, stays, vlans

_LOADER = "/boot/loader.conf.local"
_UNASSIGN = "remove {} from its interfaces (Interfaces > Assignments)"


def probes(config: DutConfig) -> list[tuple[Route, Address]]:
    """The lowest and the highest host of each route, to ask the kernel about."""
    return [(route, host) for route in config.routes for host in ends_of(route.to)]


def compare(wanted: Wanted, facts: Facts) -> list[Mismatch]:
    """Everything the config asks for that the facts do not show."""
    config = wanted.config
    wrong = unmet([change for version in config.versions for change in forwarding(version, facts)])
    for port in config.ports:
        wrong += _compare_port(wanted, port, facts)
    table = [(found["to"], (hop(found),)) for found in facts["routes"]]
    for route in config.routes:
        wrong += compare_route(config, route, f"via {route.via}", table)
    for (route, host), path in zip(probes(config), facts["paths"], strict=True):
        expected = f"via {route.via} dev {wanted.routed(wanted.port_of(route))}"
        if path["hop"] != expected:
            wrong.append(Mismatch(f"path to {host}", expected, str(path["hop"])))
    remedy = (
        "pfSense enables it when it reloads its rules, unless System > Advanced > Firewall > 'Disable all packet "
        "filtering' is ticked; or apply again once links and gateways are stable"
    )
    return wrong + [replace(one, remedy=remedy) for one in unmet(firewall(config, facts))]


def doubts(facts: Facts) -> list[str]:
    """Settings that are as wanted, and that the system may undo by itself."""
    found = [
        f"pfSense manages {name} itself, and may delete its neighbours and addresses: {_UNASSIGN.format(name)}"
        for name in facts["assigned"]
    ]
    found += [
        f"neighbour {address} is not permanent, since this kernel's arp -S forgets it (mended in FreeBSD 14.1): "
        "an ARP packet from there would replace it"
        for address, one in facts["neighbours"].items()
        if not one["permanent"] and stays(one, facts)
    ]
    for name, one in facts["interfaces"].items():
        driver, unit = device(name) or ("", "")
        if one and one.get("flow_control") == "0" and driver == "ix" and facts["rx_queues"].get(name) != 1:
            dropped = "frames that one of several queues drops are in no counter"
            found.append(f"{name} has flow control off (dev.{driver}.{unit}.fc): {dropped}")
        if one and one.get("simple_tx") == "1":
            found.append(f"{name} sends without a ring (iflib.simple_tx=1): frames that it refuses are in no counter")
    if facts["firewall"] != "enabled" and facts["net.inet.ip.fw.enable"] == "1":
        found.append("ipfw is on (net.inet.ip.fw.enable=1): its rules are part of what is measured")
    return found


def _compare_port(wanted: Wanted, port: Port, facts: Facts) -> list[Mismatch]:
    name = port.interface
    found = facts["interfaces"].get(name)
    if found is None:
        return [Mismatch("interface", name, f"only {', '.join(facts['links'])}")]
    wrong = []
    if not found["up"] or found["status"] not in ("active", None):
        wrong.append(Mismatch(f"link of {name}", "up", str(found["status"]) if found["up"] else "set down"))
    speed, asked = found["speed_bps"], wanted.config.speed_bps
    if speed is not None and asked is not None and speed < asked:
        wrong.append(Mismatch(f"speed of {name}", format_bits(asked), f"{format_bits(speed)} ({found['media']})"))
    remedy = f"pfSense undoes it when a link changes: {_UNASSIGN.format(name)}" if name in facts["assigned"] else ""
    differs = unmet(vlans(wanted, port, facts) + ends(wanted, port, facts))
    wrong += [replace(one, remedy=remedy) for one in differs]
    unusable = facts["unusable"].get(wanted.routed(port), {})
    wrong += [
        Mismatch(f"address of {wanted.routed(port)}", str(own), f"{own} {unusable[str(own)]}")
        for own in port.addresses
        if str(own) in unusable
    ]
    return wrong + _compare_queues(wanted, name, facts["rx_queues"].get(name))


def _compare_queues(wanted: Wanted, name: str, active: int | None) -> list[Mismatch]:
    if wanted.rx_queues is None or active == wanted.rx_queues:
        return []
    which = device(name)
    tunable = f"dev.{which[0]}.{which[1]}.iflib.override_nrxqs" if which else "the driver's tunable"
    # iflib_msix_init: a number above these is ignored
    limit = "as many as the NIC's interrupts and the CPUs allow"
    remedy = f'write {tunable}="{wanted.rx_queues}" into {_LOADER} and reboot the DUT: {limit}'
    return [Mismatch(f"receive queues of {name}", str(wanted.rx_queues), str(active or "unknown"), remedy)]
