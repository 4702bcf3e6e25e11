"""PPPoE between two network namespaces by pppoe-server and pppd: real frames, real TCP."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from endpoints import payload, run
from sshd import eventually
from wire import devices, ip, lacks_pppoe, processes, told_to, wired

from trexbench.core.errors import DutError
from trexbench.endpoint.held import PppEnd
from trexbench.endpoint.hosts import EndpointHost
from trexbench.transport import NetnsTransport

pytestmark = pytest.mark.skipif(bool(lacks_pppoe()), reason=lacks_pppoe())

NAMES = {role: f"tbpp{role[0]}{os.getpid()}" for role in ("server", "client")}
SECRET = "s3cret \"'\\@#"
USER = {"interface": "v0", "user": "router", "secret": SECRET, "tun": "tbppp0"}
OWN, PEER = "100.66.2.2", "100.66.2.1"
DEFAULT6 = "net.ipv6.conf.default.disable_ipv6"
OWN6, PEER6 = "fd14:9aa4:e604:ec36::1", "fd14:9aa4:e604:ec36::2"


@pytest.fixture(scope="module")
def wire() -> Iterator[None]:
    """Two namespaces and a cable between them, without any address; their interfaces have no IPv6 by default."""
    with wired(NAMES):
        for name in NAMES.values():
            ip("netns", "exec", name, "sysctl", "-qw", f"{DEFAULT6}=1")
        yield


@contextmanager
def server(**options: Any) -> Iterator[PppEnd]:
    told = {**USER, "own": OWN, "peer": PEER, **options}
    with PppEnd("server", NetnsTransport(NAMES["server"]), {"role": "server", **told}) as end:
        end.wait_listening(60)
        yield end


@contextmanager
def client(**options: Any) -> Iterator[PppEnd]:
    with PppEnd("client", NetnsTransport(NAMES["client"]), {"role": "client", **USER, **options}) as end:
        yield end


@contextmanager
def session() -> Iterator[tuple[PppEnd, PppEnd]]:
    """Server and client of a session that is up; nothing is left of it at the end."""
    with server() as one, client() as other:
        other.wait_up(60)
        one.wait_up(60)
        yield one, other
    assert_nothing_is_left()


def kill(role: str, sign: signal.Signals, only: bytes = b"") -> None:
    for pid in processes(NAMES[role]):
        if only in told_to(pid):
            with contextlib.suppress(ProcessLookupError):  # what it had started ends meanwhile
                os.kill(pid, sign)


def assert_nothing_is_left() -> None:
    """pppd may say goodbye for a while."""
    for role in NAMES:
        eventually(lambda role=role: not processes(NAMES[role]), f"no process is left at the {role}", 30)  # type: ignore[misc]
        assert devices(NAMES[role]) == {"lo", "v0"}


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


def files() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path("/etc/ppp").rglob("*") if path.is_file()}


def test_a_session_carries_tcp_and_leaves_nothing(wire: None) -> None:
    before = files()
    with server(ipv6=[OWN6, PEER6]) as one:
        with client(ipv6=[PEER6, OWN6], auth=["pap"]) as other:
            there, here = other.wait_up(60), one.wait_up(60)
            for role in NAMES:
                for pid in processes(NAMES[role]):
                    assert b"s3cret" not in told_to(pid), "arguments and environment"
            assert files() == before, "the hosts' own secrets are neither read nor changed"
            assert {ip("netns", "exec", name, "sysctl", "-n", DEFAULT6) for name in NAMES.values()} == {"1\n"}
            assert (there["own"], there["peer"], there["mtu"], there["auth"]) == (PEER, OWN, 1492, "pap")
            assert here["user"] == "router" and here["auth"] == "pap"
            assert pings(OWN) and pings(OWN6)
            for version in (4, 6):
                found = run(None, version=version, client=host("client"), server=host("server"), time_s=0.5)
                assert found.error is None and payload(found.client, sends=True) > 1e5
                assert found.client[-1].streams[0].info["snd_mss"] <= 1492 - 40
            one.require_up()
            other.require_up()
        hear_until_down(one, 30)
        with pytest.raises(DutError, match=r"the PPPoE session is down \((LCP terminated by peer|Modem hangup)"):
            one.require_up()
        # The concentrator serves whoever dials next, once pppd has left.
        eventually(lambda: devices(NAMES["server"]) == {"lo", "v0"}, "the first session is gone", 30)
        with client(ipv6=[PEER6, OWN6]) as other:
            other.wait_up(60)
            one.wait_up(60)
            assert pings(OWN)
    assert_nothing_is_left()
    assert files() == before


def test_a_wrong_secret_is_refused_in_one_line(wire: None) -> None:
    with server() as one, client(secret="wr0ng") as other:
        with pytest.raises(DutError, match="CHAP authentication failed") as raised:
            other.wait_up(60)
        assert "\n" not in str(raised.value) and "wr0ng" not in str(raised.value)
        until = time.monotonic() + 30
        while not one.down and time.monotonic() < until:
            one.hear(1)
        assert one.down == ["Peer router failed CHAP authentication"]
    assert_nothing_is_left()


def test_a_killed_peer_is_noticed(wire: None) -> None:
    with session() as (one, _):
        kill("client", signal.SIGKILL)
        hear_until_down(one, 60)
        assert one.down == ["No response to 4 echo-requests"]


@pytest.mark.parametrize("role", ["server", "client"])
def test_a_killed_end_takes_pppd_with_it(wire: None, role: str) -> None:
    with session() as (one, other):
        kill(role, signal.SIGKILL, b"trexbench-pppoe")
        hear_until_down(other if role == "server" else one, 60)
        eventually(lambda: not processes(NAMES[role]), "its pppd has ended", 30)


def test_an_interface_that_is_not_there(wire: None) -> None:
    with pytest.raises(DutError, match=r"pppoe-server has ended \(.*No such device"), server(interface="v9"):
        pass
    with server(), client(interface="v9") as other, pytest.raises(DutError, match="pppd has ended"):
        other.wait_up(60)
    assert_nothing_is_left()
