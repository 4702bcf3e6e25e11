"""PPPoE between two network namespaces: real frames, real TCP."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from endpoints import payload, run
from wire import devices, processes, told_to, wired

from trexbench.core.errors import DutError
from trexbench.endpoint import EndpointHost, PppEnd
from trexbench.transport import NetnsTransport

NAMES = {role: f"tbpp{role[0]}{os.getpid()}" for role in ("server", "client")}
USER = {"interface": "v0", "user": "router", "secret": "s3cret"}
OWN, PEER = "100.66.2.2", "100.66.2.1"
OWN6, PEER6 = "fd14:9aa4:e604:ec36::1", "fd14:9aa4:e604:ec36::2"


@pytest.fixture(scope="module")
def wire() -> Iterator[None]:
    """Two namespaces and a cable between them, without any address."""
    with wired(NAMES):
        yield


@contextmanager
def server(**options: Any) -> Iterator[PppEnd]:
    told = {**USER, "own": OWN, "peer": PEER, **options}
    with PppEnd("server", NetnsTransport(NAMES["server"]), "server", told) as end:
        end.wait_listening(10)
        yield end


@contextmanager
def client(**options: Any) -> Iterator[PppEnd]:
    with PppEnd("client", NetnsTransport(NAMES["client"]), "client", {**USER, **options}) as end:
        yield end


def kill(role: str, sign: signal.Signals) -> None:
    for pid in processes(NAMES[role]):
        with contextlib.suppress(ProcessLookupError):  # what it had started ends meanwhile
            os.kill(pid, sign)


def assert_nothing_is_left() -> None:
    for role in NAMES:
        assert devices(NAMES[role]) == {"lo", "v0"} and not processes(NAMES[role])


def hear_until_down(end: PppEnd, within_s: float) -> None:
    until_s = time.monotonic() + within_s
    while end.up is not None and time.monotonic() < until_s:
        end.hear(1)


def pings(address: str) -> bool:
    command = ["ip", "netns", "exec", NAMES["client"], "ping", "-c", "1", "-W", "10", address]
    return subprocess.run(command, stdout=subprocess.DEVNULL, timeout=20).returncode == 0


def host(role: str) -> EndpointHost:
    addresses = {4: OWN, 6: OWN6} if role == "server" else {4: PEER, 6: PEER6}
    return EndpointHost(role, NetnsTransport(NAMES[role]), addresses)


@pytest.mark.parametrize("method", [pytest.param("chap", marks=pytest.mark.nightly), "pap"])
def test_a_session_carries_tcp_and_leaves_nothing(wire: None, method: str) -> None:
    with server(auth=[method], ipv6=[OWN6, PEER6]) as one:
        with client(ipv6=[PEER6, OWN6]) as other:
            there, here = other.wait_up(20), one.wait_up(20)
            for role in NAMES:
                for pid in processes(NAMES[role]):
                    assert b"s3cret" not in told_to(pid), "arguments and environment"
            assert (there["own"], there["peer"], there["mtu"], there["auth"]) == (PEER, OWN, 1492, method)
            assert here["user"] == "router" and here["session"] == there["session"]
            assert pings(OWN) and pings(OWN6)
            for version in (4, 6):
                found = run(None, version=version, client=host("client"), server=host("server"), time_s=0.5)
                assert found.error is None and payload(found.client, sends=True) > 1e5
                assert found.client[-1].streams[0].info["snd_mss"] <= 1492 - 40
            one.require_up()
            other.require_up()
        one.hear(2)
        with pytest.raises(DutError, match=r"the PPPoE session is down \(the peer ended it"):
            one.require_up()
        assert devices(NAMES["server"]) == {"lo", "v0"}
        # The concentrator serves whoever dials next.
        with client() as other:
            other.wait_up(20)
            one.wait_up(20)
            assert pings(OWN)
    assert other.counters["from_line"] and one.counters["to_line"] >= other.counters["from_line"]
    assert_nothing_is_left()


def test_a_wrong_secret_is_refused_in_one_line(wire: None) -> None:
    with server() as one, client(secret="wr0ng") as other:
        with pytest.raises(DutError) as raised:
            other.wait_up(20)
        said = str(raised.value)
        assert "the server refuses user 'router' (wrong user or secret)" in said and "\n" not in said
        assert "wr0ng" not in said
        one.hear(2)
        assert one.down == ["user 'router' was refused: wrong user or secret"]
    assert_nothing_is_left()


def test_a_server_that_is_forgotten_ends(wire: None) -> None:
    with server(idle_s=1) as one, pytest.raises(DutError, match="nobody has dialled in for 1 s"):
        one.wait_up(5)
    assert_nothing_is_left()


def test_a_killed_peer_is_noticed(wire: None) -> None:
    with server() as one, client() as other:
        other.wait_up(20)
        one.wait_up(20)
        kill("client", signal.SIGKILL)
        hear_until_down(one, 30)
        assert one.down == ["the peer has not been heard for 4 s"]
        assert devices(NAMES["server"]) == {"lo", "v0"} == devices(NAMES["client"])
    assert_nothing_is_left()


@pytest.mark.parametrize(
    "sign",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, marks=pytest.mark.nightly),
    ],
)
def test_an_end_that_is_ended_says_so(wire: None, sign: signal.Signals) -> None:
    with server() as one, client() as other:
        other.wait_up(20)
        kill("server", sign)
        hear_until_down(other, 10)
        assert other.down == ["the peer ended it (its end was asked for)"]
        assert one.up is None or one.hear(1) is None
    assert_nothing_is_left()


def test_an_interface_that_is_not_there(wire: None) -> None:
    with pytest.raises(DutError, match="interface v9 cannot be used"), server(interface="v9"):
        pass
