"""Writes a real TRex's answers to the conversation of calls.py: ``python tests/helpers/record.py HOST [RPC]``.

Run it with the project on PYTHONPATH, against a TRex that was just started; it replaces the fixture.
Its port 0 is to have the addresses of the fake engine's port 0.
"""

from __future__ import annotations

import gzip
import json
import secrets
import sys
from pathlib import Path
from typing import Any

from calls import CONVERSATION, FRAMES, fill
from rpc import RawClient

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trex-v3.08" / "conversation.json.gz"


def converse(host: str, rpc_port: int) -> dict[str, Any]:
    """The reply to each call of the conversation, by what the call is about."""
    _clear(host, rpc_port)
    client = RawClient(host, rpc_port)
    try:
        client.sync()
        handlers: dict[str, Any] = {"$session": secrets.randbits(31)}
        replies: dict[str, Any] = {}
        for call in CONVERSATION:
            reply = client.call(call.method, fill(call.params, handlers))
            if call.keep and "result" in reply:
                handlers[call.keep] = reply["result"]
            replies[call.about] = {key: reply[key] for key in ("result", "error") if key in reply}
        for about, frame in FRAMES.items():
            replies[f"frame: {about}"] = client.ask(frame)
        return replies
    finally:
        client.close()


def _clear(host: str, rpc_port: int) -> None:
    """Take away what others left on the ports: traffic, streams, owners."""
    client = RawClient(host, rpc_port)
    try:
        client.sync()
        for port in (0, 1):
            common = {"port_id": port, "user": "me", "force": True, "session_id": secrets.randbits(31)}
            owned = {**common, "handler": client.call("acquire", common)["result"]}
            for method in ("stop_traffic", "remove_all_streams", "release"):
                client.call(method, owned)
    finally:
        client.close()


def profiles(host: str, rpc_port: int) -> list[str]:
    """The profiles that port 0 has now."""
    client = RawClient(host, rpc_port)
    try:
        client.sync()
        found: list[str] = client.call("get_profile_list", {"port_id": 0})["result"]
        return found
    finally:
        client.close()


def stored() -> dict[str, Any]:
    """The replies that TRex v3.08 gave."""
    replies: dict[str, Any] = json.loads(gzip.decompress(FIXTURE.read_bytes()))
    return replies


if __name__ == "__main__":
    answers = converse(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4501)
    text = json.dumps(answers, indent=0, sort_keys=True).encode()
    FIXTURE.write_bytes(gzip.compress(text, mtime=0))
    print(f"{len(answers)} answers in {FIXTURE}")
