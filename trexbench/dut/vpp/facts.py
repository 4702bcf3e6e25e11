"""Read a VPP's facts with one command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...config.model import DutConfig, Route
from ...core.errors import DutError, NoInterface
from ...transport import TIMEOUT_S, Transport
from ...transport.words import shown
from ..settings import ends_of
from . import parse_show as show
from .commands import NATIVE, linux_file, pci_device
from .parse import FibEntry, parse_fib

_MARK = "=== "
_SCRIPT = (
    f'set -f; while read -r line; do echo "{_MARK}$line"; case $line in /*) cat "$line" 2>/dev/null;; '
    '*) vppctl -s "$0" $line </dev/null || exit;; esac; done; :'
)
"""One shell for many vppctl commands: the box is under load while some of them run."""
_NOT_FOUND = 127

VERSION = "show version verbose"
_TABLES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "threads": ("show threads", show.parse_threads),
    "interfaces": ("show interface", show.parse_interfaces),
    "addresses": ("show interface address", show.parse_addresses),
    "neighbours": ("show ip neighbors", show.parse_neighbours),
    "hardware": ("show hardware-interfaces", show.parse_hardware),
    "placement": ("show interface rx-placement", show.parse_placement),
}
"""Field of VppFacts -> its command, and the parser of the output."""


@dataclass(frozen=True)
class VppFacts:
    """Everything that plan and verify need; interfaces, hardware and addresses are by name of interface."""

    version: str = ""
    threads: tuple[show.Thread, ...] = ()
    interfaces: Mapping[str, show.Interface] = field(default_factory=dict)
    hardware: Mapping[str, show.Hardware] = field(default_factory=dict)
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    neighbours: Mapping[str, show.VppNeighbour] = field(default_factory=dict)
    """By ``address%interface``."""
    placement: tuple[show.Placed, ...] = ()
    routes: Mapping[str, FibEntry] = field(default_factory=dict)
    """By the prefix, or a host of it, that was looked up."""
    macs: Mapping[str, str] = field(default_factory=dict)
    """MACs that the tester sends to, of the Linux interfaces below af_packet's, by VPP's name."""
    conf: str = ""
    """Text of startup.conf, where it may have to be changed."""

    @property
    def workers(self) -> tuple[str, ...]:
        """Names of the threads that forward; empty: the main thread does."""
        return tuple(thread.name for thread in self.threads if thread.kind == "workers")

    def queues(self, interface: str) -> int | None:
        hardware = self.hardware.get(interface)
        return hardware.queues if hardware else None

    def placed(self, interface: str) -> list[show.Placed]:
        """Receive queues of an interface in order, and who serves them."""
        ours = (placed for placed in self.placement if placed.interface == interface)
        return sorted(ours, key=lambda placed: placed.queue)

    def beside(self, interface: str) -> list[tuple[str, show.VppNeighbour]]:
        """Address and entry of each neighbour on this interface."""
        split = ((key.partition("%"), entry) for key, entry in self.neighbours.items())
        return [(address, entry) for (address, _, name), entry in split if name == interface]

    @property
    def own_routes(self) -> dict[str, FibEntry]:
        """Routes whose own prefix was looked up."""
        return {prefix: entry for prefix, entry in self.routes.items() if entry.prefix == prefix}

    def entry(self, route: Route) -> FibEntry | None:
        """Entry of exactly this prefix."""
        return self.own_routes.get(str(route.to))

    def after_restart(self) -> VppFacts:
        """Return what is left when VPP is restarted."""
        return replace(self, interfaces={}, addresses={}, neighbours={}, placement=(), routes={})

    def without(self, interfaces: Sequence[str]) -> VppFacts:
        """Return what is left when these interfaces are deleted."""
        if not interfaces:
            return self
        deleted = set(interfaces)
        return replace(
            self,
            interfaces={name: interface for name, interface in self.interfaces.items() if name not in deleted},
            addresses={name: addresses for name, addresses in self.addresses.items() if name not in deleted},
            neighbours={key: entry for key, entry in self.neighbours.items() if key.partition("%")[2] not in deleted},
            placement=tuple(placed for placed in self.placement if placed.interface not in deleted),
            routes={key: entry for key, entry in self.routes.items() if not uses(entry, deleted)},
        )


def uses(entry: FibEntry, interfaces: set[str]) -> bool:
    """Test whether a path leads to one of these interfaces, or to a deleted one."""
    return any(path.hop.split()[-1] in interfaces or " if_index:" in path.hop for path in entry.paths)


def ask(transport: Transport, socket: str, commands: Sequence[str]) -> dict[str, str]:
    """Run the commands in one round trip and return the output of each; DutError where VPP does not answer.

    A command that begins with a slash is a file to read; its text is empty where there is none.
    """
    done = transport.run(("sh", "-c", _SCRIPT, socket), 2 * TIMEOUT_S, "".join(f"{line}\n" for line in commands))
    if done.returncode == _NOT_FOUND:
        raise DutError(f"vppctl is not installed on {transport.place}", "install the package vpp")
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DutError(f"VPP on {transport.place} does not answer at {socket} ({why})", "is it running there?")
    answers: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in done.stdout.splitlines():
        if line.startswith(_MARK):
            lines = answers.setdefault(line[len(_MARK) :], [])
        else:
            lines.append(line)
    for command in commands:
        if command not in answers:
            raise DutError(f"{shown(('vppctl', command))} was not run on {transport.place}")
    return {command: "\n".join(answers[command]) + "\n" for command in commands}


def read(transport: Transport, config: DutConfig) -> VppFacts:
    """Read everything that plan and verify need; NoInterface where there is no NIC for a driver of VPP's own."""
    targets = [str(target) for route in config.routes for target in (route.to, *ends_of(route.to))]
    lookups = {target: f"show {'ip6' if ':' in target else 'ip'} fib table 0 {target}" for target in targets}
    native = {port.interface: NATIVE.fullmatch(port.interface) for port in config.ports}
    devices = {f"/sys/bus/pci/devices/{pci_device(match)}/class": name for name, match in native.items() if match}
    af_packet = [port.interface for port in config.ports if config.vpp.interfaces == "af_packet"]
    addresses = {name: linux_file(name, "address") for name in af_packet}
    asked = [VERSION, *(command for command, _ in _TABLES.values()), *lookups.values(), *devices, *addresses.values()]
    answers = ask(transport, config.vpp.socket, asked)
    for path, name in devices.items():
        if not answers[path].strip():
            what = f"{config.name}: no NIC for {name}: there is no {path.rpartition('/')[0]}"
            raise NoInterface(what, "correct ports[].interface")
    version = show.parse_version(answers[VERSION])[0]
    tables = {field: parse(answers[command]) for field, (command, parse) in _TABLES.items()}
    routes = {target: parse_fib(answers[command]) for target, command in lookups.items()}
    macs = {name: mac for name, path in addresses.items() if (mac := answers[path].strip().lower())}
    return VppFacts(version, routes=routes, macs=macs, **tables)
