"""What is wrong with a run that was read back: types and order that a document can get wrong and a run cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from math import isfinite
from typing import Any

from .names import is_name, shown
from .plan import LATENCY_LOADS, Plan
from .result import RunResult
from .sample import COUNTS, LATENCY_PHASES, LatencyCounters, PortCounters, Sample

_NOT_NUMBERS = ("directions", "kind", "stop_on_saturation")
_TOO_LARGE = 1e300
_NAMES = ("mode", "suite", "night", "label")
_POSITIVE = ("line_rate_bps", "mean_frame_bytes", "line_rate_pps", "target_pps", "window_s")


def find_damage(result: RunResult) -> str | None:
    """The first thing that no run can have produced, in a few words; None when every report can be made of it."""
    first = next(_problems(result), None)
    if first is not None:
        return first
    try:
        # The proof that the samples fit together.
        result.analysis  # noqa: B018
        result.latencies  # noqa: B018
    except (ArithmeticError, LookupError) as error:
        return f"the samples cannot be analysed ({type(error).__name__})"
    return None


def find_sample_damage(sample: Sample, plan: Plan) -> str | None:
    """The first thing in one sample by itself that no run can have produced; None when there is none."""
    return next(_of_sample(sample, plan, float("-inf")), None)


def _problems(result: RunResult) -> Iterator[str]:
    for name in ("reason", "finished"):
        if not isinstance(getattr(result, name), str | None):
            yield f"{name} is no text"
    yield from _of_names(result)
    yield from _of_plan(result.plan)
    before = float("-inf")
    for number, sample in enumerate(result.samples):
        for problem in _of_sample(sample, result.plan, before):
            yield f"sample {number}: {problem}"
        before = sample.t_s


def _of_names(result: RunResult) -> Iterator[str]:
    """Names go into paths, tables and pages: one that cannot be a file's is not ours."""
    names = {"dut.name": result.dut.get("name")} | {f"command.{key}": result.command.get(key) for key in _NAMES}
    for key, name in names.items():
        if name is not None and not is_name(name):
            yield f"{key} is no name: {shown(name)}"


def _of_plan(plan: Plan) -> Iterator[str]:
    for field in fields(plan):
        if field.name not in _NOT_NUMBERS and not _is_number(getattr(plan, field.name)):
            yield f"plan: {field.name} is no number"
            return
    if not isinstance(plan.windows, int) or plan.windows < 1:
        yield "plan: windows is no count"
    for name in _POSITIVE:
        if getattr(plan, name) <= 0:
            yield f"plan: {name} is not above zero"


def _of_sample(sample: Sample, plan: Plan, before_s: float) -> Iterator[str]:
    if not isfinite(sample.t_s) or not isfinite(sample.asked_pps) or sample.asked_pps < 0:
        yield "time or rate is no number"
    elif sample.t_s < before_s:
        yield f"time goes back to {sample.t_s:g} s"
    if not _is_count(sample.trial):
        yield "trial is no count"
    elif sample.phase in LATENCY_PHASES and not 1 <= sample.trial <= len(LATENCY_LOADS):
        yield "a load of the latency that there is not"
    if sample.reading.queue_full is not None and not _is_count(sample.reading.queue_full):
        yield "queue_full is no count"
    if sample.reading.cpu_percent is not None and not _is_number(sample.reading.cpu_percent):
        yield "cpu_percent is no number"
    for port in plan.ports:
        if port not in sample.reading.ports:
            yield f"port {port} is missing"
    for port, counters in sample.reading.ports.items():
        yield from (f"port {port}: {problem}" for problem in _of_port(counters))
    for port, tagged in sample.reading.latency.items():
        yield from (f"latency of port {port}: {problem}" for problem in _of_latency(tagged))


def _of_port(counters: PortCounters) -> Iterator[str]:
    if not _is_number(counters.t_s):
        yield "t_s is no number"
    if not isinstance(counters.link_up, bool):
        yield "link_up is neither true nor false"
    for name in COUNTS:
        if not _is_count(getattr(counters, name)):
            yield f"{name} is no count"


def _of_latency(counters: LatencyCounters) -> Iterator[str]:
    for name in ("sent", "received", "out_of_order", "duplicate"):
        if not _is_count(getattr(counters, name)):
            yield f"{name} is no count"
    for name in ("average_s", "min_s", "max_s", "jitter_s"):
        value = getattr(counters, name)
        if value is not None and not (_is_number(value) and value >= 0):
            yield f"{name} is no time"
    if not all(0 <= low < 1 << 40 and _is_count(count) for low, count in counters.histogram.items()):
        yield "histogram counts no frames"


def _is_number(value: Any) -> bool:
    # A comparison, for JSON may hold an integer that no float can.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _TOO_LARGE


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
