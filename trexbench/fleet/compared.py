"""Check of a cluster's testers against the night's own process, before they take part."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ..core.errors import ConfigError
from .cluster import testers_there
from .task import CellOrder, find_difference, versions

if TYPE_CHECKING:
    from distributed import Client

ANSWER_S = 15.0
"""A tester that does not answer in this time is left out; an answer that takes longer is lost."""
MOST_OFFSET_S = 5.0
"""Largest difference between a tester's clock and the night's that causes no warning."""


@dataclass
class ComparedTesters:
    """A night's testers; those of one machine are alike."""

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
        if not order.fleet:
            return {name: keys for name, (_, keys) in there.items()}
        differ = list[str]()
        for name, (address, _) in there.items():
            if address in self._taken:
                continue
            answer = _compare(client, name, address, order)
            is_compared = isinstance(answer, Sequence)
            line, trex = answer if is_compared else (f"a tester does not answer ({answer or 'in time'})", "")
            self._taken[address] = line is None
            if line is None:
                self.trex.setdefault(trex, []).append(name)
                self._compare_clocks(client, name, address)
            elif strict and answer is not None:
                differ.append(line)
            else:
                self.warn(f"{line}: it takes no part")
        if differ:
            raise ConfigError("; ".join(differ), "make them alike, or stop the worker there")
        return {name: keys for name, (address, keys) in there.items() if self._taken[address]}

    def _compare_clocks(self, client: Client, name: str, address: str) -> None:
        asked_s, clock_s = time.time(), _ask(client, address, time.time)
        if isinstance(clock_s, float):
            offset_s = clock_s - min(max(clock_s, asked_s), time.time())
            if abs(offset_s) > MOST_OFFSET_S:
                apart = f"{abs(offset_s):.0f} s {'ahead of' if offset_s > 0 else 'behind'} this machine's"
                self.warn(f"the clock of tester {name} is {apart}, and with it the times of its runs: set it")


def _compare(client: Client, name: str, address: str, order: CellOrder) -> Any:
    """Return what find_difference does at this tester, or as _ask; its version first, as others may read no order."""
    ours = versions()["trexbench"]
    theirs = _ask(client, address, metadata.version, "trexbench")
    if isinstance(theirs, str) and theirs != ours:
        return f"tester {name} has trexbench {theirs}, and needs the night's {ours}", ""
    return theirs if theirs is None else _ask(client, address, find_difference, order, ours)


def _ask(client: Client, address: str, function: Callable[..., Any], *arguments: object) -> Any:
    """Return what the function does at this tester, or its error; None if it does not answer in time."""
    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):  # one since Python 3.11
        asked = {"workers": [address], "on_error": "return", "callback_timeout": ANSWER_S}
        return client.run(function, *arguments, **asked).get(address)
    return None
