"""Current testers, leases and nights of a fleet."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config.fleet import Cluster, Fleet
from ..core.history.night import CellState
from ..results.nights import TESTERS, find_nights
from ..results.shared import shared_files
from ..session.process import utc_now
from .cluster import as_one_line, testers_there
from .join import joined, lost_testers, require_listening
from .leases import DamagedRecord, LeaseFolder

NEWEST = 8
"""Number of nights that are searched for those that have not ended."""


@dataclass(frozen=True)
class NowAtTester:
    """A tester. state: idle, measuring, lost (see since) or absent: not seen since the scheduler was started."""

    tester: str
    state: str
    cell: str | None = None
    until: str | None = None
    """End of its lease unless renewed, UTC."""
    since: str | None = None


@dataclass(frozen=True)
class LeaseNow:
    """A DUT that is leased, and to whom."""

    dut: str
    tester: str
    until: str
    is_over: bool
    """True if by this machine's clock its holder has not renewed it, and measures its cell no more."""
    cell: str


@dataclass(frozen=True)
class NightNow:
    """A night that has not ended."""

    night: str
    suite: str
    waiting: int
    """Number of cells that are not measured yet, including those being measured."""
    done: int
    failed: Mapping[str, str]
    """Cell -> why it failed."""


@dataclass(frozen=True)
class FleetNow:
    """Status of a whole fleet."""

    testers: Sequence[NowAtTester]
    leases: Sequence[LeaseNow]
    nights: Sequence[NightNow]


def read_status(fleet: Fleet, cluster: Cluster | None, results: Path, warn: Callable[[str], None]) -> FleetNow:
    """Ask the scheduler, if there is one, and read the results; BenchError if the scheduler does not answer."""
    there, lost = dict[str, tuple[str, Sequence[Any]]](), dict[str, float]()
    if cluster is not None:
        require_listening(cluster)
        with joined(cluster, fleet.lease_s) as client, as_one_line("look again"):
            there, lost = client.run_on_scheduler(testers_there), client.run_on_scheduler(lost_testers)
    leases = _leases(results, cluster is None, [str(key) for _, keys in there.values() for key in keys], warn)
    held = {lease.tester: lease for lease in leases if not lease.is_over}
    if cluster is None:
        there = {name: ("", [lease.cell]) for name, lease in held.items()}
    names = dict.fromkeys((*(tester.name for tester in fleet.testers), *there, *lost))
    testers = [_tester(name, there, lost, held.get(name)) for name in names]
    nights = []
    for path, night in find_nights(results, warn, NEWEST):
        if night.finished is None:
            done = sum(cell.state is CellState.DONE for cell in night.cells)
            failed = {str(cell): str(cell.attempts[-1].error) for cell in night.failed if cell.attempts}
            nights.append(NightNow(path.stem, night.suite, len(night.left), done, failed))
    return FleetNow(testers, leases, nights)


def _tester(
    name: str, there: Mapping[str, tuple[str, Sequence[Any]]], lost: Mapping[str, float], lease: LeaseNow | None
) -> NowAtTester:
    if name not in there:
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(lost[name])) if name in lost else None
        return NowAtTester(name, "lost" if since else "absent", since=since)
    if not there[name][1]:
        return NowAtTester(name, "idle")
    return NowAtTester(name, "measuring", lease.cell if lease else None, lease.until if lease else None)


def _leases(results: Path, is_here: bool, measured: Sequence[str], warn: Callable[[str], None]) -> Sequence[LeaseNow]:
    """List the leases that are held.

    is_here: of testers of this machine, whose leases are in no store. measured: keys of cells at testers, whose clocks
    may be behind.
    """
    leases, now = [], utc_now()
    folder = results / TESTERS / "leases"
    for dut in sorted(shared_files(folder, is_here=is_here).names()):
        try:
            record = LeaseFolder(folder, dut, is_here).latest()
        except (OSError, DamagedRecord) as error:
            warn(f"the lease of {dut} is not shown: {getattr(error, 'strerror', error)}")
            continue
        if record is not None and record.length_s > 0:
            tester = record.holder.rpartition("-")[0]
            is_measured = any(f"/{record.cell.replace(' ', '/', 1)}/" in key for key in measured)
            is_over = record.until < now and not is_measured
            leases.append(LeaseNow(dut, tester, record.until, is_over, record.cell))
    return leases
