"""Intervals of a TCP leg, made of what both ends counted, and their statistics."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from effort import scaled
from hypothesis import given
from hypothesis import strategies as st
from tcp_runs import Path, make_leg

from trexbench.core.means import mean_uncertainty, student
from trexbench.core.tcp.intervals import Flow, find_flows
from trexbench.core.tcp.plan import HostReading, Leg, LegReadings, StreamCount, TcpPlan, Way
from trexbench.core.tcp.statistics import combine, describe, describe_ping

FORWARD = Leg(Way.FORWARD)
PLAN = TcpPlan(legs=(FORWARD,), time_s=10.0)


def flow_of(plan: TcpPlan, leg: LegReadings) -> Flow:
    (flow,) = find_flows(plan, leg)
    return flow


def codes(flow: Flow) -> set[str]:
    return {one.code for one in flow.warnings}


def test_rates_are_the_receivers_by_its_own_clock() -> None:
    rates = [100e6 * (1 + at) for at in range(10)]
    flow = flow_of(PLAN, make_leg(PLAN, FORWARD, Path(bps=rates)))
    assert [one.received_bps for one in flow.intervals] == pytest.approx(rates)
    assert [one.sent_bps for one in flow.intervals] == pytest.approx(rates)
    assert (flow.intervals[0].begin_s, flow.intervals[-1].end_s) == (0.0, 10.0)
    assert flow.received_bps == pytest.approx(550e6)
    assert (flow.sender, flow.receiver, codes(flow)) == ("client", "server", set())


def test_a_stretched_interval_of_the_receiver_has_its_own_length() -> None:
    leg = make_leg(PLAN, FORWARD, Path(bps=800e6))
    late = list(leg.server)
    late[5] = replace(late[5], at_s=late[5].at_s + 0.25)  # read late, but not counted late
    flow = flow_of(PLAN, replace(leg, server=tuple(late)))
    assert flow.intervals[4].received_bps == pytest.approx(800e6 / 1.25)
    assert flow.intervals[5].received_bps == pytest.approx(800e6 / 0.75)


def test_streams_are_summed_and_retransmits_counted_once() -> None:
    plan = replace(PLAN, streams=4)
    flow = flow_of(plan, make_leg(plan, FORWARD, Path(bps=100e6, retransmits=30, cwnd=14480)))
    assert flow.retransmits == 4 * 30
    first = flow.intervals[0]
    assert first.received_bps == pytest.approx(400e6)
    assert (len(first.streams), first.cwnd_bytes) == (4, 4 * 14480)
    assert first.rtt_s == pytest.approx(0.001)


def test_the_omitted_time_and_what_comes_after_the_end_are_left_out() -> None:
    plan = replace(PLAN, omit_s=2.0)
    flow = flow_of(plan, make_leg(replace(plan, time_s=12.0), FORWARD, Path(bps=[1e6, 1e6, *[50e6] * 10, 1e6, 1e6])))
    assert [one.received_bps for one in flow.intervals] == pytest.approx([50e6] * 10)
    assert flow.intervals[0].begin_s == 2.0


def test_clocks_of_any_origin_and_late_readings_pair_the_ends() -> None:
    leg = make_leg(PLAN, FORWARD, Path(bps=7e8, retransmits=1000), jitter={"client": 0.2})
    flow = flow_of(PLAN, leg)
    assert flow.retransmits == 1000
    assert all(one.sent_bps == pytest.approx(7e8) for one in flow.intervals[1:])
    few = (leg.client[0], leg.client[3], replace(leg.client[10], at_s=leg.client[10].at_s + 1))
    assert "counters-apart" not in codes(flow_of(PLAN, replace(leg, client=few))), "a busy sender's, of 128 connections"


@given(st.lists(st.integers(1, 9), max_size=4, unique=True))
def test_missing_readings_of_the_receiver_lose_no_payload(gone: list[int]) -> None:
    leg = make_leg(PLAN, FORWARD, Path(bps=6e8, retransmits=500))
    flow = flow_of(PLAN, replace(leg, server=tuple(one for at, one in enumerate(leg.server) if at not in gone)))
    assert flow.received_bps == pytest.approx(6e8)
    assert flow.retransmits == 500
    assert all(one.received_bps == pytest.approx(6e8) for one in flow.intervals)
    assert codes(flow) == ({"intervals-irregular"} if gone else set())


def test_a_sender_that_was_not_read_leaves_what_only_it_knows_unknown() -> None:
    flow = flow_of(PLAN, replace(make_leg(PLAN, FORWARD), client=()))
    assert flow.received_bps == pytest.approx(940e6)
    assert {(one.sent_bps, one.retransmits, one.rtt_s, one.cwnd_bytes) for one in flow.intervals} == {(None,) * 4}
    assert flow.retransmits is None


def test_without_the_receivers_readings_there_is_no_rate() -> None:
    flow = flow_of(PLAN, replace(make_leg(PLAN, FORWARD), server=()))
    assert (flow.intervals, flow.received_bps, codes(flow)) == ((), None, {"no-intervals"})
    dead = altered(make_leg(PLAN, FORWARD), "server", lambda at, one: counted(one, 0.0))
    for found, what in ((flow, "no interval was read"), (flow_of(PLAN, dead), "nothing came")):
        assert found.warnings[0].text == f"forward IPv4: {what} of what the client sent"


def altered(leg: LegReadings, host: str, change: Callable[[int, HostReading], HostReading]) -> LegReadings:
    """The leg with other readings of a host, each made of its number and what it was."""
    changes: dict[str, Any] = {host: tuple(change(at, one) for at, one in enumerate(getattr(leg, host)))}
    return replace(leg, **changes)


def counted(one: HostReading, factor: float) -> HostReading:
    """The reading with so many times the payload."""
    return replace(one, streams=tuple(replace(s, payload_bytes=int(factor * s.payload_bytes)) for s in one.streams))


def test_a_setback_costs_its_interval_and_raises_a_doubt() -> None:
    leg = make_leg(PLAN, FORWARD, Path(bps=6e8))
    flow = flow_of(PLAN, altered(leg, "server", lambda at, one: counted(one, 0.001) if at >= 6 else one))
    assert "counters-went-back" in codes(flow)
    assert len(flow.intervals) == 9 and all(one.received_bps >= 0 for one in flow.intervals)


QUICK = (StreamCount(1, True, 1 << 60),)
"""All that a client sends, in its buffer at once."""


@pytest.mark.parametrize(
    ("host", "change", "code"),
    [
        ("server", lambda at, one: replace(one, at_s=53.0) if at == 4 else one, "clock-went-back"),
        ("client", lambda at, one: replace(one, at_s=one.at_s * 0.9), "clocks-apart"),
        ("client", lambda at, one: replace(one, streams=QUICK) if at > 2 else one, "!clocks-apart"),  # it fills
        ("server", lambda at, one: counted(one, 2.0), "counters-apart"),
        ("server", lambda at, one: counted(one, 1.001), "!counters-apart"),  # it was read a little later
    ],
)
def test_ends_that_contradict_themselves_or_one_another(host: str, change: Any, code: str) -> None:
    plan = replace(PLAN, time_s=60.0) if code.endswith("clocks-apart") else PLAN
    told = codes(flow_of(plan, altered(make_leg(plan, FORWARD), host, change)))
    assert (code.removeprefix("!") in told) is not code.startswith("!")


def test_iperf3s_unknown_retransmits_are_none() -> None:
    def unknown(at: int, one: HostReading) -> HostReading:
        return replace(one, streams=tuple(replace(s, info={**s.info, "total_retrans": 2**64 - 1}) for s in one.streams))

    assert flow_of(PLAN, altered(make_leg(PLAN, FORWARD), "client", unknown)).retransmits is None


def test_time_grows_with_the_intervals_and_not_with_their_square() -> None:
    plan = replace(PLAN, time_s=scaled(2000.0, 250.0), interval_s=0.1)
    leg = make_leg(plan, FORWARD, Path(bps=100e6))
    begun_s = time.process_time()
    assert len(flow_of(plan, leg).intervals) == 10 * plan.time_s
    assert time.process_time() - begun_s < plan.time_s / 200


def test_a_reading_may_be_of_the_other_direction_only() -> None:
    """A server of which only the end is known of what it sent."""
    plan = TcpPlan(legs=(Leg(Way.BIDIR),), time_s=10.0)
    leg = make_leg(plan, plan.legs[0], Path(bps=100e6, retransmits=30))
    few = [
        one if at in (0, 10) else replace(one, streams=tuple(s for s in one.streams if not s.sends))
        for at, one in enumerate(leg.server)
    ]
    forward, reverse = find_flows(plan, replace(leg, server=tuple(few)))
    assert reverse.retransmits == 30 and "streams-missing" not in codes(reverse) | codes(forward)
    assert len(forward.intervals) == len(reverse.intervals) == 10
    assert [(flow.sender, flow.received_bps) for flow in (forward, reverse)] == [("client", 1e8), ("server", 1e8)]


FINITE = st.floats(0, 1e12)


@given(st.lists(FINITE, min_size=2, max_size=80))
def test_figures_are_numpys(values: list[float]) -> None:
    found = describe(values)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(values))
    assert found.sstdev == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-7 * max(values) + 1e-9)
    assert (found.uncertainty is None) == (len(values) < 6)


@given(st.lists(FINITE, min_size=1, max_size=80), st.integers(0, 100))
def test_pings_figures_are_numpys(times_s: list[float], lost: int) -> None:
    found = describe_ping(times_s, len(times_s) + lost)
    assert found.mdev_s == pytest.approx(np.std(times_s), rel=1e-6, abs=1e-7 * max(times_s) + 1e-9)
    assert found.loss == pytest.approx(lost / (len(times_s) + lost))


def test_no_value_no_statistics() -> None:
    assert describe([]) is None
    assert describe_ping([], 5) == describe_ping((), 5)
    assert describe_ping([], 5).loss == 1.0
    one = describe([5.0])
    assert one is not None and (one.sstdev, one.uncertainty, one.lag1) == (None, None, None)


def series(rng: np.random.Generator, count: int, lag1: float) -> list[float]:
    values = [rng.normal()]
    for _ in range(count - 1):
        values.append(lag1 * values[-1] + rng.normal() * (1 - lag1**2) ** 0.5)
    return [float(one) for one in values]


@pytest.mark.parametrize(
    ("count", "lag1", "least", "naive_most"),
    [(60, 0.0, 0.94, 0.97), (60, 0.34, 0.93, 0.88), (60, 0.78, 0.90, 0.58), (10, 0.78, 0.78, 0.58)],
)
def test_the_means_interval_covers_it_not_the_naive(count: int, lag1: float, least: float, naive_most: float) -> None:
    rng = np.random.default_rng(14)
    runs, batch, naive = scaled(600, 100), 0, 0
    for _ in range(runs):
        values = series(rng, count, lag1)
        mean = abs(float(np.mean(values)))
        uncertainty = mean_uncertainty(values)
        assert uncertainty is not None
        batch += mean <= uncertainty
        naive += mean <= student(count - 1) * float(np.std(values, ddof=1)) / count**0.5
    assert batch / runs >= least
    assert naive / runs <= naive_most


def test_repetitions() -> None:
    assert combine([5.0], [1.0]) == (5.0, 1.0)
    assert combine([5.0, 5.0], [1.0, 1.0]) == (5.0, pytest.approx(0.5**0.5))
    mean, uncertainty = combine([5.0, 6.0, 7.0], [None, None, None])
    assert mean == 6.0
    assert uncertainty == pytest.approx(4.30 / 3**0.5)


@pytest.mark.parametrize("repetitions", [2, 3, 5])
def test_the_interval_of_repetitions_holds_their_mean_in_95_of_100_runs(repetitions: int) -> None:
    runs = [combine(rates, [None]) for rates in np.random.default_rng(7).normal(0.0, 1.0, (4000, repetitions)).tolist()]
    held = sum(uncertainty is not None and abs(mean) <= uncertainty for mean, uncertainty in runs)
    assert held / len(runs) == pytest.approx(0.95, abs=0.01)
