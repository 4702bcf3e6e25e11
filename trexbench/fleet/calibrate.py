"""Testers compared: all that reach a DUT measure it in turns, and by how much their figures differ is kept."""

from __future__ import annotations

import contextlib
import itertools
import queue
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import BenchError, ConfigError
from ..core.history.rows import METRICS, RunRow
from ..core.history.testers import FigureRatio, find_ratios
from ..core.units import format_share
from ..lock import is_held, locked
from ..results.nights import TESTERS, keep_ratios
from ..results.store import load_rows, make_directory, safe_name
from ..session.process import signals_as_exceptions
from ..suite.jobs import Job
from ..suite.night import NightOptions
from .cluster import as_one_line, needs_of, testers_there
from .leases import DutLeased
from .night import LEASED_S, LOOK_EVERY_S, MISSING_LEASES, START_S, FleetNight, outcome_of
from .task import CellOrder

if TYPE_CHECKING:
    from distributed import Client, Future

AGAIN = "the same command goes on"
KEPT = "calibrations"
"""Folder of the runs' documents below ``results/.fleet``: no history has them."""
RESUMED_S = 24 * 3600.0
"""A calibration that was interrupted goes on for so long; a round with an older measurement begins anew."""


@dataclass
class FleetComparison:
    """Several rounds of cells, each by every tester that reaches its DUT. night: of the same testers and suite."""

    night: FleetNight
    jobs: Sequence[Job]
    options: NightOptions
    rounds: int
    least: int = 2
    """Where a later round fails, so many are enough."""

    def run(self) -> list[FigureRatio]:
        """Measure, and keep the ratios; ConfigError where no two testers reach a DUT, BenchError where one fails."""
        reach = self.night.fleet.reach(job.cell.dut for job in self.jobs)
        able = {job.cell.dut: [name for name, duts in reach.items() if job.cell.dut in duts] for job in self.jobs}
        self._check(able)
        common, self._numbers = self.night.common_order(self.options, self.options.night, "")
        name = self._name(common)
        _remove_old(Path(common.results) / TESTERS / KEPT)
        with locked(name, f"this comparison of testers is under way in {common.results}"):
            return self._run(common, name, reach, able)

    def _run(
        self, common: CellOrder, name: str, reach: Mapping[str, Sequence[str]], able: dict[str, list[str]]
    ) -> list[FigureRatio]:
        self._results, date = Path(common.results), common.date
        orders = [replace(common, night=f"{name}-{number}") for number in range(1, self.rounds + 1)]
        self._runs = [self._results / TESTERS / KEPT / order.night for order in orders]
        if any(map(Path.exists, self._runs)):
            self.options.say(f"goes on; to measure all anew, remove {self._runs[0].with_name(name)}-* before")
        folders = [self._results / TESTERS / order.night for order in orders]  # as of nights: testers look for them
        try:
            for folder in folders:
                make_directory(folder)
            with signals_as_exceptions(), self.night.opened(reach, common.lease_s, folders[0]) as client:
                there = self._await_testers(client, orders[0], {name for names in able.values() for name in names})
                able = {dut: [name for name in names if name in there] for dut, names in able.items()}
                self._check(able)
                found = self._measure(client, orders, able)
        finally:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
        ratios = [one for dut, names in able.items() for one in find_ratios(_of_dut(found, dut), names[0], date)]
        self._judge(ratios, found[0])
        keep_ratios(self._results, ratios)
        for folder in self._runs:
            shutil.rmtree(folder, ignore_errors=True)
        return ratios

    def _name(self, common: CellOrder) -> str:
        """Name of the calibration, by which the same command finds what it has measured on this day or the last."""
        asked = {**asdict(common), "date": "", "wiring": self.night.fleet.digest}
        return f"testers-{sha256(repr(sorted(asked.items())).encode()).hexdigest()[:12]}"

    def _measure(
        self, client: Client, orders: Sequence[CellOrder], able: dict[str, list[str]]
    ) -> list[dict[str, list[RunRow]]]:
        """The rounds up to one that fails; its error if too few are left."""
        found = list[dict[str, list[RunRow]]]()
        for order in orders:
            try:
                found.append(self._round(client, order, able))
            except BenchError as error:
                if len(found) < self.least:
                    raise
                self.options.output.warn(f"{error}; compared are the {len(found)} rounds before")
                break
        return found

    def _judge(self, ratios: Sequence[FigureRatio], rows_of: Mapping[str, Sequence[RunRow]]) -> None:
        """Warn of ratios that join no history or hide changes; BenchError where all are of no use. rows_of: a round."""
        useful = {(one.dut, one.load, one.metric, name) for one in ratios for name in (one.tester, one.reference)}
        rows = [(row, name, row.cell.dut, str(row.cell.load)) for name, some in rows_of.items() for row in some]
        without = [(row, name) for row, name, dut, load in rows if (dut, load, row.aim, name) not in useful]
        bound = "could not be compared: bounds, as where the generator is the limit"
        if len(without) == len(rows):
            for folder in filter(Path.exists, self._runs):  # to be seen; the same command measures again
                folder.rename(f"{folder}-{secrets.token_hex(4)}")
            raise BenchError(f"the cells' figures {bound}", f"see {self._results / TESTERS / KEPT}")
        for row, name in without:
            self.options.output.warn(f"{row.cell} by {name}: {row.metric.name} {bound}; its history is not joined")
        for one in ratios:
            if one.share > (metric := METRICS[one.metric]).minimum:
                words = f"{one.dut} {one.load} by {one.tester}: {metric.name} is known to {format_share(one.share)}"
                self.options.output.warn(f"{words}, which hides smaller changes: more --rounds narrow it")

    def _check(self, able: dict[str, list[str]]) -> None:
        """Leave out, with a warning, DUTs that less than two testers reach; ConfigError if none is left."""
        for dut in [dut for dut, testers in able.items() if len(testers) < 2]:
            self.options.output.warn(f"{dut} is left out: {', '.join(able.pop(dut)) or 'nobody'} alone reaches it")
        if not able:
            raise ConfigError("no two testers that are there reach one DUT", "see `trexbench fleet plan`")

    def _await_testers(self, client: Client, order: CellOrder, wanted: set[str]) -> set[str]:
        """Testers that are there, once all are or a while has passed."""
        ends_s, testers = time.monotonic() + START_S, self.night.compared(self.options)
        while True:
            with as_one_line(AGAIN):
                there = {*testers.there(client, order, strict=True)}
            if not wanted - there or time.monotonic() > ends_s:
                break
            time.sleep(LOOK_EVERY_S)
        for name in sorted(wanted - there):
            self.options.output.warn(f"tester {name} is not there: it is left out")
        return there

    def _round(self, client: Client, common: CellOrder, able: dict[str, list[str]]) -> dict[str, list[RunRow]]:
        """Rows of each tester. Every second round goes the other way: of an even number a drift favours none."""
        found: dict[str, list[RunRow]] = {}
        odd = int(common.night.rpartition("-")[2]) % 2 == 1
        for job in self.jobs if odd else self.jobs[::-1]:
            testers = able.get(job.cell.dut, ())
            for tester in testers if odd else testers[::-1]:
                words, number = str(job.cell), self._numbers[str(job.cell)]
                name = f"{tester}-{number}-{safe_name(words, '._-')}.json"
                place = f"{TESTERS}/{KEPT}/{common.night}/{name}"
                order = replace(common, cell=words, number=number, place=place)
                found.setdefault(tester, []).extend(self._measured(client, order, tester, job.cell.dut))
        return found

    def _measured(self, client: Client, order: CellOrder, tester: str, dut: str) -> Sequence[RunRow]:
        """The rows of one measurement; BenchError where there is none."""
        known = ": measured before" if (self._results / order.place).exists() else ""
        self.options.say(f"{order.night.rpartition('-')[2]} of {self.rounds} by {tester}: {order.cell}{known}")
        ends_s = time.monotonic() + LEASED_S
        for number in itertools.count():
            future = client.submit(
                self.night.work,
                asdict(order),
                key=f"{order.place}/{number}",
                workers=[tester],
                resources=needs_of(dut),
                retries=1,
                pure=False,
            )
            self._await(client, future, tester)
            try:
                outcome = outcome_of(future, AGAIN)
                break
            except DutLeased as error:
                if time.monotonic() > ends_s:
                    raise
                self.options.say(f"{order.cell} waits: {error}")
        if outcome is None:
            raise BenchError(f"tester {tester} was lost while it measured {order.cell}", AGAIN)
        if outcome.place is None or outcome.error is not None:
            raise BenchError(f"{order.cell} by {tester}: {outcome.error}", AGAIN)
        rows = load_rows(self._results / outcome.place, outcome.place)
        return [row for row in rows if row.complete]

    def _await(self, client: Client, future: Future, tester: str) -> None:
        """Wait for its end; BenchError if its tester is away for long."""
        ended, seen_s = queue.SimpleQueue[object](), time.monotonic()
        future.add_done_callback(ended.put)
        while True:
            with contextlib.suppress(queue.Empty):
                ended.get(timeout=LOOK_EVERY_S)
                return
            with as_one_line(AGAIN):
                there = client.run_on_scheduler(testers_there)
            if tester in there:
                seen_s = time.monotonic()
            elif time.monotonic() - seen_s > max(START_S, MISSING_LEASES * self.night.fleet.lease_s):
                raise BenchError(f"tester {tester} is not there any more", AGAIN)


def _remove_old(kept: Path) -> None:
    """Remove rounds that nobody goes on with, by their oldest document."""
    with contextlib.suppress(FileNotFoundError):  # there are none, or another removes them
        for folder in kept.iterdir():
            begun_s = min(path.stat().st_mtime for path in (folder, *folder.glob("*")))
            if time.time() - begun_s > RESUMED_S and not is_held(folder.name.rpartition("-")[0]):
                shutil.rmtree(folder, ignore_errors=True)


def _of_dut(rounds: Sequence[Mapping[str, Sequence[RunRow]]], dut: str) -> list[dict[str, list[RunRow]]]:
    return [{name: [row for row in rows if row.cell.dut == dut] for name, rows in one.items()} for one in rounds]
