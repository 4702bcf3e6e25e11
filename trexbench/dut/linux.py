"""A Linux router: what has to be set, what it says when read back, and what it counts.

Nothing is believed before it was read back: the last word has ``ip route get ... iif``, the kernel's own answer for a
packet of the test.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ..core.telemetry import Observation
from ..transport import Transport
from .linux_observe import Observer
from .linux_perf import PerfBeside
from .linux_read import Reader
from .linux_spread import find_spreading
from .linux_steps import compare, plan_from_nothing, steps
from .model import Attestation, Step, Wanted

__all__ = ["LinuxDut", "compare", "plan_from_nothing", "steps"]

LINK_WAIT_S = 10.0
_LINK_EVERY_S = 0.25


class LinuxDut:
    """A Linux router behind a transport. link_wait_s: for links that were just set up and negotiate."""

    def __init__(self, wanted: Wanted, transport: Transport, link_wait_s: float = LINK_WAIT_S) -> None:
        self._wanted = wanted
        self._link_wait_s = link_wait_s
        self._reader = Reader(wanted, transport)
        self._observer = Observer(wanted, transport)
        self._perf = PerfBeside(transport)

    def identity(self) -> str:
        """The boot, and the network namespace: a lab's goes while the machine stays up."""
        boot = self._reader.must(("cat", "/proc/sys/kernel/random/boot_id")).stdout.strip()
        return f"{boot} {self._reader.must(('readlink', '/proc/self/ns/net')).stdout.strip()}"

    def plan(self) -> Sequence[Step]:
        return steps(self._wanted, self._reader.facts())

    def verify(self) -> Attestation:
        self._await_links()
        facts = self._reader.facts()
        facts.update({key: value for key, value in self._wanted.host_facts.items() if facts.get(key) is None})
        facts["unknown"] = sorted(name for name, value in facts.items() if value is None)
        config = self._wanted.config
        wrong, spreading = tuple(compare(self._wanted, facts)), find_spreading(self._wanted, facts)
        return Attestation(config.name, config.driver, True, facts, wrong, spreading)

    def observe(self, clear: bool = False) -> Observation:
        """clear begins a count of cycles by ``perf stat``, of which the next look tells if it is over by then.

        All other counters of Linux's are totals. Where perf cannot count, perf_hz stays None and nothing is missing.
        """
        seen = replace(self._observer.look(), perf_hz=self._perf.take())
        if clear:
            self._perf.begin(self._observer.router)
        return seen

    def _await_links(self) -> None:
        """A port that was just set up negotiates for seconds; one without a cable is left for compare to name."""
        deadline = time.monotonic() + self._link_wait_s
        names = [port.interface for port in self._wanted.config.ports]
        while time.monotonic() < deadline:
            links = self._reader.links()
            if all(links[name]["carrier"] for name in names if name in links and links[name]["admin_up"]):
                return
            time.sleep(_LINK_EVERY_S)
