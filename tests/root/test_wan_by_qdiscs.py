"""A WAN on the interfaces of a lab's router, of a rate alone (tbf, which more kernels have than netem)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from labs import document, lab_up, write_lab
from tools import trexbench

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.core.errors import DutError
from trexbench.core.tcp.plan import Leg, TcpPlan, Way
from trexbench.core.tcp.wan import parse_wan
from trexbench.session.process import RunClock
from trexbench.session.tcp.bench import HostsBench
from trexbench.session.tcp.hosts import open_endpoints
from trexbench.session.temporary import Buffers
from trexbench.session.wan import open_line, require_wan

PREFIX = f"tbw{os.getpid()}"
WAN_HOST = f"{PREFIX}-between"
RAMP = ("ramp", "--dut", "./own.yaml", "--mode", "var2-64b", "--bidir", "--no-picture", "--sample", "200ms")
STEPS = ("--warmup", "1kpps:1s", "--ramp-to", "4kpps", "--ramp-duration", "4s", "--hold", "1s", "--confirm", "1s")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a lab that stays; what runs here finds that lab, too."""
    folder = tmp_path_factory.mktemp("qdiscs")
    write_lab(folder, PREFIX)
    with pytest.MonkeyPatch.context() as patched, lab_up(folder):
        patched.setenv("TREXBENCH_RUN_DIR", str(folder / "run"))
        patched.setenv("TREXBENCH_STATE_DIR", str(folder / "state"))
        yield folder


@pytest.fixture
def config(place: Path) -> DutConfig:
    """lab-linux behind 50 Mbit/s, under names of its own, and up; skipped where this kernel has no tbf."""
    found = load_dut(str(place / "own.yaml")).with_wan(parse_wan("50mbit"))
    try:
        require_wan(found)
    except DutError as error:
        pytest.skip(str(error))
    return found


def shown(space: str = f"{PREFIX}-dut") -> str:
    """The qdiscs of the router's interfaces, or of another namespace's."""
    argv = ["ip", "netns", "exec", space, "tc", "qdisc", "show"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout


def test_it_limits_both_ways_while_it_is_there(config: DutConfig) -> None:
    """No more than its rate passes; what is in its queue at the end is not counted."""
    with open_endpoints(replace(config, wan=None), "test") as found:
        before, bench = shown(), HostsBench(found, Buffers(found.hosts), RunClock())
        for text, way in (("50mbit", Way.FORWARD), ("20mbit", Way.REVERSE)):
            with open_line(config.with_wan(parse_wan(text)), found.dut, "test"):
                assert shown().count("qdisc tbf 7b0:") == 2 and found.dut.journal.entries()
                leg = Leg(way, 4)
                read = bench.flow(leg, TcpPlan((leg,), time_s=1, interval_s=0.5), lambda *_: None, None)
                assert read.error is None
                last = (read.server if way is Way.FORWARD else read.client)[-1]
                carried_bps = last.streams[0].payload_bytes * 8 / last.at_s
                assert 1e6 < carried_bps < 1.25e6 * int(text.removesuffix("mbit")), f"{text} {way}"
                observed = found.dut.observed.observe()
                assert sum(one.total for one in observed.drops if "qdisc" in one.name) == 0
            assert shown() == before


def test_packets_go_through_the_line_too(place: Path) -> None:
    """More than its rate is not offered: losing it is not the DUT's fault."""
    done = trexbench(place, *RAMP, *STEPS, "--wan", "100mbit", timeout_s=150)
    assert done.returncode in (0, 1), done.stderr
    run = document(place)
    assert run["over"]["wan"]["rate_bps"] == 100e6 and run["over"]["wan_by"] == "tbf"
    (warning,) = [one["text"] for one in run["warnings"] if one["code"] == "wan" and "in the path" in one["text"]]
    assert warning.startswith("a WAN of 100 Mbit/s, by ") and run["status"] == "complete"
    assert {offer["line_rate_bps"] for offer in run["plan"]["offers"]} == {100e6}
    refused = trexbench(place, *RAMP, *STEPS, "--wan", "100mbit", "--sim")
    assert refused.returncode == 2 and "simulated packets pass none" in refused.stderr


def be_killed(config: Path, wanted: str, space: str = f"{PREFIX}-dut") -> None:
    """Open the line of this config, with 50 Mbit/s, as a run does, which kill -9 ends."""
    code = f"""
import os
from trexbench.config.lookup import load_dut
from trexbench.core.tcp.wan import parse_wan
from trexbench.dut import Wanted
from trexbench.dut.tcp_hosts import router_wanted
from trexbench.session.dut import connect_dut
from trexbench.session.wan import open_line
config = load_dut({str(config)!r}).with_wan(parse_wan("50mbit"))
with connect_dut({wanted}(config), "test") as dut, open_line(config, dut, "test"):
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    assert shown(space).count("qdisc tbf 7b0:") == 2


@pytest.fixture
def between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A router that is configured by hand, whose endpoints nobody can reach, and a WAN host that is a namespace."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    path, name = tmp_path / "box.yaml", WAN_HOST
    path.write_text(f"""
driver: none
endpoints:
  client: {{transport: {{type: ssh, host: 192.0.2.1}}, interface: e, address: 10.1.0.2/24, gateway: 10.1.0.1}}
  server: {{transport: {{type: ssh, host: 192.0.2.2}}, interface: e, address: 10.2.0.2/24, gateway: 10.2.0.1}}
wan: 50mbit
wan_host: {{transport: {{type: netns, namespace: {name}}}, interfaces: [w0, w1]}}
""")
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=30)
    try:
        argv = ["ip", "-n", name, "link", "add", "w0", "type", "veth", "peer", "name", "w1"]
        subprocess.run(argv, check=True, timeout=30)
        try:
            require_wan(load_dut(str(path)))
        except DutError as error:
            pytest.skip(str(error))
        yield path
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True, timeout=30)


def test_a_wan_host_of_its_own_has_it_and_is_reverted_with_the_dut(between: Path, tmp_path: Path) -> None:
    before = shown(WAN_HOST)
    be_killed(between, "Wanted", WAN_HOST)
    reverted = trexbench(tmp_path, "dut", "revert", str(between))
    assert reverted.returncode == 0 and "2 reverted" in reverted.stdout, reverted.stderr
    assert shown(WAN_HOST) == before
