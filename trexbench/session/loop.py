"""The measuring loop: offers the loads that the strategy decides, reads the counters, and leaves the ports silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..core.errors import BenchError, DutError, GeneratorError, GeneratorLost, PortOwned, as_bench_error
from ..core.load.plan import LATENCY_LOADS, MIN_OFFERED_PPS
from ..core.load.sample import Conditions, Phase, Sample, find_setback, find_standstill
from ..core.protocols import Clock, Generator, Sink
from ..core.strategy.base import LoadStep, Strategy
from ..core.verdict.latency import tagged_pps
from ..core.verdict.parts import RunWarning
from ..core.verdict.path import check_warmup
from ..signals import Interrupted as Interrupted

SLACK_S = 5.0
"""Time by which a start may exceed the plan before the generator ends it by itself; two samples, if longer.

Each phase may end late by almost half a sample.
"""

BRIEF = 0.1
"""Share of a sample's interval by which a load may be shortened: samples come that late anyhow."""

STANDSTILL_S = 10.0
"""Standstill of a sending port's counters that ends the run; a shorter one only invalidates windows."""


@dataclass(frozen=True)
class Outcome:
    """The samples of a run, and how it ended."""

    samples: Sequence[Sample]
    error: BenchError | Interrupted | None = None
    """Error that ended it early; None: the plan was carried out."""
    warnings: tuple[RunWarning, ...] = ()
    """Failures that did not end the measurement."""


Watch = Callable[[], Conditions | None]
"""Reads the lab's conditions; None without a lab, or if it is too soon to read them again. Never fails."""


def run(
    plan: Strategy, generator: Generator, clock: Clock, sinks: Sequence[Sink] = (), watch: Watch = lambda: None
) -> Outcome:
    """Carry out the plan. Whatever ends it, the ports are silent and the samples are in the outcome."""
    samples: list[Sample] = []
    warnings: list[RunWarning] = []
    error: BenchError | Interrupted | None = None
    # A signal may come at any line, even in the clean-up: then the clean-up is done again.
    try:
        try:
            _drive(plan, generator, clock, sinks, watch, samples, warnings)
        except (Exception, Interrupted, KeyboardInterrupt) as raised:
            error = as_error(raised)
        error = _silence(generator, error, warnings)
    except (Interrupted, KeyboardInterrupt) as raised:
        error = _silence(generator, error or as_error(raised), warnings)
    except BaseException:
        _silence(generator, error, warnings)
        raise
    return Outcome(samples, error, tuple(warnings))


def as_error(raised: BaseException) -> BenchError | Interrupted:
    """Turn any exception into an error of one line, even one by a defect of trexbench, so that samples are kept."""
    if isinstance(raised, Interrupted):
        return raised
    return Interrupted("Ctrl-C", 130) if isinstance(raised, KeyboardInterrupt) else as_bench_error(raised)


def _pass_on(sinks: Sequence[Sink], samples: Sequence[Sample], step: LoadStep, warnings: list[RunWarning]) -> None:
    """Pass the samples to every sink. The first failure of any becomes a warning; none ends the measurement."""
    for sink in sinks:
        try:
            sink.sampled(samples, step)
        except Exception as failed:
            if all(warning.code != "sink" for warning in warnings):
                text = f"at {samples[-1].t_s:.1f} s a sample was not shown or stored: {as_error(failed)}"
                warnings.append(RunWarning("sink", text))


def _drive(
    plan: Strategy,
    generator: Generator,
    clock: Clock,
    sinks: Sequence[Sink],
    watch: Watch,
    samples: list[Sample],
    warnings: list[RunWarning],
) -> None:
    samples.append(Sample(Phase.BASELINE, clock.now(), {}, generator.read(), conditions=watch()))
    sending = False
    while (step := plan.next_step(samples)) is not None:
        if step.phase is Phase.LATENCY and not sending:
            if not _start_tagged(plan, generator, step, warnings):
                return
            # Nothing was sent while it was being started: that time is no part of the load's first sample.
            step, sending = replace(step, until_s=step.until_s + clock.now() - samples[-1].t_s), True
        else:
            sending = _offer(plan, generator, step, sending)
        clock.sleep_until(step.until_s)
        reading = generator.read()
        samples.append(Sample(step.phase, clock.now(), step.offered_pps, reading, step.trial, watch()))
        _pass_on(sinks, samples, step, warnings)
        _check_counters(plan, samples)
        _check_movement(plan, samples, warnings)
        if down := [port for port, counters in reading.ports.items() if not counters.link_up]:
            raise GeneratorError(
                f"link of port {down[0]} went down in the {step.phase.value}", "check the cable and the DUT"
            )
        if step.phase is Phase.WARMUP:
            _check_path(plan, samples)
        if not step.offered_pps and clock.now() - samples[-1].t_s > BRIEF * plan.sample_s:
            # A sink has read the DUT meanwhile: that time is silence, too, and no part of the load that follows.
            samples.append(Sample(step.phase, clock.now(), {}, generator.read(), step.trial, watch()))
            _check_counters(plan, samples)
    _name_missing_loads(plan, samples, warnings)


def _offer(plan: Strategy, generator: Generator, step: LoadStep, sending: bool) -> bool:
    if not step.offered_pps:
        if sending:
            generator.stop()
        return False
    rates = {direction.tx: pps for direction, pps in step.offered_pps.items()}
    if sending:
        generator.update(rates)
    else:
        generator.start(rates, plan.sending_s(step) + max(SLACK_S, 2 * plan.sample_s))
    return True


def _start_tagged(plan: Strategy, generator: Generator, step: LoadStep, warnings: list[RunWarning]) -> bool:
    """Send tagged frames; False if the generator refuses, which does not affect what was measured before."""
    try:
        generator.tag({direction.tx: tagged_pps(pps) for direction, pps in step.offered_pps.items()})
        _offer(plan, generator, step, sending=False)
    except (GeneratorLost, PortOwned):
        raise
    except GeneratorError as error:
        load = f"{100 * LATENCY_LOADS[step.trial - 1]:g} % of the throughput"
        warnings.append(RunWarning("no-latency", f"latency was not measured at {load} and above: {error}"))
        return False
    return True


def _name_missing_loads(plan: Strategy, samples: Sequence[Sample], warnings: list[RunWarning]) -> None:
    """Warn of latency loads that the plan left out because they are too small to be sent evenly."""
    measured = {sample.trial for sample in samples if sample.phase is Phase.LATENCY}
    missing = [f"{100 * share:g}" for trial, share in enumerate(LATENCY_LOADS, 1) if trial not in measured]
    if plan.length_s(Phase.LATENCY) and missing:
        loads = f"{', '.join(missing)} % of the throughput, less than {MIN_OFFERED_PPS:g} pps"
        warnings.append(RunWarning("no-latency", f"latency was not measured at {loads}"))


def _check_counters(plan: Strategy, samples: Sequence[Sample]) -> None:
    problem = find_setback(samples[-2], samples[-1], plan.ports)
    if problem is not None:
        raise GeneratorError(problem, "the server was restarted or its counters cleared; leave it alone and rerun")


def _check_movement(plan: Strategy, samples: Sequence[Sample], warnings: list[RunWarning]) -> None:
    """Warn of counters that stand still under load; end the run if they do for long, or at the end of the load."""
    problem = find_standstill(samples, plan.tx_ports, plan.window_s)
    if problem is None:
        return
    following = plan.next_step(samples)
    at_the_end = following is None or not following.offered_pps
    if at_the_end or find_standstill(samples, plan.tx_ports, STANDSTILL_S):
        raise GeneratorError(problem, "its statistics stand still, or it sends nothing; look at the server's log")
    if all(warning.code != "standstill" for warning in warnings):
        warnings.append(RunWarning("standstill", f"at {samples[-1].t_s:.1f} s {problem}: that time was not measured"))


def _check_path(plan: Strategy, samples: Sequence[Sample]) -> None:
    """Check at the end of the warm-up that frames came back on the right port; else every later figure is void."""
    following = plan.next_step(samples)
    if following is not None and following.phase is Phase.WARMUP:
        return
    problem = check_warmup(plan, samples)
    if problem:
        silent = find_standstill(samples, plan.tx_ports, plan.sample_s / 2)
        raise GeneratorError(problem) if silent else DutError(problem)


def _silence(
    generator: Generator, error: BenchError | Interrupted | None, warnings: list[RunWarning]
) -> BenchError | Interrupted | None:
    """Stop the ports and return the run's error. After another error a failure to stop is only a warning."""
    try:
        generator.stop()
    except Exception as failed:
        if error is None:
            return as_error(failed)
        text = f"the ports could not be stopped; the traffic ends with the duration of its start: {as_error(failed)}"
        warnings.append(RunWarning("not-stopped", text))
    return error
