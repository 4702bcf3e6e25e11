"""Every kind of DUT, frame and port, simulated, from config to report, at night; by day a few stand for the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from routed import routed
from tools import documents, folder_with, succeed

CLOCK_HZ = 2.5e9

BARE = "driver: none\nports: [{tester: 0}, {tester: 1}]\n"
COMMANDS = """\
driver: commands
transport: {type: ssh, host: router.example.net}
ports: [{tester: 0, interface: eth1}, {tester: 1, interface: eth2}]
commands:
  apply:
    - what: forwarding
      run: [sysctl, -w, net.ipv4.ip_forward=1]
      check: [sysctl, -n, net.ipv4.ip_forward]
      matches: ^1$
      undo: [sysctl, -w, net.ipv4.ip_forward=0]
"""


def linux(ports: int = 2, vlan: str = "", more: str = "") -> str:
    return routed("transport: {type: ssh, host: router.example.net}", ports, vlan) + more


@dataclass(frozen=True)
class Kind:
    """frame_bytes: with tags and FCS. pps: what the twin carries in all. line_rate_pps: of a port."""

    config: str
    mode: str = "var2-64b"
    frame_bytes: int = 64
    pps: float = 1e6
    ports: int = 2
    line_rate_pps: float = 14.881e6


KINDS = {
    "driver none": Kind(BARE),
    "driver commands": Kind(COMMANDS),
    "IPv6": Kind(linux(), "var2-64b-v6", 78, line_rate_pps=12.755e6),
    "one tag": Kind(linux(vlan=" vlan: 100,"), frame_bytes=68, line_rate_pps=14.205e6),
    "two tags": Kind(linux(vlan=" vlan: [100, 200],"), frame_bytes=72, line_rate_pps=13.587e6),
    "two tags and IPv6": Kind(linux(vlan=" vlan: [100, 200],"), "var2-64b-v6", frame_bytes=86, line_rate_pps=11.792e6),
    "four ports": Kind(linux(4), ports=4),
    "four ports of IPv6": Kind(linux(4), "var2-64b-v6", 78, ports=4, line_rate_pps=12.755e6),
    "25 Gbit/s": Kind(linux(more="speed: 25gbit\n"), pps=2.5e6, line_rate_pps=37.202e6),
    "100 Gbit/s": Kind(linux(more="speed: 100gbit\n"), pps=10e6, line_rate_pps=148.81e6),
    "9000 B": Kind(linux(), "var2-9000b", 9000, 50e3, line_rate_pps=138.58e3),
}


SHORT = ("--ramp-duration", "60", "--hold", "4", "--confirm", "2", "--latency", "2s")


def some(*by_day: str) -> pytest.MarkDecorator:
    """All kinds at night, these by day."""
    marked = [pytest.param(name, marks=[] if name in by_day else pytest.mark.nightly) for name in KINDS]
    return pytest.mark.parametrize("kind", marked, indirect=True)


@pytest.fixture
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    found = KINDS[request.param]
    twin = f"twin: {{workers: 1, clock: {CLOCK_HZ / 1e9}ghz, cycles_per_packet: {CLOCK_HZ / found.pps}}}\n"
    (tmp_path / "dut_configs").mkdir()
    (tmp_path / "dut_configs" / "box.yaml").write_text(found.config + twin)
    return found


def assert_measured(found: Any, kind: Kind, both: bool) -> None:
    """Frames, ports and line rate are the kind's, and the directions carried together what the twin does."""
    assert found["status"] == "complete" and found["generator"]["simulated"]
    offers, results = found["plan"]["offers"], found["analysis"]
    assert len(offers) == len(results) == (kind.ports if both else kind.ports // 2)
    assert {one["mean_frame_bytes"] for one in offers} == {kind.frame_bytes}
    assert [one["line_rate_pps"] for one in offers] == pytest.approx([kind.line_rate_pps] * len(offers), rel=1e-4)
    assert {one["limit"] for one in results} == {"dut"}
    assert sum(one["maximum_pps"] for one in results) == pytest.approx(found["total_pps"])
    # A second of the ramp is half of the rate that each direction of four ports carries.
    assert found["total_pps"] == pytest.approx(kind.pps, rel=0.03 if kind.ports == 4 else 0.02)


def measured_one_way(folder: Path, kind: Kind, verb: str, *options: str) -> Any:
    quick = ("--speedup", "10000", "--no-picture", "-q")
    succeed(folder, verb, "--dut", "box", "--mode", kind.mode, "--sim", *quick, *options)
    (found,) = documents(folder)
    assert_measured(found, kind, both=False)
    return found


@some("one tag", "four ports")
def test_it_is_searched_one_way(tmp_path: Path, kind: Kind) -> None:
    measured_one_way(tmp_path, kind, "search")


@some("driver commands", "two tags and IPv6")
def test_it_is_ramped_one_way(tmp_path: Path, kind: Kind) -> None:
    found = measured_one_way(tmp_path, kind, "ramp", *SHORT)
    assert len(found["latency"]) == 3 * len(found["analysis"])
    assert all(0 < one["received"] == one["sent"] for one in found["latency"])
    sent = found["samples"][5]["ports"]["0"]
    assert sent["obytes"] == kind.frame_bytes * sent["opackets"] > 0


@some()
def test_suites_of_ramps_and_of_searches_measure_it_both_ways(tmp_path: Path, kind: Kind) -> None:
    cells = f"duts: [box]\nmodes: [{kind.mode}]\ndirections: [bidir]\n"
    to = min(97.0, 400 * kind.pps / kind.ports / kind.line_rate_pps)  # four times what the DUT carries, for fine steps
    short = f"plan: {{ramp_to: {to:.1f}%, ramp_duration: 60s, hold: 4s, confirm: 2s}}\n"
    folder_with(tmp_path, ramps=cells + short, searches=f"method: search\n{cells}")
    for name in ("ramps", "searches"):
        succeed(tmp_path, "suite", "run", name, "--sim")
    found = documents(tmp_path)  # both may begin in one second, and go by that
    assert sorted(one["plan"]["kind"] for one in found) == ["ramp", "search"]
    for one in found:
        assert_measured(one, kind, both=True)
    succeed(tmp_path, "report", "--output", "page")


def test_one_pair_of_four_ports_is_measured(tmp_path: Path) -> None:
    """Between networks of its own."""
    (tmp_path / "box.yaml").write_text(linux(4) + "twin: {workers: 1, clock: 2.5ghz, cycles_per_packet: 2500}\n")
    words = ("--mode", "64b", "--bidir", "--sim", "--ports", "2,3", "--no-picture", "--speedup", "10000")
    succeed(tmp_path, "search", "--dut", "box.yaml", *words)
    (found,) = documents(tmp_path)
    assert sorted(one["direction"] for one in found["analysis"]) == ["2->3", "3->2"]
    varied = {name: profile["varied"][0] for name, profile in found["profiles"].items()}
    assert varied["2->3"].startswith("IP.src 16.1.0.4") and varied["3->2"].startswith("IP.src 48.1.0.4")
