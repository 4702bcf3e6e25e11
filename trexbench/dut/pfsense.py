"""A pfSense, or any FreeBSD 12 to 15, as a router: what has to be set, what it says when read back, what it counts.

Nothing is written to its disk: a reboot, and pfSense's own configuration, forget all of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..core.telemetry import Observation
from ..transport import Transport
from .model import Attestation, Step, Wanted
from .parse_freebsd import parse_interfaces
from .pfsense_observe import Observer
from .pfsense_read import Reader
from .pfsense_steps import compare, plan_from_nothing, steps

__all__ = ["PfsenseDut", "compare", "plan_from_nothing", "steps"]

LINK_WAIT_S = 10.0
_LINK_EVERY_S = 0.5


class PfsenseDut:
    """A FreeBSD router behind a transport. link_wait_s: how long verify lets ports negotiate."""

    def __init__(self, wanted: Wanted, transport: Transport, link_wait_s: float = LINK_WAIT_S) -> None:
        self._wanted = wanted
        self._link_wait_s = link_wait_s
        self._reader = Reader(wanted, transport)
        self._observer = Observer(wanted, transport)

    def identity(self) -> str:
        return self._reader.identity()

    def plan(self) -> Sequence[Step]:
        return steps(self._wanted, self._reader.state())

    def verify(self) -> Attestation:
        self._await_links()
        facts = self._reader.facts()
        facts["unknown"] = sorted(name for name, value in facts.items() if value is None)
        config = self._wanted.config
        wrong = tuple(compare(self._wanted, facts))
        return Attestation(config.name, config.driver, True, facts, wrong, self._reader.spreading())

    def observe(self, clear: bool = False) -> Observation:
        """clear means nothing here: all of FreeBSD's counts are totals."""
        return self._observer.observe()

    def _await_links(self) -> None:
        """A port that was just set up negotiates for seconds; one without a cable is left for compare to name."""
        deadline = time.monotonic() + self._link_wait_s
        names = [port.interface for port in self._wanted.config.ports]
        while time.monotonic() < deadline:
            found = parse_interfaces(self._reader.must(("ifconfig", "-a")).stdout)
            there = [found[name] for name in names if name in found]
            if all(one["status"] in ("active", None) for one in there if one["up"]):
                return
            time.sleep(_LINK_EVERY_S)
