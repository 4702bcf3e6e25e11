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
from targets import NEEDS_ROOT
from tools import begin, trexbench

from trexbench.core.errors import DutError
from trexbench.endpoint import PppEnd
from trexbench.transport import NetnsTransport

pytestmark = [pytest.mark.root, NEEDS_ROOT]
TCP = ("tcp", "--dut", "lab-linux", "--variant", "pppoe", "--no-picture")


def result_of(folder: Path) -> dict[str, object]:
    (path,) = folder.glob("results/*/lab-linux/*.json")
    found: dict[str, object] = json.loads(path.read_text())
    return found


def test_both_families_go_through_the_session(tmp_path: Path) -> None:
    done = trexbench(tmp_path, *TCP, "--time", "3s", "--ping", "3", "--ip", "both", timeout_s=150)
    assert done.returncode == 0, done.stderr
    assert "PPPoE: trexbench at 100.66.2.1, chap, MTU 1492" in done.stderr + done.stdout
    found = json.loads(json.dumps(result_of(tmp_path)))
    assert found["status"] == "complete" and len(found["legs"]) == 4
    assert found["setup"]["pppoe"] is True and found["setup"]["mtu"] == 1492
    told = found["endpoints"]["server"]["pppoe"]
    assert (told["own"], told["peer"], told["auth"]) == ("100.66.2.2", "100.66.2.1", "chap")
    for leg, headers in zip(found["legs"], (40, 40, 60, 60), strict=True):
        for reading in (leg["client"][-1], leg["server"][-1]):
            info = reading["streams"][0]["info"]
            assert 500 < info["snd_mss"] <= 1492 - headers, "clamped to the session's MTU"
    assert all(summary["rate_bps"] > 20e6 for summary in found["summaries"])
    assert "secret" not in json.dumps(found["endpoints"])


def test_a_session_that_is_lost_is_told(tmp_path: Path) -> None:
    running = begin(tmp_path, *TCP, "--forward", "--time", "15s", "--ping", "0", "-q")
    try:
        until = time.monotonic() + 60
        while "tbppp0" not in links("tbx-server") and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(8)  # the ceiling is measured first
        for pid in programs("tbx-dut"):
            if b"trexbench-pppoe" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 6, said
    assert "PPPoE" in said and "Traceback" not in said
    assert not links("tbx-server") and not links("tbx-dut")


def links(namespace: str) -> str:
    return subprocess.run(["ip", "-n", namespace, "-br", "link"], capture_output=True, text=True, timeout=20).stdout


def programs(namespace: str) -> list[int]:
    done = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, timeout=20)
    return [int(pid) for pid in done.stdout.split()]


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
    names = {role: f"tbx-home-{role[0]}{os.getpid()}" for role in ("client", "router", "server")}

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
    told = ("--time", "2s", "--ping", "0", "--no-picture")
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
    assert not links(home["server"]).count("tbppp")
