"""Both ends of each tunnel in two network namespaces: real packets, real TCP; and what is left afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from endpoints import alive, payload, run
from sshd import eventually
from wire import devices, ip, processes, told_to, wired

from trexbench.core.errors import DutError
from trexbench.core.tcp.plan import Way
from trexbench.core.tcp.tunnel import KINDS, parse_tunnel
from trexbench.endpoint.held import TunnelEnd
from trexbench.endpoint.hosts import EndpointHost
from trexbench.session.tcp.keys import make_keys
from trexbench.session.tcp.tunnels import CLIENT, FAR, PORT, OpenTunnel, prove_tunnel
from trexbench.transport import NetnsTransport

NAMES = {role: f"tbvp{role[0]}{os.getpid()}" for role in ("server", "client")}
OUTER = {"server": "100.67.0.1", "client": "100.67.0.2"}
INNER = {"server": FAR, "client": CLIENT}
NEEDS = {"openvpn": ["openvpn"], "wireguard": ["wg", "wireguard-go"]}
OPENED = [name for name in KINDS if parse_tunnel(name).is_opened]


@pytest.fixture(scope="module")
def wire() -> Iterator[None]:
    """Two namespaces and a cable between them."""
    with wired(NAMES):
        for role, name in NAMES.items():
            ip("-n", name, "address", "add", f"{OUTER[role]}/24", "dev", "v0")
        yield


def require(kind: str) -> None:
    """Skips what this machine does not have, by name."""
    if lacks := [one for one in NEEDS.get(kind, []) if shutil.which(one) is None]:
        pytest.skip(f"{' and '.join(lacks)} not installed")


def end(role: str, kind: str, keys: dict[str, Any], **more: Any) -> TunnelEnd:
    wished, other = parse_tunnel(kind), {"server": "client", "client": "server"}[role]
    told = {"kind": kind, "name": f"tbvpn{role[0]}x{os.getpid()}", "cipher": wished.cipher, "port": PORT, "keys": keys}
    told |= {"mtu": wished.inner_mtu(1500), "first": role == "server", "parent": "v0"}
    told |= {"own": INNER[role], "peer": INNER[other], "local": OUTER[role], "remote": OUTER[other]}
    return TunnelEnd(role, NetnsTransport(NAMES[role]), {**told, **more})


@contextmanager
def tunnel(kind: str, keys: Any = None, **more: Any) -> Iterator[OpenTunnel]:
    """Up; skips where the kernel has no such device."""
    require(kind)
    keys = keys or make_keys(parse_tunnel(kind))
    with ExitStack() as stack:
        ends = {role: stack.enter_context(end(role, kind, own, **more)) for role, own in zip(NAMES, keys, strict=True)}
        try:
            by = str([one.wait_up(30) for one in ends.values()][-1]["by"])
        except DutError as error:
            if "the kernel has no device" in str(error):
                pytest.skip(str(error))
            raise
        yield OpenTunnel(parse_tunnel(kind), "server", by, 1500, parse_tunnel(kind).inner_mtu(1500), ends)


def nothing_is_left() -> bool:
    made = {"gre0", "gretap0", "erspan0"}  # which the kernel adds by itself
    return all(not processes(NAMES[role]) and devices(NAMES[role]) - made <= {"lo", "v0"} for role in NAMES)


def host(role: str) -> EndpointHost:
    return EndpointHost(role, NetnsTransport(NAMES[role]), {4: INNER[role]})


@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[] if one in ("relay", "openvpn") else pytest.mark.nightly) for one in OPENED]
)
def test_tcp_passes_both_ways_and_nothing_is_left(wire: None, kind: str) -> None:
    keys = make_keys(parse_tunnel(kind))
    with tunnel(kind, keys) as found:
        prove_tunnel(NetnsTransport(NAMES["client"]), found)
        for way in (Way.FORWARD, Way.REVERSE):
            seen = run(None, way, client=host("client"), server=host("server"), time_s=0.5)
            assert seen.error is None
            sends = seen.client if way is Way.FORWARD else seen.server
            assert payload(sends, sends=True) > 1e5
            assert 500 < sends[-1].streams[0].info["snd_mss"] <= found.mss
        for role in NAMES:
            for pid in processes(NAMES[role]):
                told = told_to(pid)
                assert not [key for own in keys for key in secrets_of(own) if key in told]
        assert not found.lost
        pids = {role for role, one in found.ends.items() if one.up is not None and one.up["pid"] is not None}
        assert pids == ({"client", "server"} if kind in ("relay", "openvpn") or "go" in found.by else set())
    assert nothing_is_left()


def secrets_of(keys: dict[str, Any]) -> list[bytes]:
    """Return what must not be seen of the keys: of a PEM, the first line that differs from others'."""
    text = keys.get("token") or keys.get("key") or ""
    return [text.splitlines()[1 if "BEGIN" in text else 0].encode()] if text else []


def test_packets_of_strangers_are_dropped(wire: None) -> None:
    token = bytes.fromhex("00112233445566ff")
    echo = bytes.fromhex("4500001c00010000400166dd0a0200020a02000108 00f7fd00010001".replace(" ", ""))
    with end("server", "relay", {"token": token.hex()}) as server:
        server.wait_up(20)
        send(OUTER["client"], PORT + 1, token + echo)
        for wrong in (b"", b"\0" * 60, token[:-1] + b"\0" + echo, echo):
            send(OUTER["client"], PORT, wrong)
        send(OUTER["client"], PORT, token + echo)
        eventually(lambda: received("server") > 0, "the last one has passed", 30)
        assert received("server") == 1, "they pass in the order in which they came"
    assert nothing_is_left()


def received(role: str) -> int:
    """Packets that came out of the tunnel there."""
    (link,) = json.loads(ip("-n", NAMES[role], "-s", "-j", "link", "show", f"tbvpn{role[0]}x{os.getpid()}"))
    return int(link["stats64"]["rx"]["packets"])


def send(source: str, port: int, data: bytes) -> None:
    """A datagram of the client's namespace to the server's end."""
    program = (
        "import socket,sys; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);"
        f"s.bind(('{source}',{port})); s.sendto(bytes.fromhex('{data.hex()}'),('{OUTER['server']}',{PORT}))"
    )
    argv = ["ip", "netns", "exec", NAMES["client"], "python3", "-c", program]
    subprocess.run(argv, check=True, timeout=20)


def test_a_line_that_takes_less_is_noticed(wire: None) -> None:
    with tunnel("relay") as found:
        ip("-n", NAMES["server"], "link", "set", "v0", "mtu", "1400")
        ip("-n", NAMES["client"], "link", "set", "v0", "mtu", "1400")
        try:
            with pytest.raises(DutError, match="packets of 1464 bytes do not pass"):
                prove_tunnel(NetnsTransport(NAMES["client"]), found)
        finally:
            for name in NAMES.values():
                ip("-n", name, "link", "set", "v0", "mtu", "1500")
        longer = OpenTunnel(found.tunnel, "server", found.by, 1500, 1400, found.ends)
        with pytest.raises(DutError, match="packets of 1401 bytes pass, which its MTU forbids"):
            prove_tunnel(NetnsTransport(NAMES["client"]), longer)


@pytest.mark.parametrize(("kind", "sign"), [
    ("openvpn", signal.SIGKILL),
    ("relay", signal.SIGTERM),
    pytest.param("wireguard", signal.SIGKILL, marks=pytest.mark.nightly),
])  # fmt: skip
def test_an_end_that_is_ended_takes_its_program_along(wire: None, kind: str, sign: signal.Signals) -> None:
    with tunnel(kind) as found:
        held = [pid for pid in processes(NAMES["client"]) if b"trexbench-relay" in told_to(pid)]
        there = processes(NAMES["client"])
        for pid in held:
            os.kill(pid, sign)
        eventually(lambda: not any(map(alive, there)), "its program has ended", 30)
        eventually(lambda: bool(found.lost), "that is told", 30)
        if sign is signal.SIGTERM or kind == "relay":
            assert devices(NAMES["client"]) == {"lo", "v0"}
    eventually(nothing_is_left, "nothing is left", 30)


def test_what_a_killed_program_has_left_is_taken_away(wire: None) -> None:
    ip("-n", NAMES["client"], "link", "add", "name", "tbvpnold", "type", "vxlan", "id", "9", "dstport", "4789")
    with tunnel("relay"):
        assert "tbvpnold" not in devices(NAMES["client"])
    assert nothing_is_left()


def test_an_end_that_is_forgotten_ends(wire: None) -> None:
    keys = make_keys(parse_tunnel("relay"))[0]
    with end("server", "relay", keys, deadline_s=1) as server:
        with pytest.raises(DutError, match="did not end in time"):
            for _ in range(9):  # it comes up, or has no time for that
                server.hear(10)
                server.require_running()
        eventually(lambda: not processes(NAMES["server"]), "its deadline is over", 30)
    assert nothing_is_left()


def test_an_address_that_is_not_there(wire: None) -> None:
    keys = make_keys(parse_tunnel("relay"))[0]
    unusable = pytest.raises(DutError, match=r"UDP from 192.0.2.99, port \d+ cannot be used")
    with end("server", "relay", keys, local="192.0.2.99") as server, unusable:
        server.wait_up(20)
    assert nothing_is_left()
