"""What a pfSense, or any FreeBSD, says of its settings. Everything it prints is parsed in parse_freebsd*.py."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

from ..core.errors import DutError
from ..core.spread import PortHash, QueuePlace, Spreading
from ..transport import Completed, Transport
from ..transport.words import shown
from . import parse_freebsd as parse
from . import parse_freebsd_counters as counters
from .model import TIMEOUT_S, Wanted
from .pfsense_steps import FORWARD, probes

_SETTINGS = {
    "kernel": "kern.osrelease",
    "kernel_date": "kern.osreldate",
    "kernel_ident": "kern.ident",
    "cpu": "hw.model",
    "cpus": "kern.smp.cpus",
    "cpu_levels": "dev.cpu.0.freq_levels",
    FORWARD: FORWARD,
    # With redirects FreeBSD 12 takes the slow way through ip_input for every packet.
    "net.inet.ip.redirect": "net.inet.ip.redirect",
    "net.isr.dispatch": "net.isr.dispatch",
    "net.isr.numthreads": "net.isr.numthreads",
    "net.isr.bindthreads": "net.isr.bindthreads",
    "net.isr.maxqlimit": "net.isr.maxqlimit",
    "net.inet.rss.enabled": "net.inet.rss.enabled",
    "net.route.multipath": "net.route.multipath",
}
_OF_DEVICE = {
    "device": "%desc",
    "firmware": "fw_version",
    "flow_control": "fc",
    "override_nrxqs": "iflib.override_nrxqs",
    "override_nrxds": "iflib.override_nrxds",
}
_FILES = {"pfsense": "/etc/version", "platform": "/etc/platform"}


class Reader:
    """Asks one DUT. Every method may raise DutError."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted = wanted
        self._config = wanted.config
        self._transport = transport
        self._interrupts: dict[str, dict[int, int]] = {}

    def identity(self) -> str:
        """The boot's own number where the kernel has one (FreeBSD 14), else the time of the boot."""
        values = self.sysctl(("kern.boot_id", "kern.boottime"))
        boot = values.get("kern.boot_id") or parse.parse_struct(values.get("kern.boottime", ""), "sec")
        if not boot:
            raise DutError(f"{self._config.name}: sysctl told no kern.boottime", "is it a FreeBSD?")
        return f"boot {boot}"

    def state(self) -> dict[str, Any]:
        """What can be changed, and what it takes to know whether it must be."""
        interfaces = parse.parse_interfaces(self.must(("ifconfig", "-a")).stdout)
        names = [port.interface for port in self._config.ports]
        values = self.sysctl((*_SETTINGS.values(), "kern.ostype", *self._device_names()))
        if values.get("kern.ostype") != "FreeBSD":
            raise DutError(f"{self._config.name}: no FreeBSD answers on {self._transport.place}", "correct its config")
        return {
            **{key: values.get(name) for key, name in _SETTINGS.items()},
            "links": sorted(interfaces),
            "interfaces": {name: self._interface(interfaces.get(name), name, values) for name in names},
            "addresses": {name: one["addresses"] for name, one in interfaces.items() if one["addresses"]},
            "neighbours": self._neighbours(),
            "routes": self._routes(),
            "firewall": self._firewall(),
        }

    def facts(self) -> dict[str, Any]:
        """Everything that is attested, and how the queues are served."""
        facts = self.state()
        facts["addresses"] = {port.interface: facts["addresses"].get(port.interface) for port in self._config.ports}
        files = parse.parse_files(self._transport.run(("grep", "-sH", "", *_FILES.values()), TIMEOUT_S).stdout)
        facts.update({key: files.get(path) for key, path in _FILES.items()})
        facts["firewall_rules"] = self._rules() if facts["firewall"] == "enabled" else None
        facts["paths"] = self._paths()
        queues = self._interrupts = self._queues()
        facts["rx_queues"] = {
            port.interface: len(queues.get(port.interface, ())) or None for port in self._config.ports
        }
        return facts

    def spreading(self) -> Spreading:
        """Each receive queue with the CPU its interrupt is bound to; iflib's task for the queue runs there, too.

        Of the queues that facts found before.
        """
        queues, places = self._interrupts, []
        for port in self._config.ports:
            for queue, irq in sorted(queues.get(port.interface, {}).items()):
                done = self._transport.run(("cpuset", "-g", "-x", str(irq)), TIMEOUT_S)
                cpus = counters.parse_cpus(done.stdout) if done.returncode == 0 else ()
                places.append(QueuePlace(port.tester, queue, f"cpu{cpus[0]}" if len(cpus) == 1 else None))
        reason = "FreeBSD's drivers draw the hash key at attach and do not tell it"
        hashes = tuple(PortHash(port.tester, None, reason=reason) for port in self._config.ports)
        return Spreading(tuple(places), hashes)

    def sysctl(self, names: Sequence[str]) -> dict[str, str]:
        """Values by name; those that are not there are left out."""
        return parse.parse_sysctl(self._transport.run(("sysctl", "-ei", *names), TIMEOUT_S).stdout)

    def must(self, argv: Sequence[str]) -> Completed:
        done = self._transport.run(argv, TIMEOUT_S)
        if done.returncode:
            message = f"{self._config.name}: {shown(argv)} failed on {self._transport.place}"
            raise DutError(message, done.complaint)
        return done

    def _device_names(self) -> list[str]:
        found = [counters.device(port.interface) for port in self._config.ports]
        return [f"dev.{one[0]}.{one[1]}.{leaf}" for one in found if one for leaf in _OF_DEVICE.values()]

    def _interface(self, found: dict[str, Any] | None, name: str, values: dict[str, str]) -> dict[str, Any] | None:
        which = counters.device(name)
        if found is None or which is None:
            return found
        prefix = f"dev.{which[0]}.{which[1]}"
        return {**found, **{key: values.get(f"{prefix}.{leaf}") for key, leaf in _OF_DEVICE.items()}}

    def _neighbours(self) -> dict[str, dict[str, Any]]:
        """Those of the test only: others come and go."""
        asked = {str(port.neighbour.address) for port in self._config.ports}
        found = parse.parse_neighbours(self.must(("arp", "-an")).stdout)
        return {one["address"]: one for one in found if one["address"] in asked}

    def _routes(self) -> list[dict[str, Any]]:
        """Those of the config and what lies inside them."""
        nets = [route.to for route in self._config.routes]
        found = parse.parse_routes(self.must(("netstat", "-rnW", "-f", "inet")).stdout)
        return [one for one in found if any(IPv4Network(one["to"]).subnet_of(net) for net in nets)]

    def _firewall(self) -> str:
        """``enabled``, ``disabled``, or ``absent`` where there is no pf in the kernel."""
        done = self._transport.run(("pfctl", "-s", "info"), TIMEOUT_S)
        if done.returncode and "/dev/pf: No such file" in done.stderr:
            return "absent"
        if done.returncode:
            message = f"{self._config.name}: pfctl -s info failed on {self._transport.place}"
            raise DutError(message, done.complaint)
        return parse.parse_firewall(done.stdout)

    def _rules(self) -> int:
        lines = self.must(("pfctl", "-s", "rules")).stdout.splitlines()
        return sum(1 for line in lines if line.strip())

    def _paths(self) -> list[dict[str, str | None]]:
        found: list[dict[str, str | None]] = []
        for _, host in probes(self._config):
            done = self._transport.run(("route", "-n", "get", str(host)), TIMEOUT_S)
            hop = parse.parse_path(done.stdout) if done.returncode == 0 else done.complaint
            found.append({"to": str(host), "hop": hop})
        return found

    def _queues(self) -> dict[str, dict[int, int]]:
        """-a: those that have not had an interrupt yet, too."""
        done = self._transport.run(("vmstat", "-ia"), TIMEOUT_S)
        return counters.receive_queues(counters.parse_interrupts(done.stdout)) if done.returncode == 0 else {}
