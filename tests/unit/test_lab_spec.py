"""Names, cores and refusals of the lab: what needs no root."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trexbench.config.lab import LabConfig
from trexbench.config.lookup import load_dut
from trexbench.core.errors import ConfigError, LabError
from trexbench.lab import Lab, LabSpec, down, host, place, server, state, status
from trexbench.lab.spec import Placement, place_endpoints

ROOT = Path(__file__).parents[2]
SERVER = state.Server("embedded", state.Process.of(os.getpid()), "/log")
LAB_LINUX = str(ROOT / "dut_configs/lab-linux.yaml")


@pytest.fixture(autouse=True)
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the labs' states."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def lab_up(prefix: str, **more: Any) -> state.LabState:
    """State of a lab that stays, whose server is this process."""
    stays = state.new_state(LabSpec(prefix), "persistent")
    return state.update(stays, **{"status": "up", "server": SERVER, **more})


PINNED = ("sender_cpu", "router_cpus", "harness_cpu")
# what, settings, usable cores, pairs that share hardware, sender, router, harness, words of the warning
PLACES = [
    ("two cores", {}, [0, 1], [], 0, (1,), 0, ""),
    ("one core", {}, [0], [], 0, (0,), 0, "share core 0"),
    ("four cores", {}, [0, 1, 2, 3], [], 0, (1,), 2, ""),
    ("hyper-threads side by side", {}, [0, 1, 2, 3], [(0, 1), (2, 3)], 0, (2,), 1, ""),
    ("two hyper-threads only", {}, [0, 1], [(0, 1)], 0, (1,), 0, "share one physical core"),
    ("core 0 is not ours", {}, [4, 5, 6], [], 4, (5,), 6, ""),
    ("a sender chosen", {"sender_cpu": 1}, [0, 1], [], 1, (0,), 1, ""),
    ("routers chosen", {"router_cpus": (0, 1)}, [0, 1, 2], [], 2, (0, 1), 2, ""),
    ("routers everywhere", {"router_cpus": (0, 1)}, [0, 1], [], 0, (0, 1), 0, "share core 0"),
    ("nothing pinned", dict.fromkeys(PINNED, "any"), [0, 1], [], None, (), None, ""),
    ("only the sender free", {"sender_cpu": "any"}, [0, 1], [], None, (1,), 0, ""),
]


@pytest.mark.parametrize("row", PLACES, ids=lambda row: str(row[0]))
def test_place(row: tuple[Any, ...]) -> None:
    _, settings, cpus, pairs, sender, router, harness, warning = row
    siblings = {cpu: [cpu] for cpu in cpus}
    for pair in pairs:
        siblings.update({cpu: list(pair) for cpu in pair})
    found = place(replace(LabConfig(), **settings), cpus, siblings)
    assert (found.sender, found.router, found.harness) == (sender, router, harness)
    assert warning in " ".join(found.warnings)
    assert bool(found.warnings) == bool(warning)


def test_a_core_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="core 7 cannot be used, only 0, 1"):
        place(LabConfig(sender_cpu=7), [0, 1], {})


def test_spec_of_the_shipped_config() -> None:
    spec = LabSpec.from_config(load_dut(LAB_LINUX))
    assert spec.namespaces == ("tbx-tester", "tbx-dut", "tbx-client", "tbx-server")
    assert (spec.tester_interfaces, spec.dut_interfaces) == (("p0", "p1"), ("d0", "d1"))
    assert spec.speed_bps == 1e9
    settings = LabConfig(sender_cpu=3, router_cpus=(1, 2), harness_cpu="any", sysctls=())
    for each in (spec, LabSpec("x", ("d0",), None, settings)):
        assert msgspec.convert(msgspec.to_builtins(each), LabSpec) == each
    for mac in (*spec.tester_macs.values(), *spec.dut_macs.values()):
        first = int(mac[:2], 16)
        assert first & 2, "locally administered"
        assert not first & 1, "unicast"
    assert len({*spec.tester_macs.values(), *spec.dut_macs.values()}) == 4


def test_no_lab_for_other_duts() -> None:
    with pytest.raises(ConfigError, match="netgate-vpp has no lab"):
        LabSpec.from_config(load_dut(str(ROOT / "dut_configs/netgate-vpp.yaml")))


def test_ports_of_a_lab_count_from_zero() -> None:
    config = load_dut(LAB_LINUX)
    ports = (config.ports[0], replace(config.ports[1], tester=4))
    with pytest.raises(ConfigError, match=r"count up from 0, not \[0, 4\]"):
        LabSpec.from_config(replace(config, cables=ports))


@pytest.mark.parametrize(
    ("euid", "release", "ip", "message"),
    [
        (1000, "6.1.0", "/sbin/ip", "needs root: run it with sudo"),
        (0, "5.17.9-generic", "/sbin/ip", r"Linux 5\.17\.9-generic is too old .* --trex-dir"),
        (0, "6.1.0", "", "install the package iproute2"),
    ],
)
def test_what_a_machine_must_have(euid: int, release: str, ip: str, message: str) -> None:
    with pytest.raises(LabError, match=message):
        host.check(True, euid, release, ip)
    for embedded, enough in ((True, "5.18.0"), (False, "5.4.0"), (True, "10.0-rc1")):
        host.check(embedded, 0, enough, "/sbin/ip")


def test_embedded_server_is_told_everything() -> None:
    spec = LabSpec.from_config(load_dut(LAB_LINUX))
    argv = " ".join(server.embedded(spec, Placement(0, (1,), 0)).argv[3:])
    assert argv == (
        "trexbench.stlserver --interfaces p0,p1 --dst-mac 02:7b:78:00:01:00,02:7b:78:00:01:01 "
        "--rpc-port 4501 --pub-port 4500 --speed 1000mbit --cpu 0 --rpc-cpu 0"
    )
    assert "--cpu" not in " ".join(server.embedded(spec, Placement(None, (), None)).argv)


def test_trex_gets_both_ends_of_each_cable_and_no_watchdog(tmp_path: Path) -> None:
    """Its own watchdog ended it beside busy processes, in the midst of a run."""
    (tmp_path / "_t-rex-64").touch(0o755)
    (tmp_path / "_t-rex-64-o").symlink_to("_t-rex-64")
    launch = server.trex(LabSpec("x"), Placement(0, (1,), 0), tmp_path, tmp_path / "x.yaml")
    assert "--no-watchdog" in launch.argv
    text = (tmp_path / "x.yaml").read_text()
    assert "prefix: x\n  low_end: true\n  low_end_core: 0\n  interfaces: ['p0', 'p1']\n  zmq_rpc_port: 4501\n" in text
    macs = [line.split("'")[1] for line in text.splitlines() if "_mac: " in line]
    assert macs == ["02:7b:78:00:00:00", "02:7b:78:00:01:00", "02:7b:78:00:00:01", "02:7b:78:00:01:01"]


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "(it said nothing)"),
        ("Starting\n\nlast\n", "last"),
        (" 1        0      0       1       0      0  \n -------------------------------\n", "(it said nothing)"),
        ("Starting\nEAL: Cannot create lock\nYou might need trex-cfg\n", "EAL: Cannot create lock"),
        ("stlserver: interface p9: no such device\n", "stlserver: interface p9: no such device"),
    ],
)
def test_the_telling_line_of_a_log(tmp_path: Path, log: str, words: str) -> None:
    (tmp_path / "log").write_text(log)
    assert server.telling_line(str(tmp_path / "log")) == words


def test_state_is_kept_and_forgotten() -> None:
    sysctls = {"net.core.netdev_max_backlog": ("1000", "4096")}
    saved = lab_up("x", user=7, namespaces={"x-dut": 4026532177}, sysctls=sysctls, warnings=("one",))
    assert state.load("x") == saved
    assert state.load_all() == [saved]
    assert saved.ready and not saved.abandoned
    me = SERVER.process
    gone = state.update(saved, server=replace(SERVER, process=replace(me, start=me.start + 1)))
    assert gone.abandoned, "the same number, but another process"
    state.forget("x")
    assert state.load("x") is None


def test_status_of_a_lab_whose_vpp_is_up_and_whose_server_is_not() -> None:
    state.update(state.new_state(LabSpec("x"), "ephemeral"), router=replace(SERVER, kind="vpp"))
    assert str(status("x")) == f"lab x: starting, ephemeral, vpp router (process {os.getpid()})"


def test_two_labs_on_the_same_cores_warn_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for prefix, sender, routers in (("a", 0, (1,)), ("b", 1, (2,)), ("c", None, (3,)), ("d", None, ())):
        lab_up(prefix, placement=Placement(sender, routers, 0))
    words = "lab {} is up on the same cores (1): what runs in one slows the other"
    assert [status(name).warnings for name in "abcd"] == [(words.format("b"),), (words.format("a"),), (), ()]
    monkeypatch.setattr(host, "check", lambda embedded: None)
    with Lab(LabSpec("a")).running() as found:
        assert found.warnings == (words.format("b"),)


def test_a_run_in_a_lab_that_is_up_needs_no_kernel_for_the_embedded_server(monkeypatch: pytest.MonkeyPatch) -> None:
    needed: list[bool] = []
    monkeypatch.setattr(host, "check", lambda embedded: needed.append(embedded))
    trex = replace(SERVER, kind="trex", trex_dir="/opt/trex")
    lab_up("x", server=trex)
    with Lab(LabSpec("x")).running() as found:
        assert not found.ephemeral and found.server == trex
    assert needed == [False]


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ("exit 0", "lab x is still up: the keeper that was to take it down ended too early: try 'trexbench lab down'"),
        ("kill -TERM $$", "lab x is still up"),
        ("echo 'KeyError: 7' >&2; exit 1", r"ended with code 1 \(KeyError: 7\): see .*x-keeper.log"),
    ],
)
def test_a_lab_that_is_not_taken_down_is_not_said_to_be_down(
    ends: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "check", lambda embedded: None)
    keeper = tmp_path / "keeper"
    keeper.write_text(f"#!/bin/sh\n{ends}\n")
    keeper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(keeper))
    lab_up("x")
    with pytest.raises(LabError, match=words):
        down("x")


def test_a_run_directory_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREXBENCH_RUN_DIR", "/proc/nowhere/run")
    monkeypatch.setattr(host, "check", lambda embedded: None)
    with pytest.raises(LabError, match=r"x-keeper\.log: No such .*TREXBENCH_RUN_DIR"), Lab(LabSpec("x")).running():
        pytest.fail("there is no lab")


def test_state_of_before_the_last_boot_is_nothing() -> None:
    lab_up("x", boot="another")
    assert state.load("x") is None


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"version": 3}'])
def test_state_that_is_none(run_dir: Path, content: str) -> None:
    run_dir.mkdir()
    (run_dir / "x.lab.json").write_text(content)
    with pytest.raises(LabError, match=r"x\.lab\.json: not a lab's state"):
        state.load("x")


def test_endpoints_run_where_the_router_does_not() -> None:
    spec = LabSpec.from_config(load_dut(LAB_LINUX))
    auto = place_endpoints(spec, Placement(0, (1,), 0), [0, 1, 2])
    assert auto.endpoints == {"client": (0, 2), "server": (0, 2)} and auto.warnings == ()
    client, server = spec.endpoints
    chosen = replace(spec, endpoints=(replace(client, cpus=(1,)), server))
    (warning,) = place_endpoints(chosen, Placement(0, (1,), 0), [0, 1]).warnings
    assert warning == "the client and the router share core 1: its CPU is that of both"
    with pytest.raises(ConfigError, match=r"endpoints\.client\.cpus: core 1 cannot be used, only 0"):
        place_endpoints(chosen, Placement(0, (0,), 0), [0])
