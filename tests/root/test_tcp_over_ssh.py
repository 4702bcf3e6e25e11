"""``trexbench tcp`` on three hosts, each behind a sshd of its own: client, router and server in namespaces."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from labs import document
from sshd import WHY_NOT, Sshd, eventually, running_sshd
from tools import TREXBENCH, begin
from wire import ip

from trexbench.transport.ssh import CONFIG_ENV

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "runs")

PREFIX = f"tbh{os.getpid()}"
HOSTS = ("left", "router", "right")
DESK = f"{PREFIX}-desk"
"""Where trexbench runs: it reaches each host by a cable that carries no other traffic."""
CABLES = (("left", "c0", "router", "e0"), ("right", "s0", "router", "e1"), ("left", "b0", "right", "b0"))
CONFIG = """
driver: linux
transport: {{type: ssh, host: router}}
endpoints:
  client:
    transport: {{type: ssh, host: left}}
    interface: c0
    address: [100.66.1.2/24, "2001:2:0:661::2/64"]
    dut: {{interface: e0, address: [100.66.1.1/24, "2001:2:0:661::1/64"]}}
    {around}bypass: {{interface: b0, address: [100.66.3.1/24, "2001:2:0:663::1/64"]}}
  server:
    transport: {{type: ssh, host: right}}
    interface: s0
    address: [100.66.2.2/24, "2001:2:0:662::2/64"]
    dut: {{interface: e1, address: [100.66.2.1/24, "2001:2:0:662::1/64"]}}
    {around}bypass: {{interface: b0, address: [100.66.3.2/24, "2001:2:0:663::2/64"]}}
"""


@dataclass
class Bench:
    servers: dict[str, Sshd]
    folder: Path

    def begin(self, *arguments: str, around: bool = False) -> subprocess.Popen[str]:
        (self.folder / "three.yaml").write_text(CONFIG.format(around="" if around else "# "))
        inside = ("ip", "netns", "exec", DESK, *TREXBENCH)
        return begin(self.folder, *arguments, command=inside)

    def run(self, *arguments: str, around: bool = False) -> str:
        with self.begin(*arguments, around=around) as running:
            said, errors = running.communicate(timeout=120)
        assert running.returncode == 0, errors
        return said

    def document(self) -> dict[str, Any]:
        return document(self.folder, "three")

    def state(self) -> dict[str, str]:
        """Addresses, routes and settings of the hosts; without what only time changes."""
        names = ("forwarding", "accept_redirects", "send_redirects", "ip_forward")
        told = {}
        for host in HOSTS:
            space = f"{PREFIX}-{host}"
            parts = [ip("-o", "-n", space, *words) for words in (("address",), ("route",), ("-6", "route"))]
            settings = [f"--include={name}" for name in names]
            grep = ["grep", "-rs", *settings, ".", "/proc/sys/net/ipv4", "/proc/sys/net/ipv6"]
            parts.append(ip("netns", "exec", space, *grep))
            told[host] = "\n".join(line for part in parts for line in part.splitlines() if "fe80" not in line)
        return told

    def others(self, host: str) -> list[str]:
        """Return what runs there besides its sshd."""
        found = []
        for pid in ip("netns", "pids", f"{PREFIX}-{host}").split():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found += [words] if words and "sshd" not in words else []
        return found


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, Sshd]]:
    spaces = [DESK, *(f"{PREFIX}-{host}" for host in HOSTS)]
    with ExitStack() as stack:
        for space in spaces:
            ip("netns", "add", space)
            stack.callback(ip, "netns", "del", space)
            ip("-n", space, "link", "set", "lo", "up")
        for here, name, there, far in CABLES:
            ends = f"{name} type veth peer name {far} netns {PREFIX}-{there}"
            ip("-n", f"{PREFIX}-{here}", "link", "add", *ends.split())
        servers = {}
        for number, host in enumerate(HOSTS, 1):
            space = f"{PREFIX}-{host}"
            ip("-n", DESK, "link", "add", f"m{number}", "type", "veth", "peer", "name", "m0", "netns", space)
            for place, interface, own in ((DESK, f"m{number}", 1), (space, "m0", 2)):
                ip("-n", place, "address", "add", f"100.67.{number}.{own}/24", "dev", interface)
                ip("-n", place, "link", "set", interface, "up")
            address = f"100.67.{number}.2"
            servers[host] = stack.enter_context(running_sshd(host=host, namespace=space, address=address))
        yield servers


@pytest.fixture(scope="module")
def bench(hosts: dict[str, Sshd], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Keep what a run has set for the next one, and revert it when all are over."""
    folder = tmp_path_factory.mktemp("three")
    config = folder / "ssh_config"
    config.write_text("".join(one.client_config.read_text() for one in hosts.values()))
    made = Bench(hosts, folder)
    before = made.state()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(CONFIG_ENV, str(config))
        yield made
        made.run("dut", "revert", "./three.yaml")
    assert made.state() == before


@pytest.fixture(autouse=True)
def nothing_is_left(bench: Bench) -> Iterator[None]:
    yield
    eventually(lambda: not any(bench.others(host) for host in HOSTS), "nothing is left on the hosts", 20)


SHORT = ("tcp", "--dut", "./three.yaml", "--time", "1s", "--interval", "500ms", "--ping", "1", "-q", "--no-picture")


@pytest.mark.nightly
def test_three_hosts_are_configured_measured_and_reverted(bench: Bench) -> None:
    """With a cable around the router, which tells the hosts' own ceiling."""
    before = bench.state()
    assert bench.run("dut", "plan", "three.yaml", around=True).strip()
    said = bench.run(*SHORT, "--both", around=True)
    found = bench.document()
    assert found["status"] == "complete" and [leg["leg"]["way"] for leg in found["legs"]] == ["forward", "reverse"]
    assert found["dut"]["attested"] and all(one["attested"] for one in found["endpoints"].values())
    assert len(found["pings"]) == 3 and all(one["times_s"] for one in found["pings"])
    assert len(found["ceilings"]) == 2 and "is unknown" not in said
    assert all(leg["dut"] and not leg["error"] for leg in found["legs"])
    assert not bench.servers["left"].sessions()
    assert bench.state() != before
    bench.run("dut", "revert", "./three.yaml")
    assert bench.state() == before
