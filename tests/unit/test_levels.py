"""A figure's levels as events: losses, losses upon losses, recoveries, relapses, and single nights; drawn at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from effort import examples, lawful, scaled
from hypothesis import example, given
from hypothesis import strategies as st
from nights import date, make_row, make_rows, noisy

from trexbench.core.history.causes import groups_of
from trexbench.core.history.finding import Finding, Kind
from trexbench.core.history.known import NEWS_NIGHTS
from trexbench.core.history.levels import NEEDED_NIGHTS
from trexbench.core.history.regression import Judgement, judge_rows
from trexbench.report.events import first_sentence
from trexbench.report.groups import headline
from trexbench.report.regress import format_judgement


def judged(values: Sequence[float]) -> Judgement:
    return judge_rows(make_rows(values))


def kinds(values: Sequence[float]) -> list[str]:
    return [finding.kind.value for finding in judged(values).findings]


def words(values: Sequence[float]) -> list[str]:
    return [headline(group) for group in groups_of(judged(values))]


class World(NamedTuple):
    """Nights at levels one after the other, each of which begins at one of ``starts``; level: the first one."""

    values: list[float]
    starts: list[int]
    level: float
    noise: float


def draw_world(seed: int, *shares: float) -> World:
    """A world whose levels are these shares of the first one, give or take; each clear of the noise."""
    rng, drawn = random.Random(seed), random.Random(seed)
    noise = rng.choice([0.0003, 0.001, 0.003, 0.01])
    level, counts = 10 ** rng.uniform(5, 7), [rng.randint(12, 60), *(rng.randint(5, 20) for _ in shares)]
    kept, off, values = rng.choice([0.0, 0.0, 0.2]), 0.0, list[float]()  # kept: of a night's noise, by the next one
    for count, share in zip(counts, (1.0, *shares), strict=True):
        for _ in range(count):
            off = kept * off + (1 - kept**2) ** 0.5 * drawn.gauss(0, noise)
            values.append(level * share * (1 + off))
    return World(values, [sum(counts[:at]) for at in range(len(counts))], level, noise)


def near(night: str | None, number: int, within: int = 1) -> bool:
    return night in [date(n) for n in range(number - within, number + within + 1)]


WORLDS = scaled(60, 6)


@lawful(100, WORLDS)
def test_a_loss_upon_a_loss_is_an_event_of_its_own(seed: int) -> None:
    world = draw_world(seed, 0.92, 0.84)
    second, first = sorted(judged(world.values).regressions, key=lambda one: one.since or "", reverse=True)
    assert near(first.since, world.starts[1]) and near(second.since, world.starts[2])
    assert first.share == pytest.approx(-0.08, abs=0.02) and second.share == pytest.approx(-0.087, abs=0.02)
    assert second.before == first.after


@lawful(300, WORLDS)
def test_a_recovery_is_an_event_and_its_level_is_the_one_before_the_loss(seed: int) -> None:
    world = draw_world(seed, 0.9, 1.0)
    values, back = world.values, world.starts[2]
    assert "regression" in kinds(values[: back + 1])
    judgement = judged(values[: back + 3])
    (found,) = (one for one in judgement.findings if one.kind is Kind.RECOVERY)
    assert judgement.exit_code == 0 and near(found.since, back) and found.loss is not None
    assert near(found.loss.since, world.starts[1]) and abs(found.loss.length - (world.starts[2] - world.starts[1])) <= 2
    (usual,) = judgement.usual.values()
    assert usual.level == pytest.approx(world.level, rel=3 * world.noise + 1e-3)
    assert usual.noise is not None and usual.noise < 2.2 * world.noise * world.level, "not that of both levels"
    assert found.noise == usual.noise
    assert kinds([*values[: back + 4], *noisy(NEWS_NIGHTS, world.level, world.noise)]) == []


@lawful(500, WORLDS)
def test_a_relapse_is_told_with_the_nights_that_it_repeats(seed: int) -> None:
    world = draw_world(seed, 0.9, 1.0, 0.9)
    values, again = world.values, world.starts[3]
    (found,) = judged(values[: again + 4]).regressions
    assert near(found.since, again) and found.is_relapse and found.loss is not None
    assert near(found.loss.since, world.starts[1])


@lawful(700, WORLDS)
def test_the_blamed_night_lies_between_the_stated_ones(seed: int) -> None:
    world = draw_world(seed, 0.97)
    (found,) = judged(world.values).regressions or (None,)
    if found is None:
        assert world.noise == 0.01, "3 % are three of its standard deviations"
        return
    assert found.between is not None and found.between[0] <= (found.since or "") <= found.between[1]
    assert found.between[0] <= date(world.starts[1]) <= found.between[1]


@lawful(900, WORLDS)
def test_a_single_night_is_a_suspicion_that_so_many_like_it_confirm(seed: int) -> None:
    world = draw_world(seed)
    values = world.values
    bad = values[-1] * random.Random(seed).choice([0.8, 0.9, 1.15])
    (found,) = judged([*values, bad]).findings
    assert found.kind is Kind.SUSPICION and found.nights == 1 and judged([*values, bad]).exit_code == 0
    kind = Kind.REGRESSION if found.worse else Kind.IMPROVEMENT
    confirmed = [bad] * found.more
    assert [one.kind for one in judged([*values, bad, *confirmed]).findings] == [kind]
    if found.more > 1:
        assert kind not in [one.kind for one in judged([*values, bad, *confirmed[1:]]).findings]


def test_a_suspicion_of_several_nights_begins_with_the_first() -> None:
    values = [4.016, 4.014, 4.017, 4.014, 4.014, 4.014, 4.015, 3.992, 3.995, 3.960, 3.962]
    slower = "netgate-vpp 1.3 % slower"
    assert words(values[:-1]) == [f"{slower} tonight (1 cell); 2 more such nights make it a regression"]
    assert words(values) == [f"{slower} since 10 January (1 cell); one more such night makes it a regression"]
    assert [found.nights for found in judged(values).findings] == [2]
    assert [found.since for found in judged([*values, 3.961]).regressions] == [date(9)]


def test_steady_nights_are_seldom_suspected() -> None:
    """One night in a thousand at most; four standard deviations are one in 16 000."""
    nights = suspected = 0
    for seed in range(scaled(100, 4)):
        values = noisy(60, noise=0.01, seed=seed)
        for count in range(NEEDED_NIGHTS, len(values) + 1):
            nights += 1
            suspected += "suspicion" in kinds(values[:count])
    assert suspected <= max(1, nights / 1000)


def test_a_loss_its_recovery_and_its_relapse_in_words() -> None:
    """5.006 Mpps, 4.458 for five nights, 5.006 for three, and 4.458 again."""
    rng = random.Random(4)
    course = [5.006e6] * 11 + [4.458e6] * 5 + [5.006e6] * 3 + [4.458e6] * 2
    values = [level * (1 + rng.gauss(0, 1e-5)) for level in course]
    slower, faster = "netgate-vpp 10.9 % slower", "netgate-vpp 12.3 % faster"
    more = "one more such night makes it a regression"
    again = "as from 12 to 16 January"
    recovered = "netgate-vpp recovered on 17 January, was 10.9 % slower for 5 nights (1 cell)"
    assert words(values[:12]) == [f"{slower} tonight (1 cell); {more}"]
    assert words(values[:13]) == [f"{slower} since 12 January (1 cell)"]
    assert words(values[:17])[1:] == [f"{faster} tonight (1 cell); one more such night makes it a recovery"]
    assert words(values[:19]) == [recovered]
    assert words(values[:20]) == [f"{slower} again tonight, {again} (1 cell); {more}", recovered]
    assert words(values[:21]) == [f"{slower} again since 20 January, {again} (1 cell)"]
    suspected = judged(values[:12])
    assert "SUSPECTED" in format_judgement(suspected) and first_sentence(suspected).endswith(more)


def explained(*costs: tuple[int, dict[str, float]]) -> Finding:
    """The regression of a rate whose nights had these cycles by node, so many nights each."""
    nodes = [one for count, one in costs for _ in range(count)]
    whole = sum(nodes[0].values())
    rows = [
        make_row(n, 5e6 * whole / sum(one.values()) * rate, nodes=one, cycles_per_packet=sum(one.values()))
        for n, (one, rate) in enumerate(zip(nodes, noisy(len(nodes), 1.0), strict=True))
    ]
    return next(one for one in judge_rows(rows).regressions if one.metric.bounded)


def test_what_explains_a_change_is_of_the_nights_after_it() -> None:
    """ip4-lookup costs 20 cycles more; ten nights later it is repaired, and ip4-rewrite does."""
    before = {"ip4-lookup": 100.0, "ip4-rewrite": 80.0, "tx": 60.0}
    found = explained((40, before), (10, {**before, "ip4-lookup": 120.0}), (10, {**before, "ip4-rewrite": 100.0}))
    first, later = found.explanation
    assert first.startswith("ip4-lookup +20 of +20 cycles/packet since") and later == "of late ip4-rewrite +20 of +20"


def test_a_change_of_all_nodes_alike_names_no_node() -> None:
    before = {"ip4-lookup": 100.0, "ip4-rewrite": 80.0, "tx": 60.0, "error-drop": 0.1}
    (sentence,) = explained((30, before), (5, {name: 1.15 * cost for name, cost in before.items()})).explanation
    assert sentence.startswith("all nodes +15 % each (clock, memory or build): +36 cycles/packet since")
    (sentence,) = explained((30, before), (5, {**before, "tx": 96.0})).explanation
    assert sentence.startswith("tx +36 of +36")


@lawful(1100, WORLDS)
def test_a_drift_is_compared_with_the_nights_that_it_began_with(seed: int) -> None:
    rng = random.Random(seed)
    count, whole = rng.randint(40, 200), rng.uniform(0.03, 0.2)
    values = [value * (1 - whole * night / count) for night, value in enumerate(noisy(count, 5e6, 0.002, seed))]
    judgement = judged(values)
    (usual,) = judgement.usual.values()
    assert usual.values and usual.level == pytest.approx(values[0], rel=0.7 * whole + 0.01)
    assert all(finding.worse for finding in judgement.regressions) and judgement.regressions


@examples(60)
@given(st.lists(st.floats(0, 1e12), min_size=NEEDED_NIGHTS, max_size=80), st.integers(0, 3))
@example([0.0, 5e10, 6.5e-78, 4e11, 3e11, 0.0, 1.5e11, *[0.0] * 7, 1e12, 3e11, 4e11, 0.0], 1)  # a drift from a step on
def test_whatever_the_nights_there_is_a_usual_level(values: list[float], repeated: int) -> None:
    judgement = judged([one for value in values for one in [value] * (repeated + 1)])
    for usual in judgement.usual.values():
        assert min(values) <= usual.level <= max(values)
    for finding in judgement.findings:
        assert finding.nights >= 1
