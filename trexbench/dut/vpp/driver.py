"""A VPP router: what is set and read back by its command line, and what it counts.

Addresses, neighbours and links may all be right while VPP drops every packet, or every second one. What decides is the
forwarding entry of each route, ``show ip fib``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...config.settings import VppSettings
from ...core.dut.telemetry import Observation
from ...core.errors import ConfigError
from ...host.files import parse_cpus, read_files
from ...host.linux import read_platform
from ...transport import Transport, run_checked
from ..model import LINK_WAIT_S, Attestation, Change, DutDriver, ListedInterface, Listing, Wanted, attest, await_links
from .changes import plan
from .check import compare, document, links_missing, spreading
from .facts import VppFacts, ask, read
from .observe import read_counters
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
    """A VPP behind a transport. link_wait_s: how long verify lets links negotiate."""

    def __init__(self, wanted: Wanted, transport: Transport, link_wait_s: float = LINK_WAIT_S) -> None:
        self._wanted = wanted
        self._transport = transport
        self._link_wait_s = link_wait_s

    def identity(self) -> str:
        """The boot and the process: VPP forgets its settings when it ends."""
        boot = run_checked(self._transport, ("cat", _BOOT_ID)).strip()
        command = "show version verbose"
        said = ask(self._transport, self._wanted.config.vpp.socket, [command])[command]
        return f"{boot} {parse_version(said)[1]}"

    def plan(self) -> Sequence[Change]:
        facts = read(self._transport, self._wanted.config)
        self._refuse_workers()
        return plan(self._wanted, replace(facts, conf=self._conf(facts)))

    def verify(self) -> Attestation:
        config = self._wanted.config
        await_links(lambda: not links_missing(self._wanted, read(self._transport, config)), self._link_wait_s)
        facts = read(self._transport, config)
        told = {**document(config, facts), **self._host()}
        platform = read_platform(self._transport)
        return attest(self._wanted, told, compare(self._wanted, facts), spreading(config, facts), platform)

    def observe(self, clear: bool = False) -> Observation:
        return read_counters(self._transport, self._wanted.config, clear)

    def _conf(self, facts: VppFacts) -> str:
        """The text of startup.conf, where it may have to be changed; else empty."""
        settings, queues = self._wanted.config.vpp, self._wanted.rx_queues
        names = [port.interface for port in self._wanted.config.ports]
        more = settings.workers is not None and settings.workers != len(facts.workers)
        other = queues is not None and any(facts.queues(name) != queues for name in names)
        if more or (other and settings.interfaces == "dpdk"):
            return run_checked(self._transport, ("cat", settings.startup_conf))
        return ""

    def _refuse_workers(self) -> None:
        """ConfigError for more workers than cores beside the main thread's, with which VPP does not start."""
        workers = self._wanted.config.vpp.workers
        cores = parse_cpus(self._host()["cpus"] or "") if workers else None
        if workers and cores is not None and workers >= len(cores):
            place = self._transport.place
            raise ConfigError(
                f"{self._wanted.config.name}: {workers} workers are wanted, {place} has {len(cores)} cores",
                "each takes one, and so does VPP's main thread",
            )

    def _host(self) -> dict[str, str | None]:
        """Settings of the Linux host that affect VPP; None where it does not tell."""
        files = read_files(self._transport, "-sH", "", *_HOST.values())
        return {name: files.get(path) for name, path in _HOST.items()}


def _listed(text: str) -> list[ListedInterface]:
    """Interfaces that VPP has taken over: they are there to forward, with or without an address."""
    devices = {name: one for name, one in parse_hardware(text).items() if not name.startswith(("local", "loop"))}
    return [ListedInterface(name, queues=one.max_queues) for name, one in devices.items() if one.mac]


_LISTING = Listing(("vppctl", "-s", VppSettings().socket, "show", "hardware-interfaces"), _listed)
DRIVER = DutDriver(VppDut, _LISTING)
