"""iperf3's control connection: its states, and the JSON that both ends exchange on it."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from typing import Any

from .common import ProgramFailure

TEST_START, TEST_RUNNING, TEST_END = 1, 2, 4
PARAM_EXCHANGE, CREATE_STREAMS, SERVER_TERMINATE, CLIENT_TERMINATE = 9, 10, 11, 12
EXCHANGE_RESULTS, DISPLAY_RESULTS, IPERF_DONE = 13, 14, 16
ACCESS_DENIED, SERVER_ERROR = -1, -2
NOT_IMPLEMENTED = 13
"""Error number of iperf3 that is sent with SERVER_ERROR."""
ANSWER_S = 10.0
"""Time for each answer of the other end."""


def receive(sock: socket.socket, size: int, within_s: float = ANSWER_S) -> bytes:
    deadline, data = time.monotonic() + within_s, b""
    while len(data) < size:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            chunk = sock.recv(min(size - len(data), 65536))
        except socket.timeout:  # noqa: UP041, before 3.10 they are two
            raise ProgramFailure(
                f"the other end did not answer within {within_s:g} s", "see whether it hangs"
            ) from None
        except OSError as error:
            raise ProgramFailure(f"the other end closed the connection ({error.strerror})") from None
        if not chunk:
            raise ProgramFailure("the other end closed the connection", "see what it says")
        data += chunk
    return data


def send(sock: socket.socket, data: bytes) -> None:
    sock.settimeout(ANSWER_S)
    try:
        sock.sendall(data)
    except OSError as error:
        raise ProgramFailure(f"the other end closed the connection ({error})") from None


def send_state(sock: socket.socket, state: int) -> None:
    send(sock, struct.pack("b", state))


def receive_state(sock: socket.socket) -> int:
    return int(struct.unpack("b", receive(sock, 1))[0])


def refusal(state: int, sock: socket.socket) -> ProgramFailure:
    """Return the failure that an unexpected state stands for."""
    if state == ACCESS_DENIED:
        return ProgramFailure("the server is busy with another test", "wait for its end")
    if state == SERVER_TERMINATE:
        return ProgramFailure("the server was ended")
    if state == CLIENT_TERMINATE:
        return ProgramFailure("the client was ended")
    if state == SERVER_ERROR:
        (number,) = struct.unpack("!i", receive(sock, 4))
        (reason,) = struct.unpack("!i", receive(sock, 4))
        refused = f"the server refuses what was asked (iperf3's error {number})"
        gave_up = f"the server gave up with iperf3's error {number} ({os.strerror(reason)})"
        return ProgramFailure(gave_up if 0 < reason < 4096 else refused, "see what it says")
    return ProgramFailure(f"the other end sent {state}, which is no state of iperf3's here", "see what listens there")


def expect(sock: socket.socket, wanted: int) -> None:
    state = receive_state(sock)
    if state != wanted:
        raise refusal(state, sock)


def send_json(sock: socket.socket, value: Any) -> None:
    data = json.dumps(value).encode()
    send(sock, struct.pack("!I", len(data)) + data)


def receive_json(sock: socket.socket, limit: int) -> dict[str, Any]:
    (size,) = struct.unpack("!I", receive(sock, 4))
    if not 0 < size <= limit:
        raise ProgramFailure(f"the other end announced {size} bytes of JSON", f"at most {limit} are read")
    return parse_json(receive(sock, size))


def parse_json(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ProgramFailure("the other end sent what is no JSON object", "see what listens there")
    return value
