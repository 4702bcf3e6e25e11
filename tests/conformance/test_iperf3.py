"""The embedded endpoint and the genuine iperf3, each with each, on loopback.

TREXBENCH_IPERF3 names more programs than the installed one, separated as in PATH: those of other versions.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from effort import by_day
from endpoints import payload, run

from trexbench.core.tcp.plan import HostReading, Way
from trexbench.endpoint.engines import Embedded, Iperf3, TcpEngine
from trexbench.endpoint.hosts import Agent

INSTALLED = shutil.which("iperf3")
PROGRAMS = [one for one in (INSTALLED, *os.environ.get("TREXBENCH_IPERF3", "").split(os.pathsep)) if one]
pytestmark = pytest.mark.skipif(not PROGRAMS, reason="needs iperf3: it is not installed")


@dataclass(frozen=True)
class Watched(Iperf3):
    """TcpEngine that keeps what iperf3 printed."""

    printed: list[dict[str, Any]] = field(default_factory=list)

    def readings(self, agent: Agent) -> tuple[HostReading, ...]:
        if agent.output is not None:
            self.printed.append(msgspec.json.decode(agent.output["stdout"]))
        return super().readings(agent)


def pairings() -> list[Any]:
    """By day one of each with one of the other: two of a kind run in test_endpoint_faults.py, too."""
    found = [pytest.param(None, None, id="embedded-embedded", marks=pytest.mark.nightly)]
    for number, program in enumerate(PROGRAMS or ["iperf3"]):
        name = f"genuine{number or ''}"
        found += [
            pytest.param(None, program, id=f"embedded-{name}"),
            pytest.param(program, None, id=f"{name}-embedded"),
            pytest.param(program, program, id=f"{name}-{name}", marks=pytest.mark.nightly),
        ]
    return found


SHAPES: Mapping[str, Mapping[str, Any]] = {
    "forward": {"way": Way.FORWARD},
    "reverse": {"way": Way.REVERSE},
    "bidir": {"way": Way.BIDIR},
    "4 streams": {"way": Way.FORWARD, "streams": 4},
    "4 streams, reverse, IPv6": {"way": Way.REVERSE, "streams": 4, "version": 6},
    "IPv6": {"way": Way.FORWARD, "version": 6},
}


BY_DAY = ("bidir", "4 streams, reverse, IPv6")
"""Shapes that have all that a test may ask for; the others are parts of them."""


@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=[] if one in BY_DAY else pytest.mark.nightly) for one in SHAPES]
)
@pytest.mark.parametrize(("client", "server"), pairings())
def test_every_pair_carries_payload(client: str | None, server: str | None, shape: str) -> None:
    asked = SHAPES[shape]
    engines: tuple[TcpEngine, TcpEngine] = tuple(Watched(one) if one else Embedded() for one in (client, server))  # type: ignore[assignment]
    found = run(engines, **asked)
    assert found.error is None and set(found.processes) == {"client", "server"}
    way, streams = asked["way"], asked.get("streams", 1)
    for readings, sends in ((found.client, way is not Way.REVERSE), (found.server, way is Way.REVERSE)):
        assert len(readings) >= 4
        assert [one.at_s for one in readings] == sorted(one.at_s for one in readings)
        assert all(one.cpus and one.threads for one in readings)
        expected = [sends] * streams if way is not Way.BIDIR else [readings is found.client, readings is found.server]
        assert [one.sends for one in readings[-1].streams] == expected
        assert [one.stream for one in readings[-1].streams] == list(range(1, len(expected) + 1))
        assert all(stream.payload_bytes > 0 for stream in readings[-1].streams)
        assert not any(stream.payload_bytes for stream in readings[0].streams), "the time begins with the payload"
    # What one has sent the other has got; on a busy machine they may look at different times, so it is the rates.
    for sender, receiver in ((found.client, found.server), (found.server, found.client)):
        if payload(sender, True):
            sent, received = (payload(one, one is sender) / (one[-1].at_s - one[0].at_s) for one in (sender, receiver))
            assert received == pytest.approx(sent, rel=0.35)
    for engine in engines:
        if isinstance(engine, Watched):
            assert_satisfied(engine.printed[0], streams * (2 if way is Way.BIDIR else 1))


def assert_satisfied(printed: Mapping[str, Any], streams: int) -> None:
    """A genuine iperf3 has understood all that the other end told it."""
    assert "error" not in printed
    assert len(printed["end"]["streams"]) == streams
    if printed["start"].get("connecting_to"):  # the client knows both ends' counts
        sent, received = printed["end"]["sum_sent"], printed["end"]["sum_received"]
        assert received["bytes"] > 0 and received["bytes"] == pytest.approx(sent["bytes"], rel=0.35)


@pytest.mark.parametrize("embedded_first", [True, False])
def test_what_is_omitted_is_told_to_neither(embedded_first: bool) -> None:
    genuine = Watched()
    engines: tuple[TcpEngine, TcpEngine] = (Embedded(), genuine) if embedded_first else (genuine, Embedded())
    found = run(engines, omit_s=1.0)
    ours = found.client if embedded_first else found.server
    for readings in (found.client, found.server):  # 2 s from the begin of what is omitted, or more on a busy machine
        assert readings[-1].at_s - readings[0].at_s > 1.4
    printed = genuine.printed[0]
    assert printed["start"]["test_start"]["omit"] == 1
    assert 0 < printed["end"]["sum_received"]["bytes"] < 0.95 * payload(ours, embedded_first)


@pytest.mark.parametrize("embedded_first", [True, False])
def test_congestion_control_and_zerocopy_are_agreed(embedded_first: bool) -> None:
    engines: tuple[TcpEngine, TcpEngine] = (Embedded(), Iperf3()) if embedded_first else (Iperf3(), Embedded())
    found = run(engines, Way.REVERSE, congestion="reno", zerocopy=True)
    assert {found.program[role]["congestion"] for role in ("client", "server")} == {"reno"}
    other = found.program["server" if embedded_first else "client"]
    assert other["name"] == "iperf3" and other["version"][0].isdigit()


@pytest.mark.parametrize("embedded_first", by_day(1, [True, False]))
def test_as_many_streams_as_iperf3_has_at_once(embedded_first: bool) -> None:
    """On a busy machine a few of them may have no turn within these seconds."""
    pair = (Embedded(), Iperf3(PROGRAMS[0]))
    found = run(pair if embedded_first else pair[::-1], streams=128, time_s=2.0)
    assert found.error is None
    for readings in (found.client, found.server):
        assert len(readings[-1].streams) == 128 and sum(one.payload_bytes > 0 for one in readings[-1].streams) > 115
