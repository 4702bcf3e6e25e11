"""Linux routers: plan and verify their settings and read their counters.

Everything that was set is read back. ``ip route get ... iif``, the kernel's own answer for a packet of the test,
has the last word.
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
from ..settings import Attestation, Change, DutDriver, ListedInterface, Listing, Wanted, attest
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
    """Linux router behind a transport."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted, self._transport = wanted, transport
        # CPUs that forward; empty: unknown, so all are counted
        cpus: tuple[int, ...] = wanted.config.linux.cpus or tuple(lab_of(wanted).get("router_cpus") or ())
        self._counters, self._perf = LinuxCounters(wanted, transport, cpus), BackgroundPerf(transport, cpus)

    def identity(self) -> str:
        """Identify the boot and the network namespace: a lab's is removed while the machine stays up."""
        boot = run_checked(self._transport, ("cat", "/proc/sys/kernel/random/boot_id")).strip()
        return f"{boot} {run_checked(self._transport, ('readlink', '/proc/self/ns/net')).strip()}"

    def plan(self) -> Sequence[Change]:
        return plan(self._wanted, self._facts())

    def verify(self) -> Attestation:
        facts = self._facts()
        mismatches, spreading = compare(self._wanted, facts), find_spreading(self._wanted, facts)
        return attest(self._wanted, facts, mismatches, spreading, read_platform(self._transport))

    def observe(self, clear: bool = False) -> Observation:
        """Read all counters, which are totals. clear: start ``perf stat``, whose cycles the next reading returns.

        Where perf cannot count, perf_hz is None, and is not reported as missing.
        """
        observation = replace(self._counters.read(), perf_hz=self._perf.take())
        if clear:
            self._perf.begin()
        return observation

    def _facts(self) -> dict[str, Any]:
        """Read all facts; they stay equal as long as nobody changes the DUT."""
        names = self._wanted.interfaces
        links = parse.parse_links(run_checked(self._transport, ("ip", "-json", "-details", "link", "show")))
        addresses = parse.parse_addresses(run_checked(self._transport, ("ip", "-json", "address", "show")))
        files = self._setting_files(names)
        interfaces: dict[str, dict[str, Any] | None] = {}
        for name in names:
            if name not in links:
                interfaces[name] = None
                continue
            interfaces[name] = {
                **{key: value for key, value in links[name].items() if key not in ("vlan", "ends")},
                **{key: _setting(files.get(path.format(name))) for key, path in _INTERFACE_FILES.items()},
                "addresses": addresses.get(name, []),
                "rps_cpus": parse.queue_files(files, name, "rps_cpus"),
                "xps_cpus": parse.queue_files(files, name, "xps_cpus"),
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
            **self._rules_and_sysctls(),
            "links": sorted(links),
            "interfaces": interfaces,
            **self._tunnel(links),
            "neighbours": self._neighbours([*names, *vlans]),
            "routes": self._routes(),
            "paths": self._paths(),
            **self._tcp(),
        }

    def _tcp(self) -> dict[str, Any]:
        if not self._wanted.tcp:
            return {}
        redirects = tuple(redirect_files(self._wanted))
        files = read_files(self._transport, "-sH", "", *redirects, *TCP_SETTINGS.values())
        return {
            "redirects": {path: number(files.get(path)) for path in redirects},
            "tcp": {key: _setting(_single_spaced(files.get(path))) for key, path in TCP_SETTINGS.items()},
        }

    def _tunnel(self, links: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        if self._wanted.tunnel is None:
            return {}
        link = links.get(self._wanted.tunnel.name)
        return {"tunnel": link and {**link["ends"], **{key: link[key] for key in ("kind", "mtu", "admin_up")}}}

    def _vlans(
        self, links: Mapping[str, Mapping[str, Any]], addresses: Mapping[str, list[str]]
    ) -> dict[str, dict[str, Any]]:
        wanted = [vlan.name for port in self._wanted.config.ports for vlan in self._wanted.vlans(port)]
        return {
            name: {**links[name]["vlan"], "admin_up": links[name]["admin_up"], "addresses": addresses.get(name, [])}
            for name in wanted
            if name in links
        }

    def _forwarding(self) -> dict[str, Any]:
        """Read forwarding of every interface, for the families in use: the switch of all is written to each."""
        versions = self._wanted.config.versions
        facts: dict[str, Any] = {forwarding_of(v): self._per_interface(v, "forwarding") for v in versions}
        if 6 in versions:
            family, off = FAMILIES[6], self._per_interface(6, "disable_ipv6")
            routed = map(self._wanted.routed, self._wanted.config.ports)
            facts["ipv6_off"] = {name: off[name] for name in routed if name in off}
            facts[family.forward] = number(read_files(self._transport, "-sH", "", family.file).get(family.file))
        return facts

    def _per_interface(self, version: int, setting: str) -> dict[str, int | None]:
        conf, end = FAMILIES[version].conf, f"/{setting}"
        files = read_files(self._transport, "-rsH", f"--include={setting}", "", conf)
        return {
            path[len(conf) + 1 : -len(end)]: number(value)
            for path, value in sorted(files.items())
            if path.endswith(end) and not path.endswith((f"/all{end}", f"/default{end}"))
        }

    def _neighbours(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Read the tester's entries and permanent ones; others come and go."""
        ports = self._wanted.config.ports
        tester = [f"{other}%{self._wanted.routed(port)}" for port in ports for _, other in port.ends]
        neighbours: dict[str, dict[str, Any]] = {}
        for name in names:
            done = self._transport.run(("ip", "-json", "neigh", "show", "dev", name), TIMEOUT_S)
            if done.returncode == 0:
                neighbours |= parse.parse_neighbours(done.stdout, name)
        lasting = ("PERMANENT", "NOARP")
        return {key: entry for key, entry in neighbours.items() if key in tester or entry["state"] in lasting}

    def _routes(self) -> list[dict[str, Any]]:
        """Read the config's routes and those inside them: a router's whole table may have a million."""
        argv, routes = ("-json", "route", "show", "table", "main", "root"), list[dict[str, Any]]()
        for to in (route.to for route in self._wanted.config.routes):
            printed = run_checked(self._transport, ("ip", *FAMILIES[to.version].words, *argv, str(to)))
            routes += [route for route in parse.parse_routes(printed, to.version) if route not in routes]
        return routes

    def _setting_files(self, names: Sequence[str]) -> dict[str, str]:
        per_port = (path.format(name) for name in names for path in _INTERFACE_FILES.values())
        paths = [_ONLINE, *_SETTINGS.values(), *per_port]
        files = read_files(self._transport, "-sH", "", *paths)
        if names:  # grep -r without a path would read its working directory
            queues = (f"/sys/class/net/{name}/queues" for name in names)
            files |= read_files(self._transport, "-rsH", "", *queues)
        return files

    def _nic(self, name: str) -> dict[str, Any]:
        """Read offloads, driver, channels, rings, coalescing, hash and interrupts; None: ethtool does not show it."""
        features = self._try(("ethtool", "--json", "-k", name), parse.parse_offloads)
        offloads = [*_OFFLOADS, *(feature for feature, _ in self._wanted.config.linux.offloads)]
        offloads += TCP_OFFLOADS if self._wanted.tcp else ()
        rss = self._try(("ethtool", "-x", name), parse.parse_hash)
        if rss is not None:
            for version in self._wanted.config.versions:
                argv = ("ethtool", "-n", name, "rx-flow-hash", f"udp{version}")
                rss["fields" if version == 4 else f"ipv{version}_fields"] = self._try(argv, parse.parse_hash_fields)
        return {
            "offloads": None if features is None else {key: features[key] for key in offloads if key in features},
            "channels": self._try(("ethtool", "-l", name), parse.parse_channels),
            "rings": self._try(("ethtool", "-g", name), parse.parse_channels),
            "coalescing": self._try(("ethtool", "-c", name), parse.parse_coalescing),
            "driver": self._try(("ethtool", "-i", name), parse_driver),
            "rss": rss,
            "irqs": self._irqs(name),
        }

    def _irqs(self, name: str) -> list[dict[str, Any]]:
        """Read the interrupts of the device, or of its parent (virtio)."""
        device = f"/sys/class/net/{name}/device"
        listed = read_files(self._transport, "-rsH", "", f"{device}/msi_irqs", f"{device}/../msi_irqs")
        words = {path.rpartition("/")[2] for path in listed}
        irqs = sorted(int(word) for word in words if number(word) is not None)
        if not irqs:
            return []
        interrupts = parse_interrupts(run_checked(self._transport, ("cat", "/proc/interrupts")).splitlines())
        leaves = ("smp_affinity_list", "effective_affinity_list")
        paths = [f"/proc/irq/{irq}/{leaf}" for irq in irqs for leaf in leaves]
        files = read_files(self._transport, "-sH", "", *paths)
        queues = {irq: parse.queue_of(interrupts[irq][0]) for irq in irqs if irq in interrupts}
        first = min((queue for queue in queues.values() if queue is not None), default=0)  # tg3's names begin at 1
        return [
            {
                "irq": irq,
                "name": interrupts[irq][0],
                "queue": None if queue is None else queue - first,
                "cpus": files.get(f"/proc/irq/{irq}/smp_affinity_list"),
                "effective": files.get(f"/proc/irq/{irq}/effective_affinity_list"),
            }
            for irq, queue in queues.items()
        ]

    def _irqbalance(self) -> dict[str, Any]:
        """Read whether it runs (None: unknown) and the state of its systemd unit (None: no systemd)."""
        unit = self._try(("systemctl", "is-active", "irqbalance"), str.strip, codes=(0, 3, 4)) or None
        pids = self._try(("pgrep", "-x", "irqbalance"), str.strip, codes=(0, 1))
        if pids is not None:
            return {"running": bool(pids), "unit": unit}
        return {"running": None if unit is None else unit == "active", "unit": unit}

    def _governors(self) -> dict[str, str] | None:
        files = read_files(self._transport, "-rsH", "--include=scaling_governor", "", GOVERNORS)
        return {path.split("/")[-2]: value for path, value in sorted(files.items()) if path.count("/") > 1} or None

    def _rules_and_sysctls(self) -> dict[str, Any]:
        """Count all rules (None: the tool is missing), and trexbench's own by chain; read the variant's sysctls.

        The rules themselves are no facts: their counters change all the time.
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
        if own := {} if nft is None else parse.own_nft_rules(nft):
            facts["own_rules"] = {NFT: own}
        if paths := {name: sysctl_file(name) for name, _ in self._wanted.config.chosen.sysctls}:
            files = read_files(self._transport, "-sH", "", *paths.values())
            facts["sysctls"] = {name: _single_spaced(files.get(path)) for name, path in paths.items()}
        return facts

    def _rules_can_be_loaded(self) -> bool:
        """Try the variant's rules; False where it has none, DutError where the DUT's nft or kernel cannot load them."""
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
            remedy = "remove flow_offload where nft or the kernel (CONFIG_NF_FLOW_TABLE_INET) has no flowtable"
        what = f"{self._wanted.config.name}: variant {self._wanted.config.variant}: its rules cannot be loaded"
        raise DutError(f"{what} ({NFT}: {said})", remedy)

    def _paths(self) -> list[dict[str, str | None]]:
        paths = []
        for _, destination, source, arrival in probes(self._wanted):
            family, to, sender = FAMILIES[destination.version].words, str(destination), str(source)
            argv = ("ip", *family, "-json", "route", "get", to, "from", sender)
            done = self._transport.run((*argv, "iif", arrival) if arrival else argv, TIMEOUT_S)
            hop = parse.parse_path(done.stdout) if done.returncode == 0 else None
            paths.append({"to": to, "from": sender, "iif": arrival, "hop": hop, "answer": hop or done.complaint})
        return paths

    def _try(self, argv: Sequence[str], parser: Callable[[str], T], codes: Sequence[int] = (0,)) -> T | None:
        """Run a tool and parse its output; None where it is not installed or does not support this device."""
        try:
            done = self._transport.run(argv, TIMEOUT_S)
        except DutError:
            return None
        return parser(done.stdout) if done.returncode in codes else None


def _single_spaced(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


def _setting(text: str | None) -> int | str | None:
    value = number(text)
    return text if value is None else value


def _listed(text: str) -> list[ListedInterface]:
    """List interfaces of hardware and of virtual machines; loopback, bridges, tunnels and VLANs are left out."""
    addresses = parse.parse_addresses(text)
    return [
        ListedInterface(name, bool(addresses[name]))
        for name, link in parse.parse_links(text).items()
        if name != "lo" and link["mac"] and link["kind"] is None
    ]


def _queues(text: str) -> int | None:
    most = parse.parse_channels(text)["max"]
    return most.get("combined") or most.get("rx")


_LISTING = Listing(("ip", "-json", "-details", "address", "show"), _listed, queues=(("ethtool", "-l"), _queues))
DRIVER = DutDriver(LinuxDut, _LISTING)
