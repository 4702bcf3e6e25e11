"""The server's sockets and its thread: RPC on a ZMQ ROUTER socket, events on a PUB socket.

ROUTER rather than REP, which would have to send every reply: the tests' server that fails on demand loses some.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import zmq

from .. import wire
from ..engine import Engine
from ..state.events import EventCode
from ..state.server_state import ServerState
from . import dispatch
from .cmd_port import attributes

SLOW_TICK_S = 0.5  # rates are renewed and links checked this often, as in TRex's slow path
FAST_TICK_S = 0.05
LINGER_MS = 500


class ServerError(Exception):
    """The server cannot start; the text names the address and the reason."""


class StlServer:
    """An STL server in front of an engine, which it closes when it stops.

    The system chooses ports given as 0; ``rpc_port`` and ``pub_port`` hold the choice. Use it as a context manager, or
    call ``start`` and ``stop``. Only the server's thread touches the engine, save for the final ``close``.
    """

    def __init__(
        self,
        engine: Engine,
        host: str = "127.0.0.1",
        rpc_port: int = 0,
        pub_port: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._ctx = ServerState(engine)
        self._clock = clock
        self._epoch_s = clock()
        self._stopping = threading.Event()
        self._closing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._zmq = zmq.Context()
        self.host = host
        try:
            self._rpc, self.rpc_port = self._bind(zmq.ROUTER, rpc_port)
            self._pub, self.pub_port = self._bind(zmq.PUB, pub_port)
        except ServerError:
            self._zmq.destroy(linger=0)
            engine.close()
            raise

    def __enter__(self) -> StlServer:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to serve in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="stlserver", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Silence every port, tell the clients, close sockets and engine; safe to call twice."""
        self.request_stop()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
        elif self._thread is None:
            self._close()

    def request_stop(self) -> None:
        """Ask the serving thread to end; may be called from a signal handler, returns at once."""
        self._stopping.set()

    def run(self) -> None:
        """Serve in this thread until asked to stop, or until a client calls ``shutdown``."""
        slow_tick_s = self._now()
        try:
            while not self._stopping.is_set() and not self._ctx.shutdown:
                self._renew()
                now_s = self._ctx.now_s
                if now_s >= slow_tick_s:
                    slow_tick_s = max(slow_tick_s + SLOW_TICK_S, now_s)
                    self._ctx.stats.forget()
                    self._ctx.watch_links(attributes)
                    self._ctx.stats.read(now_s)
                self._ctx.tick()
                self._publish()
                now_s = self._now()
                due_s = min(slow_tick_s, now_s + (FAST_TICK_S if self._ctx.sending() else 0.1))
                if self._rpc.poll(max(0, int((due_s - now_s) * 1000))):
                    self._renew()
                    self._answer()
        finally:
            self._stopping.set()
            self._close()

    def _renew(self) -> None:
        """Read the clock, before a round and before an answer."""
        self._ctx.now_s = self._now()

    def _answer(self) -> None:
        parts = self._rpc.recv_multipart()
        if b"" not in parts:  # which ends the return address
            return
        cut = parts.index(b"") + 1
        reply = dispatch.handle(self._ctx, b"".join(parts[cut:]), self._now())
        self._publish()  # first: when the client has its answer, its events are on their way
        self._send([*parts[:cut], reply])

    def _send(self, parts: Sequence[bytes]) -> None:
        self._rpc.send_multipart(parts)

    def _publish(self) -> None:
        for event in self._ctx.events.outbox:
            self._pub.send(wire.dumps(event).rstrip())  # no newline: clients compare with ``{}``
        self._ctx.events.outbox.clear()

    def _now(self) -> float:
        return self._clock() - self._epoch_s

    def _bind(self, kind: int, port: int) -> tuple[zmq.Socket[bytes], int]:
        bound = self._zmq.socket(kind)
        # beyond any answerable request; libzmq cuts the connection instead of filling the memory
        bound.setsockopt(zmq.MAXMSGSIZE, 16 * wire.MAX_MESSAGE_BYTES)
        address = f"tcp://{self.host}:{port or '*'}"
        try:
            bound.bind(address)
        except zmq.ZMQError as err:
            why = zmq.strerror(err.errno or 0)
            raise ServerError(f"cannot listen on {address}: {why}; choose another port or address") from err
        return bound, int(bound.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0").rpartition(":")[2])

    def _close(self) -> None:
        with self._closing:
            if self._zmq.closed:
                return
            try:
                self._ctx.now_s = self._now()
                self._ctx.silence()
                self._ctx.post(EventCode.SERVER_STOPPED, {"cause": "server was asked to stop"})
                self._publish()
            finally:
                self._engine.close()
                self._zmq.destroy(linger=LINGER_MS)
