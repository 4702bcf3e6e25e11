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
from tools import begin, trexbench

PREFIX = f"tbv{os.getpid()}"
TCP = ("tcp", "--dut", "./own.yaml", "--no-picture", "--ping", "0", "--time", "1s", "--interval", "500ms")
NEEDS = {"openvpn": "openvpn", "wireguard": "wireguard-go"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a lab that stays."""
    folder = tmp_path_factory.mktemp("tunnels")
    write_lab(folder, PREFIX)
    with lab_up(folder):
        yield folder
    assert not list(Path("/run/netns").glob(f"{PREFIX}-*"))


@pytest.mark.parametrize(("tunnel", "by", "mtu"), [
    pytest.param("relay", "trexbench's relay", 1464, marks=pytest.mark.nightly),
    ("relay,client-dut,mtu=1400", "trexbench's relay", 1400),
    pytest.param("openvpn,cipher=AES-128-GCM", "OpenVPN 2", 1448, marks=pytest.mark.nightly),
    pytest.param("wireguard,client-dut", "", 1440, marks=pytest.mark.nightly),
])  # fmt: skip
def test_tcp_goes_through_it(place: Path, tunnel: str, by: str, mtu: int) -> None:
    kind, client_dut = tunnel.partition(",")[0], "client-dut" in tunnel
    if kind in NEEDS and shutil.which(NEEDS[kind]) is None:
        pytest.skip(f"{NEEDS[kind]} not installed")
    done = trexbench(place, *TCP, "--tunnel", tunnel, timeout_s=150)
    assert done.returncode == 0, done.stderr
    seen = done.stderr
    assert f"MTU {mtu}, MSS {mtu - 40}: packets of {mtu} bytes pass, longer ones do not" in seen
    inside_it = "client to server, IPv4: 0 routers\nserver to client, IPv4: 0 routers"
    assert (inside_it in seen) != client_dut
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
            stream = reading["streams"][0]
            assert 500 < stream["info"]["snd_mss"] <= mtu - 40 and stream["payload_bytes"] > 1e5
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


@pytest.mark.parametrize(("tunnel", "how"), [
    ("openvpn", signal.SIGKILL),
    ("relay,client-dut", signal.SIGINT),
    pytest.param("wireguard", signal.SIGKILL, marks=pytest.mark.nightly),
])  # fmt: skip
def test_a_command_that_is_ended_leaves_nothing(place: Path, tunnel: str, how: signal.Signals) -> None:
    if (program := NEEDS.get(tunnel)) is not None and shutil.which(program) is None:
        pytest.skip(f"{program} not installed")
    with flowing(place, tunnel) as running:
        there = [pid for name in ENDS for pid in inside(PREFIX)[name]]
        assert len(there) >= 4 and ("trexbench_tunnel" in rules(PREFIX)) == ("client-dut" in tunnel)
        running.send_signal(how)
        running.communicate(timeout=60)
        assert how is not signal.SIGINT or running.returncode == 130
        eventually(lambda: not any(map(alive, there)), "every process has ended", 20)
        eventually(lambda: not tunnels(PREFIX), "no interface is left", 20)
        eventually(lambda: "trexbench_tunnel" not in rules(PREFIX), "no rule is left", 20)
    # A command's names end in eight hexadecimal digits; those of tests beside this one do not.
    assert not list(Path("/var/run/wireguard").glob(f"tbvpn{'[0-9a-f]' * 8}.sock"))
    state = [one.read_text() for one in place.rglob("*") if one.is_file() and "state" in one.parts]
    assert not [one for one in state if "tbvpn" in one or "PRIVATE KEY" in one]


def test_what_the_kernel_does_not_have_is_refused_by_name(place: Path) -> None:
    before = list(place.glob("results/*/own/*.json"))
    done = trexbench(place, *TCP, "--tunnel", "gre", timeout_s=150)
    if done.returncode == 0:
        pytest.skip("this kernel has gre")
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("trexbench: ")]
    assert "tunnel: the kernel has no device of type gre" in line and "Traceback" not in done.stderr
    assert list(place.glob("results/*/own/*.json")) == before
