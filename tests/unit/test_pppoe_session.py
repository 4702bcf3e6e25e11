"""PPPoE of a TCP test: what its programs are told, and what becomes of what they say; stand-ins take their place."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trexbench.config.model import DutConfig
from trexbench.config.schema import dut_of
from trexbench.core.errors import ConfigError, DutError
from trexbench.session.tcp.options import TcpSetup, TcpWish
from trexbench.session.tcp.request import make_tcp_request
from trexbench.session.tcp.tunnels import Pppoe, dialled
from trexbench.transport import LocalTransport, Running

pytestmark = pytest.mark.portable

ENDS = """endpoints:
  client: {transport: {type: ssh, host: left}, interface: eth1, address: 10.1.0.2/24, CLIENT}
  server: {transport: {type: ssh, host: right}, interface: eth2, address: 10.2.0.2/24, SERVER}
"""
LINUX = "driver: linux\ntransport: {type: ssh, host: pi}\n" + ENDS.replace(
    "CLIENT", "dut: {interface: lan, address: 10.1.0.1/24}"
).replace("SERVER", "dut: {interface: wan, address: 10.2.0.1/24}")
DIALS = LINUX + "variants: {ppp: {pppoe: true}}\n"
HOME = "driver: none\n" + ENDS.replace("CLIENT", "gateway: 10.1.0.1").replace("SERVER", "gateway: 10.2.0.1")
TOLD = """
import json, sys
for line in sys.stdin.buffer:
    if line.startswith(b'{"role"'):
        break
told = json.loads(line)
def say(**what):
    print(json.dumps(what), flush=True)
say(listening={})
up = dict(told, mtu=1492, auth="chap", peer=told.get("peer", ""))
"""
UP = TOLD + "say(up=up)\nsys.stdin.buffer.read()\nsay(done={})\n"


class Host(LocalTransport):
    """Runs the stand-in in place of what it is asked for."""

    def __init__(self, program: str = UP) -> None:
        self.program, self.asked = program, list[Sequence[str]]()

    def start(self, argv: Sequence[str]) -> Running:
        self.asked.append(argv)
        return super().start(("python3", "-I", "-S", "-c", self.program))


def config(text: str, variant: str | None = None) -> DutConfig:
    return dut_of(Path("box.yaml"), text).with_variant(variant)


@contextmanager
def session(found: DutConfig, server: Host, dut: Host | None = None) -> Iterator[Pppoe | None]:
    cpus: dict[str, tuple[int, ...]] = {"server": (2,), "dut": ()}
    with dialled(found, server, dut or Host(), cpus) as one:
        yield one


def test_a_linux_dut_dials_with_a_secret_of_this_run() -> None:
    server, dut = Host(), Host()
    with session(config(DIALS, "ppp"), server, dut) as found:
        assert found is not None and found.client is not None and found.client.up is not None
        ours, theirs = dict(found.told), dict(found.client.up)
        assert (ours["role"], ours["interface"], ours["cpus"]) == ("server", "eth2", [2])
        assert (ours["own"], ours["peer"], ours["routes"]) == ("10.2.0.2", "10.2.0.1", ["10.1.0.0/24"])
        assert (theirs["role"], theirs["interface"], theirs["cpus"]) == ("client", "wan", [])
        assert ours["secret"] == theirs["secret"] and len(ours["secret"]) == 32 and ours["user"] == theirs["user"]
        assert not any(ours["secret"] in word for argv in (*server.asked, *dut.asked) for word in argv)
        assert found.mtu == 1492 and not found.lost and not found.by_itself


def test_a_router_that_dials_by_itself_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = config(HOME + "  pppoe: {user: debian, secret_env: HOME_PPP, service: internet}\n")
    server, dut = Host(TOLD + "import time\ntime.sleep(0.3)\nsay(up=up)\nsys.stdin.buffer.read()\n"), Host()
    monkeypatch.setenv("HOME_PPP", "password")
    with session(found, server, dut) as one:
        assert one is not None and one.by_itself and not dut.asked
        told = {"user": "debian", "secret": "password", "service": "internet", "peer": "10.2.0.1"}
        assert told.items() <= dict(one.told).items()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("say(error={'what': 'no line', 'remedy': ''})", r"the DUT \(this machine\): PPPoE: no line"),
        ("say(down={'why': 'user x was refused'})", r"the DUT \(this machine\): PPPoE: python3 ended there"),
        ("print('{]', flush=True)", "its report cannot be read"),
    ],
)
def test_what_goes_wrong_is_told_in_one_line(code: str, said: str) -> None:
    dut = Host(f"{TOLD}{code}\n")
    with pytest.raises(DutError, match=said) as raised, session(config(DIALS, "ppp"), Host(), dut):
        pass
    assert "\n" not in str(raised.value)


def test_a_session_that_ends_meanwhile(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    server = Host(
        TOLD + f"import os, time\nsay(up=up)\nwhile not os.path.exists({str(ended)!r}):\n    time.sleep(0.01)\n"
        "say(down={'why': 'the peer is silent'})\nsys.stdin.read()\n"
    )
    with session(config(DIALS, "ppp"), server) as found:
        assert found is not None and not found.lost
        ended.touch()
        until = time.monotonic() + 60
        while not found.lost and time.monotonic() < until:
            time.sleep(0.01)
        assert found.lost.startswith("server (this machine): the PPPoE session is down (the peer is silent)")


def test_without_the_secret_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME_PPP", raising=False)
    (tmp_path / "box.yaml").write_text(HOME + "  pppoe: {user: debian, secret_env: HOME_PPP}\n")
    with pytest.raises(ConfigError, match=r"the environment has no HOME_PPP, .*: export HOME_PPP=\.\.\."):
        make_tcp_request(TcpWish("box"), TcpSetup(configs_dir=tmp_path))
    make_tcp_request(TcpWish("box"), TcpSetup(configs_dir=tmp_path, sim=True))


def test_a_run_that_leaves_the_hosts_as_they_are_dials_nowhere(tmp_path: Path) -> None:
    (tmp_path / "box.yaml").write_text(DIALS)
    setup: dict[str, Any] = {"configs_dir": tmp_path, "variant": "ppp"}
    with pytest.raises(ConfigError, match="variant ppp dials in, which --no-apply does not"):
        make_tcp_request(TcpWish("box"), TcpSetup(apply=False, **setup))
    make_tcp_request(TcpWish("box"), TcpSetup(**setup))
