"""A pfSense, or any FreeBSD 12 to 15, as a router: what is set, what is read back, what it counts.

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
from ..model import (
    LINK_WAIT_S,
    Attestation,
    Change,
    DutDriver,
    ListedInterface,
    Listing,
    Wanted,
    attest,
    await_links,
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
_CONFIG = "/cf/conf/config.xml"
"""pfSense's own settings; its interfaces are ``<if>ix0</if>`` there."""
_FILES = {"pfsense": "/etc/version", "platform": "/etc/platform"}

Queues = Mapping[str, Mapping[int, int]]
"""Interrupt number of each receive queue, by interface."""


class PfsenseDut:
    """A FreeBSD router behind a transport. link_wait_s: how long verify lets ports negotiate."""

    def __init__(self, wanted: Wanted, transport: Transport, link_wait_s: float = LINK_WAIT_S) -> None:
        self._wanted = wanted
        self._transport = transport
        self._link_wait_s = link_wait_s
        self._unsettled = False
        self._counters = FreebsdCounters(wanted, transport)

    def identity(self) -> str:
        """The boot's ID where the kernel has one (FreeBSD 14), else when its messages were written, or it began.

        The last of these, kern.boottime, changes when somebody sets the clock.
        """
        shown = self._transport.run(("sysctl", "-xei", "kern.boot_id"), TIMEOUT_S).stdout
        boot = parse.parse_opaque(shown) or self._boot_s()
        if not boot:
            raise DutError(f"{self._wanted.config.name}: sysctl printed no kern.boottime", "is it a FreeBSD?")
        return f"boot {boot}"

    def _boot_s(self) -> int | None:
        written = self._transport.run(("stat", "-f", "%m", *BOOT_MESSAGES), TIMEOUT_S).stdout.split()
        first = number(written[0]) if written else None
        return first or parse.parse_struct(self._sysctl(("kern.boottime",)).get("kern.boottime", ""), "sec")

    def plan(self) -> Sequence[Change]:
        found = plan(self._wanted, self._state())
        self._unsettled |= bool(found)
        return found

    def verify(self) -> Attestation:
        """After changes it waits first: what pfSense undoes, it undoes some seconds later."""
        await_links(self._links_up, self._link_wait_s)
        if self._unsettled:
            run_checked(self._transport, SETTLE.argv, SETTLE.timeout_s)
            self._unsettled = False
        queues = self._queues()
        facts = self._facts(queues)
        platform = read_platform(self._transport)
        found = attest(self._wanted, facts, compare(self._wanted, facts), self._spreading(queues), platform)
        return replace(found, doubts=doubts(facts))

    def observe(self, clear: bool = False) -> Observation:
        """clear has no effect: all of FreeBSD's counters are totals."""
        return self._counters.read()

    def _links_up(self) -> bool:
        found = self._interfaces()
        there = [found[name] for name in self._wanted.interfaces if name in found]
        return all(one["status"] in ("active", None) for one in there if one["up"])

    def _state(self) -> dict[str, Any]:
        """Everything that plan needs to know."""
        interfaces, names = self._interfaces(), self._wanted.interfaces
        settings = {**_SETTINGS, **{name: name for name in self._of_families("forward")}}
        values = self._sysctl((*settings.values(), "kern.ostype", *self._device_names()))
        if values.get("kern.ostype") != "FreeBSD":
            what = f"{self._wanted.config.name}: {self._transport.place}"
            if not values and not interfaces:
                raise DutError(f"{what} runs no command", "log in as root: older pfSense has a menu for other users")
            raise DutError(f"{what} is no FreeBSD", "correct driver or transport")
        vlans = [one.name for port in self._wanted.config.ports for one in self._wanted.vlans(port)]
        routed = [self._wanted.routed(port) for port in self._wanted.config.ports]
        there = {name: {"vlan": interfaces[name].get("vlan")} for name in vlans if name in interfaces}
        return {
            **{key: values.get(name) for key, name in settings.items()},
            **({"vlans": there} if there else {}),
            "ipv6_off": [name for name in routed if name in interfaces and interfaces[name]["ipv6_off"]],
            "unusable": {name: interfaces[name]["unusable"] for name in routed if name in interfaces},
            "links": sorted(interfaces),
            "interfaces": {name: self._interface(interfaces.get(name), name, values) for name in names},
            "addresses": {name: one["addresses"] for name, one in interfaces.items() if one["addresses"]},
            "neighbours": self._neighbours(),
            "routes": self._routes(),
            "firewall": self._firewall(),
        }

    def _facts(self, queues: Queues) -> dict[str, Any]:
        """Everything that is attested."""
        facts = self._state()
        routed = map(self._wanted.routed, self._wanted.config.ports)
        facts["addresses"] = {name: facts["addresses"].get(name) for name in routed}
        files = read_files(self._transport, "-sH", "", *_FILES.values())
        facts.update({key: files.get(path) for key, path in _FILES.items()})
        facts["firewall_rules"] = self._rules() if facts["firewall"] == "enabled" else None
        facts["assigned"] = self._assigned()
        facts["paths"] = self._paths()
        facts["rx_queues"] = {name: len(queues.get(name, ())) or None for name in self._wanted.interfaces}
        return facts

    def _spreading(self, queues: Queues) -> Spreading:
        """Each receive queue with the CPU its interrupt is bound to; iflib's task for the queue runs on it, too."""
        places = []
        for port in self._wanted.config.ports:
            for queue, irq in sorted(queues.get(port.interface, {}).items()):
                done = self._transport.run(("cpuset", "-g", "-x", str(irq)), TIMEOUT_S)
                cpus = counters.parse_cpus(done.stdout) if done.returncode == 0 else ()
                places.append(QueuePlace(port.tester, queue, f"cpu{cpus[0]}" if len(cpus) == 1 else None))
        reason = "FreeBSD's drivers draw a random hash key at attach and do not show it"
        hashes = tuple(PortHash(port.tester, None, reason=reason) for port in self._wanted.config.ports)
        return Spreading(tuple(places), hashes)

    def _interfaces(self) -> dict[str, dict[str, Any]]:
        return parse.parse_interfaces(run_checked(self._transport, ("ifconfig", "-a")))

    def _sysctl(self, names: Sequence[str]) -> dict[str, str]:
        """Values by name; those that do not exist are left out."""
        return counters.parse_sysctl(self._transport.run(("sysctl", "-ei", *names), TIMEOUT_S).stdout)

    def _device_names(self) -> list[str]:
        found = [one for one in map(counters.device, self._wanted.interfaces) if one]
        leaves = [f"dev.{driver}.{unit}.{leaf}" for driver, unit in found for leaf in _OF_DEVICE.values()]
        return [*leaves, *(name for which in found for name in _versions(*which).values())]

    def _interface(self, found: dict[str, Any] | None, name: str, values: dict[str, str]) -> dict[str, Any] | None:
        which = counters.device(name)
        if found is None or which is None:
            return found
        prefix = f"dev.{which[0]}.{which[1]}"
        told = {key: values[name] for key, name in _versions(*which).items() if values.get(name)}
        return {
            **found,
            **{key: values.get(f"{prefix}.{leaf}") for key, leaf in _OF_DEVICE.items()},
            "driver": {"driver": which[0], **told},
        }

    def _neighbours(self) -> dict[str, dict[str, Any]]:
        """Only those of the test: others come and go."""
        asked = {str(other) for port in self._wanted.config.ports for other in port.neighbour.addresses}
        found = []
        if 4 in self._wanted.config.versions:
            found += parse.parse_neighbours(run_checked(self._transport, ("arp", "-an")))
        if 6 in self._wanted.config.versions:
            found += parse.parse_ndp(run_checked(self._transport, ("ndp", "-an")))
        return {one["address"]: one for one in found if one["address"] in asked}

    def _routes(self) -> list[dict[str, Any]]:
        """Routes of the config and those inside them."""
        nets = [route.to for route in self._wanted.config.routes]
        found = [
            one
            for word in self._of_families("word")
            for one in parse.parse_routes(run_checked(self._transport, ("netstat", "-rnW", "-f", word)))
        ]
        return [one for one in found if any(is_inside(ip_network(one["to"]), net) for net in nets)]

    def _of_families(self, name: str) -> list[str]:
        """One value of each family in use."""
        return [getattr(FAMILIES[version], name) for version in self._wanted.config.versions]

    def _firewall(self) -> str:
        """``enabled``, ``disabled``, or ``absent`` where there is no pf in the kernel."""
        done = self._transport.run(("pfctl", "-s", "info"), TIMEOUT_S)
        if done.returncode and "/dev/pf: No such file" in done.stderr:
            return "absent"
        if done.returncode:
            message = f"{self._wanted.config.name}: pfctl -s info failed on {self._transport.place}"
            raise DutError(message, done.complaint)
        return parse.parse_firewall(done.stdout)

    def _rules(self) -> int:
        lines = run_checked(self._transport, ("pfctl", "-s", "rules")).splitlines()
        return sum(1 for line in lines if line.strip())

    def _assigned(self) -> list[str]:
        """The test's interfaces that pfSense manages; none on a plain FreeBSD."""
        done = self._transport.run(("grep", "-sho", "<if>[^<]*</if>", _CONFIG), TIMEOUT_S)
        return [name for name in self._wanted.interfaces if f"<if>{name}</if>" in done.stdout.split()]

    def _paths(self) -> list[dict[str, str | None]]:
        found: list[dict[str, str | None]] = []
        for _, host in probes(self._wanted.config):
            family = FAMILIES[host.version].route
            done = self._transport.run(("route", "-n", *family, "get", str(host)), TIMEOUT_S)
            hop = parse.parse_path(done.stdout) if done.returncode == 0 else done.complaint
            found.append({"to": str(host), "hop": hop})
        return found

    def _queues(self) -> Queues:
        """-a includes queues that have not had an interrupt yet."""
        done = self._transport.run(("vmstat", "-ia"), TIMEOUT_S)
        return counters.receive_queues(counters.parse_interrupts(done.stdout)) if done.returncode == 0 else {}


def _versions(driver: str, unit: str) -> dict[str, str]:
    """Names in sysctl of what ``ethtool -i`` tells on Linux, by its words."""
    firmware = _FIRMWARE.get(driver, _FIRMWARE_ELSE)
    return {"version": _VERSION.format(driver, unit), "firmware-version": firmware.format(driver, unit)}


def _listed(text: str) -> list[ListedInterface]:
    found = parse.parse_interfaces(text)
    return [ListedInterface(name, bool(one["addresses"])) for name, one in found.items() if one["mac"]]


DRIVER = DutDriver(PfsenseDut, Listing(("ifconfig", "-a"), _listed))
