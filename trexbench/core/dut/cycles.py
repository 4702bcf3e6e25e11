"""Find what a forwarded packet costs from two readings of a DUT under constant load: cycles, vectors per call, energy.

VPP counts cycles itself. A kernel's are its CPUs' busy time x their clock, over the packets forwarded meanwhile, so
they include the cost of dropped packets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any

import msgspec

from ..load.plan import Plan
from ..load.sample import Phase, Sample
from ..units import format_pps, format_share
from ..verdict.parts import RunWarning
from . import runtime
from .losses import passed
from .runtime import Budget, WorkerEfficiency
from .telemetry import DutReading, Moment, Observation, mean_power

_TIME = attrgetter("t_s")
MIN_SPAN_S = 1.0
"""Counters are read tens of milliseconds apart, which would matter in a shorter interval."""
TICKS_S = (1 / 100, 1 / 127, 1 / 128)
"""Ticks in which systems account CPU time: Linux, and FreeBSD by its stathz."""
COUNTERS_APART = 0.02
"""Tolerance between the DUT's count of sent packets and the tester's of received ones; also for coarse CPU time."""
CLEARED_WITHIN_S, CLEARED_WITHIN = 1.0, 0.1
"""Tolerance between an interval and the time VPP's counters ran: seconds, or a share of it, whichever is more."""
TIMES_APART = 1 / 3
"""Tolerance between a CPU's times and the time between their readings: an emulated machine loses half of its ticks,
a kernel in a virtual machine a quarter where the CPU is often idle."""
PERF_APART = 0.1
"""Tolerance between the cycles that perf counted and busy time x clock."""


@dataclass(frozen=True)
class CpuShare:
    """One CPU over an interval, in shares of its time."""

    cpu: int  # its number on that host
    busy: float  # without idle, waiting for I/O, and stolen time
    packet_busy: float | None  # part of busy that the system accounts to packets; None: not known
    clock_hz: float | None  # clock rate; None: not known


@dataclass(frozen=True)
class Cost:
    """One interval at one rate. Rates in frames per second are of all directions together."""

    phase: Phase  # in which the DUT was read
    trial: int  # its number; 0: none
    begin_s: float  # first reading of the DUT, on the run's clock
    end_s: float  # last reading of the DUT, on the run's clock
    offered_pps: float  # frames sent, by the tester's count
    received_pps: float  # frames received, by the tester's count
    forwarded_pps: float  # frames sent by the DUT's count, else received_pps
    span_s: float = 0.0  # length by the DUT's clock where it is known; or of the load that the DUT was read around
    source: str | None = None  # of the cycles: VPP's show runtime, or CPU time x clock; None: there are none
    cycles_per_packet: float | None = None  # of VPP's nodes but input nodes; of a kernel all busy time
    with_polling: float | None = None  # the same with VPP's input nodes, which also poll in vain
    perf_cycles_per_packet: float | None = None  # by ``perf stat`` in place of busy time x clock
    vectors_per_call: float | None = None  # of VPP's busiest worker
    clock_hz: float | None = None  # of VPP's time stamp counter, or of the fastest CPU
    workers: tuple[WorkerEfficiency, ...] = ()  # VPP's
    budgets: tuple[Budget, ...] = ()  # of VPP's workers
    cpus: tuple[CpuShare, ...] = ()  # of a kernel
    power_w: float | None = None  # the DUT's mean
    uj_per_packet: float | None = None  # energy of the whole box over the frames forwarded
    warnings: tuple[RunWarning, ...] = ()

    @property
    def effective_hz(self) -> float | None:
        """Cycles per packet x packets per second, of the busiest worker or of all CPUs."""
        known = [worker.effective_hz for worker in self.workers if worker.effective_hz is not None]
        if known:
            return max(known)
        return self.cycles_per_packet * self.forwarded_pps if self.cycles_per_packet is not None else None

    @property
    def name(self) -> str:
        """Phase, with the number of a confirmation's second trial."""
        return self.phase.value if self.phase is not Phase.CONFIRM or self.trial < 2 else f"confirm {self.trial}"

    @property
    def option(self) -> str:
        """Option by which it is counted for longer."""
        return "--confirm" if self.phase is Phase.CONFIRM else "--hold"

    @property
    def loss(self) -> float | None:
        """Share of the frames sent, by the tester's count."""
        return 1 - self.received_pps / self.offered_pps if self.offered_pps else None

    def to_dict(self) -> dict[str, Any]:
        """JSON values, without the warnings, which the document lists with all others."""
        values = {**msgspec.to_builtins(self), "effective_hz": self.effective_hz, "loss": self.loss}
        del values["warnings"]
        return values


def find_costs(plan: Plan, samples: Sequence[Sample], readings: Sequence[DutReading]) -> tuple[Cost, ...]:
    """Return the cost of every interval between two readings of the DUT: holds first, then those of the ramp."""
    return tuple(_cost(plan, samples, before, after) for before, after in find_intervals(readings))


def find_intervals(readings: Sequence[DutReading]) -> Iterator[tuple[DutReading, DutReading]]:
    """Yield each BEGIN with its END, then each TICK of the ramp with the next."""
    begun: DutReading | None = None
    for reading in readings:
        if reading.moment is Moment.BEGIN:
            begun = reading
        elif reading.moment is Moment.END and begun is not None:
            if (begun.phase, begun.trial) == (reading.phase, reading.trial):
                yield begun, reading
            begun = None
    yield from pairwise(reading for reading in readings if reading.moment is Moment.TICK)


def _cost(plan: Plan, samples: Sequence[Sample], before: DutReading, after: DutReading) -> Cost:
    first, last = before.observation, after.observation
    then, now = first.at_s, last.at_s  # the DUT's own clock: a reading may take long
    span_s = after.t_s - before.t_s if then is None or now is None else now - then
    begin_s, end_s = _load_times(samples, before, after)
    offered, received = _rates(plan, samples, begin_s, end_s)
    counts = [passed(first, last, port.port, "tx_packets") for port in last.ports]
    known = [count for count in counts if count is not None and count >= 0]
    sent = sum(known) if counts and len(known) == len(counts) else None  # by all interfaces, or not known
    loaded, around = 1.0, end_s < after.t_s
    if around and span_s > 0:
        loaded, span_s = (end_s - begin_s) / span_s, end_s - begin_s
    forwarded = received if not sent or span_s <= 0 else sent / span_s  # some drivers count no sent frame
    warnings = [RunWarning("telemetry-missing", f"{gap.what}: {gap.reason}") for gap in last.missing]
    cost = Cost(after.phase or Phase.HOLD, after.trial, before.t_s, after.t_s, offered, received, forwarded, span_s)
    if span_s < MIN_SPAN_S:
        text = f"counter readings only {span_s:.2g} s apart: no cycles/packet; lengthen {cost.option}"
        if span_s < 0:
            text = f"the DUT's clock went back by {-span_s:.4g} s between two readings: no cycles/packet"
        return replace(cost, warnings=(*warnings, RunWarning("no-cycles", text)))
    if received and abs(forwarded / received - 1) > COUNTERS_APART:
        text = f"the DUT counted {format_pps(forwarded)} sent, the tester {format_pps(received)} received"
        warnings.append(RunWarning("packets-unclear", text))
    lossy = offered > 0 and (offered - received) / offered > plan.loss_threshold
    if last.threads:
        counted_s = after.t_s - before.t_s - before.took_s  # a reading that begins an interval clears the counters last
        cost = _vpp_cost(cost, last, counted_s, lossy, warnings, span_s if around else None)
    else:
        # perf counted for a time of its own, of which the load was an unknown part
        last = replace(last, perf_hz=None) if around else last
        cost = _kernel_cost(cost, first, last, warnings, loaded)
    cost = cost if around else _powered(cost, before, after, warnings)
    return replace(cost, warnings=tuple(warnings))


def _vpp_cost(
    cost: Cost, after: Observation, counted_s: float, lossy: bool, warnings: list[RunWarning], loaded_s: float | None
) -> Cost:
    """Add VPP's figures, if its runtime counters ran for ``counted_s``: they were cleared when the interval began.

    loaded_s: the load's part of it, if VPP was read around the load: then it also polled in silence, which is left out.
    """
    slack_s = max(CLEARED_WITHIN_S, CLEARED_WITHIN * counted_s)
    times_s = [thread.time_s for thread in after.threads if thread.time_s is not None]
    if other_s := [time_s for time_s in times_s if abs(time_s - counted_s) > slack_s]:
        text = f"show runtime covers {other_s[0]:g} s of {counted_s:.1f} s: it was cleared at another time"
        warnings.append(RunWarning("no-cycles", f"no cycles per packet: {text}"))
        return cost
    threads = after.threads  # all their packets came in the load
    if loaded_s is not None:
        threads = tuple(replace(thread, time_s=loaded_s, in_pps=None) for thread in threads)
    workers = runtime.of_threads(threads, cost.option)
    together = runtime.overall(workers)
    if loaded_s is not None:
        workers = tuple(
            replace(worker, cycles_with_polling=None, nodes=tuple(node for node in worker.nodes if not node.is_input))
            for worker in workers
        )
    # An idle worker casts no doubt on the others.
    warnings += runtime.efficiency_warnings([worker for worker in workers if together is None or not worker.idle])
    busiest = max(workers, key=lambda worker: (worker.vectors_per_call or 0.0, worker.pps or 0.0), default=None)
    clock = after.clock_hz
    budgets: tuple[Budget, ...] = ()
    if clock is None:
        warnings.append(RunWarning("no-clock", "VPP did not report its clock: cycles x packets cannot be checked"))
    else:
        budgets = tuple(runtime.check_budget(w, clock, saturated=lossy and w is busiest) for w in workers)
        warnings += [budget.warning for budget in budgets if budget.warning is not None]
    cost = replace(cost, clock_hz=clock, workers=workers, budgets=budgets)
    if any(budget.impossible for budget in budgets):  # a warning says so; no figure is given
        return cost
    return replace(
        cost,
        source="VPP's show runtime",
        cycles_per_packet=together.cycles_per_packet if together else None,
        with_polling=together.cycles_with_polling if together and loaded_s is None else None,
        vectors_per_call=busiest.vectors_per_call if busiest else None,
    )


def _load_times(samples: Sequence[Sample], before: DutReading, after: DutReading) -> tuple[float, float]:
    """Find the times of the load between two readings, which were made in it, or in the silence around it."""
    between = range(bisect_left(samples, before.t_s, key=_TIME), bisect_right(samples, after.t_s, key=_TIME))
    loaded = [at for at in between if samples[at].asked_pps]
    if loaded and not samples[between[-1]].asked_pps:
        return samples[max(0, loaded[0] - 1)].t_s, samples[loaded[-1]].t_s
    return before.t_s + before.took_s, after.t_s


def _kernel_cost(
    cost: Cost, before: Observation, after: Observation, warnings: list[RunWarning], loaded: float
) -> Cost:
    """Add a kernel's figures. loaded: share of the time between the readings in which it forwarded."""
    old = {cpu.cpu: cpu for cpu in before.cpus}
    cpus, cycles = [], 0.0
    for now in after.cpus:
        then = old.get(now.cpu)
        if then is None or now.total_s <= then.total_s or now.busy_s < then.busy_s:
            warnings.append(RunWarning("no-cycles", f"CPU {now.cpu}: its times did not advance between two readings"))
            continue
        advanced_s, elapsed_s = now.total_s - then.total_s, cost.span_s / loaded
        if abs(advanced_s / elapsed_s - 1) > TIMES_APART:
            text = f"CPU {now.cpu}: its times advanced by {advanced_s:.1f} s in {elapsed_s:.1f} s"
            warnings.append(RunWarning("no-cycles", text))
            continue
        total = loaded * advanced_s
        known = now.packet_s is not None and then.packet_s is not None
        packets = ((now.packet_s or 0.0) - (then.packet_s or 0.0)) / total if known else None
        clocks = [clock for clock in (then.clock_hz, now.clock_hz) if clock]
        clock = sum(clocks) / len(clocks) if clocks else None
        busy = min(1.0, (now.busy_s - then.busy_s) / total)
        cpus.append(CpuShare(now.cpu, busy, packets, clock))
        cycles += busy * (clock or 0.0)
    cost = replace(cost, cpus=tuple(cpus), clock_hz=max((cpu.clock_hz or 0.0 for cpu in cpus), default=0.0) or None)
    if len(cpus) < len(after.cpus):  # a warning says so
        return cost
    if (reason := _no_cycles(cost)) is not None:
        warnings.append(RunWarning("no-cycles", f"no cycles per packet: {reason}"))
        return cost
    perf_hz = after.perf_hz
    ticks = ((tick_s, [cpu.busy_s / tick_s for cpu in after.cpus]) for tick_s in TICKS_S)
    tick_s = next((tick_s for tick_s, counts in ticks if all(abs(n - round(n)) < 1e-6 for n in counts)), 0.0)
    coarse = tick_s * len(cpus) / (cost.span_s * sum(cpu.busy for cpu in cpus))
    if coarse > COUNTERS_APART:
        text = f"CPU time is counted in ticks of {tick_s * 1000:.3g} ms, {format_share(coarse)} of the busy time"
        warnings.append(RunWarning("coarse-cpu-time", text))
    if perf_hz is not None and abs(perf_hz / cycles - 1) > PERF_APART:
        text = f"perf stat counted {perf_hz:.4g} cycles/s, CPU time x clock makes {cycles:.4g}"
        warnings.append(RunWarning("perf-differs", text))
    return replace(
        cost,
        source="CPU time x clock",
        cycles_per_packet=cycles / cost.forwarded_pps,
        perf_cycles_per_packet=None if perf_hz is None else perf_hz / cost.forwarded_pps,
    )


def _no_cycles(cost: Cost) -> str | None:
    """Explain why there are no cycles per packet; None if there are."""
    if not cost.cpus:
        return "the DUT did not report its CPU times"
    if any(cpu.clock_hz is None for cpu in cost.cpus):
        return "the DUT did not report its CPUs' clock"
    if not cost.forwarded_pps:
        return "nothing was forwarded"
    if not any(cpu.busy for cpu in cost.cpus):
        return "its CPUs report that they were idle, so the work is done, or accounted, elsewhere"
    return None


def _powered(cost: Cost, before: DutReading, after: DutReading, warnings: list[RunWarning]) -> Cost:
    power = mean_power((before, after))
    if power is None and any(reading.observation.energy_j is not None for reading in (before, after)):
        text = "power: the energy counter was not read, stood still, or may have wrapped around more than once"
        warnings.append(RunWarning("telemetry-missing", text))
    energy_uj = None if power is None or not cost.forwarded_pps else power / cost.forwarded_pps * 1e6
    return replace(cost, power_w=power, uj_per_packet=energy_uj)


def _rates(plan: Plan, samples: Sequence[Sample], begin_s: float, end_s: float) -> tuple[float, float]:
    """Return the frames per second that the tester sent and received, between the samples nearest to these times."""
    if len(samples) < 2:
        return 0.0, 0.0
    first, last = _nearest(samples, begin_s), _nearest(samples, end_s)
    if last.t_s <= first.t_s:
        return 0.0, 0.0
    offered = received = 0.0
    for direction in plan.directions:
        sent = [sample.reading.ports[direction.tx] for sample in (first, last)]
        came = [sample.reading.ports[direction.rx] for sample in (first, last)]
        if sent[1].t_s > sent[0].t_s and came[1].t_s > came[0].t_s:
            offered += (sent[1].opackets - sent[0].opackets) / (sent[1].t_s - sent[0].t_s)
            received += (came[1].ipackets - came[0].ipackets) / (came[1].t_s - came[0].t_s)
    return offered, received


def _nearest(samples: Sequence[Sample], t_s: float) -> Sample:
    at = bisect_left(samples, t_s, key=_TIME)
    return min(samples[max(0, at - 1) : at + 1], key=lambda sample: abs(sample.t_s - t_s))
