"""``trexbench tcp --sim``: the bench of the shipped twins, on a clock of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from trexbench.config.schema import read_dut
from trexbench.core.dut.telemetry import DutReading, Moment
from trexbench.core.errors import ConfigError
from trexbench.core.tcp.plan import Leg, TcpPlan, Way, around_plan
from trexbench.core.tcp.wan import Wan
from trexbench.session.keep import Output
from trexbench.session.tcp.legs import measure_tcp
from trexbench.session.tcp.options import TcpSetup, TcpWish
from trexbench.session.tcp.request import TcpRequest, make_tcp_request
from trexbench.session.tcp.simulate import SimulatedBench

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "dut_configs" / "lab-linux.yaml"
F = Way.FORWARD
FITTED = (
    *("raspberry-pi", "raspberry-pi-2", "edgerouter-openwrt", "edgerouter-edgeos", "gl-ar150", "wrt3200acm"),
    *("raspberry-pi-2-openwrt", "raspberry-pi-3-openwrt", "raspberry-pi-4-openwrt", "virtual-openwrt", "mininet-lab8"),
)


def bench(name: str = "lab-linux", **setup: Any) -> SimulatedBench:
    dut = read_dut(ROOT / "dut_configs" / f"{name}.yaml")
    return SimulatedBench(TcpRequest(dut=dut, plan=TcpPlan((Leg(F),)), sim=True, speedup=1e9, **setup))


def test_a_bench_of_a_shipped_twin_measures_on_its_own_clock() -> None:
    own, seen = bench(seed=7), list[str]()
    plan = TcpPlan((Leg(F),), time_s=10, omit_s=1)
    assert own.ping(Leg(F), 60, False, threading.Event()).sent == 60 and own.clock.now() == 60
    leg = own.flow(Leg(F), plan, lambda host, reading: seen.append(host), counters := [])
    assert (leg.began_s, own.clock.now(), leg.error) == (60, 71, None)
    assert len(leg.client) == len(leg.server) == len(counters) == 12 and seen == 12 * ["client", "server"]
    assert [one.t_s for one in counters if isinstance(one, DutReading)][:2] == [60, 61]
    assert len(bench("edgerouter-edgeos").look(Moment.BEGIN).observation.cpus) == 2
    around = own.around(Leg(F), plan)
    assert around.dut == () and around.server[-1].streams[0].payload_bytes > leg.server[-1].streams[0].payload_bytes
    assert own.facts["dut"]["seed"] == 7
    unwatched = TcpRequest(dut=read_dut(LAB), plan=plan, sim=True, speedup=1e9, telemetry=False)
    assert not measure_tcp(unwatched, Output()).result.legs[0].dut


def test_a_router_that_dials_in_fills_its_line_with_less_payload() -> None:
    dials, plain = bench("edgerouter-edgeos").setup, bench("raspberry-pi").setup
    assert (dials.pppoe, dials.mtu, dials.tags) == (True, 1492, 2)
    assert (plain.pppoe, plain.mtu, plain.tags) == (False, 1500, 0)


def test_a_simulated_wan_is_in_the_setup_and_its_hosts_tell_their_buffers() -> None:
    dut = read_dut(ROOT / "dut_configs" / "mininet-lab8.yaml")
    own, plan = bench("mininet-lab8"), TcpPlan((Leg(F, buffer_bytes=50_000),), time_s=2, congestion="reno")
    assert (own.setup.wan, own.setup.wan_by) == (dut.wan, "the twin") and dut.wan == Wan(0.02, 1e10)
    assert (bench().setup.wan, bench().setup.wan_by) == (None, "")
    small, found = (own.flow(leg, plan, lambda host, reading: None, None) for leg in (plan.legs[0], Leg(F)))
    for host in ("client", "server"):
        assert small.program[host]["tcp_rmem"] == small.program[host]["tcp_wmem"] == "10240 50000 50000"
        assert found.program[host]["tcp_rmem"] == "10240 87380 16777216"
        assert (found.program[host]["tcp_adv_win_scale"], found.program[host]["congestion"]) == ("1", "reno")


@pytest.mark.parametrize("name", FITTED)
def test_a_shipped_twin_says_what_it_was_fitted_to_and_names_no_host_of_anyone(name: str) -> None:
    dut = read_dut(ROOT / "dut_configs" / f"{name}.yaml")
    assert dut.driver == ("linux" if name.endswith(("pi", "pi-2", "lab8")) else "none")
    assert dut.endpoints is not None and dut.twin is not None
    assert "fitted to the document of 20" in dut.description and "not measured by us" in dut.description
    assert all(one.transport.host == f"{role}.example.net" for role, one, _ in dut.endpoints.roles)
    leg = bench(name).flow(Leg(F), TcpPlan((Leg(F),), time_s=5), lambda host, reading: None, counters := [])
    (*_, last) = counters
    assert leg.server[-1].streams[0].payload_bytes > 0 and isinstance(last, DutReading) and last.observation.cpus


def test_iperf3_is_not_asked_for_more_than_it_can_tell() -> None:
    def planned(**wish: Any) -> TcpPlan:
        return make_tcp_request(TcpWish("raspberry-pi", time=86400.0, **wish), TcpSetup(sim=True)).plan

    with pytest.raises(ConfigError, match=r"86400 intervals of its connections are too many.*--interval"):
        planned(engine="iperf3")
    assert planned().time_s == planned(engine="iperf3", interval=10.0).time_s
    assert (planned(omit=0.4).omit_s, planned(engine="iperf3", interval=10.0, omit=0.4).omit_s) == (0.4, 1.0)
    assert [around_plan(TcpPlan((), engine=engine)).omit_s for engine in ("embedded", "iperf3")] == [0.5, 1.0]
