from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from effort import scaled
from hypothesis import given, settings
from hypothesis import strategies as st
from tcp_runs import Path, make_tcp_result

from trexbench.core.dut.runtime import ThreadRuntime
from trexbench.core.dut.telemetry import QDISC_DROPS
from trexbench.core.tcp.limit import TcpLimit, TcpVerdict
from trexbench.core.tcp.plan import Leg, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.tunnel import CLIENT_DUT
from trexbench.core.tcp.wan import parse_wan
from trexbench.core.units import tcp_payload_bps

FORWARD = (Leg(Way.FORWARD),)
APART = TcpEnvironment(one_kernel=True, cpus={"client": (0,), "server": (0,), "dut": (1,)})
SHARED = TcpEnvironment(one_kernel=True)
BESIDE_CLIENT = replace(APART, cpus={"client": (1,), "server": (0,), "dut": (1,)})
GIGABIT = TcpEnvironment(line_bps=1e9)
THREADED, PPPOE = replace(APART, napi_threads=True), replace(APART, pppoe=True)
TUNNELLED = replace(THREADED, tunnel_between=CLIENT_DUT)
LINE, FAST_LINE = (TcpEnvironment(wan=parse_wan(text), wan_by="cable") for text in ("20ms,1gbit", "20ms,10gbit"))

BESIDE_LINE = replace(LINE, line_bps=1e9)


def verdict(path: Path, **more: Any) -> TcpVerdict:
    (flow,) = make_tcp_result(path, legs=FORWARD, **more).flows
    return flow.verdict


def codes(found: TcpVerdict) -> set[str]:
    return {one.code for one in found.warnings}


def test_the_lines_payload_rate_is_the_textbooks() -> None:
    assert tcp_payload_bps(100e6) == pytest.approx(94.15e6, rel=1e-4)
    assert tcp_payload_bps(1e9, timestamps=False) == pytest.approx(1e9 * 1460 / 1538)
    assert tcp_payload_bps(1e9, version=6, vlans=1) == pytest.approx(1e9 * 1428 / 1542)
    assert tcp_payload_bps(10e9, mtu=9000) == pytest.approx(10e9 * 8948 / 9038)
    assert tcp_payload_bps(1e9, mtu=40) == 0.0


def busy(client: float, server: float, dut: float) -> dict[str, tuple[float, float]]:
    """Two cores that all three report, as of one kernel: the second one so busy."""
    return {"client": (0.3, client), "server": (0.3, server), "dut": (0.3, dut)}


DUT, UNKNOWN, CPU = TcpLimit.DUT, TcpLimit.UNKNOWN, TcpLimit.ENDPOINT_CPU
WINDOW, FULL = TcpLimit.WINDOW, TcpLimit.LINK
SLEEPER, LATE = {"client": (0.01, 0.02, 0.08)}, Path(bps=957e6, threads={"server": (0.01, 0.04, 0.15)})
FILLED = Path(bps=80e6, threads={"client": (0.01, 0.02, 0.01)}, cores={"client": (0.99,), "dut": (0.98,)}, packets=0.1)
ONE_FULL = Path(bps=80e6, cores={"dut": (0.02, 0.98, 0.02, 0.02)})
FULL_THREAD = Path(bps=941e6, threads={"client": (0.06, 0.92, 0.0)}, cores={"dut": (0.99,)})
FAST = Path(bps=5.1e9, cores={"dut": (0.99,)})
WIDE = {"send_buffer": 80_000_000, "peer_window": 80_000_000}
SMALL = {"in_flight": 120_000, "peer_window": 121_000}
LONG = Path(bps=4.9e9, rtt_s=0.0203, min_rtt_s=0.020, in_flight=12_500_000, cwnd=12_600_000, retransmits=60_000, **WIDE)
DROPS = Path(retransmits=100, drops=80)
ALL = {"client": (0.2, 0.9), "server": (0.2, 0.9), "dut": (0.2, 0.9)}
QUEUED = Path(bps=80e6, rtt_s=0.004, cores=ALL, in_flight=1000)
FULL_CORES, SLEEPS = dict.fromkeys(ALL, (0.2, 0.99)), {"server": (0.01, 0.02, 0.12)}
SLEEPS_BESIDE = replace(QUEUED, cores=FULL_CORES, packets=0.4, threads=SLEEPS)
"""More would be carried without other work."""
LOADED = Path(bps=80e6, cores=busy(0.9, 0.9, 0.99), packets=0.2)
ON_SHARED = Path(bps=80e6, cores=dict.fromkeys(ALL, (0.99, 0.2)))
THEIRS, WIDER = replace(ON_SHARED, bps=15e9), Path(bps=20e9)
ALONE = Path(bps=80e6, cores={"dut": (0.3, 0.99)})
ALONE_WORDS = "the endpoints alone carry 20.00 Gbit/s on the same cores"
TRIPS = "round trips of 4.00 ms instead of 1.00 ms"


def case(what: str, path: Path, limit: TcpLimit, words: str = "", code: str = "", **more: Any) -> Any:
    """words: of the first reason. code: of a warning; with a ``!`` there is no such one."""
    return pytest.param(path, more, limit, words, code, id=what)


CASES = [
    case("a full thread first", FULL_THREAD, CPU, r"client.*98\.0 %.*sys 92\.0 %", setup=GIGABIT),
    case("one full core of four", Path(cores={"server": (0.1, 0.99, 0.1, 0.1)}), CPU, "receives: its CPU 1 was 99.0 %"),
    case("run delay", Path(threads={"client": (0.1, 0.3, 0.12)}), CPU, code="foreign-load"),
    case("a sleeper hides no DUT", Path(bps=80e6, threads=SLEEPER, cores={"dut": (0.98,)}), DUT, code="foreign-load"),
    case("other work, for which the program did not wait", FILLED, DUT, code="foreign-load"),
    case("packets fill an endpoint's core", replace(FILLED, packets=0.6), CPU),
    case("one full core of the DUT's", ONE_FULL, DUT, r"^the DUT's CPU 1 was 98\.0 % busy$", code="no-ceiling"),
    case(
        "near the ceiling", FAST, CPU, "carried no more than 5.400 Gbit/s without the router", ceiling=Path(bps=5.4e9)
    ),
    case("a ceiling that was passed", FAST, DUT, code="no-ceiling", ceiling=Path(bps=2e9)),
    case("a ceiling of the line", replace(FAST, bps=900e6), DUT, ceiling=Path(bps=941e6), setup=GIGABIT),
    case("a full window with a queue behind it", replace(LONG, bps=2e9, rtt_s=0.05, retransmits=0), UNKNOWN),
    case("losses hold the congestion window down", LONG, UNKNOWN),
    case("they are the DUT's", replace(LONG, drops=50_000), DUT),
    case("no losses hold it down", replace(LONG, retransmits=0), WINDOW),
    case("the DUT holds it down", replace(LONG, retransmits=0, cores={"dut": (0.97,)}), DUT),
    case("a full line", Path(bps=940e6), FULL, setup=GIGABIT),
    case("a full line, and a WAN of its speed", Path(bps=940e6), FULL, "a line of 1.000 Gbit/s", setup=BESIDE_LINE),
    case("a line of another speed than was given", Path(bps=4e9), UNKNOWN, code="line-speed", setup=GIGABIT),
    case("a line with room", Path(bps=900e6), UNKNOWN, setup=GIGABIT),
    case("little time left, and a queue", QUEUED, DUT, TRIPS, setup=APART),
    case("little time left, no queue", replace(QUEUED, rtt_s=0.0011), UNKNOWN, setup=APART),
    case("a queue before a free line", QUEUED, DUT, TRIPS, setup=GIGABIT),
    case("a queue that may be the line's", replace(QUEUED, bps=900e6), UNKNOWN, setup=GIGABIT),
    case("a queue before who knows what line", QUEUED, UNKNOWN),
    case("a sleeper's run delay explains no queue", SLEEPS_BESIDE, UNKNOWN, code="foreign-load", setup=APART),
    case("drops that explain what was sent again", DROPS, DUT),
    case("drops that do not", replace(DROPS, drops=20), UNKNOWN),
    case("drops as of an idle DUT", DROPS, UNKNOWN, idle=make_tcp_result(DROPS).legs[0].dut),
    case("more", DROPS, DUT, "80 frames, 8 of", idle=make_tcp_result(replace(DROPS, drops=8)).legs[0].dut),
    case("too few drops", Path(retransmits=4, drops=4), UNKNOWN),
    case("drops of a queue of the DUT's", replace(DROPS, drop_name=QDISC_DROPS), DUT),
    case("drops of the WAN's queue", replace(DROPS, drop_name=QDISC_DROPS), UNKNOWN, setup=FAST_LINE),
    case("drops before a WAN", DROPS, DUT, setup=FAST_LINE),
    case("one kernel, the DUT's own core", Path(cores=busy(0.99, 0.99, 0.99)), DUT, setup=APART),
    case("one kernel, the endpoints' core", Path(cores=dict.fromkeys(ALL, (0.99, 0.6))), CPU, setup=APART),
    case("shared cores, the DUT's work", ON_SHARED, DUT, ALONE_WORDS, setup=SHARED, ceiling=Path(bps=20e9)),
    case("shared cores, theirs", THEIRS, CPU, "which it may share with the router, was", setup=SHARED, ceiling=WIDER),
    case("the other's core is shared", THEIRS, CPU, "its CPU 0 was 99", setup=BESIDE_CLIENT, ceiling=WIDER),
    case("a foreign program on a lab router's core", LOADED, UNKNOWN, code="foreign-load", setup=APART),
    case("packets on it", replace(LOADED, packets=0.9), DUT, setup=APART),
    case("threads, of which the kernel does not tell", LOADED, DUT, setup=THREADED),
    case("threads", replace(LOADED, user=0.1), DUT, setup=THREADED),
    case("programs", replace(LOADED, user=0.7), UNKNOWN, setup=THREADED),
    case("a tunnel's program", replace(LOADED, user=0.7), DUT, code="other-work", setup=TUNNELLED),
    case("the kernel moves frames of PPPoE", LOADED, UNKNOWN, code="foreign-load", setup=PPPOE),
    case("frames of PPPoE fill it", replace(LOADED, packets=0.9), DUT, setup=PPPOE),
    case("a program that runs wild on a router of its own", replace(ALONE, packets=0.1), DUT, code="other-work"),
    case("a router of its own that forwards", replace(ALONE, packets=0.9), DUT, code="!other-work"),
    case("a late sleeper", LATE, CPU),
    case("a late sleeper, and a full line", LATE, FULL, setup=LINE),
    case("a late worker, and a full line", replace(LATE, threads={"server": (0.1, 0.5, 0.15)}), CPU, setup=LINE),
    case("a late sleeper, and a full window", replace(LATE, **SMALL), WINDOW, code="foreign-load"),
]


@pytest.mark.parametrize(("path", "more", "limit", "words", "code"), CASES)
def test_the_limit(path: Path, more: dict[str, Any], limit: TcpLimit, words: str, code: str) -> None:
    found = verdict(path, **more)
    assert (found.limit, found.at_least) == (limit, limit is not DUT), found.reasons
    assert re.search(words, found.reasons[0]), found.reasons
    assert not code or (code.removeprefix("!") in codes(found)) is not code.startswith("!")
    assert all("forward IPv4: " in one.text for one in found.warnings if one.code in ("foreign-load", "dut-unread"))


def test_pppoe_takes_eight_bytes_of_each_frame() -> None:
    """Routers of document 004 do so: 1492 bytes of IP in a frame of 1518."""
    full = verdict(Path(bps=930e6), setup=replace(GIGABIT, mtu=1492, pppoe=True))
    assert full.link_bps == pytest.approx(1e9 * (1492 - 52) / 1538)
    assert full.limit is FULL and "carries at MTU 1492 in PPPoE" in full.reasons[0]
    assert verdict(Path(bps=940e6), setup=GIGABIT).link_bps == pytest.approx(941.5e6, rel=1e-4)


@pytest.mark.parametrize(
    ("setup", "code", "words"),
    [
        (APART, "cores-shared", "the server may run on the same core"),
        (SHARED, "cores-shared", "the server and the dut may run on the same core"),
        (replace(APART, cpus={"client": (0,), "server": (1,), "dut": (2,)}), "foreign-load", "other work"),
        (TcpEnvironment(), "foreign-load", "other work"),
    ],
)
def test_run_delay_on_a_shared_core_is_laid_to_no_other_work(setup: TcpEnvironment, code: str, words: str) -> None:
    found = verdict(Path(threads={"client": (0.1, 0.3, 0.12)}), setup=setup)
    (said,) = [one for one in found.warnings if "waited for a CPU" in one.text]
    assert said.code == code and words in said.text


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("send buffer", {"send_buffer": 16_777_216, "cwnd": 40_000_000}),
        ("receive window", {"peer_window": 12_700_000, "cwnd": 40_000_000}),
        ("receive window", {"peer_window": 12_700_000, "send_buffer": 22_000_000}),
        ("congestion window", {}),
    ],
)
def test_each_window_is_told_with_the_rate_that_it_allows(kind: str, sizes: dict[str, int]) -> None:
    """Document 002: 20 ms, a window of 12.5 MB, 5 Gbit/s."""
    found = verdict(replace(LONG, retransmits=0, **sizes))
    assert found.limit is WINDOW and found.window is not None and found.window.kind == kind
    assert found.window.predicted_bps == pytest.approx(5e9, rel=0.01)
    assert f"fill the {kind} of " in found.reasons[0] and " MB; over" in found.reasons[0]
    plan = TcpPlan(FORWARD, streams=4, time_s=10.0)
    four = verdict(replace(LONG, retransmits=0, **sizes), plan=plan)
    assert " MB on each of 4 connections; over" in four.reasons[0] and "makes 20.00 Gbit/s" in four.reasons[0]


def test_a_receive_window_that_is_wider_than_the_line_hides_no_busy_dut() -> None:
    times = {"rtt_s": 0.0216, "min_rtt_s": 0.0204}
    path = Path(800e6, in_flight=2_160_000, cwnd=3_200_000, send_buffer=40_000_000, cores={"dut": (1.0,)}, **times)
    assert verdict(replace(path, peer_window=2_500_000), setup=LINE).limit is DUT, "980 of 956 Mbit/s"
    assert verdict(replace(path, peer_window=2_300_000), setup=LINE).limit is WINDOW, "902 Mbit/s"


def test_a_line_that_was_full_but_for_the_slow_start_names_the_interval() -> None:
    found = verdict(Path(bps=(100e6, *[950e6] * 9)), setup=LINE)
    assert found.limit is FULL and found.reasons[0].endswith("at MTU 1500, in the median interval")
    assert verdict(Path(bps=950e6), setup=LINE).reasons[0].endswith("at MTU 1500")


def test_without_an_idle_round_trip_no_window_is_the_limit() -> None:
    """The genuine iperf3 tells only smoothed round trips: of a queue that is always full they are all alike."""
    run = make_tcp_result(replace(LONG, retransmits=0), legs=FORWARD)
    readings = tuple(
        replace(one, streams=tuple(replace(s, info={**s.info, "min_rtt": 0}) for s in one.streams))
        for one in run.legs[0].client
    )
    blind = replace(run, legs=(replace(run.legs[0], client=readings),))
    assert blind.flows[0].verdict.limit is WINDOW  # by its pings
    assert replace(blind, pings=()).flows[0].verdict.limit is UNKNOWN


def test_on_shared_cores_a_program_is_not_believed() -> None:
    """The router's work runs in the sender's process."""
    busy = Path(bps=80e6, cores={"client": (0.99, 0.2), "dut": (0.99, 0.2)}, threads={"client": (0.0, 0.97, 0.0)})
    found = verdict(busy, setup=SHARED)
    assert found.limit is UNKNOWN and codes(found) == {"cores-shared", "no-ceiling"}
    assert found.reasons[0].startswith("CPU 0 was 99.0 % busy; whether")


def test_a_dut_that_polls_is_not_judged_by_its_cpu() -> None:
    thread = ThreadRuntime(1, "vpp_wk_0", 1, 10.0, None, None, None, None, None, None, ())
    result = make_tcp_result(Path(cores={"dut": (1.0,)}), legs=FORWARD)
    seen = [replace(r, observation=replace(r.observation, threads=(thread,))) for r in result.legs[0].dut]
    (flow,) = replace(result, legs=(replace(result.legs[0], dut=tuple(seen)),)).flows
    assert flow.verdict.limit is UNKNOWN and "dut-polls" in codes(flow.verdict)


def test_drops_in_the_omitted_time_are_no_evidence() -> None:
    """Slow start overflows the DUT's queue; what is sent again afterwards was lost elsewhere."""
    plan = TcpPlan(legs=FORWARD, time_s=8.0, omit_s=2.0)
    result = make_tcp_result(DROPS, plan=plan)
    (leg,) = result.legs
    begin, end = leg.dut
    omitted = replace(end, t_s=leg.began_s + 1.5)  # the DUT drops no more from here on
    for dut, limit in (((begin, omitted, end), UNKNOWN), ((begin, end), DUT)):
        (flow,) = replace(result, legs=(replace(leg, dut=dut),)).flows
        assert (flow.flow.retransmits, flow.verdict.limit) == (80, limit), flow.verdict.reasons


def test_nothing_measured_nothing_said() -> None:
    result = make_tcp_result(FULL_THREAD, legs=FORWARD)
    (leg,) = result.legs
    first, second = leg.server[:2]
    for server in ((), (first, replace(second, at_s=first.at_s + 0.4))):  # or interrupted before an interval ended
        (flow,) = replace(result, legs=(replace(leg, server=server),)).flows
        assert (flow.verdict.limit, flow.verdict.at_least, flow.statistics) == (UNKNOWN, True, None)
        assert flow.verdict.reasons == ("no whole interval was measured",)


@settings(max_examples=scaled(100, 10))
@given(busy=st.floats(0, 0.94), bps=st.floats(1e6, 8e8), ceiling=st.floats(2e9, 4e10), waiting=st.floats(0, 0.05))
def test_without_evidence_the_dut_is_never_blamed(busy: float, bps: float, ceiling: float, waiting: float) -> None:
    path = Path(bps=bps, cores={"dut": (busy,)}, threads={"client": (0.1, 0.3, waiting)})
    for setup in (TcpEnvironment(), SHARED, APART, GIGABIT):
        assert verdict(path, setup=setup, ceiling=Path(bps=ceiling)).limit is not DUT


@pytest.mark.parametrize(("ticks", "limit"), [(1.0, DUT), (0.5, UNKNOWN)])
def test_a_virtual_machine_is_judged_by_the_time_that_payload_flowed(ticks: float, limit: TcpLimit) -> None:
    """ticks: share of the time that its clock counts."""
    setup = replace(APART, dut_is_guest=True)
    result = make_tcp_result(Path(bps=80e6, cores={"dut": (1.0,)}), legs=FORWARD, setup=setup)
    (leg,) = result.legs
    (begin, core), (end, _) = ((one, one.observation.cpus[0]) for one in leg.dut)
    after = replace(core, total_s=core.total_s + ticks * 11.2, busy_s=core.busy_s + ticks * 10)
    after = replace(after, packet_s=(core.packet_s or 0.0) + ticks * 9)
    begin = replace(begin, t_s=begin.t_s - 0.6, observation=replace(begin.observation, at_s=500.0))
    end = replace(end, t_s=end.t_s + 0.6, observation=replace(end.observation, at_s=511.2, cpus=(after,)))
    (flow,) = replace(result, legs=(replace(leg, dut=(begin, end)),)).flows
    assert flow.verdict.limit is limit and len(flow.shares["dut"].cpus) == int(ticks)
    unread = [one.text.partition(",")[0] for one in flow.verdict.warnings if one.code == "dut-unread"]
    assert unread == ["forward IPv4: the guest's CPU times run at another pace than the clock"] * (limit is UNKNOWN)
