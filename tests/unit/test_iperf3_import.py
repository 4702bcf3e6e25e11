"""Output of genuine iperf3 3.12 with -J, on loopback at 50 Mbit/s a connection, as runs of TCP; and damaged."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from documents import changed_at

from trexbench.core.errors import StoreError
from trexbench.core.history.rows import rows_of_tcp
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.plan import Way
from trexbench.core.tcp.result import TcpResult
from trexbench.core.typed import Status
from trexbench.results.document import decode
from trexbench.results.iperf3 import joined_stream, run_from_iperf3

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "iperf3"
ABOUT = ("theirs", "2026-01-01T00:00:00Z", "0123456789abcdef")


def printed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return found


def taken(document: Any, **more: Any) -> TcpResult:
    return run_from_iperf3(document, *ABOUT, **more)


def means(run: TcpResult) -> list[float]:
    """Return the mean rate of each flow."""
    found = [flow.statistics for flow in run.flows]
    return [one.mean for one in found if one is not None]


@pytest.mark.parametrize(
    ("name", "way", "streams", "mbps", "retransmits", "intervals"),
    [
        ("forward", Way.FORWARD, 2, [100.4], [0], 4),
        ("reverse", Way.REVERSE, 1, [50.33], [2], 4),
        ("bidir-both-ends", Way.BIDIR, 1, [49.73, 50.25], [0, 1], 4),
        ("server", Way.FORWARD, 1, [50.3], [None], 4),
        ("interrupted", Way.FORWARD, 1, [50.28], [1], 3),
    ],
)
def test_each_way_with_the_figures_that_iperf3_says_itself(
    name: str, way: Way, streams: int, mbps: list[float], retransmits: list[int | None], intervals: int
) -> None:
    run = taken(printed(name))
    assert run.plan.legs[0].way is way and run.plan.streams == streams and run.plan.interval_s == 0.5
    assert means(run) == pytest.approx([1e6 * rate for rate in mbps], rel=0.005)
    assert [flow.flow.retransmits for flow in run.flows] == retransmits
    for flow in run.flows:
        assert flow.statistics is not None and flow.statistics.count == len(flow.flow.intervals) == intervals
        assert flow.verdict.limit is TcpLimit.UNKNOWN
    (summary,) = run.summaries
    assert summary.limit is TcpLimit.UNKNOWN and summary.at_least and summary.cores_per_gbps is None


def test_what_was_omitted_is_left_out() -> None:
    document = printed("forward")
    for interval in document["intervals"]:
        if interval["sum"]["omitted"]:
            for stream in interval["streams"]:
                stream["bytes"] *= 10
    assert taken(document).flows[0].statistics == taken(printed("forward")).flows[0].statistics
    assert taken(document).plan.omit_s == 1.0


def test_what_a_server_omits_casts_no_doubt_on_what_it_does_not_know_of_the_sender() -> None:
    document = printed("server")
    for interval in document["intervals"][:2]:
        for stream in interval["streams"]:
            stream["omitted"] = True
    (flow,) = taken(document).flows
    assert flow.statistics is not None and flow.statistics.count == 2 and not flow.flow.warnings


def test_a_few_blocks_take_milliseconds() -> None:
    document = printed("server")
    for interval in document["intervals"]:
        for stream in interval["streams"]:
            stream |= {name: stream[name] / 1000 for name in ("start", "end", "seconds")}
    run = taken(document)
    assert run.plan.interval_s == 0.0005 and means(run) == pytest.approx([50.3e9], rel=0.005)


def test_no_more_was_received_than_the_server_reported_at_the_end() -> None:
    document = printed("forward")
    for stream in document["end"]["streams"]:
        stream["receiver"]["bytes"] *= 0.9
    less, whole = (taken(one).flows[0].statistics for one in (document, printed("forward")))
    assert less is not None and whole is not None
    assert less.mean == pytest.approx(0.9 * whole.mean, rel=0.001) and less.median == whole.median


def test_segments_sent_again_are_counted_where_only_the_other_end_knows() -> None:
    document = printed("reverse")
    document["end"]["streams"][0]["sender"]["retransmits"] = 17
    assert taken(document).flows[0].flow.retransmits == 17
    document["end"]["streams"][0]["sender"]["retransmits"] = 2**64 - 1  # as 3.12 says that it does not know
    assert taken(document).flows[0].flow.retransmits is None


def test_both_ends_are_read_where_the_server_told_its_part() -> None:
    document = printed("bidir-both-ends")
    for interval in document["server_output_json"]["intervals"]:
        for stream in interval["streams"]:
            if not stream["sender"]:
                stream["bytes"] //= 2
    forward, reverse = means(taken(document))
    assert forward == pytest.approx(reverse / 2, rel=0.05)
    assert "imported-sender" not in {one.code for one in taken(document).warnings}
    del document["server_output_json"]
    document["end"]["streams"][1]["sender"]["retransmits"] = 9
    alone = taken(document)
    assert alone.flows[1].flow.retransmits == 9 and means(alone)[0] == pytest.approx(reverse, rel=0.05)
    said = {one.code: one.text for one in alone.warnings}
    assert "reported only in total" in said["imported-sender"] and "only in total" in said["imported-retransmits"]
    document["end"] = {}  # as where the server was killed
    said = {one.code: one.text for one in taken(document).warnings}
    assert said["imported-sender"].endswith("may be less; the intervals are what the client sent")


def test_a_server_of_other_intervals_counts_where_it_receives_all() -> None:
    document = printed("forward")
    document["intervals"] = [one for one in document["intervals"] if not one["sum"]["omitted"]]
    document["server_output_json"] = printed("server-of-1s")
    run = taken(document)
    assert run.plan.interval_s == 1.0 and run.flows[0].statistics is not None and run.flows[0].statistics.count == 2
    document = printed("bidir-both-ends")
    document["server_output_json"] = printed("server-of-1s")
    assert taken(document).plan.interval_s == 0.5 and "imported-sender" in {c.code for c in taken(document).warnings}


def test_it_says_what_it_is_and_what_is_not_known() -> None:
    run = taken(printed("forward"), label="firmware-2")
    assert run.command["imported"] is True and run.command["source"] == "iperf3 3.12"
    assert run.command["label"] == "firmware-2" and run.dut["name"] == "theirs"
    assert run.started.startswith("2026-11-23T08:5")
    said = " ".join(one.text for one in run.warnings)
    assert "nothing is known of the router" in said and "the intervals are what the client sent" in said
    assert run.legs[0].program["client"] == {"name": "iperf3", "version": "3.12", "congestion": "bbr"}
    (row,) = rows_of_tcp(run, "")
    assert str(row.cell.mode) == "forward-ipv4-2-streams-unmonitored" and row.label == "firmware-2"
    assert row.traffic == "TCP by iperf3, bbr"


def test_addresses_tell_the_version_of_ip() -> None:
    document = printed("forward")
    for address, version in (("2001:db8::1", 6), ("::ffff:10.0.0.1", 4), ("10.0.0.1", 4)):
        for one in document["start"]["connected"]:
            one["remote_host"] = address
        assert taken(document).plan.legs[0].version == version


def test_before_3_7_it_did_not_say_who_sends() -> None:
    document = printed("reverse")
    for interval in document["intervals"]:
        for one in (*interval["streams"], interval["sum"]):
            del one["sender"]
    assert taken(document).plan.legs[0].way is Way.REVERSE


def test_an_interrupted_test_is_incomplete() -> None:
    run = taken(printed("interrupted"))
    assert run.status is Status.INCOMPLETE and run.reason == "interrupt - the client has terminated"
    document = printed("forward")
    document["intervals"] = document["intervals"][:4]
    assert "1.0 of 2 s" in str(taken(document).reason)


def test_events_one_a_line_make_the_same_document() -> None:
    document = printed("forward")
    events = [{"event": "start", "data": document["start"]}]
    events += [{"event": "interval", "data": one} for one in document["intervals"]]
    events += [{"event": "end", "data": document["end"]}]
    assert taken(joined_stream(events)).flows == taken(document).flows
    broken = joined_stream([*events[:-1], {"event": "error", "data": "interrupt"}, {"event": "end", "data": {}}, 7])
    assert taken(broken).reason == "interrupt"


changed = partial(changed_at, printed("forward"))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (printed("udp"), "a test of UDP"),
        (printed("refused"), "nothing was measured: unable to connect to server: Connection refused"),
        (changed("intervals", value=[]), "nothing was measured"),
        (changed("intervals", 0, "streams", 0, "bytes", value="many"), r"bytes"),
        (changed("intervals", 0, "streams", 0, "bytes", value=10**400), "damaged"),
        (changed("intervals", 0, "streams", 0, "bytes", value=1e19), "more bytes than any test sends"),
        (changed("start", "connected", value=[]), "nothing was measured|no payload"),
    ],
)
def test_other_files_are_refused_in_one_line(document: Any, words: str) -> None:
    with pytest.raises(StoreError, match=words) as failure:
        taken(document)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_windows_shells_write_other_encodings(encoding: str) -> None:
    assert decode(json.dumps(printed("forward"), indent=2).encode(encoding)) == printed("forward")


def test_a_dut_without_a_possible_name_is_refused() -> None:
    with pytest.raises(StoreError, match="--dut"):
        run_from_iperf3(printed("forward"), "a/b", *ABOUT[1:])
