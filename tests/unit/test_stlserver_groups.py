"""Latency streams: what is accepted, what they do to multipliers, and what became of them in TRex's words."""

from __future__ import annotations

from typing import Any

import calls
import pytest
from frames import VLAN, tagged, udp
from hypothesis import given
from hypothesis import strategies as st
from test_stlserver_state import Bench

from trexbench.stlserver.engine import BUCKETS_US, LatencyTotals, bucket_us
from trexbench.stlserver.state.graph import Graph, Multiplier, factor_for
from trexbench.stlserver.state.stats import GroupMeter, merged
from trexbench.stlserver.state.stream import StreamRate

NO_IP = udp()[:12] + b"\x88\xb5" + bytes(46)


def latency(pg_id: Any = 7, packet: bytes = udp(), pps: float = 100.0, **changes: Any) -> Any:
    flow_stats = {"enabled": True, "stream_id": pg_id, "vxlan": False, "ieee_1588": False, "rule_type": "latency"}
    flow_stats.update({key: changes.pop(key) for key in list(changes) if key in flow_stats})
    return calls.rate("pps", pps, packet=calls.packet(packet), flow_stats=flow_stats, **changes)


ACCEPTED = [
    ("UDP", udp()),
    ("behind a VLAN tag", tagged(udp(), VLAN)),
    ("IPv6", udp(78, 6)),
    ("IPv6 with an extension", udp(86, 6, protocol=0)[:54] + bytes([17, *bytes(7)]) + bytes(24)),
    ("no IP at all", NO_IP),
    ("an IP header that is cut short", tagged(udp(), *10 * [VLAN])[:60]),
    ("nothing but tags", tagged(udp(), *12 * [VLAN])[:60]),
]


@pytest.mark.parametrize(("about", "packet"), ACCEPTED)
def test_whatever_has_room_is_accepted(about: str, packet: bytes) -> None:
    assert Bench().call("add_stream", stream_id=1, stream=latency(packet=packet)) == {}


def started(bench: Bench, **start: Any) -> Any:
    bench.call("add_stream", stream_id=1, stream=latency(pps=100))
    bench.call("add_stream", stream_id=2, stream=calls.rate("pps", 10))
    return bench.start(**start)


def mul(kind: str, value: float, op: str = "abs") -> dict[str, Any]:
    return {"type": kind, "op": op, "value": value}


L1_BITS = (64 + 20) * 8
MULTIPLIERS: list[tuple[str, dict[str, Any], Any]] = [
    ("a factor is a factor", mul("raw", 3), 3),
    ("packets", mul("pps", 150), 5),
    ("bits", mul("bps", 150 * 512), 5),
    ("bits on the wire", mul("bpsl1", 150 * L1_BITS), 5),
    ("a full line", mul("percentage", 100), (10e9 / L1_BITS - 100) / 10),
    ("a share", mul("percentage", 100 * 150 * L1_BITS / 10e9), 5),
    ("less than is fixed", mul("pps", 99), "current stream configuration enforces a minimum rate of '100' pps"),
    ("fewer bits", mul("bps", 1), "current stream configuration enforces a minimum rate of '51200' BPS L2"),
    ("a smaller share", mul("percentage", 1e-9), "enforces a minimum rate of '67200' BPS L1"),
    ("just what is fixed", mul("pps", 100), "a factor of 0 sends nothing"),
    ("a hair over the line", mul("percentage", 100.005), (10e9 / L1_BITS - 100) / 10),
    ("over the line", mul("percentage", 101), "exceeds port line rate"),
]


@pytest.mark.parametrize(("about", "wanted", "factor"), MULTIPLIERS, ids=[row[0] for row in MULTIPLIERS])
def test_multipliers_leave_fixed_rates_alone(about: str, wanted: dict[str, Any], factor: Any) -> None:
    answer = started(Bench(), mul=wanted)
    if isinstance(factor, str):
        assert factor in answer
    else:
        assert answer["multiplier"] == pytest.approx(factor)


def test_a_line_that_is_full_of_fixed_rates_leaves_no_factor_below_zero() -> None:
    """They may exceed it by a ten-thousandth, which the others must not pay with a negative rate."""
    others, fixed = StreamRate(1.0, 672.0, 512.0), StreamRate(14_881.5, 10_000_500.0, 7_619_328.0)
    assert factor_for(Graph(others, -1, (), fixed), Multiplier("raw", "abs", 1e-6), 1.0, 1e7, False) == 1e-6


def test_latency_streams_alone_take_any_rate_above_their_own() -> None:
    bench = Bench()
    bench.call("add_stream", stream_id=1, stream=latency(pps=100))
    assert bench.start(mul=mul("pps", 500))["multiplier"] == 1
    bench.wait(1)
    assert bench.call("get_port_stats")["opackets"] == 100


def test_the_graph_tells_least_and_most() -> None:
    bench = Bench()
    started(bench)
    rate = bench.call("validate")["rate"]
    assert (rate["min_pps"], rate["max_pps"]) == (100, 110)
    assert rate["min_bps_l1"] == 100 * L1_BITS
    assert rate["max_line_util"] == pytest.approx(110 * L1_BITS / 10e9 * 100.01)
    events = bench.call("validate")["graph"]["events"]
    assert [one["stream_id"] for one in events] == [2]


def test_a_start_that_the_engine_refuses_counts_nothing_twice() -> None:
    bench = Bench()
    bench.call("add_stream", stream_id=1, stream=latency(pps=1000))
    bench.start(duration=1)
    bench.wait(1)
    bench.engine.refusal = "port 0 has no link"
    assert bench.start(duration=1) == "port 0 has no link"
    bench.engine.refusal = None
    assert bench.call("get_pgid_stats", pgids=[7])["flow_stats"]["7"]["rp"]["1"] == 1000
    bench.start(duration=1)
    bench.wait(1)
    assert bench.call("get_pgid_stats", pgids=[7])["flow_stats"]["7"]["rp"]["1"] == 2000


PGIDS: list[tuple[Any, str]] = [
    (["7"], "field '0' is '7', expecting a whole number of 32 bits"),
    ([1 << 40], "field '0' is '1099511627776', expecting a whole number of 32 bits"),
    (list(range(1153)), "1153 packet groups are asked for; 1152 can be"),
]


@pytest.mark.parametrize(("pgids", "text"), PGIDS, ids=[row[1][:20] for row in PGIDS])
def test_questions_that_are_none(pgids: Any, text: str) -> None:
    assert Bench().call("get_pgid_stats", pgids=pgids) == text


def totals(*latencies_us: int, sent: int = 0, **more: Any) -> LatencyTotals:
    """Return the totals of frames with these latencies."""
    seconds = [one / 1e6 for one in latencies_us]
    histogram: dict[int, int] = {}
    for one in seconds:
        histogram[bucket_us(one)] = histogram.get(bucket_us(one), 0) + 1
    received = len(seconds)
    return LatencyTotals(
        rx_port=1, sent=sent or received, sent_bytes=64 * (sent or received), received=received,
        received_bytes=64 * received, sum_s=sum(seconds), min_s=min(seconds, default=0.0),
        max_s=max(seconds, default=0.0), histogram=histogram, **more,
    )  # fmt: skip


def test_the_average_slides_and_the_last_maximum_is_of_the_last_period() -> None:
    meter = GroupMeter()
    meter.add(totals(100, 300))
    meter.add(totals(100, 300, 1400))
    meter.add(totals(100, 300, 1400, 55))
    shown = meter.to_json(totals(100, 300, 1400, 55))["lat"]
    assert shown["average"] == (((100 + 300) / 2 + 1400) / 2 + 55) / 2
    assert (shown["total_max"], shown["total_min"], shown["last_max"]) == (1400, 55, 60)
    assert shown["histogram"] == {"50": 1, "100": 1, "300": 1, "1000": 1}


def test_errors_are_told_where_there_are_any() -> None:
    shown = GroupMeter().to_json(totals(50, out_of_order=2, missing=3, duplicate=1))
    assert shown["er"] == {"drp": 3, "ooo": 2, "dup": 1, "stl": 3}
    assert "er" not in GroupMeter().to_json(totals(50))
    assert "histogram" not in GroupMeter().to_json(totals(sent=5))["lat"]


def test_a_bucket_begins_with_its_bound_whatever_its_last_binary_digit() -> None:
    assert bucket_us(30e-6) == 30


@given(st.lists(st.integers(0, 10**7)), st.lists(st.integers(0, 10**7)))
def test_two_starts_are_as_one(first: list[int], then: list[int]) -> None:
    both, together = merged(totals(*first), totals(*then)), totals(*first, *then)
    assert both.sum_s == pytest.approx(together.sum_s)
    for name in ("sent", "sent_bytes", "received", "received_bytes", "min_s", "max_s", "histogram"):
        assert getattr(both, name) == getattr(together, name)
    assert sum(both.histogram.values()) == both.received
    assert set(both.histogram) <= set(BUCKETS_US)
