"""State read back from a VPP: compared with what is wanted, as facts, and who serves its queues. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...config.model import DutConfig, Port, Route
from ...core.dut.rss import PortHash, QueuePlace, Spreading
from ..model import Mismatch, Wanted, ends_of, unmet
from .changes import placement_changes, port_changes
from .facts import VppFacts
from .parse import FibEntry, via


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
    return wrong + unmet(placement_changes(wanted, facts))


def links_missing(wanted: Wanted, facts: VppFacts) -> bool:
    """Is a link still down on an interface that was set up? It may be negotiating."""
    up = [name for name in wanted.interfaces if name in facts.interfaces and facts.interfaces[name].up]
    return any(name in facts.hardware and not facts.hardware[name].link for name in up)


def document(config: DutConfig, facts: VppFacts) -> dict[str, Any]:
    """The facts of an attestation: nothing that changes by itself, or with a restart of VPP."""
    interfaces = [port.interface for port in config.ports]
    return {
        "vpp": facts.version,
        "threads": [{"name": thread.name, "lcore": thread.lcore} for thread in facts.threads],
        "interfaces": {name: _interface(facts, name) for name in interfaces},
        "neighbours": {
            key: asdict(one) for key, one in sorted(facts.neighbours.items()) if key.partition("%")[2] in interfaces
        },
        "routes": {str(route.to): _entry(facts.entry(route)) for route in config.routes},
    }


def spreading(config: DutConfig, facts: VppFacts) -> Spreading:
    """The worker of each receive queue; VPP does not show the NICs' hash."""
    placed = {port: facts.placed(port.interface) for port in config.ports}
    places = [QueuePlace(port.tester, one.queue, one.worker) for port, mine in placed.items() for one in mine]
    hashes = [PortHash(port.tester, None, reason=_why_no_hash(config, bool(mine))) for port, mine in placed.items()]
    return Spreading(tuple(places), tuple(hashes))


def _why_no_hash(config: DutConfig, queues: bool) -> str:
    if config.vpp.interfaces == "af_packet":
        return "the kernel spreads over af_packet's queues, by a hash of its own"
    if config.rss is None:
        return "VPP does not show the NIC's hash, and the config has no rss: section"
    if config.rss.key == "random":
        return "rss.key is random: drawn by the driver, and VPP does not show it"
    return "VPP does not show the NIC's hash" if queues else "VPP shows no receive queue of it"


def _interface(facts: VppFacts, name: str) -> dict[str, Any] | None:
    found, hardware = facts.interfaces.get(name), facts.hardware.get(name)
    if found is None or hardware is None:
        return None
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
        "rx_placement": [{"queue": one.queue, "worker": one.worker, "mode": one.mode} for one in facts.placed(name)],
    }


def _entry(entry: FibEntry | None) -> Mapping[str, Any] | None:
    if entry is None:
        return None
    return {"paths": list(map(str, entry.paths)), "forwarding": list(entry.buckets)}


def _compare_port(wanted: Wanted, port: Port, facts: VppFacts) -> list[Mismatch]:
    name = port.interface
    interface, hardware = facts.interfaces.get(name), facts.hardware.get(name)
    if interface is None or hardware is None:
        return [Mismatch("interface", name, f"only {', '.join(facts.interfaces)}")]
    wrong = unmet(port_changes(wanted, port, facts))
    if interface.up and not hardware.link:
        wrong.append(Mismatch(f"link of {name}", "up", "no carrier", "look at its cable"))
    if wanted.rx_queues is not None and hardware.queues != wanted.rx_queues:
        found = "unknown" if hardware.queues is None else str(hardware.queues)
        wrong.append(Mismatch(f"receive queues of {name}", str(wanted.rx_queues), found))
    return wrong


def _compare_route(wanted: Wanted, route: Route, facts: VppFacts) -> list[Mismatch]:
    """Its forwarding entry must be one complete frame header, whatever addresses and neighbours are."""
    port, wrong = wanted.port_of(route), []
    forwards = via(str(route.via), wanted.routed(port), wanted.mac(port))
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
