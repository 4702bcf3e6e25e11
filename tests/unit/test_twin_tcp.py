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
from trexbench.config.twin import CyclesSpec, PerWay, TcpLimits, TcpTwinSpec, TwinSpec, TwinVariant
from trexbench.core.tcp.plan import HEADER_BYTES, Leg, TcpPlan, Way
from trexbench.core.tcp.tunnel import parse_tunnel
from trexbench.core.tcp.wan import Wan
from trexbench.twin.tcp import Instant, TcpTwin
from trexbench.twin.tcp_limits import QUEUE, TcpModel

F, R, BIDIR = Way.FORWARD, Way.REVERSE, Way.BIDIR
FORWARD = Leg(F)
EACH = CyclesSpec(40000, 50000)
FREE = TwinSpec(workers=4, clock_hz=1e9, packet_cycles=1)
CONFIG = """\
driver: none
ports: [{tester: 0}, {tester: 1}]
twin:
  workers: 1
  clock: 700mhz
  cycles_per_packet: 82700
  tcp:
    cycles_per_packet: {ipv6: 110900}
    line: 100mbit
    path: {forward: 90mbit, reverse: 80mbit}
    ping: 1400us
"""
LONG = Wan(0.02, 1e9, loss=0.0)
TRIP_S = TcpTwinSpec().ping_s + 0.02


def model(spec: TwinSpec = FREE, tunnel: str = "none", dials: bool = False, **tcp: Any) -> TcpModel:
    return TcpModel(replace(spec, tcp=TcpTwinSpec(**tcp)), 1e9, tunnel=parse_tunnel(tunnel), dials=dials)


def behind(wan: Wan = LONG, congestion: str = "cubic", line_bps: float = 1e11) -> TcpModel:
    return TcpModel(replace(FREE, tcp=TcpTwinSpec(line_bps=line_bps)), None, wan, congestion)


def rates(of: TcpModel, leg: Leg, streams: int = 1) -> list[tuple[float, str]]:
    return [(one.bps, one.limit) for one in of.carried(leg, streams).values()]


# what, twin, leg, streams, payload in bit/s, limit: the arithmetic of each is written out
SMALL = Leg(F, buffer_bytes=60_000)
LIMITS = [
    ("line", model(), Leg(F), 1, 1e9 * 1448 / 1538, "line"),
    ("line, IPv6", model(), Leg(F, 6), 1, 1e9 * 1428 / 1538, "line"),
    ("line of its own, both ways", model(line_bps=1e8), Leg(BIDIR), 1, 1e8 * 1448 / 1538, "line"),
    ("line, PPPoE", model(dials=True), Leg(F), 1, 1e9 * 1440 / 1538, "line"),
    ("line, 6in4", model(tunnel="6in4"), Leg(F, 6), 1, 1e9 * 1408 / 1538, "line"),
    ("line, relay", model(tunnel="relay"), Leg(F), 1, 1e9 * (1448 - HEADER_BYTES["relay"][4]) / 1538, "line"),
    ("router", model(cycles=EACH), Leg(R), 1, 1e9 / 40000 * 1448 * 8, "router"),
    ("router, IPv6", model(cycles=EACH), Leg(F, 6), 1, 1e9 / 50000 * 1428 * 8, "router"),
    ("router, two flows", model(cycles=EACH), Leg(R), 2, 2 * 1e9 / 40000 * 1448 * 8, "router"),
    ("router, all its cores", model(replace(FREE, workers=3), cycles=EACH), Leg(R), 9, 3 * 2.896e8, "router"),
    ("router, both ways", model(cycles=EACH), Leg(BIDIR), 1, 1e9 / 80000 * 1448 * 8, "router"),
    ("the packets' cycles", model(replace(FREE, packet_cycles=20000, byte_cycles=1)), Leg(F), 1,
     1e9 / 21518 * 1448 * 8, "router"),
    ("window", model(), SMALL, 1, 8 * 30000 / 0.5e-3, "window"),
    ("windows of two streams", model(line_bps=1e10), SMALL, 2, 2 * 8 * 30000 / 0.5e-3, "window"),
    ("endpoint", model(endpoint_bps=3e8), Leg(R), 1, 3e8, "endpoint"),
    ("path", model(path_bps=PerWay(4e8, 3e8)), Leg(R), 1, 3e8, "path"),
    ("WAN", behind(), Leg(F), 1, 1e9 * 1448 / 1514, "wan"),
    ("line before a WAN", behind(line_bps=1e9), Leg(F), 1, 1e9 * 1448 / 1538, "line"),
    ("window over a WAN", behind(), Leg(F, buffer_bytes=1_000_000), 1, 8 * 500_000 / TRIP_S, "window"),
    ("loss, reno", behind(replace(LONG, loss=0.01), "reno"), Leg(F), 1, 8 * 1448 * 1.5**0.5 / 0.1 / TRIP_S, "loss"),
    ("loss, bbr", behind(replace(LONG, loss=0.01)), Leg(F, congestion="bbr"), 1, 1e9 * 1448 / 1514, "wan"),
]  # fmt: skip


@pytest.mark.parametrize(("of", "leg", "streams", "bps", "limit"), [one[1:] for one in LIMITS], ids=lambda _: "")
def test_each_limit_binds_at_its_arithmetic_value(of: TcpModel, leg: Leg, streams: int, bps: float, limit: str) -> None:
    for found, name in rates(of, leg, streams):
        assert name == limit
        assert found == pytest.approx(bps, rel=1e-6)
    last = run(of, leg, streams=streams, time_s=20)[-1]
    assert received(last) * 8 / 20 == pytest.approx(bps * (2 if leg.way is BIDIR else 1), rel=1e-3)


def test_a_way_that_meets_its_own_limit_leaves_the_rest_to_the_other() -> None:
    forward, reverse = rates(model(cycles=EACH, path_bps=PerWay(1e7, 1e9)), Leg(BIDIR))
    assert forward == (1e7, "path")
    assert reverse == (pytest.approx(1e9 / 40000 * 1448 * 8 - 1e7), "router")


def test_a_variant_costs_tcp_in_proportion_or_what_it_states() -> None:
    spec = replace(FREE, packet_cycles=10000, tcp=TcpTwinSpec(cycles=EACH, endpoint_bps=3e8))
    plain = TwinVariant(packet_cycles=30000).applied_to(spec)
    assert plain == replace(spec, packet_cycles=30000, tcp=replace(spec.tcp, cycles=CyclesSpec(120000, 150000)))
    own = TwinVariant(tcp=TcpLimits(CyclesSpec(ipv6=9e4), path_bps=PerWay(1e7, 2e7))).applied_to(spec)
    assert own.tcp == TcpTwinSpec(CyclesSpec(40000, 90000), endpoint_bps=3e8, path_bps=PerWay(1e7, 2e7))


def received(one: Instant) -> int:
    return sum(s.payload_bytes for host in (one.client, one.server) for s in host.streams if not s.sends)


def run(of: TcpModel, leg: Leg = FORWARD, seed: int = 1, **plan: Any) -> list[Instant]:
    return [*TcpTwin(of, seed).run(leg, TcpPlan((leg,), **plan))]


def steps(instants: list[Instant]) -> list[float]:
    return [after - before for before, after in pairwise(received(one) for one in instants)]


def noisy(noise: float, **tcp: Any) -> TcpModel:
    return model(replace(FREE, noise=noise), **tcp)


def test_the_noise_is_the_seeds_and_has_the_deviation_that_is_given() -> None:
    of = noisy(0.02, cycles=EACH)
    assert run(of) == run(of) != run(of, seed=2)
    assert steps(run(of)) != steps(run(of, Leg(F, repetition=2)))
    found = steps(run(of, time_s=scaled(3000, 1500)))
    mean, spread = fmean(found), stdev(found)
    again = fmean((a - mean) * (b - mean) for a, b in pairwise(found)) / spread**2
    assert spread / mean == pytest.approx(0.02, rel=0.1)
    assert again == pytest.approx(0, abs=0.06)
    line = steps(run(noisy(0.1)))
    assert max(line) <= 1e9 * 1448 / 1538 / 8 + 1 and min(line) < 0.9 * max(line), "no line is faster than it is"


def test_the_router_that_is_the_limit_is_busy_and_drops() -> None:
    last = run(model(cycles=EACH), time_s=10)[-1]
    assert [one.busy_s for one in last.dut.observation.cpus] == [pytest.approx(10), 0, 0, 0]
    again = last.client.streams[0].info["total_retrans"]
    assert again == pytest.approx(0.001 * received(last) / 1448, rel=0.02)
    assert last.dut.observation.drops[0].count == again
    many = run(model(replace(FREE, workers=1), cycles=EACH), time_s=2, streams=128)[-1]
    assert sum(one.info["total_retrans"] for one in many.client.streams) == many.dut.observation.drops[0].count > 0


def test_the_router_that_is_not_the_limit_is_as_busy_as_its_packets_make_it() -> None:
    last = run(model(cycles=EACH, path_bps=PerWay(1e8, 1e8)), Leg(R), time_s=10)[-1]
    assert last.dut.observation.cpus[0].busy_s / 10 == pytest.approx(1e8 / 8 / 1448 * 40000 / 1e9, rel=0.01)
    assert last.server.streams[0].info["total_retrans"] == 0


def test_the_endpoint_that_is_the_limit_has_no_time_left() -> None:
    busy, idle = (run(model(endpoint_bps=bps), time_s=10)[-1] for bps in (5e8, 5e10))
    for host in (busy.client, busy.server):
        assert host.threads[0].user_s + host.threads[0].system_s == pytest.approx(10, rel=0.01)
    assert idle.client.cpus[0].busy_s < 0.3


def test_what_both_ends_read_agrees_and_never_goes_back() -> None:
    found = run(noisy(0.1, cycles=EACH), Leg(BIDIR), streams=3, time_s=4.2, interval_s=0.3)
    for one in found:
        for sender, receiver in ((one.client, one.server), (one.server, one.client)):
            sent, got = (
                sum(stream.payload_bytes for stream in host.streams if stream.sends == sends)
                for host, sends in ((sender, True), (receiver, False))
            )
            assert sent >= got
        assert sorted(s.stream for s in one.client.streams) == list(range(6))
    assert one.at_s == 4.2
    for before, after in pairwise(found):
        pairs = zip(before.client.streams, after.client.streams, strict=True)
        assert all(old.payload_bytes <= new.payload_bytes for old, new in pairs)


def test_a_window_that_is_the_limit_is_full_and_nothing_waits() -> None:
    last = run(model(), SMALL, time_s=5)[-1].client.streams[0]
    assert last.info["rtt"] == last.info["min_rtt"] == 500
    assert last.info["unacked"] * last.info["snd_mss"] == pytest.approx(30000, rel=0.03)
    assert last.info["snd_wnd"] == 30000


def test_pings_are_as_given_and_wait_where_the_leg_does() -> None:
    idle = TcpTwin(model(cycles=EACH, ping_s=1.4e-3), 1).ping(Leg(F), 3000, loaded=False).times_s
    assert fmean(idle) == pytest.approx(1.4e-3, rel=0.01) and stdev(idle) == pytest.approx(0.07 * 1.4e-3, rel=0.05)
    loaded = TcpTwin(model(cycles=EACH, ping_s=1.4e-3), 1).ping(Leg(F), 60, loaded=True)
    waits = QUEUE * 40000 / 1e9
    assert 0.5 * waits < fmean(loaded.times_s) - 1.4e-3 < waits
    endpoint = TcpTwin(model(endpoint_bps=1e8, ping_s=1.4e-3), 1).ping(Leg(F), 60, loaded=True)
    assert max(endpoint.times_s) < 1.4e-3 + 0.1 * waits


def test_a_wan_delays_echo_requests_loses_some_and_queues_behind_a_full_line() -> None:
    pings = TcpTwin(behind(), 1).ping(FORWARD, 100, False)
    assert len(pings.times_s) == 100 and 0.0202 <= min(pings.times_s) <= max(pings.times_s) <= 0.0207
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
    assert seen.dut.observation.drops[0].count == 0, "the WAN loses, not the router"
    assert sent.info["min_rtt"] == round(1e6 * TRIP_S)
    around = run(lossy.without_router(), leg)[-1]
    assert around.client.streams[0].info["min_rtt"] < 1000 and around.client.streams[0].info["total_retrans"] == 0


def test_reads_what_is_written() -> None:
    twin = dut_of(BOX, CONFIG).twin
    assert twin is not None
    assert twin.tcp == TcpTwinSpec(CyclesSpec(ipv6=110900), 1e8, path_bps=PerWay(9e7, 8e7), ping_s=1.4e-3)


# text to replace, its replacement, line, words of the message
BROKEN = [
    ("path:", "paths:", 10, ["twin.tcp.paths", "did you mean path"]),
    (", reverse: 80mbit", "", 10, ["twin.tcp.path", "{forward: ..., rev"]),
    ("ipv6: 110900", "ipv6: 0", 8, ["twin.tcp.cycles_per_packet.ipv6", "from 1"]),
    ("100mbit", "fast", 9, ["twin.tcp.line"]),
    ("1400us", "2s", 11, ["twin.tcp.ping", "more than a second"]),
]


@pytest.mark.parametrize(("text", "instead", "line", "words"), BROKEN, ids=[one[1][:20] or "out" for one in BROKEN])
def test_says_what_is_wrong(text: str, instead: str, line: int, words: list[str]) -> None:
    first, *_ = errors_of(CONFIG, text, instead)
    assert first.startswith(f"{BOX}:{line}: ") and all(word in first for word in words), first
