"""Check of a cluster's testers against the night's own process, before they take part."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.errors import ConfigError
from .cluster import testers_there
from .task import CellOrder, facts_of_tester, versions

if TYPE_CHECKING:
    from distributed import Client

ANSWER_S = 15.0
"""A tester that does not answer in this time is left out; an answer that takes longer is lost."""


@dataclass
class ComparedTesters:
    """A night's testers. wiring: digest of its fleet.yaml; is_cluster: otherwise all are on this machine, and alike."""

    wiring: str
    is_cluster: bool
    warn: Callable[[str], None]
    trex: dict[str, list[str]] = field(default_factory=dict)
    """TRex client and installation -> testers that have it."""
    _taken: dict[str, bool] = field(default_factory=dict)
    """Address -> True if the tester takes part."""

    def there(self, client: Client, order: CellOrder, strict: bool = False) -> Mapping[str, Sequence[Any]]:
        """Compare new testers with this process; return those that take part, with keys of the cells at each.

        strict: ConfigError for one that differs; otherwise it causes a warning, and takes no part.
        """
        there: dict[str, tuple[str, Sequence[Any]]] = client.run_on_scheduler(testers_there)
        if not self.is_cluster:
            return {name: keys for name, (_, keys) in there.items()}
        new = [address for address, _ in there.values() if address not in self._taken]
        facts = {address: _facts_at(client, address, order) for address in new}
        differences = {address: self._difference(order, reported) for address, reported in facts.items()}
        differ = [line for address, line in differences.items() if line and facts[address] is not None]
        if differ and strict:
            raise ConfigError("; ".join(differ), "make them alike, or stop the worker there")
        for line in filter(None, differences.values()):
            self.warn(f"{line}: it takes no part")
        self._taken |= {address: line is None for address, line in differences.items()}
        return {name: keys for name, (address, keys) in there.items() if self._taken.get(address)}

    def _difference(self, order: CellOrder, facts: Any) -> str | None:
        """Say how a tester differs from this process; None: in nothing that matters."""
        if not isinstance(facts, dict):
            return f"a tester does not answer ({facts or 'in time'})"
        name, mine = facts["tester"], versions()
        if facts["trexbench"] != mine["trexbench"]:
            return f"tester {name} has trexbench {facts['trexbench']}, this is {mine['trexbench']}"
        if facts["wiring"] != self.wiring:
            return f"tester {name} has another fleet.yaml"
        if facts["error"] is not None:
            return f"tester {name}: {facts['error']}"
        if facts["digest"] != order.digest:
            return f"tester {name} has another suite {order.suite_name}, or other configs of its DUTs"
        if not facts["store"]:
            other = f"its --results are not {order.store}" if order.store else f"{order.night} is not in its --results"
            return f"tester {name} has other results: {other}"
        self.trex.setdefault(" ".join(map(str, facts["trex"])).strip(), []).append(name)
        return None


def _facts_at(client: Client, address: str, order: CellOrder) -> Any:
    """Return the facts of this tester, or its error; None if it does not answer in time."""
    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):  # one since Python 3.11
        asked = {"workers": [address], "on_error": "return", "callback_timeout": ANSWER_S}
        return client.run(facts_of_tester, order, **asked).get(address)
    return None
