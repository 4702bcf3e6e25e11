"""Compare a pfSense's settings with its config, and find those that it may undo by itself. Pure."""

from __future__ import annotations

from dataclasses import replace

from ...config.model import DutConfig, Port, Route
from ...config.readers import Address
from ...core.units import format_bits
from ...host.freebsd import device
from ..settings import LinkDown, Mismatch, Wanted, compare_route, ends_of, unmet
from .changes import Facts, ends, firewall, forwarding, hop, stays, vlans

_LOADER = "/boot/loader.conf.local"
_UNASSIGN = "remove {} from its interfaces (Interfaces > Assignments)"

_NO_PAUSE = {"ix": ("0",), "igb": ("0", "1"), "igc": ("0", "1")}
"""Values of ``fc`` with which a driver lets each of several queues drop (SRRCTL.DROP_EN), and counts none of it:
ixgbe_set_flowcntl, em_initialize_receive_unit, igc_initialize_receive_unit (sys/dev)."""


def probes(config: DutConfig) -> list[tuple[Route, Address]]:
    """List the lowest and the highest host of each route, to ask the kernel about."""
    return [(route, host) for route in config.routes for host in ends_of(route.to)]


def compare(wanted: Wanted, facts: Facts) -> list[Mismatch]:
    """List everything the config asks for that the facts do not show."""
    config = wanted.config
    wrong = unmet([change for version in config.versions for change in forwarding(version, facts)])
    for port in config.ports:
        wrong += _compare_port(wanted, port, facts)
    table = [(entry["to"], (hop(entry),)) for entry in facts["routes"]]
    for route in config.routes:
        wrong += compare_route(config, route, f"via {route.via}", table)
    for (route, host), path in zip(probes(config), facts["paths"], strict=True):
        if path["hop"] != wanted.hop(route):
            wrong.append(Mismatch(f"path to {host}", wanted.hop(route), str(path["hop"])))
    remedy = (
        "pfSense enables it when it reloads its rules, unless System > Advanced > Firewall > 'Disable all packet "
        "filtering' is ticked; or apply again once links and gateways are stable"
    )
    return wrong + [replace(mismatch, remedy=remedy) for mismatch in unmet(firewall(config, facts))]


def doubts(facts: Facts) -> list[str]:
    """Describe settings that are as wanted, but that the system may undo by itself."""
    reasons = [
        f"pfSense manages {name} itself, and may delete its neighbours and addresses: {_UNASSIGN.format(name)}"
        for name in facts["assigned"]
    ]
    reasons += [
        f"neighbour {address} is not permanent, since this kernel's arp -S forgets it (mended in FreeBSD 14.1): "
        "an ARP packet from there would replace it"
        for address, entry in facts["neighbours"].items()
        if not entry["permanent"] and stays(entry, facts)
    ]
    for name, settings in facts["interfaces"].items():
        driver, unit = device(name) or ("", "")
        control = settings.get("flow_control") if settings else None
        if control in _NO_PAUSE.get(driver, ()) and facts["rx_queues"].get(name) != 1:
            dropped = "frames that one of several queues drops are in no counter"
            reasons.append(f"{name} sends no PAUSE (dev.{driver}.{unit}.fc={control}): {dropped}")
        if settings and settings.get("simple_tx") == "1" and driver in ("ix", "ixl"):  # the others' Drop has them
            reasons.append(f"{name} sends without a ring (iflib.simple_tx=1): frames that it refuses are in no counter")
    if facts["firewall"] != "enabled" and facts["net.inet.ip.fw.enable"] == "1":
        reasons.append("ipfw is on (net.inet.ip.fw.enable=1): its rules are part of what is measured")
    return reasons


def _compare_port(wanted: Wanted, port: Port, facts: Facts) -> list[Mismatch]:
    name = port.interface
    link = facts["interfaces"].get(name)
    if link is None:
        return [Mismatch("interface", name, f"only {', '.join(facts['links'])}")]
    wrong = list[Mismatch]()
    if not link["up"] or link["status"] not in ("active", None):
        wrong.append(LinkDown(f"link of {name}", "up", str(link["status"]) if link["up"] else "set down"))
    speed, asked = link["speed_bps"], wanted.config.speed_bps
    if speed is not None and asked is not None and speed < asked:
        wrong.append(Mismatch(f"speed of {name}", format_bits(asked), f"{format_bits(speed)} ({link['media']})"))
    remedy = f"pfSense undoes it when a link changes: {_UNASSIGN.format(name)}" if name in facts["assigned"] else ""
    differs = unmet(vlans(wanted, port, facts) + ends(wanted, port, facts))
    wrong += [replace(mismatch, remedy=remedy) for mismatch in differs]
    unusable = facts["unusable"].get(wanted.routed(port), {})
    wrong += [
        Mismatch(f"address of {wanted.routed(port)}", str(own), f"{own} {unusable[str(own)]}")
        for own in port.addresses
        if str(own) in unusable
    ]
    queues, active = wanted.rx_queues, facts["rx_queues"].get(name)
    if queues is not None and active != queues:
        which = device(name)
        tunable = f"dev.{which[0]}.{which[1]}.iflib.override_nrxqs" if which else "the driver's tunable"
        # iflib_msix_init: a number above these is ignored
        limit = "as many as the NIC's interrupts and the CPUs allow"
        remedy = f'write {tunable}="{queues}" into {_LOADER} and reboot the DUT: {limit}'
        wrong.append(Mismatch(f"receive queues of {name}", str(queues), str(active or "unknown"), remedy))
    return wrong
