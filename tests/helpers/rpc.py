"""A raw JSON-RPC client, sharing no code with the server under test."""

from __future__ import annotations

import json
import threading
from typing import Any

import zmq

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
        return json.loads(self._socket.recv())

    def request(self, method: str, params: Any) -> dict[str, Any]:
        """A request object; ``api_h`` is added to the params when there is one and they are an object."""
        self._next_id += 1
        if isinstance(params, dict) and self.api_h and "api_h" not in params:
            params = {**params, "api_h": self.api_h}
        return {"jsonrpc": "2.0", "method": method, "id": f"c{self._next_id}", "params": params}

    def call(self, method: str, params: Any) -> Any:
        """The whole reply to one request."""
        return self.ask(json.dumps(self.request(method, params)).encode())

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


class Stub:
    """Something at a TRex server's address that keeps what it is sent, and always says the same.

    deaf: so many times it says nothing first.
    """

    def __init__(self, reply: bytes = b"[]", deaf: int = 0) -> None:
        self.heard: list[bytes] = []
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self.port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self._reply, self._deaf, self._ending = reply, deaf, False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ending:
            if not self._socket.poll(200):
                continue
            who, empty, message = self._socket.recv_multipart()
            if self._deaf:
                self._deaf -= 1
                continue
            self.heard.append(message)
            self._socket.send_multipart([who, empty, self._reply])

    def close(self) -> None:
        self._ending = True
        self._thread.join(5)
        self._context.destroy(linger=0)
