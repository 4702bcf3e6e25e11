"""A WAN on the interfaces of a lab's router, of a rate alone (tbf, which more kernels have than netem)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tools import trexbench

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.core.errors import DutError
from trexbench.core.tcp.model import Leg, TcpPlan, Way
from trexbench.core.tcp.wan import parse_wan
from trexbench.lab import Lab, LabSpec, down
from trexbench.session.buffers import Buffers
from trexbench.session.endpoints import open_endpoints
from trexbench.session.netem import netem_line
from trexbench.session.opening import RunClock
from trexbench.session.tcp.bench import HostsBench
from trexbench.session.wan import NETEM, WanUse, carrier_of, find_wan

ROOT = Path(__file__).parents[2]
PREFIX = f"tbw{os.getpid()}"

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes network namespaces"),
]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DutConfig]:
    """lab-linux behind 50 Mbit/s, under names of its own, and up; skipped where this kernel has no tbf."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    text, path = (ROOT / "dut_configs/lab-linux.yaml").read_text(), tmp_path / "box.yaml"
    kept = [line for line in text.splitlines() if not line.startswith(("  sysctls:", "    net.core."))]
    path.write_text("\n".join(kept).replace("  prefix: tbx ", f"  prefix: {PREFIX} ") + "\n")
    found = load_dut(str(path)).with_wan(parse_wan("50mbit"))
    Lab(LabSpec.from_config(found)).up()
    try:
        if find_wan(found).by != NETEM:
            pytest.skip("this kernel has no tbf")
        yield found
    finally:
        down(PREFIX, force=True)


def shown() -> str:
    """The qdiscs of the router's interfaces."""
    argv = ["ip", "netns", "exec", f"{PREFIX}-dut", "tc", "qdisc", "show"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout


def test_it_limits_both_ways_while_it_is_there(config: DutConfig) -> None:
    with open_endpoints(replace(config, wan=None), "test") as found:
        before, bench, rates = shown(), HostsBench(found, Buffers(found.hosts), RunClock()), {}
        with netem_line(config, found.dut, "test") as line:
            assert shown().count("qdisc tbf 7b0:") == 2 and found.dut.journal.entries()
            for text in ("50mbit", "20mbit"):
                line.set(parse_wan(text))
                for way in (Way.FORWARD, Way.REVERSE):
                    leg = Leg(way, 4)
                    read = bench.flow(leg, TcpPlan((leg,), time_s=2, interval_s=0.5), lambda *_: None, False)
                    assert read.error is None
                    rates[text, way] = read.server[-1].streams[0].payload_bytes * 8 / 2
            counts = line.counts()
            drops = sum(one.total for one in found.dut.observed.observe().drops if "qdisc" in one.name)
        print({f"{text} {way}": f"{bps / 1e6:.1f} Mbit/s" for (text, way), bps in rates.items()}, counts, drops)
        assert shown() == before
        for (text, _), bps in rates.items():
            assert 2e6 < bps < 1.25e6 * int(text.removesuffix("mbit")), "what is in its queue at the end is not counted"
        assert set(counts) == {f"tbf on {name}" for name in interfaces(config)} and drops == 0


def interfaces(config: DutConfig) -> tuple[str, ...]:
    carrier = carrier_of(config)
    assert carrier is not None
    return carrier.interfaces


def test_a_qdisc_of_somebody_elses_is_refused_and_stays(config: DutConfig) -> None:
    _, two = interfaces(config)
    with open_endpoints(replace(config, wan=None), "test") as found:
        argv = ("tc", "qdisc", "add", "dev", two, "root", "handle", "1:", "pfifo", "limit", "500")
        assert found.dut.transport.run(argv, 10).returncode == 0
        before = shown()
        with (
            pytest.raises(DutError, match=rf"{two} on .* has a qdisc of its own \(pfifo 1:\)"),
            netem_line(config, found.dut, "test"),
        ):
            pass
        assert shown() == before and f"pfifo 1: dev {two} root" in before


@pytest.mark.parametrize("by", ["the next run", "a revert"])
def test_what_a_killed_run_has_left_is_taken_away(config: DutConfig, tmp_path: Path, by: str) -> None:
    with open_endpoints(replace(config, wan=None), "test"):
        before = shown()
    code = f"""
import os
from trexbench.config.lookup import load_dut
from trexbench.core.tcp.wan import parse_wan
from trexbench.dut.endpoints import router_wanted
from trexbench.session.dut import connect_dut
from trexbench.session.netem import netem_line
config = load_dut({str(config.file)!r}).with_wan(parse_wan("50mbit"))
with connect_dut(router_wanted(config), "test") as dut, netem_line(config, dut, "test"):
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    assert shown().count("qdisc tbf 7b0:") == 2
    if by == "a revert":
        assert trexbench(tmp_path, "dut", "revert", str(config.file)).returncode == 0
    else:
        with open_endpoints(load_dut(str(config.file)), "test"):
            pass
    assert shown() == before


@pytest.fixture
def between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A router that is configured by hand, whose endpoints nobody can reach, and a WAN host that is a namespace."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    path, name = tmp_path / "box.yaml", f"{PREFIX}-dut"
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
        if isinstance(tried := attempt(path), DutError):
            pytest.skip(str(tried))
        yield path
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True, timeout=30)


def attempt(path: Path) -> WanUse | DutError:
    try:
        return find_wan(load_dut(str(path)))
    except DutError as error:
        return error


def test_a_wan_host_of_its_own_has_it_and_is_reverted_with_the_dut(between: Path, tmp_path: Path) -> None:
    before = shown()
    code = f"""
import os
from trexbench.config.lookup import load_dut
from trexbench.dut import Wanted
from trexbench.session.dut import connect_dut
from trexbench.session.netem import netem_line
config = load_dut({str(between)!r})
with connect_dut(Wanted(config), "test") as dut, netem_line(config, dut, "test"):
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    assert shown().count("qdisc tbf 7b0:") == 2
    reverted = trexbench(tmp_path, "dut", "revert", str(between))
    assert reverted.returncode == 0 and "2 reverted" in reverted.stdout, reverted.stderr
    assert shown() == before
