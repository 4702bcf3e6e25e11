"""A raw JSON-RPC client, sharing no code with the server under test."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import zmq

MAGIC = 0xABE85CEA
TIMEOUT_MS = 10_000


class RawClient:
    """One REQ socket; ``ask`` sends bytes as they are, ``call`` a well-formed request."""

    def __init__(self, host: str, rpc_port: int) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(f"tcp://{host}:{rpc_port}")
        self._next_id = 0
        self.api_h = ""

    def ask(self, frame: bytes) -> Any:
        """The decoded answer to one frame."""
        self._socket.send(frame)
        answer = self._socket.recv()
        if len(answer) >= 8 and struct.unpack_from(">I", answer)[0] == MAGIC:
            answer = zlib.decompress(answer[8:])
        return json.loads(answer)

    def request(self, method: str, params: Any) -> dict[str, Any]:
        """A request object; ``api_h`` is added to the params when there is one and they are an object."""
        self._next_id += 1
        if isinstance(params, dict) and self.api_h and "api_h" not in params:
            params = {**params, "api_h": self.api_h}
        return {"jsonrpc": "2.0", "method": method, "id": f"c{self._next_id}", "params": params}

    def call(self, method: str, params: Any, zipped: bool = False) -> Any:
        """The whole reply to one request."""
        frame = json.dumps(self.request(method, params)).encode()
        if zipped:
            frame = struct.pack(">II", MAGIC, len(frame)) + zlib.compress(frame)
        return self.ask(frame)

    def sync(self) -> None:
        """Get the API handler that most methods want."""
        reply = self.call("api_sync_v2", {"name": "STL", "major": 5, "minor": 1})
        self.api_h = reply["result"]["api_h"]

    def close(self) -> None:
        self._context.destroy(linger=0)


def ask(rpc_port: int, method: str, **params: Any) -> Any:
    """Return the result of one command of somebody who has a connection of their own."""
    client = RawClient("127.0.0.1", rpc_port)
    try:
        client.sync()
        return client.call(method, params)["result"]
    finally:
        client.close()
