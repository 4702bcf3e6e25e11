"""Streams counted each by itself: whose groups they are in, what a reading has of them, and what happens without."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_generator_trex import BENCH, VAR2, Bench, ask

from trexbench.core.load.sample import Reading, StreamCounters
from trexbench.generator.trex.client import load_client
from trexbench.generator.trex.ports import TrexGenerator
from trexbench.generator.trex.streams import MOST_COUNTED, PortStreams, count_streams
from trexbench.stlserver.engine import MARKS, EngineError, StreamSpec
from trexbench.stlserver.state.groups import CountedGroup

IMIX = {"size": "imix", "vm": "var2"}
SHARED = """
from trex_stl_lib.api import *

class Profile:
    def get_streams(self, direction=0, port_id=0, **kwargs):
        def stream(pg_id):
            packet = STLPktBuilder(pkt=Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025))
            return STLStream(packet=packet, mode=STLTXCont(pps=1), flow_stats=STLFlowStats(pg_id=pg_id))
        return [stream(12 + port_id + number) for number in (0, STEP)]

def register():
    return Profile()
"""


@pytest.fixture
def bench() -> Any:
    bench = Bench()
    with bench.server:
        yield bench


def after_a_second(bench: Bench, generator: TrexGenerator, pps: float, ports: Sequence[int] = (0, 1)) -> Reading:
    generator.start(dict.fromkeys(ports, pps), 5)
    bench.clock.now_s += 1
    return generator.read()


def groups_in_use(bench: Bench, kind: str = "flow_stats") -> list[int]:
    found: list[int] = ask(bench.server.rpc_port, "get_active_pgids")["ids"][kind]
    return found


def test_every_stream_of_every_port_is_counted(bench: Bench) -> None:
    with bench.connect() as generator:
        loaded = generator.load(BENCH, IMIX, (0, 1))
        digest = loaded[0].digest
        base = generator.read()
        assert base.streams == {port: StreamCounters(0.0, (0, 0, 0)) for port in (0, 1)}
        generator.start({0: 4800.0, 1: 480.0}, 60)
        bench.clock.now_s += 2
        found = generator.read()
        assert found.streams == {
            0: StreamCounters(2.0, (5600, 3200, 800), {1: (5600, 3200, 800)}),
            1: StreamCounters(2.0, (560, 320, 80), {0: (560, 320, 80)}),
        }
        assert sum(found.streams[0].sent) == found.ports[0].opackets - base.ports[0].opackets
        generator.stop()
        generator.start({0: 4800.0}, 60)
        bench.clock.now_s += 1
        assert generator.read().streams[0].sent == (8400, 4800, 1200), "a stop and a start go on counting"
        generator.stop()
        assert generator.load(BENCH, IMIX, (0, 1))[0].digest == digest, "the profile is what the file says"
        assert generator.facts()["streams_not_counted"] is None


def test_what_a_run_both_ways_left_is_in_no_other_runs_way(bench: Bench) -> None:
    """A session's next run sends one way only, with more streams: more packet groups from the same number on."""
    with bench.connect() as generator:
        generator.load(BENCH, VAR2, (0, 1))
        generator.tag({0: 1000.0, 1: 1000.0})
        tagged = after_a_second(bench, generator, 2000.0)
        assert sorted(tagged.latency) == [0, 1] and tagged.streams == {}, "tagged frames end the counts of streams"
        generator.stop()
        generator.load(BENCH, IMIX, (0,))
        found = generator.read()
        assert found.latency == {} and found.streams == {0: StreamCounters(1.0, (0, 0, 0))}
        assert len(groups_in_use(bench)) == 3 and groups_in_use(bench, "latency") == []
        generator.tag({0: 1000.0})
        assert after_a_second(bench, generator, 1e4, (0,)).latency[0].received == pytest.approx(1000, abs=3)


@pytest.mark.parametrize(("step", "counted"), [(1, True), (0, False)])
def test_a_profiles_own_groups_are_used_if_each_stream_has_another(
    bench: Bench, tmp_path: Path, step: int, counted: bool
) -> None:
    """Numbers as in TRex's udp_1pkt_multi_stream.py, which both ports have in common."""
    path = tmp_path / "own.py"
    path.write_text(SHARED.replace("STEP", str(step)))
    with bench.connect() as generator:
        generator.load(path, {}, (0, 1))
        assert groups_in_use(bench) == [12, 13, 14][: 2 + step]
        streams = after_a_second(bench, generator, 1000.0).streams
        counts = [(one.sent, one.received_by(1 - port)) for port, one in streams.items()]
        assert counts == ([((500, 500), (500, 500))] * 2 if counted else [])
        assert ("packet groups of its own" in str(generator.facts()["streams_not_counted"])) is not counted


@pytest.mark.parametrize("refusing", [0, 1])
def test_a_server_that_refuses_them_gets_plain_streams_on_all_ports(bench: Bench, refusing: int) -> None:
    def check(port: int, stream: StreamSpec) -> None:
        if port == refusing and stream.mark is not None:
            raise EngineError("its field engine writes byte 18")

    bench.engine.check = check  # type: ignore[method-assign]
    with bench.connect() as generator:
        generator.load(BENCH, IMIX, (0, 1))
        assert "writes byte 18" in generator.facts()["streams_not_counted"]
        assert groups_in_use(bench) == []
        found = after_a_second(bench, generator, 480.0)
        assert found.streams == {} and found.ports[0].opackets == found.ports[1].ipackets == 480


def test_counters_that_others_hold_cost_the_counts_and_not_the_start(bench: Bench) -> None:
    with bench.connect() as generator:
        generator.load(BENCH, IMIX, (0, 1))
        others = {number: CountedGroup(number, 0, mark=number + 1) for number in range(MARKS - 1)}
        bench.server._ctx.groups._groups.update(others)
        found = after_a_second(bench, generator, 480.0)
        assert found.streams == {} and found.ports[0].opackets == found.ports[1].ipackets == 480
        generator.update({0: 960.0})


@pytest.mark.parametrize(
    ("caps", "counters", "software", "most", "driver", "reason"),
    [
        (["flow_stats", "latency"], 1023, True, MOST_COUNTED, "net_i40e", None),
        (["latency"], 1023, True, MOST_COUNTED, "net_i40e", "the server's ports do not count streams"),
        (["flow_stats"], 127, False, MOST_COUNTED, "net_i40e", "filters in hardware"),
        (["flow_stats"], 5, True, MOST_COUNTED, "net_i40e", "6 streams are more than 5"),
        (["flow_stats"], 1023, True, 4, "net_i40e", "6 streams are more than 4"),
        (["flow_stats"], 1023, True, MOST_COUNTED, "net_ixgbe", "does not tell how many frames its receiver missed"),
    ],
)
def test_streams_are_counted_where_that_costs_nothing(
    caps: Any,
    counters: int,
    software: bool,
    most: int,
    driver: str,
    reason: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trexbench.generator.trex.streams.MOST_COUNTED", most)
    ports = [{"index": port, "driver": driver, "rx": {"caps": caps, "counters": counters}} for port in (0, 1)]
    system = {"ports": ports, "advanced_per_stream_stats": software}
    calls = dict.fromkeys(("remove_all_streams", "add_streams"), lambda *_, **__: None)
    server = SimpleNamespace(get_server_system_info=lambda: system, **calls)
    streams = PortStreams(load_client(), server, "-", (0, 1))
    streams.load(BENCH, IMIX, (0, 1))
    assert (reason or "") in (streams.uncounted or "") and (streams.uncounted is None) == (reason is None)
    assert len(streams.groups) == (6 if reason is None else 0)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"flow_stats": None},
        {"flow_stats": {"5": {"tp": {"0": 1}, "rp": {"1": 1}}}},
        {"flow_stats": {"5": {"tp": {"0": 1}, "rp": {}}, "6": {"tp": {}, "rp": {}}}},
        {"flow_stats": {"5": {"tp": {"0": 1}}, "6": {"tp": {"0": 1}}}},
    ],
)
def test_a_port_is_left_out_unless_all_of_its_streams_are_told(told: Any) -> None:
    assert count_streams(told, {0: [5, 6]}, 1.0) == {}


@pytest.mark.skipif(not os.environ.get("TREXBENCH_TREX_DIR"), reason="TREXBENCH_TREX_DIR names no TRex installation")
@pytest.mark.parametrize(
    ("name", "tunables", "tx_ports", "groups"),
    [
        ("flow_stats.py", {"num_streams": "3", "pg_id": "7"}, (0,), [7, 8, 9]),
        ("flow_stats.py", {"pkt_type": "vlan"}, (0,), [1]),
        ("flow_stats.py", {"pkt_type": "qinq", "fsize": "128"}, (0,), [1]),
        ("udp_1pkt_multi_stream.py", {"streams": "3"}, (0, 1), [12, 13, 14, 15]),
    ],
)
def test_trexs_own_profiles_load_and_count(
    bench: Bench, name: str, tunables: dict[str, str], tx_ports: tuple[int, ...], groups: list[int]
) -> None:
    with bench.connect() as generator:
        loaded = generator.load(Path(os.environ["TREXBENCH_TREX_DIR"], "stl", name), tunables, tx_ports)
        assert groups_in_use(bench) == groups
        streams = after_a_second(bench, generator, 300.0, tx_ports).streams
        for port in tx_ports:
            each = 300 // len(loaded[port].streams)
            assert streams[port].sent == streams[port].received_by(1 - port) == (each,) * len(loaded[port].streams)
