"""Stand-ins for what a fleet's tester does while it has a DUT, for its guard, and for a store that is away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runs import make_result
from tools import ROOT

from trexbench.config.lookup import read_suite
from trexbench.config.suite import AS_IT_IS
from trexbench.fleet.guard import LeaseGuard
from trexbench.fleet.task import CellOrder, digest_of
from trexbench.results.document import encode
from trexbench.session.keep import Measured, Output
from trexbench.session.options import Setup

ONE_CELL = "duts: [netgate-linux]\nmodes: [64b]\ndirections: [uni]\n"
PLACE = "2026-11-21/netgate-linux/x.json"


def make_order(
    path: Path, results: Path, text: str = ONE_CELL, configs_dir: Path = ROOT / "dut_configs", **changes: Any
) -> CellOrder:
    """The order to measure the first cell of this suite, which is written."""
    path.write_text(text)
    setup = Setup(sim=True, configs_dir=configs_dir)
    digest = digest_of(read_suite(path, configs_dir), setup)
    where = ("2026-11-21", "2026-11-21-mine", str(results), PLACE)
    return replace(CellOrder(str(path), "mine", setup, AS_IT_IS, "", 0, *where, digest, 9.0), **changes)


@dataclass
class Noted(LeaseGuard):
    """A guard that ends nobody, and notes when it is to."""

    asked: list[float | None] = field(default_factory=list)

    def kill_at(self, when_s: float | None, lease: object) -> None:
        self.asked.append(when_s)


class Waited(Exception):
    """The taker of a lease waits."""


def no_waiting(_s: float) -> None:
    raise Waited


def measured(words: str) -> Callable[[object, Output], Measured[Any]]:
    def drive(_job: object, output: Output) -> Measured[Any]:
        assert output.results is not None
        path = output.results / "2026-11-21" / "netgate-linux" / "measured.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(encode(make_result(id=words)))
        return Measured(make_result(), None, path)

    return drive


def unneeded(*_: object) -> Measured[Any]:
    raise AssertionError("it is measured once more")


def broken(*_: object, **__: object) -> None:
    raise OSError("no such host")
