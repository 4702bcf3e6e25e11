"""Damage in a run that was read back: values that a document can hold and a run cannot produce."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from .load.plan import LATENCY_LOADS, Plan
from .load.sample import LATENCY_PHASES, Sample
from .names import is_name, shown
from .result import RunResult
from .tcp.result import TcpResult
from .units import LONGEST_S

_NAMES = ("mode", "suite", "night", "label", "variant")


def find_damage(result: RunResult | TcpResult) -> str | None:
    """The first value that no run can have produced, in a few words; None when every report can be made of it."""
    first = next(_problems(result), None)
    if first is not None:
        return first
    tcp = isinstance(result, TcpResult)
    try:
        # Proves that the samples or readings fit together.
        for name in ("summaries", "analysis_warnings", "ping_results") if tcp else ("analysis", "latencies", "streams"):
            getattr(result, name)
    except (ArithmeticError, LookupError) as error:
        return f"the {'readings' if tcp else 'samples'} cannot be analysed ({type(error).__name__})"
    return None


def _tcp_problems(result: TcpResult) -> Iterator[str]:
    plan = result.plan
    for name, value in {"time_s": plan.time_s, "interval_s": plan.interval_s}.items():
        if not 0 < value <= LONGEST_S:
            yield f"plan.{name} is not a time"
    if not 0 <= plan.omit_s <= LONGEST_S:
        yield "plan.omit_s is not a time"
    if plan.streams < 1:
        yield "plan.streams is less than 1"
    measured = (one.leg for one in (*result.legs, *result.ceilings))
    for leg in (*plan.legs, *measured, *(one.leg for one in result.pings)):
        if leg.version not in (4, 6) or leg.repetition < 1:
            yield f"no such leg: IPv{leg.version} #{leg.repetition}"


def _problems(result: RunResult | TcpResult) -> Iterator[str]:
    yield from _of_texts(result)
    if isinstance(result, TcpResult):
        yield from _tcp_problems(result)
        return
    queues = result.command.get("rx_queues")
    if isinstance(queues, int) and abs(queues) >= 1 << 63:
        yield "command.rx_queues is too large"
    yield from _of_samples(result.plan, result.samples)


def _of_texts(result: RunResult | TcpResult) -> Iterator[str]:
    for what in ("reason", "finished"):
        if not isinstance(getattr(result, what), str | None):
            yield f"{what} is not text"
    # Names go into paths, tables and pages.
    names = {"dut.name": result.dut.get("name")} | {f"command.{key}": result.command.get(key) for key in _NAMES}
    for key, name in names.items():
        if name is not None and not is_name(name):
            yield f"{key} is not a valid name: {shown(name)}"


def _of_samples(plan: Plan, samples: Sequence[Sample]) -> Iterator[str]:
    directions, ports, before_s = set(plan.directions), plan.ports, -inf
    for number, sample in enumerate(samples):
        if not sample.asked_pps.keys() <= directions:
            yield f"sample {number}: a direction that the plan does not have"
        if sample.t_s < before_s:
            yield f"sample {number}: time goes back to {sample.t_s:g} s"
        if sample.phase in LATENCY_PHASES and not 1 <= sample.trial <= len(LATENCY_LOADS):
            yield f"sample {number}: latency load {sample.trial} of {len(LATENCY_LOADS)}"
        for port in ports:
            if port not in sample.reading.ports:
                yield f"sample {number}: port {port} is missing"
        before_s = sample.t_s
