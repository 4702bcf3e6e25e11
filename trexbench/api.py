"""trexbench from Python. Nothing here prints, exits or needs the main thread; docs/python.md has examples.

A rate is a number of frames per second and direction or text as on the command line (``"97%"``, ``"1.2mpps"``), a time
a number of seconds or text (``"2m"``), a share a fraction or text (``"0.1%"``). Failures are raised as BenchError; if
one ends a run early, its ``result`` is what was measured until then. Warnings are Python's (``warnings``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from .config.model import PlanDefaults
from .core.errors import BenchError, StoreError
from .core.history.compare import SetComparison
from .core.history.known import parse_date
from .core.history.night import Night
from .core.history.regression import Judgement
from .core.history.rows import RunRow, row_of
from .core.load.sample import Sample
from .core.result import RunResult
from .core.strategy.base import LoadStep
from .core.tcp.wan import Wan, parse_wan
from .core.units import Rate, parse_duration, parse_rate, parse_share
from .session.keep import Output, Show, efficiency_request, measure, measure_rates
from .session.request import Case, Setup, make_request
from .session.run import Interrupted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .review.compare import RunComparison

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
    """Where a run stands. elapsed_s, left_s: of the whole run, by its own clock."""

    phase: str
    elapsed_s: float
    left_s: float
    rates: tuple[DirectionRates, ...]


class SetupOptions(TypedDict, total=False):
    """Options for how runs are carried out; see session.request.Setup."""

    configs_dir: Path | None
    apply: bool
    server: str | None
    rpc_port: int | None
    pub_port: int | None
    trex_dir: Path | None
    force: bool
    sim: bool
    speedup: float | None
    seed: int | None
    label: str | None


class Options(SetupOptions, total=False):
    """More options of every measurement; see session.request.Case. results: a directory for documents, None: none.

    progress: called after every sample; an exception in it is a warning, and ends the calls, not the measurement.
    """

    profile: str | None
    tunables: Mapping[str, str] | None
    bidir: bool
    ports: tuple[int, ...] | None
    rx_queues: int | None
    variant: str | None
    wan: str | Wan | None
    telemetry: str | None
    results: Place | None
    progress: Callable[[Progress], object] | None


def ramp(
    dut: str,
    mode: str | None = None,
    *,
    ramp_to: str | float | None = None,
    ramp_duration: str | float | None = None,
    hold: str | float | None = None,
    zoom: str | float | None = None,
    confirm: str | float | None = None,
    latency: str | float | None = None,
    stop_on_saturation: bool | None = None,
    warmup: str | float | None = None,
    warmup_duration: str | float | None = None,
    loss: str | float | None = None,
    windows: int | None = None,
    sample: str | float | None = None,
    **options: Unpack[Options],
) -> RunResult:
    """Ramp traffic linearly to the target; ``analysis`` of the result says where each direction saturated.

    dut, mode: names, as for `trexbench ramp`, whose options these are. None leaves a figure to the DUT's config.
    """
    wished = PlanDefaults(
        ramp_to=_rate(ramp_to),
        ramp_s=seconds(ramp_duration),
        hold_s=seconds(hold),
        zoom_s=seconds(zoom),
        confirm_s=seconds(confirm),
        latency_s=seconds(latency),
        stop_on_saturation=stop_on_saturation,
        warmup=_rate(warmup),
        warmup_s=seconds(warmup_duration),
        loss=_share(loss),
        windows=windows,
        sample_s=seconds(sample),
    )
    return _measure("ramp", dut, mode, wished, options)


def search(
    dut: str,
    mode: str | None = None,
    *,
    ramp_to: str | float | None = None,
    loss: Sequence[str | float] | None = None,
    width: str | float | None = None,
    warmup: str | float | None = None,
    warmup_duration: str | float | None = None,
    confirm: str | float | None = None,
    soak: str | float | None = None,
    **options: Unpack[Options],
) -> RunResult:
    """Search for the highest rate within each loss; ``goals`` of each direction's analysis are in this order."""
    goals = None if loss is None else tuple(share for one in loss if (share := _share(one)) is not None)
    wished = PlanDefaults(
        ramp_to=_rate(ramp_to),
        goals=goals,
        width=_share(width),
        warmup=_rate(warmup),
        warmup_s=seconds(warmup_duration),
        confirm_s=seconds(confirm),
        soak_s=seconds(soak),
    )
    return _measure("search", dut, mode, wished, options)


def saturate(
    dut: str,
    mode: str | None = None,
    *,
    rate: str | float = "100%",
    hold: str | float | None = None,
    **options: Unpack[Options],
) -> RunResult:
    """Send the full rate at once and measure what comes out."""
    return _measure("saturate", dut, mode, PlanDefaults(ramp_to=_rate(rate), hold_s=seconds(hold)), options)


def efficiency(
    dut: str,
    mode: str | None = None,
    *,
    rates: Sequence[str | float] = ("1kpps", "1%", "10%", "97%"),
    hold: str | float | None = None,
    **options: Unpack[Options],
) -> list[RunResult]:
    """One run per rate, in one session; ``costs`` of each says what a packet costs the DUT."""
    case, setup, output = _split_options(dut, mode, options)
    wanted = [rate for one in rates if (rate := _rate(one)) is not None]
    with interrupts():
        done = measure_rates(efficiency_request(case, seconds(hold), setup), wanted, output)
        results = [one.result for one in done]
        raise_error(done[-1].error, results)
    return results


def run_suite(
    name: str,
    *,
    results: Place = "results",
    only: Sequence[str] = (),
    resume: bool = False,
    date: str | None = None,
    retry_after: str | float = 10.0,
    **setup: Unpack[SetupOptions],
) -> Night:
    """Measure every cell of a suite, as `trexbench suite run` does; cells that failed say why in their attempts."""
    from .suite.night import NightOptions, run_suite

    pause_s, night = seconds(retry_after) or 0.0, date and parse_date(date)
    options = NightOptions(Path(results), Setup(**setup), Output(warn=warn), lambda _: None, night, pause_s)
    with interrupts():
        return run_suite(name, options, only, resume).night


def load_run(path: Place) -> RunResult:
    """The run of packets of a document; StoreError names what is wrong with it."""
    from .results.store import load_run

    return load_run(Path(path))


def load_results(results: Place = "results", **filters: Any) -> list[RunResult]:
    """Every run of packets below the directory, oldest first; filters as for load_rows.

    One that cannot be read is a warning.
    """
    found = []
    for one in _rows(results, **filters):
        if one.cell.tcp:
            continue
        try:
            found.append(load_run(Path(results) / one.path))
        except StoreError as error:
            warn(str(error))
    return found


def load_rows(results: Place = "results", **filters: Any) -> list[dict[str, Any]]:
    """A flat dictionary of plain values for every run, oldest first: ``pandas.DataFrame(load_rows())``.

    filters: dut, mode, suite, label, since (a date) and limit (only the newest so many).
    """
    return [_flat(one) for one in _rows(results, **filters)]


def row(result: RunResult) -> dict[str, Any]:
    """The dictionary of ``load_rows`` for one run."""
    return _flat(row_of(result, ""))


def compare(
    first: str, second: str, *, results: Place = "results", anyway: bool = False
) -> RunComparison | SetComparison:
    """Two documents direction by direction, or two sets of runs cell by cell, named as for `trexbench compare`."""
    from .review.compare import compare

    return compare(first, second, Path(results), anyway, warn)


def judge(
    results: Place = "results",
    *,
    dut: str | None = None,
    mode: str | None = None,
    suite: str | None = None,
    since: str | None = None,
) -> Judgement:
    """Find what got slower, since when and why, as `trexbench regress` does."""
    from .review.judge import judge

    return judge(Path(results), warn, dut, mode, suite, since and parse_date(since))


def _measure(verb: str, dut: str, mode: str | None, wished: PlanDefaults, options: Options) -> RunResult:
    case, setup, output = _split_options(dut, mode, options)
    with interrupts():
        done = measure(make_request(verb, case, wished, setup), output)
        raise_error(done.error, done.result)
    return done.result


def _split_options(dut: str, mode: str | None, options: Options) -> tuple[Case, Setup, Output]:
    """The options by what takes them; TypeError for an unknown one, as with any function."""
    left: dict[str, Any] = {**options, "wan": wan_of(options.get("wan"))}
    results, progress = left.pop("results", None), left.pop("progress", None)
    case = {one.name: left.pop(one.name) for one in fields(Case) if one.name in left}
    show: Show | None = None if progress is None else lambda result: nullcontext(_Caller(result, progress))
    output = Output(None if results is None else Path(results), warn=warn, show=show)
    return Case(dut, mode, **case), Setup(**left), output


def raise_error(error: BenchError | Interrupted | None, measured: object) -> None:
    """The error that ended a run early, with what was measured until then."""
    if isinstance(error, BenchError):
        error.result = measured
    if error is not None:
        raise error


@contextmanager
def interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at Ctrl-C, as any other call does."""
    try:
        yield
    except Interrupted as error:
        raise KeyboardInterrupt(str(error)) from error


class _Caller:
    """A sink that calls back, until that fails."""

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
            DirectionRates(str(direction), one.asked_pps, one.sent_pps, one.received_pps, one.loss)
            for direction, one in zip(self._directions, now.windows, strict=False)
        )
        try:
            self._progress(Progress(now.phase.value, now.elapsed_s, now.left_s, rates))
        except Exception as error:
            self._progress = None
            warn(f"progress failed and is not called again: {type(error).__name__}: {error}")


def _rows(results: Place, since: str | None = None, **filters: Any) -> list[RunRow]:
    from .review.find import all_rows

    return all_rows(Path(results), warn, since=since and parse_date(since), **filters)


def _flat(one: RunRow) -> dict[str, Any]:
    values = one.to_dict()
    del values["nodes"]
    return {**values.pop("cell"), **values}


def _rate(value: str | float | None) -> Rate | None:
    return parse_rate(f"{value:f}pps" if isinstance(value, (int, float)) else value) if value is not None else None


def seconds(value: str | float | None) -> float | None:
    """A time as the command line takes it, or a number of seconds; None stays None."""
    return parse_duration(f"{value:f}" if isinstance(value, (int, float)) else value) if value is not None else None


def wan_of(value: str | Wan | None) -> Wan | None:
    """A long line as `--wan` takes it, or as it is."""
    return parse_wan(value) if isinstance(value, str) else value


def _share(value: str | float | None) -> float | None:
    return parse_share(str(value)) if value is not None else None


def warn(text: str) -> None:
    """Tell what goes wrong beside a measurement as a Python warning."""
    warnings.warn(text, stacklevel=2)
