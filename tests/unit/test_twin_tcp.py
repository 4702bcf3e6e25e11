"""TCP through the twin: each of its limits in turn, what is read of it, and what a config may say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import pytest
from configs import BOX, errors_of
from effort import scaled

from trexbench.config.schema import dut_of
from trexbench.config.twin import TwinSpec
from trexbench.config.twin_tcp import (
    CyclesSpec,
    EncapsulationSpec,
    PerWay,
    PingSpec,
    TcpPowerSpec,
    TcpTwinSpec,
    TcpVariant,
    TunnelSpec,
)
from trexbench.config.variants import TwinVariant
from trexbench.core.errors import ConfigError
from trexbench.core.tcp.plan import HEADER_BYTES, HostReading, Leg, TcpPlan, Way
from trexbench.core.tcp.wan import Wan
from trexbench.twin.tcp import Instant, TcpTwin, opened
from trexbench.twin.tcp_limits import QUEUE, TcpModel

F, R, BIDIR = Way.FORWARD, Way.REVERSE, Way.BIDIR
FORWARD = Leg(F)
EACH = CyclesSpec(PerWay(20000, 40000), PerWay(50000, 50000))
FREE = TwinSpec(workers=4, clock_hz=1e9, packet_cycles=1)
CONFIG = """\
driver: none
ports: [{tester: 0}, {tester: 1}]
twin:
  workers: 1
  clock: 700mhz
  cycles_per_packet: 82700
  tcp:
    cycles_per_packet: {ipv4: 82700, ipv6: {forward: 110900, reverse: 104500}}
    line: 100mbit
    bus: 191mbit
    encapsulation: {ipv6: 6in4}
    ping: {min: 1.1ms, avg: 1400us, max: 1.6ms, mdev: 90us}
    power: {idle: 2.3}
    noise: {forward: 1%, reverse: 2%}
    variants:
      firewall: {cycles_per_packet: {ipv6: 160000}}
"""


def model(spec: TwinSpec = FREE, variant: str | None = None, **tcp: Any) -> TcpModel:
    return TcpModel(replace(spec, tcp=TcpTwinSpec(**tcp)), 1e9, variant)


def rates(of: TcpModel, leg: Leg, streams: int = 1) -> list[tuple[float, str]]:
    return [(one.bps, one.limit) for one in of.carried(leg, streams).values()]


# what, parts of the twin, leg, streams, payload in bit/s, limit: the arithmetic of each is written out
LIMITS = [
    ("line", {}, Leg(F), 1, 1e9 * 1448 / 1538, "line"),
    ("line, IPv6", {}, Leg(F, 6), 1, 1e9 * 1428 / 1538, "line"),
    ("line of its own", {"line_bps": 1e8}, Leg(R), 1, 1e8 * 1448 / 1538, "line"),
    ("line, MTU 9000 without timestamps", {"mtu": 9000, "timestamps": False}, Leg(F), 1, 1e9 * 8960 / 9038, "line"),
    ("line, no timestamps", {"timestamps": False}, Leg(F), 1, 1e9 * 1460 / 1538, "line"),
    ("line, VLAN", {"vlans": 1}, Leg(F), 1, 1e9 * 1448 / 1542, "line"),
    ("line, PPPoE", {"encapsulation": EncapsulationSpec("pppoe")}, Leg(F), 1, 1e9 * 1440 / 1538, "line"),
    ("line, 6in4", {"encapsulation": EncapsulationSpec(ipv6="6in4")}, Leg(F, 6), 1, 1e9 * 1408 / 1538, "line"),
    ("one-armed", {"one_armed": True}, Leg(F), 1, 1e9 * 1448 / (1538 + 90 / 2), "line"),
    ("both ways", {}, Leg(BIDIR), 1, 1e9 * 1448 / (1538 + 90 / 2), "line"),
    ("one-armed, both ways", {"one_armed": True}, Leg(BIDIR), 1, 1e9 * 1448 / (1538 + 90 / 2) / 2, "line"),
    ("bus", {"bus_bps": 190e6}, Leg(F), 1, 190e6 * 1448 / (2 * (1518 + 70 / 2)), "bus"),
    ("bus, both ways", {"bus_bps": 190e6}, Leg(BIDIR), 1, 190e6 * 1448 / (4 * (1518 + 70 / 2)), "bus"),
    ("router", {"cycles": EACH}, Leg(F), 1, 1e9 / 20000 / 1.5 * 1448 * 8, "router"),
    ("router, reverse", {"cycles": EACH}, Leg(R), 1, 1e9 / 40000 / 1.5 * 1448 * 8, "router"),
    ("router, IPv6", {"cycles": EACH}, Leg(F, 6), 1, 1e9 / 50000 / 1.5 * 1428 * 8, "router"),
    ("router, few ACKs", {"cycles": EACH, "segments_per_ack": 10}, Leg(F), 1, 1e9 / 20000 / 1.1 * 1448 * 8, "router"),
    ("router, two flows", {"cycles": EACH}, Leg(R), 2, 2 * 1e9 / 40000 / 1.5 * 1448 * 8, "router"),
    ("router, all its cores", {"cycles": EACH}, Leg(R), 9, 4 * 1e9 / 40000 / 1.5 * 1448 * 8, "router"),
    ("router, both ways", {"cycles": EACH}, Leg(BIDIR), 1, 1e9 / 60000 / 1.5 * 1448 * 8, "router"),
    ("receive window", {"rmem": (4096, 10000, 100000)}, Leg(F), 1, 8 * 50000 / 0.5e-3, "window"),
    ("send buffer", {"wmem": (4096, 10000, 60000)}, Leg(F), 1, 8 * 0.7 * 60000 / 0.5e-3, "window"),
    ("windows of two streams", {"rmem": (4096, 10000, 40000)}, Leg(F), 2, 2 * 8 * 20000 / 0.5e-3, "window"),
    ("endpoint", {"endpoint_bps": PerWay(4e8, 3e8)}, Leg(R), 1, 3e8, "endpoint"),
    ("path", {"path_bps": PerWay(4e8, 3e8)}, Leg(F), 1, 4e8, "path"),
]


@pytest.mark.parametrize(("tcp", "leg", "streams", "bps", "limit"), [one[1:] for one in LIMITS], ids=lambda _: "")
def test_each_limit_binds_at_its_arithmetic_value(
    tcp: dict[str, Any], leg: Leg, streams: int, bps: float, limit: str
) -> None:
    for found, name in rates(model(**tcp), leg, streams):
        assert name == limit
        assert found == pytest.approx(bps, rel=1e-6)
    spec = model(**tcp)
    plan = TcpPlan((leg,), streams=streams, time_s=20)
    last = [*TcpTwin(spec, 1).run(leg, plan)][-1]
    assert received(last) * 8 / 20 == pytest.approx(bps * (2 if leg.way is BIDIR else 1), rel=0.01)


def test_a_way_that_meets_its_own_limit_leaves_the_rest_to_the_other() -> None:
    own = model(one_armed=True, line_bps=1e8, path_bps=PerWay(1e7, 1e9))
    forward, reverse = rates(own, Leg(BIDIR))
    assert forward == (1e7, "path")
    assert reverse[1] == "line" and forward[0] + reverse[0] == pytest.approx(1e8 * 1448 / 1583)


def test_without_cycles_for_tcp_they_are_the_twins_own() -> None:
    plain = TwinSpec(workers=1, clock_hz=1e9, packet_cycles=20000, fetch_cycles=482, byte_cycles=1)
    assert rates(model(plain), Leg(F))[0][0] == pytest.approx(1e9 / 22000 / 1.5 * 1448 * 8)


@pytest.mark.parametrize(
    ("cycles", "plain", "variant"), [(CyclesSpec(), 10000, 30000), (CyclesSpec(PerWay(20000, 40000)), 20000, 40000)]
)
def test_a_variant_of_the_packet_twin_costs_tcp_as_much_more(cycles: CyclesSpec, plain: int, variant: int) -> None:
    spec = replace(FREE, packet_cycles=10000, variants=(("stateful", TwinVariant(packet_cycles=30000)),))
    each = [rates(model(spec, name, cycles=cycles), FORWARD)[0] for name in (None, "stateful")]
    assert each == [(pytest.approx(1e9 / cost / 1.5 * 1448 * 8), "router") for cost in (plain, variant)]
    own = ("stateful", TcpVariant(CyclesSpec(PerWay(50000, 50000))))
    (named,) = rates(model(spec, "stateful", cycles=cycles, variants=(own,)), FORWARD)
    assert named == (pytest.approx(1e9 / 50000 / 1.5 * 1448 * 8), "router"), "its own variants come first"


def test_a_variant_costs_what_it_names_and_nothing_else() -> None:
    own: dict[str, Any] = {"cycles": EACH, "variants": (("firewall", TcpVariant(CyclesSpec(ipv6=PerWay(1e5, 2e5)))),)}
    with_it = model(variant="firewall", **own)
    assert rates(with_it, Leg(F)) == rates(model(**own), Leg(F))
    assert rates(with_it, Leg(R, 6))[0][0] == pytest.approx(1e9 / 2e5 / 1.5 * 1428 * 8)
    with pytest.raises(ConfigError, match=r"the twin has no variant 'nat' for TCP.*firewall"):
        model(variant="nat", **own)


@pytest.mark.parametrize("between", ["client-server", "client-dut"])
def test_a_tunnels_headers_leave_less_for_payload(between: str) -> None:
    tunnel = TunnelSpec("relay", between)
    own = model(variant="vpn", variants=(("vpn", TcpVariant(tunnel=tunnel, line_bps=2e9)),))
    mss = 1448 - HEADER_BYTES["relay"][4]
    assert rates(own, FORWARD) == [(pytest.approx(2e9 * mss / 1538), "line")]


def test_a_variant_has_endpoints_and_a_path_of_its_own() -> None:
    slow = TcpVariant(endpoint_bps=PerWay(5e8, 4e8)), TcpVariant(path_bps=PerWay(3e8, 2e8))
    found = [rates(model(variant="v", variants=(("v", one),)), Leg(R)) for one in slow]
    assert found == [[(4e8, "endpoint")], [(2e8, "path")]]


def test_the_options_say_whether_there_are_timestamps() -> None:
    options = [run(model(timestamps=on))[-1].client.streams[0].info["options"] for on in (True, False)]
    assert options == [1, 0]


def received(one: Instant) -> int:
    return sum(s.payload_bytes for host in (one.client, one.server) for s in host.streams if not s.sends)


def run(of: TcpModel, leg: Leg = FORWARD, seed: int = 1, **plan: Any) -> list[Instant]:
    return [*TcpTwin(of, seed).run(leg, TcpPlan((leg,), **plan))]


def steps(instants: list[Instant]) -> list[float]:
    return [after - before for before, after in pairwise(received(one) for one in instants)]


def test_the_same_seed_reads_the_same_and_another_does_not() -> None:
    noisy = model(cycles=EACH, noise=PerWay(0.02, 0.02))
    assert run(noisy) == run(noisy)
    assert run(noisy) != run(noisy, seed=2)
    assert steps(run(noisy)) != steps(run(noisy, Leg(F, repetition=2)))


def test_noise_has_the_deviation_that_is_given_and_no_correlation() -> None:
    found = steps(run(model(cycles=EACH, noise=PerWay(0.02, 0)), time_s=scaled(3000, 1500)))[1:]
    mean, spread = fmean(found), stdev(found)
    again = fmean((a - mean) * (b - mean) for a, b in pairwise(found)) / spread**2
    assert spread / mean == pytest.approx(0.02, rel=0.1)
    assert again == pytest.approx(0, abs=0.06)


def test_a_line_is_never_faster_than_it_is() -> None:
    found = steps(run(model(noise=PerWay(0.1, 0.1))))
    assert max(found) <= 1e9 * 1448 / 1538 / 8 + 1 and min(found) < 0.9 * max(found)


def test_a_flow_begins_with_ten_segments_and_doubles() -> None:
    assert opened(1e12, 1e6, 0.1, 0.1) == pytest.approx(1e6 * 0.1 / 0.6931, rel=1e-3)
    assert opened(8e6, 1e6, 0.1, 0.3) == pytest.approx(7e6 * 0.1 / 0.6931, rel=1e-3)
    assert opened(8e6, 1e6, 0.1, 1.3) - opened(8e6, 1e6, 0.1, 0.3) == pytest.approx(8e6)
    slow = steps(run(model(ping=PingSpec(0.19, 0.2, 0.22, 0.005)), time_s=10))
    assert slow[0] < 0.2 * slow[5] and abs(slow[5] - slow[6]) <= 1


def test_the_router_that_is_the_limit_is_busy_and_drops() -> None:
    last = run(model(cycles=EACH, loss=PerWay(0.002, 0), cores=6), time_s=10)[-1]
    assert last.dut is not None
    cpus = last.dut.observation.cpus
    assert [one.busy_s for one in cpus] == [pytest.approx(10), 0, 0, 0, 0, 0]
    packets, again = received(last) / 1448, last.client.streams[0].info["total_retrans"]
    assert again == pytest.approx(0.002 * packets, rel=0.02)
    assert last.dut.observation.drops[0].count == again
    one_core = model(replace(FREE, workers=1), cycles=EACH, loss=PerWay(0.002, 0))
    many = run(one_core, time_s=2, streams=128)[-1]
    assert many.dut is not None
    assert sum(one.info["total_retrans"] for one in many.client.streams) == many.dut.observation.drops[0].count > 0


def test_the_router_that_is_not_the_limit_is_as_busy_as_its_packets_make_it() -> None:
    last = run(model(cycles=EACH, path_bps=PerWay(1e8, 1e8)), Leg(R), time_s=10)[-1]
    assert last.dut is not None
    assert last.dut.observation.cpus[0].busy_s / 10 == pytest.approx(1e8 / 8 / 1448 * 1.5 * 40000 / 1e9, rel=0.01)
    assert last.server.streams[0].info["total_retrans"] == 0


def test_the_endpoint_that_is_the_limit_has_no_time_left() -> None:
    busy, idle = (run(model(endpoint_bps=PerWay(bps, bps)), time_s=10)[-1] for bps in (5e8, 5e10))
    for host in (busy.client, busy.server):
        assert host.threads[0].user_s + host.threads[0].system_s == pytest.approx(10, rel=0.01)
    assert idle.client.cpus[0].busy_s < 0.3


def test_power_is_as_given() -> None:
    found = run(model(cycles=EACH, power=TcpPowerSpec(2.3)), time_s=3)
    assert [one.dut and one.dut.observation.power_w for one in found] == [2.3] * 4
    assert all(one.dut and one.dut.observation.power_w is None for one in run(model(), time_s=3))


def test_what_both_ends_read_agrees() -> None:
    for one in run(model(cycles=EACH, noise=PerWay(0.05, 0.05)), Leg(BIDIR), streams=3, time_s=5, interval_s=0.1):
        for sender, receiver in ((one.client, one.server), (one.server, one.client)):
            assert sum_of(sender, sends=True) >= sum_of(receiver, sends=False)
        assert sorted(s.stream for s in one.client.streams) == list(range(6))
    assert one.at_s == 5


def sum_of(host: HostReading, sends: bool) -> int:
    return sum(one.payload_bytes for one in host.streams if one.sends == sends)


def test_totals_never_go_back() -> None:
    found = run(model(cycles=EACH, noise=PerWay(0.1, 0.1)), time_s=20, interval_s=0.1)
    for before, after in pairwise(found):
        assert before.client.streams[0].payload_bytes <= after.client.streams[0].payload_bytes
        assert before.server.streams[0].payload_bytes <= after.server.streams[0].payload_bytes


def test_a_window_that_is_the_limit_is_full_and_nothing_waits() -> None:
    last = run(model(rmem=(4096, 10000, 100000)), time_s=5)[-1].client.streams[0]
    assert last.info["rtt"] == last.info["min_rtt"] == 500
    assert last.info["unacked"] * last.info["snd_mss"] == pytest.approx(50000, rel=0.02)
    assert last.info["snd_wnd"] == 50000


def test_pings_are_as_given_and_wait_where_the_leg_does() -> None:
    asked = PingSpec(1.125e-3, 1.423e-3, 1.586e-3, 0.094e-3)
    twin = TcpTwin(model(cycles=EACH, ping=asked), 1)
    idle = twin.ping(Leg(F), 3000, loaded=False).times_s
    assert asked.min_s <= min(idle) and max(idle) <= asked.max_s
    assert fmean(idle) == pytest.approx(asked.avg_s, rel=0.01) and stdev(idle) == pytest.approx(asked.mdev_s, rel=0.05)
    loaded = twin.ping(Leg(F), 60, loaded=True)
    waits = QUEUE * 1.5 * 20000 / 1e9  # packets and their ACKs
    assert 0.5 * waits < fmean(loaded.times_s) - asked.avg_s < waits
    endpoint = TcpTwin(model(endpoint_bps=PerWay(1e8, 1e8), ping=asked), 1).ping(Leg(F), 60, loaded=True)
    assert max(endpoint.times_s) <= asked.max_s


def test_reads_what_is_written() -> None:
    twin = dut_of(BOX, CONFIG).twin
    assert twin is not None
    assert twin.tcp == TcpTwinSpec(
        cycles=CyclesSpec(PerWay(82700, 82700), PerWay(110900, 104500)),
        line_bps=1e8,
        bus_bps=191e6,
        encapsulation=EncapsulationSpec("none", "6in4"),
        ping=PingSpec(1.1e-3, 1.4e-3, 1.6e-3, pytest.approx(90e-6)),  # type: ignore[arg-type]
        power=TcpPowerSpec(2.3),
        noise=PerWay(0.01, 0.02),
        variants=(("firewall", TcpVariant(CyclesSpec(ipv6=PerWay(160000, 160000)))),),
    )


# text to replace, its replacement, line, words of the message
BROKEN = [
    ("bus:", "buss:", 10, ["twin.tcp.buss", "did you mean 'bus'"]),
    ("{forward: 110900, reverse: 104500}", "{forward: 110900}", 8, ["cycles_per_packet.ipv6", "{forward: ..., rev"]),
    ("ipv4: 82700", "ipv4: 0", 8, ["twin.tcp.cycles_per_packet.ipv4", "from 1"]),
    ("ipv6: 6in4", "ipv4: 6in4", 11, ["twin.tcp.encapsulation.ipv4", "none, pppoe"]),
    ("100mbit", "fast", 9, ["twin.tcp.line"]),
    ("1400us", "1.7ms", 12, ["twin.tcp.ping", "do not ascend"]),
    (", mdev: 90us", "", 12, ["twin.tcp.ping", "'mdev' is missing"]),
    ("idle: 2.3", "", 13, ["twin.tcp.power", "'idle' is missing"]),
    ("reverse: 2%", "reverse: 30%", 14, ["twin.tcp.noise", "at most 20%"]),
    ("firewall:", "Fire wall:", 16, ["variant"]),
    ("{cycles_per_packet: {ipv6: 160000}}", "{tunnel: {between: client-dut}}", 16, ["'kind' is missing"]),
    ("{cycles_per_packet: {ipv6: 160000}}", "{bus: 1mbit}", 16, ["twin.tcp.variants.firewall", "cycles_per_packet"]),
]


@pytest.mark.parametrize(("text", "instead", "line", "words"), BROKEN, ids=[one[1][:20] or "out" for one in BROKEN])
def test_says_what_is_wrong(text: str, instead: str, line: int, words: list[str]) -> None:
    first, *_ = errors_of(CONFIG, text, instead)
    assert first.startswith(f"{BOX}:{line}: ") and all(word in first for word in words), first


LONG = Wan(0.02, 1e9, loss=0.0)
TRIP_S = TcpTwinSpec().ping.avg_s + 0.02


def behind(wan: Wan = LONG, congestion: str = "cubic", **tcp: Any) -> TcpModel:
    return TcpModel(replace(FREE, tcp=TcpTwinSpec(**{"line_bps": 1e11, **tcp})), None, None, wan, congestion)


@pytest.mark.parametrize(
    ("model", "leg", "bps", "limit"),
    [
        (behind(), Leg(F), 1e9 * 1448 / 1514, "wan"),
        (behind(), Leg(R, 6), 1e9 * 1428 / 1514, "wan"),
        (behind(), Leg(BIDIR), 1e9 * 1448 / (1514 + 66 / 2), "wan"),
        (behind(line_bps=1e9), Leg(F), 1e9 * 1448 / 1538, "line"),
        (behind(), Leg(F, buffer_bytes=1_000_000), 8 * 500_000 / TRIP_S, "window"),
        (behind(adv_win_scale=2), Leg(F, buffer_bytes=1_000_000), 8 * 700_000 / TRIP_S, "window"),
        (behind(rmem=(4096, 10000, 200_000)), Leg(F), 8 * 100_000 / TRIP_S, "window"),
        (behind(wmem=(4096, 10000, 100_000)), Leg(F), 8 * 70_000 / TRIP_S, "window"),
        (behind(replace(LONG, loss=0.01), "reno"), Leg(F), 8 * 1448 * 1.5**0.5 / 0.1 / TRIP_S, "loss"),
        (behind(replace(LONG, loss=0.01)), Leg(F, congestion="reno"), 8 * 1448 * 1.5**0.5 / 0.1 / TRIP_S, "loss"),
        (behind(replace(LONG, loss=0.01)), Leg(F, congestion="bbr"), 1e9 * 1448 / 1514, "wan"),
        (behind(Wan(0.02)), Leg(F, buffer_bytes=2_000_000), 8 * 1_000_000 / TRIP_S, "window"),
    ],
)
def test_each_limit_of_a_wan(model: TcpModel, leg: Leg, bps: float, limit: str) -> None:
    for found, named in rates(model, leg):
        assert found == pytest.approx(bps) and named == limit


def test_a_wan_delays_echo_requests_loses_some_and_queues_behind_a_full_line() -> None:
    pings = TcpTwin(behind(), 1).ping(FORWARD, 100, False)
    assert len(pings.times_s) == 100 and 0.0204 <= min(pings.times_s) <= max(pings.times_s) <= 0.0207
    loaded = TcpTwin(behind(), 1).ping(FORWARD, 100, True)
    assert 0.03 < fmean(loaded.times_s) < 0.0411, "its queue is the BDP: 20 ms more, half full at least"
    lossy = TcpTwin(behind(replace(LONG, loss=0.2, jitter_s=0.002)), 1).ping(FORWARD, 400, False)
    assert 200 < len(lossy.times_s) < 310 and lossy.sent == 400 and stdev(lossy.times_s) > 0.0008


def test_what_is_read_over_a_wan() -> None:
    lossy = behind(replace(LONG, loss=1e-4))
    leg, plan = Leg(F, buffer_bytes=4_000_000), TcpPlan((FORWARD,), time_s=10)
    seen = list(TcpTwin(lossy, 1).run(leg, plan))[-1]
    (sent,), (got,) = seen.client.streams, seen.server.streams
    assert (sent.send_buffer_bytes, got.receive_buffer_bytes, sent.info["snd_wnd"]) == (4_000_000, 4_000_000, 2_000_000)
    assert sent.info["snd_cwnd"] == sent.info["unacked"], "losses keep the congestion window as small as what is sent"
    assert sent.info["total_retrans"] == pytest.approx(1e-4 * got.payload_bytes / 1448, abs=1)
    assert sent.info["min_rtt"] == round(1e6 * TRIP_S)
    around = list(TcpTwin(lossy, 1).run_around(leg, plan))[-1]
    assert around.client.streams[0].info["min_rtt"] < 1000 and around.client.streams[0].info["total_retrans"] == 0


@pytest.mark.parametrize("text", ["1 2", "4096 2 3", "0 1 2", "1 2 3 4", "1 2 9999999999"])
def test_buffers_are_three_sizes_that_ascend(text: str) -> None:
    (said,) = errors_of(f"{CONFIG}    rmem: {text}\n")
    assert "write them as 4096 131072 6291456" in said
