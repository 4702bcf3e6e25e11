"""flent's data files as runs of TCP, whole and damaged."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from effort import examples
from flents import STEP_S, T0, data_file, netperf, pings, rrul
from hypothesis import given
from hypothesis import strategies as st
from mutate import LEAVES, places

from trexbench.core.errors import StoreError
from trexbench.core.history.rows_tcp import rows_of_tcp
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.model import Way
from trexbench.core.tcp.result import TcpResult
from trexbench.core.typed import Status
from trexbench.results.document import read_sealed
from trexbench.results.flent import MOST_VALUES, run_from_flent
from trexbench.results.foreign import Given
from trexbench.results.tcp import encode_tcp

ABOUT = Given("theirs", "2026-01-01T00:00:00Z", "0123456789abcdef")


def taken(document: Any) -> TcpResult:
    return run_from_flent(document, ABOUT)


def one_way(kind: str, mbps: float = 90.0, **more: Any) -> dict[str, Any]:
    return data_file({f"TCP {kind}": netperf(mbps, 10.0), "Ping (ms) ICMP": pings(2.0, 9.0, 10.0)}, **more)


@pytest.mark.parametrize(
    ("document", "way", "streams", "mbps"),
    [
        (one_way("upload"), Way.FORWARD, 1, [90]),
        (one_way("download"), Way.REVERSE, 1, [90]),
        (data_file({"TCP upload": netperf(40, 10), "TCP download": netperf(80, 10)}), Way.BIDIR, 1, [40, 80]),
        (data_file({f"TCP upload::{n}": netperf(n, 10) for n in range(1, 5)}), Way.FORWARD, 4, [10]),
        (data_file({f"TCP upload BE{n} host-{n}": netperf(n, 10) for n in (1, 2)}), Way.FORWARD, 2, [3]),
        (rrul(), Way.BIDIR, 4, [20, 100]),
    ],
    ids=["tcp_upload", "tcp_download", "tcp_bidirectional", "tcp_nup", "rtt_fair_up", "rrul"],
)
def test_each_way_with_its_rate(document: Any, way: Way, streams: int, mbps: list[float]) -> None:
    run = taken(document)
    assert run.plan.legs[0].way is way and run.plan.streams == streams and run.plan.interval_s == STEP_S
    for flow, rate in zip(run.flows, mbps, strict=True):
        found = flow.statistics
        assert found is not None and found.count == 50 and flow.verdict.limit is TcpLimit.UNKNOWN
        assert found.mean == pytest.approx(1e6 * rate, rel=1e-6)
        assert (found.min, found.max) == pytest.approx((0.95e6 * rate, 1.05e6 * rate), rel=1e-3)
        assert flow.flow.retransmits is None
    assert (
        run.status is Status.COMPLETE
        and run.started == "2026-11-23T08:24:07Z"
        and run.command["source"] == "flent 2.3.0"
    )


def test_pings_before_tcp_are_idle_and_beside_it_loaded() -> None:
    (summary,), run = taken(rrul()).summaries, taken(rrul())
    assert (summary.ping_idle_s, summary.ping_loaded_s) == pytest.approx((0.020, 0.045))
    idle, loaded = (one.statistics for one in run.ping_results)
    assert (idle.sent, idle.received) == (25, 25) and (loaded.sent - loaded.received) == 2


def test_round_trips_are_those_of_the_sender() -> None:
    intervals = taken(rrul()).flows[0].flow.intervals
    assert intervals[-1].rtt_s == pytest.approx(0.039) and intervals[3].rtt_s == pytest.approx(0.030)


def test_a_slow_connection_has_holes_on_the_grid_but_is_counted_whole() -> None:
    document = data_file({"TCP upload": netperf(1.0, 10.0, dur_s=1.0)})
    assert document["results"]["TCP upload"].count(None) > 80
    run = taken(document)
    assert run.flows[0].statistics is not None and run.flows[0].statistics.mean == pytest.approx(1e6, rel=1e-6)
    document["raw_values"] = {}
    grid = taken(document)
    assert grid.flows[0].statistics is not None and grid.flows[0].statistics.mean < 0.5e6
    assert "of them are missing, and count as nothing" in " ".join(one.text for one in grid.caveats)


def test_without_raw_values_the_grid_is_taken() -> None:
    document = rrul()
    document["raw_values"] = {}
    run = taken(document)
    forward, reverse = (flow.statistics for flow in run.flows)
    assert forward is not None and reverse is not None
    assert (forward.mean, reverse.mean) == pytest.approx((20e6, 100e6), rel=0.01)
    (summary,) = run.summaries
    assert summary.ping_idle_s == pytest.approx(0.020) and summary.ping_loaded_s == pytest.approx(0.045, rel=0.02)
    assert run.started == "2026-11-23T08:23:50Z"
    document["metadata"]["TIME"] = "2026-13-41T08:23:50"
    assert taken(document).started == ABOUT.written


def test_what_ended_before_its_length_is_incomplete() -> None:
    document = one_way("upload", LENGTH=60)
    assert taken(document).status is Status.INCOMPLETE and "10.0 of 60 s" in str(taken(document).reason)


def test_it_is_a_row_like_ours() -> None:
    (row,) = rows_of_tcp(taken(one_way("upload", IP_VERSION=6)), "")
    assert row.cell.mode == "forward-ipv6-unmonitored" and row.at_least and row.ping_idle_s == pytest.approx(0.002)
    unknown = taken(one_way("upload", IP_VERSION=None))
    assert "imported-version" in {one.code for one in unknown.caveats}


def test_a_failed_connection_is_left_out() -> None:
    document = rrul()
    document["raw_values"]["TCP upload EF"] = []
    document["results"]["TCP upload EF"] = [None] * len(document["x_values"])
    run = taken(document)
    assert run.flows[0].statistics is not None and run.flows[0].statistics.mean == pytest.approx(12e6, rel=1e-6)


def changed(*keys: Any, value: Any, document: Any = None) -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(document or SMALL)
    at: Any = found
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return found


SMALL = data_file({"TCP upload": netperf(5.0, 2.0), "Ping (ms) ICMP": pings(2.0, 9.0, 2.0)[:40]}, 2.0)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (data_file({"VoIP::delay": [], "HTTP latency": []}), "no series of TCP upload or download"),
        (data_file({"TCP upload": [], "TCP upload sum": netperf(1, 10)}), "none of its TCP connections"),
        (changed("version", value=5), "version 5"),
        (changed("metadata", "STEP_SIZE", value=0), "STEP_SIZE"),
        (changed("metadata", "NAME", value=None), "NAME"),
        (changed("x_values", value=[1, 2]), "another length"),
        (changed("x_values", 3, value=0.0), "do not ascend"),
        (changed("results", "TCP upload", 3, value="fast"), "TCP upload|results"),
        (changed("raw_values", "TCP upload", 0, "val", value=1e300), "raw_values"),
        (changed("raw_values", "TCP upload", 0, "t", value=T0 - 1e9), f"to {MOST_VALUES}"),
    ],
)
def test_other_files_are_refused_in_one_line(document: Any, words: str) -> None:
    with pytest.raises(StoreError, match=words) as failure:
        taken(document)
    assert "\n" not in str(failure.value)


@examples(400)
@given(place=st.sampled_from(places(SMALL)), value=st.sampled_from([*LEAVES, 2**63, 1e-9, 3600.0, T0 + 7, "x" * 999]))
def test_any_one_wrong_value_is_refused_or_gives_a_sound_run(place: tuple[Any, ...], value: Any) -> None:
    try:
        run = taken(changed(*place, value=value))
    except StoreError as error:
        assert "\n" not in str(error)
    else:
        assert read_sealed(encode_tcp(run))
