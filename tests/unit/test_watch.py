"""When the DUT is looked at, what becomes of looks that fail or linger, and of a DUT that is another after the run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import pytest
from runs import HeldClock, SimulatedGenerator, World, make_plan, simulate

from trexbench.core.dut.telemetry import Observation
from trexbench.core.errors import DutChanged, DutError, DutLost, GeneratorLost
from trexbench.core.load.plan import Plan
from trexbench.core.load.sample import Phase, Sample, by_trial
from trexbench.core.strategy.base import LoadStep
from trexbench.dut.settings import Attestation, Mismatch
from trexbench.host.power import PowerReading
from trexbench.session.loop import Outcome, run
from trexbench.session.measure import Session
from trexbench.session.watch import Watcher, WithMeter


@dataclass
class Box:
    """fails: looks that are refused, by their number. takes_s: of the clock, each of them."""

    fails: tuple[int, ...] = ()
    clock: HeldClock = field(default_factory=HeldClock)
    takes_s: float = 0.0
    looks: list[bool] = field(default_factory=list)

    def observe(self, clear: bool = False) -> Observation:
        self.looks.append(clear)
        self.clock.now_s += self.takes_s
        if len(self.looks) in self.fails:
            raise DutError("the box is gone")
        return Observation(power_w=float(len(self.looks)))


def watched(plan: Plan, mode: str, box: Box | None = None, around: bool = False, pps: float = 0.67e6) -> Watcher:
    """A run, and who looked on."""
    clock = HeldClock()
    watcher = Watcher(box or Box(), plan, clock, mode, background=False, around=around)

    class Follow:
        def sampled(self, samples: list[Sample], step: LoadStep) -> None:
            clock.now_s = samples[-1].t_s
            watcher.sampled(samples, step)

    watcher.start()
    simulate(plan, World(pps), sink=Follow())
    watcher.finish()
    return watcher


def seen(watcher: Watcher) -> list[tuple[str, str]]:
    return [(one.moment.value, one.phase.value if one.phase else "") for one in watcher.dut_readings]


HOLD = [("start", ""), ("begin", "hold"), ("end", "hold"), ("begin", "confirm"), ("end", "confirm"), ("finish", "")]


def test_looks_at_every_hold_and_in_silence() -> None:
    box = Box()
    watcher = watched(make_plan(hold_s=10.0, confirm_s=10.0), "hold", box)
    assert seen(watcher) == HOLD
    assert box.looks == [True, True, False, True, False, False]
    begin, end = watcher.dut_readings[1:3]
    assert end.t_s - begin.t_s == pytest.approx(8.0)


def test_trials_of_a_dut_that_a_look_slows_down_are_looked_at_from_the_silence_around_them() -> None:
    plan, box = make_plan(hold_s=10.0, confirm_s=10.0), Box()
    watcher = watched(plan, "hold", box, around=True)
    assert seen(watcher) == [HOLD[0], *HOLD[3:]] and box.looks == [True, True, False, False]
    begin, end = watcher.dut_readings[1:3]
    assert end.t_s - begin.t_s == pytest.approx(10.0 + plan.drain_s)
    assert seen(watched(make_plan(hold_s=10.0, confirm_s=0.0), "hold", around=True)) == [*HOLD[:3], HOLD[-1]]


@pytest.mark.parametrize("confirm_s", [2.0, 4.0])
def test_a_look_that_takes_time_shortens_no_trial(confirm_s: float) -> None:
    plan, clock = make_plan(hold_s=10.0, confirm_s=confirm_s), HeldClock()
    watcher = Watcher(Box(clock=clock, takes_s=0.8), plan, clock, "hold", background=False, around=True)
    outcome = run(plan, SimulatedGenerator(plan, World(0.67e6), clock), clock, [watcher])
    (trial,) = by_trial(outcome.samples, Phase.CONFIRM).values()
    before, last = outcome.samples[trial[0] - 1], outcome.samples[trial[-1]]
    sent = last.reading.ports[0].opackets - before.reading.ports[0].opackets
    assert outcome.error is None and sent == pytest.approx(confirm_s * last.asked_of_port(0), rel=1e-3)


def test_that_there_was_no_trial_to_look_at_is_told() -> None:
    watcher = watched(make_plan(hold_s=10.0, confirm_s=10.0), "hold", around=True, pps=inf)
    (warning,) = watcher.warnings
    assert seen(watcher) == [HOLD[0], HOLD[-1]] and "--confirm 0 reads it in the hold" in warning.text


@pytest.mark.parametrize("kind", ["ramp", "search", "saturate"])
def test_the_last_look_is_late_enough_for_counters_that_are_fetched_twice_a_second(kind: str) -> None:
    """sys/net/iflib.c, iflib_timer_default: so old are those of an ix that its registers keep."""
    plan = make_plan(kind=kind)
    taken = simulate(plan, World(capacity_pps=0.67e6)).samples
    loaded = max(sample.t_s for sample in taken if any(sample.asked_pps.values()))
    assert taken[-1].t_s - loaded >= 1.0 - 1e-6


def test_a_ramp_is_looked_at_only_when_asked() -> None:
    watcher = watched(make_plan(hold_s=10.0, ramp_s=60.0, confirm_s=0.0), "ramp")
    ticks = [one for one in watcher.dut_readings if one.moment.value == "tick"]
    assert len(ticks) == 12 and all(one.phase is Phase.RAMP for one in ticks)
    assert [pair for pair in seen(watcher) if pair[0] != "tick"] == [*HOLD[:3], HOLD[-1]]


def test_off_never_looks() -> None:
    box = Box()
    assert not watched(make_plan(), "off", box).dut_readings and not box.looks


@pytest.mark.parametrize("failing", range(1, 7))
def test_a_look_that_fails_is_a_warning_and_no_more(failing: int) -> None:
    watcher = watched(make_plan(hold_s=10.0, confirm_s=10.0), "hold", Box(fails=(failing,)))
    assert seen(watcher) == HOLD[: failing - 1] + HOLD[failing:]
    (warning,) = watcher.warnings
    assert warning.code == "telemetry" and "the box is gone" in warning.text


def test_a_defect_in_a_reader_ends_no_run() -> None:
    class Broken:
        def observe(self, clear: bool = False) -> Observation:
            raise ZeroDivisionError("ours")

    watcher = Watcher(Broken(), make_plan(), HeldClock(), "hold", background=False)
    watcher.start()
    assert "ZeroDivisionError: ours" in watcher.warnings[0].text


def test_a_look_that_lingers_is_not_waited_for() -> None:
    """The end of the hold comes while its beginning is still being read."""
    gate, entered = threading.Event(), threading.Event()

    class Lingering:
        looks = 0

        def observe(self, clear: bool = False) -> Observation:
            self.looks += 1
            if self.looks == 1:
                return Observation()
            entered.set()
            assert gate.wait(10)
            return Observation()

    plan = make_plan(hold_s=3.0, confirm_s=0.0)
    box, clock = Lingering(), HeldClock()
    watcher = Watcher(box, plan, clock, "hold")

    watcher.start()
    simulate(plan, World(), sink=watcher)
    assert entered.wait(10)
    gate.set()
    watcher.finish()
    assert seen(watcher) == [("start", ""), ("begin", "hold"), ("finish", "")]
    assert "the reading before it was not over" in watcher.warnings[0].text


def test_a_meter_is_read_with_the_counters_and_may_fail() -> None:
    def dead() -> PowerReading:
        raise DutError("the plug does not answer")

    assert WithMeter(Box(), lambda: PowerReading(19.0)).observe() == replace(Observation(), power_w=19.0)
    found = WithMeter(Box(), dead).observe()
    assert found.missing[0].what == "power" and "does not answer" in found.missing[0].reason


FOUND = Attestation("box", "pfsense", True, {})
CHANGED = Attestation("box", "pfsense", True, {}, (Mismatch("firewall", "disabled", "enabled"),))


def after(read_back: Callable[[], Attestation] | None, outcome: Outcome) -> Outcome:
    nothing: Any = None
    session = Session(nothing, None, nothing, nothing, FOUND, None, print, read_back=read_back)
    return session._read_back(outcome)


def lost() -> Attestation:
    raise DutLost("the connection to box was lost")


def test_a_dut_that_is_as_it_was_and_a_run_that_failed_anyway_change_nothing() -> None:
    outcome, failed = Outcome(()), Outcome((), GeneratorLost("TRex went away"))
    assert after(lambda: FOUND, outcome) is outcome and after(None, outcome) is outcome
    assert after(lambda: pytest.fail("nobody asks"), failed) is failed


def test_a_dut_that_has_changed_makes_the_run_void() -> None:
    error = after(lambda: CHANGED, Outcome(())).error
    assert isinstance(error, DutChanged) and error.exit_code == 6
    words = "box is no longer what its config says: firewall: wanted disabled, found enabled: what was measured is void"
    assert str(error).startswith(words)


def test_a_dut_that_cannot_be_read_is_a_warning() -> None:
    (warning,) = after(lost, Outcome(())).warnings
    assert warning.code == "not-attested" and "after the run: the connection to box was lost" in warning.text
