"""Streams with statistics alone: their groups, and the counters in TRex's words."""

from __future__ import annotations

from typing import Any

import pytest
from frames import VLAN, tagged, udp
from test_stlserver_groups import NO_IP, Bench, latency

from trexbench.stlserver.engine import MARKS
from trexbench.stlserver.state.groups import MAX_LATENCY_GROUPS


def stats(pg_id: int = 7, pps: float = 1000.0, packet: bytes = udp(), **more: Any) -> Any:
    return latency(pg_id, packet, pps, rule_type="stats", **more)


def of(bench: Bench, pg_id: int = 7) -> Any:
    return bench.call("get_pgid_stats", pgids=[pg_id])["flow_stats"][str(pg_id)]


@pytest.mark.parametrize(("make", "pps"), [(latency, 1000), (stats, 2000)], ids=["latency", "stats"])
def test_what_leaves_and_what_arrives_is_told_by_port(make: Any, pps: int) -> None:
    """The multiplier counts for streams that are counted, not for those that are timed."""
    bench = Bench()
    bench.call("add_stream", stream_id=1, stream=make(pps=1000.0))
    groups = {"flow_stats": [7], "latency": []} if make is stats else {"flow_stats": [], "latency": [7]}
    assert bench.call("get_active_pgids") == {"ids": groups}
    assert of(bench) == {name: {"0": 0, "1": 0} for name in ["tp", "tb", "tps", "tbs", "rp", "rb", "rps", "rbs"]}
    assert bench.call("get_pgid_stats", pgids=[7])["latency"] == {"g": None}
    assert not bench.call("get_port_status")["rx_info"]["latency"]["is_active"]
    assert bench.start(mul={"type": "raw", "op": "abs", "value": 2.0}, duration=2)["multiplier"] == 2
    assert bench.call("get_port_status", port_id=1)["rx_info"]["latency"]["is_active"]
    for _ in range(3):
        bench.wait(0.5)
    found = bench.call("get_pgid_stats", pgids=[7, 8])
    packets, octets = pps * 3 // 2, pps * 3 // 2 * 64
    assert found["ver_id"] == {"7": 0} and found["flow_stats"]["7"] == {
        "tp": {"0": packets, "1": 0}, "rp": {"0": 0, "1": packets}, "tb": {"0": octets, "1": 0},
        "rb": {"0": 0, "1": octets}, "tps": {"0": pps, "1": 0.0}, "rps": {"0": 0.0, "1": pps},
        "tbs": {"0": pps * 512.0, "1": 0.0}, "rbs": {"0": 0.0, "1": pps * 512.0},
    }  # fmt: skip
    lat = {"average": 20.0, "histogram": {"20": 1500}, "jit": 0, "last_max": 20, "total_max": 20, "total_min": 20}
    assert found["latency"] == {"g": None} | ({"7": {"lat": lat}} if make is latency else {})
    bench.wait(1)
    bench.call("remove_rx_filters")
    assert of(bench)["tps"] == {"0": 0.0, "1": 0.0} and of(bench)["tp"]["0"] == 2 * pps
    assert not bench.call("get_port_status")["rx_info"]["latency"]["is_active"]


@pytest.mark.parametrize("make", [latency, stats])
def test_another_start_goes_on_counting_and_a_new_group_begins_at_zero(make: Any) -> None:
    bench = Bench()
    for version in (0, 1):
        bench.call("add_stream", stream_id=1, stream=make(pps=1000))
        for number in (1, 2):
            bench.start(duration=1)
            bench.wait(1)
            assert of(bench)["rp"]["1"] == 1000 * number
            bench.call("remove_rx_filters")
        found = bench.call("get_pgid_stats", pgids=[])
        assert found["ver_id"] == {"7": version}
        assert make is stats or found["latency"]["7"]["lat"]["histogram"] == {"20": 2000}
        bench.call("remove_all_streams")
    assert bench.call("get_pgid_stats", pgids=[7]) == {"flow_stats": None, "latency": {"g": None}, "ver_id": None}


def test_a_start_before_the_filters_are_removed_is_not_counted() -> None:
    """TRex v3.08 sends such a stream without its mark."""
    bench = Bench()
    bench.call("add_stream", stream_id=1, stream=stats(pps=1000))
    for _ in range(2):
        bench.start(duration=1)
        bench.wait(1)
        assert of(bench)["rp"]["1"] == 1000


def test_the_counts_go_with_the_last_stream_that_is_active() -> None:
    bench = Bench()
    for number in (1, 2):
        bench.call("add_stream", stream_id=number, stream=stats(pps=100.0))
    bench.start(duration=1)
    bench.wait(1)
    bench.call("remove_stream", stream_id=1)
    assert of(bench)["tp"]["0"] == 200
    bench.call("remove_rx_filters")
    bench.call("add_stream", stream_id=1, stream=stats(pps=100.0))
    bench.call("remove_stream", stream_id=1)
    assert of(bench)["tp"]["0"] == 0 and bench.call("get_active_pgids")["ids"]["flow_stats"] == [7]


PROTOCOLS = "Can't use same pg_id for streams with different l4 protocol"
SHORT = " bytes of payload have no room for the time; it needs 16"
REFUSED: list[tuple[str, Any, Any, str]] = [
    ("other protocols", stats(), stats(packet=udp(protocol=6)), PROTOCOLS),
    ("timed beside counted", stats(), latency(), PROTOCOLS),
    ("counted beside timed", latency(), stats(), "For payload rules: Can't have two streams with same pg_id"),
    ("no IP", None, stats(packet=NO_IP), "frames are counted in IPv4 and IPv6 only"),
    ("a short header", None, stats(packet=tagged(udp(), *11 * [VLAN])[:58]), "in IPv4 and IPv6 only"),
    ("none behind TCP", None, latency(packet=udp(protocol=6, fill=bytes(4) + b"\x50" + bytes(13))), "6" + SHORT),
    ("nor behind IPv6", None, latency(packet=udp(69, 6, protocol=58)), "15" + SHORT),
    ("dummy streams", None, stats(flags=8 | 2), "dummy stream"),
    ("streams that start paused", None, stats(start_paused=True), "starts paused"),
    ("tagged groups", None, latency(rule_type="tpg"), "no flow statistics of type 'tpg', only stats and latency"),
    ("IEEE 1588", None, latency(ieee_1588=True), "nor timed by IEEE 1588"),
    ("a tunnel", None, latency(vxlan=True), "frames are neither counted inside VXLAN tunnels"),
    ("a core of its own", None, latency(core_id=0), "a latency stream has no core of its own"),
    ("no number", None, latency(pg_id=-1), "field 'stream_id' is '-1', expecting a whole number of 32 bits"),
    ("no kind", None, latency(rule_type=None), "field 'rule_type' is missing"),
]


@pytest.mark.parametrize(("about", "first", "then", "text"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_refused_leaves_nothing(about: str, first: Any, then: Any, text: str) -> None:
    bench = Bench()
    if first is not None:
        assert bench.call("add_stream", stream_id=1, stream=first) == {}
    before = [bench.call(name) for name in ("get_active_pgids", "get_all_streams")]
    before.append(bench.call("get_pgid_stats", pgids=[]))
    assert text in bench.call("add_stream", stream_id=2, stream=then)
    assert bench.call("get_pgid_stats", pgids=[]) == before.pop()
    assert [bench.call(name) for name in ("get_active_pgids", "get_all_streams")] == before


@pytest.mark.parametrize("packet", [udp(), udp(78, 6)])
def test_a_core_of_its_own_and_ipv6_are_accepted(packet: bytes) -> None:
    assert Bench().call("add_stream", stream_id=1, stream=stats(packet=packet, core_id=0)) == {}


@pytest.mark.parametrize(("make", "most"), [(latency, MAX_LATENCY_GROUPS), (stats, MARKS)])
def test_counters_are_handed_out_from_the_lowest_and_run_out(
    make: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trexbench.stlserver.state.server_state.MAX_STREAMS", MARKS + 1)  # else it takes several ports
    bench = Bench()
    for number in range(most + 1):
        assert bench.call("add_stream", stream_id=number, stream=make(5000 + number, pps=10.0)) == {}
    assert bench.start().startswith("Failed allocating statistic counter.")
    bench.call("remove_stream", stream_id=5)
    assert bench.start()["multiplier"] == 1
    bench.wait(1)
    found = [bench.call("get_pgid_stats", pgids=[5000 + number])["flow_stats"] for number in (0, 4, 6, most)]
    assert [next(iter(one.values()))["tp"]["0"] for one in found] == [10, 10, 10, 10]
