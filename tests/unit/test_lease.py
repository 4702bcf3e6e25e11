"""The lease of a DUT against a model: clocks that differ, records and answers that are late or lost."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from effort import scaled
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trexbench.core.fleet.lease import DRIFT, Holding, LeaseRecord, Sight

LENGTH_S = 30.0
TESTERS = 3
AT = st.integers(0, TESTERS - 1)


@dataclass
class Clock:
    """A tester's clock: it began anywhere, and runs too fast or too slow by half of what two may differ."""

    offset_s: float
    rate: float

    def at(self, true_s: float) -> float:
        return self.offset_s + true_s * self.rate

    def of(self, its_s: float) -> float:
        """Return the true time at which it shows this one."""
        return (its_s - self.offset_s) / self.rate


@dataclass
class Asked:
    """A record on its way to the store; landed: what the store said, None: it has not arrived."""

    record: LeaseRecord
    asked_s: float
    landed: bool | None = None


@dataclass
class ModelTester:
    """One tester that does what trexbench.fleet.leases does, each step at any time."""

    name: str
    clock: Clock
    sight: Sight
    holding: Holding | None = None
    asked: Asked | None = None
    takings: int = 0
    first_s: float | None = None
    """Time of the first try of a renewal that was not answered yet."""
    late: list[Asked] = field(default_factory=list)
    """Records that it gave up waiting for, which may arrive all the same."""


class LeaseMachine(RuleBasedStateMachine):
    """The store has one latest record, and takes a record only under the next number."""

    def __init__(self) -> None:
        super().__init__()
        self.true_s = 0.0
        self.stored: list[LeaseRecord] = []
        drifts = (0.0, DRIFT / 2, -DRIFT / 2)
        clocks = [Clock(offset, 1 + drift) for offset, drift in zip((0.0, 1e4, -777.0), drifts, strict=True)]
        self.testers = [
            ModelTester(f"t{number}", clock, Sight(None, clock.at(0.0))) for number, clock in enumerate(clocks)
        ]

    @property
    def latest(self) -> LeaseRecord | None:
        return self.stored[-1] if self.stored else None

    def holds(self, one: ModelTester) -> bool:
        return one.holding is not None and not one.holding.is_over(one.clock.at(self.true_s))

    @rule(step_s=st.floats(0.01, LENGTH_S * 1.01))
    def time_passes(self, step_s: float) -> None:
        self.true_s += step_s

    @rule(at=AT, end=st.booleans())
    def time_comes_to_an_end(self, at: int, end: bool) -> None:
        """Just before the end of a tester's own lease, or to where it may take the DUT: there a mistake shows."""
        one = self.testers[at]
        its_s = one.sight.free_s if one.holding is None else one.holding.end_s - 1e-6 if end else one.holding.renew_s
        self.true_s = max(self.true_s, one.clock.of(its_s))

    @rule(at=AT)
    def takes_or_renews_at_once(self, at: int) -> None:
        self.looks(at)
        self.asks_for_the_dut(at)
        self.renews_or_gives_back(at, gives_back=False)
        self.a_record_arrives(at)
        self.the_answer_arrives(at)

    @rule(at=AT)
    def looks(self, at: int) -> None:
        one = self.testers[at]
        one.sight = one.sight.looked(self.latest, one.clock.at(self.true_s))

    @rule(at=AT)
    def asks_for_the_dut(self, at: int) -> None:
        one = self.testers[at]
        now_s = one.clock.at(self.true_s)
        if one.asked is None and not self.holds(one) and now_s >= one.sight.free_s:
            one.holding, one.first_s, one.takings = None, None, one.takings + 1
            one.asked = Asked(one.sight.next_record(f"{one.name}-{one.takings}", LENGTH_S, ""), now_s)

    @rule(at=AT, gives_back=st.booleans())
    def renews_or_gives_back(self, at: int, gives_back: bool) -> None:
        one = self.testers[at]
        if one.asked is None and self.holds(one):
            assert one.holding is not None
            record = one.holding.release() if gives_back else one.holding.renewal("")
            one.first_s = one.clock.at(self.true_s) if one.first_s is None else one.first_s
            one.asked = Asked(record, one.first_s)
            if gives_back:  # nothing is driven from here on
                one.late.append(one.asked)
                one.asked = one.holding = None

    def _lands(self, asked: Asked) -> None:
        if asked.landed is None:
            asked.landed = asked.record.number == len(self.stored) + 1
            if asked.landed:
                self.stored.append(asked.record)

    @rule(at=AT)
    def a_record_arrives(self, at: int) -> None:
        asked = self.testers[at].asked
        if asked is not None:
            self._lands(asked)

    @precondition(lambda self: any(one.late for one in self.testers))
    @rule(at=AT)
    def a_record_arrives_very_late(self, at: int) -> None:
        if self.testers[at].late:
            self._lands(self.testers[at].late.pop(0))

    @rule(at=AT)
    def the_answer_arrives(self, at: int) -> None:
        one = self.testers[at]
        if one.asked is None or one.asked.landed is None:
            return
        asked, one.asked, now_s = one.asked, None, one.clock.at(self.true_s)
        latest, one.first_s = self.latest, None
        written = latest is not None and (latest.number, latest.holder) == (asked.record.number, asked.record.holder)
        if not asked.landed and (one.holding is None or not written):
            one.holding = None
        elif one.holding is None:
            one.holding = Holding(asked.record, asked.asked_s)
        else:
            one.holding = one.holding.renewed(asked.record, asked.asked_s, now_s)

    @rule(at=AT)
    def the_answer_is_lost(self, at: int) -> None:
        one = self.testers[at]
        if one.asked is not None:
            one.late.append(one.asked)
            one.asked = None

    @invariant()
    def nobody_drives_beside_another(self) -> None:
        assert sum(map(self.holds, self.testers)) <= 1

    @invariant()
    def whoever_drives_stops_before_another_may_take_it(self) -> None:
        for one in self.testers:
            if one.holding is not None and self.holds(one):
                assert one.holding.stop_s < one.holding.end_s


TestLease = LeaseMachine.TestCase
TestLease.settings = settings(max_examples=scaled(2000, 40), stateful_step_count=60, deadline=None)


def test_a_lease_that_was_given_back_is_free_at_once() -> None:
    held = Holding(Sight(None, 0.0).next_record("t1", LENGTH_S, ""), 0.0)
    seen = Sight(held.record, 1.0)
    assert seen.free_s > held.end_s
    assert seen.looked(held.release(), 2.0).free_s == 2.0


@pytest.mark.parametrize("late_s", [LENGTH_S, LENGTH_S + 1])
def test_what_is_over_stays_over(late_s: float) -> None:
    held = Holding(Sight(None, 0.0).next_record("t1", LENGTH_S, ""), 0.0)
    assert held.renewed(held.renewal(""), 9.0, now_s=late_s) is held and held.is_over(late_s)
