"""Buffer, window, round trip and rate: what is predicted, what was seen, and how a verdict says it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from bdp_runs import FOUND, FULL, LONG, MB, SET, SLOW, leg_of, run, told
from documents import to_document
from hypothesis import given
from hypothesis import strategies as st
from tcp_runs import MSS, Path, make_leg

from trexbench.config.option import read_options
from trexbench.core.errors import ConfigError
from trexbench.core.tcp.bdp import BdpRow, bdp_part, find_product, find_rows
from trexbench.core.tcp.laws import loss_bound, share_of_scale, window_rule
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.plan import LegReadings, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.result import from_document
from trexbench.core.tcp.wan import Wan
from trexbench.core.units import tcp_payload_bps
from trexbench.results.document import encode
from trexbench.session.tcp.options import TcpSetup, TcpWish
from trexbench.session.tcp.request import make_tcp_request

PAYLOAD_BPS = tcp_payload_bps(1e9, framing=0)


def rows(*legs: LegReadings, **more: Any) -> Sequence[BdpRow]:
    return find_rows(run(*legs, **more))


def test_before_and_after_the_buffers_fit() -> None:
    before, after = rows(leg_of(FOUND, SLOW, told(1_600_000)), leg_of(SET, FULL, told(5 * MB)))
    assert (before.buffer_bytes, before.buffer_by) == (1_600_000, "as found: tcp_rmem of the server")
    assert (after.buffer_bytes, after.buffer_by) == (5 * MB, "set: tcp_rmem of the server")
    assert before.window_predicted_bytes == 800_000 and after.window_predicted_bytes == 2.5 * MB
    assert (before.window_bytes, before.window_by) == (800_000, "offered by the receiver")
    assert before.round_trip_s == 0.02, "the median: the first echo request waited for ARP"
    assert before.cwnd_bytes == 3 * MB // MSS * MSS
    assert before.predicted_bps == before.window_bps == pytest.approx(320e6) and before.predicted_by == "window"
    assert (after.predicted_bps, after.predicted_by) == (pytest.approx(PAYLOAD_BPS), "line")
    assert before.ratio == pytest.approx(300 / 320) and after.ratio == pytest.approx(0.94e9 / PAYLOAD_BPS)
    assert before.words == "window-limited: 800 kB over 20.0 ms is 320.0 Mbit/s"
    assert after.words == "fills the line: 98.3 % of 956.4 Mbit/s"
    assert (before.limit, after.limit) == (TcpLimit.WINDOW, TcpLimit.LINK) and before.at_least and after.at_least


def test_a_sender_with_the_smaller_buffer_is_named() -> None:
    (row,) = rows(leg_of(FOUND, SLOW, told(4 * MB, sent=MB)))
    assert (row.buffer_bytes, row.buffer_by) == (MB, "as found: tcp_wmem of the client")
    (other,) = rows(leg_of(replace(FOUND, way=Way.REVERSE), SLOW, told(4 * MB, sent=MB)))
    assert other.buffer_by == "as found: tcp_wmem of the server" and other.sender == "server"


def test_a_full_send_buffer_counts_by_what_was_in_flight() -> None:
    (row,) = rows(leg_of(FOUND, replace(SLOW, send_buffer=1_100_000, peer_window=3 * MB), told(6 * MB)))
    assert row.window_bytes == 517 * MSS and row.window_by == "in flight, of the send buffer"
    assert row.words == "window-limited: 749 kB over 20.0 ms is 299.4 Mbit/s"


def test_a_sender_cannot_use_a_window_that_is_wider_than_its_buffer() -> None:
    path = replace(SLOW, send_buffer=4 * MB, peer_window=3 * MB, in_flight=300_000)
    (row,) = rows(leg_of(FOUND, path, told(6 * MB, sent=MB)))
    assert (row.window_bytes, row.window_predicted_bytes) == (3 * MB, 0.7 * MB)
    assert row.window_bps == pytest.approx(8 * 0.7 * MB / 0.02)
    (more,) = rows(leg_of(FOUND, replace(path, in_flight=900_000), told(6 * MB, sent=MB)))
    assert more.window_bps == pytest.approx(8 * 621 * MSS / 0.02), "what was seen on its way disproves the share"


def test_a_congestion_window_that_stays_small_is_the_window() -> None:
    path = replace(SLOW, send_buffer=40 * MB, peer_window=30 * MB, cwnd=760_000)
    (row,) = rows(leg_of(FOUND, path, told(60 * MB)))
    assert (row.window_bytes, row.window_by) == (524 * MSS, "congestion window")
    assert row.words == "window-limited: 759 kB over 20.0 ms is 303.5 Mbit/s"


def test_a_host_that_tells_nothing_has_what_was_set() -> None:
    (row,) = rows(leg_of(SET, SLOW, {}))
    assert (row.buffer_bytes, row.buffer_by, row.congestion) == (5 * MB, "set", "?")
    (bare,) = rows(leg_of(FOUND, SLOW, {}))
    assert bare.buffer_bytes is None and bare.window_predicted_bytes is None and bare.window_bytes == 800_000


def test_losses_bound_cubic_and_not_bbr() -> None:
    lossy = TcpEnvironment(wan=replace(LONG, loss=1e-4))
    path = replace(SLOW, bps=68e6, in_flight=170_000, cwnd=180_000, peer_window=3 * MB)
    cubic, bbr = rows(
        leg_of(replace(SET, congestion="cubic"), path, told(5 * MB)),
        leg_of(replace(SET, congestion="bbr"), path, told(5 * MB, congestion="bbr")),
        setup=lossy,
    )
    assert cubic.loss_bps == pytest.approx(8 * MSS / 0.02 * 1.5**0.5 / 0.01) and cubic.loss_law == "Mathis"
    assert cubic.predicted_by == "loss" and cubic.words == "loss-limited: about 70.94 Mbit/s by Mathis"
    lucky = replace(path, bps=200e6, in_flight=500_000, cwnd=520_000, retransmits=6)
    (fast,) = rows(leg_of(replace(SET, congestion="cubic"), lucky, told(5 * MB)), setup=lossy)
    long_run = "faster than losses allow in the long run, 70.94 Mbit/s by Mathis"
    assert fast.words == f"{long_run}: 6 retransmits were too few to slow it down"
    assert bbr.loss_bps is None and bbr.predicted_by == "line" and "loss" not in bbr.words


def test_a_busy_endpoint_is_said_unless_the_line_is_full_all_the_same() -> None:
    busy = replace(FULL, bps=0.89e9, cores={"client": (0.99,)})
    slower, full = rows(leg_of(SET, busy, told(5 * MB)), leg_of(FOUND, replace(busy, bps=0.93e9), told(5 * MB)))
    assert slower.limit is full.limit is TcpLimit.ENDPOINT_CPU
    assert slower.words.startswith("an endpoint's CPU was the limit: the client, which")
    assert full.words == "fills the line: 97.2 % of 956.4 Mbit/s"


def test_connections_share_nothing_but_the_line() -> None:
    plan = TcpPlan((SET,), time_s=10.0, streams=3)
    leg = replace(make_leg(plan, SET, replace(SLOW, bps=100e6)), program=told(1_600_000))
    (row,) = rows(leg, streams=3)
    assert (row.window_predicted_bytes, row.window_bytes) == (2.4 * MB, 2.4 * MB)


@pytest.mark.parametrize(
    ("facts", "share", "word"),
    [
        ({"kernel": "5.15.0-91-generic", "tcp_adv_win_scale": "1"}, 0.5, "tcp_adv_win_scale is 1"),
        ({"kernel": "4.19", "tcp_adv_win_scale": "-2"}, 0.25, "tcp_adv_win_scale is -2"),
        ({"kernel": "6.5.13"}, 0.5, "half of a buffer"),
        ({"kernel": "6.6.0", "tcp_adv_win_scale": "1"}, 0.76, "Linux 6.6 measures"),
        ({"kernel": "FreeBSD", "tcp_adv_win_scale": "1 x"}, 0.5, "half of a buffer"),
    ],
)
def test_how_much_of_a_buffer_is_window(facts: dict[str, str], share: float, word: str) -> None:
    of_buffer, why = window_rule(facts)
    assert of_buffer == share and word in why


def test_the_product_is_the_lines_or_follows_from_ping() -> None:
    leg = leg_of(FOUND, SLOW, told(MB))
    wan = find_product(run(leg))
    assert wan is not None and (wan.size_bytes, wan.by, wan.scale) == (2.5 * MB, "the WAN", 1.0)
    scaled = find_product(run(leg, setup=TcpEnvironment(wan=LONG, wan_asked=replace(LONG, rate_bps=1e10))))
    assert scaled is not None and scaled.scale == 0.1
    only_delay = find_product(run(leg, setup=TcpEnvironment(1e8, wan=Wan(0.02))))
    assert only_delay is not None and (only_delay.size_bytes, only_delay.by) == (250_000, "the line, the WAN")
    plain = find_product(run(leg, setup=TcpEnvironment(1e8)))
    assert plain is not None and plain.size_bytes == pytest.approx(250_000) and plain.by == "the line, ping"
    slower = find_product(run(leg, setup=TcpEnvironment(1e8, wan=Wan(rate_bps=1e10))))
    assert slower is not None and (slower.rate_bps, slower.by) == (1e8, "the line, ping")
    assert find_product(run(leg, setup=TcpEnvironment())) is None


def test_the_document_has_the_rows_and_reads_none_of_them() -> None:
    result = run(leg_of(FOUND, SLOW, told(MB)), leg_of(SET, FULL, told(5 * MB)))
    document = to_document(result) | bdp_part(result)
    assert [one["words"] for one in document["bdp"]] == [one.words for one in find_rows(result)]
    assert document["bdp_product"]["size_bytes"] == 2.5 * MB and document["bdp"][1]["set_bytes"] == 5 * MB
    kept = json.loads(encode(result))
    assert kept["bdp"] == json.loads(json.dumps(document["bdp"])) and list(kept).index("bdp") < list(kept).index("legs")
    assert bdp_part(from_document({**kept, "bdp": ["nonsense"]})) == bdp_part(result)
    one, *_ = result.legs
    assert bdp_part(run(*result.legs, setup=TcpEnvironment())) and not bdp_part(run(one, setup=TcpEnvironment()))


@given(
    share=st.integers(-31, 31).map(share_of_scale),
    mss=st.integers(100, 9000),
    trip_s=st.floats(1e-4, 2.0),
    loss=st.floats(1e-7, 0.5),
    name=st.sampled_from(["reno", "cubic"]),
)
def test_the_arithmetic_grows_as_it_should(share: float, mss: int, trip_s: float, loss: float, name: str) -> None:
    assert 0 < share <= 1
    found, lossier, longer = (
        loss_bound(name, mss, trip, lost) for trip, lost in ((trip_s, loss), (trip_s, loss * 1.5), (2 * trip_s, loss))
    )
    assert found is not None and lossier is not None and longer is not None
    assert 0 < lossier[0] < found[0] and longer[0] < found[0]
    assert found[0] >= 8 * mss * 1.5**0.5 / loss**0.5 / trip_s * (1 - 1e-9), "never less than reno's"
    assert loss_bound("bbr", mss, trip_s, loss) is None and loss_bound(name, mss, trip_s, 0.0) is None


@given(
    window=st.integers(2 * MSS, 10**9),
    trip_s=st.floats(1e-3, 1.0),
    rate_bps=st.floats(1e6, 1e11),
    share=st.floats(0.05, 1.0),
)
def test_no_prediction_exceeds_line_or_window(window: int, trip_s: float, rate_bps: float, share: float) -> None:
    wan = Wan(0.9 * trip_s, rate_bps)
    least_bps = min(tcp_payload_bps(rate_bps, framing=0), 8 * window / trip_s)
    path = Path(share * least_bps, trip_s, trip_s, int(share * window), 2 * window, 10 * window, window)
    (row,) = rows(leg_of(SET, path, told(2 * window)), setup=TcpEnvironment(wan=wan), pings=())
    assert row.predicted_bps is not None and row.round_trip_s == pytest.approx(trip_s, abs=1e-6)
    assert row.predicted_bps == pytest.approx(least_bps, rel=2e-3)
    assert row.ratio == pytest.approx(share, rel=5e-3) and row.words


def bdp(dut: str = "lab-linux", **words: Any) -> TcpWish:
    return read_options(TcpWish, dut, bdp=True, **words)


def sizes(bdp_bytes: int, **words: Any) -> tuple[int | None, ...]:
    return bdp(**words).sizes(Wan(0.08, 100.0 * bdp_bytes), "lab-linux")


def test_what_the_legs_of_bdp_are() -> None:
    assert sizes(25 * MB) == (None, 50 * MB)
    assert sizes(25 * MB, factor=4) == (None, 100 * MB)
    assert sizes(25 * MB, buffers=(MB, 2 * MB, MB)) == (None, MB, 2 * MB)
    assert TcpWish("lab-linux", buffers=("1mb", "1mb")).sizes(None, "lab-linux") == (MB,), "no repetition"
    assert sizes(16 * MB, sweep=True) == tuple(n * MB for n in (1, 2, 4, 8, 16, 32, 64))
    with pytest.raises(ConfigError, match=r"buffers of 1\.25 kB, 0\.0625 times the BDP.*a host takes 4\.10 kB"):
        sizes(20_000, sweep=True)


def test_a_request_of_bdp_is_one_of_tcp_with_legs_of_its_own() -> None:
    request = make_tcp_request(bdp(cc=("cubic", "bbr")), TcpSetup(sim=True, wan=LONG))
    assert request.verb == "bdp" and request.dut.wan == LONG
    assert [(leg.congestion, leg.buffer_bytes) for leg in request.plan.legs] == [
        (name, size) for name in ("cubic", "bbr") for size in (None, 5 * MB)
    ]
    own = make_tcp_request(bdp("mininet-lab8"), TcpSetup(sim=True))
    assert own.dut.wan == Wan(0.02, 1e10), "the config's own"


def test_one_congestion_control_is_the_plans_and_several_have_a_leg_each() -> None:
    for cc, of_plan, of_legs in ((("bbr",), "bbr", [None]), (("cubic", "bbr"), None, ["cubic", "bbr"])):
        plan = make_tcp_request(TcpWish("lab-linux", way="forward", cc=cc), TcpSetup(sim=True)).plan
        assert (plan.congestion, [leg.congestion for leg in plan.legs]) == (of_plan, of_legs)
