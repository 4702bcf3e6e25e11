"""``trexbench tcp`` through the kernel's router, in namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from labs import document, lab_up, slow_rules, write_lab
from tools import succeed

from trexbench.core.tcp.signs import BUSY

PREFIX = f"tbt{os.getpid()}"
VARIANTS = "variants: {slow: {firewall: slow.nft}, nat: {nat: true}}\n"
SHORT = ("--time", "1s", "--interval", "200ms", "--ping", "0", "-q", "--no-picture")


def measured(folder: Path, *arguments: str) -> tuple[str, dict[str, Any]]:
    """Run a test; return what it printed, and the document."""
    done = succeed(folder, "tcp", "--dut", "./own.yaml", *arguments, timeout_s=120)
    return done.stdout, document(folder)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert not list(Path("/run/netns").glob(f"{PREFIX}-*"))


@pytest.fixture(scope="module")
def stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lab that is up, and sends frame by frame: the router has most of the work."""
    folder = tmp_path_factory.mktemp("stays")
    (folder / "slow.nft").write_text(slow_rules(20))
    write_lab(folder, f"{PREFIX}s", "{offloads: packet}", VARIANTS)
    with lab_up(folder):
        yield folder
    assert not list(Path("/run/netns").glob(f"{PREFIX}s-*"))


@pytest.mark.measures
def test_a_line_is_the_limit(tmp_path: Path) -> None:
    """94.1 Mbit/s of payload are what 100 Mbit/s of Ethernet carry; a busy machine may lose some of it.

    Then the limit is another one, and the rate below that of the line. At most 15 %: the hosts need a tenth of a core.
    """
    write_lab(tmp_path, PREFIX, "{line: 100mbit}")
    said, found = measured(tmp_path, *SHORT, "--forward", "--omit", "1s")
    (flow,) = found["analysis"]
    assert flow["link_bps"] == pytest.approx(94.1e6, rel=0.001)
    assert 80e6 < flow["statistics"]["mean"] < 94.8e6
    assert flow["limit"] == "link" or flow["statistics"]["mean"] < 0.98 * flow["link_bps"]
    assert "forward IPv4 >= " in said


@dataclass(frozen=True)
class Natted:
    """A run with NAT. busy: the process that worked in the router's namespace all the time."""

    busy: int
    printed: str
    document: dict[str, Any]


@pytest.fixture(scope="module")
def natted(stays: Path) -> Natted:
    busy = [sys.executable, "-c", "import time\nend = time.monotonic() + 120\nwhile time.monotonic() < end: pass"]
    # Ten processes of each host are told: on a busy machine it has to take more than others do.
    with subprocess.Popen(["ip", "netns", "exec", f"{PREFIX}s-dut", "nice", "-n", "-5", *busy]) as beside:
        try:
            return Natted(beside.pid, *measured(stays, *SHORT, "--variant", "nat", "--forward"))
        finally:
            beside.kill()


def test_each_hosts_processes_are_its_own(natted: Natted) -> None:
    """All namespaces see one /proc; kernel threads are everybody's."""
    took = natted.document["legs"][0]["processes"]
    whose = {host: {one["process"]: one["whose"] for one in took[host]["took"]} for host in ("client", "server", "dut")}
    assert [whose[host].get(natted.busy) for host in whose] == ["elsewhere", "elsewhere", ""]
    ends = [[one for one in took[host]["took"] if one["role"] == "endpoint"] for host in ("client", "server")]
    assert [len(ones) for ones in ends] == [1, 1] and ends[0][0]["process"] != ends[1][0]["process"]
    assert all(one["cpus"] and one["waiting_s"] >= 0 for ones in ends for one in ones)
    assert natted.document["analysis"][0]["bits_per_cpu_second"] > 0
    (row,) = [one for one in natted.printed.splitlines() if f"process {natted.busy}," in one]
    assert "elsewhere" not in row


def test_nat_and_a_lab_left_as_it_is(natted: Natted, stays: Path) -> None:
    assert any("nat" in str(one) for one in natted.document["dut"]["applied"]) and natted.document["legs"][0]["dut"]
    assert "their own ceiling (IPv4) is unknown" in natted.printed and not natted.document["ceilings"]
    _, found = measured(stays, *SHORT, "--no-apply", "--forward")
    assert not found["dut"]["attested"] and not found["command"]["applied"]
    assert found["analysis"][0]["statistics"]["mean"] > 0


def test_both_at_once_with_both_versions(stays: Path) -> None:
    _, found = measured(stays, *SHORT, "--bidir", "--ip", "both", "-P", "2")
    assert [(leg["leg"]["way"], leg["leg"]["version"]) for leg in found["legs"]] == [("bidir", 4), ("bidir", 6)]
    assert len(found["analysis"]) == 4 and all(flow["received_bps"] > 0 for flow in found["analysis"])
    assert all(len(leg["client"][-1]["streams"]) == 4 for leg in found["legs"])


@pytest.mark.skipif(not shutil.which("iperf3"), reason="needs iperf3: it is not installed")
def test_the_genuine_iperf3(stays: Path) -> None:
    said, found = measured(stays, *SHORT, "--forward", "--engine", "iperf3")
    assert "client  iperf3" in said
    for leg in found["legs"]:
        assert leg["program"]["client"]["name"] == leg["program"]["server"]["name"] == "iperf3"
        assert leg["server"][-1]["streams"][0]["payload_bytes"] > 1e5 and not leg["error"]


@pytest.mark.measures
def test_a_slow_router_is_found_to_be_the_limit(stays: Path) -> None:
    """Every packet passes 20 000 rules: the hosts' programs sleep nine tenths of the time, on a busy machine, too.

    A process that is always busy on the router's own core takes up to half of it, and a hypervisor that halts the
    sender leaves the router idle: no verdict on the DUT is given then, the doubt or the idle core is stored. A TCP
    flow takes a tenth of a second to fill the router, so a second alone would leave it little more than 90 % busy.
    """
    said, found = measured(stays, *SHORT, "--time", "3s", "--variant", "slow", "--forward")
    (flow,) = found["analysis"]
    assert found["command"]["variant"] == "slow" and flow["statistics"]["mean"] < 0.5e9
    if flow["limit"] == "dut":
        assert ">=" not in said.splitlines()[0] and "the DUT was the limit" in said
    else:
        ((core,),) = [one["cpus"] for one in flow["cpu"] if one["host"] == "dut"]
        doubted = "foreign-load" in {one["code"] for one in found["warnings"]}
        assert doubted or (flow["limit"] == "unknown" and core["busy"] < BUSY), (flow["reasons"], flow["cpu"])
        assert ">=" in said.splitlines()[0]
