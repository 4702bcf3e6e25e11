"""Many commands in one message over the client's own connection, and the server's time stamps in the run's time.

``JsonRpcClient.transmit`` pretty-prints every message for a log nobody reads, and lets Ctrl-C vanish inside its socket
call. Here a batch goes through its ``send_raw_msg`` instead: the same socket, time-outs and reconnection.
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
DRIFT = 1e-4
"""Rate at which two clocks may drift apart, in seconds per second; crystals are ten times better."""

REACH_S = 1.0
"""Time within which a server that does not answer has to accept a connection."""

REPEATABLE = re.compile("get_.*|ping|update_traffic")
"""Commands that may be carried out twice: they read, or set a rate that is stated as such."""

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Refusal:
    """The server's answer to a command of a batch that it refused."""

    method: str
    text: str
    code: int


@dataclass(frozen=True)
class Answer:
    """A batch's results in the order of its calls; sent_s and received_s are the run's clock around the exchange."""

    results: Sequence[Any]
    sent_s: float
    received_s: float

    def refusals(self) -> list[Refusal]:
        return [one for one in self.results if isinstance(one, Refusal)]


class Channel:
    """Commands to the server over a connected client's ``JsonRpcClient``; raises GeneratorLost when none answers."""

    def __init__(self, rpc: Any, now: Callable[[], float]) -> None:
        self._rpc = rpc
        self._now = now
        self._number = 0
        self.answering = True
        """True if the last exchange got an answer."""

    @property
    def where(self) -> str:
        return f"{self._rpc.server}:{self._rpc.port}"

    @property
    def api_h(self) -> str:
        return str(self._rpc.api_h)

    def batch(self, calls: Sequence[Call]) -> Answer:
        """The answer, waited for once more if it is late: either side may have been stopped for a while.

        Calls that are REPEATABLE are sent again for that, over a new connection; others are sent once.
        """
        if not self.answering and (reason := self.unreachable()):
            raise self._lost(reason)  # no need to wait for it again
        if _LOG.isEnabledFor(logging.DEBUG):
            counts = Counter(method for method, _ in calls)
            words = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())
            _LOG.debug("TRex server %s: %s", self.where, words)
        messages = [self._message(method, params) for method, params in calls]
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
        """When it was sent, the reply (None: none in time), when that came. more_waits: time-outs after the first."""
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
        """Why nobody can be reached there; None when somebody listens, and perhaps hangs."""
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
        """One command's result; GeneratorError with the server's words when it refuses."""
        result = self.batch([(method, params)]).results[0]
        if isinstance(result, Refusal):
            raise GeneratorError(f"TRex server {self.where} refuses {method}", result.text)
        return result

    def _message(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        return {"jsonrpc": "2.0", "method": method, "id": self._number, "params": {**params, "api_h": self.api_h}}

    def _results(self, messages: Sequence[Mapping[str, Any]], reply: bytes) -> list[Any]:
        try:
            answers = json.loads(reply)
            by_id = {one["id"]: one for one in (answers if isinstance(answers, list) else [answers])}
            return [_result(one["method"], by_id[one["id"]]) for one in messages]
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise GeneratorError(
                f"TRex server {self.where} sends no JSON-RPC answer ({type(err).__name__})", "is it a TRex?"
            ) from err


def _result(method: str, answer: Mapping[str, Any]) -> Any:
    if "error" not in answer:
        return answer["result"]
    error = answer["error"]
    return Refusal(method, str(error.get("specific_err") or error.get("message")).strip(), int(error.get("code", 0)))


class ServerClock:
    """Turns the server's time stamps into the run's time.

    The stamps of each exchange lie between its sending and its receiving. The intersection of these bounds is narrower
    than any single round trip, so a slow answer does not blur its counters' time.
    """

    def __init__(self) -> None:
        self._known: tuple[float, float, float] | None = None

    def offset_s(self, sent_s: float, received_s: float, first_ts: float, last_ts: float) -> float:
        """Time to be added to the stamps of this exchange."""
        low, high = sent_s - first_ts, received_s - last_ts
        if self._known is not None:
            former_low, former_high, as_of = self._known
            slack = DRIFT * (received_s - as_of)
            narrowed = max(low, former_low - slack), min(high, former_high + slack)
            if narrowed[0] <= narrowed[1]:
                low, high = narrowed
        self._known = low, high, received_s
        return (low + high) / 2
