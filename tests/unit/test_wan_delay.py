"""A WAN's delay is tried before it is believed; what former releases tried besides stays in their documents."""

from __future__ import annotations

import json

from documents import to_document
from tcp_runs import Path, make_leg, make_tcp_result

from trexbench.core.tcp.calibration import LineCalibration, LineTrial, wrong_delay
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.model import Leg, Ping, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.result import from_document
from trexbench.core.tcp.wan import Wan, parse_wan
from trexbench.core.units import tcp_payload_bps
from trexbench.results.document import encode

LINE = parse_wan("20ms,1gbit,loss=0.1%")
PAYLOAD_BPS = tcp_payload_bps(1e9, 1500, 4, True, 0, 0, framing=0)
LEG = Leg(Way.FORWARD, buffer_bytes=5_000_000)


def test_jitter_belongs_to_the_delay() -> None:
    assert wrong_delay(Wan(0.02, jitter_s=0.002), (0.0165, 0.02, 0.0235)) is None
    assert wrong_delay(Wan(0.02), (0.0165, 0.02, 0.0235)) is not None
    assert wrong_delay(Wan(0.02), ()) == "no echo request was answered"


def test_a_round_trip_may_be_a_little_late_and_hardly_early() -> None:
    assert [wrong_delay(Wan(0.02), (one,)) is None for one in (0.0195, 0.0197, 0.0239, 0.0241)] == [
        False, True, True, False,
    ]  # fmt: skip


def test_the_calibration_is_in_the_document_and_the_line_is_the_limit_in_spite_of_a_slow_start() -> None:
    trial = LineTrial(LINE, make_leg(TcpPlan((LEG,)), LEG, Path(bps=PAYLOAD_BPS)))
    known = LineCalibration((Ping(LEG, False, 1, (0.0201,)),), (trial,))
    slow = Path(bps=[0.2 * PAYLOAD_BPS] * 3 + [0.985 * PAYLOAD_BPS] * 7, rtt_s=0.03, min_rtt_s=0.02)
    setup = TcpEnvironment(wan=LINE, wan_by="netem")
    result = make_tcp_result(slow, (LEG,), setup=setup, calibration=known)
    assert from_document(json.loads(encode(result))) == result == from_document(to_document(result))
    (flow,) = result.flows
    assert flow.verdict.limit is TcpLimit.LINK and "the WAN (20.0 ms, 1.000 Gbit/s, loss" in flow.verdict.reasons[0]
    assert from_document(to_document(make_tcp_result())).calibration is None
