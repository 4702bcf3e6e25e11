"""Whatever a client sends, it gets an answer in JSON-RPC's form, and never for a defect of the server's own."""

from __future__ import annotations

import json
from typing import Any

from effort import examples
from engine_fake import FakeEngine
from hypothesis import given
from hypothesis import strategies as st
from test_stlserver_state import STREAM

from trexbench.stlserver import wire
from trexbench.stlserver.rpc import dispatch
from trexbench.stlserver.rpc.context import Context

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


def owned_context() -> tuple[Context, str]:
    """A server whose port 0 is owned, and the handler."""
    ctx = Context(FakeEngine(clock=lambda: 0.0))
    return ctx, ctx.state.acquire(ctx.state.ports[0], "me", 1, force=False)


def replies(answer: bytes) -> list[dict[str, Any]]:
    """Each of them in JSON-RPC's form, and none for a defect of the server; an empty batch has none."""
    found = json.loads(answer) or []
    found = found if isinstance(found, list) else [found]
    for one in found:
        assert one["jsonrpc"] == "2.0"
        assert ("result" in one) != ("error" in one)
        assert one.get("error", {}).get("code") != wire.INTERNAL, one
    return found


def assert_answered(ctx: Context, request: dict[str, Any]) -> None:
    """Under its own number, unless it holds a number that TRex's JSON parser does not take."""
    (one,) = replies(dispatch.handle(ctx, json.dumps(request).encode(), 0.0))
    assert one["id"] == request["id"] or one["error"]["message"] == "Bad JSON Format"


@given(frame=st.binary(max_size=300))
def test_any_bytes(frame: bytes) -> None:
    ctx, _ = owned_context()
    assert replies(dispatch.handle(ctx, frame, 0.0)) or frame.split() == [b"[]"]


@given(requests=st.lists(VALUES, max_size=4))
def test_any_json(requests: list[Any]) -> None:
    ctx, _ = owned_context()
    found = replies(dispatch.handle(ctx, json.dumps(requests).encode(), 0.0))
    assert len(found) == len(requests) or [one["error"]["message"] for one in found] == ["Bad JSON Format"]


@examples(600)
@given(method=st.sampled_from(sorted(dispatch.METHODS)), params=PARAMS, port=st.integers(0, 1) | SCALARS)
def test_every_method_with_any_params(method: str, params: dict[str, Any], port: Any) -> None:
    ctx, handler = owned_context()
    params = {**params, "api_h": ctx.api_handler, "handler": handler, "port_id": port}
    assert_answered(ctx, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


@examples(400)
@given(
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
)
def test_streams_nearly_right(
    changes: dict[str, Any], instructions: list[Any], mul: dict[str, Any], force: bool
) -> None:
    """One stream, bent here and there, is added, started, updated, validated and stopped."""
    ctx, handler = owned_context()
    stream = {**STREAM, "vm": {"instructions": instructions}, **changes}
    common = {"api_h": ctx.api_handler, "handler": handler, "port_id": 0}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("add_stream", {"stream_id": 1, "stream": stream}),
        ("add_stream", {"stream_id": 2, "stream": STREAM}),
        ("validate", {}),
        ("start_traffic", {"duration": 1, "force": force, "mul": {**mul, "op": "abs", "value": abs(mul["value"])}}),
        ("update_traffic", {"force": force, "mul": mul}),
        ("get_port_status", {"profile_id": "*"}),
        ("stop_traffic", {}),
    ]
    for number, (method, params) in enumerate(calls):
        assert_answered(ctx, {"jsonrpc": "2.0", "id": number, "method": method, "params": {**common, **params}})
