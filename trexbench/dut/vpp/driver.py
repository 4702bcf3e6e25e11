"""VPP routers: plan and verify their settings by vppctl, and read their counters.

Addresses, neighbours and links may all be right while VPP drops every packet, or every second one: the forwarding
entry of each route, ``show ip fib``, has the last word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from ...config.model import DutConfig, Port, Route
from ...config.settings import VppSettings
from ...core.dut.rss import PortHash, QueuePlace, Spreading
from ...core.dut.telemetry import Observation
from ...core.errors import ConfigError
from ...host.files import parse_cpus, read_files
from ...host.linux import read_platform
from ...transport import Transport, run_checked
from ..settings import (
    Attestation,
    Change,
    DutDriver,
    LinkDown,
    ListedInterface,
    Listing,
    Mismatch,
    Wanted,
    attest,
    ends_of,
    unmet,
)
from .changes import placement_changes, plan, port_changes
from .facts import VERSION, VppFacts, ask, read
from .observe import read_counters
from .parse import via
from .parse_show import parse_hardware, parse_version

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_HOST = {
    "kernel": "/proc/sys/kernel/osrelease",
    "kernel_command_line": "/proc/cmdline",
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "cpus": "/sys/devices/system/cpu/online",
    "isolated_cpus": "/sys/devices/system/cpu/isolated",
    "smt": "/sys/devices/system/cpu/smt/control",
    "turbo_off": "/sys/devices/system/cpu/intel_pstate/no_turbo",
}


class VppDut:
    """VPP router behind a transport."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted, self._transport = wanted, transport

    def identity(self) -> str:
        """Identify the boot and the process: VPP forgets its settings when it ends."""
        boot = run_checked(self._transport, ("cat", _BOOT_ID)).strip()
        answers = ask(self._transport, self._wanted.config.vpp.socket, [VERSION])
        return f"{boot} {parse_version(answers[VERSION])[1]}"

    def plan(self) -> Sequence[Change]:
        config, workers = self._wanted.config, self._wanted.config.vpp.workers
        facts = read(self._transport, config)
        cores = parse_cpus(self._host()["cpus"] or "") if workers else None
        if workers and cores is not None and workers >= len(cores):  # VPP would not start
            raise ConfigError(
                f"{config.name}: {workers} workers are wanted, {self._transport.place} has {len(cores)} cores",
                "each takes one, and so does VPP's main thread",
            )
        queues, interfaces = self._wanted.rx_queues, self._wanted.interfaces
        more = workers is not None and workers != len(facts.workers)
        other = queues is not None and any(facts.queues(name) != queues for name in interfaces)
        if more or (other and config.vpp.interfaces == "dpdk"):
            facts = replace(facts, conf=run_checked(self._transport, ("cat", config.vpp.startup_conf)))
        return plan(self._wanted, facts)

    def verify(self) -> Attestation:
        config = self._wanted.config
        facts = read(self._transport, config)
        attested = {**document(config, facts), **self._host()}
        platform = read_platform(self._transport)
        return attest(self._wanted, attested, compare(self._wanted, facts), spreading(config, facts), platform)

    def observe(self, clear: bool = False) -> Observation:
        return read_counters(self._transport, self._wanted.config, clear)

    def _host(self) -> dict[str, str | None]:
        files = read_files(self._transport, "-sH", "", *_HOST.values())
        return {name: files.get(path) for name, path in _HOST.items()}


def compare(wanted: Wanted, facts: VppFacts) -> list[Mismatch]:
    """List everything the config asks for that VPP does not show."""
    config, settings = wanted.config, wanted.config.vpp
    wrong = []
    if settings.workers is not None and settings.workers != len(facts.workers):
        wrong.append(Mismatch("workers", str(settings.workers), str(len(facts.workers))))
    for port in config.ports:
        wrong += _compare_port(wanted, port, facts)
    for route in config.routes:
        wrong += _compare_route(wanted, route, facts)
    return wrong + unmet(placement_changes(wanted, facts))


def document(config: DutConfig, facts: VppFacts) -> dict[str, Any]:
    """Collect the facts of an attestation: nothing that changes by itself, or with a restart of VPP."""
    interfaces = [port.interface for port in config.ports]
    routes: dict[str, Any] = {}
    for route in config.routes:
        entry = facts.entry(route)
        routes[str(route.to)] = None
        if entry is not None:
            routes[str(route.to)] = {"paths": list(map(str, entry.paths)), "forwarding": list(entry.buckets)}
    return {
        "vpp": facts.version,
        "threads": [{"name": thread.name, "lcore": thread.lcore} for thread in facts.threads],
        "interfaces": {name: _interface(facts, name) for name in interfaces},
        "neighbours": {
            key: asdict(entry) for key, entry in sorted(facts.neighbours.items()) if key.partition("%")[2] in interfaces
        },
        "routes": routes,
    }


def spreading(config: DutConfig, facts: VppFacts) -> Spreading:
    """Find the worker of each receive queue; VPP does not show the NICs' hash."""
    places, hashes = list[QueuePlace](), list[PortHash]()
    for port in config.ports:
        queues = facts.placed(port.interface)
        places += [QueuePlace(port.tester, placed.queue, placed.worker) for placed in queues]
        hashes.append(PortHash(port.tester, None, reason=_why_no_hash(config, bool(queues))))
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
    interface, hardware = facts.interfaces.get(name), facts.hardware.get(name)
    if interface is None or hardware is None:
        return None
    return {
        "up": interface.up,
        "link": hardware.link,
        "mtu": interface.mtu,
        "addresses": list(facts.addresses.get(name, ())),
        "driver": hardware.driver,
        "speed": hardware.speed,
        "rx_queues": hardware.queues,
        "rx_queues_max": hardware.max_queues,
        "rx_descriptors": hardware.descriptors,
        "rx_placement": [
            {"queue": placed.queue, "worker": placed.worker, "mode": placed.mode} for placed in facts.placed(name)
        ],
    }


def _compare_port(wanted: Wanted, port: Port, facts: VppFacts) -> list[Mismatch]:
    name = port.interface
    interface, hardware = facts.interfaces.get(name), facts.hardware.get(name)
    if interface is None or hardware is None:
        return [Mismatch("interface", name, f"only {', '.join(facts.interfaces)}")]
    wrong = unmet(port_changes(wanted, port, facts))
    if interface.up and not hardware.link:
        wrong.append(LinkDown(f"link of {name}", "up", "no carrier", "look at its cable"))
    if wanted.rx_queues is not None and hardware.queues != wanted.rx_queues:
        queues = "unknown" if hardware.queues is None else str(hardware.queues)
        wrong.append(Mismatch(f"receive queues of {name}", str(wanted.rx_queues), queues))
    return wrong


def _compare_route(wanted: Wanted, route: Route, facts: VppFacts) -> list[Mismatch]:
    """Require that the route's forwarding entry is one complete frame header, and no more specific route differs."""
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
        inner = facts.routes.get(host)
        if inner is None or entry is None or inner.prefix in (entry.prefix, *ours) or inner.buckets == (forwards,):
            continue
        leads = f"{inner.prefix} to {' and '.join(inner.buckets)}"
        wrong.append(Mismatch(f"routes inside {route.to}", "none", leads))
    return wrong


def _listed(text: str) -> list[ListedInterface]:
    """List the interfaces that VPP has taken over: they are there to forward, with or without an address."""
    return [
        ListedInterface(name, queues=device.max_queues)
        for name, device in parse_hardware(text).items()
        if device.mac and not name.startswith(("local", "loop"))
    ]


_LISTING = Listing(("vppctl", "-s", VppSettings().socket, "show", "hardware-interfaces"), _listed)
DRIVER = DutDriver(VppDut, _LISTING)
