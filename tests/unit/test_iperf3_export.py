"""Runs of TCP as iperf3's JSON: its keys and types, and that the same figures come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from tcp_runs import Path, make_tcp_result

from trexbench.core.errors import StoreError
from trexbench.core.tcp.model import Leg, TcpPlan, Way
from trexbench.core.tcp.result import TcpResult
from trexbench.report.tcp.iperf3 import to_iperf3
from trexbench.results.foreign import Given
from trexbench.results.iperf3 import run_from_iperf3

FIXTURES = File(__file__).resolve().parents[1] / "fixtures" / "iperf3"
RATES = [940e6, 910e6, 955e6, 902e6, 948e6, 933e6, 921e6, 940e6, 950e6, 911e6]
WAYS = {"forward": Way.FORWARD, "reverse": Way.REVERSE, "bidir-both-ends": Way.BIDIR}
UNKNOWN = {"local_host", "local_port", "remote_host", "remote_port", "host", "port", "cookie", "target_bitrate"}
UNKNOWN |= {"blksize", "tos"}
"""Keys that trexbench does not know."""
UNKNOWN |= {"pmtu", "rttvar", "sndbuf_actual", "rcvbuf_actual", "sender_tcp_congestion", "receiver_tcp_congestion"}
"""Keys that the readings of these tests do not have."""
UNKNOWN |= {"tcp_mss_default"}
"""Key of a receiver; iperf3 asks its socket for it."""


def run_of(way: Way = Way.FORWARD, **more: Any) -> TcpResult:
    return make_tcp_result(Path(bps=RATES, retransmits=30), [Leg(way)], **more)


def exported(run: TcpResult) -> list[tuple[str, dict[str, Any]]]:
    return [(name, json.loads(data)) for name, data in to_iperf3(run)]


def imported(document: dict[str, Any]) -> TcpResult:
    return run_from_iperf3(document, Given("again", "2026-01-01T00:00:00Z", "0"))


def shape(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Each key's path, those of lists as one, and what is there."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from shape(one, f"{at}.{key}")
    elif isinstance(value, list):
        for one in value:
            yield from shape(one, f"{at}[]")
    else:
        kind = "bool" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"
        yield at, kind


def genuine(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what iperf3's client printed, and what its server reported to it."""
    client: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return client, client.pop("server_output_json", {})


@pytest.mark.parametrize("name", WAYS)
def test_keys_and_types_are_those_of_iperf3(name: str) -> None:
    plan = TcpPlan((Leg(WAYS[name]),), 2, time_s=10.0)
    ((_, document),) = exported(run_of(WAYS[name], plan=plan))
    server = document.pop("server_output_json")
    theirs = {one for other in (*WAYS, "server") for side in genuine(other) for one in shape(side)}
    # bidir is printed by newer ones, title and extra_data where they are asked for.
    theirs |= {(".title", "text"), (".extra_data", "text"), (".start.test_start.bidir", "number")}
    assert {*shape(document), *shape(server)} <= theirs
    lacking = {at for at, _ in shape(genuine(name)[0])} - {at for at, _ in shape(document)}
    assert {at.rpartition(".")[2] for at in lacking} <= UNKNOWN


@pytest.mark.parametrize(
    ("way", "streams", "omit_s", "jitter"),
    [
        (Way.FORWARD, 1, 0.0, {}),
        (Way.REVERSE, 4, 0.0, {}),
        (Way.BIDIR, 2, 0.0, {}),
        (Way.FORWARD, 2, 2.0, {}),
        (Way.FORWARD, 1, 0.0, {"server": 0.03}),
    ],
)
def test_what_is_imported_again_has_the_same_figures(
    way: Way, streams: int, omit_s: float, jitter: dict[str, float]
) -> None:
    from tcp_runs import make_leg

    plan = TcpPlan((Leg(way, 6),), streams, time_s=10.0, omit_s=omit_s)
    path = Path(bps=[*RATES, 944e6, 913e6][: 10 + int(omit_s)], retransmits=30)
    run = replace(run_of(way, plan=plan), legs=(make_leg(plan, plan.legs[0], path, jitter),))
    ((name, document),) = exported(run)
    again = imported(document)
    assert name == f"{way.value}-ipv6" and again.plan.legs == plan.legs and again.plan.streams == streams
    for one, other in zip(run.flows, again.flows, strict=True):
        assert one.statistics is not None and other.statistics is not None
        assert vars(other.statistics) == pytest.approx(vars(one.statistics), rel=1e-9)
        assert other.flow.retransmits == one.flow.retransmits
        assert other.flow.intervals[3].rtt_s == pytest.approx(one.flow.intervals[3].rtt_s)
    assert not {"clocks-apart", "counters-apart"} & {one.code for one in again.analysis_caveats}


def test_each_leg_is_a_file() -> None:
    legs = [Leg(Way.FORWARD), Leg(Way.REVERSE, 6), Leg(Way.REVERSE, 6, 2)]
    found = exported(make_tcp_result(legs=legs))
    assert [name for name, _ in found] == ["forward-ipv4", "reverse-ipv6", "reverse-ipv6-2"]
    assert [document["start"]["test_start"]["reverse"] for _, document in found] == [0, 1, 1]


def test_what_is_simulated_stays_so() -> None:
    ((_, document),) = exported(run_of(simulated=True))
    assert document["title"] == "SIMULATED: lab-linux forward IPv4"
    assert json.loads(document["extra_data"])["trexbench"]["simulated"] is True
    assert imported(document).simulated
    ((_, measured),) = exported(run_of())
    assert "SIMULATED" not in measured["title"] and not imported(measured).simulated


def test_cpu_is_that_of_the_programs() -> None:
    path = Path(threads={"client": (0.10, 0.40, 0.0), "server": (0.05, 0.20, 0.0)})
    ((_, document),) = exported(make_tcp_result(path, [Leg(Way.REVERSE)]))
    assert document["end"]["cpu_utilization_percent"] == pytest.approx(
        {"host_total": 50.0, "host_user": 10.0, "host_system": 40.0}
        | {"remote_total": 25.0, "remote_user": 5.0, "remote_system": 20.0}
    )


def test_the_end_adds_the_intervals_up() -> None:
    ((_, document),) = exported(run_of())
    end, intervals = document["end"], document["intervals"]
    assert end["sum_sent"]["bytes"] == sum(one["sum"]["bytes"] for one in intervals) == sum(RATES) / 8
    assert end["sum_sent"]["retransmits"] == sum(one["sum"]["retransmits"] for one in intervals) == 30
    assert end["streams"][0]["sender"]["max_snd_cwnd"] == 400_000 // 1448 * 1448


def test_a_leg_that_broke_off_has_its_error() -> None:
    run = run_of()
    run = replace(run, legs=(replace(run.legs[0], server=run.legs[0].server[:4], error="the server went away"),))
    ((_, document),) = exported(run)
    assert document["error"] == "the server went away" and imported(document).reason == "the server went away"


def test_without_a_leg_there_is_nothing_to_export() -> None:
    with pytest.raises(StoreError, match="no leg"):
        list(to_iperf3(replace(run_of(), legs=())))
    nothing = replace(run_of(), legs=(replace(run_of().legs[0], client=(), server=(), error="no connection"),))
    ((_, document),) = exported(nothing)
    assert document["intervals"] == [] and document["error"] == "no connection"
