"""Cost of a packet, from two looks: by hand on small tables, and where there is no number to give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trexbench.core.dut.cycles import Cost, find_costs
from trexbench.core.dut.runtime import NodeRuntime, ThreadRuntime
from trexbench.core.dut.telemetry import CpuTime, DutReading, Missing, Moment, Observation, PortCount
from trexbench.core.load.plan import Direction, Offer
from trexbench.core.load.sample import Phase, PortCounters, Reading, Sample
from trexbench.core.strategy.saturate import Saturate
from trexbench.report.run.costs import cost_words

PPS = 1e6
PLAN = Saturate((Offer(Direction(0, 1), 10e9, 64.0, 14.88e6, PPS),), hold_s=10.0)


def samples(sent_pps: float = PPS, received_pps: float = PPS) -> list[Sample]:
    """A hold from 0 to 10 s, a sample a second."""
    found = []
    for t in range(11):
        ports = {
            0: PortCounters(float(t), int(sent_pps * t), 0, 0, 0, 0, 0),
            1: PortCounters(float(t), 0, 0, int(received_pps * t), 0, 0, 0),
        }
        found.append(Sample(Phase.HOLD, float(t), {PLAN.directions[0]: sent_pps}, Reading(ports, 0)))
    return found


def look(moment: Moment, t_s: float, seen: Observation) -> DutReading:
    return DutReading(moment, t_s, 0.01, seen, Phase.HOLD)


def kernel(t_s: float, busy: float, pps: float = PPS, clock_hz: float | None = 2e9) -> Observation:
    """One CPU that is busy for this share, and what left by port 1."""
    cpu = CpuTime(1, 100 + t_s, 50 + busy * t_s, busy * t_s / 2, clock_hz)
    return Observation(cpus=(cpu,), ports=(PortCount(0, 0, 0), PortCount(1, 0, int(pps * t_s))))


def one_cost(before: Observation, after: Observation, taken: list[Sample] | None = None) -> Cost:
    taken = samples() if taken is None else taken
    looks = [look(Moment.BEGIN, 1.0, before), look(Moment.END, 9.0, after)]
    (found,) = find_costs(PLAN, taken, looks)
    return found


def codes(cost: Cost) -> list[str]:
    return [warning.code for warning in cost.warnings]


def test_a_kernel_pays_with_busy_time() -> None:
    found = one_cost(kernel(1.0, 0.6), kernel(9.0, 0.6))
    assert found.cycles_per_packet == pytest.approx(0.6 * 2e9 / PPS)
    assert found.forwarded_pps == pytest.approx(PPS) and found.offered_pps == pytest.approx(PPS)
    assert found.cpus[0].busy == pytest.approx(0.6) and found.cpus[0].packet_busy == pytest.approx(0.3)
    assert found.with_polling is None and found.source == "CPU time x clock" and not found.warnings
    assert one_cost(kernel(1.0, 0.6), kernel(9.0, 0.6), []).offered_pps == 0
    # half of the frames are lost: those that got through pay for them
    assert one_cost(kernel(1, 1), kernel(9, 1), samples(2 * PPS, PPS)).cycles_per_packet == pytest.approx(2000)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (kernel(1, 0.6, clock_hz=None), kernel(9, 0.6, clock_hz=None), "clock"),
        (kernel(1, 0.0), kernel(9, 0.0), "idle"),
        (kernel(1, 0.6, 0), kernel(9, 0.6, 0), "nothing was forwarded"),
        (Observation(), Observation(), "did not report its CPU times"),
        (kernel(9, 0.6), kernel(9, 0.6), "CPU 1: its times did not advance"),
    ],
)
def test_no_number_without_its_grounds(before: Observation, after: Observation, words: str) -> None:
    found = one_cost(before, after, samples(PPS, PPS if words != "nothing was forwarded" else 0.0))
    assert found.cycles_per_packet is None
    assert any(words in warning.text for warning in found.warnings if warning.code == "no-cycles")


@pytest.mark.parametrize(
    ("perf_hz", "told"), [(1.2e9, []), (1.31e9, []), (1.33e9, ["perf-differs"]), (0.6e9, ["perf-differs"])]
)
def test_perf_is_told_beside_cpu_time_and_doubted_where_they_differ(perf_hz: float, told: list[str]) -> None:
    found = one_cost(kernel(1, 0.6), replace(kernel(9, 0.6), perf_hz=perf_hz))
    assert found.cycles_per_packet == pytest.approx(1200) and codes(found) == told
    assert found.perf_cycles_per_packet == pytest.approx(perf_hz / PPS)


def cost_around(before: Observation, after: Observation, taken: list[Sample] | None = None) -> Cost:
    """From 0 to 10 s it forwards; it is looked at two seconds later."""
    loaded = samples() if taken is None else taken
    silence = [Sample(Phase.CONFIRM_DRAIN, t_s, {}, loaded[-1].reading) for t_s in (11.0, 12.0)]
    looks = [look(Moment.BEGIN, 0.0, replace(before, at_s=100.0)), look(Moment.END, 12.0, replace(after, at_s=112.0))]
    (found,) = find_costs(PLAN, [*loaded, *silence], looks)
    return found


def later(pps: float = PPS, total_s: float = 112.0) -> Observation:
    """A reading in the silence after the load."""
    return replace(kernel(10.0, 0.6, pps), cpus=(CpuTime(1, total_s, 56.0, 3.0, 2e9),))


def test_a_look_in_the_silence_after_the_load_counts_the_loaded_time_only() -> None:
    found = cost_around(kernel(0.0, 0.6), later())
    assert found.forwarded_pps == pytest.approx(PPS) and found.offered_pps == pytest.approx(PPS)
    assert found.cpus[0].busy == pytest.approx(0.6) and found.cycles_per_packet == pytest.approx(0.6 * 2e9 / PPS)
    assert not found.warnings


def test_times_that_advance_otherwise_than_the_clock_give_no_figure() -> None:
    """An emulated machine whose clock loses ticks."""
    found = cost_around(kernel(0.0, 0.6), later(total_s=106.0))
    assert found.cycles_per_packet is None and not found.cpus
    assert [one.text for one in found.warnings] == ["CPU 1: its times advanced by 6.0 s in 12.0 s"]


def test_what_was_measured_in_silence_too_is_not_the_loads() -> None:
    before, after = replace(kernel(0.0, 0.6), energy_j=0.0), replace(later(), energy_j=240.0, power_w=20.0, perf_hz=1e9)
    found = cost_around(before, after)
    assert found.cycles_per_packet is not None and found.perf_cycles_per_packet is None
    assert found.power_w is None and found.uj_per_packet is None
    (thread,) = runtime(358.0, 50_000_000, 195_312)
    vpp = Observation(threads=(replace(thread, time_s=12.0, in_pps=50e6 / 12),), clock_hz=2.2e9)
    found = cost_around(Observation(), vpp, samples(5e6, 5e6))
    (worker,) = found.workers
    assert found.cycles_per_packet == pytest.approx(358) and not found.warnings
    assert found.with_polling is None and worker.cycles_with_polling is None and len(worker.nodes) == 1
    assert worker.pps == pytest.approx(5e6)


def test_short_stretches_give_no_figure() -> None:
    looks = [look(Moment.BEGIN, 1.0, kernel(1, 0.5)), look(Moment.END, 1.5, kernel(1.5, 0.5))]
    (found,) = find_costs(PLAN, samples(), looks)
    assert found.cycles_per_packet is None and "only 0.5 s apart" in found.warnings[0].text


@pytest.mark.parametrize(("per_s", "length"), [(100, "10 ms"), (127, "7.87 ms"), (128, "7.81 ms")])
def test_ticks_of_cpu_time_are_a_doubt_where_little_is_measured(per_s: int, length: str) -> None:
    def ticked(t_s: float) -> Observation:
        seen = kernel(t_s, 0.01)
        cpu = replace(seen.cpus[0], busy_s=round(seen.cpus[0].busy_s * per_s) / per_s)
        return replace(seen, cpus=(cpu,))

    found = one_cost(ticked(1), ticked(9))
    assert "coarse-cpu-time" in codes(found) and any(f"ticks of {length}," in one.text for one in found.warnings)


def test_counters_that_disagree_are_a_doubt() -> None:
    found = one_cost(kernel(1, 0.5, 1.1 * PPS), kernel(9, 0.5, 1.1 * PPS))
    assert codes(found) == ["packets-unclear"]
    assert found.forwarded_pps == pytest.approx(1.1 * PPS)


@pytest.mark.parametrize("count", [None, 0], ids=["unknown", "the driver realtek-re-kmod 1102.01 of FreeBSD"])
def test_without_the_duts_counters_the_testers_do(count: int | None) -> None:
    silent = (PortCount(0, None, count), PortCount(1, None, count))
    found = one_cost(replace(kernel(1, 0.5), ports=silent), replace(kernel(9, 0.5), ports=silent))
    assert found.forwarded_pps == pytest.approx(PPS) and not found.warnings


def test_what_was_missing_is_told() -> None:
    after = replace(kernel(9, 0.5), missing=(Missing("power", "the plug does not answer"),))
    assert "power: the plug does not answer" in [c.text for c in one_cost(kernel(1, 0.5), after).warnings]


@pytest.mark.parametrize(
    ("before", "after", "watts"),
    [
        ({"power_w": 18.0}, {"power_w": 20.0}, 19.0),
        ({}, {"power_w": 20.0}, 20.0),
        ({"energy_j": 100.0, "power_w": 1.0}, {"energy_j": 252.0, "power_w": 1.0}, 19.0),
        ({"energy_j": 252.0}, {"energy_j": 100.0}, None),
        ({"energy_j": 252.0, "power_w": 18.0}, {"energy_j": 252.0, "power_w": 0.0}, None),
        ({"energy_j": 252.0, "power_w": 18.0}, {}, None),  # 18 W are of the time before
        ({}, {}, None),
    ],
)
def test_energy_per_packet(before: dict[str, float], after: dict[str, float], watts: float | None) -> None:
    found = one_cost(replace(kernel(1, 0.5), **before), replace(kernel(9, 0.5), **after))
    assert found.power_w == watts
    assert ("telemetry-missing" in codes(found)) == (watts is None and "energy_j" in {**before, **after})
    assert found.uj_per_packet == (None if watts is None else pytest.approx(watts))  # at 1 Mpps W are uJ


def runtime(clocks: float, vectors: int, calls: int) -> tuple[ThreadRuntime, ...]:
    nodes = (
        NodeRuntime("dpdk-input", "polling", calls, vectors, 0, 80.0, vectors / calls),
        NodeRuntime("ethernet-input", "active", calls, vectors, 0, clocks, vectors / calls),
    )
    return (ThreadRuntime(1, "vpp_wk_0", 1, 8.0, None, None, None, None, None, None, nodes),)


def test_vpp_pays_by_its_own_clocks_and_is_held_against_its_clock() -> None:
    after = Observation(threads=runtime(358.0, 40_000_000, 156_250), clock_hz=2.2e9)
    found = one_cost(Observation(), after, samples(2 * 5e6, 5e6))
    assert found.cycles_per_packet == pytest.approx(358) and found.with_polling == pytest.approx(438)
    assert found.vectors_per_call == pytest.approx(256) and found.loss == pytest.approx(0.5)
    assert found.effective_hz == pytest.approx(438 * 5e6) and not found.warnings
    assert found.budgets[0].share == pytest.approx(438 * 5e6 / 2.2e9)


def test_looks_of_different_stretches_are_no_pair() -> None:
    seen = kernel(1, 0.5)
    end = DutReading(Moment.END, 9.0, 0.01, seen, Phase.CONFIRM, 1)
    assert not find_costs(PLAN, samples(), [look(Moment.BEGIN, 1.0, seen), end])
    assert not find_costs(PLAN, samples(), [look(Moment.END, 9.0, seen)])


def test_each_stretch_between_two_ticks_of_a_ramp_has_its_cost() -> None:
    ticks = [DutReading(Moment.TICK, t, 0.01, kernel(t, 0.5), Phase.RAMP) for t in (1.0, 5.0, 9.0)]
    found = find_costs(PLAN, samples(), ticks)
    assert [(cost.begin_s, cost.end_s) for cost in found] == [(1.0, 5.0), (5.0, 9.0)]
    assert all(cost.cycles_per_packet == pytest.approx(1000) for cost in found)


def test_what_cannot_be_is_no_figure() -> None:
    """More clocks than VPP has, counters that were not cleared, a CPU that told nothing: doubts, and no number."""
    taken = samples(2 * 5e6, 5e6)
    dear = Observation(threads=runtime(1358.0, 40_000_000, 156_250), clock_hz=2.2e9)
    found = one_cost(Observation(), dear, taken)
    assert found.cycles_per_packet is None and found.with_polling is None and "budget-exceeds-clock" in codes(found)
    assert "the counters or the clock are wrong" in cost_words(found)
    assert "no-clock" in codes(one_cost(Observation(), replace(dear, clock_hz=None), taken))

    (thread,) = runtime(358.0, 40_000_000, 156_250)
    old = Observation(threads=(replace(thread, time_s=610.0),), clock_hz=2.2e9)
    found = one_cost(Observation(), old, taken)
    assert found.cycles_per_packet is None and "covers 610 s" in cost_words(found)

    short = replace(old, threads=(replace(thread, time_s=1.5),))
    (found,) = find_costs(PLAN, taken, [look(Moment.BEGIN, 1.0, Observation()), look(Moment.END, 2.5, short)])
    assert cost_words(found).endswith("1.5 s of counting is too short, 2 s are needed: lengthen --hold")

    few = Observation(threads=runtime(358.0, 7, 7), clock_hz=2.2e9)
    assert cost_words(one_cost(Observation(), few, taken)).count("no cycles per packet") == 1

    two = [replace(kernel(t_s, 0.6), cpus=(*kernel(t_s, 0.6).cpus, CpuTime(2, 5.0, 1.0, None, 2e9))) for t_s in (1, 9)]
    found = one_cost(*two)
    assert found.cycles_per_packet is None and "CPU 2: its times did not advance" in cost_words(found)


def test_a_dut_whose_clock_went_back_is_not_told_to_hold_longer() -> None:
    found = one_cost(replace(kernel(1, 0.6), at_s=500.0), replace(kernel(9, 0.6), at_s=20.0))
    (warning,) = found.warnings
    assert found.cycles_per_packet is None and "clock went back by 480 s" in warning.text
