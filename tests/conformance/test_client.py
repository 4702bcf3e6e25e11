"""Table of scenarios, each what a user of the genuine STL client does: the same on every server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from targets import Target

from trexbench.generator.trex.client import Client, load_client

PAIR = [0, 1]
FORWARDS = "what is between the ports must forward 16.0.0.0/8 to port 0 and 48.0.0.0/8 to port 1"
Scenario = Callable[[Any, Any, Target], None]


@pytest.fixture(scope="module")
def package() -> Client:
    return load_client()


@contextlib.contextmanager
def connected(api: Any, target: Target, user: str = "me") -> Iterator[Any]:
    client = api.STLClient(
        username=user, server=target.host, sync_port=target.rpc_port, async_port=target.pub_port, verbose_level="error"
    )
    client.connect()
    try:
        yield client
    finally:
        client.disconnect()


def packet(api: Any, port: int = 0, size: int = 64) -> Any:
    """Return a packet of ``size`` bytes with FCS, from port 0's side to port 1's, or back."""
    sides = ("16.0.0.4", "48.0.0.4")
    base = api.Ether() / api.IP(src=sides[port], dst=sides[1 - port]) / api.UDP(sport=1025, dport=12)
    return api.STLPktBuilder(pkt=base / ("x" * (size - 4 - len(base))))


def continuous(api: Any, pps: float = 1, port: int = 0) -> Any:
    return api.STLStream(packet=packet(api, port), mode=api.STLTXCont(pps=pps))


def refused(api: Any, action: Callable[[], Any], text: str) -> None:
    """The action fails, and the client's error carries the server's text."""
    with pytest.raises(api.STLError) as failed:
        action()
    assert text in str(failed.value)


def connects_and_looks(api: Any, client: Any, target: Target) -> None:
    assert client.get_server_version()["version"] == "v3.08"
    assert client.get_port_count() == 2
    assert [info["speed"] for info in client.get_port_info(PAIR)] == [10.0, 10.0]
    assert client.get_server_system_info()["port_count"] == 2
    assert client.ping_rpc_server()["ts"] >= 0
    assert client.get_active_pgids() == {"flow_stats": [], "latency": []}
    assert {"global", 0, 1, "total"} <= client.get_stats(ports=PAIR).keys()
    assert "cpu" in client.get_util_stats()
    assert client.get_xstats(0)["tx_good_packets"] >= 0


def owns_and_shares(api: Any, client: Any, target: Target) -> None:
    client.acquire(ports=PAIR, force=True)
    with connected(api, target, user="you") as other:
        refused(api, lambda: other.acquire(ports=[0]), "port is already taken by 'me'")
        other.acquire(ports=[0], force=True)
        assert eventually(lambda: client.get_acquired_ports() == [1])
        refused(api, lambda: client.start(ports=[0]), "port is not owned")
        other.release(ports=[0])
    client.acquire(ports=[0])
    assert client.get_acquired_ports() == PAIR
    client.release(ports=PAIR)
    assert client.get_acquired_ports() == []


def sends_for_a_while(api: Any, client: Any, target: Target) -> None:
    """Two seconds at 1000 packets/s each way; the end is told, the counters agree."""
    client.reset(ports=PAIR)
    for port in PAIR:
        client.add_streams(continuous(api, port=port), ports=[port])
    client.clear_stats()
    began_s = time.monotonic()
    client.start(ports=PAIR, mult="1kpps", duration=2)
    client.wait_on_traffic(ports=PAIR, timeout=30)
    assert time.monotonic() - began_s > 1.9
    stats = client.get_stats()
    # What a busy machine kept a sender from sending is counted as well; real packets are paced in real time.
    lost_slots = stats["global"]["queue_full"]
    assert sum(stats[port]["opackets"] for port in PAIR) + lost_slots >= 3980
    for port in PAIR:
        assert 0 < stats[port]["opackets"] <= 2010
        assert stats[port]["obytes"] == 64 * stats[port]["opackets"]
        assert stats[port]["ipackets"] >= 0.9 * stats[port ^ 1]["opackets"], FORWARDS
    assert client.get_active_ports() == []


def multiplies(api: Any, client: Any, target: Target) -> None:
    """Every kind of multiplier, absolute and relative, comes to the rate it says."""
    client.reset(ports=PAIR)
    client.add_streams(continuous(api, pps=10), ports=[0])
    client.start(ports=[0], mult="20", duration=30)
    for mult, pps in [
        ("50", 500),
        ("700pps", 700),
        ("0.4kpps", 400),
        ("512kbps", 1000),
        ("672kbpsl1", 1000),
        ("0.01%", 0.0001 * 10e9 / 672),
        ("200pps+", 0.0001 * 10e9 / 672 + 200),
        ("100pps-", 0.0001 * 10e9 / 672 + 100),
        ("50%-", (0.0001 * 10e9 / 672 + 100) / 2),
    ]:
        client.update(ports=[0], mult=mult)
        assert factor(client) * 10 == pytest.approx(pps, rel=1e-6), mult
    client.stop(ports=[0])


def factor(client: Any) -> float:
    """The factor in force: an update by nothing to speak of tells it."""
    port = client.ports[0]
    params = {"handler": port.handler, "port_id": 0, "profile_id": "_", "force": False}
    reply = port.transmit("update_traffic", {**params, "mul": {"type": "raw", "op": "add", "value": 1e-9}})
    return float(reply.data()["multiplier"])


def refuses_what_trex_refuses(api: Any, client: Any, target: Target) -> None:
    client.reset(ports=PAIR)
    refused(api, lambda: client.start(ports=[0], mult="1kpps"), "profile [_] does not exist in the port [0]")
    client.add_streams(continuous(api), ports=[0])
    over = "Expected L1 B/W: '20 Gbps' exceeds port line rate: '10 Gbps'"
    refused(api, lambda: client.start(ports=[0], mult="200%"), over)
    refused(api, lambda: client.update(ports=[0], mult="1kpps"), "are not active")
    client.start(ports=[0], mult="1kpps", duration=60)
    refused(api, lambda: client.start(ports=[0], mult="1kpps"), "please stop them or specify 'force'")
    refused(api, lambda: client.pause(ports=[0]), "pause is supported when duration is not enable")
    refused(api, lambda: client.update(ports=[0], mult="200%"), over)
    client.stop(ports=[0])


def pauses_and_resumes(api: Any, client: Any, target: Target) -> None:
    client.reset(ports=PAIR)
    client.add_streams(continuous(api), ports=[0])
    client.clear_stats()
    client.start(ports=[0], mult="1kpps")
    assert client.get_active_ports() == [0]
    assert eventually(lambda: client.get_stats()[0]["opackets"] > 0)
    client.pause(ports=[0])
    time.sleep(0.3)  # what is in flight arrives
    first = client.get_stats()[0]["opackets"]
    time.sleep(0.3)
    assert client.get_stats()[0]["opackets"] == first
    client.resume(ports=[0])
    assert eventually(lambda: client.get_stats()[0]["opackets"] > first)
    client.stop(ports=[0])


def bursts_end_by_themselves(api: Any, client: Any, target: Target) -> None:
    """A burst of 100, then three of 50 that it starts: 250 packets, and the traffic is over."""
    client.reset(ports=PAIR)
    first = api.STLStream(
        name="first", packet=packet(api), mode=api.STLTXSingleBurst(pps=1000, total_pkts=100), next="second"
    )
    second = api.STLStream(
        name="second",
        packet=packet(api),
        self_start=False,
        mode=api.STLTXMultiBurst(pps=1000, pkts_per_burst=50, count=3, ibg=50_000.0),
    )
    client.add_streams([first, second], ports=[0])
    client.clear_stats()
    client.start(ports=[0])
    client.wait_on_traffic(ports=[0], timeout=30)
    assert client.get_stats()[0]["opackets"] == 250


def keeps_streams(api: Any, client: Any, target: Target) -> None:
    """Leave streams on a port in one session, and find them there in the next."""
    client.reset(ports=PAIR)
    ids = client.add_streams([continuous(api), continuous(api)], ports=[0])
    client.remove_streams(ids[0], ports=[0])
    with connected(api, target, user="you") as other:
        other.acquire(ports=[0], force=True)
        assert set(other.ports[0].streams) == {ids[1]}
        other.remove_all_streams(ports=[0])
        other.release(ports=[0])


def survives_a_reset(api: Any, client: Any, target: Target) -> None:
    """reset() stops traffic and removes streams, whoever left them."""
    client.reset(ports=PAIR)
    client.add_streams(continuous(api), ports=PAIR)
    client.start(ports=PAIR, mult="1kpps", duration=30)
    with connected(api, target, user="you") as other:
        other.reset(ports=PAIR)
        assert other.get_active_ports() == []
        assert other.ports[0].streams == {}
        other.release(ports=PAIR)


def times_frames(api: Any, client: Any, target: Target) -> None:
    """A thousand timed frames a second beside as many others, through what is between the ports."""
    client.reset(ports=PAIR)
    timed = api.STLStream(
        packet=packet(api), mode=api.STLTXCont(pps=1000), flow_stats=api.STLFlowLatencyStats(pg_id=12)
    )
    client.add_streams([timed, continuous(api)], ports=[0])
    refused(api, lambda: client.add_streams([timed], ports=[1]), "Can't have two streams with same pg_id")
    client.remove_all_streams(ports=[1])
    assert client.get_active_pgids() == {"flow_stats": [], "latency": [12]}
    client.clear_stats()
    refused(api, lambda: client.start(ports=[0], mult="900pps"), "enforces a minimum rate of '1000' pps")
    client.start(ports=[0], mult="2kpps", duration=2)
    assert eventually(lambda: client.get_pgid_stats([12])["flow_stats"][12]["rx_pkts"][1] > 500), FORWARDS
    client.wait_on_traffic(ports=[0], timeout=30)
    stats = client.get_pgid_stats([12])
    flow, latency = stats["flow_stats"][12], stats["latency"][12]["latency"]
    # a tester that shares its core may lose slots
    assert 1000 <= flow["tx_pkts"][0] <= 2010
    assert 0.9 * flow["tx_pkts"][0] <= flow["rx_pkts"][1] <= flow["tx_pkts"][0]
    assert flow["tx_bytes"][0] == 64 * flow["tx_pkts"][0] and flow["rx_pkts"][0] == 0
    assert sum(latency["histogram"].values()) == flow["rx_pkts"][1]
    assert 0 <= latency["total_min"] <= latency["average"] < 1e6
    assert stats["latency"][12]["err_cntrs"]["out_of_order"] == 0
    assert client.get_stats()[0]["opackets"] > flow["tx_pkts"][0]
    client.remove_all_streams(ports=[0])
    assert client.get_active_pgids() == {"flow_stats": [], "latency": []}


def counts_streams(api: Any, client: Any, target: Target) -> None:
    """Three groups of statistics: two of a stream each, one of streams on both ports."""
    client.reset(ports=PAIR)
    sizes = {21: 64, 22: 590}
    streams = [
        api.STLStream(
            packet=packet(api, size=size), mode=api.STLTXCont(pps=500), flow_stats=api.STLFlowStats(pg_id=number)
        )
        for number, size in sizes.items()
    ]
    client.add_streams(streams, ports=[0])
    for port in PAIR:
        group = api.STLFlowStats(pg_id=23)
        both = api.STLStream(packet=packet(api, port), mode=api.STLTXCont(pps=500), flow_stats=group)
        client.add_streams(both, ports=[port])
    assert client.get_active_pgids() == {"flow_stats": [21, 22, 23], "latency": []}
    timed = api.STLStream(packet=packet(api), flow_stats=api.STLFlowLatencyStats(pg_id=23))
    refused(api, lambda: client.add_streams([timed], ports=[1]), "different l4 protocol")
    client.clear_stats()
    client.start(ports=PAIR, mult="2", duration=1)
    client.wait_on_traffic(ports=PAIR, timeout=30)
    stats = client.get_pgid_stats([21, 22, 23])["flow_stats"]
    for number, port in ((21, 0), (22, 0), (23, 0), (23, 1)):
        tx, rx = stats[number]["tx_pkts"][port], stats[number]["rx_pkts"][1 - port]
        assert 0 < tx <= 1010 and 0.9 * tx <= rx <= tx, (number, port)
        assert stats[number]["tx_bytes"][port] == sizes.get(number, 64) * tx
        assert stats[number]["rx_bytes"][1 - port] == sizes.get(number, 64) * rx
    assert stats[21]["tx_pkts"][1] == stats[21]["rx_pkts"][0] == 0 and stats[21]["tx_pps"]["total"] == 0
    assert stats["global"] == {"rx_err": dict.fromkeys(PAIR, 0), "tx_err": dict.fromkeys(PAIR, 0)}
    client.clear_stats()
    assert client.get_pgid_stats([22])["flow_stats"][22]["tx_pkts"]["total"] == 0
    client.remove_all_streams(ports=[0])
    assert client.get_active_pgids() == {"flow_stats": [23], "latency": []}
    client.remove_all_streams(ports=[1])
    assert client.get_pgid_stats([])["ver_id"] == {}


def eventually(condition: Callable[[], bool], within_s: float = 30.0) -> bool:
    """Test whether the condition comes true in time."""
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


SCENARIOS: list[Scenario] = [
    connects_and_looks,
    owns_and_shares,
    sends_for_a_while,
    multiplies,
    refuses_what_trex_refuses,
    pauses_and_resumes,
    bursts_end_by_themselves,
    times_frames,
    counts_streams,
    keeps_streams,
    survives_a_reset,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Scenario, target: Target, package: Client) -> None:
    with package.namespace(), connected(package.api, target) as client:
        scenario(package.api, client, target)
