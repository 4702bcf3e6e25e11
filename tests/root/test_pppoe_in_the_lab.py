"""``trexbench tcp --variant pppoe``: the lab's router dials in to the server's namespace, real TCP goes through NAT."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import document, flows, lab_up, write_lab
from sshd import eventually
from tools import begin, trexbench
from wire import devices, processes, told_to

from trexbench.core.errors import DutError
from trexbench.endpoint import PppEnd
from trexbench.transport import NetnsTransport

ENDS = ("client", "server")
PREFIX = f"tbpl{os.getpid()}"
TCP = ("tcp", "--dut", "./own.yaml", "--variant", "pppoe", "--no-picture", "--ping", "0")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("pppoe")
    write_lab(folder, PREFIX, more="variants: {pppoe: {pppoe: true}}\n")
    with lab_up(folder):
        yield folder


def test_both_families_go_through_the_session(place: Path) -> None:
    done = trexbench(place, *TCP, "--time", "1s", "--interval", "500ms", "--ip", "both", timeout_s=150)
    assert done.returncode == 0, done.stderr
    assert "PPPoE: trexbench at 100.66.2.1, chap, MTU 1492" in done.stderr + done.stdout
    run = document(place)
    assert run["status"] == "complete" and len(run["legs"]) == 4
    assert run["setup"]["pppoe"] is True and run["setup"]["mtu"] == 1492
    session = run["endpoints"]["server"]["pppoe"]
    assert (session["own"], session["peer"], session["auth"]) == ("100.66.2.2", "100.66.2.1", "chap")
    for leg, headers in zip(run["legs"], (40, 40, 60, 60), strict=True):
        for reading in (leg["client"][-1], leg["server"][-1]):
            stream = reading["streams"][0]
            assert 500 < stream["info"]["snd_mss"] <= 1492 - headers, "clamped to the session's MTU"
            assert stream["payload_bytes"] > 1e5
    assert "secret" not in json.dumps(run["endpoints"])


@pytest.mark.nightly
def test_a_session_that_is_lost_is_told(place: Path) -> None:
    running = begin(place, *TCP, "--forward", "--time", "4s", "-q")
    try:
        eventually(
            lambda: running.poll() is not None or (flows(PREFIX) and flows(PREFIX, "server")), "its leg flows", 60
        )
        for pid in processes(f"{PREFIX}-dut"):
            if b"trexbench-pppoe" in told_to(pid):
                os.kill(pid, signal.SIGKILL)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 6, said
    assert "PPPoE" in said and "Traceback" not in said, said
    run = document(place)
    assert run["status"] == "incomplete" and "PPPoE" in run["reason"]
    assert all("PPPoE" in leg["error"] and leg["client"] for leg in run["legs"]), "none, if none had begun"
    assert not [name for host in ("server", "dut") for name in devices(f"{PREFIX}-{host}") if name.startswith("tbppp")]


OWN = """driver: none
endpoints:
  client: {{transport: {{type: netns, namespace: {client}}}, interface: c0, address: 10.71.1.2/24, gateway: 10.71.1.1}}
  server: {{transport: {{type: netns, namespace: {server}}}, interface: s0, address: 10.71.2.2/24, gateway: 10.71.2.1}}
  pppoe: {{user: debian, secret_env: HOME_PPP}}
"""
NAT = "table ip home {\n chain out {\n type nat hook postrouting priority 100;\n oifname ppp0 masquerade\n }\n}\n"


@pytest.fixture
def home() -> Iterator[dict[str, str]]:
    """A home router between two hosts, of which only its own side towards the client is configured."""
    names = {role: f"tbph{role[0]}{os.getpid()}" for role in ("client", "router", "server")}

    def run(*argv: str, input: str | None = None) -> None:
        subprocess.run(argv, check=True, timeout=20, input=input, text=True)

    try:
        for name in names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for port, role in (("c0", "client"), ("s0", "server")):
            far = ("peer", "name", f"to-{role}", "netns", names["router"])
            run("ip", "-n", names[role], "link", "add", port, "type", "veth", *far)
            run("ip", "-n", names["router"], "link", "set", f"to-{role}", "up")
            run("ip", "-n", names[role], "link", "set", port, "up")
        run("ip", "-n", names["router"], "address", "add", "10.71.1.1/24", "dev", "to-client")
        inside = ("ip", "netns", "exec", names["router"])
        run(*inside, "tee", "/proc/sys/net/ipv4/ip_forward", input="1")
        run(*inside, "nft", "-f", "-", input=NAT)
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], timeout=20)


def test_a_router_that_dials_by_itself(tmp_path: Path, home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home.yaml").write_text(OWN.format(**home))
    monkeypatch.setenv("HOME_PPP", "s3cret")
    told = ("--time", "1s", "--interval", "500ms", "--ping", "0", "--no-picture")
    running = begin(tmp_path, "tcp", "--dut", "./home.yaml", *told)
    options = {"interface": "to-server", "user": "debian", "secret": "s3cret", "tun": "ppp0"}
    out = said = ""
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:  # as a home router tries again
            with PppEnd("the router", NetnsTransport(home["router"]), "client", options) as end:
                try:
                    end.wait_up(10)
                except DutError:
                    continue
                out, said = running.communicate(timeout=60)
                break
    finally:
        running.kill()
    assert running.returncode == 0, said
    assert "PPPoE: debian at 10.71.2.1" in said and "waiting for home to dial in as debian" in said
    assert "PPPoE   between DUT and server, MTU 1492" in out
    found = json.loads(next(tmp_path.glob("results/*/home/*.json")).read_text())
    assert len(found["legs"]) == 2 and "s3cret" not in json.dumps(found)
    assert not [name for name in devices(home["server"]) if name.startswith("tbppp")]
