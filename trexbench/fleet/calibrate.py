"""Testers compared: all that reach a DUT measure it in turns, and by how much their figures differ is kept."""

from __future__ import annotations

import contextlib
import queue
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import BenchError, ConfigError
from ..core.history.rows import RunRow
from ..core.history.testers import FigureRatio, find_ratios
from ..results.nights import TESTERS
from ..results.store import load_rows, make_directory, safe_name
from ..results.testers import keep_ratios
from ..session.process import signals_as_exceptions
from ..suite.jobs import Job
from ..suite.night import NightOptions
from .cluster import as_one_line, needs_of, testers_there
from .night import LOOK_EVERY_S, MISSING_LEASES, START_S, FleetNight, outcome_of
from .task import CellOrder

if TYPE_CHECKING:
    from distributed import Client, Future

AGAIN = "the same command measures all again"
KEPT = "calibrations"
"""Folder of the runs' documents below ``results/.fleet``: no history has them."""


@dataclass
class FleetComparison:
    """Several rounds of cells, each by every tester that reaches its DUT. night: of the same testers and suite."""

    night: FleetNight
    jobs: Sequence[Job]
    options: NightOptions
    rounds: int

    def run(self) -> list[FigureRatio]:
        """Measure, and keep the ratios; ConfigError where no two testers reach a DUT, BenchError where one fails."""
        reach = self.night.fleet.reach(job.cell.dut for job in self.jobs)
        able = {job.cell.dut: [name for name, duts in reach.items() if job.cell.dut in duts] for job in self.jobs}
        self._check(able)
        date = self.options.night
        common, self._numbers = self.night.common_order(self.options, date, f"{date}-testers-{secrets.token_hex(4)}")
        self._results = Path(common.results)
        orders = [replace(common, night=f"{common.night}-{number}") for number in range(1, self.rounds + 1)]
        folders = [self._results / TESTERS / order.night for order in orders]  # as of nights: testers look for them
        try:
            for folder in folders:
                make_directory(folder)
            with signals_as_exceptions(), self.night.opened(reach, common.lease_s, folders[0]) as client:
                there = self._await_testers(client, orders[0], {name for names in able.values() for name in names})
                able = {dut: [name for name in names if name in there] for dut, names in able.items()}
                self._check(able)
                found = [self._round(client, order, able) for order in orders]
        finally:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
        ratios = [one for dut, names in able.items() for one in find_ratios(_of_dut(found, dut), names[0], date)]
        if not ratios:
            what = "no figure could be compared: they are bounds, as where the generator is the limit"
            raise BenchError(what, f"see {self._results / TESTERS / KEPT}")
        keep_ratios(self._results, ratios)
        return ratios

    def _check(self, able: dict[str, list[str]]) -> None:
        """Leave out, with a warning, DUTs that less than two testers reach; ConfigError if none is left."""
        for dut in [dut for dut, testers in able.items() if len(testers) < 2]:
            self.options.output.warn(f"{dut} is left out: {', '.join(able.pop(dut)) or 'nobody'} alone reaches it")
        if not able:
            raise ConfigError("no two testers that are there reach one DUT", "see `trexbench fleet plan`")

    def _await_testers(self, client: Client, order: CellOrder, wanted: set[str]) -> set[str]:
        """Testers that are there, once all are or a while has passed."""
        ends_s = time.monotonic() + START_S
        while True:
            with as_one_line():
                there = {*self.night.testers(client, order, self.options)}
            if not wanted - there or time.monotonic() > ends_s:
                break
            time.sleep(LOOK_EVERY_S)
        for name in sorted(wanted - there):
            self.options.output.warn(f"tester {name} is not there: it is left out")
        return there

    def _round(self, client: Client, common: CellOrder, able: dict[str, list[str]]) -> dict[str, list[RunRow]]:
        """Rows of each tester. Every second round goes the other way, so that a drift of the DUT favours none."""
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
        self.options.say(f"{order.night.rpartition('-')[2]} of {self.rounds} by {tester}: {order.cell}")
        future = client.submit(
            self.night.work,
            asdict(order),
            key=order.place,
            workers=[tester],
            resources=needs_of(dut),
            retries=1,
            pure=False,
        )
        self._await(client, future, tester)
        outcome = outcome_of(future)
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


def _of_dut(rounds: Sequence[Mapping[str, Sequence[RunRow]]], dut: str) -> list[dict[str, list[RunRow]]]:
    return [{name: [row for row in rows if row.cell.dut == dut] for name, rows in one.items()} for one in rounds]
