"""Sends batches of commands over the client's own connection, and converts the server's time stamps to the run's time.

``JsonRpcClient.transmit`` pretty-prints every message for a log that nobody reads, and loses a Ctrl-C inside its socket
call. Batches go through its ``send_raw_msg`` instead: the same socket, time-outs and reconnection.
"""

from __future__ import annotations

import json
import logging
import re
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import GeneratorError, GeneratorLost
from ...signals import uninterrupted

_LOG = logging.getLogger(__name__)
DRIFT = 1e-4  # rate at which two clocks may drift apart, in seconds per second; crystals are ten times better
FIRST_PINGS = 10  # one of them is quick on a busy machine, too, and all together take milliseconds
REACH_S = 1.0  # time within which a server that does not answer must accept a connection
REPEATABLE = re.compile("get_.*|ping|update_traffic")
"""Commands that may be carried out twice: they read, or set an absolute rate."""
Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Refusal:
    """The server's answer to a command of a batch that it refused."""

    text: str
    code: int


@dataclass(frozen=True)
class Answer:
    """Results of a batch, in the order of its calls."""

    results: Sequence[Any]
    sent_s: float  # on the run's clock
    received_s: float

    def refusals(self) -> list[Refusal]:
        return [result for result in self.results if isinstance(result, Refusal)]


class Channel:
    """Sends commands over a connected client's ``JsonRpcClient``; GeneratorLost when the server does not answer."""

    def __init__(self, rpc: Any, now: Callable[[], float]) -> None:
        self._rpc, self._now, self._number = rpc, now, 0
        self.answering = True  # False once an exchange got no answer

    @property
    def where(self) -> str:
        return f"{self._rpc.server}:{self._rpc.port}"

    @property
    def api_h(self) -> str:
        return str(self._rpc.api_h)

    def batch(self, calls: Sequence[Call]) -> Answer:
        """Send the calls in one message, and wait twice for the answer: either side may have been suspended.

        If all are REPEATABLE, they are sent again, over a new connection; others are sent once.
        """
        if not self.answering and (reason := self.unreachable()):
            raise self._lost(reason)  # no need to wait for it again
        if _LOG.isEnabledFor(logging.DEBUG):
            counts = Counter(method for method, _ in calls)
            words = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())
            _LOG.debug("TRex server %s: %s", self.where, words)
        messages = [
            {"jsonrpc": "2.0", "method": method, "id": number, "params": {**params, "api_h": self.api_h}}
            for number, (method, params) in enumerate(calls, self._number + 1)
        ]
        self._number += len(messages)
        tries = 2 if self.answering else 1
        repeatable = all(REPEATABLE.fullmatch(method) for method, _ in calls)
        for _ in range(tries if repeatable else 1):
            sent, reply, received = self._exchange(json.dumps(messages).encode(), 0 if repeatable else tries - 1)
            self.answering = reply is not None
            if reply is not None:
                return Answer(self._results(messages, reply), sent, received)
            if reason := self.unreachable():
                break
        raise self._lost(reason)

    def _exchange(self, plain: bytes, more_waits: int) -> tuple[float, bytes | None, float]:
        """Send a message and wait for one time-out and ``more_waits``; return send time, reply if any, reply time."""
        with uninterrupted(), self._rpc.lock:
            if not self._rpc.is_connected():  # a socket that has waited in vain is closed
                self._rpc.reconnect()
            zipped = self._rpc.zipper.check_threshold(plain)
            wire = self._rpc.zipper.compress(plain) if zipped else plain
            sent = self._now()
            reply = self._rpc.send_raw_msg(wire, retry=more_waits)
            received = self._now()
        if not isinstance(reply, bytes) or not reply:
            return sent, None, received
        return sent, self._rpc.zipper.decompress(reply) if self._rpc.zipper.is_compressed(reply) else reply, received

    def unreachable(self) -> str | None:
        """Reason why the server cannot be reached; None if it listens, though it may hang."""
        try:
            socket.create_connection((self._rpc.server, self._rpc.port), REACH_S).close()
        except OSError as err:
            return err.strerror or str(err) or type(err).__name__
        return None

    def _lost(self, reason: str | None) -> GeneratorLost:
        if reason is None:
            return GeneratorLost(f"TRex server {self.where} does not answer", "it listens, but hangs; look at its log")
        return GeneratorLost(
            f"TRex server {self.where} does not answer ({reason})", "it ended or cannot be reached; look at its log"
        )

    def call(self, method: str, **params: Any) -> Any:
        """Send one command and return its result; GeneratorError with the server's words if it refuses."""
        result = self.batch([(method, params)]).results[0]
        if isinstance(result, Refusal):
            raise GeneratorError(f"TRex server {self.where} refuses {method}", result.text)
        return result

    def _results(self, messages: Sequence[Mapping[str, Any]], reply: bytes) -> list[Any]:
        try:
            answers = json.loads(reply)
            by_id = {answer["id"]: answer for answer in (answers if isinstance(answers, list) else [answers])}
            return [_result_of(by_id[message["id"]]) for message in messages]
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            text = f"TRex server {self.where} sends no JSON-RPC answer ({type(err).__name__})"
            raise GeneratorError(text, "is it a TRex?") from err


def _result_of(answer: Mapping[str, Any]) -> Any:
    if "error" not in answer:
        return answer["result"]
    error = answer["error"]
    return Refusal(str(error.get("specific_err") or error.get("message")).strip(), int(error.get("code", 0)))


class ServerClock:
    """Converts the server's time stamps to the run's time.

    The stamps of each exchange lie between its sending and its receiving. The intersection of these bounds is narrower
    than any single round trip, so a slow answer does not blur its counters' time. Bounds that narrow while traffic is
    measured would shift the time of one interval, so a few quick exchanges come first (``set_by``).
    """

    def __init__(self) -> None:
        self._known: tuple[float, float, float] | None = None  # bounds of the offset, and when they were known

    def set_by(self, channel: Channel) -> None:
        """Find the offset, unless it is known; GeneratorLost when the server does not answer."""
        for _ in range(0 if self._known else FIRST_PINGS):
            answer = channel.batch([("ping", {})])
            if not answer.refusals():
                stamp = float(answer.results[0]["ts"])
                self.offset_s(answer.sent_s, answer.received_s, stamp, stamp)

    def offset_s(self, sent_s: float, received_s: float, first_ts: float, last_ts: float) -> float:
        """Offset to be added to the stamps of this exchange."""
        low, high = sent_s - first_ts, received_s - last_ts
        if self._known is not None:
            former_low, former_high, as_of = self._known
            slack = DRIFT * (received_s - as_of)
            narrowed = max(low, former_low - slack), min(high, former_high + slack)
            if narrowed[0] <= narrowed[1]:
                low, high = narrowed
        self._known = low, high, received_s
        return (low + high) / 2
