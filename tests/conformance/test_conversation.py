"""Call by call, the answers are those that TRex v3.08 gave (texts, codes, types, and values where they are fixed)."""

from __future__ import annotations

from typing import Any

import pytest

from conformance import record
from conformance.calls import CONVERSATION, FRAMES, Call
from conformance.compare import differences, essence
from conformance.targets import Target

EXPECTED = record.stored()


@pytest.fixture(scope="module")
def replies(twin: Target) -> dict[str, Any]:
    if record.profiles(twin.host, twin.rpc_port) != ["_"]:
        pytest.skip("profiles remain of an earlier run, which TRex keeps until it is restarted")
    return record.converse(twin.host, twin.rpc_port)


def test_calls_are_told_apart() -> None:
    assert len({call.about for call in CONVERSATION}) == len(CONVERSATION)
    assert {call.about for call in CONVERSATION} | {f"frame: {about}" for about in FRAMES} == set(EXPECTED)


@pytest.mark.parametrize("call", CONVERSATION, ids=lambda call: call.about)
def test_answers_as_trex(call: Call, replies: dict[str, Any]) -> None:
    expected, found = (essence(call.method, one[call.about]) for one in (EXPECTED, replies))
    assert differences(expected, found) == []


@pytest.mark.parametrize("about", FRAMES)
def test_frames_are_answered_as_trex_answers_them(about: str, replies: dict[str, Any]) -> None:
    key = f"frame: {about}"
    assert differences(EXPECTED[key], replies[key]) == []
