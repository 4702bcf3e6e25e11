"""Frames: whatever arrives is answered, compressed or not."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.stlserver import wire
from trexbench.stlserver.wire import BadRequest, RpcRequest

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def errors(frame: bytes) -> list[tuple[int, str]]:
    calls = wire.decode(frame).calls
    return [(call.error.code, call.error.message) for call in calls if isinstance(call, BadRequest)]


@pytest.mark.parametrize(
    ("about", "frame", "code", "message"),
    [
        ("nothing", b"", -32700, "Bad JSON Format"),
        ("no JSON", b"{", -32700, "Bad JSON Format"),
        ("no UTF-8", b'{"id": "\xff', -32700, "Bad JSON Format"),
        ("NaN", b'{"id": NaN}', -32700, "Bad JSON Format"),
        ("a number beyond floats", b'{"id": 1e999}', -32700, "Bad JSON Format"),
        ("an integer beyond floats", b'{"id": ' + b"9" * 400 + b"}", -32700, "Bad JSON Format"),
        ("a number of 5000 digits", b'{"id": ' + b"9" * 5000 + b"}", -32700, "Bad JSON Format"),
        ("nesting too deep", b"[" * 100_000, -32700, "Bad JSON Format"),
        ("a number", b"7", -32600, "Missing 'id' field"),
        ("no id", b'{"jsonrpc": "2.0", "method": "ping"}', -32600, "Missing 'id' field"),
        ("id null", b'{"jsonrpc": "2.0", "method": "ping", "id": null}', -32600, "Missing 'id' field"),
        ("another version", b'{"jsonrpc": "1.0", "method": "ping", "id": 1}', -32600, "Invalid JSONRPC Version"),
        ("version missing", b'{"method": "ping", "id": 1}', -32600, "Invalid JSONRPC Version"),
        ("method missing", b'{"jsonrpc": "2.0", "id": 1}', -32600, "Missing Method Name"),
        ("method empty", b'{"jsonrpc": "2.0", "id": 1, "method": ""}', -32600, "Missing Method Name"),
    ],
)
def test_bad_frames(about: str, frame: bytes, code: int, message: str) -> None:
    assert errors(frame) == [(code, message)]


def test_what_follows_the_first_value_is_ignored() -> None:
    (call,) = wire.decode(b' {"jsonrpc": "2.0", "id": 1, "method": "ping"} and so on').calls
    assert isinstance(call, RpcRequest)


def test_a_batch_keeps_order_and_faults() -> None:
    calls = wire.decode(b'[{"jsonrpc":"2.0","id":1,"method":"a"}, 5, {"jsonrpc":"2.0","id":2,"method":"b"}]').calls
    assert [type(call) for call in calls] == [RpcRequest, BadRequest, RpcRequest]


def test_too_large_plain_and_compressed() -> None:
    large = b" " * 1_000_000
    assert errors(large)[0][1].startswith("Request is too large (1000000 bytes)")
    message = wire.decode(wire.deflate(large))
    assert message.zipped
    assert isinstance(message.calls[0], BadRequest)
    assert message.calls[0].error.message.startswith("Request is too large")


def test_a_small_frame_cannot_claim_much_memory() -> None:
    bomb = struct.pack(">II", wire.MAGIC, 2**32 - 1) + zlib.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    assert "too large" in errors(bomb)[0][1]


def test_an_id_however_deeply_nested_can_be_answered() -> None:
    """Some can be read that cannot be written again; those count as missing."""
    answered = set()
    for depth in (*range(100, 2 * sys.getrecursionlimit(), 3), *range(2_000, 12_000, 499), 100_000):
        frame = b'{"jsonrpc": "2.0", "method": "ping", "id": ' + b"[" * depth + b"]" * depth + b"}"
        (call,) = wire.decode(frame).calls
        assert wire.encode([wire.reply(call.id, "pong")], zipped=False)
        answered.add(call.id is not None)
    assert answered == {True, False}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_replies_go_bare_or_as_an_array(count: int) -> None:
    body = json.loads(wire.encode([{"n": index} for index in range(count)], zipped=False))
    assert body == {0: None, 1: {"n": 0}, 3: [{"n": 0}, {"n": 1}, {"n": 2}]}[count]


def test_the_empty_event_is_two_bytes() -> None:
    assert wire.encode_event({}) == b"{}"


@given(value=JSON, zipped=st.booleans())
def test_what_is_encoded_decodes(value: Any, zipped: bool) -> None:
    frame = wire.encode([{"jsonrpc": "2.0", "id": 1, "method": "m", "params": value}], zipped)
    message = wire.decode(frame)
    assert message.zipped == zipped
    (call,) = message.calls
    assert isinstance(call, RpcRequest)
    assert call.params == value


@given(frame=st.binary(max_size=200))
def test_any_bytes_decode(frame: bytes) -> None:
    for text in (frame, struct.pack(">II", wire.MAGIC, len(frame)) + frame):
        assert all(isinstance(call, (RpcRequest, BadRequest)) for call in wire.decode(text).calls)
