"""Stops TRex ports if the harness dies without doing so: ``python -m trexbench.generator.trex.watchdog``.

Reads a line of JSON, ``{"server", "rpc_port", "api_h", "handlers": {port: handler}}``. A second line means that all is
well; the end of input without one, that the harness was killed, or that the server hangs: then exactly these ports are
stopped, emptied and released. It runs in a session of its own, and ends only with its input. It imports nothing but the
standard library and zmq, to start fast, and to work where the rest is broken.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Mapping
from typing import IO, Any

import zmq

TIMEOUT_MS = 2000
ATTEMPTS = 300  # ten minutes: a server that hangs, or cannot be reached, goes on sending once it wakes


def main(lines: IO[str] = sys.stdin) -> int:
    """Watch until the input ends. Exit code 1: the server does not answer; the starts' durations end the traffic."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched = read(lines)
    return 0 if watched is None or silence(watched) else 1


def read(lines: IO[str]) -> Mapping[str, Any] | None:
    """Read the ports to silence, until the input ends; None for none. A truncated line does not count."""
    messages: list[Mapping[str, Any]] = [json.loads(line) for line in lines if line.endswith("\n")]
    return messages[0] if len(messages) == 1 else None


def silence(watched: Mapping[str, Any]) -> bool:
    """Stop, then release the ports, with ATTEMPTS on new sockets; True once the server has answered.

    A server that is gone, so that nobody listens there, needs no more attempts.
    """
    message = json.dumps(commands(watched)).encode()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        for _ in range(ATTEMPTS):
            if _ask(context, watched, message):
                return True
            if _is_gone(watched):
                break
        return False
    finally:
        context.destroy(linger=0)


def commands(watched: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make a JSON-RPC batch in which all ports stop before the first is released."""
    ports = [{"port_id": int(port), "handler": handler} for port, handler in watched["handlers"].items()]
    methods = ("stop_traffic", "remove_all_streams", "release")
    calls = [(method, {**port, "profile_id": "_"}) for method in methods for port in ports]
    return [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "api_h": watched["api_h"]}}
        for number, (method, params) in enumerate(calls, 1)
    ]


def _ask(context: zmq.Context[zmq.Socket[bytes]], watched: Mapping[str, Any], message: bytes) -> bool:
    with context.socket(zmq.REQ) as request:
        request.setsockopt(zmq.LINGER, 0)
        request.setsockopt(zmq.SNDTIMEO, TIMEOUT_MS)
        request.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
        try:
            request.connect(f"tcp://{watched['server']}:{watched['rpc_port']}")
            request.send(message)
            return bool(request.recv())
        except zmq.ZMQError:
            return False


def _is_gone(watched: Mapping[str, Any]) -> bool:
    try:
        socket.create_connection((watched["server"], watched["rpc_port"]), TIMEOUT_MS / 1000).close()
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    return False


if __name__ == "__main__":
    sys.exit(main())
