"""A VPP router: what is set and read back by its command line, and what it counts.

Addresses, neighbours and links may all be right while VPP drops every packet, or every second one: the last word has
the forwarding entry of each route, ``show ip fib``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ..core.errors import ConfigError, DutError
from ..core.telemetry import Observation
from ..transport import Transport
from . import parse_linux
from .model import TIMEOUT_S, Attestation, Step, Wanted
from .parse_vpp_show import parse_version
from .vpp_check import compare, document, links_wait, spreading
from .vpp_commands import linux_file
from .vpp_conf import core_list
from .vpp_facts import VppFacts, ask, read
from .vpp_observe import look
from .vpp_steps import plan_from_nothing, steps

__all__ = ["VppDut", "compare", "plan_from_nothing", "steps"]

LINK_WAIT_S = 10.0
_LINK_EVERY_S = 0.5
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
    """A VPP behind a transport. link_wait_s: a link that was set up may take so long to negotiate."""

    def __init__(self, wanted: Wanted, transport: Transport, link_wait_s: float = LINK_WAIT_S) -> None:
        self._wanted = wanted
        self._transport = transport
        self._link_wait_s = link_wait_s

    def identity(self) -> str:
        """The boot and the process: what VPP was told is gone with it."""
        boot = self._must(("cat", _BOOT_ID)).strip()
        command = "show version verbose"
        said = ask(self._transport, self._wanted.config.vpp.socket, [command])[command]
        return f"{boot} {parse_version(said)[1]}"

    def plan(self) -> Sequence[Step]:
        facts = self._read()
        self._refuse_workers()
        return steps(self._wanted, facts, self._conf(facts))

    def verify(self) -> Attestation:
        facts = self._settled()
        config = self._wanted.config
        told = {**document(config, facts), **self._host()}
        told.update({key: value for key, value in self._wanted.host_facts.items() if told.get(key) is None})
        told["unknown"] = sorted(name for name, value in told.items() if value is None)
        wrong = tuple(compare(self._wanted, facts))
        return Attestation(config.name, config.driver, True, told, wrong, spreading(config, facts))

    def observe(self, clear: bool = False) -> Observation:
        return look(self._transport, self._wanted.config, clear)

    def _read(self) -> VppFacts:
        config = self._wanted.config
        facts = read(self._transport, config)
        if config.vpp.interfaces != "af_packet":
            return facts
        names = {linux_file(port.interface, "address"): port.interface for port in config.ports}
        found = parse_linux.parse_files(self._transport.run(("grep", "-sH", "", *names), TIMEOUT_S).stdout)
        return replace(facts, macs={name: found[path].lower() for path, name in names.items() if path in found})

    def _settled(self) -> VppFacts:
        """Read once the links are up, or will not come any more."""
        deadline = time.monotonic() + self._link_wait_s
        while True:
            facts = self._read()
            if not links_wait(self._wanted, facts) or time.monotonic() >= deadline:
                return facts
            time.sleep(_LINK_EVERY_S)

    def _conf(self, facts: VppFacts) -> str:
        """startup.conf, where it may have to be changed."""
        settings, queues = self._wanted.config.vpp, self._wanted.rx_queues
        names = [port.interface for port in self._wanted.config.ports]
        more = settings.workers is not None and settings.workers != len(facts.workers)
        other = queues is not None and any(facts.queues(name) != queues for name in names)
        if more or (other and settings.interfaces == "dpdk"):
            return self._must(("cat", settings.startup_conf))
        return ""

    def _refuse_workers(self) -> None:
        """VPP does not start with more workers than there are cores beside its main thread's."""
        workers = self._wanted.config.vpp.workers
        cores = core_list(self._host()["cpus"] or "") if workers else None
        if workers and cores is not None and workers >= len(cores):
            place = self._transport.place
            raise ConfigError(
                f"{self._wanted.config.name}: {workers} workers are wanted, {place} has {len(cores)} cores",
                "each takes one, and so does VPP's main thread",
            )

    def _host(self) -> dict[str, str | None]:
        """What the Linux under VPP decides; None where it does not say."""
        # grep's exit code says only whether some file was missing, which shows in what it printed
        done = self._transport.run(("grep", "-sH", "", *_HOST.values()), TIMEOUT_S)
        files = parse_linux.parse_files(done.stdout)
        return {name: files.get(path) for name, path in _HOST.items()}

    def _must(self, argv: Sequence[str]) -> str:
        done = self._transport.run(argv, TIMEOUT_S)
        if done.returncode:
            raise DutError(f"{' '.join(argv)} failed on {self._transport.place}", done.complaint)
        return done.stdout
