"""Doctor's checks of a machine and of a tester: each good, doubtful or bad for a cause, with a remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trexbench.config.lookup import load_dut
from trexbench.core.checks import Area, Check, State, exit_code, failed
from trexbench.core.errors import GeneratorError
from trexbench.doctor.examine import check_lab, judge_clock, judge_tester
from trexbench.doctor.host import HostFacts, check_results, check_software, judge_host, read_host
from trexbench.generator.trex.connect import ServerFacts
from trexbench.generator.trex.ports import lack_of_destination, nominal_bps

GOOD_HOST = HostFacts(
    cpus=8,
    isolated=(2, 3, 4),
    busy=0.01,
    stolen=0.0,
    governors={"performance": 8},
    huge_pages=1024,
    huge_page_bytes=2 << 20,
    irqbalance=False,
    clocksource="tsc",
    synchronised=True,
    numa_nodes=1,
)


def states(checks: list[Check]) -> dict[str, State]:
    return {check.what: check.state for check in checks}


def test_a_machine_set_up_for_measuring_is_good_in_all() -> None:
    checks = list(judge_host(GOOD_HOST, generates=True))
    assert {one.state for one in checks} == {State.GOOD} and len(checks) == 7
    assert not any(one.remedy for one in checks)


@pytest.mark.parametrize(
    ("change", "what", "word"),
    [
        ({"isolated": ()}, "isolated cores", "isolcpus"),
        ({"busy": 0.3}, "other load", "end what runs"),
        ({"stolen": 0.05}, "other load", "virtual CPUs"),
        ({"busy": None}, "other load", "idle"),
        ({"governors": {"performance": 6, "powersave": 2}}, "CPU governor", "cpupower"),
        ({"huge_pages": 0}, "huge pages", "nr_hugepages"),
        ({"irqbalance": True}, "irqbalance", "systemctl"),
        ({"clocksource": "hpet"}, "clock source", "tsc"),
        ({"synchronised": False}, "time", "chrony"),
        ({"synchronised": None}, "time", "date"),
    ],
)
def test_each_doubt_has_its_remedy(change: dict[str, Any], what: str, word: str) -> None:
    checks = list(judge_host(replace(GOOD_HOST, **change), generates=True))
    (doubt,) = [one for one in checks if one.state is not State.GOOD]
    assert (doubt.what, doubt.state) == (what, State.DOUBTFUL) and word in doubt.remedy


def test_a_machine_that_sends_nothing_needs_no_cores_and_pages() -> None:
    checks = list(judge_host(replace(GOOD_HOST, isolated=(), huge_pages=None, irqbalance=True), generates=False))
    assert {one.state for one in checks} == {State.GOOD} and "huge pages" not in states(checks)


def test_this_machine_can_be_read() -> None:
    facts = read_host()
    assert facts.cpus >= 1 and facts.busy is not None and 0 <= facts.busy <= 1 and facts.clocksource
    assert states(list(check_software(None))) == {"Python": State.GOOD, "STL client": State.GOOD}


def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    assert [one.state for one in check_results(tmp_path / "new" / "results")] == [State.GOOD] * 2
    for place in (Path("/proc/results"), tmp_path / ("x" * 300)):
        (bad,) = check_results(place)
        assert (bad.area, bad.state, exit_code([bad])) == (Area.RESULTS, State.BAD, 9) and "--results" in bad.remedy


def port(index: int, **changes: Any) -> dict[str, Any]:
    return {"index": index, "driver": "net_ice", "pci_addr": f"0000:17:00.{index}", "numa": 0, **changes}


def status(**changes: Any) -> dict[str, Any]:
    """Return what a TRex v3.08 answers to get_port_status."""
    layers = {"ether": {"src": "b2:01:a9:25:52:63", "state": "configured"}, "ipv4": {"state": "none"}}
    attributes = {"link": {"up": True}, "speed": 10.0, "layer_cfg": layers}
    attributes.update(changes.pop("attr", {}))
    return {"owner": "", "state": "IDLE", "attr": attributes, **changes}


def judged(ports: list[dict[str, Any]], *of_ports: dict[str, Any], speed: float | None = 1e10) -> list[Check]:
    system = {"core_type": "Xeon", "dp_core_count": 4, "ports": ports}
    facts = ServerFacts("lbr-trex-client 3.4.0", {"version": "v3.08", "mode": "STL"}, system, dict(enumerate(of_ports)))
    return list(judge_tester("trex1:4501", facts, (0, 1), speed))


@pytest.mark.parametrize(
    ("described", "told", "what", "state"),
    [
        (port(1), status(attr={"link": {"up": False}}), "port 1 link", State.BAD),
        (port(1), status(owner="somebody"), "port 1 owner", State.BAD),
        (port(1), status(captured=True), "port 1 capture", State.BAD),
        (port(1), status(state="TX"), "port 1 state", State.BAD),
        (port(1), status(attr={"speed": 1.0}), "port 1 speed", State.DOUBTFUL),
        (port(1), status(attr={"layer_cfg": {"ether": {"state": "unconfigured"}}}), "port 1 destination", State.BAD),
        (port(1), status(attr={"layer_cfg": {"ipv4": {"state": "unresolved"}}}), "port 1 destination", State.BAD),
        (port(1), status(attr={"fc": {"mode": 3}}), "port 1 flow control", State.DOUBTFUL),
        (port(1, numa=1), status(), "NUMA", State.DOUBTFUL),
        (port(1, is_virtual=True, driver="net_af_packet"), status(), "driver", State.DOUBTFUL),
        (port(1, is_virtual=True, driver="net_simulated"), status(), "driver", State.DOUBTFUL),
        (port(2), status(), "port 1", State.BAD),
    ],
)
def test_what_is_wrong_with_a_port(described: dict[str, Any], told: dict[str, Any], what: str, state: State) -> None:
    checks = judged([port(0), described], status(), told)
    found = {one.what: one for one in checks if one.state is not State.GOOD}
    assert found[what].state is state and found[what].remedy and set(found) == {what}
    assert exit_code(checks) == (5 if state is State.BAD else 0)


@pytest.mark.parametrize(("built_by", "words"), [("hhaim", "trex_cfg.yaml"), ("trexbench", "serve --dst-mac")])
def test_the_remedy_for_no_destination_is_the_servers_own(built_by: str, words: str) -> None:
    layers = {"layer_cfg": {"ether": {"state": "unconfigured"}}}
    assert words in str(lack_of_destination(status(attr=layers), {"built_by": built_by}))


@pytest.mark.parametrize(("driver", "gbps", "known"), [
    ("net_virtio", 200.0, 0.0), ("net_virtio", 100.0, 0.0), ("net_iavf", 100.0, 1e11), ("net_ice", 200.0, 2e11),
])  # fmt: skip
def test_what_trex_cuts_a_virtual_ports_speed_to_is_no_speed(driver: str, gbps: float, known: float) -> None:
    described = port(0, driver=driver, is_virtual=driver != "net_ice")
    assert nominal_bps(described, status(attr={"speed": gbps})) == known


def test_the_exit_code_is_the_first_bad_ones() -> None:
    bad = [failed(area, "x", GeneratorError("no", "do")) for area in (Area.DUT, Area.LAB)]
    assert exit_code([Check(Area.HOST, "y", State.DOUBTFUL, "z"), *bad]) == 6
    assert bad[0].to_document() == {"area": "DUT", "what": "x", "state": "bad", "found": "no: do", "remedy": ""}


@pytest.mark.parametrize(
    ("said", "state"),
    [("1000.5\n", State.GOOD), ("1009.1", State.DOUBTFUL), ("?", State.DOUBTFUL), ("1000.%N", State.GOOD)],
)
def test_the_duts_clock_is_compared(said: str, state: State) -> None:
    assert judge_clock(said, 1000.0, 0.2).state is state
    assert judge_clock("999.9", 1000.0, 0.2).found == "its clock is 0 s behind this machine's"


def test_a_machine_that_is_no_linux_hosts_no_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (found,) = check_lab(load_dut(str(Path(__file__).parents[2] / "dut_configs/lab-linux.yaml")), embedded=True)
    assert found.state is State.BAD and "needs root" in found.found
