"""``trexbench tcp --tunnel``: real TCP through each tunnel of the lab, and what a command leaves that is ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from endpoints import alive
from labs import ENDS, document, flows, inside, lab_up, write_lab
from sshd import eventually
from targets import NEEDS_ROOT
from tools import begin, trexbench

pytestmark = [pytest.mark.root, NEEDS_ROOT]

PREFIX = f"tbv{os.getpid()}"
TCP = ("tcp", "--dut", "./own.yaml", "--no-picture", "--ping", "1", "--time", "2s")
NEEDS = {"openvpn": "openvpn", "wireguard": "wireguard-go"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    write_lab(tmp_path, PREFIX, "{offloads: full}", "\n")
    yield tmp_path
    eventually(lambda: not list(Path("/run/netns").glob(f"{PREFIX}-*")), "the lab is gone", 10)


@pytest.fixture
def stays(place: Path) -> Iterator[Path]:
    """The same, in a lab that stays."""
    with lab_up(place):
        yield place


@pytest.mark.parametrize(("tunnel", "by", "mtu"), [
    ("relay", "trexbench's relay", 1464),
    ("relay,client-dut,mtu=1400", "trexbench's relay", 1400),
    ("openvpn,cipher=AES-128-GCM", "OpenVPN 2", 1448),
    ("wireguard,client-dut", "", 1440),
])  # fmt: skip
def test_tcp_goes_through_it(place: Path, tunnel: str, by: str, mtu: int) -> None:
    kind, client_dut = tunnel.partition(",")[0], "client-dut" in tunnel
    if kind in NEEDS and shutil.which(NEEDS[kind]) is None:
        pytest.skip(f"{NEEDS[kind]} not installed")
    done = trexbench(place, *TCP, "--tunnel", tunnel, timeout_s=150)
    assert done.returncode == 0, done.stderr
    seen = done.stderr
    assert f"MTU {mtu}, MSS {mtu - 40}: packets of {mtu} bytes pass, longer ones do not" in seen
    inner = "client to server, IPv4: 0 routers\nserver to client, IPv4: 0 routers"
    assert seen.count(inner) == (1 if client_dut else 2), "inside as around the DUT"
    assert "client to server, IPv4: 1 router\n" in seen
    assert ("server to client, IPv4: 1 router\n" in seen) != client_dut, "the DUT masquerades"
    found = document(place)
    setup = found["setup"]
    between = "client-dut" if client_dut else "client-server"
    assert (setup["tunnel"], setup["tunnel_between"], setup["tunnel_mtu"]) == (kind, between, mtu)
    assert setup["tunnel_by"].startswith(by) and ("AES-128-GCM" in setup["tunnel_by"]) == ("128" in tunnel)
    ends = [found["endpoints"]["client"], found["dut"] if client_dut else found["endpoints"]["server"]]
    assert all(one["tunnel"]["interface"].startswith("tbvpn") for one in ends)
    assert found["status"] == "complete" and len(found["legs"]) == 2
    for leg in found["legs"]:
        for reading in (leg["client"][-1], leg["server"][-1]):
            assert 500 < reading["streams"][0]["info"]["snd_mss"] <= mtu - 40
    assert all(summary["rate_bps"] > 10e6 for summary in found["summaries"])
    assert f"tunnel  {kind} between client and {'DUT' if client_dut else 'server'}" in done.stdout
    told = json.dumps(found)
    assert not [word for word in ("token", "PRIVATE KEY", "PrivateKey", "certificate") if word in told]


@contextmanager
def flowing(folder: Path, tunnel: str) -> Iterator[subprocess.Popen[str]]:
    """A command whose leg flows through this tunnel."""
    words = ("tcp", "--dut", "./own.yaml", "-q", "--no-picture", "--forward", "--time", "20s", "--ping", "0")
    with begin(folder, *words, "--tunnel", tunnel) as running:
        try:
            eventually(lambda: running.poll() is not None or bool(tunnels(PREFIX)), "the tunnel is there", 60)
            eventually(lambda: running.poll() is not None or flows(PREFIX), "its leg flows", 60)
            assert running.poll() is None, running.communicate()
            assert {"client", "dut" if "client-dut" in tunnel else "server"} == tunnels(PREFIX)
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def tunnels(prefix: str) -> set[str]:
    """The hosts that have an interface of one."""
    found = set()
    for name in ENDS:
        done = subprocess.run(["ip", "-n", f"{prefix}-{name}", "link"], capture_output=True, text=True, timeout=20)
        found |= {name} if "tbvpn" in done.stdout else set()
    return found


def rules(prefix: str) -> str:
    argv = ["ip", "netns", "exec", f"{prefix}-dut", "nft", "list", "tables"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("tunnel", ["relay,client-dut", "openvpn", "wireguard"])
def test_a_command_that_is_ended_leaves_nothing(stays: Path, tunnel: str, how: signal.Signals) -> None:
    if (program := NEEDS.get(tunnel)) is not None and shutil.which(program) is None:
        pytest.skip(f"{program} not installed")
    with flowing(stays, tunnel) as running:
        there = [pid for name in ENDS for pid in inside(PREFIX)[name]]
        assert len(there) >= 4 and ("trexbench_tunnel" in rules(PREFIX)) == ("client-dut" in tunnel)
        running.send_signal(how)
        running.communicate(timeout=30)
        eventually(lambda: not any(map(alive, there)), "every process has ended", 10)
        eventually(lambda: not tunnels(PREFIX), "no interface is left", 10)
        eventually(lambda: "trexbench_tunnel" not in rules(PREFIX), "no rule is left", 10)
    assert not list(Path("/var/run/wireguard").glob("tbvpn*"))
    state = [one.read_text() for one in stays.rglob("*") if one.is_file() and "state" in one.parts]
    assert not [one for one in state if "tbvpn" in one or "PRIVATE KEY" in one]


def test_what_the_kernel_does_not_have_is_refused_by_name(place: Path) -> None:
    done = trexbench(place, *TCP, "--tunnel", "gre", timeout_s=150)
    if done.returncode == 0:
        pytest.skip("this kernel has gre")
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("trexbench: ")]
    assert "tunnel: the kernel has no device of type gre" in line and "Traceback" not in done.stderr
    assert not list(place.glob("results/*/own/*.json"))
