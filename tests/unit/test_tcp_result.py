from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from documents import to_document
from tcp_runs import Path, make_leg, make_tcp_result

from trexbench.core.dut.telemetry import CpuTime, DutReading, Missing, Moment, Observation
from trexbench.core.errors import StoreError
from trexbench.core.history.rows import RATE, TCP_RATE, rows_of_tcp
from trexbench.core.tcp.limit import TcpLimit
from trexbench.core.tcp.plan import HostReading, Leg, Processes, ProcessTime, TcpEnvironment, TcpPlan, Way, around_plan
from trexbench.core.tcp.result import TcpResult, from_document
from trexbench.core.tcp.wan import parse_wan
from trexbench.core.typed import Status
from trexbench.core.verdict.parts import RunWarning
from trexbench.report.tcp.text import format_tcp, headline, of_mega, where_words
from trexbench.results.document import checked_rows, encode

GOLDEN = File(__file__).resolve().parents[1] / "fixtures" / "tcp-v1.json"
SLOW_DUT = Path(
    bps=[80e6 + 1e5 * (at % 4) for at in range(10)], cores={"dut": (0.98, 0.1)}, power_w=2.3, retransmits=12
)


def read(result: TcpResult) -> TcpResult:
    return from_document(json.loads(encode(result)))


def test_a_document_is_read_back_as_it_was() -> None:
    result = make_tcp_result(SLOW_DUT, ceiling=Path(bps=20e9), warnings=(RunWarning("noted", "the lid was open"),))
    assert read(result) == result


def test_the_figures_of_a_slow_router() -> None:
    result = make_tcp_result(SLOW_DUT, ceiling=Path(bps=20e9))
    forward, reverse = result.summaries
    assert (forward.kind, reverse.kind) == (Leg(Way.FORWARD), Leg(Way.REVERSE))
    assert forward.rate_bps == pytest.approx(80.13e6)
    assert (forward.limit, forward.at_least, forward.power_w) == (TcpLimit.DUT, False, 2.3)
    assert forward.cores_per_gbps == pytest.approx(1.08 / 0.08013)
    assert (forward.ping_idle_s, forward.ping_loaded_s) == (pytest.approx(0.0012), pytest.approx(0.005))
    assert reverse.ping_loaded_s is None
    (flow, _) = result.flows
    assert flow.statistics is not None and flow.statistics.median == pytest.approx(80.1e6)
    assert flow.flow.retransmitted == pytest.approx(12 / (80.13e7 / 8 / 1448))


def test_idle_time_around_a_leg_is_none_of_its_cpu_and_power() -> None:
    """A full core for 3 s of 7 s; before and after the payload flows the router idles at 1 W."""

    def seen(moment: Moment, t_s: float) -> DutReading:
        busy_s, power_w = min(max(t_s - 10.0, 0.0), 3.0), 4.0 if 10.0 <= t_s < 13.0 else 1.0
        return DutReading(moment, t_s, 0.01, Observation(cpus=(CpuTime(0, t_s, busy_s, busy_s),), power_w=power_w))

    made = make_tcp_result(Path(bps=80e6), legs=[Leg(Way.FORWARD)], plan=TcpPlan((Leg(Way.FORWARD),), time_s=3.0))
    around = seen(Moment.START, 8.0), *(seen(Moment.TICK, 9.6 + 0.5 * at) for at in range(8)), seen(Moment.FINISH, 15.0)
    (flow,) = replace(made, legs=(replace(made.legs[0], dut=around),)).flows
    assert flow.shares["dut"].cores_busy == pytest.approx(1.0) and flow.verdict.limit is TcpLimit.DUT
    assert flow.power_w == 4.0
    few = (around[0], around[3], around[-1])
    (flow,) = replace(made, legs=(replace(made.legs[0], dut=few),)).flows
    assert flow.shares["dut"].cores_busy == pytest.approx(3 / 7) and flow.power_w == 4.0, "never an idle DUT's"
    missing = (Missing("power", "the plug does not answer"), Missing("packets per queue", "its driver counts none"))
    unread = tuple(replace(one, observation=replace(one.observation, power_w=None, missing=missing)) for one in few)
    result = replace(made, legs=(replace(made.legs[0], dut=unread),))
    texts = [warning.text for warning in result.analysis_warnings if warning.code == "missing"]
    assert result.flows[0].power_w is None and texts == ["forward IPv4: power: the plug does not answer"]


def test_idle_power_is_that_before_the_legs() -> None:
    idle = tuple(DutReading(Moment.BEGIN, t_s, 0.01, Observation(power_w=watt)) for t_s, watt in ((1, 2.0), (4, 2.4)))
    result = read(make_tcp_result(SLOW_DUT, idle=idle))
    assert result.idle_power_w == pytest.approx(2.2)
    (forward, _), (row, _) = result.summaries, rows_of_tcp(result, "")
    assert forward.power_w == 2.3 and forward.idle_power_w == row.get("idle_power_w") == pytest.approx(2.2)
    assert "power   idle: 2.20 W" in format_tcp(result).splitlines()
    assert make_tcp_result(SLOW_DUT).idle_power_w is None


def test_cores_and_processes_are_told_by_host() -> None:
    def at(t_s: float) -> HostReading:
        cpus = (CpuTime(0, t_s, 0.9 * t_s, 0.3 * t_s, None, 0.1 * t_s, 0.5 * t_s), CpuTime(1, t_s, 0.01 * t_s))
        return HostReading(t_s, cpus=cpus)

    took = Processes(2.0, (ProcessTime(7, "ksoftirqd/0", 0.0, 0.6), ProcessTime(8, "odd\x1b[31m", 0.001, 0.001)))
    result = make_tcp_result(Path(bps=80e6), legs=[Leg(Way.FORWARD)], setup=TcpEnvironment())
    leg = result.legs[0]
    client = tuple(replace(one, cpus=at(one.at_s).cpus) for one in leg.client)
    (flow,) = replace(result, legs=(replace(leg, client=client, processes={"client": took}),)).flows
    share = flow.shares["client"]
    assert share.busiest is not None and (share.busiest.user, share.busiest.system) == pytest.approx((0.1, 0.5))
    assert {one.name: one.busy for one in share.processes} == pytest.approx({"ksoftirqd/0": 0.3, "odd\x1b[31m": 0.001})
    text = format_tcp(replace(result, legs=(replace(leg, client=client, processes={"client": took}),)))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "CPU 0 90.0 % 10.0 % 50.0 % 30.0 % - -" in lines and not any(one.startswith("CPU 1 1") for one in lines)
    assert "ksoftirqd/0, process 7 30.0 % 0.000 % 30.0 % - - -" in lines and "odd" not in text


def test_repetitions_are_one_summary() -> None:
    plan = TcpPlan(legs=tuple(Leg(Way.FORWARD, 4, number) for number in (1, 2, 3)), time_s=10.0)
    result = make_tcp_result(plan=plan)
    legs = tuple(make_leg(plan, leg, Path(bps=9e8 + 1e7 * at)) for at, leg in enumerate(plan.legs))
    result = replace(result, legs=legs)
    (found,) = result.summaries
    assert (found.repetitions, found.rate_bps) == (3, pytest.approx(9.1e8))
    assert found.uncertainty_bps == pytest.approx(4.30 * 1e7 / 3**0.5)
    assert headline(result) == "TCP through lab-linux: forward IPv4 >= 910.0 Mbit/s +- 25 Mbit/s"
    assert of_mega(1460e3, bound=True).text == ">= 1.4", "at least 1.5 would be false"
    assert of_mega(53089.2, bound=True).text == ">= 0.053" and of_mega(0.0).text == "0.0", "not that nothing came"
    assert of_mega(2539.998e6, bound=True).text == ">= 2540.0", "nor 2540.2"


def test_the_rate_counts_the_time_in_which_the_receivers_host_stood_still() -> None:
    result = make_tcp_result(plan=TcpPlan(legs=(Leg(Way.FORWARD),), time_s=10.0))
    leg = make_leg(result.plan, Leg(Way.FORWARD), Path(bps=1.02e9))
    server = tuple(replace(one, at_s=one.at_s + 1.2 * (at > 5)) for at, one in enumerate(leg.server))
    (found,) = replace(result, legs=(replace(leg, server=server),)).summaries
    assert found.rate_bps == pytest.approx(0.9e9), "payload of 9 s in 10.2 s"


def test_rows_are_a_way_each() -> None:
    legs = (Leg(Way.FORWARD), Leg(Way.REVERSE, 6))
    command = {"suite": "pi", "night": "2026-11-20", "variant": "firewall"}
    forward, reverse = rows_of_tcp(make_tcp_result(SLOW_DUT, legs, Path(bps=20e9), command=command), "x.json")
    assert str(forward.cell) == "lab-linux firewall forward-ipv4 uni tcp"
    assert str(reverse.cell) == "lab-linux firewall reverse-ipv6 uni tcp"
    assert (forward.metric, TCP_RATE.of(forward), RATE.of(forward)) == (TCP_RATE, pytest.approx(80.13e6), None)
    assert (forward.limit, forward.at_least, forward.suite, forward.complete) == ("dut", False, "pi", True)
    assert (forward.line_share, forward.path) == (0.0, "x.json")
    (linked,) = rows_of_tcp(make_tcp_result(Path(bps=940e6), legs[:1], setup=TcpEnvironment(line_bps=1e9)), "")
    assert linked.line_share == pytest.approx(0.998, abs=0.001)


def test_a_way_without_a_figure_is_no_measurement_of_it() -> None:
    result = make_tcp_result()
    forward, reverse = rows_of_tcp(replace(result, legs=result.legs[:1]), "")
    assert (forward.complete, reverse.complete) == (True, False)
    assert [row.status for row in rows_of_tcp(replace(result, status=Status.RUNNING, legs=()), "")] == ["running"] * 2


def test_a_leg_that_ended_early_is_a_doubt() -> None:
    result = make_tcp_result()
    broken = replace(result, legs=(replace(result.legs[0], error="the server closed the connection"),))
    assert {one.code for one in broken.analysis_warnings} >= {"leg-ended-early"}


def test_the_golden_document_is_read_and_gives_its_figures() -> None:
    """A change of a figure changes ANALYSIS_VERSION; of the document's form, VERSION."""
    stored = json.loads(GOLDEN.read_text(encoding="utf-8"))
    result = from_document(stored)
    derived = json.loads(json.dumps(to_document(result)))
    for part in ("summaries", "analysis", "ping_statistics", "warnings"):
        assert close(derived[part], stored[part]), part


def close(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    return bool(one == (pytest.approx(other, rel=1e-9) if isinstance(other, float) else other))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("version",), 2, "version 2"),
        (("schema",), "trexbench/run", "not a TCP document"),
        (("plan", "time_s"), 0, "plan.time_s"),
        (("plan", "streams"), 0, "plan.streams"),
        (("plan", "legs", 0, "version"), 5, "IPv5"),
        (("dut", "name"), "../x", "dut.name"),
        (("id",), "\ud800", "not Unicode"),
        (("setup",), {"wan": {"delay_s": 0.02}, "wan_by": "\ud800"}, "through is not Unicode"),
        (("legs", 0, "client", 3, "streams", 0, "payload_bytes"), -5, "payload_bytes"),
        (("legs", 0, "server", 9, "streams", 0, "payload_bytes"), 10**400, "."),
    ],
)
def test_damage_is_named(path: tuple[str | int, ...], value: object, said: str) -> None:
    document = json.loads(encode(make_tcp_result(SLOW_DUT)))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(StoreError, match=said):
        checked_rows(from_document(document))


def test_a_document_without_a_part_is_damaged() -> None:
    document = json.loads(encode(make_tcp_result()))
    derived = {"summaries", "analysis", "ping_statistics", "derived", "reason", "finished", "simulated"}
    derived |= {"idle", "calibration"}  # documents of before have none
    for part in document.keys() - derived:
        with pytest.raises(StoreError):
            checked_rows(from_document({key: value for key, value in document.items() if key != part}))


def test_a_ceiling_is_what_the_endpoints_carry_once_their_windows_are_open() -> None:
    """However short a leg is: what counts around the DUT are its own three seconds."""
    plan = TcpPlan((Leg(Way.FORWARD),), time_s=1.0, interval_s=0.5)
    around = make_leg(around_plan(plan), plan.legs[0], Path(bps=[1e9] + 6 * [20e9]))
    (flow,) = replace(make_tcp_result(plan=plan, legs=plan.legs), ceilings=(around,)).flows
    assert flow.ceiling_bps == pytest.approx(20e9)


def test_pppoe_is_kept_and_told_and_its_rates_are_not_compared_with_others() -> None:
    plain = make_tcp_result(SLOW_DUT)
    inside = make_tcp_result(SLOW_DUT, setup=TcpEnvironment(mtu=1492, pppoe=True))
    assert read(inside).setup.pppoe and "PPPoE   between DUT and server, MTU 1492" in format_tcp(inside)
    assert "PPPoE" not in format_tcp(plain)
    for before, after in zip(rows_of_tcp(plain, ""), rows_of_tcp(inside, ""), strict=True):
        assert (before.through, str(after.through)) == (None, "PPPoE")
        assert (after.traffic, after.cell) == (before.traffic, before.cell), "it is the cell that it always was"


def test_a_run_is_named_by_its_dut_variant_and_tunnel() -> None:
    plain, six = make_tcp_result(), make_tcp_result(legs=[Leg(Way.FORWARD, 6)])
    assert where_words(plain) == "lab-linux"
    tunnel = TcpEnvironment(tunnel="6in4", tunnel_by="sit")
    assert where_words(replace(six, command={**six.command, "variant": "nat"}, setup=tunnel)) == "lab-linux (nat, 6in4)"
    assert where_words(replace(plain, setup=tunnel)) == "lab-linux", "6in4 carries IPv6"
    assert where_words(replace(six, setup=TcpEnvironment(without_tunnel="no kernel has it"))) == "lab-linux"
    far = TcpEnvironment(wan=parse_wan("20ms,1gbit"))
    assert where_words(replace(plain, setup=far)) == "lab-linux, WAN of 20 ms, 1 Gbit/s"
