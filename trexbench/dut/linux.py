"""A Linux router: what to set, in which order, and what to read back.

Everything is set with commands that say the same thing twice without harm, and nothing is believed before it was
read back: the last word has ``ip route get ... iif``, the kernel's own answer for a packet of the test.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from ..config import DutConfig, Port, Route
from ..core.errors import ConfigError, DutError
from ..transport import Completed, Transport
from . import parse_linux as parse
from .model import Attestation, Command, Mismatch

TIMEOUT_S = 15.0
LINK_WAIT_S = 10.0

_FORWARD = "/proc/sys/net/ipv4/ip_forward"
_SETTINGS = {
    "kernel": "/proc/sys/kernel/osrelease",
    "kernel_build": "/proc/sys/kernel/version",
    "ip_forward": _FORWARD,
    "rp_filter_all": "/proc/sys/net/ipv4/conf/all/rp_filter",
    "netdev_max_backlog": "/proc/sys/net/core/netdev_max_backlog",
    "netdev_budget": "/proc/sys/net/core/netdev_budget",
    "netdev_budget_usecs": "/proc/sys/net/core/netdev_budget_usecs",
    "dev_weight": "/proc/sys/net/core/dev_weight",
    "conntrack_max": "/proc/sys/net/netfilter/nf_conntrack_max",
    "iptables": "/proc/net/ip_tables_names",
}
_INTERFACE_FILES = {
    "speed_mbps": "/sys/class/net/{}/speed",
    "threaded_napi": "/sys/class/net/{}/threaded",
    "gro_flush_timeout_ns": "/sys/class/net/{}/gro_flush_timeout",
    "napi_defer_hard_irqs": "/sys/class/net/{}/napi_defer_hard_irqs",
    "forwarding": "/proc/sys/net/ipv4/conf/{}/forwarding",
    "rp_filter": "/proc/sys/net/ipv4/conf/{}/rp_filter",
}


def plan(config: DutConfig, tester_macs: Mapping[int, str]) -> list[Command]:
    """The commands that bring a Linux DUT into the state of its config; pure."""
    commands = [Command(("tee", _FORWARD), "forward IPv4", input="1\n")]
    for port in config.ports:
        device = ("dev", port.interface)
        mac = neighbour_mac(config, port, tester_macs)
        commands += [
            Command(("ip", "link", "set", *device, "up"), f"cable to the tester's port {port.tester}"),
            Command(("ip", "address", "replace", str(port.address), *device), "its address"),
            Command(
                ("ip", "neigh", "replace", str(port.neighbour.address), "lladdr", mac, "nud", "permanent", *device),
                "the tester answers no ARP",
            ),
        ]
    for route in config.routes:
        hop = ("via", str(route.via), "dev", port_of(config, route).interface)
        commands.append(Command(("ip", "route", "replace", str(route.to), *hop), "where the test traffic goes"))
    return commands


def neighbour_mac(config: DutConfig, port: Port, tester_macs: Mapping[int, str]) -> str:
    """The MAC that this port's neighbour is pinned to."""
    mac = port.neighbour.mac or tester_macs.get(port.tester)
    if not mac:
        raise ConfigError(
            f"{config.file}: port {port.tester}: the generator did not name the MAC of its port {port.tester}",
            "write neighbour.mac in place of 'tester'",
        )
    return mac.lower()


def port_of(config: DutConfig, route: Route) -> Port:
    return next(port for port in config.ports if port.neighbour.address == route.via)


def probes(config: DutConfig) -> list[tuple[Route, IPv4Address, IPv4Address, str]]:
    """Packets of the test to ask the kernel about: route, destination, source, interface of arrival.

    Each route is asked with its lowest and highest host, arriving at the port that is paired with the route's.
    """
    found = []
    for route in config.routes:
        index = config.ports.index(port_of(config, route))
        partner = config.ports[index ^ 1]
        back = next((r.to for r in config.routes if r.via == partner.neighbour.address), None)
        source = _hosts(back)[0] if back else partner.neighbour.address
        found += [(route, destination, source, partner.interface) for destination in _hosts(route.to)]
    return found


class LinuxDut:
    """A Linux router behind a transport; see open_dut for the arguments."""

    def __init__(
        self,
        config: DutConfig,
        transport: Transport,
        tester_macs: Mapping[int, str],
        host_facts: Mapping[str, Any],
    ) -> None:
        self._config = config
        self._transport = transport
        self._macs = tester_macs
        self._host_facts = host_facts
        self._applied: list[Command] = []

    def apply(self) -> Sequence[Command]:
        self._applied = []
        for command in plan(self._config, self._macs):
            self._must(command.argv, command.input)
            self._applied.append(command)
        self._await_links()
        return tuple(self._applied)

    def verify(self) -> Attestation:
        facts = self._read()
        facts.update({key: value for key, value in self._host_facts.items() if facts.get(key) is None})
        facts["unknown"] = sorted(name for name, value in facts.items() if value is None)
        return Attestation(
            dut=self._config.name,
            driver=self._config.driver,
            attested=True,
            facts=facts,
            applied=tuple(self._applied),
            mismatches=tuple(compare(self._config, self._macs, facts)),
        )

    def _await_links(self) -> None:
        """A port that was just set up negotiates for seconds; one without a cable is left for verify to name."""
        deadline = time.monotonic() + LINK_WAIT_S
        names = [port.interface for port in self._config.ports]
        while time.monotonic() < deadline:
            links = parse.parse_links(self._must(("ip", "-json", "-details", "link", "show")).stdout)
            if all(links[name]["carrier"] for name in names if name in links):
                return
            time.sleep(0.25)

    def _read(self) -> dict[str, Any]:
        names = [port.interface for port in self._config.ports]
        links = parse.parse_links(self._must(("ip", "-json", "-details", "link", "show")).stdout)
        addresses = parse.parse_addresses(self._must(("ip", "-json", "address", "show")).stdout)
        files = self._read_files(names)
        interfaces: dict[str, dict[str, Any] | None] = {}
        for name in names:
            if name not in links:
                interfaces[name] = None
                continue
            settings = {key: parse.number(files.get(path.format(name))) for key, path in _INTERFACE_FILES.items()}
            interfaces[name] = {
                **links[name],
                **settings,
                "addresses": addresses.get(name, []),
                "rps_cpus": parse.queue_files(files, name, "rps_cpus"),
                "xps_cpus": parse.queue_files(files, name, "xps_cpus"),
                "offloads": self._offloads(name),
            }
        return {
            **{key: _setting(files.get(path)) for key, path in _SETTINGS.items()},
            "links": sorted(links),
            "interfaces": interfaces,
            "neighbours": self._neighbours(names),
            "routes": self._routes(),
            "paths": self._paths(),
        }

    def _neighbours(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Of the test's interfaces only: those of a management network come and go."""
        found: dict[str, dict[str, Any]] = {}
        for name in names:
            done = self._transport.run(("ip", "-json", "neigh", "show", "dev", name), TIMEOUT_S)
            if done.returncode == 0:
                found |= parse.parse_neighbours(done.stdout, name)
        return found

    def _routes(self) -> list[dict[str, Any]]:
        """Those of the config and what lies inside them: the whole table of a router may be a million long."""
        argv = ("ip", "-json", "route", "show", "table", "main", "root")
        lists = [parse.parse_routes(self._must((*argv, str(route.to))).stdout) for route in self._config.routes]
        merged = [found for routes in lists for found in routes]
        return [found for index, found in enumerate(merged) if found not in merged[:index]]

    def _read_files(self, names: Sequence[str]) -> dict[str, str]:
        paths = [*_SETTINGS.values(), *(p.format(n) for n in names for p in _INTERFACE_FILES.values())]
        # grep's exit code says only whether some file was missing, which shows in what it printed.
        single = self._transport.run(("grep", "-sH", "", *paths), TIMEOUT_S)
        queues = [f"/sys/class/net/{name}/queues" for name in names]
        per_queue = self._transport.run(("grep", "-rsH", "", *queues), TIMEOUT_S)
        return {**parse.parse_files(single.stdout), **parse.parse_files(per_queue.stdout)}

    def _offloads(self, name: str) -> dict[str, bool] | None:
        """The offloads that change forwarding; None where ethtool is not there to ask."""
        try:
            done = self._transport.run(("ethtool", "--json", "-k", name), TIMEOUT_S)
        except DutError:
            return None
        if done.returncode:
            return None
        features = parse.parse_offloads(done.stdout)
        wanted = ("generic-receive-offload", "large-receive-offload", "rx-gro-list", "rx-udp-gro-forwarding")
        return {key: features[key] for key in wanted if key in features}

    def _paths(self) -> list[dict[str, str | None]]:
        found = []
        for _, destination, source, arrival in probes(self._config):
            argv = ("ip", "-json", "route", "get", str(destination), "from", str(source), "iif", arrival)
            done = self._transport.run(argv, TIMEOUT_S)
            hop = parse.parse_path(done.stdout) if done.returncode == 0 else None
            answer = hop or done.complaint
            found.append({"to": str(destination), "from": str(source), "iif": arrival, "hop": hop, "answer": answer})
        return found

    def _must(self, argv: Sequence[str], input: str | None = None) -> Completed:
        done = self._transport.run(argv, TIMEOUT_S, input)
        if done.returncode:
            place = self._transport.place
            raise DutError(f"{self._config.name}: {shlex.join(argv)} failed on {place}", done.complaint)
        return done


def compare(config: DutConfig, tester_macs: Mapping[int, str], facts: Mapping[str, Any]) -> list[Mismatch]:
    """Everything the config asks for that the facts do not show; pure."""
    wrong = []
    if facts["ip_forward"] != 1:
        wrong.append(Mismatch("ip_forward", "1", str(facts["ip_forward"])))
    for port in config.ports:
        wrong += _compare_port(config, port, neighbour_mac(config, port, tester_macs), facts)
    for route in config.routes:
        wrong += _compare_route(config, route, facts["routes"])
    for (route, destination, source, arrival), path in zip(probes(config), facts["paths"], strict=True):
        wanted = _wanted_hop(config, route)
        if path["hop"] != wanted:
            what = f"path of {source} to {destination} arriving at {arrival}"
            wrong.append(Mismatch(what, wanted, str(path["answer"])))
    return wrong


def _compare_port(config: DutConfig, port: Port, mac: str, facts: Mapping[str, Any]) -> list[Mismatch]:
    name = port.interface
    found = facts["interfaces"].get(name)
    if found is None:
        return [Mismatch("interface", name, f"only {', '.join(facts['links'])}")]
    wrong = []
    if not (found["admin_up"] and found["carrier"]):
        # The state lags behind by up to a second; these two flags do not.
        wrong.append(Mismatch(f"link of {name}", "up", "no carrier" if found["admin_up"] else "set down"))
    if str(port.address) not in found["addresses"]:
        wrong.append(Mismatch(f"address of {name}", str(port.address), ", ".join(found["addresses"]) or "none"))
    if found["forwarding"] not in (1, None):
        wrong.append(Mismatch(f"forwarding of {name}", "1", str(found["forwarding"])))
    pinned = facts["neighbours"].get(f"{port.neighbour.address}%{name}")
    if pinned is None or pinned["state"] != "PERMANENT" or str(pinned["mac"]).lower() != mac:
        saw = f"{pinned['mac']} {pinned['state']}" if pinned else "none"
        wrong.append(Mismatch(f"neighbour {port.neighbour.address} on {name}", f"{mac} PERMANENT", saw))
    return wrong


def _compare_route(config: DutConfig, route: Route, routes: Sequence[Mapping[str, Any]]) -> list[Mismatch]:
    """The route is there once, alone, and nothing more specific takes a part of its traffic elsewhere."""
    wanted = _wanted_hop(config, route)
    exact = [found for found in routes if found["to"] == str(route.to)]
    hops = [hop if found["type"] == "unicast" else found["type"] for found in exact for hop in found["hops"]]
    wrong = []
    if hops != [wanted]:
        wrong.append(Mismatch(f"route {route.to}", wanted, " and ".join(hops) or "none"))
    for found in routes:
        inside = IPv4Network(found["to"])
        if inside != route.to and inside.subnet_of(route.to) and found["hops"] != [wanted]:
            if any(inside == other.to for other in config.routes):
                continue
            wrong.append(Mismatch(f"routes inside {route.to}", "none", f"{found['to']} {' and '.join(found['hops'])}"))
    return wrong


def _wanted_hop(config: DutConfig, route: Route) -> str:
    return f"via {route.via} dev {port_of(config, route).interface}"


def _hosts(network: IPv4Network) -> list[IPv4Address]:
    """Its lowest and its highest host address."""
    if network.num_addresses <= 2:
        return [network.network_address]
    return [network.network_address + 1, network.broadcast_address - 1]


def _setting(text: str | None) -> int | str | None:
    value = parse.number(text)
    return text if value is None else value
