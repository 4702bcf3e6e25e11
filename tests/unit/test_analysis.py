"""Where a direction saturates, who is to blame, and what casts doubt on it: one row for each way to be misled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from effort import scaled
from runs import SimulatedGenerator, World, codes, judged, make_plan, simulate

from trexbench.core.errors import DutError
from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import Phase, Reading
from trexbench.core.load.windows import measured_windows
from trexbench.core.strategy.analysis import analyse
from trexbench.core.verdict.knee import find_sustained, scatter_pps
from trexbench.core.verdict.parts import Limit
from trexbench.core.verdict.path import check_warmup

K = 1e3


@pytest.mark.parametrize(
    ("world", "limit", "at_least"),
    [
        pytest.param(World(), Limit.NONE, True, id="carries all that is offered"),
        pytest.param(World(700 * K), Limit.DUT, False, id="the router's knee"),
        pytest.param(World(50 * K, collapse=0.5), Limit.DUT, False, id="a router that collapses"),
        pytest.param(World(tx_limit_pps=700 * K), Limit.GENERATOR_TX, True, id="no loss, and no more to send"),
        pytest.param(World(rx_limit_pps=700 * K), Limit.GENERATOR_RX, True, id="the receiver drops"),
        pytest.param(World(700 * K, tx_limit_pps=900 * K), Limit.DUT, False, id="knee before the generator's limit"),
        pytest.param(World(905 * K, tx_limit_pps=900 * K), Limit.GENERATOR_TX, True, id="limit before the knee"),
        pytest.param(World(700 * K, cpu_at_full_percent=200.0), Limit.GENERATOR_TX, True, id="its CPU was full"),
        pytest.param(World(700 * K, cpu_at_full_percent=150.0), Limit.DUT, False, id="its CPU was busy, not full"),
        pytest.param(World(700 * K, cpu_at_full_percent=None), Limit.DUT, False, id="it does not say its CPU"),
        pytest.param(World(base_loss=0.01), Limit.NONE, True, id="lossy at any rate: a path that loses"),
        pytest.param(World(20 * K), Limit.DUT, False, id="lossy at any rate, ever more"),
        pytest.param(World(base_loss=0.0005), Limit.NONE, True, id="lossy under the threshold"),
        pytest.param(World(blips=((30.0, 32.0), (40.0, 41.0))), Limit.NONE, True, id="blips do not last"),
        pytest.param(World(80 * K), Limit.DUT, False, id="a few windows are good"),
    ],
)
def test_who_is_to_blame(world: World, limit: Limit, at_least: bool) -> None:
    analysis = judged(world)
    (result,) = analysis.directions
    assert (result.limit, result.at_least) == (limit, at_least)
    assert (result.uncertainty_pps > 0) is not at_least
    assert len(result.reasons) >= 1


@pytest.mark.parametrize("kind", ["ramp", "saturate"])
def test_loss_within_the_threshold_is_not_denied(kind: str) -> None:
    analysis = judged(World(1000 * K), kind=kind, loss_threshold=0.9)
    (result,) = analysis.directions
    assert result.limit is Limit.NONE and result.reasons[0].startswith("no sustained loss above 90 % ")


def test_a_generator_at_its_limit_that_also_loses_is_not_the_dut() -> None:
    """Past its own limit its frames come in bursts that a router drops: seen as queue_full, or as sent under asked."""
    bursts: dict[str, Any] = {"tx_limit_pps": 800 * K, "base_loss": lambda pps: 0.02 * (pps > 800 * K)}
    (result,) = judged(World(**bursts, reports_queue_full=False, cpu_at_full_percent=None)).directions
    assert (result.limit, result.at_least) == (Limit.GENERATOR_TX, True)
    assert result.maximum_pps == pytest.approx(800 * K, rel=0.05)


@pytest.mark.parametrize(("per_second", "limit"), [(600, Limit.DUT), (9000, Limit.DUT), (50000, Limit.GENERATOR_TX)])
def test_full_queues_are_no_limit_where_more_is_sent_without_them(per_second: int, limit: Limit) -> None:
    """9000 a second are more than 1 % of what is sent at the knee, and less of what is sent at the line's rate."""

    class Full(SimulatedGenerator):
        def read(self) -> Reading:
            return replace(super().read(), queue_full=int(per_second * self.clock.now_s))

    analysis = judged(World(700 * K), Full)
    assert analysis.directions[0].limit is limit


@pytest.mark.parametrize(("mean", "limit"), [(80.0, Limit.DUT), (90.0, Limit.GENERATOR_TX)])
def test_a_nervous_cpu_figure_is_judged_by_its_middle(mean: float, limit: Limit) -> None:
    class Nervous(SimulatedGenerator):
        def read(self) -> Reading:
            reading, cpu = super().read(), mean + self._rng.choice([-9.0, -1.0, 1.0, 9.0])
            return replace(reading, ports={p: replace(c, cpu_percent=cpu) for p, c in reading.ports.items()})

    analysis = judged(World(700 * K), Nervous, sample_s=0.1)
    assert analysis.directions[0].limit is limit


def test_pairs_of_ports_are_judged_apart() -> None:
    capacities = {"0->1": 300 * K, "2->3": 600 * K, "1->0": 900 * K}
    analysis = judged(World(capacities), bidir=True, ports=(0, 1, 2, 3))
    found = {str(r.direction): r for r in analysis.directions}
    for name, capacity in capacities.items():
        assert found[name].limit is Limit.DUT
        assert abs(found[name].maximum_pps - capacity) <= found[name].uncertainty_pps + capacity * 0.001
    assert found["3->2"].limit is Limit.NONE
    assert analysis.at_least and analysis.total_pps == sum(one.maximum_pps for one in found.values())


def test_the_figures_of_a_knee() -> None:
    plan, analysis = make_plan(), judged(World(700 * K))
    (r,) = analysis.directions
    assert r.last_good_pps is not None and r.first_bad_pps is not None and r.saturated_at_s is not None
    assert r.first_bad_pps - r.last_good_pps == pytest.approx(plan.step_pps(Direction(0, 1)), rel=1e-3)
    assert r.maximum_pps == pytest.approx(700 * K / (1 - plan.loss_threshold), rel=2e-3)
    assert r.low_pps is not None and r.high_pps is not None and r.low_pps < r.maximum_pps < r.high_pps
    assert 0 < r.uncertainty_pps < plan.step_pps(Direction(0, 1))
    assert r.max_received_pps == pytest.approx(700 * K, rel=1e-3)
    assert r.hold_loss == pytest.approx(1 - 700 * K / plan.offers[0].target_pps, rel=1e-3)
    rising_s = plan.ramp_s * r.last_good_pps / plan.offers[0].target_pps
    assert r.saturated_at_s == pytest.approx(plan.warmup_s + rising_s, abs=1e-3)
    assert r.confirmed_pps == r.low_pps and r.trials[-1].sent == pytest.approx(r.low_pps * plan.confirm_s, rel=1e-3)


@pytest.mark.parametrize(
    ("world", "kind", "code"),
    [
        pytest.param(World(700 * K, blips=((20.0, 21.0),)), "ramp", "transient-loss", id="loss that did not last"),
        pytest.param(World(700 * K, foreign_pps=20 * K), "ramp", "foreign-frames", id="somebody else sends"),
        pytest.param(World(foreign_pps=100), "ramp", "foreign-frames", id="a little: seen in the warm-up"),
        pytest.param(World(700 * K, blips=((20.0, 26.0),)), "ramp", "stall", id="it lost, and then carried more"),
        pytest.param(World(700 * K, blips=((70.0, 999.0),)), "ramp", "not-confirmed", id="no trial passes"),
        pytest.param(World(700 * K, blips=((72.0, 85.0),)), "ramp", "confirmed-lower", id="the third passes"),
        pytest.param(World(base_loss=0.01), "ramp", "lossy-path", id="the same loss at every rate"),
        pytest.param(World(cpu_at_full_percent=None), "ramp", "no-cpu", id="the CPU is not told"),
        pytest.param(World(reports_queue_full=False), "saturate", "no-queue-full", id="nor the queue"),
        pytest.param(World(700 * K, blips=((20.0, 21.0),)), "saturate", None, id="a saturated line loses anyway"),
        pytest.param(World(700 * K, latency_s=0.02), "ramp", None, id="frames in flight are neither lost nor foreign"),
        pytest.param(
            World(blips=((20.0, 21.0),), latency_s=0.05), "ramp", "transient-loss", id="nor is a queue foreign"
        ),
        pytest.param(World(720 * K), "search", None, id="loss just below the knee that a search's ramp meets lasted"),
        pytest.param(World(700 * K, read_s=0.001), "ramp", None, id="a millisecond between ports is no doubt"),
    ],
)
def test_doubts(world: World, kind: str, code: str | None) -> None:
    analysis = judged(world, kind=kind, hold_s=0.0 if kind == "ramp" else 40.0)
    assert codes(analysis) == ([code] if code else []), [c.text for c in analysis.warnings]


@pytest.mark.parametrize(
    ("capacity_pps", "begin_s", "end_s"),
    [pytest.param(690 * K, 30, 36.5, id="across the knee"), pytest.param(700 * K, 33, 34, id="just before it")],
)
def test_a_stall_of_the_generator_is_a_doubt_and_no_good_rate(
    capacity_pps: float, begin_s: float, end_s: float
) -> None:
    class Stalls(SimulatedGenerator):
        def _send(self, number: int, seconds: float) -> int:
            return 0 if begin_s < self.clock.now_s <= end_s else super()._send(number, seconds)

    analysis = judged(World(capacity_pps), Stalls, confirm_s=0.0)
    (r,) = analysis.directions
    assert r.limit is Limit.DUT and abs(r.maximum_pps - 1.001 * capacity_pps) <= r.uncertainty_pps
    assert r.maximum_pps > 600 * K and codes(analysis) == ["generator-gaps"]


def test_a_trial_confirms_no_more_than_what_was_sent() -> None:
    class Weak(SimulatedGenerator):
        def _send(self, number: int, seconds: float) -> int:
            return super()._send(number, seconds / (2 if self.clock.now_s > 77 else 1))

    analysis = judged(World(700 * K), Weak)
    (trial,) = analysis.directions[0].trials
    assert trial.passed and analysis.directions[0].confirmed_pps == pytest.approx(351 * K, rel=0.01)
    assert "the generator sent 350.8 kpps of 701.6 kpps" in analysis.warnings[0].text, "not what was asked"


@pytest.mark.parametrize(
    ("world", "limit", "pps"),
    [
        pytest.param(World(500 * K), Limit.DUT, 500 * K, id="what emerges"),
        pytest.param(
            World(500 * K, collapse=0.1), Limit.DUT, 500 * K - 0.1 * 943.5 * K, id="of a router that collapses"
        ),
        pytest.param(World(), Limit.NONE, 1443.5 * K, id="all of it"),
        pytest.param(World(500 * K, tx_limit_pps=900 * K), Limit.GENERATOR_TX, 500 * K, id="the line was not full"),
        pytest.param(World(tx_limit_pps=900 * K), Limit.GENERATOR_TX, 900 * K, id="nor was it, and all came back"),
        pytest.param(World(rx_limit_pps=500 * K), Limit.GENERATOR_RX, 500 * K, id="the receiver lost it"),
        pytest.param(World(500 * K, link_down_at_s=20), Limit.LINK, 500 * K, id="the link went"),
    ],
)
def test_a_saturated_line(world: World, limit: Limit, pps: float) -> None:
    (r,) = judged(world, kind="saturate", hold_s=30.0).directions
    assert (r.limit, r.at_least) == (limit, limit is not Limit.DUT)
    assert r.maximum_pps == pytest.approx(pps, rel=0.01)
    assert r.uncertainty_pps < 0.01 * r.maximum_pps and r.trials == ()
    if limit is Limit.DUT:
        assert r.first_bad_pps == pytest.approx(1443.5 * K, rel=0.01)
        assert "offered" in r.reasons[0] and "received" in r.reasons[0]


@pytest.mark.parametrize("keep", range(0, 70, scaled(3, 9)))
def test_a_run_cut_short_anywhere_still_has_a_verdict_and_never_claims_more(keep: int) -> None:
    plan = make_plan(bidir=True)
    samples = simulate(plan, World(700 * K)).samples
    for result in analyse(plan, samples[:keep]).directions:
        assert result.maximum_pps <= (701 * K if result.at_least else 703 * K)
        assert result.at_least or result.low_pps <= 701 * K <= result.high_pps <= 730 * K


@pytest.mark.parametrize(
    ("flags", "count", "index"),
    [("", 1, None), ("b", 1, 0), ("bb", 3, None), ("bbb", 3, 0), ("gbbgbbb", 3, 4), ("bgbgbg", 2, None)],
)
def test_sustained(flags: str, count: int, index: int | None) -> None:
    assert find_sustained([f == "b" for f in flags], count) == index


def test_scatter_ignores_a_trend() -> None:
    plan = make_plan()
    windows = measured_windows(plan, simulate(plan, World()).samples, plan.directions[0])[:10]
    assert scatter_pps(windows) < 5 and scatter_pps(windows[:2]) == 0.0


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (World(dead_ports=[0]), "none of the frames that port 0 sent came back on port 1"),
        (
            World(base_loss=0.9),
            "only 10.0 % of the frames that port 0 sent came back on port 1: "
            "likely causes are a --warmup beyond what the DUT carries, a missing",
        ),
        (World(tx_limit_pps=0.0), "nothing was sent on port 0"),
        (World(), None),
        (World(base_loss=0.4), None),
        (World(blips=((0.0, 2.0),)), None),
    ],
)
def test_the_warm_up_proves_the_path(world: World, words: str | None) -> None:
    plan = make_plan()
    samples = [s for s in simulate(plan, world).samples if s.phase in (Phase.BASELINE, Phase.WARMUP)]
    problem = check_warmup(plan, samples)
    assert (problem is None) if words is None else (problem is not None and words in problem and "\n" not in problem)


@pytest.mark.parametrize(
    ("longer", "words"),
    [
        (28, "port 0 received frames of 92 B, not 64 B: probably the router's ICMP errors; give the DUT a route"),
        (10, "ICMP errors"),
        (4, "the frames arrived on port 0: swap the cables or the DUT's routes, or have the profile send other addr"),
    ],
)
def test_errors_of_a_router_are_no_swapped_cables(longer: int, words: str) -> None:
    plan = make_plan(warmup_s=1.0, sample_s=0.1)

    class Refused(SimulatedGenerator):
        def read(self) -> Reading:
            reading = super().read()
            sent = reading.ports[0].opackets
            back = replace(reading.ports[0], obytes=64 * sent, ipackets=sent, ibytes=(64 + longer) * sent)
            return replace(reading, ports={0: back, 1: replace(reading.ports[1], ipackets=0)})

    outcome = simulate(plan, World(), of=Refused)
    assert isinstance(outcome.error, DutError) and words in str(outcome.error)


def test_a_profile_that_sends_both_ways_to_one_side_is_told() -> None:
    class SameWay(SimulatedGenerator):
        def read(self) -> Reading:
            reading = super().read()
            both = sum(port.opackets for port in reading.ports.values())
            ports = {n: replace(one, ipackets=n * both, ibytes=64 * both) for n, one in reading.ports.items()}
            return replace(reading, ports=ports)

    outcome = simulate(make_plan(bidir=True, warmup_s=1.0, sample_s=0.1), World(), of=SameWay)
    told = (
        "none of the frames that port 1 sent came back on port 0; the frames arrived on port 1: swap the cables or the "
    )
    told += "DUT's routes, or have"
    assert str(outcome.error).startswith(told)
