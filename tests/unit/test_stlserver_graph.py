"""Rates, multipliers and the links between streams."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_stlserver_state import STREAM

from trexbench.stlserver.state import graph
from trexbench.stlserver.state.graph import Multiplier
from trexbench.stlserver.state.stream import ServerStream, parse_stream
from trexbench.stlserver.wire import Params, RpcError

TEN_GIGABIT = 10e9


def stream(stream_id: int = 1, length: int = 60, kind: str = "pps", value: float = 1.0, **changes: Any) -> ServerStream:
    """A stream of ``length`` bytes without FCS."""
    packet = {"binary": "A" * 4 * -(-length // 3), "meta": ""}
    mode = {"type": "continuous", "rate": {"type": kind, "value": value}}
    return parse_stream(Params({**STREAM, "mode": mode, "packet": packet, **changes}), stream_id, core_count=1)


def burst(stream_id: int, pkts: int, **changes: Any) -> ServerStream:
    mode = {"type": "single_burst", "total_pkts": pkts, "rate": {"type": "pps", "value": 1000}}
    return stream(stream_id, mode=mode, **changes)


def built(*streams: ServerStream) -> graph.Graph:
    return graph.build({one.stream_id: one for one in streams}, TEN_GIGABIT)


@pytest.mark.parametrize(
    ("about", "kind", "value", "pps"),
    [
        ("packets", "pps", 5.0, 5.0),
        ("L2 bits: 64 bytes", "bps_L2", 5120.0, 10.0),
        ("L1 bits: 84 bytes", "bps_L1", 6720.0, 10.0),
        ("a share of the line", "percentage", 100.0, 14_880_952.38),
    ],
)
def test_a_streams_own_rate(about: str, kind: str, value: float, pps: float) -> None:
    rate = stream(kind=kind, value=value).rate(TEN_GIGABIT)
    assert rate.pps == pytest.approx(pps, rel=1e-9)
    assert rate.bps_l2 == pytest.approx(pps * 512, rel=1e-9)
    assert rate.bps_l1 == pytest.approx(pps * 672, rel=1e-9)


def test_short_packets_are_padded() -> None:
    assert len(stream(length=30).packet) == 60


def test_packets_that_change_size_count_with_their_mean() -> None:
    variable = {"type": "flow_var", "name": "v", "size": 2, "op": "inc", "step": 1}
    variable.update(init_value=60, min_value=60, max_value=300)
    program = {"instructions": [variable, {"type": "trim_pkt_size", "name": "v"}]}
    assert stream(length=300, vm=program).rate(TEN_GIGABIT).bps_l2 == pytest.approx((180 + 4) * 8)


@given(
    pps=st.floats(0.1, 1e6),
    kind=st.sampled_from(["raw", "pps", "bps", "bpsl1", "percentage"]),
    value=st.floats(1e-6, 1e12),
)
def test_never_above_the_line_without_force(pps: float, kind: str, value: float) -> None:
    one = built(stream(value=pps))
    try:
        factor = graph.factor_for(one, Multiplier(kind, "abs", value), 1.0, TEN_GIGABIT, force=False)
    except RpcError as err:
        assert "exceeds port line rate" in str(err)
        return
    assert one.peak.scaled(factor).bps_l1 <= TEN_GIGABIT * (1 + 1e-12)


def test_force_goes_above_the_line() -> None:
    factor = graph.factor_for(built(stream()), Multiplier("percentage", "abs", 150), 1.0, TEN_GIGABIT, force=True)
    assert factor == pytest.approx(1.5 * 10e9 / 672)


def test_a_relative_share_is_of_the_current_factor() -> None:
    assert graph.factor_for(built(stream()), Multiplier("percentage", "add", 10), 70.0, 10e9, False) == 7.0


def test_loops_and_continuous_streams_never_end() -> None:
    loop = built(burst(1, 5000, next_stream_id=2), burst(2, 5000, self_start=False, next_stream_id=1))
    assert loop.duration_us == -1
    assert built(stream()).duration_us == -1


def test_short_bursts_count_as_the_least_rate() -> None:
    assert built(burst(1, 999)).peak.pps == 1
    assert built(burst(1, 1000)).peak.pps == 1000


@pytest.mark.parametrize(
    ("about", "streams", "text"),
    [
        ("an endless stream that leads on", [stream(1, next_stream_id=1)], "1 cannot lead to stream 1: it never ends"),
        ("a link to nowhere", [burst(1, 5, next_stream_id=9)], "lead to stream 9: that is disabled or not there"),
        ("to a disabled stream", [burst(1, 5, next_stream_id=2), burst(2, 5, enabled=False)], "2: that is disabled"),
        ("a stream that nothing starts", [burst(1, 5), burst(2, 5, self_start=False)], "nothing starts stream 2"),
    ],
)
def test_links_that_make_no_program(about: str, streams: list[ServerStream], text: str) -> None:
    with pytest.raises(RpcError, match=text):
        graph.check_links({one.stream_id: one for one in streams})


def test_links_that_do() -> None:
    chain = [burst(1, 5, next_stream_id=2), burst(2, 5, self_start=False, next_stream_id=1), stream(3)]
    graph.check_links({one.stream_id: one for one in chain})
