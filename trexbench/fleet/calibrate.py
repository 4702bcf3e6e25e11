"""Comparison of testers: all that reach a DUT measure it in turn, and by how much their figures differ is stored."""

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

from ..core.errors import ConfigError, FleetError, NoAnswer
from ..core.history.rows import METRICS, RunRow
from ..core.history.testers import FigureRatio, find_ratios
from ..core.units import format_share
from ..lock import is_held, locked
from ..results.nights import TESTERS, keep_ratios
from ..results.store import load_rows, make_directory, safe_name
from ..session.process import signals_as_exceptions
from ..suite.jobs import Job
from ..suite.night import NightOptions
from .cluster import as_one_line, testers_there
from .compared import ComparedTesters
from .leases import DutLeased
from .schedule import LEASED_S, LOOK_EVERY_S, MISSING_LEASES, START_S, FleetNight, outcome_of
from .task import CellOrder

if TYPE_CHECKING:
    from distributed import Client, Future

AGAIN = "the same command goes on, with fewer --rounds from those that are measured"
KEPT = "calibrations"
"""Folder of the runs' documents below ``results/.fleet``: they are in no history."""
RESUMED_S = 24 * 3600.0
"""Time in which an interrupted calibration can go on; a round with an older measurement begins anew."""


@dataclass
class FleetComparison:
    """Several rounds of cells, each by every tester that reaches its DUT. night: of the same testers and suite."""

    night: FleetNight
    jobs: Sequence[Job]
    options: NightOptions
    rounds: int

    def run(self) -> list[FigureRatio]:
        """Measure, and store the ratios; ConfigError if no two testers reach a DUT, BenchError if one fails."""
        reach = self.night.fleet.reach(job.cell.dut for job in self.jobs)
        able = {job.cell.dut: [name for name, duts in reach.items() if job.cell.dut in duts] for job in self.jobs}
        self._check(able)
        common, self._numbers, _ = self.night.common_order(self.options, self.options.night, "")
        # by this name the same command finds what it has measured on this day or the last
        asked = {**asdict(common), "date": "", "wiring": self.night.fleet.digest}
        name = f"testers-{sha256(repr(sorted(asked.items())).encode()).hexdigest()[:12]}"
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
        folders = [self._results / TESTERS / order.night for order in orders]  # testers look for them, as for a night's
        try:
            for folder in folders:
                make_directory(folder)
            with signals_as_exceptions(), self.night.opened(reach, common.lease_s, folders[0]) as client:
                there = self._await_testers(client, orders[0], {name for names in able.values() for name in names})
                able = {dut: [name for name in names if name in there] for dut, names in able.items()}
                self._check(able)
                rounds = [self._measure_round(client, order, able) for order in orders]
        finally:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
        ratios = [
            ratio for dut, names in able.items() for ratio in find_ratios(rounds, names[0], date) if ratio.dut == dut
        ]
        self._judge(ratios, rounds[0])
        keep_ratios(self._results, ratios)
        for folder in self._runs:
            shutil.rmtree(folder, ignore_errors=True)
        return ratios

    def _judge(self, ratios: Sequence[FigureRatio], rows_of: Mapping[str, Sequence[RunRow]]) -> None:
        """Warn of ratios that join no history or hide changes; NoAnswer if all are useless. rows_of: a round."""
        useful = {(one.dut, one.load, one.metric, name) for one in ratios for name in (one.tester, one.reference)}
        rows = [(row, name) for name, of_tester in rows_of.items() for row in of_tester]
        without = [(row, by) for row, by in rows if (row.cell.dut, str(row.cell.load), row.aim, by) not in useful]
        bound = "could not be compared: bounds, as where the generator is the limit"
        if len(without) == len(rows):
            for folder in filter(Path.exists, self._runs):  # to be seen; the same command measures again
                folder.rename(f"{folder}-{secrets.token_hex(4)}")
            raise NoAnswer(f"the cells' figures {bound}", f"see {self._results / TESTERS / KEPT}")
        for row, name in without:
            self.options.output.warn(f"{row.cell} by {name}: {row.metric.name} {bound}; its history is not joined")
        for ratio in ratios:
            if ratio.share > (metric := METRICS[ratio.metric]).minimum:
                what = f"{ratio.dut} {ratio.load} by {ratio.tester}"
                words = f"{what}: {metric.name} is known to {format_share(ratio.share)}"
                self.options.output.warn(f"{words}, which hides smaller changes: more --rounds narrow it")

    def _check(self, able: dict[str, list[str]]) -> None:
        """Leave out, with a warning, DUTs that fewer than two testers reach; ConfigError if none is left."""
        for dut in [dut for dut, testers in able.items() if len(testers) < 2]:
            self.options.output.warn(f"{dut} is left out: {', '.join(able.pop(dut)) or 'nobody'} alone reaches it")
        if not able:
            raise ConfigError("no two testers that are there reach one DUT", "see `trexbench fleet plan`")

    def _await_testers(self, client: Client, order: CellOrder, wanted: set[str]) -> set[str]:
        """Return the testers that are there, once all are or START_S has passed."""
        ends_s, testers = time.monotonic() + START_S, ComparedTesters(self.options.output.warn)
        while True:
            with as_one_line(AGAIN):
                there = {*testers.there(client, order, strict=True)}
            if not wanted - there or time.monotonic() > ends_s:
                break
            time.sleep(LOOK_EVERY_S)
        for name in sorted(wanted - there):
            self.options.output.warn(f"tester {name} is not there: it is left out")
        return there

    def _measure_round(self, client: Client, common: CellOrder, able: dict[str, list[str]]) -> dict[str, list[RunRow]]:
        """Return rows by tester. Every other round is in reverse order: over an even number a drift favours none."""
        rows: dict[str, list[RunRow]] = {}
        odd = int(common.night.rpartition("-")[2]) % 2 == 1
        for job in self.jobs if odd else self.jobs[::-1]:
            testers = able.get(job.cell.dut, ())
            for tester in testers if odd else testers[::-1]:
                words, number = str(job.cell), self._numbers[str(job.cell)]
                name = f"{tester}-{number}-{safe_name(words, '._-')}.json"
                place = f"{TESTERS}/{KEPT}/{common.night}/{name}"
                order = replace(common, cell=words, number=number, place=place)
                rows.setdefault(tester, []).extend(self._measure_cell(client, order, tester, job.cell.dut))
        return rows

    def _measure_cell(self, client: Client, order: CellOrder, tester: str, dut: str) -> Sequence[RunRow]:
        known = ": measured before" if (self._results / order.place).exists() else ""
        self.options.say(f"{order.night.rpartition('-')[2]} of {self.rounds} by {tester}: {order.cell}{known}")
        ends_s = time.monotonic() + LEASED_S
        for number in itertools.count():
            future = self.night.submit(client, order, f"{order.place}/{number}", tester, dut)
            self._await(client, future, tester)
            try:
                outcome = outcome_of(future, AGAIN)
                break
            except DutLeased as error:
                if time.monotonic() > ends_s:
                    raise
                self.options.say(f"{order.cell} waits: {error}")
        if outcome is None:
            raise FleetError(f"tester {tester} was lost while it measured {order.cell}", AGAIN)
        if outcome.place is None or outcome.error is not None:
            raise FleetError(f"{order.cell} by {tester}: {outcome.error}", AGAIN)
        rows = load_rows(self._results / outcome.place, outcome.place)
        return [row for row in rows if row.complete]

    def _await(self, client: Client, future: Future, tester: str) -> None:
        """Wait until the task ends; FleetError if its tester is absent for long."""
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
                raise FleetError(f"tester {tester} is not there any more", AGAIN)


def _remove_old(kept: Path) -> None:
    """Remove rounds whose oldest document is too old for a calibration to go on."""
    with contextlib.suppress(FileNotFoundError):  # there are none, or another process removes them
        for folder in kept.iterdir():
            begun_s = min(path.stat().st_mtime for path in (folder, *folder.glob("*")))
            if time.time() - begun_s > RESUMED_S and not is_held(folder.name.rpartition("-")[0]):
                shutil.rmtree(folder, ignore_errors=True)
