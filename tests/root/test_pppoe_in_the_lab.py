"""``trexbench tcp --variant pppoe``: the lab's router dials in to the server's namespace, real TCP goes through NAT."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import document, lab_up, write_lab
from tools import begin, trexbench
from wire import devices, lacks_pppoe

from trexbench.core.errors import DutError
from trexbench.endpoint.held import PppEnd
from trexbench.transport import NetnsTransport

pytestmark = pytest.mark.skipif(bool(lacks_pppoe()), reason=lacks_pppoe())

LINE_BPS = 4e6
PREFIX = f"tbpl{os.getpid()}"
TCP = ("tcp", "--dut", "./own.yaml", "--variant", "pppoe", "--no-picture", "--ping", "0")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("pppoe")
    write_lab(folder, PREFIX, "{offloads: packet, line: 4mbit}", "variants: {pppoe: {pppoe: true}}\n")
    with lab_up(folder):
        yield folder


@pytest.mark.measures
def test_both_families_leave_what_pppoe_needs(place: Path) -> None:
    """A line carries full segments: those of the session are 8 bytes smaller, and its frames as long as others.

    A busy machine may keep it from carrying a tenth of that, and never lets it carry more: without PPPoE it were 1.006.
    """
    done = trexbench(place, *TCP, "--time", "3s", "--omit", "1s", "--reverse", "--ip", "both", timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert "PPPoE: trexbench at 100.66.2.1, chap, MTU 1492" in done.stderr + done.stdout
    run = document(place)
    assert run["status"] == "complete" and len(run["legs"]) == 2
    assert run["setup"]["pppoe"] is True and run["setup"]["mtu"] == 1492
    session = run["endpoints"]["server"]["pppoe"]
    assert (session["own"], session["peer"], session["auth"]) == ("100.66.2.2", "100.66.2.1", "chap")
    for leg, flow, headers in zip(run["legs"], run["analysis"], (40, 60), strict=True):
        segment = 1492 - headers - 12  # of time stamps
        assert {leg[end][-1]["streams"][0]["info"]["snd_mss"] for end in ("client", "server")} == {segment}
        assert 0.9 < flow["received_bps"] / (LINE_BPS * segment / 1538) < 1.005, flow
    assert "secret" not in json.dumps(run["endpoints"])


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
    asked = ("--time", "1s", "--interval", "500ms", "--ping", "0", "--no-picture")
    running = begin(tmp_path, "tcp", "--dut", "./home.yaml", *asked)
    options = {"interface": "to-server", "user": "debian", "secret": "s3cret", "tun": "ppp0"}
    out = said = ""
    try:
        until = time.monotonic() + 300  # an emulated processor takes a minute to begin
        while time.monotonic() < until:  # as a home router tries again
            with PppEnd("the router", NetnsTransport(home["router"]), {"role": "client", **options}) as end:
                try:
                    end.wait_up(30)
                except DutError:
                    continue
                out, said = running.communicate(timeout=200)
                break
    finally:
        running.kill()
    assert running.returncode == 0, said
    assert "PPPoE: debian at 10.71.2.1" in said and "waiting for home to dial in as debian" in said
    assert "PPPoE   between DUT and server, MTU 1492" in out
    found = json.loads(next(tmp_path.glob("results/*/home/*.json")).read_text())
    assert len(found["legs"]) == 2 and "s3cret" not in json.dumps(found)
    assert not [name for name in devices(home["server"]) if name.startswith("tbppp")]
