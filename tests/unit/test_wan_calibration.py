"""A WAN is tried before it is believed; one that cannot be carried is refused, or scaled down."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from documents import to_document
from hypothesis import given
from hypothesis import strategies as st
from tcp_runs import Path, make_leg, make_tcp_result

from trexbench.core.errors import DutError
from trexbench.core.tcp.calibration import EXACT, FILLED, HEADROOM, STEPS, fitting_scale, payload_bps, wrong_delay
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.model import Leg, LegReadings, Ping, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.result import from_document
from trexbench.core.tcp.wan import Wan, parse_wan
from trexbench.results.document import encode
from trexbench.session.tcp.calibrate import calibrate

LINE = parse_wan("20ms,1gbit,loss=0.1%")
PAYLOAD_BPS = payload_bps(TcpEnvironment(), LINE, 4)
PLAN = TcpPlan((Leg(Way.FORWARD, buffer_bytes=5_000_000), Leg(Way.FORWARD, buffer_bytes=1_000_000)))


@dataclass
class Line:
    """A bench whose line carries what it is set to, times an error, and so much at most."""

    carries_bps: float = 100e9
    error: float = 0.96
    trip_s: float = 0.0201
    done: list[Any] = field(default_factory=list)
    wan: Wan | None = None

    def set_wan(self, wan: Wan) -> None:
        self.wan = wan
        self.done.append(wan)

    def set_buffers(self, size: int | None) -> None:
        self.done.append(size)

    def ping(self, leg: Leg, count: int, loaded: bool, over: threading.Event) -> Ping:
        return Ping(leg, loaded, count, (self.trip_s,) * count)

    def flow(self, leg: Leg, plan: TcpPlan, seen: Any, watched: bool) -> LegReadings:
        assert self.wan is not None and not self.wan.loss, "losses would hold it back"
        return make_leg(
            plan, leg, Path(bps=min(self.carries_bps, self.error * payload_bps(TcpEnvironment(), self.wan, 4)))
        )


def test_a_line_that_carries_what_it_should_stays_as_it_was_asked_for() -> None:
    bench, setup = Line(), TcpEnvironment(wan=LINE, wan_by="cable")
    found = calibrate(bench, PLAN, setup, scale=False)
    assert (found.setup, found.warnings) == (setup, ())
    tried, own = found.calibration.trials
    assert tried.wan.rate_bps == HEADROOM * 1e9 and own.wan == replace(LINE, loss=0.0)
    assert bench.done[-2:] == [None, LINE], "the hosts' own buffers, and the line with its losses"
    assert (tried.readings.leg.buffer_bytes, len(found.calibration.pings)) == (None, 1)


def test_a_line_that_is_not_carried_is_refused_or_scaled_with_the_buffers() -> None:
    setup = TcpEnvironment(wan=LINE, wan_by="cable")
    with pytest.raises(DutError, match=r"1\.3 times its rate .*--scale"):
        calibrate(Line(carries_bps=0.7 * PAYLOAD_BPS), PLAN, setup, scale=False)
    bench = Line(carries_bps=0.7 * PAYLOAD_BPS)
    found = calibrate(bench, PLAN, setup, scale=True)
    assert len(found.calibration.trials) == 3, "once more, in case that something else ran there"
    assert found.setup.wan == LINE.scaled(0.5) == bench.wan and found.setup.wan_asked == LINE
    assert [found.setup.buffer_bytes(leg) for leg in PLAN.legs] == [2_500_000, 500_000]
    assert [one.code for one in found.warnings] == ["wan-scaled"]
    with pytest.raises(DutError, match="--scale"):
        calibrate(Line(carries_bps=1e3), PLAN, setup, scale=True)


def test_netem_that_is_not_seen_to_carry_enough_is_a_doubt_since_the_dut_may_be_the_limit() -> None:
    found = calibrate(Line(carries_bps=0.95 * PAYLOAD_BPS), PLAN, TcpEnvironment(wan=LINE, wan_by="netem"), scale=False)
    assert (found.setup.wan, [one.code for one in found.warnings]) == (LINE, ["wan-headroom"])


def test_a_line_with_another_rate_is_a_doubt() -> None:
    for error in (FILLED - 0.01, EXACT + 0.01):
        found = calibrate(Line(error=error), PLAN, TcpEnvironment(wan=LINE, wan_by="netem"), scale=False)
        assert "wan-rate" in [one.code for one in found.warnings]


@pytest.mark.parametrize("trip_s", [0.0003, 0.0195 - 0.0001, 0.0241])
def test_a_line_with_another_delay_is_refused(trip_s: float) -> None:
    with pytest.raises(DutError, match=r"round trips are .* with a delay of 20\.0 ms"):
        calibrate(Line(trip_s=trip_s), PLAN, TcpEnvironment(wan=LINE, wan_by="netem"), scale=True)


def test_jitter_belongs_to_the_delay() -> None:
    assert wrong_delay(Wan(0.02, jitter_s=0.002), (0.0165, 0.02, 0.0235)) is None
    assert wrong_delay(Wan(0.02), (0.0165, 0.02, 0.0235)) is not None
    assert wrong_delay(Wan(0.02), ()) == "no echo request was answered"


@given(st.floats(1e6, 1e11), st.floats(0, 1e12))
def test_what_fits_is_carried_with_headroom(wanted_bps: float, carried: float) -> None:
    scale = fitting_scale(wanted_bps, carried)
    if scale is None:
        assert carried < STEPS[-1] * FILLED * HEADROOM * wanted_bps * 1.001
    else:
        assert carried >= 0.999 * scale * FILLED * HEADROOM * wanted_bps


def test_the_calibration_is_in_the_document_and_the_line_is_the_limit_in_spite_of_a_slow_start() -> None:
    found = calibrate(Line(), PLAN, TcpEnvironment(wan=LINE, wan_by="netem"), scale=False)
    slow = Path(bps=[0.2 * PAYLOAD_BPS] * 3 + [0.985 * PAYLOAD_BPS] * 7, rtt_s=0.03, min_rtt_s=0.02)
    legs = (Leg(Way.FORWARD, buffer_bytes=5_000_000),)
    result = make_tcp_result(slow, legs, setup=found.setup, calibration=found.calibration)
    assert from_document(json.loads(encode(result))) == result == from_document(to_document(result))
    (flow,) = result.flows
    assert flow.verdict.limit is TcpLimit.LINK and "the WAN (20.0 ms, 1.000 Gbit/s, loss" in flow.verdict.reasons[0]
    assert from_document(to_document(make_tcp_result())).calibration is None
