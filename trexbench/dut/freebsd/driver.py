"""pfSense, or any FreeBSD 12 to 15, as a router: plan and verify its settings and read its counters.

Nothing is written to its disk: a reboot, or a reload of pfSense's own configuration, undoes all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

from ...core.dut.rss import PortHash, QueuePlace, Spreading
from ...core.dut.telemetry import Observation
from ...core.errors import DutError
from ...host import freebsd as counters
from ...host.files import number, read_files
from ...transport import TIMEOUT_S, Transport, run_checked
from ..settings import (
    Attestation,
    Change,
    DutDriver,
    LinkDown,
    ListedInterface,
    Listing,
    Wanted,
    attest,
    is_inside,
)
from . import parse
from .changes import FAMILIES, SETTLE, plan
from .check import compare, doubts, probes
from .observe import BOOT_MESSAGES, FreebsdCounters, read_platform

_SETTINGS = {
    "kernel": "kern.osrelease",
    "kernel_date": "kern.osreldate",
    "kernel_ident": "kern.ident",
    "cpu": "hw.model",
    "cpus": "kern.smp.cpus",
    "cpu_levels": "dev.cpu.0.freq_levels",
    # With redirects FreeBSD 12 sends every packet through the slow path, ip_input.
    "net.inet.ip.redirect": "net.inet.ip.redirect",
    "net.inet.ip.fw.enable": "net.inet.ip.fw.enable",
    "net.isr.dispatch": "net.isr.dispatch",
    "net.isr.numthreads": "net.isr.numthreads",
    "net.isr.bindthreads": "net.isr.bindthreads",
    "net.isr.maxqlimit": "net.isr.maxqlimit",
    "net.inet.rss.enabled": "net.inet.rss.enabled",
    "net.route.multipath": "net.route.multipath",
}
_OF_DEVICE = {
    "device": "%desc",
    "flow_control": "fc",
    "override_nrxqs": "iflib.override_nrxqs",
    "override_nrxds": "iflib.override_nrxds",
    "simple_tx": "iflib.simple_tx",
}
_VERSION = "dev.{}.{}.iflib.driver_version"
_FIRMWARE = {"mce": "dev.mlx5_core.{1}.hw.fw_version", "bnxt": "dev.bnxt.{1}.ver.fw_ver"}
_FIRMWARE_ELSE = "dev.{}.{}.fw_version"
"""ix, ixl, ice, em, igb, igc: sys/dev/ixgbe, ixl, ice, e1000, igc. Of mce it is the PCI device's, whose number is the
same (sys/dev/mlx5/mlx5_en), of bnxt that of sys/dev/bnxt. Other drivers have none, or another place for it."""
_CONFIG = "/conf/config.xml"
"""Settings of pfSense (by a link) and OPNsense; their interfaces are ``<if>ix0</if>`` there."""
_FILES = {"pfsense": "/etc/version", "platform": "/etc/platform"}

Queues = Mapping[str, Mapping[int, int]]
"""Interrupt number of each receive queue, by interface."""


class PfsenseDut:
    """FreeBSD router behind a transport."""

    def __init__(self, wanted: Wanted, transport: Transport) -> None:
        self._wanted, self._transport = wanted, transport
        self._unsettled = False
        self._counters = FreebsdCounters(wanted, transport)

    def identity(self) -> str:
        """Identify the boot: by its ID (since FreeBSD 14), else by when its messages were written, or when it began.

        The last of these, kern.boottime, changes when somebody sets the clock.
        """
        boot: str | int | None
        boot = parse.parse_opaque(self._transport.run(("sysctl", "-xei", "kern.boot_id"), TIMEOUT_S).stdout)
        if not boot:
            written = self._transport.run(("stat", "-f", "%m", *BOOT_MESSAGES), TIMEOUT_S).stdout.split()
            boot = number(written[0]) if written else None
        boot = boot or parse.parse_struct(self._sysctl(("kern.boottime",)).get("kern.boottime", ""), "sec")
        if not boot:
            raise DutError(f"{self._wanted.config.name}: sysctl printed no kern.boottime", "is it FreeBSD?")
        return f"boot {boot}"

    def plan(self) -> Sequence[Change]:
        changes = plan(self._wanted, self._state())
        self._unsettled |= bool(changes)
        return changes

    def verify(self) -> Attestation:
        """Read everything back; after changes wait first, since pfSense undoes some of them seconds later."""
        if self._unsettled:
            run_checked(self._transport, SETTLE.argv, SETTLE.timeout_s)
        # -a includes queues that have not had an interrupt yet
        done = self._transport.run(("vmstat", "-ia"), TIMEOUT_S)
        queues = counters.receive_queues(counters.parse_interrupts(done.stdout)) if done.returncode == 0 else {}
        facts = self._facts(queues)
        wrong, platform = compare(self._wanted, facts), read_platform(self._transport)
        self._unsettled = any(isinstance(mismatch, LinkDown) for mismatch in wrong)  # pfSense reacts once it is up
        attestation = attest(self._wanted, facts, wrong, self._spreading(queues), platform)
        return replace(attestation, doubts=doubts(facts))

    def observe(self, clear: bool = False) -> Observation:
        """Read all counters. clear has no effect: they are totals."""
        return self._counters.read()

    def _state(self) -> dict[str, Any]:
        interfaces = parse.parse_interfaces(run_checked(self._transport, ("ifconfig", "-a")))
        names = self._wanted.interfaces
        settings = {**_SETTINGS, **{name: name for name in self._of_families("forward")}}
        devices = [device for device in map(counters.device, self._wanted.interfaces) if device]
        leaves = [f"dev.{driver}.{unit}.{leaf}" for driver, unit in devices for leaf in _OF_DEVICE.values()]
        versions = [name for device in devices for name in _versions(*device).values()]
        values = self._sysctl((*settings.values(), "kern.ostype", *leaves, *versions))
        if values.get("kern.ostype") != "FreeBSD":
            what = f"{self._wanted.config.name}: {self._transport.place}"
            if not values and not interfaces:
                raise DutError(f"{what} runs no command", "log in as root: older pfSense has a menu for other users")
            raise DutError(f"{what} is not FreeBSD", "correct driver or transport")
        vlans = [vlan.name for port in self._wanted.config.ports for vlan in self._wanted.vlans(port)]
        routed = [self._wanted.routed(port) for port in self._wanted.config.ports]
        there = {name: {"vlan": interfaces[name].get("vlan")} for name in vlans if name in interfaces}
        return {
            **{key: values.get(name) for key, name in settings.items()},
            **({"vlans": there} if there else {}),
            "ipv6_off": [name for name in routed if name in interfaces and interfaces[name]["ipv6_off"]],
            "unusable": {name: interfaces[name]["unusable"] for name in routed if name in interfaces},
            "links": sorted(interfaces),
            "interfaces": {name: self._interface(interfaces.get(name), name, values) for name in names},
            "addresses": {name: link["addresses"] for name, link in interfaces.items() if link["addresses"]},
            "neighbours": self._neighbours(),
            "routes": self._routes(),
            "firewall": self._firewall(),
        }

    def _facts(self, queues: Queues) -> dict[str, Any]:
        facts = self._state()
        routed = map(self._wanted.routed, self._wanted.config.ports)
        facts["addresses"] = {name: facts["addresses"].get(name) for name in routed}
        files = read_files(self._transport, "-sH", "", *_FILES.values())
        facts.update({key: files.get(path) for key, path in _FILES.items()})
        facts["firewall_rules"] = None
        if facts["firewall"] == "enabled":
            rules = run_checked(self._transport, ("pfctl", "-s", "rules")).splitlines()
            facts["firewall_rules"] = sum(bool(line.strip()) for line in rules)
        managed = self._transport.run(("grep", "-sho", "<if>[^<]*</if>", _CONFIG), TIMEOUT_S).stdout.split()
        facts["assigned"] = [name for name in self._wanted.interfaces if f"<if>{name}</if>" in managed]
        facts["paths"] = []
        for _, host in probes(self._wanted.config):
            argv = ("route", "-n", *FAMILIES[host.version].route, "get", str(host))
            done = self._transport.run(argv, TIMEOUT_S)
            hop = parse.parse_path(done.stdout) if done.returncode == 0 else done.complaint
            facts["paths"].append({"to": str(host), "hop": hop})
        facts["rx_queues"] = {name: len(queues.get(name, ())) or None for name in self._wanted.interfaces}
        return facts

    def _spreading(self, queues: Queues) -> Spreading:
        """Find the CPU that each receive queue's interrupt is bound to; iflib's task for the queue runs on it, too."""
        places = []
        for port in self._wanted.config.ports:
            for queue, irq in sorted(queues.get(port.interface, {}).items()):
                done = self._transport.run(("cpuset", "-g", "-x", str(irq)), TIMEOUT_S)
                cpus = counters.parse_cpus(done.stdout) if done.returncode == 0 else ()
                places.append(QueuePlace(port.tester, queue, f"cpu{cpus[0]}" if len(cpus) == 1 else None))
        reason = "FreeBSD's drivers draw a random hash key at attach and do not show it"
        hashes = tuple(PortHash(port.tester, None, reason=reason) for port in self._wanted.config.ports)
        return Spreading(tuple(places), hashes)

    def _sysctl(self, names: Sequence[str]) -> dict[str, str]:
        """Read these sysctls; those that do not exist are left out."""
        return counters.parse_sysctl(self._transport.run(("sysctl", "-ei", *names), TIMEOUT_S).stdout)

    def _interface(self, shown: dict[str, Any] | None, name: str, values: dict[str, str]) -> dict[str, Any] | None:
        device = counters.device(name)
        if shown is None or device is None:
            return shown
        driver, unit = device
        versions = {key: values[name] for key, name in _versions(driver, unit).items() if values.get(name)}
        return {
            **shown,
            **{key: values.get(f"dev.{driver}.{unit}.{leaf}") for key, leaf in _OF_DEVICE.items()},
            "driver": {"driver": driver, **versions},
        }

    def _neighbours(self) -> dict[str, dict[str, Any]]:
        """Read the test's entries; others come and go."""
        asked = {str(other) for port in self._wanted.config.ports for other in port.neighbour.addresses}
        entries = []
        if 4 in self._wanted.config.versions:
            entries += parse.parse_neighbours(run_checked(self._transport, ("arp", "-an")))
        if 6 in self._wanted.config.versions:
            entries += parse.parse_ndp(run_checked(self._transport, ("ndp", "-an")))
        return {entry["address"]: entry for entry in entries if entry["address"] in asked}

    def _routes(self) -> list[dict[str, Any]]:
        nets = [route.to for route in self._wanted.config.routes]
        return [
            entry
            for word in self._of_families("word")
            for entry in parse.parse_routes(run_checked(self._transport, ("netstat", "-rnW", "-f", word)))
            if any(is_inside(ip_network(entry["to"]), net) for net in nets)
        ]

    def _of_families(self, name: str) -> list[str]:
        return [getattr(FAMILIES[version], name) for version in self._wanted.config.versions]

    def _firewall(self) -> str:
        """Read whether pf is ``enabled``, ``disabled``, or ``absent`` from the kernel."""
        done = self._transport.run(("pfctl", "-s", "info"), TIMEOUT_S)
        if done.returncode and "/dev/pf: No such file" in done.stderr:
            return "absent"
        if done.returncode:
            message = f"{self._wanted.config.name}: pfctl -s info failed on {self._transport.place}"
            raise DutError(message, done.complaint)
        return parse.parse_firewall(done.stdout)


def _versions(driver: str, unit: str) -> dict[str, str]:
    """Map the words of Linux's ``ethtool -i`` to the sysctls that have the same."""
    firmware = _FIRMWARE.get(driver, _FIRMWARE_ELSE)
    return {"version": _VERSION.format(driver, unit), "firmware-version": firmware.format(driver, unit)}


def _listed(text: str) -> list[ListedInterface]:
    interfaces = parse.parse_interfaces(text)
    return [ListedInterface(name, bool(link["addresses"])) for name, link in interfaces.items() if link["mac"]]


DRIVER = DutDriver(PfsenseDut, Listing(("ifconfig", "-a"), _listed))
