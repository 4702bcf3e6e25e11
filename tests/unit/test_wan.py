"""A WAN as it is written, and what follows from it; its delay is tried before it is believed."""

from __future__ import annotations

import json

import pytest
from documents import to_document
from hypothesis import given
from hypothesis import strategies as st
from tcp_runs import Path, make_tcp_result

from trexbench.core.errors import ConfigError
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.plan import Leg, Ping, TcpEnvironment, TcpMode, Way
from trexbench.core.tcp.result import LineCalibration, from_document
from trexbench.core.tcp.wan import Wan, format_size, parse_size, parse_wan, wrong_delay
from trexbench.core.units import tcp_payload_bps
from trexbench.results.document import encode


def test_the_documents_line() -> None:
    line = parse_wan("20ms,10gbit")
    assert line == Wan(0.02, 10e9) and str(line) == "20 ms, 10 Gbit/s"
    assert line.bdp_bytes == line.queue_bytes == 25_000_000, "document 002's BDP, and its tbf's limit"


def test_every_part_in_any_order() -> None:
    short = "20ms,1gbit,queue=2.5mb,loss=0.01%,jitter=1ms"
    for text in (short, "loss=0.0001, jitter=1ms, rate=1gbit, queue=2500000, delay=20ms"):
        assert parse_wan(text) == Wan(0.02, 1e9, 2_500_000, 0.0001, 0.001)
    assert parse_wan("1gbit").queue_bytes == 1_250_000, "10 ms where there is no delay"
    assert parse_wan("20ms").bdp_bytes is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "delays nothing"),
        ("0ms", "delays nothing"),
        ("20ms,30ms", "twice"),
        ("fast", "not understood"),
        ("20ms,speed=3", "not understood"),
        ("20ms,loss=90%", "at most"),
        ("20ms,jitter=11ms", "less jitter"),
        ("20ms,queue=1mb", "a rate"),
        ("20ms,1gbit,queue=lots", "16777216"),
        ("2.1s", "at most"),
    ],
)
def test_what_is_no_line_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_wan(text)


@given(st.text(max_size=40))
def test_any_text_is_a_line_or_a_complaint(text: str) -> None:
    try:
        assert str(parse_wan(text))
    except ConfigError as error:
        assert "\n" not in str(error)


@given(st.integers(1, 10**11))
def test_sizes_are_read_as_they_are_written(size: int) -> None:
    assert parse_size(str(size)) == size
    assert parse_size(format_size(size)) == pytest.approx(size, rel=0.006)


@given(
    st.sampled_from(Way),
    st.sampled_from((4, 6)),
    st.integers(1, 128),
    st.booleans(),
    st.none() | st.integers(4096, 2**31),
    st.none() | st.sampled_from(("cubic", "bbr")),
    st.booleans(),
)
def test_modes_are_read_as_they_are_written(
    way: Way, version: int, streams: int, monitored: bool, buffers: int | None, congestion: str | None, pinned: bool
) -> None:
    mode = TcpMode(way, version, streams, monitored, buffers, congestion, pinned)
    assert TcpMode.parse(str(mode)) == mode
    assert mode.leg == Leg(way, version, 1, buffers, congestion)


LINE = parse_wan("20ms,1gbit,loss=0.1%")
PAYLOAD_BPS = tcp_payload_bps(1e9, 1500, 4, True, 0, 0, framing=0)
LEG = Leg(Way.FORWARD, buffer_bytes=5_000_000)


def test_a_round_trip_may_be_a_little_late_and_hardly_early_but_for_jitter() -> None:
    assert wrong_delay(Wan(0.02), ()) == "no echo request was answered"
    assert wrong_delay(Wan(0.02, jitter_s=0.002), (0.0165, 0.02, 0.0235)) is None
    for took_s, believed in ((0.0195, False), (0.0197, True), (0.0239, True), (0.0241, False)):
        assert (wrong_delay(Wan(0.02), (took_s,)) is None) is believed, took_s


def test_the_calibration_is_in_the_document_and_the_line_is_the_limit_in_spite_of_a_slow_start() -> None:
    known = LineCalibration((Ping(LEG, False, 1, (0.0201,)),))
    slow = Path(bps=[0.2 * PAYLOAD_BPS] * 3 + [0.985 * PAYLOAD_BPS] * 7, rtt_s=0.03, min_rtt_s=0.02)
    setup = TcpEnvironment(wan=LINE, wan_by="netem")
    result = make_tcp_result(slow, (LEG,), setup=setup, calibration=known)
    assert from_document(json.loads(encode(result))) == result == from_document(to_document(result))
    (flow,) = result.flows
    assert flow.verdict.limit is TcpLimit.LINK and "the WAN (20 ms, 1 Gbit/s, loss" in flow.verdict.reasons[0]
    assert from_document(to_document(make_tcp_result())).calibration is None
