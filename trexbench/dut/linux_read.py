"""What a Linux router is asked, and its answers as facts: JSON values by name, None for what it does not say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import DutError
from ..transport import Completed, Transport
from ..transport.words import shown
from . import parse_linux as parse
from . import parse_linux_nic as nic
from .linux_steps import FORWARD, probes
from .linux_tuning import GOVERNORS
from .model import TIMEOUT_S, Wanted

_CONF = "/proc/sys/net/ipv4/conf"
_ONLINE = "/sys/devices/system/cpu/online"
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


_OFFLOADS = ("generic-receive-offload", "large-receive-offload", "rx-gro-list", "rx-udp-gro-forwarding")
"""Those that change what a router does."""


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
                "duplex": files.get(f"/sys/class/net/{name}/duplex"),
                "addresses": addresses.get(name, []),
                "rps_cpus": parse.queue_files(files, name, "rps_cpus"),
                "xps_cpus": parse.queue_files(files, name, "xps_cpus"),
                "offloads": self._offloads(name),
                **self._nic(name),
            }
        return {
            **{key: _setting(files.get(path)) for key, path in _SETTINGS.items()},
            "forwarding": self._forwarding(),
            "irqbalance": self._irqbalance(),
            "governors": self._governors(),
            "cpus_online": nic.parse_cpus(files.get(_ONLINE)),
            "firewall": self._firewall(),
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
        """Of the test's interfaces: the tester, and those that stay; others come and go."""
        tester = [f"{port.neighbour.address}%{port.interface}" for port in self._config.ports]
        found: dict[str, dict[str, Any]] = {}
        for name in names:
            done = self._transport.run(("ip", "-json", "neigh", "show", "dev", name), TIMEOUT_S)
            if done.returncode == 0:
                found |= parse.parse_neighbours(done.stdout, name)
        return {key: one for key, one in found.items() if key in tester or one["state"] in ("PERMANENT", "NOARP")}

    def _routes(self) -> list[dict[str, Any]]:
        """Those of the config and what lies inside them: the whole table of a router may be a million long."""
        argv = ("ip", "-json", "route", "show", "table", "main", "root")
        lists = [parse.parse_routes(self.must((*argv, str(route.to))).stdout) for route in self._config.routes]
        merged = [found for routes in lists for found in routes]
        return [found for index, found in enumerate(merged) if found not in merged[:index]]

    def _read_files(self, names: Sequence[str]) -> dict[str, str]:
        per_port = (*_INTERFACE_FILES.values(), "/sys/class/net/{}/duplex")
        paths = [_ONLINE, *_SETTINGS.values(), *(path.format(name) for name in names for path in per_port)]
        # grep's exit code says only whether some file was missing, which shows in what it printed.
        single = self._transport.run(("grep", "-sH", "", *paths), TIMEOUT_S)
        queues = [f"/sys/class/net/{name}/queues" for name in names]
        per_queue = self._transport.run(("grep", "-rsH", "", *queues), TIMEOUT_S)
        return {**parse.parse_files(single.stdout), **parse.parse_files(per_queue.stdout)}

    def _offloads(self, name: str) -> dict[str, bool] | None:
        """The offloads that change forwarding, and those of the config; None where ethtool is not there to ask."""
        text = self._try(("ethtool", "--json", "-k", name))
        if text is None:
            return None
        features = parse.parse_offloads(text)
        wanted = [*_OFFLOADS, *(feature for feature, _ in self._config.linux.offloads)]
        return {key: features[key] for key in wanted if key in features}

    def _nic(self, name: str) -> dict[str, Any]:
        """Driver, channels, hash and interrupts; None for what this device, or this ethtool, does not tell."""
        channels = self._try(("ethtool", "-l", name))
        driver = self._try(("ethtool", "-i", name))
        hashed = self._try(("ethtool", "-x", name))
        rss = None
        if hashed is not None:
            fields = self._try(("ethtool", "-n", name, "rx-flow-hash", "udp4"))
            rss = {**nic.parse_hash(hashed), "fields": nic.parse_hash_fields(fields or "")}
        return {
            "channels": None if channels is None else nic.parse_channels(channels),
            "driver": None if driver is None else nic.parse_driver(driver),
            "rss": rss,
            "irqs": self._irqs(name),
        }

    def _irqs(self, name: str) -> list[dict[str, Any]]:
        """Of the device, or of what it sits on (virtio): number, name, receive queue, CPUs allowed and in effect."""
        device = f"/sys/class/net/{name}/device"
        listed = self._transport.run(("grep", "-rsH", "", f"{device}/msi_irqs", f"{device}/../msi_irqs"), TIMEOUT_S)
        words = {path.rpartition("/")[2] for path in parse.parse_files(listed.stdout)}
        numbers = sorted(int(word) for word in words if parse.number(word) is not None)
        if not numbers:
            return []
        names = nic.parse_interrupts(self.must(("cat", "/proc/interrupts")).stdout)
        told = ("smp_affinity_list", "effective_affinity_list")
        paths = [f"/proc/irq/{number}/{file}" for number in numbers for file in told]
        files = parse.parse_files(self._transport.run(("grep", "-sH", "", *paths), TIMEOUT_S).stdout)
        return [
            {
                "irq": number,
                "name": names[number],
                "queue": nic.queue_of(names[number]),
                "cpus": files.get(f"/proc/irq/{number}/smp_affinity_list"),
                "effective": files.get(f"/proc/irq/{number}/effective_affinity_list"),
            }
            for number in numbers
            if number in names
        ]

    def _irqbalance(self) -> dict[str, Any]:
        """running: None where nobody can tell. unit: what systemd says of it; None without systemd."""
        unit = self._try(("systemctl", "is-active", "irqbalance"), codes=(0, 3, 4))
        unit = unit.strip() or None if unit is not None else None
        found = self._try(("pgrep", "-x", "irqbalance"), codes=(0, 1))
        if found is None:
            return {"running": None if unit is None else unit == "active", "unit": unit}
        return {"running": bool(found.strip()), "unit": unit}

    def _governors(self) -> dict[str, str] | None:
        """By policy, as in ``policy0``; None where the clock is not the kernel's to set."""
        argv = ("grep", "-rsH", "--include=scaling_governor", "", GOVERNORS)
        files = parse.parse_files(self._transport.run(argv, TIMEOUT_S).stdout)
        found = {path.split("/")[-2]: value for path, value in sorted(files.items()) if path.count("/") > 1}
        return found or None

    def _firewall(self) -> dict[str, int | None]:
        """How many rules there are; None where the tool is not there. Their counters would differ at every look."""
        nft = self._try(("nft", "-j", "list", "ruleset"))
        iptables = self._try(("iptables-save",))
        return {
            "nft_rules": None if nft is None else nic.count_nft_rules(nft),
            "iptables_rules": None if iptables is None else nic.count_iptables_rules(iptables),
        }

    def _paths(self) -> list[dict[str, str | None]]:
        found = []
        for _, destination, source, arrival in probes(self._wanted):
            argv = ("ip", "-json", "route", "get", str(destination), "from", str(source), "iif", arrival)
            done = self._transport.run(argv, TIMEOUT_S)
            hop = parse.parse_path(done.stdout) if done.returncode == 0 else None
            answer = hop or done.complaint
            found.append({"to": str(destination), "from": str(source), "iif": arrival, "hop": hop, "answer": answer})
        return found

    def _try(self, argv: Sequence[str], codes: Sequence[int] = (0,)) -> str | None:
        """What a tool says that need not be there, or need not support this device; None then."""
        try:
            done = self._transport.run(argv, TIMEOUT_S)
        except DutError:
            return None
        return done.stdout if done.returncode in codes else None

    def must(self, argv: Sequence[str], input: str | None = None) -> Completed:
        done = self._transport.run(argv, TIMEOUT_S, input)
        if done.returncode:
            place = self._transport.place
            raise DutError(f"{self._config.name}: {shown(argv)} failed on {place}", done.complaint)
        return done


def _setting(text: str | None) -> int | str | None:
    value = parse.number(text)
    return text if value is None else value
