"""Faults on demand (faulty_server): what each does to whoever talks to the server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import zmq
from engine_fake import FakeEngine
from faulty_server import OTHER_USER, FaultyServer

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
        self.server = FaultyServer(self.engine, clock=self.clock, faults=specs)
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
