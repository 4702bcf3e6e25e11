"""A lab's client and server: configured, their path proved, taken away; offloads, steering, lines of their cables."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from trexbench.config.lab import LabEndpoints
from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.core import errors
from trexbench.core.errors import DutError, LabError
from trexbench.dut.apply import apply, revert
from trexbench.dut.journal import FileJournal, state_dir
from trexbench.dut.tcp_hosts import endpoint_wanted
from trexbench.lab import Lab, LabSpec, down, endpoints, net, status
from trexbench.session.dut import connect_dut
from trexbench.session.tcp.hosts import open_endpoints, revert_endpoints
from trexbench.session.tcp.proof import prove_bypass, prove_path

ROOT = Path(__file__).parents[2]
PREFIX = f"tbe{os.getpid()}"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DutConfig]:
    """lab-linux under names of its own; its variant nat sets a sysctl, too. That nothing of it stays is checked."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    text = (ROOT / "dut_configs/lab-linux.yaml").read_text()
    nat = "  nat: {nat: true, sysctls: {net.ipv4.ip_default_ttl: 100}}"
    (tmp_path / "own.yaml").write_text(text.replace("  nat: {nat: true}", nat))
    own = load_dut(str(tmp_path / "own.yaml")).with_lab_prefix(PREFIX)
    assert own.lab is not None
    yield replace(own, lab=replace(own.lab, sysctls=()))
    down(PREFIX, force=True)
    assert [one.name for one in Path("/run/netns").glob(f"{PREFIX}-*")] == []


def there(name: str, *argv: str) -> str:
    words = ["ip", "netns", "exec", f"{PREFIX}-{name}", *argv]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout


def state(name: str) -> str:
    """Return the settings of a namespace, without what only time changes."""
    lines = there(name, "ip", "address", "show").splitlines() + there(name, "ip", "route", "show").splitlines()
    lines += there(name, "ip", "-6", "route", "show").splitlines()
    lines += there(name, "grep", "-rsH", ".", "/proc/sys/net/ipv4/conf", "/proc/sys/net/ipv4/ip_forward").splitlines()
    settings = ("--include=forwarding", "--include=accept_redirects", "--include=disable_ipv6")
    lines += there(name, "grep", "-rsH", *settings, ".", "/proc/sys/net/ipv6/conf").splitlines()
    kept = "\n".join(one for one in lines if "fe80" not in one and "valid_lft" not in one)
    return re.sub(r"<[^>]*>|\bstate [A-Z]+", "", kept)  # a carrier that has just come


def with_cables(config: DutConfig, **settings: object) -> DutConfig:
    assert config.lab is not None
    return replace(config, lab=replace(config.lab, endpoints=LabEndpoints(**settings)))  # type: ignore[arg-type]


def test_a_run_of_its_own_lab(config: DutConfig) -> None:
    """Both families through the router, and around it; the router's CPU and the endpoints' are apart."""
    with open_endpoints(config, "test") as found:
        ways = prove_path(found, (4, 6))
        assert [(one.version, one.asked_by) for one in ways] == [*product((4, 6), ("client", "server"))]
        assert {one.ttl for one in ways} == {63}
        assert all(one.times_s for one in ways), "the first may be lost while neighbours are sought"
        assert [one.routers for one in prove_bypass(found, (4, 6))] == [0, 0, 0, 0]
        assert found.attestation.attested and found.client.attestation.attested
        assert apply(found.dut.dut, found.dut.transport, found.dut.journal) == ()
        assert found.client.connected.dut.plan() == [] and found.server.connected.dut.plan() == []
        assert found.lab is not None
        router = set(found.lab.placement.router)
        assert found.client.cpus and (not router & {*found.client.cpus} or os.cpu_count() == 1)
        seen = found.dut.observed.observe()
        assert {port.port for port in seen.ports} == {0, 1} and {cpu.cpu for cpu in seen.cpus} == router
        busy = pytest.raises(errors.TesterBusy, match=f"the client on namespace {PREFIX}-client is in use")
        with busy, connect_dut(endpoint_wanted(config, "client"), "test", what="the client"):
            pass
    assert status(PREFIX).condition == "down" and not list(state_dir().glob("changes/*"))


def test_in_a_lab_that_stays_a_variant_is_set_once_and_all_is_reverted(config: DutConfig) -> None:
    names, setting = ("dut", "client", "server"), ("cat", "/proc/sys/net/ipv4/ip_default_ttl")
    Lab(LabSpec.from_config(config)).up()
    before = {name: state(name) for name in names}
    for attempt in range(2):
        with open_endpoints(config.with_variant("nat"), "test") as found:
            changed = [len(one.attestation.changed) for one in (found, found.client, found.server)]
            assert all(changed) if attempt == 0 else changed == [0, 0, 0]
            assert "masquerade" in there("dut", "nft", "list", "ruleset") and there("dut", *setting) == "100\n"
    with open_endpoints(config, "test") as found:
        assert there("dut", "nft", "list", "ruleset") == "" and there("dut", *setting) == "64\n"
        prove_path(found, (4,))
    assert before != {name: state(name) for name in names}
    with open_endpoints(config, "test", apply_it=False) as found:
        assert not found.attestation.attested
        revert(found.dut.dut, found.dut.transport, found.dut.journal)
    assert len(dict(revert_endpoints(config))) == 2
    assert {name: state(name) for name in names} == before
    assert not FileJournal(f"{config.name}-client", state_dir()).entries() and dict(revert_endpoints(config)) == {}


def test_a_path_that_does_not_cross_the_router_is_refused(config: DutConfig) -> None:
    """Nor one that the router, one-armed by mistake, redirects: it sends packets back out of the same interface."""
    with open_endpoints(config, "test") as found:
        around = [("client", "100.66.2.2/32"), ("server", "100.66.1.2/32")]
        for role, address in around:
            there(role, "ip", "route", "replace", address, "dev", "b0")
        with pytest.raises(
            DutError, match="arrive with 64: no router forwarded them: check that both endpoints' routes"
        ):
            prove_path(found, (4,))
        for role, address in around:
            there(role, "ip", "route", "del", address, "dev", "b0")
        for name in ("all", "e0"):
            there("dut", "sysctl", "-qw", f"net.ipv4.conf.{name}.send_redirects=1")
        there("dut", "ip", "route", "add", "100.66.2.2/32", "via", "100.66.1.2")
        there("client", "ip", "address", "add", "100.66.2.2/32", "dev", "lo")
        there("client", "ip", "rule", "add", "pref", "1", "to", "100.66.2.2", "iif", "lo", "lookup", "main")
        there("client", "ip", "rule", "del", "pref", "0")
        there("client", "ip", "rule", "add", "pref", "2", "lookup", "local")
        there("client", "sysctl", "-qw", "net.ipv4.conf.all.accept_local=1", "net.ipv4.conf.c0.accept_local=1")
        with pytest.raises(DutError, match=r"the router redirects it \(Redirect Host"):
            prove_path(found, (4,))
        there("dut", "ip", "link", "set", "e1", "down")
        with pytest.raises(
            DutError, match=r"client .* to server fd14:9aa4:e604:ec36::1: none of 3 echo requests was answered"
        ):
            prove_path(found, (6,))


def offloads(name: str, interface: str) -> tuple[bool, bool, bool]:
    (found,) = json.loads(there(name, "ethtool", "--json", "-k", interface))
    kinds = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
    tso, gso, gro = (found[kind]["active"] for kind in kinds)
    return tso, gso, gro


def test_offloads_that_are_not_granted() -> None:
    """A TAP grants none before its guest's driver has said what it takes."""
    space = f"{PREFIX}-client"
    net.make_namespace(space)
    try:
        net.make_tap(space, "tap0")
        endpoints._set_offloads(space, "tap0", (), gro=False, later=True)
        with pytest.raises(LabError, match="offloads of tap0: the kernel did not grant all of them: correct lab"):
            endpoints._set_offloads(space, "tap0", (), gro=False)
    finally:
        net.remove_namespace(space)


@pytest.mark.parametrize(
    ("settings", "near", "far", "steered"),
    [
        ({}, (True, True, False), (True, True, False), True),
        pytest.param({"offloads": "mtu"}, (False, True, False), (True, True, True), False, marks=pytest.mark.nightly),
        pytest.param(
            {"offloads": "packet"}, (False, False, False), (False, False, False), True, marks=pytest.mark.nightly
        ),
        pytest.param({"line_bps": 1e8}, (False, True, False), (True, True, True), False, marks=pytest.mark.nightly),
    ],
)
def test_offloads_and_steering(
    config: DutConfig,
    settings: dict[str, object],
    near: tuple[bool, ...],
    far: tuple[bool, ...],
    steered: bool,
) -> None:
    config = with_cables(config, **settings)
    Lab(LabSpec.from_config(config)).up()
    with Lab(LabSpec.from_config(config)).running() as lab:
        assert offloads("client", "c0") == offloads("server", "s0") == offloads("server", "b0") == near
        assert offloads("dut", "e0") == offloads("dut", "e1") == far
        (cpu,) = lab.placement.router
        masks = {there("dut", "cat", f"/sys/class/net/{name}/queues/rx-0/rps_cpus").strip() for name in ("e0", "e1")}
        assert masks == {f"{1 << cpu if steered else 0:x}"}
        assert there("dut", "cat", "/sys/class/net/e0/threaded").strip() == ("0" if steered else "1")
        assert int(there("client", "cat", "/sys/class/net/c0/queues/rx-0/rps_cpus"), 16)
        shaped = "tbf" in there("client", "tc", "qdisc", "show", "dev", "c0")
        assert shaped == ("line_bps" in settings)
    with open_endpoints(config, "test") as found:
        prove_path(found, (4, 6))
