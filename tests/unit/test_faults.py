"""Faults on demand: what may be written, and what each does to whoever talks to the server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

import engine_fake
import pytest
import zmq
from engine_fake import FakeEngine
from hypothesis import given
from hypothesis import strategies as st

from trexbench.stlserver.rpc.faults import OTHER_USER, Fault, FaultError, parse_fault
from trexbench.stlserver.rpc.server import StlServer
from trexbench.stlserver.state.events import EventCode

STREAM = {
    "enabled": True,
    "self_start": True,
    "mode": {"type": "continuous", "rate": {"type": "pps", "value": 1000.0}},
    "packet": {"binary": "AAAA" * 20, "meta": ""},
    "vm": {"instructions": []},
    "flow_stats": {"enabled": False},
    "flags": 3,
    "action_count": 0,
    "random_seed": 0,
    "isg": 0.0,
    "next_stream_id": -1,
}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("die@20s", Fault("die", 20.0)),
        ("hang@20s:5s", Fault("hang", 20.0, length_s=5.0)),
        ("hang@2m", Fault("hang", 120.0, length_s=inf)),
        ("drop@20s:3", Fault("drop", 20.0, count=3)),
        ("drop@1.5", Fault("drop", 1.5, count=1)),
        ("link1-down@20s:2s", Fault("linkN-down", 20.0, 1, length_s=2.0)),
        ("link12-down@0s", Fault("linkN-down", 0.0, 12)),
        ("reset@500ms", Fault("reset", 0.5)),
        (" steal0@20s ", Fault("stealN", 20.0, 0)),
        ("stale@20s:10s", Fault("stale", 20.0, length_s=10.0)),
    ],
)
def test_what_may_be_written(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no fault is called '': there are die, hang, drop, linkN-down, reset, stealN, stale"),
        ("dye@20s", "no fault is called 'dye': there are die,"),
        ("hang1@20s", "no fault is called 'hang1'"),
        ("die", "says not when: write die@20s, so long after the first start of traffic"),
        ("die@", "'' is no time: write 20s, 500ms or 2m"),
        ("die@-1s", "'-1s' is no time"),
        ("die@1e3s", "'1e3s' is no time"),
        ("die@1234567s", "is no time"),
        ("die@٣s", "is no time"),
        ("die@2s:5s", "die takes no ':5s': it happens once, leave that out"),
        ("reset@2s:", "reset takes no ':'"),
        ("steal0@2s:1s", "steal0 takes no ':1s'"),
        ("hang@2s:0s", "'0s' is no length: write 20s"),
        ("hang@2s:5s:5s", "'5s:5s' is no length"),
        ("drop@2s:0", "'0' is no number of replies: write 1 or more"),
        ("drop@2s:5s", "'5s' is no number of replies"),
        ("steal@2s", "steal names no port: write steal0"),
        ("linkN-down@2s", "linkN-down names no port: write link0-down"),
        ("link1234-down@2s", "no port has the number 1234"),
    ],
)
def test_what_may_not_and_why(text: str, said: str) -> None:
    with pytest.raises(FaultError) as refused:
        parse_fault(text)
    assert said in str(refused.value) and str(refused.value).startswith(f"fault {text!r}: ")
    assert "\n" not in str(refused.value)


moments = st.integers(0, 10**6).map(lambda ms: ms / 1000)
lengths = st.one_of(st.just(inf), st.integers(1, 10**6).map(lambda ms: ms / 1000))
ports = st.integers(0, 127)
faults = st.one_of(
    st.builds(Fault, st.sampled_from(["die", "reset"]), moments),
    st.builds(Fault, st.sampled_from(["hang", "stale"]), moments, length_s=lengths),
    st.builds(Fault, st.just("linkN-down"), moments, ports, lengths),
    st.builds(Fault, st.just("stealN"), moments, ports),
    st.builds(Fault, st.just("drop"), moments, count=st.integers(1, 999_999)),
)


@given(faults)
def test_a_fault_reads_back_what_it_says(fault: Fault) -> None:
    assert parse_fault(str(fault)) == fault


@given(st.one_of(st.text(), st.from_regex(r"(die|hang|drop|link\d?-down|steal\d?)@\d*[ms]*:?.*")))
def test_any_text_is_a_fault_or_one_line(text: str) -> None:
    try:
        parse_fault(text)
    except FaultError as refused:
        assert len(str(refused).splitlines()) == 1


class HandClock:
    def __init__(self) -> None:
        self.time_s = 100.0

    def __call__(self) -> float:
        return self.time_s


class Talk:
    """A server with faults on a clock moved by hand, and a client that owns its ports and sends."""

    def __init__(self, specs: Sequence[str], ports: int = 2) -> None:
        self.clock = HandClock()
        self.engine = FakeEngine(ports, clock=self.clock)
        self.server = StlServer(self.engine, clock=self.clock, faults=[parse_fault(spec) for spec in specs])
        self._context: zmq.Context[Any] = zmq.Context()
        self._ids = itertools.count()
        self._socket: Any = None
        self.api_h = ""
        self.handlers: dict[int, str] = {}

    def ask(self, method: str, timeout_ms: int = 3000, **params: Any) -> Any:
        """The result, or None when no answer came."""
        if self._socket is None:
            self._socket = self._context.socket(zmq.REQ)
            self._socket.LINGER = 0
            self._socket.connect(f"tcp://127.0.0.1:{self.server.rpc_port}")
        request = {"id": next(self._ids), "jsonrpc": "2.0", "method": method, "params": {"api_h": self.api_h, **params}}
        self._socket.send(json.dumps(request).encode())
        if not self._socket.poll(timeout_ms):
            self._socket.close()
            self._socket = None
            return None
        answer = json.loads(self._socket.recv())
        assert "error" not in answer, answer
        return answer["result"]

    def begin(self) -> None:
        """Sends 1000 packets/s on ports 0 and 1 from here on."""
        self.api_h = self.ask("api_sync_v2", name="STL", major=5, minor=1)["api_h"]
        for port in (0, 1):
            handler = self.handlers[port] = self.ask("acquire", port_id=port, user="me", session_id=1, force=False)
            owned = {"port_id": port, "handler": handler}
            self.ask("add_stream", **owned, profile_id="_", stream_id=1, stream=STREAM)
        for port in (0, 1):
            self.start(port)

    def start(self, port: int) -> None:
        mul = {"type": "raw", "op": "abs", "value": 1.0}
        owned = {"port_id": port, "handler": self.handlers[port], "profile_id": "_"}
        self.ask("start_traffic", **owned, mul=mul, duration=-1.0, force=False)

    def counted(self, port: int) -> tuple[int, int]:
        stats = self.ask("get_port_stats", port_id=port)
        return stats["opackets"], stats["ipackets"]

    def close(self) -> None:
        self._context.destroy(linger=0)


@contextmanager
def talk(*specs: str, sending: bool = True) -> Iterator[Talk]:
    it = Talk(specs)
    try:
        with it.server:
            if sending:
                it.begin()
            yield it
    finally:
        it.close()


def test_without_faults_the_engine_is_used_as_it_is() -> None:
    with talk() as it:
        it.clock.time_s += 3
        assert it.counted(0) == (3000, 3000)
        assert it.server._faults.engine is it.engine


def test_times_count_from_the_first_start_of_traffic() -> None:
    with talk("reset@5s", sending=False) as it:
        it.clock.time_s += 50
        it.ask("ping")
        it.begin()
        it.clock.time_s += 4.5
        assert it.counted(0) == (4500, 4500)
        it.clock.time_s += 1
        assert it.counted(0) == (0, 0)
        it.clock.time_s += 1
        assert it.counted(0) == (1000, 1000)


def test_a_server_that_dies_says_nothing_and_leaves_nothing() -> None:
    with talk("die@2s") as it, it._context.socket(zmq.SUB) as events:
        thread = it.server._thread
        assert thread is not None and it.ask("ping")
        events.SUBSCRIBE = b""
        events.connect(f"tcp://127.0.0.1:{it.server.pub_port}")
        assert it.engine.sending == [0, 1]
        it.clock.time_s += 2
        assert it.ask("ping", timeout_ms=300) is None
        thread.join(5)
        assert not thread.is_alive() and not it.server.alive and it.server.died
        assert it.engine.closed
        said = [events.recv() for _ in iter(lambda: events.poll(100), 0)]
        assert all(b"SERVER" not in one and b'"type": 100' not in one for one in said)
        with zmq.Context() as context, context.socket(zmq.REP) as again:  # its address is free
            again.bind(f"tcp://127.0.0.1:{it.server.rpc_port}")


def test_a_server_that_hangs_answers_afterwards_and_sends_all_along() -> None:
    with talk("hang@2s:5s") as it:
        it.clock.time_s += 6.9
        assert it.ask("ping", timeout_ms=300) is None
        it.clock.time_s += 0.2
        assert it.counted(0) == (7100, 7100)


def test_a_server_that_hangs_can_be_stopped() -> None:
    with talk("hang@2s") as it:
        it.clock.time_s += 600
        assert it.ask("ping", timeout_ms=200) is None
        it.server.stop(5)
        assert it.engine.closed and not it.server.died


def test_where_replies_may_get_lost_nonsense_without_a_way_back_is_no_harm() -> None:
    with talk("drop@2s") as it, it._context.socket(zmq.DEALER) as socket:
        socket.LINGER = 0
        socket.connect(f"tcp://127.0.0.1:{it.server.rpc_port}")
        socket.send_multipart([b"{", b"}"])
        socket.send_multipart([b"", b"{", b"}"])
        assert socket.poll(3000) and b"error" in socket.recv_multipart()[1]
        assert it.counted(0) == (0, 0)


def test_lost_replies_are_those_of_commands_carried_out() -> None:
    with talk("drop@2s:2") as it:
        it.clock.time_s += 2
        assert it.ask("stop_traffic", timeout_ms=300, port_id=0, handler=it.handlers[0], profile_id="_") is None
        assert it.ask("ping", timeout_ms=300) is None
        assert it.ask("get_port_status", port_id=0)["state"] == "STREAMS"
        assert it.ask("get_port_status", port_id=1)["state"] == "TX"


def test_a_link_that_flaps_is_in_attributes_and_events_and_nothing_crosses_it() -> None:
    with talk("link1-down@2s:3s") as it:
        it.ask("get_async_events", session_id=1)
        it.clock.time_s += 1
        assert it.counted(0) == (1000, 1000)
        it.clock.time_s += 1
        links = [it.ask("get_port_status", port_id=port)["attr"]["link"]["up"] for port in (0, 1)]
        assert links == [True, False]
        it.clock.time_s += 3
        assert it.ask("get_port_status", port_id=1)["attr"]["link"]["up"] is True
        assert it.counted(1) == (2000, 2000)
        assert it.counted(0) == (5000, 2000)
        heard = it.ask("get_async_events", session_id=1)["data"]
        flaps = [(one["data"]["port_id"], one["data"]["attr"]["link"]["up"]) for one in heard
                 if one["type"] == EventCode.PORT_ATTR_CHANGED]  # fmt: skip
        assert flaps == [(1, False), (1, True)]
        it.clock.time_s += 1
        assert it.counted(0) == (6000, 3000) and it.counted(1) == (3000, 3000)


def test_a_reset_is_of_all_counters_at_once() -> None:
    with talk("reset@2s") as it:
        it.clock.time_s += 2.5
        whole = it.ask("get_global_stats")
        assert (whole["m_total_tx_pkts"], whole["m_total_rx_bytes"], whole["m_total_queue_full"]) == (0, 0, 0)
        it.clock.time_s += 1
        assert it.counted(0) == it.counted(1) == (1000, 1000)


def test_a_stolen_port_runs_on_and_belongs_to_somebody_else() -> None:
    with talk("steal0@2s") as it:
        it.ask("get_async_events", session_id=1)
        it.clock.time_s += 2
        assert [it.ask("get_port_status", port_id=port)["owner"] for port in (0, 1)] == [OTHER_USER, "me"]
        heard = it.ask("get_async_events", session_id=1)["data"]
        taken = [one["data"] for one in heard if one["type"] == EventCode.PORT_ACQUIRED]
        assert [(one["port_id"], one["who"], one["force"]) for one in taken] == [(0, OTHER_USER, True)]
        it.clock.time_s += 1
        assert it.counted(0) == (3000, 3000)


def test_stale_statistics_stand_still_and_make_up_for_it() -> None:
    with talk("stale@2s:3s") as it:
        it.clock.time_s += 2
        assert it.counted(0) == (2000, 2000)
        it.clock.time_s += 2.9
        assert it.counted(0) == it.counted(1) == (2000, 2000)
        assert it.ask("get_global_stats")["m_total_tx_pkts"] == 4000
        it.clock.time_s += 0.1
        assert it.counted(0) == (5000, 5000)


def test_faults_go_together() -> None:
    with talk("reset@1s", "stale@2s:1s", "steal1@2s", "reset@4s", "drop@5s") as it:
        it.clock.time_s += 1
        it.ask("ping")
        it.clock.time_s += 1
        assert it.counted(0) == (1000, 1000)
        it.clock.time_s += 1
        assert it.counted(0) == (2000, 2000)
        it.clock.time_s += 2
        assert it.ask("ping", timeout_ms=300) is None
        assert it.counted(0) == (0, 0)


def test_a_port_that_is_not_there() -> None:
    engine = FakeEngine(2)
    with pytest.raises(FaultError, match=r"fault 'steal2@1s': there is no port 2: there are 0, 1"):
        StlServer(engine, faults=[parse_fault("steal2@1s")])
    assert engine.closed


@pytest.mark.parametrize(
    ("spec", "said"),
    [("dye@2s", "argument --fault: fault 'dye@2s': no fault is called 'dye'"), ("steal7@2s", "there is no port 7")],
)
def test_wrong_usage(spec: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        engine_fake.serve(["--rpc-port", "0", "--pub-port", "0", "--fault", spec])
    assert left.value.code == 2
    assert said in capsys.readouterr().err
