"""Rates, multipliers and the links between streams."""

from __future__ import annotations

from typing import Any

import pytest
from calls import packet, rate, single_burst
from frames import var

from trexbench.stlserver.state import graph
from trexbench.stlserver.state.graph import Multiplier
from trexbench.stlserver.state.stream import ServerStream, parse_stream
from trexbench.stlserver.wire import Params, RpcError

TEN_GIGABIT = 10e9


def stream(stream_id: int = 1, length: int = 60, kind: str = "pps", value: float = 1.0, **changes: Any) -> ServerStream:
    """A stream of ``length`` bytes without FCS."""
    return parse_stream(Params(rate(kind, value, packet=packet(bytes(length)), **changes)), stream_id, core_count=1)


def burst(stream_id: int, pkts: int, **changes: Any) -> ServerStream:
    return parse_stream(Params(single_burst(pkts, 1000, **changes)), stream_id, core_count=1)


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
    found = stream(kind=kind, value=value).rate(TEN_GIGABIT)
    assert (found.pps, found.bps_l2, found.bps_l1) == pytest.approx((pps, pps * 512, pps * 672), rel=1e-9)


def test_short_packets_are_padded() -> None:
    assert len(stream(length=30).packet) == 60


def test_packets_that_change_size_count_with_their_mean() -> None:
    program = {"instructions": [var("v", "inc", 2, 60, 300), {"type": "trim_pkt_size", "name": "v"}]}
    assert stream(length=300, vm=program).rate(TEN_GIGABIT).bps_l2 == pytest.approx((180 + 4) * 8)


def test_force_goes_above_the_line() -> None:
    factor = graph.factor_for(built(stream()), Multiplier("percentage", "abs", 150), 1.0, TEN_GIGABIT, force=True)
    assert factor == pytest.approx(1.5 * 10e9 / 672)


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
