"""Plan the changes to make on a VPP, in order, and their undo. Pure.

VPP has two traps. ``ip route add`` of a prefix that has a route through another interface adds a path: packets are
spread over both. And a route keeps the number of an interface that was deleted: it drops everything, also after an
interface of that name was created again and the route added again. So routes are removed before their interface, and
a route that is not exactly as it should be is removed whole before it is added.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...config.model import Port, Route
from ...config.readers import Address, Interface
from ...core.errors import ConfigError, DutError
from ..settings import Change, Command, Wanted, counted, same_family
from . import commands as vppctl
from .commands import AF_PACKET, NATIVE, command
from .conf import pci_of, with_queues, with_workers
from .facts import VppFacts, uses
from .parse import FibPath, via
from .parse_show import VppNeighbour

READY_S = 60.0
"""VPP with DPDK answers some 10 s after its start."""
_RESTART_S = 120.0


def plan(wanted: Wanted, facts: VppFacts) -> list[Change]:
    """Return the changes to make, in order; ConfigError or DutError for what this DUT cannot do."""
    refuse(wanted, facts)
    changes = _restart(wanted, facts)
    if changes:
        facts = facts.after_restart()
    if wanted.config.vpp.interfaces != "dpdk":
        renewed = [port for port in wanted.config.ports if _differs(wanted, port, facts)]
        changes += [_create(wanted, port, facts) for port in renewed]
        facts = facts.without([name for port in renewed for name in _interface_names(wanted, port)])
    for port in wanted.config.ports:
        changes += port_changes(wanted, port, facts, after_start=bool(changes))
    for route in wanted.config.routes:
        changes += _route(wanted, route, facts)
    return changes + placement_changes(wanted, facts)


def refuse(wanted: Wanted, facts: VppFacts) -> None:
    """Raise ConfigError or DutError, before any change, for interfaces, queues or workers that VPP does not have."""
    config, settings = wanted.config, wanted.config.vpp
    for port in config.ports:
        if settings.interfaces == "dpdk" and port.interface not in facts.interfaces:
            raise DutError(
                f"{config.name}: VPP has no interface {port.interface}, only {', '.join(facts.interfaces)}",
                f"correct ports[].interface in {config.file}, or the dpdk section of {settings.startup_conf}",
            )
        hardware = facts.hardware.get(port.interface)
        most = hardware.max_queues if hardware else None
        if wanted.rx_queues is not None and most is not None and wanted.rx_queues > most:
            raise ConfigError(
                f"{config.name}: {wanted.rx_queues} receive queues are wanted, {port.interface} has {most} at most",
                f"ask for --rx-queues 1 to {most}",
            )
        if settings.interfaces == "af_packet" and not port.interface.startswith(AF_PACKET):
            raise ConfigError(
                f"{config.file}: {port.interface}: VPP calls an af_packet interface host-NAME",
                f"write {AF_PACKET}{port.interface} for the Linux interface {port.interface}",
            )
        native = NATIVE.fullmatch(port.interface)
        if settings.interfaces == "native" and native is None:
            raise ConfigError(
                f"{config.file}: {port.interface} names no driver of VPP's own and PCI device",
                "write virtio-0/0/4/0 or vmxnet3-0/0/4/0 for 0000:00:04.0",
            )
        has = facts.queues(port.interface)
        if native is not None and native[1] == "virtio" and has and wanted.rx_queues not in (None, has):
            raise ConfigError(
                f"{config.name}: VPP uses all queues of {port.interface}, which has {has}; {wanted.rx_queues} wanted",
                "give the machine that many; for a lab's: 'trexbench lab down', and the next run does so",
            )
    workers = len(facts.workers) if settings.workers is None else settings.workers
    for tester, queue, worker in settings.rx_placement:
        port = next(port for port in config.ports if port.tester == tester)
        queues = facts.queues(port.interface) if wanted.rx_queues is None else wanted.rx_queues
        if worker >= workers:
            raise ConfigError(
                f"{config.file}: rx_placement names worker {worker}, VPP has {workers}", "workers count from 0"
            )
        if queues is not None and queue >= queues:
            raise ConfigError(
                f"{config.file}: rx_placement names queue {queue} of {port.interface}, which has {queues}",
                "they count from 0",
            )


def _restart(wanted: Wanted, facts: VppFacts) -> list[Change]:
    """Change startup.conf, from which VPP reads workers and queues of DPDK's devices when it starts, and restart it."""
    config, settings, text, what = wanted.config, wanted.config.vpp, facts.conf, []
    if settings.workers is not None and settings.workers != len(facts.workers):
        text = with_workers(text, settings.workers)
        what.append(counted(settings.workers, "worker"))
    names = [port.interface for port in config.ports]
    every = [name for port in config.ports for name in _interface_names(wanted, port)]
    queues = wanted.rx_queues
    if queues is not None and settings.interfaces == "dpdk" and any(facts.queues(name) != queues for name in names):
        text = with_queues(text, queues, [_device(wanted, name, facts) for name in names])
        what.append(f"{counted(queues, 'receive queue')} per port")
    if not what:
        return []
    counts = ", ".join(f"{name} {facts.queues(name)}" for name in names if facts.queues(name) is not None)
    again = (
        Command(settings.restart, "VPP reads it when it starts", timeout_s=_RESTART_S),
        Command(("vppctl", "-s", settings.socket, "show", "version"), "until it answers", retry_s=READY_S),
    )
    write = ("tee", settings.startup_conf)
    changed = (Command(write, "read at VPP's start", input=text),) if text != facts.conf else ()
    former = (Command(write, "as it was", input=facts.conf),) if text != facts.conf else ()
    return [
        Change(
            "startup.conf",
            f"{counted(len(facts.workers), 'worker')}, receive queues {counts}",
            " and ".join(what),
            (*changed, *again),
            (*former, *again, *_restore(wanted, facts, every, after_start=True)),
            lasts=True,
        )
    ]


def _device(wanted: Wanted, name: str, facts: VppFacts) -> str:
    hardware = facts.hardware.get(name)
    device = (hardware.pci if hardware else None) or pci_of(name)
    if device is None:
        raise ConfigError(
            f"{wanted.config.file}: {name}: neither its name nor VPP shows which PCI device it is",
            f"set its num-rx-queues in {wanted.config.vpp.startup_conf} by hand, and leave --rx-queues out",
        )
    return device


def _differs(wanted: Wanted, port: Port, facts: VppFacts) -> bool:
    """Test whether this interface is missing, or has another number of queues, which it keeps until it is deleted."""
    if port.interface not in facts.interfaces:
        return True
    return wanted.rx_queues is not None and facts.queues(port.interface) != wanted.rx_queues


def _interface_names(wanted: Wanted, port: Port) -> tuple[str, ...]:
    return (port.interface, wanted.routed(port)) if port.vlan else (port.interface,)


def _create(wanted: Wanted, port: Port, facts: VppFacts) -> Change:
    name, exists = port.interface, port.interface in facts.interfaces
    queues = wanted.rx_queues or 1
    clear = list[Command]()
    for each in reversed(_interface_names(wanted, port)):
        clear += _remove_dependents(wanted, each, facts)
    if port.vlan and wanted.routed(port) in facts.interfaces:
        clear.append(command(wanted, "no VLAN", name=wanted.routed(port)))
    delete = vppctl.delete(wanted, name)
    mode = _keep_polling(wanted, name, facts) if exists else ()
    return Change(
        f"interface {name}",
        counted(facts.queues(name) or 1, "receive queue") if exists else "absent",
        counted(queues, "receive queue"),
        (*clear, *((delete,) if exists else ()), vppctl.create(wanted, name, queues, facts.macs.get(name)), *mode),
        (*clear, delete, *_restore(wanted, facts, _interface_names(wanted, port))),
    )


def _keep_polling(wanted: Wanted, name: str, facts: VppFacts) -> tuple[Command, ...]:
    """Poll a new interface, which waits for interrupts, where the former one was polled."""
    if {placed.mode for placed in facts.placed(name)} != {"polling"}:
        return ()
    return (command(wanted, "polling", name=name),)


def _remove_dependents(wanted: Wanted, name: str, facts: VppFacts) -> tuple[Command, ...]:
    """Remove the routes and neighbours that point to this interface."""
    drops, why = "it would drop all packets", "it belongs to the interface"
    routes = [prefix for prefix, entry in facts.own_routes.items() if uses(entry, {name})]
    return (
        *(command(wanted, "no route", drops, prefix=prefix) for prefix in routes),
        *(command(wanted, "no neighbour", why, name=name, address=at, mac=peer.mac) for at, peer in facts.beside(name)),
    )


def _restore(wanted: Wanted, facts: VppFacts, names: Sequence[str], after_start: bool = False) -> tuple[Command, ...]:
    back: list[Command] = []
    for name in names:
        before = facts.interfaces.get(name)
        if before is None:
            continue
        vlan = next((port for port in wanted.config.ports if name == wanted.routed(port) != port.interface), None)
        if vlan is not None:
            back.append(vppctl.create_vlan(wanted, vlan))
        elif wanted.config.vpp.interfaces != "dpdk":
            mac = facts.hardware[name].mac if name in facts.hardware else None
            back += (vppctl.create(wanted, name, facts.queues(name) or 1, mac), *_keep_polling(wanted, name, facts))
        if before.up:
            back.append(vppctl.state(wanted, name, "up", after_start))
        back += [command(wanted, "address", name=name, address=address) for address in facts.addresses.get(name, ())]
        back += [vppctl.pin(wanted, name, address, peer) for address, peer in facts.beside(name) if peer.static]
        for prefix, entry in facts.own_routes.items():
            hops = (path.hop for path in entry.paths if path.hop.split()[-1] == name)
            back += [command(wanted, "route", prefix=prefix, hop=hop) for hop in hops]
        if len(facts.workers) > 1:
            back += [vppctl.place(wanted, name, placed.queue, placed.worker) for placed in facts.placed(name)]
    return tuple(back)


def port_changes(wanted: Wanted, port: Port, facts: VppFacts, after_start: bool = False) -> list[Change]:
    """Set state, MAC, VLAN, addresses and pinned neighbours of a port. after_start: VPP was just started."""
    name, changes = port.interface, list[Change]()
    interface = facts.interfaces.get(name)
    if interface is None or not interface.up:
        was = None if interface is None else "down"
        up, down = (vppctl.state(wanted, name, word, after_start and word == "up") for word in ("up", "down"))
        changes.append(Change(f"state of {name}", was, "up", (up,), (down,)))
    mac, has = facts.macs.get(name), facts.hardware[name].mac if interface and name in facts.hardware else None
    if mac and has and mac != has:
        do, undo = (command(wanted, "MAC", name=name, mac=which) for which in (mac, has))
        changes.append(Change(f"MAC of {name}", has, mac, (do,), (undo,)))
    routed = wanted.routed(port)
    if port.vlan and (routed not in facts.interfaces or not facts.interfaces[routed].up):
        exists = routed in facts.interfaces
        up, down = (vppctl.state(wanted, routed, word) for word in ("up", "down"))
        make = (up,) if exists else (vppctl.create_vlan(wanted, port), up)
        was = "down" if exists else "none" if name in facts.interfaces else None
        undo = down if exists else command(wanted, "no VLAN", name=routed)
        changes.append(Change(routed, was, " in ".join(map(str, reversed(wanted.vlans(port)))), make, (undo,)))
    for own, other in port.ends:
        changes += _address(wanted, routed, own, facts) + _neighbour(wanted, port, other, facts)
    return changes


def _address(wanted: Wanted, name: str, own: Interface, facts: VppFacts) -> list[Change]:
    address, have = str(own), facts.addresses.get(name, ())
    if address in have:
        return []
    # the same address with another length is in the way
    others = [other for other in have if other.partition("/")[0] == str(own.ip)]
    was = None if name not in facts.interfaces else same_family(have, own)
    add, take = (command(wanted, key, name=name, address=address) for key in ("address", "no address"))
    remove = [command(wanted, "no address", name=name, address=other) for other in others]
    again = [command(wanted, "address", name=name, address=other) for other in others]
    return [Change(f"address of {name}", was, address, (*remove, add), (take, *again))]


def _neighbour(wanted: Wanted, port: Port, other: Address, facts: VppFacts) -> list[Change]:
    """Pin the tester's MAC as a static neighbour: it answers neither ARP nor neighbour solicitations."""
    name, hop, mac = wanted.routed(port), str(other), wanted.mac(port)
    before = facts.neighbours.get(f"{hop}%{name}")
    if before == VppNeighbour(mac, static=True):
        return []
    unpin = command(wanted, "no neighbour", name=name, address=hop, mac=mac)
    back = (vppctl.pin(wanted, name, hop, before),) if before else ()
    was = None
    if name in facts.interfaces:
        was = f"{before.mac} {'static' if before.static else 'learnt'}" if before else "none"
    do = (vppctl.pin(wanted, name, hop, VppNeighbour(mac, True)),)
    return [Change(f"neighbour {hop} on {name}", was, f"{mac} static", do, (unpin, *back))]


def _route(wanted: Wanted, route: Route, facts: VppFacts) -> list[Change]:
    """Remove the route whole and add it, unless it is exactly as it should be."""
    port = wanted.port_of(route)
    name = wanted.routed(port)
    prefix, hop = str(route.to), f"{route.via} {name}"
    entry = facts.entry(route)
    pinned = facts.neighbours.get(f"{route.via}%{name}") == VppNeighbour(wanted.mac(port), static=True)
    alone = entry is not None and entry.paths == (FibPath(hop, resolved=True),)
    forwards = (via(str(route.via), name, wanted.mac(port)),)
    # without its neighbour its forwarding entry cannot be complete yet
    if entry is not None and alone and (not pinned or entry.buckets == forwards):
        return []
    remove = command(wanted, "no route", prefix=prefix)
    there = (remove,) if entry is not None else ()
    alive = [path.hop for path in entry.paths if path.resolved and path.hop.count(" ") == 1] if entry else []
    was = "absent" if name in facts.interfaces else None
    if entry is not None:
        was = " and ".join(map(str, entry.paths))
    do = (*there, command(wanted, "route", prefix=prefix, hop=hop))
    undo = (remove, *(command(wanted, "route", prefix=prefix, hop=former) for former in alive))
    return [Change(f"route {prefix}", was, f"via {hop}", do, undo)]


def placement_changes(wanted: Wanted, facts: VppFacts) -> list[Change]:
    """Place receive queues on the workers that the config names."""
    changes = []
    for tester, queue, number in wanted.config.vpp.rx_placement:
        name = next(port.interface for port in wanted.config.ports if port.tester == tester)
        worker = f"vpp_wk_{number}"
        before = next((placed.worker for placed in facts.placed(name) if placed.queue == queue), None)
        if before != worker:
            back = (vppctl.place(wanted, name, queue, before),) if before else ()
            do = (vppctl.place(wanted, name, queue, worker),)
            changes.append(Change(f"queue {queue} of {name}", before, worker, do, back))
    return changes
