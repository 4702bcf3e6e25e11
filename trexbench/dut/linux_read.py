"""What a Linux router is asked, and its answers as facts: JSON values by name, None for what it does not say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import DutError
from ..transport import Completed, Transport
from ..transport.words import shown
from . import parse_linux as parse
from .linux_steps import FORWARD, probes
from .model import TIMEOUT_S, Wanted

_CONF = "/proc/sys/net/ipv4/conf"
_SETTINGS = {
    "kernel": "/proc/sys/kernel/osrelease",
    "kernel_build": "/proc/sys/kernel/version",
    "ip_forward": FORWARD,
    "accept_redirects_all": "/proc/sys/net/ipv4/conf/all/accept_redirects",
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


class Reader:
    """Asks the box behind a transport."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted = wanted
        self._config = wanted.config
        self._transport = transport

    def facts(self) -> dict[str, Any]:
        """All of them; the same as long as nobody changes the box."""
        names = [port.interface for port in self._config.ports]
        links = self.links()
        addresses = parse.parse_addresses(self.must(("ip", "-json", "address", "show")).stdout)
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
            "forwarding": self._forwarding(),
            "links": sorted(links),
            "interfaces": interfaces,
            "neighbours": self._neighbours(names),
            "routes": self._routes(),
            "paths": self._paths(),
        }

    def links(self) -> dict[str, dict[str, Any]]:
        return parse.parse_links(self.must(("ip", "-json", "-details", "link", "show")).stdout)

    def _forwarding(self) -> dict[str, int | None]:
        """conf/*/forwarding of every interface: ip_forward writes to them all."""
        done = self._transport.run(("grep", "-rsH", "--include=forwarding", "", _CONF), TIMEOUT_S)
        found = parse.parse_files(done.stdout)
        return {
            path[len(_CONF) + 1 : -len("/forwarding")]: parse.number(value)
            for path, value in sorted(found.items())
            if path.endswith("/forwarding") and not path.endswith(("/all/forwarding", "/default/forwarding"))
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
        lists = [parse.parse_routes(self.must((*argv, str(route.to))).stdout) for route in self._config.routes]
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
        for _, destination, source, arrival in probes(self._wanted):
            argv = ("ip", "-json", "route", "get", str(destination), "from", str(source), "iif", arrival)
            done = self._transport.run(argv, TIMEOUT_S)
            hop = parse.parse_path(done.stdout) if done.returncode == 0 else None
            answer = hop or done.complaint
            found.append({"to": str(destination), "from": str(source), "iif": arrival, "hop": hop, "answer": answer})
        return found

    def must(self, argv: Sequence[str], input: str | None = None) -> Completed:
        done = self._transport.run(argv, TIMEOUT_S, input)
        if done.returncode:
            place = self._transport.place
            raise DutError(f"{self._config.name}: {shown(argv)} failed on {place}", done.complaint)
        return done


def _setting(text: str | None) -> int | str | None:
    value = parse.number(text)
    return text if value is None else value
