"""Call by call, the answers are those that TRex v3.08 gave (texts, codes, types, and values where they are fixed)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import record
from calls import CONVERSATION, FRAMES, Call
from compare import differences, essence
from targets import Target

EXPECTED = record.stored()
SETS_ADDRESSES = [call.about for call in CONVERSATION].index("a neighbour by its MAC")


@pytest.fixture(scope="module")
def replies(target: Target) -> dict[str, Any]:
    if record.profiles(target.host, target.rpc_port) != ["_"]:
        pytest.skip("profiles remain of an earlier run, which TRex keeps until it is restarted")
    return record.converse(target.host, target.rpc_port)


def comparable(call: Call, reply: dict[str, Any], real: bool) -> dict[str, Any]:
    """The part of a reply to compare: of real ports without addresses that the conversation did not set."""
    found = copy.deepcopy(essence(call.method, reply))
    if real and call.method == "get_port_status" and "result" in found:
        layers = found["result"]["attr"]["layer_cfg"]
        del layers["ether"]["src"]
        if call not in CONVERSATION[SETS_ADDRESSES:]:
            layers.clear()
    return found


def test_calls_are_told_apart() -> None:
    assert len({call.about for call in CONVERSATION}) == len(CONVERSATION)
    assert {call.about for call in CONVERSATION} | {f"frame: {about}" for about in FRAMES} == set(EXPECTED)


@pytest.mark.parametrize("call", CONVERSATION, ids=lambda call: call.about)
def test_answers_as_trex(call: Call, replies: dict[str, Any], target: Target) -> None:
    expected, found = (comparable(call, one[call.about], target.real) for one in (EXPECTED, replies))
    assert differences(expected, found) == []


@pytest.mark.parametrize("about", FRAMES)
def test_frames_are_answered_as_trex_answers_them(about: str, replies: dict[str, Any]) -> None:
    key = f"frame: {about}"
    assert differences(EXPECTED[key], replies[key]) == []
