"""Call by call, the answers are those that TRex v3.08 gave (texts, codes, types, and values where they are fixed)."""

from __future__ import annotations

from typing import Any

import pytest
import record
from addresses import RECORDED, configured_layers, with_layers
from calls import CONVERSATION, FRAMES, Call
from compare import differences, essence
from targets import Target

EXPECTED = record.stored()


@pytest.fixture(scope="module")
def replies(target: Target) -> dict[str, Any]:
    if record.profiles(target.host, target.rpc_port) != ["_"]:
        pytest.skip("profiles remain of an earlier run, which TRex keeps until it is restarted")
    return record.converse(target.host, target.rpc_port)


@pytest.fixture(scope="module")
def expected_replies(target: Target) -> dict[str, Any]:
    return with_layers(EXPECTED, CONVERSATION, target.layers)


def test_the_recording_is_as_its_addresses_say() -> None:
    """With the recorded addresses nothing is filled in, and with others nothing but them."""
    assert with_layers(EXPECTED, CONVERSATION, RECORDED) == EXPECTED
    other = with_layers(EXPECTED, CONVERSATION, configured_layers("02:00:00:00:00:0a", "02:00:00:00:00:0b"))
    lines = [line for about in EXPECTED for line in differences(EXPECTED[about], other[about])]
    assert len(lines) > 20
    assert {line.partition(":")[0] for line in lines} == {
        f".result.attr.layer_cfg.{name}" for name in ("ether.src", "ether.dst", "ipv4.src", "ipv4.dst", "ipv4.state")
    }


def test_calls_are_told_apart() -> None:
    assert len({call.about for call in CONVERSATION}) == len(CONVERSATION)
    assert {call.about for call in CONVERSATION} | {f"frame: {about}" for about in FRAMES} == set(EXPECTED)


@pytest.mark.parametrize("call", CONVERSATION, ids=lambda call: call.about)
def test_answers_as_trex(call: Call, replies: dict[str, Any], expected_replies: dict[str, Any]) -> None:
    expected, found = (essence(call.method, one[call.about]) for one in (expected_replies, replies))
    assert differences(expected, found) == []


@pytest.mark.parametrize("about", FRAMES)
def test_frames_are_answered_as_trex_answers_them(about: str, replies: dict[str, Any]) -> None:
    key = f"frame: {about}"
    assert differences(EXPECTED[key], replies[key]) == []
