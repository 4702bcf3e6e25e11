"""IPv6 in IPv4 between a lab's router and its server: set, seen by the firewall and taken away, by the kernel's sit.

Skipped by a kernel without it; test_in_a_guest.py runs this file where there is one.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import lab_up, write_lab

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.core.tcp.plan import Leg, TcpPlan, Way
from trexbench.dut.apply import revert
from trexbench.dut.tcp_hosts import router_wanted
from trexbench.session.dut import connect_dut
from trexbench.session.process import RunClock
from trexbench.session.tcp.bench import HostsBench
from trexbench.session.tcp.hosts import open_endpoints, revert_endpoints
from trexbench.session.tcp.proof import prove_path
from trexbench.session.temporary import Buffers

PREFIX = f"tbsi{os.getpid()}"
NAMES = ("dut", "client", "server")


@pytest.fixture(scope="module", autouse=True)
def _sit() -> None:
    argv = ["unshare", "--net", "ip", "link", "add", "tb6in4", "type", "sit", "remote", "192.0.2.1"]
    if subprocess.run(argv, capture_output=True).returncode:
        pytest.skip("this kernel has no sit")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a lab that stays; what runs here finds that lab, too."""
    folder = tmp_path_factory.mktemp("sixinfour")
    write_lab(folder, PREFIX, more="variants: {firewall: {firewall: raspberry-pi-2015}}\n")
    with pytest.MonkeyPatch.context() as patched, lab_up(folder):
        patched.setenv("TREXBENCH_RUN_DIR", str(folder / "run"))
        patched.setenv("TREXBENCH_STATE_DIR", str(folder / "state"))
        yield folder


@pytest.fixture
def config(place: Path) -> DutConfig:
    """lab-linux with the tunnel, under names of its own."""
    return load_dut(str(place / "own.yaml")).with_tunnel("6in4")


def there(name: str, *argv: str) -> str:
    done = subprocess.run(
        ["ip", "netns", "exec", f"{PREFIX}-{name}", *argv], capture_output=True, text=True, timeout=30
    )
    return done.stdout


def state(name: str) -> str:
    """Return the settings of a namespace, as far as a tunnel touches them."""
    seen = there(name, "ip", "-o", "-6", "address") + there(name, "ip", "-6", "route") + there(name, "tc", "qdisc")
    seen += there(name, "ip", "-o", "link", "show", "type", "sit")
    seen += there(name, "grep", "-rsH", "--include=mtu", ".", "/proc/sys/net/ipv6/conf")
    return "\n".join(line for line in seen.splitlines() if "fe80" not in line)


def test_it_is_set_once_and_leaves_nothing(config: DutConfig) -> None:
    """Applied twice changes nothing; without it everything is as it would be had it never been there; then reverted.

    Comes first, in a lab that nothing has touched.
    """
    native = config.with_tunnel("none")
    before = {name: state(name) for name in NAMES}
    with open_endpoints(native, "test"):
        without = {name: state(name) for name in NAMES}
    for attempt in range(2):
        with open_endpoints(config, "test") as found:
            inside = {name: state(name) for name in NAMES}
            changed = [len(one.attestation.changed) for one in (found, found.client, found.server)]
            assert changed[0] and changed[2] if attempt == 0 else changed == [0, 0, 0]
            assert inside["server"] != without["server"] and inside["client"] == without["client"]
            prove_path(found, (6,))
            journal, transport = found.dut.journal, found.dut.transport
    with open_endpoints(native, "test") as found:
        assert {name: state(name) for name in NAMES} == without
        prove_path(found, (6,))
    with open_endpoints(config, "test") as found:
        found.dut.transport.run(("ip", "link", "del", "tb6in4"), 10)
        assert "tb6in4" in {one.what for one in found.dut.dut.verify().mismatches}
    with connect_dut(router_wanted(config, tunnelled=True), "test") as dut:
        revert(dut.dut, transport, journal)
    assert len(dict(revert_endpoints(config))) == 2
    assert {name: state(name) for name in NAMES} == before
    assert not journal.entries()


def test_the_firewall_of_the_document_sees_the_inner_packets(config: DutConfig) -> None:
    """IPv6 from the client's network passes FORWARD by its own rule; the server opens no connection to the client."""
    with open_endpoints(config.with_variant("firewall").with_tunnel("6in4"), "test") as found:
        assert found.dut.dut.plan() == []
        prove_path(found, (4, 6))
        bench = HostsBench(found, Buffers(found.hosts), RunClock())
        leg = Leg(Way.REVERSE, 6)
        assert bench.flow(leg, TcpPlan((leg,), time_s=1, interval_s=0.5), lambda *_: None, None).error is None
        listed = json.loads(there("dut", "nft", "-j", "list", "table", "inet", "trexbench"))["nftables"]
        counted = [
            (one["rule"]["chain"], json.dumps(one["rule"]["expr"]), expr["counter"]["packets"])
            for one in listed
            if "rule" in one
            for expr in one["rule"]["expr"]
            if "counter" in expr
        ]
        opened = [packets for chain, rule, packets in counted if chain == "forward" and "fd2b:656a" in rule]
        assert opened and opened[0] > 0
