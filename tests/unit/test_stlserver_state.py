"""Ports, owners, traffic, events and statistics, on a clock in the hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from calls import packet, rate
from engine_fake import FakeEngine

from trexbench.stlserver.engine import MAX_STREAMS, EngineCounters, EngineError, StreamSpec
from trexbench.stlserver.kernel.xdp_layout import PORT_WORDS_MAX, PortWord, StreamWord
from trexbench.stlserver.rpc import dispatch
from trexbench.stlserver.rpc.cmd_port import attributes
from trexbench.stlserver.state.events import STALLED_AFTER_S, EventCode, EventQueues
from trexbench.stlserver.state.server_state import ServerState
from trexbench.stlserver.state.stats import RateMeter

STREAM = rate("pps", 100)


class CountingEngine(FakeEngine):
    """Counts readings, and can be told to refuse."""

    readings = 0
    refusal: str | None = None

    def counters(self, port: int) -> EngineCounters:
        self.readings += 1
        return super().counters(port)

    def check(self, port: int, stream: StreamSpec) -> None:
        self.spec = stream
        if self.refusal:
            raise EngineError(self.refusal)

    def start(self, port: int, streams: Any, factor: float, duration_s: float | None) -> None:
        if self.refusal:
            raise EngineError(self.refusal)
        super().start(port, streams, factor, duration_s)


@dataclass
class Bench:
    """A server without sockets, whose port 0 is owned."""

    now_s: float = 0.0
    resolved: bool = True
    engine: CountingEngine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = CountingEngine(clock=lambda: self.now_s, resolved=self.resolved)
        self.ctx = ServerState(self.engine)
        self.handler = self.call("acquire", user="me", session_id=1, force=False)
        self.call("get_async_events", session_id=1)

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        common = {"api_h": self.ctx.api_handler, "port_id": 0, "handler": getattr(self, "handler", "")}
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**common, **params}}

    def ask(self, request: Any) -> Any:
        return json.loads(dispatch.handle(self.ctx, json.dumps(request).encode(), self.now_s))

    def call(self, method: str, **params: Any) -> Any:
        reply = self.ask(self.request(method, **params))
        return reply["result"] if "result" in reply else reply["error"]["specific_err"]

    def start(self, **changes: Any) -> Any:
        mul = {"type": "raw", "op": "abs", "value": 1}
        return self.call("start_traffic", **{"mul": mul, "duration": -1, "force": False, **changes})

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.ctx.now_s = self.now_s
        self.ctx.tick()

    def state(self) -> str:
        return str(self.call("get_port_status")["state"])


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_start_at_a_moment_ahead_is_refused(bench: Bench) -> None:
    bench.call("add_stream", stream_id=1, stream=STREAM)
    assert bench.start(start_at_ts=1.0).startswith("start_at_ts: this server starts at once")
    assert (bench.state(), bench.engine.sending) == ("STREAMS", [])


def test_one_profile_a_port_at_a_time(bench: Bench) -> None:
    bench.call("add_stream", stream_id=1, stream=STREAM)
    bench.call("add_stream", stream_id=1, stream=STREAM, profile_id="b")
    bench.start()
    assert "is sending profile _" in bench.start(profile_id="b")
    bench.call("stop_traffic", profile_id="*")
    bench.start(profile_id="b")
    assert bench.call("get_port_status", profile_id="*")["state_profile"] == {"_": "STREAMS", "b": "TX"}


def test_no_start_with_the_link_down_or_the_neighbour_unknown() -> None:
    bench = Bench(resolved=False)
    bench.call("add_stream", stream_id=1, stream={**STREAM, "flags": 0})
    assert bench.start() == "Port 0 dest MAC is invalid and there are streams without explicit dest MAC."
    bench.call("set_l2", dst_mac="02:00:00:00:00:99")
    bench.engine.links[0] = False
    assert bench.start() == "Link state is DOWN."
    assert "multiplier" in bench.start(force=True)


@pytest.mark.parametrize(
    ("about", "flags", "macs"),
    [
        ("the packet's destination, the port's source", 2, "000000000000 020000000102"),
        ("both the packet's", 3, "000000000000 000000000000"),
        ("both the port's", 0, "020000000101 020000000102"),
        ("the destination resolved by ARP", 4, "020000000101 020000000102"),
    ],
)
def test_whose_macs(bench: Bench, about: str, flags: int, macs: str) -> None:
    bench.call("add_stream", stream_id=1, stream={**STREAM, "packet": packet(bytes(60)), "flags": flags})
    assert bench.engine.spec.packet[:12].hex() == macs.replace(" ", "")


def test_release_and_forced_acquisition_leave_traffic_alone(bench: Bench) -> None:
    bench.call("add_stream", stream_id=1, stream=STREAM)
    bench.start()
    bench.call("release")
    bench.handler = bench.call("acquire", user="you", session_id=2, force=False)
    assert (bench.state(), bench.engine.sending) == ("TX", [0])
    bench.call("stop_traffic")
    assert bench.engine.sending == []


def test_the_counters_of_one_frame_are_of_one_moment(bench: Bench) -> None:
    bench.engine.readings = 0
    names = ("get_global_stats", "get_port_stats", "get_port_xstats_values")
    bench.ask([bench.request(name, port_id=port) for name in names for port in (0, 1)])
    assert bench.engine.readings == 2  # each port once
    bench.ask([bench.request("get_port_stats"), bench.request("stop_traffic"), bench.request("get_port_stats")])
    assert bench.engine.readings == 6  # what may change them makes them be read again


def test_a_link_that_changes_is_told(bench: Bench) -> None:
    bench.ctx.watch_links(attributes)
    assert bench.call("get_async_events", session_id=1)["data"] == []
    bench.engine.links[1] = False
    bench.ctx.watch_links(attributes)
    bench.ctx.watch_links(attributes)
    (event,) = bench.call("get_async_events", session_id=1)["data"]
    assert event["data"]["port_id"] == 1
    assert (event["data"]["attr"]["speed"], event["data"]["attr"]["link"]) == (10.0, {"up": False})


def test_silence_stops_everything(bench: Bench) -> None:
    bench.call("add_stream", stream_id=1, stream=STREAM)
    bench.start()
    bench.ctx.silence()
    assert bench.engine.sending == []


def test_shutdown_asks_the_owners_first(bench: Bench) -> None:
    assert bench.call("shutdown", user="you", force=False).startswith("port 0 is owned by 'me'")
    assert not bench.ctx.shutdown
    bench.call("shutdown", user="you", force=True)
    assert bench.ctx.shutdown


def test_rates_are_smoothed_once_a_second() -> None:
    meter = RateMeter()
    assert [meter.add(t, int(1000 * t)) for t in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)] == [0, 0, 500, 500, 750, 875]


def test_a_session_hears_events_from_its_first_question_on() -> None:
    events = EventQueues()
    events.post(EventCode.PORT_STARTED, {}, 0.0)
    assert events.fetch(7, 0.0) == []
    events.post(EventCode.PORT_STARTED, {}, 0.0)
    events.post(EventCode.PORT_STOPPED, {}, 0.0)
    assert [(e["seq"], e["type"]) for e in events.fetch(7, 1.0)] == [(0, 0), (1, 1)]
    assert events.fetch(7, 1.0) == []


def test_a_silent_reader_is_forgotten_and_a_silent_owner_kept() -> None:
    events = EventQueues()
    events.fetch(1, 0.0)
    events.listen(2, 0.0)
    late = STALLED_AFTER_S + 1
    for at in (0.0, late, late):
        events.post(EventCode.PORT_STARTED, {}, at, owners={2})
    assert len(events.fetch(2, late)) == 1
    assert events.fetch(1, late) == []  # as a new session
    events.post(EventCode.PORT_STARTED, {}, late)
    events.post(EventCode.PORT_STARTED, {}, 3 * late)
    assert events.fetch(2, 3 * late) == []


def test_a_port_takes_as_many_streams_as_the_kernels_memory_holds() -> None:
    bench = Bench()
    answers = [bench.call("add_stream", stream_id=number, stream=STREAM) for number in range(MAX_STREAMS + 1)]
    assert answers[-1] == "Reached limit of 400 streams at the port." and answers[-2] == answers[0]
    assert bench.call("add_stream", stream_id=0, stream=STREAM, profile_id="another") == answers[0]
    assert len(StreamWord) * MAX_STREAMS + PortWord.STREAMS == PORT_WORDS_MAX
