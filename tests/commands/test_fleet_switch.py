"""Two testers, one DUT and a switch between: nights, and by how much the testers differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import fleet_here
from fake_switch import section_of, vlans_of
from skewed import LOW, measure_skewed
from tools import documents, fake_server, folder_with, succeed, trexbench

from suites import PLAN
from trexbench.config.fleet import read_fleet
from trexbench.core import errors
from trexbench.core.errors import BenchError
from trexbench.fleet.calibrate import FleetComparison
from trexbench.fleet.schedule import FleetNight
from trexbench.results.nights import load_ratios
from trexbench.review.find import all_rows
from trexbench.session.keep import Output
from trexbench.session.options import Setup
from trexbench.suite.night import NightOptions, read_jobs, run_suite

pytest.importorskip("distributed")

BOX = """\
driver: none
speed: 10gbit
ports: [{tester: 0, interface: lan}, {tester: 1, interface: wan}]
twin: {workers: 1, clock: 1ghz, cycles_per_packet: 500}
"""
WIRING = """\
testers:
  - {name: t1, ports: [0, 1]}
  - {name: t2, ports: [0, 1]}
duts: [box]
links:
  - [t1:0, sw1:p1]
  - [t1:1, sw1:p2]
  - [t2:0, sw1:p3]
  - [t2:1, sw1:p4]
  - [box:lan, sw1:p5, 101]
  - [box:wan, sw1:p6, 102]
"""
QUICK = "plan: {warmup: 1kpps:2s, sample: 500ms, ramp_to: 40%, ramp_duration: 4s, hold: 2s, confirm: 0s}"
SHORT = "plan: {warmup: 10kpps:400ms, ramp_duration: 2s, hold: 400ms, confirm: 0s, sample: 200ms, window: 200ms}"
SUITE = f"duts: [box]\nmodes: [64b]\ndirections: [uni, bidir]\n{QUICK}\n"
DATE = "2026-11-21"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dut_configs").mkdir()
    (tmp_path / "dut_configs" / "box.yaml").write_text(BOX)
    return folder_with(tmp_path, one=SUITE)


def states(table: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Each command of the switch, with the VLANs of all ports after it."""
    for line in Path(f"{table}.log").read_text().splitlines():
        verb, _, _, vlans = line.split(" ", 3)
        yield verb, json.loads(vlans)


def test_a_night_through_a_switch_joins_ports_for_each_cell(folder: Path) -> None:
    """The tester's server moves nothing, so that the switch is set as for a real DUT."""
    table = folder_with(folder, one=SUITE.replace(QUICK, SHORT)) / "table"
    with fake_server() as server, fleet_here(folder, WIRING + section_of(table)) as fleet:
        fleet.start_tester("t1", words=server.where)
        done = trexbench(folder, "suite", "run", "one", "--date", DATE, "-q", "--fleet", "fleet.yaml", "--json")
        assert done.returncode == 0, done.stderr + fleet.log("t1")
        testers = [one["command"]["tester"] for one in documents(folder)]
    assert testers == ["t1", "t1"], "as planned"
    full = [vlans for verb, vlans in states(table) if verb == "set" and len(vlans) == 4]
    assert full == [{"p1": 101, "p5": 101, "p2": 102, "p6": 102}] * 2
    assert vlans_of(table) == {} and [verb for verb, _ in states(table)].count("unset") == 8
    assert not list(folder.glob("results/.fleet/switches/*/changes/*"))


def test_the_plan_says_through_which_ports_and_vlans(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(WIRING + section_of(folder / "table"))
    plan = succeed(folder, "fleet", "plan", "one", "--sim").stdout.splitlines()
    assert plan[-4:] == [
        "through  sw1: t1:0 - p1, VLAN 101, p5 - box:lan",
        "through  sw1: t1:1 - p2, VLAN 102, p6 - box:wan",
        "through  sw1: t2:0 - p3, VLAN 101, p5 - box:lan",
        "through  sw1: t2:1 - p4, VLAN 102, p6 - box:wan",
    ]
    cells = json.loads(succeed(folder, "fleet", "plan", "one", "--sim", "--json").stdout)["cells"]
    assert [cell["through"] for cell in cells] == [[line.removeprefix("through  sw1: ") for line in plan[-4:-2]]] * 2
    unwired = trexbench(folder, "fleet", "plan", "netgate-6100", "--sim")
    assert unwired.returncode == errors.ConfigError.exit_code and "has links to all ports of" in unwired.stdout


@pytest.mark.nightly
def test_testers_are_compared_and_their_nights_joined(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One measures 3 % low: nights by both are one history once that is known. The command goes on where it ended."""
    monkeypatch.chdir(folder)
    text = SUITE.replace(QUICK, PLAN).replace("uni, bidir", "uni")
    folder_with(folder, one=text)
    wiring = folder / "fleet.yaml"
    wiring.write_text(WIRING + section_of(folder / "table"))
    fleet, results = read_fleet(wiring, folder / "dut_configs"), folder / "results"
    setup = Setup(sim=True, speedup=10_000.0, configs_dir=folder / "dut_configs")
    said = list[str]()

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 1:
            with pytest.raises(
                errors.TesterBusy, match=r"this comparison of testers is under way in .*results \(process "
            ):
                FleetComparison(FleetNight("one", fleet), jobs, replace(options, say=pytest.fail), 3).run()
        if len(said) == 4:
            raise BenchError("interrupted")

    options = NightOptions(results, setup, Output(results=results, warn=pytest.fail), say, DATE)
    _, jobs = read_jobs("one", setup)
    with pytest.raises(BenchError, match="interrupted"):
        FleetComparison(FleetNight("one", fleet, measure_skewed), jobs, options, 3).run()
    ratios = FleetComparison(FleetNight("one", fleet, measure_skewed), jobs, options, 3).run()
    assert said[4].startswith("goes on; to measure all anew, remove ")
    assert [line.endswith(": measured before") for line in said[5:]] == [True, True, True, False, False, False]
    (rate,) = [one for one in ratios if one.metric == "total_pps"]
    assert (rate.tester, rate.reference, rate.count, rate.dut) == ("t2", "t1", 3, "box")
    assert rate.ratio == pytest.approx(LOW, abs=0.005) and rate.uncertainty < 0.01
    assert load_ratios(results) == ratios and not (folder / "table").exists()
    assert [path.name for path in (results / ".fleet").iterdir() if path.name.startswith("testers-")] == []
    run_suite("one", NightOptions(results, setup, options.output, options.say, DATE, by_fleet=FleetNight("one", fleet)))
    assert [row.tester for row in all_rows(results, pytest.fail)] == [""], "no run of the calibration"
    assert not any((results / ".fleet" / "calibrations").iterdir())


@pytest.mark.nightly
def test_simulated_testers_do_not_differ(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(WIRING + section_of(folder / "table"))
    words = ("fleet", "calibrate", "one", "--sim", "--rounds", "4", "-q", "--only", "* uni*")
    done = succeed(folder, *words)
    assert "1.0000" in done.stdout and "t2" in done.stdout and done.stderr == ""
    assert len(table := done.stdout.splitlines()) > 1 and all(", simulated " in line for line in table[1:])
    alone = trexbench(folder, *words, "--fleet", "local:1")
    assert alone.returncode == 2 and "no two testers that are there reach one DUT" in alone.stderr
