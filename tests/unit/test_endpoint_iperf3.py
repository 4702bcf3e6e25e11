"""iperf3's own JSON as readings, whole and damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trexbench.core.tcp.plan import HostReading, ThreadTime
from trexbench.endpoint.engines import with_streams
from trexbench.endpoint.hosts import told_by


def stream(socket: int, start: float, end: float, count: int, **more: Any) -> dict[str, Any]:
    spanned = {"start": start, "end": end, "seconds": end - start}
    return {"socket": socket, **spanned, "bytes": count, "sender": True, **more}


def printed() -> dict[str, Any]:
    """Two streams, the first second omitted, as iperf3 3.12 counts: ends begin again after what is omitted."""
    more = {"snd_cwnd": 14480, "rtt": 250, "rttvar": 9, "pmtu": 1500, "retransmits": 2}
    spans = [(0, 1.0, 100), (0, 1.0, 200), (1.0, 2.0, 300), (2.0, 2.0001, 1)]
    return {
        "start": {"connected": [{"socket": 7}, {"socket": 5}], "version": "iperf 3.12", "tcp_mss_default": 1448},
        "intervals": [
            {"streams": [stream(7, a, b, n, **more), stream(5, a, b, 2 * n)], "sum": {}} for a, b, n in spans
        ],
        "end": {"sender_tcp_congestion": "cubic", "receiver_tcp_congestion": "bbr"},
    }


def told(value: Any) -> Any:
    return told_by({"stdout": json.dumps(value), "stderr": "", "code": 0})


def test_totals_by_stream_in_the_order_of_their_connections() -> None:
    found = told(printed())
    assert [end for end, _ in found.totals] == [1.0, 2.0, 3.0]
    first, second = found.totals[-1][1]
    assert (first.stream, second.stream) == (1, 2) and first.sends
    assert (first.payload_bytes, second.payload_bytes) == (600, 1200)
    own = {"rtt": 250, "rttvar": 9, "pmtu": 1500}
    assert first.info == {**own, "total_retrans": 6, "snd_cwnd": 10, "snd_mss": 1448}
    assert found.about == {"version": "3.12", "sender_congestion": "cubic", "receiver_congestion": "bbr"}
    assert found.length_s == pytest.approx(3.0001)


def test_an_interval_that_the_end_of_the_omitted_time_cuts_counts_from_there() -> None:
    """Interval as 3.12 prints it if one timer runs before the other: 1 s long, with the payload of its later half."""
    value = printed()
    spans = [(0, 0.5, 0.5, True, 900), (0.5, 0.5, 1.0, False, 100), (0.5, 1.0, 0.5, False, 200)]
    value["intervals"] = [
        {"streams": [stream(7, begin, end, count, seconds=length, omitted=omitted)]}
        for begin, end, length, omitted, count in spans
    ]
    found = told(value)
    assert [end for end, _ in found.totals] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert [streams[0].payload_bytes for _, streams in found.totals] == [900, 900, 1000, 1200]
    assert found.length_s == pytest.approx(2.0)


@pytest.mark.parametrize("none", [-1, 18446744073709551615])
def test_no_retransmits_are_no_count(none: int) -> None:
    value = printed()
    for interval in value["intervals"]:
        interval["streams"][0]["retransmits"] = none
    assert "total_retrans" not in told(value).totals[-1][1][0].info


def test_each_interval_has_what_was_read_next_to_it() -> None:
    read = [HostReading(at / 10, threads=(ThreadTime(1, at / 10, 0.0),)) for at in range(60)]
    found = with_streams(told(printed()), read, 5.0001)
    assert [one.at_s for one in found] == pytest.approx([0.0, 1.0, 2.0, 3.0])
    assert [one.threads[0].user_s for one in found] == pytest.approx([2.0, 3.0, 4.0, 5.0])
    assert [sum(stream.payload_bytes for stream in one.streams) for one in found] == [0, 300, 900, 1800]


def test_an_error_keeps_the_intervals() -> None:
    """A server prints its last one again when its client is interrupted."""
    whole = printed()["intervals"][:3]
    found = told({**printed(), "intervals": [*whole, whole[-1]], "error": "the client has terminated"})
    assert found.error == "the client has terminated" and len(found.totals) == 3


def test_what_is_no_json_names_what_was_said() -> None:
    found = told_by({"stdout": "", "stderr": "iperf3: unrecognized option '--bidir'\n", "code": 1})
    assert found.error == "no result, but: iperf3: unrecognized option '--bidir'"
    assert told_by({"stdout": "", "stderr": "", "code": -9}).error == "no result, but: exit code -9"
    for damaged in ({"intervals": 5}, {"intervals": [{"streams": [{"socket": 7, "bytes": 10**400}]}]}):
        assert told(damaged).error.startswith("no result, but: {"), "what else it may be: tests/fuzz/test_imports.py"
