"""The loop: what it tells the generator, and that whatever ends it leaves silent ports and all samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from effort import NIGHTLY, scaled
from runs import HeldClock, SimulatedGenerator, World, make_plan, simulate, simulate_with

from trexbench.core.errors import DutError, GeneratorError, GeneratorLost
from trexbench.core.load.plan import Plan
from trexbench.core.load.sample import Phase, Reading, Sample
from trexbench.core.strategy.analysis import analyse
from trexbench.core.strategy.base import LoadStep
from trexbench.core.verdict.parts import Limit
from trexbench.session import loop as runner
from trexbench.session.loop import SLACK_S, Interrupted, Outcome, run

SHORT = make_plan(warmup_s=2.0, ramp_s=8.0, hold_s=2.0, confirm_s=2.0)
TIMED = replace(SHORT, latency_s=2.0)
SENDING_S = SHORT.warmup_s + SHORT.ramp_s + SHORT.hold_s
BUSY = World(capacity_pps=0.5e6)


class StartsSlowly(SimulatedGenerator):
    """Its ports take more than a sample to start."""

    def start(self, rates_pps: Mapping[int, float], duration_s: float) -> None:
        super().start(rates_pps, duration_s)
        self.clock.now_s += 0.16


@pytest.mark.parametrize("seed", range(scaled(40, 8)))
def test_a_ramp_ends_however_late_its_samples_are(seed: int) -> None:
    """Its last rate then is not the target's, and one that went on from there began late again, and so for ever."""
    plan = make_plan(warmup_s=1.0, ramp_s=2.0, hold_s=0.0, sample_s=0.1, window_s=0.1)
    world = World(
        (9e6, 9e5)[seed % 2], late_s=0.1, seed=seed, fail_at_s=60.0, failure=GeneratorError("it does not end")
    )
    assert simulate(plan, world, of=StartsSlowly).error is None


class Tripwire:
    """Generator, clock and sink in one, which raises ``what`` at the ``nth`` call of any of their methods."""

    def __init__(self, plan: Plan, world: World, nth: int | None, what: BaseException, after: bool = False) -> None:
        self._clock = HeldClock()
        self._generator = SimulatedGenerator(plan, world, self._clock)
        self._nth, self._what, self._after = nth, what, after
        self.calls: list[str] = []
        self.seen: list[Sample] = []

    def _pass(self, name: str, call: Callable[[], Any]) -> Any:
        self.calls.append(name)
        trips = len(self.calls) == self._nth
        if trips and not self._after:
            raise self._what
        result = call()
        if trips:
            raise self._what
        return result

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real = getattr(self._clock if name in ("now", "sleep_until") else self._generator, name)
        return lambda *arguments: self._pass(name, lambda: real(*arguments))

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None:
        self.seen = list(samples)
        self._pass("sampled", lambda: None)

    @property
    def sending(self) -> bool:
        return bool(self._generator.rates)


def trip(nth: int | None, what: BaseException, after: bool = False) -> tuple[Tripwire, Outcome]:
    world = Tripwire(TIMED, BUSY, nth, what, after)
    return world, run(TIMED, world, world, [world])


CALLS = trip(None, ValueError())[0].calls
TRIPS = [nth for nth, name in enumerate(CALLS, 1) if NIGHTLY or nth % 47 == 0 or CALLS.count(name) < 10]
"""Calls at which something is raised: outside of nights every 47th, and all of the rare ones."""


@pytest.mark.parametrize(
    "what",
    [
        Interrupted("SIGTERM", 143),
        KeyboardInterrupt(),
        GeneratorLost("the server is gone"),
        ZeroDivisionError("a defect of ours"),
    ],
    ids=lambda what: type(what).__name__,
)
@pytest.mark.parametrize("after", [False, True], ids=["instead of the call", "right after it"])
def test_whatever_is_raised_wherever_stops_the_ports_and_keeps_the_samples(what: BaseException, after: bool) -> None:
    for nth in TRIPS:
        world, outcome = trip(nth, what, after)
        stops, starts = _last(world.calls, "stop"), _last(world.calls, "start")
        assert stops > starts, f"call {nth} ({world.calls[nth - 1]}): started and never told to stop"
        failed_stop = world.calls[-1] == "stop" and len(world.calls) == nth and not after
        assert failed_stop or not world.sending, f"call {nth} ({world.calls[nth - 1]}) left the ports sending"
        assert list(outcome.samples[: len(world.seen)]) == world.seen
        if world.calls[nth - 1] == "sampled" and isinstance(what, Exception):
            assert outcome.error is None and [c.code for c in outcome.warnings] == ["sink"]
        else:
            assert outcome.error is not None
            assert not isinstance(what, ZeroDivisionError) or outcome.error.__cause__ is what


def _last(calls: Sequence[str], name: str) -> int:
    return max((i for i, call in enumerate(calls) if call == name), default=-1)


def test_a_signal_at_any_line_of_the_loop_leaves_the_ports_silent() -> None:
    """Raise as a signal's handler would: between any two lines of the runner, wherever that is."""
    lines = _lines_until(None)
    assert lines > 200
    for nth in range(1, lines + 1, scaled(1, 3)):
        _lines_until(nth)


def _lines_until(nth: int | None) -> int:
    plan = replace(TIMED, ramp_s=4.0, windows=2, confirm_s=0.0)
    world = Tripwire(plan, World(), None, ValueError())
    count = 0

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != runner.__file__:
            return None
        if event == "line":
            count += 1
            if count == nth:
                raise Interrupted("SIGINT", 130)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run(plan, world, world, [world])
    except Interrupted:
        pass  # before the loop began or after it ended: nobody was there to take it
    finally:
        sys.settrace(before)
    assert not world.sending, f"a signal at line event {nth} left the ports sending"
    return count


def test_a_stop_that_fails_ends_the_run_as_incomplete() -> None:
    class Deaf(SimulatedGenerator):
        def stop(self) -> None:
            raise GeneratorLost("no answer")

    outcome = simulate(SHORT, World(), of=Deaf)
    assert isinstance(outcome.error, GeneratorLost) and "not-stopped" in [c.code for c in outcome.warnings]


def test_it_starts_once_updates_each_tick_and_every_start_is_bounded() -> None:
    outcome, generator, _ = simulate_with(SHORT, World())
    names = [call[0] for call in generator.calls]
    ticks = int(SENDING_S / SHORT.sample_s)
    assert outcome.error is None
    assert names == ["start"] + ["update"] * (ticks - 1) + ["stop", "stop"]
    longest_s = SENDING_S + SHORT.length_s(Phase.RECHECK) + SLACK_S
    assert generator.calls[0] == ("start", {0: SHORT.offers[0].warmup_pps}, longest_s)
    _, generator, _ = simulate_with(SHORT, BUSY)
    _, trial = [call for call in generator.calls if call[0] == "start"]
    assert trial[2] == SHORT.confirm_s + SLACK_S, "a trial starts anew for its own time"


@pytest.mark.parametrize(
    ("world", "phase", "words"),
    [
        (World(dead_ports=[0]), Phase.WARMUP, "none of the frames that port 0 sent came back on port 1"),
        (World(link_down_at_s=20.0), Phase.RAMP, "link of port 0 went down in the ramp"),
        (World(link_down_at_s=68.0), Phase.HOLD, "link of port 0 went down in the hold"),
        (World(fail_at_s=30.0, failure=GeneratorLost("TRex is gone")), Phase.RAMP, "TRex is gone"),
    ],
)
def test_what_ends_a_run_early(world: World, phase: Phase, words: str) -> None:
    outcome = simulate(make_plan(), world)
    assert isinstance(outcome.error, (DutError, GeneratorError)) and words in str(outcome.error)
    assert outcome.samples[-1].phase is phase
    (result,) = analyse(make_plan(), outcome.samples).directions
    assert result.limit is not Limit.DUT
    assert "link" not in words or (result.limit, result.at_least, result.maximum_pps > 0) == (Limit.LINK, True, True)


@pytest.mark.parametrize(
    "counter", ["opackets", "ipackets", "obytes", "ibytes", "ierrors", "oerrors", "queue_full", "t_s"]
)
def test_counters_that_go_backwards_end_the_run_and_never_become_a_number(counter: str) -> None:
    class Restarted(SimulatedGenerator):
        def read(self) -> Reading:
            reading = super().read()
            ports = {p: replace(c, ierrors=9, oerrors=9) for p, c in reading.ports.items()}
            if self.clock.now_s >= 30 and counter != "queue_full":
                ports = {p: replace(c, **{counter: 0}) for p, c in ports.items()}
            full = 0 if self.clock.now_s >= 30 and counter == "queue_full" else 9
            return Reading(ports, full)

    plan = make_plan()
    outcome = simulate(plan, World(), of=Restarted)
    assert isinstance(outcome.error, GeneratorError) and outcome.samples[-1].t_s == 30.0
    before = analyse(plan, outcome.samples[:-1])
    after = analyse(plan, outcome.samples)
    assert after.directions == before.directions
    assert [c.code for c in after.warnings] == ["counters-back"]


class Slow(HeldClock):
    """Makes one long sample of the whole warm-up."""

    def sleep_until(self, t_s: float) -> None:
        super().sleep_until(t_s + (9.0 if self.now_s < 5 else 0.0))


def test_a_warm_up_that_took_one_long_sample_still_has_to_prove_the_path() -> None:
    plan, clock = make_plan(), Slow()
    outcome = run(plan, SimulatedGenerator(plan, World(dead_ports=[0]), clock), clock)
    assert isinstance(outcome.error, DutError)


@pytest.mark.parametrize("pulled_s", [10.5, 11.0, 11.5, 12.0, 15.5])
@pytest.mark.parametrize("unseen_s", [1.0, 1.5, 2.0, 4.0])
def test_a_cable_pulled_after_such_a_warm_up_is_a_link_that_failed(pulled_s: float, unseen_s: float) -> None:
    plan, clock = make_plan(), Slow()
    world = World(blips=[(pulled_s, 1e9)], link_down_at_s=pulled_s + unseen_s)
    outcome = run(plan, SimulatedGenerator(plan, world, clock), clock)
    (result,) = analyse(plan, outcome.samples).directions
    assert result.limit is Limit.LINK


@pytest.mark.parametrize("warmup_s", [2.0, 2.4, 2.5, 2.6, 3.0, 7.25])
@pytest.mark.parametrize("late_s", [0.0, 0.4])
def test_no_warm_up_ends_unproven(warmup_s: float, late_s: float) -> None:
    for seed in range(10):
        outcome = simulate(make_plan(warmup_s=warmup_s), World(dead_ports=[0], late_s=late_s, seed=seed))
        assert isinstance(outcome.error, DutError) and outcome.samples[-1].phase is Phase.WARMUP


class Stale(SimulatedGenerator):
    """Its statistics stand still from ``begin_s`` to ``end_s``; what they were then is read at the stamps of now."""

    begin_s, end_s = 0.0, 0.0
    _held: Reading | None = None

    def read(self) -> Reading:
        reading = super().read()
        if not self.begin_s <= self.clock.now_s < self.end_s:
            return reading
        self._held = self._held or reading
        ports = {p: replace(c, t_s=reading.ports[p].t_s) for p, c in self._held.ports.items()}
        return replace(self._held, ports=ports)


def run_stale(begin_s: float, end_s: float, world: World | None = None) -> Outcome:
    plan, clock = make_plan(bidir=True), HeldClock()
    generator = Stale(plan, world or World(), clock)
    generator.begin_s, generator.end_s = begin_s, end_s
    return run(plan, generator, clock)


@pytest.mark.parametrize(
    ("begin_s", "end_s", "said"),
    [
        (20.0, 1e9, "port 0 has counted no frame for 10.0 s, asked for"),
        (66.0, 1e9, "port 0 has counted no frame for 4.0 s, asked for"),  # to the end of the hold
        (0.0, 1e9, "nothing was sent on port 0 in the warm-up"),
    ],
)
def test_counters_that_stand_still_end_the_run_and_blame_no_dut(begin_s: float, end_s: float, said: str) -> None:
    outcome = run_stale(begin_s, end_s)
    assert isinstance(outcome.error, GeneratorError) and said in str(outcome.error)
    assert all(r.limit is not Limit.DUT for r in analyse(make_plan(bidir=True), outcome.samples).directions)


@pytest.mark.parametrize("length_s", [1.0, 1.5, 2.0, 5.0, 9.0])
def test_counters_that_stand_still_for_a_while_are_a_doubt_and_invent_no_rate(length_s: float) -> None:
    plan = make_plan(bidir=True)
    sound, outcome = simulate(plan), run_stale(20.0, 20.0 + length_s)
    assert outcome.error is None
    # after one second the first reading that could have stood still is a new one again
    assert [c.code for c in outcome.warnings] == ([] if length_s == 1.0 else ["standstill"])
    found, right = (analyse(plan, one.samples).directions for one in (outcome, sound))
    for one, other in zip(found, right, strict=True):
        assert one.max_received_pps == pytest.approx(other.max_received_pps)
        assert (one.limit, one.maximum_pps) == (other.limit, other.maximum_pps)
        assert (one.sent, one.received) == (other.sent, other.received)


@pytest.mark.parametrize("length_s", [1.0, 4.0])
def test_a_knee_behind_stale_counters_is_still_the_duts(length_s: float) -> None:
    outcome = run_stale(18.0, 18.0 + length_s, World(capacity_pps=0.7e6))
    for result in analyse(make_plan(bidir=True), outcome.samples).directions:
        assert result.limit is Limit.DUT and abs(result.maximum_pps - 0.7e6) <= result.uncertainty_pps
