from __future__ import annotations

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
from trexbench.core.tcp.model import Leg, TcpEnvironment, Way
from trexbench.core.tcp.tunnel import CLIENT_DUT
from trexbench.core.tcp.wan import parse_wan
from trexbench.core.units import tcp_payload_bps

FORWARD = (Leg(Way.FORWARD),)
APART = TcpEnvironment(one_kernel=True, cpus={"client": (0,), "server": (0,), "dut": (1,)})
SHARED = TcpEnvironment(one_kernel=True)
GIGABIT = TcpEnvironment(line_bps=1e9)


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


def test_pppoe_takes_eight_bytes_of_each_frame() -> None:
    """Routers of document 004 do so: 1492 bytes of IP in a frame of 1518."""
    full = verdict(Path(bps=930e6), setup=replace(GIGABIT, mtu=1492, pppoe=True))
    assert full.link_bps == pytest.approx(1e9 * (1492 - 52) / 1538)
    assert full.limit is TcpLimit.LINK and "carries at MTU 1492 in PPPoE" in full.reasons[0]


@pytest.mark.parametrize("host", ["client", "server"])
def test_an_endpoints_full_thread_comes_before_all_else(host: str) -> None:
    path = Path(bps=941e6, threads={host: (0.06, 0.92, 0.0)}, cores={"dut": (0.99,)})
    found = verdict(path, setup=GIGABIT)
    assert (found.limit, found.at_least) == (TcpLimit.ENDPOINT_CPU, True)
    assert host in found.reasons[0] and "98.0 %" in found.reasons[0] and "sys 92.0 %" in found.reasons[0]


def test_one_full_core_of_four_is_an_endpoints_limit() -> None:
    found = verdict(Path(cores={"server": (0.1, 0.99, 0.1, 0.1)}))
    assert found.limit is TcpLimit.ENDPOINT_CPU
    assert "receives: its CPU 1 was 99.0 % busy" in found.reasons[0]


def test_run_delay_is_the_endpoints_limit_and_a_doubt() -> None:
    found = verdict(Path(threads={"client": (0.1, 0.3, 0.12)}))
    assert found.limit is TcpLimit.ENDPOINT_CPU
    assert "foreign-load" in codes(found)


@pytest.mark.parametrize(
    ("setup", "code", "words"),
    [
        (APART, "cores-shared", "the server may run on the same core"),
        (SHARED, "cores-shared", "the server and the dut may run on the same core"),
        (
            TcpEnvironment(one_kernel=True, cpus={"client": (0,), "server": (1,), "dut": (2,)}),
            "foreign-load",
            "other work",
        ),
        (TcpEnvironment(), "foreign-load", "other work"),
    ],
)
def test_run_delay_on_a_core_that_hosts_share_is_laid_to_no_other_work(
    setup: TcpEnvironment, code: str, words: str
) -> None:
    found = verdict(Path(threads={"client": (0.1, 0.3, 0.12)}), setup=setup)
    (said,) = [one for one in found.warnings if "waited for a CPU" in one.text]
    assert said.code == code and words in said.text


def test_run_delay_of_a_thread_that_sleeps_hides_no_saturated_dut() -> None:
    found = verdict(Path(bps=80e6, threads={"client": (0.01, 0.02, 0.08)}, cores={"dut": (0.98,)}))
    assert (found.limit, found.at_least) == (TcpLimit.DUT, False)
    assert "foreign-load" in codes(found)


def test_an_endpoints_core_that_other_work_fills_is_a_doubt_only() -> None:
    """The program has got all the time that it needed: it did not wait."""
    path = Path(bps=80e6, threads={"client": (0.01, 0.02, 0.01)}, cores={"client": (0.99,), "dut": (0.98,)})
    found = verdict(replace(path, packets=0.1))
    assert found.limit is TcpLimit.DUT and "foreign-load" in codes(found)
    assert verdict(replace(path, packets=0.6)).limit is TcpLimit.ENDPOINT_CPU


def test_a_rate_near_the_endpoints_ceiling_is_theirs() -> None:
    found = verdict(Path(bps=5.1e9, cores={"dut": (0.99,)}), ceiling=Path(bps=5.4e9))
    assert found.limit is TcpLimit.ENDPOINT_CPU
    assert "5.400 Gbit/s without the router" in found.reasons[0]


def test_a_ceiling_that_is_the_lines_is_not_the_endpoints() -> None:
    found = verdict(Path(bps=900e6, cores={"dut": (0.99,)}), ceiling=Path(bps=941e6), setup=GIGABIT)
    assert found.limit is TcpLimit.DUT


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("send buffer", {"send_buffer": 16_777_216, "in_flight": 12_500_000, "cwnd": 40_000_000}),
        ("receive window", {"peer_window": 12_700_000, "in_flight": 12_500_000, "cwnd": 40_000_000}),
        ("congestion window", {"cwnd": 12_600_000, "in_flight": 12_500_000}),
    ],
)
def test_each_window_is_told_with_the_rate_that_it_allows(kind: str, sizes: dict[str, int]) -> None:
    """Document 002: 20 ms, a window of 12.5 MB, 5 Gbit/s."""
    wide = {"send_buffer": 80_000_000, "peer_window": 80_000_000, "cwnd": 80_000_000}
    found = verdict(Path(bps=4.9e9, rtt_s=0.0203, min_rtt_s=0.020, **(wide | sizes)))
    assert found.limit is TcpLimit.WINDOW and found.window is not None
    assert found.window.kind == kind
    assert found.window.predicted_bps == pytest.approx(5e9, rel=0.01)
    assert kind in found.reasons[0]


def test_without_an_idle_round_trip_no_window_is_the_limit() -> None:
    """The genuine iperf3 tells only smoothed round trips: of a queue that is always full they are all alike."""
    wide = {"send_buffer": 80_000_000, "peer_window": 80_000_000}
    path = Path(bps=4.9e9, rtt_s=0.0203, min_rtt_s=0.020, in_flight=12_500_000, cwnd=12_600_000, **wide)
    run = make_tcp_result(path, legs=FORWARD)
    readings = tuple(
        replace(one, streams=tuple(replace(s, info={**s.info, "min_rtt": 0}) for s in one.streams))
        for one in run.legs[0].client
    )
    blind = replace(run, legs=(replace(run.legs[0], client=readings),))
    assert blind.flows[0].verdict.limit is TcpLimit.WINDOW  # by its pings
    assert replace(blind, pings=()).flows[0].verdict.limit is TcpLimit.UNKNOWN


def test_a_full_window_with_a_queue_behind_it_is_no_limit() -> None:
    found = verdict(Path(bps=2e9, rtt_s=0.05, min_rtt_s=0.020, in_flight=12_500_000, peer_window=12_700_000))
    assert found.limit is not TcpLimit.WINDOW


def test_a_congestion_window_that_losses_hold_down_is_no_limit() -> None:
    path = Path(bps=4.9e9, rtt_s=0.0203, min_rtt_s=0.020, in_flight=12_500_000, cwnd=12_600_000, retransmits=60_000)
    wide = replace(path, send_buffer=80_000_000, peer_window=80_000_000)
    assert verdict(wide).limit is TcpLimit.UNKNOWN
    assert verdict(replace(wide, drops=50_000)).limit is TcpLimit.DUT
    full = replace(wide, retransmits=0)
    assert verdict(full).limit is TcpLimit.WINDOW
    assert verdict(replace(full, cores={"dut": (0.97,)})).limit is TcpLimit.DUT


def test_a_line_that_is_full() -> None:
    found = verdict(Path(bps=940e6), setup=GIGABIT)
    assert (found.limit, found.link_bps) == (TcpLimit.LINK, pytest.approx(941.5e6, rel=1e-4))
    assert verdict(Path(bps=900e6), setup=GIGABIT).limit is TcpLimit.UNKNOWN


def test_one_full_core_of_the_dut_is_the_duts_limit() -> None:
    found = verdict(Path(bps=80e6, cores={"dut": (0.02, 0.98, 0.02, 0.02)}))
    assert (found.limit, found.at_least) == (TcpLimit.DUT, False)
    assert found.reasons == ("the DUT's CPU 1 was 98.0 % busy",)
    assert codes(found) == {"no-ceiling"}


@pytest.mark.parametrize(
    ("setup", "bps", "rtt_s", "limit"),
    [
        (APART, 80e6, 0.004, TcpLimit.DUT),
        (APART, 80e6, 0.0011, TcpLimit.UNKNOWN),  # no queue
        (GIGABIT, 80e6, 0.004, TcpLimit.DUT),
        (GIGABIT, 900e6, 0.004, TcpLimit.UNKNOWN),  # it may be the line's
        (TcpEnvironment(), 80e6, 0.004, TcpLimit.UNKNOWN),  # who knows what line there is
    ],
)
def test_a_core_with_little_time_left_and_a_queue_before_it(
    setup: TcpEnvironment, bps: float, rtt_s: float, limit: TcpLimit
) -> None:
    cores = dict.fromkeys(("client", "server", "dut"), (0.2, 0.9))
    found = verdict(Path(bps=bps, rtt_s=rtt_s, cores=cores, in_flight=1000), setup=setup)
    assert found.limit is limit
    assert limit is TcpLimit.UNKNOWN or "round trips of 4.00 ms instead of 1.00 ms" in found.reasons[0]


def test_run_delay_of_a_thread_that_sleeps_explains_no_queue() -> None:
    """The router's core is full with other work as well: it would carry more without."""
    cores = dict.fromkeys(("client", "server", "dut"), (0.2, 0.99))
    path = Path(bps=80e6, rtt_s=0.004, cores=cores, packets=0.4, threads={"server": (0.01, 0.02, 0.12)}, in_flight=1000)
    found = verdict(path, setup=APART)
    assert found.limit is TcpLimit.UNKNOWN and "foreign-load" in codes(found)


def test_drops_of_the_dut_that_explain_the_retransmits() -> None:
    assert verdict(Path(retransmits=100, drops=80)).limit is TcpLimit.DUT
    assert verdict(Path(retransmits=100, drops=20)).limit is TcpLimit.UNKNOWN
    assert verdict(Path(retransmits=4, drops=4)).limit is TcpLimit.UNKNOWN


def test_what_a_wan_drops_is_not_the_duts() -> None:
    queue, line = Path(retransmits=100, drops=80, drop_name=QDISC_DROPS), TcpEnvironment(wan=parse_wan("20ms,10gbit"))
    assert verdict(queue).limit is TcpLimit.DUT
    assert verdict(queue, setup=line).limit is TcpLimit.UNKNOWN
    assert verdict(Path(retransmits=100, drops=80), setup=line).limit is TcpLimit.DUT


def test_in_one_kernel_only_the_named_cores_are_a_hosts() -> None:
    """Endpoints on CPU 0, the router on CPU 1: all three report both."""
    both = {"client": (0.3, 0.99), "server": (0.3, 0.99), "dut": (0.3, 0.99)}
    assert verdict(Path(cores=both), setup=APART).limit is TcpLimit.DUT
    other = {"client": (0.99, 0.6), "server": (0.99, 0.6), "dut": (0.99, 0.6)}
    assert verdict(Path(cores=other), setup=APART).limit is TcpLimit.ENDPOINT_CPU


def test_on_shared_cores_a_program_is_not_believed() -> None:
    """The router's work runs in the sender's process."""
    busy = Path(bps=80e6, cores={"client": (0.99, 0.2), "dut": (0.99, 0.2)}, threads={"client": (0.0, 0.97, 0.0)})
    found = verdict(busy, setup=SHARED)
    assert found.limit is TcpLimit.UNKNOWN
    assert codes(found) == {"cores-shared", "no-ceiling"}
    assert found.reasons[0].startswith("CPU 0 was 99.0 % busy; whether")


def test_on_shared_cores_the_ceiling_tells_whose_work_it_is() -> None:
    busy = {"client": (0.99, 0.2), "server": (0.99, 0.2), "dut": (0.99, 0.2)}
    slow = verdict(Path(bps=80e6, cores=busy), setup=SHARED, ceiling=Path(bps=20e9))
    assert slow.limit is TcpLimit.DUT
    assert "the endpoints alone carry 20.00 Gbit/s on the same cores" in slow.reasons[0]
    fast = verdict(Path(bps=15e9, cores=busy), setup=SHARED, ceiling=Path(bps=20e9))
    assert fast.limit is TcpLimit.ENDPOINT_CPU


def test_a_dut_that_polls_is_not_judged_by_its_cpu() -> None:
    result = make_tcp_result(Path(cores={"dut": (1.0,)}), legs=FORWARD)
    seen = [replace(r, observation=replace(r.observation, threads=(THREAD,))) for r in result.legs[0].dut]
    (flow,) = replace(result, legs=(replace(result.legs[0], dut=tuple(seen)),)).flows
    assert flow.verdict.limit is TcpLimit.UNKNOWN
    assert "dut-polls" in codes(flow.verdict)


THREAD = ThreadRuntime(1, "vpp_wk_0", 1, 10.0, None, None, None, None, None, None, ())


def test_nothing_measured_nothing_said() -> None:
    result = make_tcp_result(legs=FORWARD)
    (flow,) = replace(result, legs=(replace(result.legs[0], server=()),)).flows
    assert (flow.verdict.limit, flow.verdict.at_least) == (TcpLimit.UNKNOWN, True)
    assert flow.statistics is None


@settings(max_examples=scaled(100, 10))
@given(
    busy=st.floats(0, 0.94),
    bps=st.floats(1e6, 8e8),
    ceiling=st.floats(2e9, 4e10),
    waiting=st.floats(0, 0.05),
)
def test_without_evidence_against_it_the_dut_is_never_blamed(
    busy: float, bps: float, ceiling: float, waiting: float
) -> None:
    path = Path(bps=bps, cores={"dut": (busy,)}, threads={"client": (0.1, 0.3, waiting)})
    for setup in (TcpEnvironment(), SHARED, APART, GIGABIT):
        assert verdict(path, setup=setup, ceiling=Path(bps=ceiling)).limit is not TcpLimit.DUT


def test_a_full_core_of_a_shared_kernel_is_the_routers_only_where_packets_fill_it() -> None:
    """Another program on the router's core of a lab is not the router's limit; in threads the kernel does not tell."""
    full = Path(bps=80e6, cores={"client": (0.3, 0.9), "server": (0.3, 0.9), "dut": (0.3, 0.99)}, packets=0.2)
    found = verdict(full, setup=APART)
    assert found.limit is TcpLimit.UNKNOWN and "foreign-load" in codes(found)
    assert verdict(replace(full, packets=0.9), setup=APART).limit is TcpLimit.DUT
    threads = replace(APART, napi_threads=True)
    assert verdict(full, setup=threads).limit is TcpLimit.DUT
    assert verdict(replace(full, user=0.1), setup=threads).limit is TcpLimit.DUT
    assert verdict(replace(full, user=0.7), setup=threads).limit is TcpLimit.UNKNOWN
    tunnelled = verdict(replace(full, user=0.7), setup=replace(threads, tunnel_between=CLIENT_DUT))
    assert tunnelled.limit is TcpLimit.DUT and "other-work" in codes(tunnelled)
    dialled = verdict(full, setup=replace(APART, pppoe=True))
    assert dialled.limit is TcpLimit.UNKNOWN and "foreign-load" in codes(dialled), "the kernel moves its frames"
    assert verdict(replace(full, packets=0.9), setup=replace(APART, pppoe=True)).limit is TcpLimit.DUT


def test_a_routers_full_core_without_packets_is_a_doubt() -> None:
    """A router with a kernel of its own: a program that runs wild on one of its cores looks like its limit."""
    full = Path(bps=80e6, cores={"dut": (0.3, 0.99)})
    wild, forwarding = verdict(replace(full, packets=0.1)), verdict(replace(full, packets=0.9))
    assert wild.limit is forwarding.limit is TcpLimit.DUT
    assert "other-work" in codes(wild) and "other-work" not in codes(forwarding)
    assert verdict(full).limit is TcpLimit.DUT, "a DUT of its own works for nobody else"


def test_a_program_that_mostly_sleeps_waits_for_nothing_that_holds_the_flow_back() -> None:
    late = Path(bps=957e6, threads={"server": (0.01, 0.04, 0.15)})
    assert verdict(late).limit is TcpLimit.ENDPOINT_CPU
    line = TcpEnvironment(wan=parse_wan("20ms,1gbit"), wan_by="cable")
    assert verdict(late, setup=line).limit is TcpLimit.LINK
    hard = replace(late, threads={"server": (0.1, 0.5, 0.15)})
    assert verdict(hard, setup=line).limit is TcpLimit.ENDPOINT_CPU
    full = replace(late, in_flight=120_000, peer_window=121_000)
    assert verdict(full).limit is TcpLimit.WINDOW and "foreign-load" in codes(verdict(full))
