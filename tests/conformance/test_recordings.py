"""Recorded conversations of the STL client with TRex v3.08, played again at their own times on a clock in the hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from compare import differences, essence, shape

from trexbench.config.twin import TwinSpec
from trexbench.stlserver.engine import BUCKETS_US
from trexbench.stlserver.rpc import dispatch
from trexbench.stlserver.state.server_state import ServerState
from trexbench.twin.router import TwinRouter
from trexbench.twin.simulated import SimEngine

FIXTURES = Path(__file__).parents[1] / "fixtures" / "trex-v3.08"
RECORDINGS = ("ramp-bidir", "imix-uni", "vms", "errors")
FRAMES_APART = 15  # what the recorded server had sent in the milliseconds that its start took
# the recorded server had been in use before: which streams and states it began with is its own history
BEGUN_WITH = ("state", "state_profile", "max_stream_id", "attr")


@dataclass
class Player:
    """Sends recorded requests, its own handlers and API handler put in, and compares the answers."""

    answers: dict[str, Any] = field(default_factory=dict)
    now_s: float = 0.0
    renamed: dict[str, str] = field(default_factory=dict)
    compared: int = 0
    compared_groups: int = 0
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # the engine's clock is fast by half a percent: recorded runs of 1 s ended after 0.999 s
        router = TwinRouter(TwinSpec(1, 2.2e9, packet_cycles=100.0))
        self.ctx = ServerState(SimEngine(router, clock=lambda: self.now_s * 1.005, step_s=0.002))

    def play(self, at_s: float, recorded: Any) -> None:
        """Send one request frame and hold the answer against the recorded one."""
        self.now_s = at_s
        requests, replies = _listed(recorded), self._send(recorded)
        for request, found in zip(requests, replies, strict=True):
            expected = self.answers[request["id"]]
            self._learn(request["method"], expected, found)
            if request["method"] == "get_pgid_stats":
                self._compare_groups(expected["result"], found["result"])
            else:
                self._compare(request, expected, found)

    def _send(self, recorded: Any) -> list[dict[str, Any]]:
        self.ctx.now_s = self.now_s
        self.ctx.tick()
        frame = self._rename(json.dumps(recorded)).encode()
        return _listed(json.loads(dispatch.handle(self.ctx, frame, self.now_s)))

    def _compare(self, request: dict[str, Any], expected: dict[str, Any], found: dict[str, Any]) -> None:
        method = request["method"]
        self.compared += 1
        ours, theirs = essence(method, found), essence(method, expected)
        if method == "get_port_status":
            for name in BEGUN_WITH:
                del ours["result"][name], theirs["result"][name]
        where = f"{self.now_s:.3f} {method}"
        self.complaints += differences(theirs, ours, where)

    def _compare_groups(self, expected: dict[str, Any], found: dict[str, Any]) -> None:
        """Counts as recorded, give or take the start; rates and the times of latency streams in the same words."""
        told = set(expected["ver_id"] or ())
        if expected["ver_id"] != found["ver_id"]:
            self.complaints.append(f"ver_id {found['ver_id']}, TRex says {expected['ver_id']}")
        where = f"{self.now_s:.3f} get_pgid_stats"
        for part in ("flow_stats", "latency", "ver_id"):
            theirs = {key for key in expected[part] or () if key in told}
            ours = (found[part] or {}).keys() - {"g"}
            if theirs != ours:
                self.complaints.append(f"{where}.{part}: groups {ours}, TRex says {theirs}")
        for pg_id in told:
            self.compared_groups += 1
            theirs, ours = expected["flow_stats"][pg_id], found["flow_stats"][pg_id]
            self.complaints += differences(shape(theirs), shape(ours), where)
            for name, port in (("tp", "0"), ("rp", "1")):
                if abs(theirs[name][port] - ours[name][port]) > FRAMES_APART:
                    self.complaints.append(f"{where}.{name}: {ours[name]}, TRex says {theirs[name]}")
            if pg_id in expected["latency"]:
                theirs, ours = (one["latency"][pg_id]["lat"] for one in (expected, found))
                self.complaints += differences(shape({**theirs, "histogram": {}}), shape({**ours, "histogram": {}}))
                if not ours["histogram"].keys() <= {str(bound) for bound in BUCKETS_US}:
                    self.complaints.append(f"{where}: histogram {ours['histogram']}")

    def _learn(self, method: str, expected: dict[str, Any], found: dict[str, Any]) -> None:
        if "result" not in expected or "result" not in found:
            return
        if method == "acquire":
            self.renamed[f'"handler": "{expected["result"]}"'] = f'"handler": "{found["result"]}"'
        if method == "api_sync_v2":
            theirs, ours = expected["result"]["api_h"], found["result"]["api_h"]
            self.renamed[f'"api_h": "{theirs}"'] = f'"api_h": "{ours}"'

    def _rename(self, text: str) -> str:
        for theirs, ours in self.renamed.items():
            text = text.replace(theirs, ours)
        return text


def _listed(message: Any) -> list[dict[str, Any]]:
    return message if isinstance(message, list) else [message]


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FIXTURES / f"{name}.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)


@pytest.mark.parametrize("name", RECORDINGS)
def test_answers_as_recorded(name: str) -> None:
    lines = list(_lines(name))
    answers = [line["msg"] for line in lines if line["dir"] == "response"]
    player = Player({reply["id"]: reply for message in answers for reply in _listed(message)})
    for line in lines:
        if line["dir"] == "request":
            player.play(line["t"], line["msg"])
    assert player.complaints == []
    assert player.compared > 50
    assert player.compared_groups == (8 if name == "vms" else 0)
