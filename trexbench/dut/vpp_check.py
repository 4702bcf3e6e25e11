"""What was read back from a VPP: beside what was wanted, as facts of a result, and as what its queues say. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..config import DutConfig, Port, Route
from ..core.spread import PortHash, QueuePlace, Spreading
from .hashes import stated_hash
from .model import Mismatch, Wanted, ends_of
from .parse_vpp_fib import FibEntry, via
from .parse_vpp_show import Neighbour
from .vpp_facts import VppFacts


def compare(wanted: Wanted, facts: VppFacts) -> list[Mismatch]:
    """Everything the config asks for that VPP does not show."""
    config, settings = wanted.config, wanted.config.vpp
    wrong = []
    if settings.workers is not None and settings.workers != len(facts.workers):
        wrong.append(Mismatch("workers", str(settings.workers), str(len(facts.workers))))
    for port in config.ports:
        wrong += _compare_port(wanted, port, facts)
    for route in config.routes:
        wrong += _compare_route(wanted, route, facts)
    placed = {(one.interface, one.queue): one.worker for one in facts.placement}
    for tester, queue, number in settings.rx_placement:
        name = next(port.interface for port in config.ports if port.tester == tester)
        found, worker = placed.get((name, queue)), f"vpp_wk_{number}"
        if found != worker:
            wrong.append(Mismatch(f"queue {queue} of {name}", worker, found or "not placed"))
    return wrong


def links_wait(wanted: Wanted, facts: VppFacts) -> bool:
    """Is a link still down that was set up? It may be negotiating."""
    up = (port.interface for port in wanted.config.ports if _up(facts, port.interface))
    return any(name in facts.hardware and not facts.hardware[name].link for name in up)


def document(config: DutConfig, facts: VppFacts) -> dict[str, Any]:
    """The facts of an attestation: nothing that differs between two looks at an unchanged VPP, or after its restart."""
    return {
        "vpp": facts.version,
        "threads": [{"name": thread.name, "lcore": thread.lcore} for thread in facts.threads],
        "interfaces": {port.interface: _interface(facts, port.interface) for port in config.ports},
        "neighbours": {
            key: asdict(one)
            for key, one in sorted(facts.neighbours.items())
            if key.partition("%")[2] in [port.interface for port in config.ports]
        },
        "routes": {str(route.to): _entry(facts.entry(route)) for route in config.routes},
    }


def spreading(config: DutConfig, facts: VppFacts) -> Spreading:
    """The worker of each receive queue, and the NICs' hash as the config has it: VPP does not show it."""
    places, hashes = [], []
    for port in config.ports:
        name = port.interface
        mine = sorted((one for one in facts.placement if one.interface == name), key=lambda one: one.queue)
        places += [QueuePlace(port.tester, one.queue, one.worker) for one in mine]
        hashes.append(_hash(config, port, len(mine)))
    return Spreading(tuple(places), tuple(hashes))


def _hash(config: DutConfig, port: Port, queues: int) -> PortHash:
    if config.vpp.interfaces == "af_packet":
        return PortHash(port.tester, None, reason="the kernel spreads over af_packet's queues, by a hash of its own")
    if config.rss is None:
        return PortHash(port.tester, None, reason="VPP does not show the NIC's hash, the config has no rss: section")
    if config.rss.key == "random":
        return PortHash(port.tester, None, reason="rss.key is random: drawn by the driver, and not shown by VPP")
    if not queues:
        return PortHash(port.tester, None, reason="VPP shows no receive queue of it")
    return stated_hash(config.rss, port.tester, queues)


def _up(facts: VppFacts, name: str) -> bool:
    return name in facts.interfaces and facts.interfaces[name].up


def _interface(facts: VppFacts, name: str) -> dict[str, Any] | None:
    found, hardware = facts.interfaces.get(name), facts.hardware.get(name)
    if found is None or hardware is None:
        return None
    mine = sorted((one for one in facts.placement if one.interface == name), key=lambda one: one.queue)
    return {
        "up": found.up,
        "link": hardware.link,
        "mtu": found.mtu,
        "addresses": list(facts.addresses.get(name, ())),
        "driver": hardware.driver,
        "speed": hardware.speed,
        "rx_queues": hardware.queues,
        "rx_queues_max": hardware.max_queues,
        "rx_descriptors": hardware.descriptors,
        "rx_placement": [{"queue": one.queue, "worker": one.worker, "mode": one.mode} for one in mine],
    }


def _entry(entry: FibEntry | None) -> Mapping[str, Any] | None:
    if entry is None:
        return None
    paths = [path.hop if path.resolved else f"{path.hop} unresolved" for path in entry.paths]
    return {"paths": paths, "forwarding": list(entry.buckets)}


def _compare_port(wanted: Wanted, port: Port, facts: VppFacts) -> list[Mismatch]:
    name, address, mac = port.interface, str(port.address), wanted.mac(port)
    interface, hardware = facts.interfaces.get(name), facts.hardware.get(name)
    if interface is None or hardware is None:
        return [Mismatch("interface", name, f"only {', '.join(facts.interfaces)}")]
    wrong = []
    if not interface.up:
        wrong.append(Mismatch(f"state of {name}", "up", "down"))
    elif not hardware.link:
        wrong.append(Mismatch(f"link of {name}", "up", "no carrier", "look at its cable"))
    if facts.macs.get(name, hardware.mac) != hardware.mac:
        wrong.append(Mismatch(f"MAC of {name}", facts.macs[name], str(hardware.mac)))
    have = facts.addresses.get(name, ())
    if address not in have:
        wrong.append(Mismatch(f"address of {name}", address, ", ".join(have) or "none"))
    pinned = facts.neighbours.get(f"{port.neighbour.address}%{name}")
    if pinned != Neighbour(mac, static=True):
        found = f"{pinned.mac} {'static' if pinned.static else 'learnt'}" if pinned else "none"
        wrong.append(Mismatch(f"neighbour {port.neighbour.address} on {name}", f"{mac} static", found))
    if wanted.rx_queues is not None and hardware.queues != wanted.rx_queues:
        found = "unknown" if hardware.queues is None else str(hardware.queues)
        wrong.append(Mismatch(f"receive queues of {name}", str(wanted.rx_queues), found))
    return wrong


def _compare_route(wanted: Wanted, route: Route, facts: VppFacts) -> list[Mismatch]:
    """Its forwarding entry is one finished frame header, whatever addresses and neighbours may say."""
    port, wrong = wanted.port_of(route), []
    forwards = via(str(route.via), port.interface, wanted.mac(port))
    entry = facts.entry(route)
    if entry is None:
        wrong.append(Mismatch(f"route {route.to}", forwards, "none"))
    elif entry.buckets != (forwards,):
        stale = [path.hop for path in entry.paths if not path.resolved]
        why = f" (unresolved: {', '.join(stale)})" if stale else ""
        wrong.append(Mismatch(f"forwarding of {route.to}", forwards, " and ".join(entry.buckets) + why))
    ours = {str(other.to) for other in wanted.config.routes}
    for host in map(str, ends_of(route.to)):
        found = facts.routes.get(host)
        inside = found is not None and entry is not None and found.prefix not in (entry.prefix, *ours)
        if found is not None and inside and found.buckets != (forwards,):
            leads = f"{found.prefix} to {' and '.join(found.buckets)}"
            wrong.append(Mismatch(f"routes inside {route.to}", "none", leads))
    return wrong
