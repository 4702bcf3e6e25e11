"""Raw samples -> windows: whole samples, about a second long, every frame counted once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from runs import World, make_plan, simulate

from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import Phase, PortCounters, Reading, Sample, find_setback
from trexbench.core.load.windows import RunWindows, build_window, last_windows, measured_windows, once

D = Direction(0, 1)
PLAN = make_plan()


def sample(
    t_s: float, sent: int, received: int, phase: Phase = Phase.RAMP, asked: float = 1e3, **more: float
) -> Sample:
    """Port 1 is read ``skew`` seconds after port 0."""
    skew = more.get("skew", 0.0)
    zero = PortCounters(t_s, sent, sent * 64, 0, 0, 0, 0, cpu_percent=more.get("cpu"))
    one = PortCounters(t_s + skew, 0, 0, received, received * 64, int(more.get("ierrors", 0)), 0)
    return Sample(phase, t_s, {D: asked}, Reading({0: zero, 1: one}))


def test_functions_of_one_name_in_two_modules_keep_their_own_results() -> None:
    def named(module: str) -> Callable[[RunWindows, Direction], str]:
        def find(measured: RunWindows, direction: Direction) -> str:
            return module

        find.__module__ = module
        return once(find)

    measured = RunWindows(PLAN, ())
    assert [named(module)(measured, D) for module in ("here", "there", "here")] == ["here", "there", "here"]


@pytest.mark.parametrize(
    ("sent", "received", "lost", "loss", "bad"),
    [
        (1000, 1000, 0, 0.0, False),
        (1000, 998, 2, 0.002, True),
        (1000, 1001, -1, -0.001, False),  # more than was sent: a finding, not a loss
        (1000, 0, 1000, 1.0, True),
        (0, 5, -5, None, False),  # nothing sent is no loss and no zero
    ],
)
def test_loss(sent: int, received: int, lost: int, loss: float | None, bad: bool) -> None:
    window = build_window(D, [sample(0, 0, 0), sample(1, sent, received)])
    assert (window.lost, window.loss, window.is_bad(0.001)) == (lost, loss, bad)


@given(st.integers(1, 10**6))
def test_a_loss_of_exactly_the_threshold_is_good_at_any_rate(thousands: int) -> None:
    window = build_window(D, [sample(0, 0, 0), sample(1, thousands * 1000, thousands * 999)])
    assert not window.is_bad(0.001)


def test_rates_are_over_each_ports_own_interval() -> None:
    begin, end = sample(0, 0, 0, skew=0.0), sample(1, 1000, 1001, skew=0.001)
    window = build_window(D, [begin, end])
    assert window.sent_pps == 1000 and window.received_pps == pytest.approx(1000)


def test_asked_is_weighted_by_time_and_cpu_is_the_mean() -> None:
    slow, fast = sample(1, 100, 100, asked=100, cpu=10.0), sample(4, 700, 700, asked=200, cpu=30.0)
    window = build_window(D, [sample(0, 0, 0), slow, fast])
    assert window.asked_pps == pytest.approx(175) and window.cpu_percent == 20.0


@pytest.mark.parametrize("sample_s", [0.05, 0.1, 0.25, 0.3, 0.7, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("late_s", [0.0, 0.02])
def test_windows_cover_ramp_and_hold_without_overlap(sample_s: float, late_s: float) -> None:
    plan = make_plan(sample_s=sample_s, warmup_s=6.0, ramp_s=41.3, hold_s=7.7, confirm_s=0.0)
    samples = simulate(plan, World(late_s=late_s)).samples
    windows = measured_windows(plan, samples, D)
    begun = next(a.t_s for a, b in itertools.pairwise(samples) if b.phase is Phase.RAMP)
    assert windows[0].begin_s == begun
    assert all(a.end_s == b.begin_s for a, b in itertools.pairwise(windows))
    longest = max(1.0, sample_s) + sample_s / 2 + 2 * late_s
    assert all(max(1.0, sample_s) - sample_s / 2 <= w.end_s - w.begin_s <= longest + 1e-9 for w in windows)
    last = [s for s in samples if s.phase is Phase.HOLD][-1]
    assert last.t_s - windows[-1].end_s < max(1.0, sample_s)  # what is left is less than a window


def test_the_warmup_the_drain_and_the_trials_are_in_no_window() -> None:
    plan = make_plan(latency_s=2.0)
    samples = simulate(plan, World(capacity_pps=0.5e6)).samples
    assert {s.phase for s in samples} == set(Phase) - {Phase.SEARCH, Phase.ZOOM, Phase.ZOOM_DRAIN}
    assert {w.phase for w in measured_windows(plan, samples, D)} == {Phase.RAMP, Phase.HOLD}


@pytest.mark.parametrize("sample_s", [0.1, 0.25, 1.0, 2.0])
def test_the_last_windows_are_there_while_the_ramp_runs(sample_s: float) -> None:
    plan = make_plan(sample_s=sample_s)
    samples = [s for s in simulate(plan, World()).samples if s.phase is Phase.RAMP]
    tail = last_windows(plan, samples, D, 3)
    assert len(tail) == 3 and tail[-1].end_s == samples[-1].t_s
    assert all(a.end_s == b.begin_s for a, b in itertools.pairwise(tail))


def test_a_filled_line_gets_a_window_to_settle() -> None:
    plan = make_plan(kind="saturate", hold_s=10.0)
    samples = simulate(plan, World()).samples
    assert RunWindows(plan, samples).judged(D) == measured_windows(plan, samples, D)[1:]


@examples(60)
@given(st.integers(1, 60), st.sampled_from(["opackets", "ipackets", "ierrors"]), st.integers(1, 10**6))
def test_windows_end_where_a_counter_goes_backwards(at: int, name: str, by: int) -> None:
    samples = list(simulate(PLAN, World()).samples)
    at += 5  # beyond the warm-up
    port = 0 if name == "opackets" else 1
    lower = max(0, getattr(samples[at - 1].reading.ports[port], name) - by)
    for i in range(at, len(samples)):
        ports = dict(samples[i].reading.ports)
        ports[port] = replace(ports[port], **{name: lower})
        samples[i] = replace(samples[i], reading=replace(samples[i].reading, ports=ports))
    went_back = find_setback(samples[at - 1], samples[at], (0, 1))
    windows = measured_windows(PLAN, samples, D)
    assert all(w.sent >= 0 and w.received >= 0 and w.ierrors >= 0 for w in windows)
    if went_back:
        assert name in went_back and windows == measured_windows(PLAN, samples[:at], D)


@pytest.mark.parametrize(
    ("about", "sent", "ends"),
    [
        ("counters that move", [0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
        ("they stand still, and make up for it", [0, 1, 2, 2, 2, 5, 6], [1, 5, 6]),
        ("standing still began between two samples", [0, 1, 1.4, 1.4, 1.4, 5, 6], [1, 5, 6]),
        ("nothing was sent", [0, 1, 2, 2, 2, 3, 4], [1, 2, 3, 4, 5, 6]),
        ("they never move again", [0, 1, 2, 2, 2, 2, 2], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_no_window_ends_in_the_middle_of_stale_counters(about: str, sent: list[float], ends: list[int]) -> None:
    samples = [sample(t, round(1e3 * one), round(1e3 * one)) for t, one in enumerate(sent)]
    windows = measured_windows(PLAN, samples, D)
    assert [w.end_s for w in windows] == ends, about
    assert all(w.sent_pps <= 1000 for w in windows)
