"""A load that trexbench does not have, DNS over UDP, which ``add`` adds to its tables: nothing else knows of it.

trexbench then has the verb ``dns``, which asks a simulated resolver at rising rates, and suites of ``method: dns``.
Each rate is held for a while, and queries and answers are counted.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import date as Date
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import click
import msgspec

from trexbench.cli import loads as cli_loads
from trexbench.cli.main import VERBS
from trexbench.cli.output import OutputForm, note
from trexbench.config import option
from trexbench.config import readers as r
from trexbench.config import suite as config_suite
from trexbench.config.lookup import load_dut
from trexbench.core.history.cell import Cell
from trexbench.core.history.rows import METRICS, Figure, Metric, RunRow, header_of
from trexbench.core.run import Run, noted_warnings
from trexbench.core.typed import Amount, Count, Seconds, read_stored
from trexbench.core.verdict.parts import RunWarning
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import PARTS, Part
from trexbench.report.plots import PlotAxis, PlotFigure, PlotLine
from trexbench.report.sheet import Sheet, SheetRow, figure, heads_of, of_text
from trexbench.results import loads as stored_loads
from trexbench.session.keep import Begun, Measured, Output, Underway, carry_out, envelope_of
from trexbench.session.options import RunRequest, Setup
from trexbench.suite import jobs

SCHEMA, VERSION = "trexbench/dns", 1
ANSWERED = Metric("answered_qps", "answered", "queries/s", "higher", 0, 0.01, bounded=True)


@dataclass(frozen=True)
class Held:
    """One rate, as it was held."""

    asked_qps: Amount
    length_s: Seconds
    queries: Count
    answers: Count


@dataclass(frozen=True)
class DnsPlan:
    """The rates to hold, and which share of the queries may stay without an answer."""

    rates_qps: tuple[Amount, ...]
    hold_s: Seconds
    loss: Amount = 0.001


@dataclass(frozen=True, kw_only=True)
class DnsRun(Run):
    """One run of DNS."""

    plan: DnsPlan
    held: tuple[Held, ...] = ()

    schema: ClassVar[str] = SCHEMA
    version: ClassVar[int] = VERSION

    @property
    def file_words(self) -> tuple[str, ...]:
        return ("dns",)

    @cached_property
    def best(self) -> Held | None:
        """The highest rate at which enough was answered."""
        good = [one for one in self.held if one.queries - one.answers <= self.plan.loss * one.queries]
        return max(good, key=lambda one: one.answers / one.length_s, default=None)

    @property
    def answered_qps(self) -> float:
        return self.best.answers / self.best.length_s if self.best else 0.0

    @property
    def at_least(self) -> bool:
        return self.best is not None and self.best is max(self.held, key=lambda one: one.asked_qps)

    def setting(self) -> dict[str, Any]:
        return {"plan": msgspec.to_builtins(self.plan)}

    def readings(self) -> dict[str, Sequence[Any]]:
        return {"held": msgspec.to_builtins(self.held)}

    def figures(self) -> dict[str, Any]:
        return {"answered_qps": self.answered_qps, "at_least": self.at_least}

    def derived_warnings(self) -> Iterator[tuple[str, RunWarning]]:
        if any(one.answers > one.queries for one in self.held):
            yield "analysis", RunWarning("twice", "more answers than queries")

    def odd_values(self) -> Iterator[str]:
        if any(not one.length_s for one in self.held):
            yield "a rate that was held for no time"


def read(document: Any) -> DnsRun:
    run = read_stored(document, "DNS document", SCHEMA, VERSION, DnsRun)
    return replace(run, warnings=noted_warnings(document["warnings"]))


@dataclass(frozen=True)
class DnsKeys:
    """Keys of DNS in a suite, under ``dns:``."""

    hold_s: Annotated[float, r.seconds, "hold"] = 1.0
    rates_qps: Annotated[tuple[float, ...], r.list_of("rate", r.number(1, 1e6), str), "rates"] = (15_000, 25_000)


@dataclass(frozen=True)
class DnsSuite(config_suite.Suite):
    """A suite of DNS."""

    dns: Annotated[DnsKeys, r.section(DnsKeys, "DNS")] = field(default_factory=DnsKeys)


@dataclass(frozen=True, kw_only=True)
class DnsRequest(RunRequest):
    """One run, as asked. capacity_qps: of the simulated resolver."""

    verb: str = "dns"
    plan: DnsPlan
    capacity_qps: float = 20_000.0
    started: str | None = None


class Resolver:
    """A model that answers so many queries per second."""

    def __init__(self, request: DnsRequest) -> None:
        self._random, self._capacity_qps = random.Random(request.seed), request.capacity_qps

    def hold(self, qps: float, length_s: float) -> Held:
        queries = round(qps * length_s)
        capacity = round(self._capacity_qps * self._random.gauss(1, 0.002) * length_s)
        return Held(qps, length_s, queries, min(queries, capacity))


def measure(resolver: Resolver, request: DnsRequest, output: Output, begun: Begun = lambda _: None) -> Measured[DnsRun]:
    def drive(underway: Underway[DnsRun]) -> None:
        for qps in request.plan.rates_qps:
            underway.add(held=[resolver.hold(qps, request.plan.hold_s)])

    header = envelope_of(request, "dns", {}, ()) | {"id": str(uuid.uuid4())}
    run = DnsRun(**header, command={"verb": "dns", **request.labels}, plan=request.plan)
    return carry_out(replace(run, started=request.started or run.started), drive, output, begun)


def request_of(suite: Any, cell: Cell, setup: Setup) -> tuple[Cell, DnsRequest]:
    plan = DnsPlan(suite.dns.rates_qps, suite.dns.hold_s)
    return cell, option.of_options(DnsRequest, setup, dut=load_dut(cell.dut, setup.configs_dir), plan=plan)


def length_s(request: DnsRequest) -> float:
    return request.plan.hold_s * len(request.plan.rates_qps)


def rows(run: DnsRun) -> tuple[RunRow, ...]:
    figures = {ANSWERED.column: Figure(run.answered_qps, at_least=run.at_least)}
    cell = Cell(str(run.dut["name"]), "a.test", False, None, "dns", run.simulated)
    limit = "none" if run.at_least else "dut"
    return (RunRow(**header_of(run, ""), cell=cell, aim=ANSWERED.column, figures=figures, limit=limit),)


@click.command(epilog="\b\nExamples:\n  trexbench dns --dut resolver\n")
@click.option("--dut", required=True)
@click.option("--seed", type=int, default=1)
@click.option("--capacity", type=float, default=20_000.0)
@click.option("--date", default="2026-03-01", help="The first night.")
@click.option("--nights", type=int, default=1)
@click.option("--results", type=click.Path(path_type=Path), default=Path("results"))
def dns(dut: str, seed: int, capacity: float, date: str, nights: int, results: Path) -> None:
    """Ask a resolver at rising rates, once for each night."""
    plan = DnsPlan(tuple(1000.0 * step for step in range(1, 41)), 1.0)
    for number in range(nights):
        began = f"{Date.fromisoformat(date) + timedelta(number)}T01:00:00Z"
        asked = DnsRequest(dut=load_dut(dut), plan=plan, sim=True, seed=seed + number, started=began)
        request = replace(asked, capacity_qps=capacity)
        done = measure(Resolver(request), request, Output(results, warn=note))
        cli_loads.print_run(done.result, OutputForm("text"), done.path)
        note(f"result   {done.path}")


def words(run: DnsRun) -> str:
    return f"{'>= ' if run.at_least else ''}{run.answered_qps:.0f} queries/s answered"


def draw(run: DnsRun, form: str) -> bytes:
    from trexbench.report.run.picture import render  # matplotlib: only where it draws
    from trexbench.report.run.picture_plot import compose_plot

    return render(compose_plot(plot_of({rows(run)[0].cell: run})), form, "DNS")


def page_part(report: Report) -> Part:
    """Its section of the page: answers over queries, and the rate of each cell."""
    runs = {cell: run for cell, run in report.others.items() if isinstance(run, DnsRun)}
    rates = {cell: figure(run.answered_qps, "{:.0f}".format, bound=run.at_least) for cell, run in runs.items()}
    lines = tuple(SheetRow((of_text(cell), rate), cell) for cell, rate in rates.items())
    sheet = Sheet("dns", "DNS over UDP", heads_of(":Run; Answered [queries/s]"), lines)
    return Part("dns", "DNS", (sheet,), figures=(plot_of(runs),))


def plot_of(runs: Mapping[Cell, DnsRun]) -> PlotFigure:
    drawn = []
    for cell, run in runs.items():
        answered = [held.answers / held.length_s for held in run.held]
        texts = [f"{qps:.0f} queries/s answered" for qps in answered]
        drawn.append(PlotLine(str(cell), [held.asked_qps for held in run.held], answered, texts, (cell,)))
    return PlotFigure(PlotAxis("asked, queries/s"), PlotAxis("answered, queries/s"), drawn)


def add() -> None:
    """Add the load and its figure: a line in each of trexbench's tables."""
    stored_loads.LOADS[SCHEMA] = stored_loads.Load("a run of DNS", read, rows)
    METRICS[ANSWERED.column] = ANSWERED
    cli_loads.OUTPUTS[SCHEMA] = cli_loads.LoadOutput(
        lambda run, out: words(run), lambda run, path, out: words(run), draw
    )
    domain = partial(re.fullmatch, r"(?:[a-z0-9-]+\.)+[a-z]+")
    config_suite.METHODS["dns"] = config_suite.SuiteMethod(
        lambda name: name if domain(name) else None, "a.test", True, DnsSuite
    )
    jobs.LOADS["dns"] = jobs.SuiteLoad(
        request_of, length_s, lambda request, say: nullcontext(Resolver(request)), measure, words
    )
    PARTS[SCHEMA] = lambda report: [page_part(report)]
    VERBS["Measure"]["dns"] = (__name__, "Ask a resolver at rising rates.")
