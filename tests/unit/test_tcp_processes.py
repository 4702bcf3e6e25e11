"""CPU of processes in a leg: parts, what belongs to whom, the verdict over a full tunnel, and what is printed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from documents import to_document
from tcp_runs import Path, make_tcp_result

from trexbench.core.tcp.cpu import bits_per_cpu_second, columns, mean_columns, process_shares, told_processes
from trexbench.core.tcp.limit import TcpLimit, TcpVerdict
from trexbench.core.tcp.plan import Leg, Processes, ProcessTime, TcpEnvironment, Way
from trexbench.core.tcp.result import FlowResult, TcpResult, from_document
from trexbench.core.tcp.tunnel import CLIENT_DUT
from trexbench.report.tcp.text import format_tcp

LEG_S = 10.0
BUILT = Path()
APART = TcpEnvironment(one_kernel=True, cpus={"client": (0,), "server": (0,), "dut": (1,)})


def process(number: int, user: float, system: float, role: str = "", waiting: float | None = 0.0, **more: Any) -> Any:
    """Shares of one core over the leg."""
    name = {"tunnel": "openvpn", "endpoint": "iperf3"}.get(role, "other")
    times = {"user_s": user * LEG_S, "system_s": system * LEG_S, "waiting_s": waiting and waiting * LEG_S}
    return ProcessTime(number, **{"name": name, **times, **more}, role=role)


def run(
    took: dict[str, list[ProcessTime]], path: Path = BUILT, over_s: float = LEG_S, setup: TcpEnvironment | None = None
) -> TcpResult:
    result = make_tcp_result(path, [Leg(Way.FORWARD)], setup=setup)
    found = {host: Processes(over_s, tuple(ones)) for host, ones in took.items()}
    return replace(result, legs=(replace(result.legs[0], processes=found),))


def flow(*args: Any, **kwargs: Any) -> FlowResult:
    (found,) = run(*args, **kwargs).flows
    return found


def verdict(*args: Any, **kwargs: Any) -> TcpVerdict:
    return flow(*args, **kwargs).verdict


@pytest.mark.parametrize("host", ["client", "server"])
def test_a_full_tunnel_of_an_endpoint_is_the_limit_before_all_else(host: str) -> None:
    full = [process(123, 0.066, 0.933, "tunnel")]
    found = verdict({host: full}, Path(bps=577e6, cores={"dut": (0.99,)}), setup=TcpEnvironment(line_bps=2e9))
    assert (found.limit, found.at_least) == (TcpLimit.ENDPOINT_CPU, True)
    assert found.reasons[0] == f"the {host}'s tunnel (openvpn, process 123) took 99.9 % of a core"


def test_a_full_tunnel_of_the_dut_is_the_dut() -> None:
    found = verdict({"dut": [process(7, 0.2, 0.79, "tunnel")]}, Path(bps=1.02e9))
    assert (found.limit, found.at_least) == (TcpLimit.DUT, False)
    assert found.reasons == ("the DUT's tunnel (openvpn, process 7) took 99.0 % of a core",)


@pytest.mark.parametrize(
    "one",
    [
        process(1, 0.2, 0.72, "tunnel"),
        process(1, 0.2, 0.79, ""),
        process(1, 0.9, 0.9, "tunnel", busiest_thread_s=0.6 * LEG_S),  # two cores' worth, and none of its threads full
        process(1, 0.2, 0.4, "tunnel", 0.1),
    ],
)
def test_what_is_no_full_tunnel(one: ProcessTime) -> None:
    for host in ("client", "server", "dut"):
        assert verdict({host: [one]}).limit is TcpLimit.UNKNOWN


def test_a_tunnel_with_a_full_thread_or_that_waits_for_the_rest_is_full() -> None:
    threaded = process(5, 0.7, 0.7, "tunnel", busiest_thread_s=0.98 * LEG_S)
    assert "(openvpn, process 5): a thread took 98.0 % of a core" in verdict({"client": [threaded]}).reasons[0]
    kept = verdict({"server": [process(5, 0.2, 0.4, "tunnel", 0.38)]})
    words = "took 60.0 % of a core, and waited for one for 38.0 % of the time"
    assert kept.reasons == (f"the server's tunnel (openvpn, process 5) {words}",)


def test_a_tunnel_of_the_dut_that_waits_is_a_doubt_of_other_work() -> None:
    """Who took its core is not known: no statement about the DUT."""
    found = verdict({"dut": [process(5, 0.2, 0.4, "tunnel", 0.38)]})
    assert found.limit is TcpLimit.UNKNOWN
    (said,) = [one.text for one in found.warnings if one.code == "foreign-load"]
    assert said.startswith("forward IPv4: the DUT's tunnel (openvpn) waited for a CPU for 38.0 % of the time: other wo")


@pytest.mark.parametrize(("user", "limit"), [(0.02, TcpLimit.UNKNOWN), (0.4, TcpLimit.DUT)])
def test_a_core_that_others_fill_is_not_the_tunnels_of_the_dut(user: float, limit: TcpLimit) -> None:
    """Programs take 0.7 of the core; nothing is said of the DUT unless its tunnel is one of them."""
    cores = {"client": (0.3, 0.99), "server": (0.3, 0.99), "dut": (0.3, 0.99)}
    path = Path(bps=150e6, cores=cores, packets=0.2, user=0.7)
    ended = replace(APART, napi_threads=True, tunnel_between=CLIENT_DUT)
    found = verdict({"dut": [process(5, user, 0.1, "tunnel", 0.4)]}, path, setup=ended)
    assert found.limit is limit, found.reasons


@pytest.mark.parametrize(("role", "doubted"), [("", True), ("tunnel", False), ("pppoe", False)])
def test_programs_that_forward_are_no_other_work_of_the_dut(role: str, doubted: bool) -> None:
    path = Path(bps=400e6, cores={"dut": (0.98,)}, packets=0.2)
    found = verdict({"dut": [process(5, 0.1, 0.4, role)]}, path)
    assert found.limit is TcpLimit.DUT
    assert ("other-work" in {one.code for one in found.warnings}) is doubted


def test_on_shared_cores_a_tunnels_time_is_not_told_from_the_routers() -> None:
    shared = verdict({"client": [process(1, 0.1, 0.89, "tunnel")]}, setup=TcpEnvironment(one_kernel=True))
    assert not any("tunnel" in reason for reason in shared.reasons)


def test_a_core_that_a_tunnel_fills_is_not_other_works() -> None:
    path = Path(bps=80e6, cores={"client": (0.99,)}, packets=0.1, threads={"client": (0.01, 0.02, 0.0)})
    assert verdict({}, path).limit is TcpLimit.UNKNOWN
    filled = verdict({"client": [process(1, 0.2, 0.6, "tunnel")]}, path)
    assert filled.limit is TcpLimit.ENDPOINT_CPU and "its CPU 0 was 99.0 % busy" in filled.reasons[0]


def test_what_carries_payload_is_told_by_the_time_it_flowed() -> None:
    """The DUT's processes are looked at before and after, when nothing flows."""
    ones = [process(1, 0.5, 0.5, "tunnel"), process(2, 0.25, 0.25)]
    leg = run({"dut": ones}, over_s=2 * LEG_S).legs[0]
    tunnel, other = process_shares(leg, "dut")
    assert (tunnel.busy, tunnel.waiting) == (pytest.approx(1.0), 0.0)
    assert other.busy == pytest.approx(0.25)
    assert process_shares(leg, "client") == ()
    assert process_shares(replace(leg, processes={"client": Processes(0.0, (ones[0],))}), "client") == ()


def test_of_one_kernel_each_process_is_told_once() -> None:
    kernel, beside = process(9, 0.0, 0.1, whose="kernel"), process(8, 0.3, 0.0, whose="elsewhere")
    mine = process(1, 0.1, 0.2, "endpoint")
    took = {
        "client": [mine, kernel, beside, process(2, 0.2, 0.2, whose="elsewhere")],
        "server": [process(2, 0.2, 0.2, "endpoint"), kernel, beside, replace(mine, role="", whose="elsewhere")],
        "dut": [kernel, beside],
    }
    shares = flow(took, setup=APART).shares
    once = told_processes(shares, APART)
    assert [(host, *(one.process for one in ones)) for host, ones in once.items()] == [
        ("client", 1, 9, 8), ("server", 2), ("dut",)
    ]  # fmt: skip
    assert [len(ones) for ones in told_processes(shares, TcpEnvironment()).values()] == [4, 4, 2]
    guest = told_processes(shares, replace(APART, dut_is_guest=True))
    assert [len(ones) for ones in guest.values()] == [3, 1, 2]


def test_bits_for_each_cpu_second_of_tunnel_and_endpoints() -> None:
    took = {
        "client": [process(1, 0.1, 0.1, "endpoint"), process(2, 0.2, 0.2, "tunnel"), process(3, 0.9, 0.0)],
        "server": [process(4, 0.1, 0.2, "endpoint")],
        "dut": [process(5, 0.05, 0.05, "tunnel")],
    }
    shares = flow(took).shares
    assert bits_per_cpu_second(shares, TcpEnvironment(), 900e6) == pytest.approx(900e6 / 1.0)
    assert flow(took).bits_per_cpu_second == pytest.approx(flow(took).flow.received_bps)
    assert flow({**took, "server": []}).bits_per_cpu_second is None
    (leg,) = make_tcp_result(legs=[Leg(Way.BIDIR)]).legs
    leg = replace(leg, processes={host: Processes(LEG_S, tuple(ones)) for host, ones in took.items()})
    both_ways = make_tcp_result(legs=[leg.leg])
    forward, reverse = replace(both_ways, legs=(leg,)).flows
    rates = [one.flow.received_bps or 0.0 for one in (forward, reverse)]
    assert forward.bits_per_cpu_second == reverse.bits_per_cpu_second == pytest.approx(sum(rates)), "of the same second"
    text = format_tcp(both_ways)
    assert re.search(rf"client sends: dut .* {sum(rates) / 40e6:.1f}\n", text), "in % of a core that is 40 % busy"
    half = replace(both_ways, legs=(replace(leg, client=leg.client[:1]),))
    assert half.flows[0].flow.received_bps and half.flows[0].bits_per_cpu_second is None, "half is not the whole"
    assert re.search(r"client sends: dut .* -\n", format_tcp(half))
    shown = {"client_tunnel": 0.4, "client": 0.2, "server_tunnel": 0.1, "server": 0.3}
    assert columns(shares) == pytest.approx(shown)
    both = flow({**took, "server": [*took["server"], process(6, 0.5, 0.0, "tunnel")]}).shares
    assert columns(both)["server_tunnel"] == pytest.approx(0.5)
    assert mean_columns([shares, both])["server_tunnel"] == pytest.approx(0.3)
    assert mean_columns([shares, flow({}).shares]) == {} == mean_columns([])


def test_several_processes_of_a_part_are_summed() -> None:
    workers = [process(n, 0.0, 0.2, "tunnel", None, name=f"kworker/{n}:1-wg-crypt-wg0", cpus=(n,)) for n in (1, 2)]
    found = flow({"client": workers}).shares["client"].of_role("tunnel")
    assert found is not None and found.busy == pytest.approx(0.4) and found.waiting is None
    assert (found.name, found.cpus) == ("kworker/1:1-wg-crypt-wg0 and 1 more", (1, 2))


def test_the_summary_tells_tunnel_core_and_run_delay() -> None:
    took = {
        "client": [process(9, 0.066, 0.933, "tunnel", 0.01, cpus=(1,)), process(4, 0.1, 0.1, "endpoint", cpus=(0, 2))],
        "server": [process(5, 0.1, 0.1, "endpoint"), process(6, 0.0, 0.002, "tunnel", name="odd\x1b[31m")],
        "dut": [process(7, 0.0, 0.2, whose="elsewhere", name="stress")],
    }
    lines = [" ".join(one.split()) for one in format_tcp(run(took)).splitlines()]
    assert "tunnel: openvpn, process 9, CPU 1 99.9 % 6.60 % 93.3 % - 1.00 % -" in lines
    assert any(one.startswith("its program, CPU 0+2 ") for one in lines)
    assert "stress, process 7, elsewhere 20.0 % 0.000 % 20.0 % - 0.000 % -" in lines
    assert any("process 6 0.200 %" in one for one in lines) and not any("\x1b" in one for one in lines)
    assert not any("iperf3" in one for one in lines)
    assert any(one.startswith("CPU forward IPv4: ") and "for each CPU second" in one for one in lines)


def test_the_document_keeps_it_and_an_older_one_has_none() -> None:
    took = {"client": [process(1, 0.1, 0.2, "tunnel", cpus=(1, 0), busiest_thread_s=1.0)]}
    document = json.loads(json.dumps(to_document(run(took))))
    again = from_document(document).legs[0].processes["client"].took[0]
    assert again == took["client"][0]
    (host,) = (one for one in document["analysis"][0]["cpu"] if one["host"] == "client")
    assert (host["processes"][0]["role"], host["processes"][0]["cpus"]) == ("tunnel", [1, 0])
    old = document["legs"][0]["processes"]["client"]["took"][0]
    for name in ("waiting_s", "cpus", "busiest_thread_s", "role", "whose"):
        del old[name]
    read = from_document(document).legs[0].processes["client"].took[0]
    assert (read.user_s, read.waiting_s, read.cpus, read.role, read.whose) == (1.0, None, (), "", "")
