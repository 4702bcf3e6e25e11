"""trexbench from Python. Nothing here prints, exits or needs the main thread; docs/python.md has examples.

A rate is a number of frames per second and direction or text as on the command line (``"97%"``, ``"1.2mpps"``), a time
a number of seconds or text (``"2m"``), a share a fraction or text (``"0.1%"``). Failures are raised as BenchError; if
one ends a run early, its ``result`` is what was measured until then. Warnings are Python's (``warnings``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from functools import wraps
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, get_type_hints

from .config.option import Form, of_options, read_options
from .core.errors import BenchError, StoreError
from .core.history.compare import SetComparison
from .core.history.known import parse_date
from .core.history.night import Night
from .core.history.regression import Judgement
from .core.history.rows import RunRow, row_of
from .core.load.sample import Sample
from .core.result import RunResult
from .core.strategy.base import LoadStep
from .session.keep import Output, Show
from .session.loop import Interrupted
from .session.options import METHODS, Case, EfficiencyWish, NightWords, RampWish, SaturateWish, SearchWish, Setup
from .session.request import make_request
from .session.series import measure, measure_series, rate_requests

if TYPE_CHECKING:
    from .review.comparison import RunComparison

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
Place = str | PathLike[str]


@dataclass(frozen=True)
class DirectionRates:
    """Frames per second of one direction (``0->1``: port 0 to port 1) in about the last second; loss: a share."""

    direction: str
    asked_pps: float
    sent_pps: float
    received_pps: float
    loss: float | None


@dataclass(frozen=True)
class Progress:
    """Progress of a run. elapsed_s, left_s: of the whole run, by its own clock."""

    phase: str
    elapsed_s: float
    left_s: float
    rates: tuple[DirectionRates, ...]


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Options of every measurement in Python alone."""

    results: Place | None = None
    """Directory for documents; None: none is written."""


@dataclass(frozen=True, kw_only=True)
class Watched(Keeping):
    """Options of measurements of packets in Python alone."""

    progress: Callable[[Progress], object] | None = None
    """Called after every sample; an exception in it is a warning, and ends the calls, not the measurement."""


@dataclass(frozen=True)
class RampCall(Watched, Setup, RampWish, Case):
    """All options of ``ramp``."""


@dataclass(frozen=True)
class SearchCall(Watched, Setup, SearchWish, Case):
    """All options of ``search``."""


@dataclass(frozen=True)
class SaturateCall(Watched, Setup, SaturateWish, Case):
    """All options of ``saturate``."""


@dataclass(frozen=True)
class EfficiencyCall(Watched, Setup, EfficiencyWish, Case):
    """All options of ``efficiency``."""


@dataclass(frozen=True, kw_only=True)
class SuiteCall(NightWords, Setup):
    """All options of ``run_suite``. fleet: testers that measure at once, as in docs/fleet.md; None: this machine.

    insecure: reach its scheduler without TLS on another machine, too.
    """

    name: str = field(kw_only=False)
    results: Place = "results"
    only: Annotated[Sequence[str], Form(repeated=True)] = ()
    resume: bool = False
    fleet: str | None = None
    insecure: bool = False


def with_options(made: Callable[P, T]) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Make a function of one such dataclass take the dataclass's fields as its arguments, as users write them."""
    hints, form = get_type_hints(made), signature(made)
    parameters = [parameter.replace(annotation=hints[name]) for name, parameter in form.parameters.items()]
    shown = form.replace(parameters=parameters)

    def decorate(function: Callable[[T], R]) -> Callable[P, R]:
        @wraps(function)
        def called(*arguments: P.args, **named: P.kwargs) -> R:
            options = read_options(made, *arguments, **named)
            try:
                return function(options)
            except Interrupted as error:  # as at Ctrl-C in any other call
                raise KeyboardInterrupt(str(error)) from error

        returned = signature(function).return_annotation
        called.__signature__ = shown.replace(return_annotation=returned)  # type: ignore[attr-defined]  # for help()
        return called

    return decorate


@with_options(RampCall)
def ramp(options: RampCall) -> RunResult:
    """Ramp traffic linearly to the target; ``analysis`` of the result says where each direction saturated.

    The options are those of `trexbench ramp`. None leaves a figure to the DUT's config.
    """
    return _measure("ramp", options)


@with_options(SearchCall)
def search(options: SearchCall) -> RunResult:
    """Search for the highest rate within each loss; ``goals`` of each direction's analysis are in this order."""
    return _measure(METHODS[options.method], options)


@with_options(SaturateCall)
def saturate(options: SaturateCall) -> RunResult:
    """Send the full rate at once and measure what comes out."""
    return _measure("saturate", options)


@with_options(EfficiencyCall)
def efficiency(options: EfficiencyCall) -> list[RunResult]:
    """One run per rate, in one session; ``costs`` of each says what a packet costs the DUT.

    The other rates are measured after one that failed, whose error is raised then.
    """
    case, setup = of_options(Case, options), of_options(Setup, options)
    requests = rate_requests(case, options.offered, options.plan().hold_s, setup)
    done = measure_series(requests, output_of(options))
    raise_error(done.error, done.results)
    return done.results


@with_options(SuiteCall)
def run_suite(options: SuiteCall) -> Night:
    """Measure every cell of a suite, as `trexbench suite run` does; cells that failed say why in their attempts."""
    from .suite.night import NightOptions, run_suite

    results, setup, output = Path(options.results), of_options(Setup, options), Output(warn=warn)
    night = of_options(
        NightOptions, options, results=results, setup=setup, output=output, say=lambda _: None, instead=options
    )
    if options.fleet is not None:
        from .fleet.schedule import by_fleet

        night = replace(night, by_fleet=by_fleet(options.name, options.fleet, night, options.insecure))
    return run_suite(options.name, night, options.only, options.resume).night


def load_run(path: Place) -> RunResult:
    """The run of packets of a document; StoreError names what is wrong with it."""
    from .results.store import load_run

    return load_run(Path(path))


def load_results(results: Place = "results", **filters: Any) -> list[RunResult]:
    """Every run of packets below the directory, oldest first; filters as for load_rows.

    One that cannot be read is a warning.
    """
    from .results.store import load_document

    runs: list[RunResult] = []
    for run_row in _rows(results, **filters):
        if run_row.cell.tcp:  # each of a document's rows would have it read once
            continue
        try:
            run = load_document(Path(results) / run_row.path)
        except StoreError as error:
            warn(str(error))
        else:
            runs += [run] if isinstance(run, RunResult) else []
    return runs


def load_rows(results: Place = "results", **filters: Any) -> list[dict[str, Any]]:
    """A flat dictionary of plain values for every run, oldest first: ``pandas.DataFrame(load_rows())``.

    filters: dut, mode, suite, label, since (a date) and limit (only the newest so many).
    """
    return [_flat(run_row) for run_row in _rows(results, **filters)]


def row(result: RunResult) -> dict[str, Any]:
    """The dictionary of ``load_rows`` for one run."""
    return _flat(row_of(result, ""))


def compare(
    first: str, second: str, *, results: Place = "results", anyway: bool = False
) -> RunComparison | SetComparison:
    """Two documents direction by direction, or two sets of runs cell by cell, named as for `results compare`."""
    from .review.comparison import compare

    return compare(first, second, Path(results), anyway, warn)


def judge(
    results: Place = "results",
    *,
    dut: str | None = None,
    mode: str | None = None,
    suite: str | None = None,
    since: str | date | None = None,
    only: str | Sequence[str] = (),
) -> Judgement:
    """Find what got slower, since when and why, as `trexbench regress` does.

    only: patterns of cells, or a single one.
    """
    from .review.find import require_named
    from .review.judge import judge

    patterns = [only] if isinstance(only, str) else only
    judgement = judge(Path(results), warn, dut, mode, suite, parse_date(str(since)) if since else None, patterns)
    if not judgement.now:
        require_named(Path(results), dut, mode, suite)
    return judgement


def _measure(verb: str, options: RampCall | SearchCall | SaturateCall) -> RunResult:
    request = make_request(verb, of_options(Case, options), options.plan(), of_options(Setup, options))
    done = measure(request, output_of(options))
    raise_error(done.error, done.result)
    return done.result


def output_of(options: Keeping) -> Output:
    progress = options.progress if isinstance(options, Watched) else None
    show: Show | None = None if progress is None else lambda result: nullcontext(_ProgressCaller(result, progress))
    return Output(None if options.results is None else Path(options.results), warn=warn, show=show)


def raise_error(error: BenchError | Interrupted | None, measured: object) -> None:
    """Raise the error that ended a run early, if any, with what was measured until then as its ``result``."""
    if isinstance(error, BenchError):
        error.result = measured
    if error is not None:
        raise error


class _ProgressCaller:
    """A sink that calls the user's function, until that raises an exception."""

    def __init__(self, result: RunResult, progress: Callable[[Progress], object]) -> None:
        from .report.run.live import Follower

        self._progress: Callable[[Progress], object] | None = progress
        self._follower, self._directions = Follower(result.plan), result.plan.directions

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None:
        if self._progress is None:
            return
        self._follower.follow(samples)
        if self._follower.settling:
            return
        now = self._follower.progress(samples)
        rates = tuple(
            DirectionRates(str(direction), window.asked_pps, window.sent_pps, window.received_pps, window.loss)
            for direction, window in zip(self._directions, now.windows, strict=False)
        )
        try:
            self._progress(Progress(now.phase.value, now.elapsed_s, now.left_s, rates))
        except Exception as error:
            self._progress = None
            warn(f"progress failed and is not called again: {type(error).__name__}: {error}")


def _rows(results: Place, since: str | date | None = None, **filters: Any) -> list[RunRow]:
    from .results.remote import place_of
    from .review.find import all_rows

    return all_rows(place_of(str(results)), warn, since=parse_date(str(since)) if since else None, **filters)


def _flat(run_row: RunRow) -> dict[str, Any]:
    values = run_row.to_dict()
    del values["nodes"]
    return {**values.pop("cell"), **values}


def warn(text: str) -> None:
    """Report a failure beside a measurement as a Python warning."""
    warnings.warn(text, stacklevel=2)
