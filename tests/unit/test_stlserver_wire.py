"""Frames: whatever arrives is answered as JSON-RPC, compressed or not, and never for a defect of the server."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from test_stlserver_state import STREAM, Bench

from trexbench.stlserver import wire
from trexbench.stlserver.rpc import dispatch
from trexbench.stlserver.state.stream import RATE_KINDS

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
    calls, _ = wire.decode(frame)
    return [(call.error.code, call.error.message) for call in calls if call.error]


@pytest.mark.parametrize(
    ("about", "frame", "code", "message"),
    [
        ("nothing", b"", -32700, "Bad JSON Format"),
        ("no UTF-8", b'{"id": "\xff', -32700, "Bad JSON Format"),
        ("NaN", b'{"id": NaN}', -32700, "Bad JSON Format"),
        ("a number beyond floats", b'{"id": 1e999}', -32700, "Bad JSON Format"),
        ("an integer beyond floats", b'{"id": ' + b"9" * 400 + b"}", -32700, "Bad JSON Format"),
        ("a number of 5000 digits", b'{"id": ' + b"9" * 5000 + b"}", -32700, "Bad JSON Format"),
        ("nesting too deep", b"[" * 100_000, -32700, "Bad JSON Format"),
    ],
)
def test_bad_frames(about: str, frame: bytes, code: int, message: str) -> None:
    assert errors(frame) == [(code, message)]


def test_too_large_however_it_is_compressed() -> None:
    large, bomb = b" " * 1_000_000, struct.pack(">II", wire.MAGIC, 2**32 - 1) + zlib.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    for frame in (large, wire.deflate(large), bomb):
        assert errors(frame)[0][1].startswith("Request is too large")


def test_an_id_however_deeply_nested_can_be_answered() -> None:
    """Some can be read that cannot be written again; those count as missing."""
    answered = set()
    for depth in (*range(100, 2 * sys.getrecursionlimit(), 3), *range(2_000, 12_000, 499), 100_000):
        frame = b'{"jsonrpc": "2.0", "method": "ping", "id": ' + b"[" * depth + b"]" * depth + b"}"
        (call,), _ = wire.decode(frame)
        assert wire.encode([wire.reply(call.id, "pong")], zipped=False)
        answered.add(call.id is not None)
    assert answered == {True, False}


@given(value=JSON, zipped=st.booleans())
def test_what_is_encoded_decodes(value: Any, zipped: bool) -> None:
    frame = wire.encode([{"jsonrpc": "2.0", "id": 1, "method": "m", "params": value}], zipped)
    (call,), as_zipped = wire.decode(frame)
    assert (call.error, call.params, as_zipped) == (None, value, zipped)


_NAMES = """
    attr binary block capture_id cache command core_id core_mask count dst_mac duration enabled filtered flags
    flow_stats force get_pkt handler ibg init_value instructions is_big_endian isg key baseline max_value meta
    min_value mode mul name next_stream_id next_var op packet pgids pkt_offset pkts_per_burst port_id profile_id
    promiscuous rate self_start session_id size split_to_cores start_at_ts step stream stream_id stream_ids total_pkts
    type user value value_list vlan vm action_count add_value
"""
_WORDS = """
    _ * pps bps bpsl1 raw percentage abs add sub continuous single_burst multi_burst flow_var write_flow_var inc dec
    random tuple_flow_var trim_pkt_size fix_checksum_ipv4 queue status start stop AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
"""
NAMES, WORDS = _NAMES.split(), _WORDS.split()
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 260)
    | st.sampled_from([2**16, 2**31, 2**32, 2**64, -(2**63), 10**400])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=15,
)
PARAMS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8)


def replies(answer: bytes) -> list[dict[str, Any]]:
    """Each of them in JSON-RPC's form, and none for a defect of the server; an empty batch has none."""
    found = json.loads(answer) or []
    found = found if isinstance(found, list) else [found]
    for one in found:
        assert one["jsonrpc"] == "2.0"
        assert ("result" in one) != ("error" in one)
        assert one.get("error", {}).get("code") != wire.INTERNAL, one
    return found


def assert_answered(bench: Bench, method: str, params: dict[str, Any]) -> None:
    """Under its own number, unless it holds a number that TRex's JSON parser does not take."""
    request = bench.request(method, **params)
    (one,) = replies(dispatch.handle(bench.ctx, json.dumps(request).encode(), 0.0))
    assert one["id"] == request["id"] or one["error"]["message"] == "Bad JSON Format"


@given(frame=st.binary(max_size=300))
def test_any_bytes(frame: bytes) -> None:
    ctx = Bench().ctx
    for sent in (frame, wire.HEADER.pack(wire.MAGIC, len(frame)) + frame):
        assert replies(dispatch.handle(ctx, sent, 0.0)) or frame.split() == [b"[]"]


@examples(600)
@given(method=st.sampled_from(sorted(dispatch.METHODS)), params=PARAMS, port=st.integers(0, 1) | SCALARS)
def test_every_method_with_any_params(method: str, params: dict[str, Any], port: Any) -> None:
    bench = Bench()
    assert_answered(bench, method, {**params, "handler": bench.handler, "port_id": port})


EXTREMES = (5e-324, 1e-308, 1e308)
NUMBERS = st.floats(min_value=0, allow_nan=False, allow_infinity=False) | st.sampled_from(EXTREMES)
MODES = ("continuous", "single_burst", "multi_burst")


def stream_of(mode: str, kind: str, value: float, isg: float, ibg: float) -> dict[str, Any]:
    """STREAM with these numbers; bursts are of 1000 packets."""
    bursts = {"total_pkts": 1000, "pkts_per_burst": 1000, "count": 3, "ibg": ibg}
    return {**STREAM, "isg": isg, "mode": {"type": mode, "rate": {"type": kind, "value": value}, **bursts}}


def assert_served(streams: Sequence[Any], mul: dict[str, Any], *, force: bool, duration: float) -> None:
    """The streams are added, validated, started, updated and stopped."""
    bench = Bench()
    started = {**mul, "op": "abs", "value": abs(mul["value"])}
    calls: list[tuple[str, dict[str, Any]]] = [
        *(("add_stream", {"stream_id": number, "stream": stream}) for number, stream in enumerate(streams, 1)),
        ("validate", {}),
        ("start_traffic", {"duration": duration, "force": force, "mul": started}),
        ("update_traffic", {"force": force, "mul": mul}),
        ("get_port_status", {"profile_id": "*"}),
        ("stop_traffic", {}),
    ]
    for method, params in calls:
        assert_answered(bench, method, params)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", RATE_KINDS)
def test_numbers_that_a_float_can_hardly_hold(mode: str, kind: str) -> None:
    for value, isg, ibg in product((*EXTREMES, 1000.0), (0.0, 1e308), (0.0, 1e308)):
        stream = stream_of(mode, kind, value, isg, ibg)
        assert_served([stream, stream], {"type": "raw", "op": "abs", "value": 1}, force=True, duration=1e308)


@pytest.mark.parametrize(("kind", "value"), [("percentage", 1e308), ("bps_L1", 5e-324)])
def test_a_rate_that_is_no_number_is_refused_when_the_stream_is_added(kind: str, value: float) -> None:
    bench = Bench()
    said = bench.call("add_stream", stream_id=1, stream=stream_of("single_burst", kind, value, 0, 0))
    assert "packets per second cannot be sent" in said and bench.call("get_all_streams") == {"streams": {}}


@examples(400)
@given(
    right=st.builds(stream_of, st.sampled_from(MODES), st.sampled_from(RATE_KINDS), NUMBERS, NUMBERS, NUMBERS),
    changes=st.dictionaries(st.sampled_from(sorted(STREAM)), VALUES, max_size=3),
    instructions=st.lists(PARAMS, max_size=3),
    mul=st.fixed_dictionaries(
        {
            "type": st.sampled_from(["raw", "pps", "bps", "bpsl1", "percentage"]),
            "op": st.sampled_from(["abs", "add", "sub"]),
            "value": st.floats(allow_nan=False, allow_infinity=False),
        }
    ),
    force=st.booleans(),
    duration=NUMBERS,
)
def test_streams_nearly_right(
    right: dict[str, Any],
    changes: dict[str, Any],
    instructions: list[Any],
    mul: dict[str, Any],
    force: bool,
    duration: float,
) -> None:
    """A stream of any numbers, and one bent here and there."""
    bent = {**STREAM, "vm": {"instructions": instructions}, **changes}
    assert_served([right, bent, STREAM], mul, force=force, duration=duration)
