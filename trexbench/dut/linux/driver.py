"""A Linux router: what is set, what is read back, and what it counts.

Everything that was set is read back. What decides is ``ip route get ... iif``, the kernel's own answer for a packet of
the test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ...core.dut.telemetry import Observation
from ...core.errors import DutError
from ...host.files import number, parse_cpus, read_files
from ...host.linux import parse_driver, parse_interrupts, read_platform
from ...transport import TIMEOUT_S, Transport, run_checked
from ..model import LINK_WAIT_S, Attestation, Change, DutDriver, ListedInterface, Listing, Wanted, attest, await_links
from . import parse
from .changes import FAMILIES, FORWARD, compare, forwarding_of, plan, probes
from .firewall import NFT, load_of, sysctl_file
from .observe import BackgroundPerf, LinuxCounters
from .tcp import TCP_OFFLOADS, TCP_SETTINGS, redirect_files
from .tuning import GOVERNORS, find_spreading, lab_of

T = TypeVar("T")

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
    "duplex": "/sys/class/net/{}/duplex",
}
_OFFLOADS = ("generic-receive-offload", "large-receive-offload", "rx-gro-list", "rx-udp-gro-forwarding")
"""Offloads that affect forwarding."""


class LinuxDut:
    """A Linux router behind a transport. link_wait_s: how long verify lets links negotiate."""

    def __init__(self, wanted: Wanted, transport: Transport, link_wait_s: float = LINK_WAIT_S) -> None:
        self._wanted = wanted
        self._transport = transport
        self._link_wait_s = link_wait_s
        # those that forward; none: not known, so any may
        cpus: tuple[int, ...] = wanted.config.linux.cpus or tuple(lab_of(wanted).get("router_cpus") or ())
        self._counters, self._perf = LinuxCounters(wanted, transport, cpus), BackgroundPerf(transport, cpus)

    def identity(self) -> str:
        """The boot, and the network namespace: a lab's is removed while the machine stays up."""
        boot = run_checked(self._transport, ("cat", "/proc/sys/kernel/random/boot_id")).strip()
        return f"{boot} {run_checked(self._transport, ('readlink', '/proc/self/ns/net')).strip()}"

    def plan(self) -> Sequence[Change]:
        return plan(self._wanted, self._facts())

    def verify(self) -> Attestation:
        await_links(self._links_up, self._link_wait_s)
        facts = self._facts()
        mismatches, spreading = compare(self._wanted, facts), find_spreading(self._wanted, facts)
        return attest(self._wanted, facts, mismatches, spreading, read_platform(self._transport))

    def observe(self, clear: bool = False) -> Observation:
        """clear begins a count of cycles by ``perf stat``, which the next reading returns if it is over by then.

        All other counters are totals. Where perf cannot count, perf_hz is None, and is not reported as missing.
        """
        seen = replace(self._counters.read(), perf_hz=self._perf.take())
        if clear:
            self._perf.begin()
        return seen

    def _links_up(self) -> bool:
        links = parse.parse_links(self._shown())
        names = [name for name in self._wanted.interfaces if name in links]
        return all(links[name]["carrier"] for name in names if links[name]["admin_up"])

    def _shown(self) -> str:
        return run_checked(self._transport, ("ip", "-json", "-details", "link", "show"))

    def _facts(self) -> dict[str, Any]:
        """All facts; the same as long as nobody changes the box."""
        names, tunnel, shown = self._wanted.interfaces, self._wanted.tunnel, self._shown()
        links = parse.parse_links(shown)
        addresses = parse.parse_addresses(run_checked(self._transport, ("ip", "-json", "address", "show")))
        files = self._settings(names)
        interfaces: dict[str, dict[str, Any] | None] = {}
        for name in names:
            if name not in links:
                interfaces[name] = None
                continue
            interfaces[name] = {
                **{key: value for key, value in links[name].items() if key not in parse.VLAN_FACTS},
                **{key: _setting(files.get(path.format(name))) for key, path in _INTERFACE_FILES.items()},
                "addresses": addresses.get(name, []),
                "rps_cpus": parse.queue_files(files, name, "rps_cpus"),
                "xps_cpus": parse.queue_files(files, name, "xps_cpus"),
                "offloads": self._offloads(name),
                **self._nic(name),
            }
        vlans = self._vlans(links, addresses)
        return {
            **{key: _setting(files.get(path)) for key, path in _SETTINGS.items()},
            **({"vlans": vlans} if vlans else {}),
            **self._forwarding(),
            "irqbalance": self._irqbalance(),
            "governors": self._governors(),
            "cpus_online": parse_cpus(files.get(_ONLINE)),
            **self._firewall(),
            **self._sysctls(),
            "links": sorted(links),
            "interfaces": interfaces,
            **({} if tunnel is None else {"tunnel": parse.parse_device(shown, tunnel.name)}),
            "neighbours": self._neighbours([*names, *vlans]),
            "routes": self._routes(),
            "paths": self._paths(),
            **self._tcp(),
        }

    def _tcp(self) -> dict[str, Any]:
        """Read what matters to TCP only: redirects, and the settings of its hosts."""
        if not self._wanted.tcp:
            return {}
        redirects = tuple(redirect_files(self._wanted))
        files = read_files(self._transport, "-sH", "", *redirects, *TCP_SETTINGS.values())
        return {
            "redirects": {path: number(files.get(path)) for path in redirects},
            "tcp": {key: _setting(_joined(files.get(path))) for key, path in TCP_SETTINGS.items()},
        }

    def _vlans(
        self, links: Mapping[str, Mapping[str, Any]], addresses: Mapping[str, list[str]]
    ) -> dict[str, dict[str, Any]]:
        """The config's VLAN interfaces that are there."""
        wanted = [one.name for port in self._wanted.config.ports for one in self._wanted.vlans(port)]
        keys = (*parse.VLAN_FACTS, "admin_up")
        there = [name for name in wanted if name in links]
        return {n: {**{key: links[n][key] for key in keys}, "addresses": addresses.get(n, [])} for n in there}

    def _forwarding(self) -> dict[str, Any]:
        """Forwarding of every interface, by family in use: to forward at all is written to them all."""
        facts: dict[str, Any] = {}
        for version in self._wanted.config.versions:
            facts[forwarding_of(version)] = self._per_interface(version, "forwarding")
        if 6 in self._wanted.config.versions:
            family, off = FAMILIES[6], self._per_interface(6, "disable_ipv6")
            routed = map(self._wanted.routed, self._wanted.config.ports)
            facts["ipv6_off"] = {name: off[name] for name in routed if name in off}
            facts[family.forward] = number(read_files(self._transport, "-sH", "", family.file).get(family.file))
        return facts

    def _per_interface(self, version: int, setting: str) -> dict[str, int | None]:
        conf, end = FAMILIES[version].conf, f"/{setting}"
        found = read_files(self._transport, "-rsH", f"--include={setting}", "", conf)
        return {
            path[len(conf) + 1 : -len(end)]: number(value)
            for path, value in sorted(found.items())
            if path.endswith(end) and not path.endswith((f"/all{end}", f"/default{end}"))
        }

    def _neighbours(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Neighbours on the test's interfaces: the tester, and permanent ones; others come and go."""
        ports = self._wanted.config.ports
        tester = [f"{other}%{self._wanted.routed(port)}" for port in ports for _, other in port.ends]
        found: dict[str, dict[str, Any]] = {}
        for name in names:
            done = self._transport.run(("ip", "-json", "neigh", "show", "dev", name), TIMEOUT_S)
            if done.returncode == 0:
                found |= parse.parse_neighbours(done.stdout, name)
        return {key: one for key, one in found.items() if key in tester or one["state"] in ("PERMANENT", "NOARP")}

    def _routes(self) -> list[dict[str, Any]]:
        """Routes of the config and those inside them: a router's whole table may have a million."""
        argv, found = ("-json", "route", "show", "table", "main", "root"), list[dict[str, Any]]()
        for to in (route.to for route in self._wanted.config.routes):
            said = run_checked(self._transport, ("ip", *FAMILIES[to.version].words, *argv, str(to)))
            found += [one for one in parse.parse_routes(said) if one not in found]
        return found

    def _settings(self, names: Sequence[str]) -> dict[str, str]:
        per_port = (path.format(name) for name in names for path in _INTERFACE_FILES.values())
        paths = [_ONLINE, *_SETTINGS.values(), *per_port]
        queues = [f"/sys/class/net/{name}/queues" for name in names]
        found = read_files(self._transport, "-sH", "", *paths)
        if not queues:  # then grep would read all of its folder
            return found
        return {**found, **read_files(self._transport, "-rsH", "", *queues)}

    def _offloads(self, name: str) -> dict[str, bool] | None:
        """The offloads that change forwarding, and those of the config; None where ethtool does not tell."""
        features = self._try(("ethtool", "--json", "-k", name), parse.parse_offloads)
        if features is None:
            return None
        wanted = [*_OFFLOADS, *(feature for feature, _ in self._wanted.config.linux.offloads)]
        wanted += TCP_OFFLOADS if self._wanted.tcp else ()
        return {key: features[key] for key in wanted if key in features}

    def _nic(self, name: str) -> dict[str, Any]:
        """Driver, channels, rings, coalescing, hash and interrupts; None where the device or ethtool does not tell."""
        rss = self._try(("ethtool", "-x", name), parse.parse_hash)
        if rss is not None:
            for version in self._wanted.config.versions:
                argv = ("ethtool", "-n", name, "rx-flow-hash", f"udp{version}")
                rss["fields" if version == 4 else f"ipv{version}_fields"] = self._try(argv, parse.parse_hash_fields)
        return {
            "channels": self._try(("ethtool", "-l", name), parse.parse_channels),
            "rings": self._try(("ethtool", "-g", name), parse.parse_channels),
            "coalescing": self._try(("ethtool", "-c", name), parse.parse_coalescing),
            "driver": self._try(("ethtool", "-i", name), parse_driver),
            "rss": rss,
            "irqs": self._irqs(name),
        }

    def _irqs(self, name: str) -> list[dict[str, Any]]:
        """Interrupts of the device, or its parent (virtio): number, name, receive queue, CPUs allowed and in effect."""
        device = f"/sys/class/net/{name}/device"
        listed = read_files(self._transport, "-rsH", "", f"{device}/msi_irqs", f"{device}/../msi_irqs")
        words = {path.rpartition("/")[2] for path in listed}
        irqs = sorted(int(word) for word in words if number(word) is not None)
        if not irqs:
            return []
        there = parse_interrupts(run_checked(self._transport, ("cat", "/proc/interrupts")).splitlines())
        leaves = ("smp_affinity_list", "effective_affinity_list")
        paths = [f"/proc/irq/{irq}/{leaf}" for irq in irqs for leaf in leaves]
        files = read_files(self._transport, "-sH", "", *paths)
        return [
            {
                "irq": irq,
                "name": there[irq][0],
                "queue": parse.queue_of(there[irq][0]),
                "cpus": files.get(f"/proc/irq/{irq}/smp_affinity_list"),
                "effective": files.get(f"/proc/irq/{irq}/effective_affinity_list"),
            }
            for irq in irqs
            if irq in there
        ]

    def _irqbalance(self) -> dict[str, Any]:
        """running: None where it is not known. unit: its state in systemd; None without systemd."""
        unit = self._try(("systemctl", "is-active", "irqbalance"), str.strip, codes=(0, 3, 4)) or None
        found = self._try(("pgrep", "-x", "irqbalance"), str.strip, codes=(0, 1))
        if found is not None:
            return {"running": bool(found), "unit": unit}
        return {"running": None if unit is None else unit == "active", "unit": unit}

    def _governors(self) -> dict[str, str] | None:
        """By policy, as in ``policy0``; None where the kernel does not control the clock."""
        files = read_files(self._transport, "-rsH", "--include=scaling_governor", "", GOVERNORS)
        found = {path.split("/")[-2]: value for path, value in sorted(files.items()) if path.count("/") > 1}
        return found or None

    def _firewall(self) -> dict[str, Any]:
        """Count the rules; None where the tool is missing. The rules' own counters change all the time.

        Also trexbench's own rules, where a variant asks for some or they were left.
        """
        nft = self._try((NFT, "-j", "list", "ruleset"), str)
        saved = self._try(("iptables-save",), str)
        every = {
            "nft_rules": None if nft is None else parse.count_nft_rules(nft),
            "iptables_rules": None if saved is None else parse.count_iptables_rules(saved),
        }
        facts: dict[str, Any] = {"firewall": every}
        if self._wanted.config.variant is not None:
            file = self._wanted.config.chosen.firewall.file
            facts["variant"] = self._wanted.config.variant
            facts["firewall_files"] = {file.file.name: file.digest} if file is not None else {}
        if self._rules_can_be_loaded():
            facts["rules_by"] = NFT
        own = {} if nft is None else parse.own_nft_rules(nft)
        return facts | ({"own_rules": {NFT: own}} if own else {})

    def _rules_can_be_loaded(self) -> bool:
        """False where the variant has no rules; DutError where the DUT's nft or its kernel cannot load them."""
        load = load_of(self._wanted)
        if load is None:
            return False
        try:
            done = self._transport.run(load.trial, TIMEOUT_S, load.text)
        except DutError as error:
            said = str(error)
        else:
            if done.returncode == 0:
                return True
            said = " ".join((done.stderr or done.stdout).split())[:160]
        remedy = "install nftables there, or correct the rules"
        if self._wanted.config.chosen.flow_offload:
            remedy = "take flow_offload out where nft or the kernel (CONFIG_NF_FLOW_TABLE_INET) has no flowtable"
        what = f"{self._wanted.config.name}: variant {self._wanted.config.variant}: its rules cannot be loaded"
        raise DutError(f"{what} ({NFT}: {said})", remedy)

    def _sysctls(self) -> dict[str, Any]:
        """Sysctls of the variant; None for one that is not there."""
        paths = {name: sysctl_file(name) for name, _ in self._wanted.config.chosen.sysctls}
        if not paths:
            return {}
        files = read_files(self._transport, "-sH", "", *paths.values())
        return {"sysctls": {name: _joined(files.get(path)) for name, path in paths.items()}}

    def _paths(self) -> list[dict[str, str | None]]:
        found = []
        for _, destination, source, arrival in probes(self._wanted):
            family = FAMILIES[destination.version].words
            argv = ("ip", *family, "-json", "route", "get", str(destination), "from", str(source))
            done = self._transport.run((*argv, "iif", arrival) if arrival else argv, TIMEOUT_S)
            hop = parse.parse_path(done.stdout) if done.returncode == 0 else None
            answer = hop or done.complaint
            found.append({"to": str(destination), "from": str(source), "iif": arrival, "hop": hop, "answer": answer})
        return found

    def _try(self, argv: Sequence[str], parser: Callable[[str], T], codes: Sequence[int] = (0,)) -> T | None:
        """Parse what a tool prints; None where it is not installed or does not support this device."""
        try:
            done = self._transport.run(argv, TIMEOUT_S)
        except DutError:
            return None
        return parser(done.stdout) if done.returncode in codes else None


def _joined(text: str | None) -> str | None:
    """Without tabs between its words."""
    return None if text is None else " ".join(text.split())


def _setting(text: str | None) -> int | str | None:
    value = number(text)
    return text if value is None else value


def _listed(text: str) -> list[ListedInterface]:
    """Interfaces of hardware, or of a virtual machine's: no loopback, bridge, tunnel or tag."""
    addresses = parse.parse_addresses(text)
    links = ((name, one) for name, one in parse.parse_links(text).items() if name != "lo" and one["mac"])
    return [ListedInterface(name, bool(addresses[name])) for name, one in links if one["kind"] is None]


def _queues(text: str) -> int | None:
    most = parse.parse_channels(text)["max"]
    return most.get("combined") or most.get("rx")


_LISTING = Listing(("ip", "-json", "-details", "address", "show"), _listed, queues=(("ethtool", "-l"), _queues))
DRIVER = DutDriver(LinuxDut, _LISTING)
