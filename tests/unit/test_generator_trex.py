"""The generator against the embedded server with its engine that sends nothing: the genuine client in between."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from effort import by_day
from engine_fake import FakeEngine
from faulty_server import FaultyServer
from rpc import Stub, ask
from runs import HeldClock

from trexbench.core.errors import ConfigError, GeneratorError, GeneratorLost, PortOwned
from trexbench.generator.trex.client import load_client
from trexbench.generator.trex.connect import ServerAddress, connect, reach
from trexbench.generator.trex.ports import TrexGenerator
from trexbench.generator.trex.rpc import Answer, Call, Channel, Refusal
from trexbench.stlserver.engine import EngineCounters
from trexbench.stlserver.rpc.dispatch import METHODS
from trexbench.stlserver.rpc.methods import Method
from trexbench.stlserver.rpc.server import StlServer

pytestmark = pytest.mark.portable

BENCH = Path(__file__).parents[2] / "stl_profiles" / "bench.py"
VAR2 = {"size": "64", "vm": "var2"}


class ArpSender(FakeEngine):
    """Counts frames of its own for a while, as TRex does with ARP until it takes them out."""

    own_frames = 0

    def counters(self, port: int) -> EngineCounters:
        found = super().counters(port)
        own = self.own_frames
        return replace(found, opackets=found.opackets + own, obytes=found.obytes + 64 * own)


class Bench:
    timeout_s = 30.0

    def __init__(self, ports: int = 2, **engine: Any) -> None:
        self.clock = HeldClock()
        self.engine = ArpSender(ports, clock=self.clock.now, **engine)
        self.server = StlServer(self.engine, clock=self.clock.now)

    @property
    def endpoint(self) -> ServerAddress:
        return ServerAddress("127.0.0.1", self.server.rpc_port, self.server.pub_port, timeout_s=self.timeout_s)

    def connect(self, ports: tuple[int, ...] = (0, 1), **options: Any) -> Any:
        return connect(self.endpoint, ports, self.clock, guarded=False, **options)

    def sent_in(self, seconds: float, generator: TrexGenerator) -> dict[int, int]:
        """Let time pass; return the frames that each port sent meanwhile."""
        before = generator.read().ports
        self.clock.now_s += seconds
        return {port: count.opackets - before[port].opackets for port, count in generator.read().ports.items()}


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    with bench.server:
        yield bench


@pytest.fixture
def generator(bench: Bench) -> Iterator[TrexGenerator]:
    with bench.connect() as generator:
        generator.load(BENCH, VAR2, (0, 1))
        yield generator


def test_counters_are_those_of_the_server(bench: Bench, generator: TrexGenerator) -> None:
    base = generator.read()
    generator.start({0: 1000.0, 1: 250.5}, 30)
    bench.clock.now_s += 2
    reading = generator.read()
    sent = [reading.ports[port].opackets - base.ports[port].opackets for port in (0, 1)]
    assert sent == [2000, 501]
    assert [reading.ports[port].ipackets for port in (1, 0)] == sent
    assert reading.ports[0].obytes - base.ports[0].obytes == 2000 * 64
    assert reading.ports[0].t_s - base.ports[0].t_s == pytest.approx(2)
    assert (reading.ports[0].ierrors, reading.ports[0].oerrors, reading.queue_full) == (0, 0, 0)
    assert all(port.cpu_percent is not None and port.link_up for port in reading.ports.values())


def test_a_full_queue_that_is_not_tried_again_is_full(generator: TrexGenerator) -> None:
    """CCoreEthIF::send_burst of src/main_dpdk.cpp, v2.80 to v3.08, with low_end in trex_cfg.yaml: m_tx_drop."""
    batch = generator._channel.batch

    def answered(calls: Sequence[Call]) -> Answer:
        answer = batch(calls)
        for (method, _), result in zip(calls, answer.results, strict=True):
            if method == "get_global_stats":
                result["m_total_queue_drop"] = 7
        return answer

    assert generator.read().streams.keys() == {0, 1}
    generator._channel.batch = answered  # type: ignore[method-assign]
    reading = generator.read()
    assert (reading.queue_full, reading.streams) == (7, {}), "CCoreEthIFStateless::update_node_flow_stat counts before"


def test_a_slow_first_answer_shifts_no_interval(bench: Bench, generator: TrexGenerator) -> None:
    rpc, clock, delays_s = generator._channel._rpc, bench.clock, iter([0.02] * 3)
    send = rpc.send_raw_msg

    def send_late(*args: Any, **options: Any) -> Any:
        clock.now_s += next(delays_s, 0.0)
        return send(*args, **options)

    rpc.send_raw_msg = send_late
    generator.start({0: 1000.0}, 30)
    before = generator.read().ports[0]
    clock.now_s += 0.2
    after = generator.read().ports[0]
    assert (after.opackets - before.opackets) / (after.t_s - before.t_s) == pytest.approx(1000, rel=1e-3)


@pytest.mark.parametrize(("own_frames", "least"), [(2, 102), (9, 100)], ids=["its own ARP", "a reset"])
def test_frames_that_trex_takes_back_as_its_own_are_no_reset(
    bench: Bench, generator: TrexGenerator, own_frames: int, least: int
) -> None:
    generator.start({0: 1000.0}, 30)
    bench.clock.now_s += 0.1
    generator.stop()
    bench.engine.own_frames = own_frames
    assert generator.read().ports[0].opackets == 100 + own_frames
    bench.engine.own_frames = 0
    port = generator.read().ports[0]
    assert (port.opackets, port.obytes) == (least, 64 * least)


def test_traffic_ends_at_its_duration_rounded_up_and_that_is_noticed(bench: Bench, generator: TrexGenerator) -> None:
    generator.start({0: 1000.0}, 4.2)
    assert bench.sent_in(100, generator)[0] == 5000
    with pytest.raises(GeneratorLost, match="ended by itself"):
        generator.update({0: 2000.0})


@pytest.mark.parametrize("duration", [0.0, float("inf"), float("nan")])
def test_no_start_without_an_end(generator: TrexGenerator, duration: float) -> None:
    with pytest.raises(ConfigError, match="every start is bounded"):
        generator.start({0: 1000.0}, duration)


def test_a_rate_over_the_line_is_refused_and_nothing_runs(bench: Bench, generator: TrexGenerator) -> None:
    with pytest.raises(GeneratorError, match="exceeds port line rate"):
        generator.start({0: 1000.0, 1: 20e6}, 60)
    assert bench.sent_in(1, generator) == {0: 0, 1: 0}
    assert generator.read().streams, "it is no reason not to count them"


def test_facts_name_server_client_and_ports(bench: Bench, generator: TrexGenerator) -> None:
    facts = generator.facts()
    assert facts["server"]["mode"] == "STL" and facts["server"]["version"].startswith("v")
    assert facts["client"]["origin"] == "lbr-trex-client" and facts["client"]["api"] == "5.1"
    assert [port["speed_bps"] for port in facts["ports"]] == [10e9, 10e9]
    assert facts["ports"][1]["mac"] == bench.engine.ports[1].src_mac
    assert generator.speed_bps(1) == 10e9


def test_a_foreign_owner_is_named_and_not_disturbed(bench: Bench, generator: TrexGenerator) -> None:
    generator.start({0: 1000.0}, 60)
    with pytest.raises(PortOwned, match=r"port 0 .* belongs to '.+ \(trexbench \d+\)'.*--force"), bench.connect():
        pytest.fail("the port was taken")
    assert bench.sent_in(1, generator)[0] == 1000


def test_force_takes_the_port_and_stops_what_its_owner_sends(bench: Bench) -> None:
    with bench.connect() as robbed:
        robbed.load(BENCH, VAR2, (0, 1))
        robbed.start({0: 1000.0, 1: 1000.0}, 60)
        with bench.connect((0,), force=True) as thief:
            assert bench.sent_in(2, thief)[0] == 0
            with pytest.raises(PortOwned, match="agree"):
                robbed.start({0: 1000.0}, 60)
    with bench.connect() as after:
        assert bench.sent_in(2, after)[1] == 0, "the port that was not taken was stopped and given back"


@pytest.mark.parametrize("is_read", [True, False], ids=["in the middle of a run", "at the end, unheard of"])
def test_a_port_that_is_taken_is_noticed(bench: Bench, is_read: bool) -> None:
    with pytest.raises(PortOwned, match="port 1 was taken away by 'bob'"), bench.connect() as generator:
        ask(bench.server.rpc_port, "acquire", port_id=1, user="bob", session_id=7, force=True)
        if is_read:
            generator.read()


def test_a_server_that_was_restarted_is_not_somebody_elses(bench: Bench) -> None:
    with bench.connect() as generator:
        generator.load(BENCH, VAR2, (0, 1))
        bench.server._ctx.api_handler = "anotherone"
        with pytest.raises(GeneratorLost, match="was restarted"):
            generator.read()
        bench.server._ctx.api_handler = generator._channel.api_h


def test_a_server_that_is_silent_at_first_is_waited_for() -> None:
    bench = Bench()
    bench.timeout_s = 1.0
    late = threading.Timer(1.6, bench.server.start)  # its sockets listen from its construction
    late.start()
    try:
        with bench.connect() as generator:
            assert generator.read().ports.keys() == {0, 1}
    finally:
        late.join()
        bench.server.stop()


@pytest.mark.parametrize("hangs", [False, True])
def test_a_server_that_is_lost_is_said_once_and_waited_for_once(hangs: bool) -> None:
    bench = Bench()
    bench.timeout_s = 1.0
    bench.server = FaultyServer(bench.engine, clock=bench.clock.now, faults=["hang@1s" if hangs else "die@1s"])
    said = "it listens, but hangs" if hangs else r"\(Connection refused\): it ended or cannot be reached"
    with bench.server, bench.connect() as generator:
        generator.load(BENCH, VAR2, (0, 1))
        generator.start({0: 1000.0}, 60)
        bench.clock.now_s += 2
        with pytest.raises(GeneratorLost, match=f"does not answer.*{said}"):
            generator.read()
        with pytest.raises(GeneratorLost, match=said):
            generator.stop()
    # leaving the block raised nothing, or what it measured would be lost


def test_a_reading_or_a_rate_whose_answer_is_lost_is_asked_for_again_and_another_change_is_sent_once() -> None:
    bench = Bench()
    bench.timeout_s = 1.0
    bench.server = FaultyServer(bench.engine, clock=bench.clock.now, faults=["drop@1s", "drop@3s", "drop@5s"])
    with bench.server, bench.connect() as generator:
        generator.load(BENCH, VAR2, (0, 1))
        generator.start({0: 1000.0}, 60)
        bench.clock.now_s += 2
        assert generator.read().ports[0].opackets == 2000
        bench.clock.now_s += 2
        generator.update({0: 2000.0})
        bench.clock.now_s += 0.5
        assert generator.read().ports[0].opackets == 2000 + 2000 + 1000
        bench.clock.now_s += 1
        with pytest.raises(GeneratorLost, match="does not answer"):
            generator.stop()


@pytest.mark.parametrize("sample_s", by_day(3, [0.05, 0.7, 2.5, 0.2, 0.3, 0.45, 0.999, 1.0]))
def test_links_are_looked_at_once_a_window_at_least(bench: Bench, generator: TrexGenerator, sample_s: float) -> None:
    """Else a link that is down for as long as loss must last to count could go unseen, and the DUT be blamed."""
    looks = []
    for number in range(60):
        bench.clock.now_s += sample_s * (1 + 0.001 * (number % 2))
        bench.engine.links[1] = False
        if not generator.read().ports[1].link_up:
            looks.append(bench.clock.now_s)
            generator._status[1] = {"attr": {"link": {"up": True}}}
    gaps = [after - before for before, after in pairwise(looks)]
    assert gaps and max(gaps) <= max(0.91, sample_s * 1.001) + 1e-9


def test_afterwards_the_ports_are_silent_and_free(bench: Bench) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), bench.connect() as generator:
            generator.load(BENCH, VAR2, (0, 1))
            generator.start({0: 1000.0}, 60)
            raise ZeroDivisionError
        with bench.connect() as generator:
            assert bench.sent_in(1, generator) == {0: 0, 1: 0}


@pytest.mark.parametrize(("ports", "said"), [((0, 7), "has no port 7: its ports are 0, 1"), ((-1,), "has no port -1")])
def test_ports_that_are_not_there(bench: Bench, ports: tuple[int, ...], said: str) -> None:
    with pytest.raises(GeneratorError, match=said), bench.connect(ports):
        pytest.fail("connected")


def test_a_port_without_link_is_refused_and_left(bench: Bench) -> None:
    bench.engine.links[1] = False
    with pytest.raises(GeneratorError, match=r"port 1 .* has no link"), bench.connect():
        pytest.fail("connected")
    bench.engine.links[1] = True
    with bench.connect():
        pass


def test_a_captured_port_is_refused_and_left(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRex keeps such a port in service mode: "unable to disable service mode - an active capture on port 1 exists"."""
    captures: list[Any] = [{"id": 1, "state": "ACTIVE", "filter": {"bpf": "", "rx": 2, "tx": 0}}]
    monkeypatch.setitem(METHODS, "capture", Method(lambda server, params: captures))
    with (
        pytest.raises(GeneratorError, match=r"port 1 .* is captured, .*: .*`capture clear`"),
        bench.connect(),
    ):
        pytest.fail("connected")
    captures.clear()
    with bench.connect():
        pass


def test_a_promiscuous_port_is_made_selective(bench: Bench) -> None:
    handler = ask(bench.server.rpc_port, "acquire", port_id=0, user="bob", session_id=7, force=False)
    ask(bench.server.rpc_port, "set_port_attr", port_id=0, handler=handler, attr={"promiscuous": {"enabled": True}})
    ask(bench.server.rpc_port, "release", port_id=0, handler=handler)
    assert bench.engine.promiscuous == [True, False]
    with bench.connect():
        assert bench.engine.promiscuous == [False, False]


def test_an_unresolved_destination_is_said_before_anything_is_sent() -> None:
    bench = Bench(resolved=False)
    with (
        bench.server,
        bench.connect() as generator,
        pytest.raises(GeneratorError, match=r"port 0: no .*MAC.*: name it with `trexbench lab serve --dst-mac`"),
    ):
        generator.load(BENCH, VAR2, (0, 1))


def refusal(reason: str) -> bytes:
    error = {"code": -32000, "message": "Failed To Execute Method", "specific_err": reason}
    return json.dumps({"id": "x", "jsonrpc": "2.0", "error": error}).encode()


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (refusal("RPC version mismatch: a newer client version is required"), "do not fit .*--trex-dir"),
        (
            refusal("RPC configuration mismatch - server RPC configuration: 'ASTF'"),
            "not in stateless mode .*--stl",
        ),
        (b"HTTP/1.1 200 OK", "no session with the TRex server"),
    ],
)
def test_servers_that_are_something_else(reply: bytes, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        closing(Stub(reply)) as server,
        pytest.raises(GeneratorError, match=said) as caught,
        connect(ServerAddress("127.0.0.1", server.port, server.port, 1.0), (0,), HeldClock()),
    ):
        pytest.fail("connected")
    assert "\n" not in str(caught.value) and capsys.readouterr() == ("", "")


class RefusingChannel:
    """A server that refuses everything."""

    where, answering = "there:4501", True

    def batch(self, calls: Sequence[Call]) -> Answer:
        return Answer([Refusal(f"no {method}", 0) for method, _ in calls], 0.0, 0.0)


def test_a_start_that_is_refused_is_told_even_if_the_stop_after_it_is_refused_too() -> None:
    client = SimpleNamespace(ports={0: SimpleNamespace(handler="secret")})
    generator = TrexGenerator(load_client(), client, cast(Channel, RefusingChannel()), (0,), HeldClock())
    with pytest.raises(GeneratorError, match="TRex server there:4501 cannot start: no start_traffic"):
        generator.start({0: 1.0}, 1.0)


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(GeneratorError, match=r"no TRex server at 127.0.0.1:.*refused.*--server"):
            reach(ServerAddress("127.0.0.1", unused.getsockname()[1]))


@pytest.mark.parametrize("name", ["a..b", "x" * 70])
def test_a_name_that_can_be_no_host_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(GeneratorError, match=f"no TRex server at {name}:4501"):
        reach(ServerAddress(name))


def test_a_block_that_fails_after_its_server_ended_waits_for_no_answer(bench: Bench) -> None:
    """A simulation that a signal tore down in the wrong order waited for its server's answers for 50 s."""
    with pytest.raises(ZeroDivisionError), connect(bench.endpoint, (0, 1), bench.clock, guarded=False):
        bench.server.stop()
        begun_s = time.monotonic()
        raise ZeroDivisionError
    assert time.monotonic() - begun_s < bench.endpoint.timeout_s
