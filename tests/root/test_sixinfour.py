"""IPv6 in IPv4 between a lab's router and its server, on the wire, set and taken away again, by the kernel's sit.

Skipped by a kernel without it; test_in_a_guest.py runs this file where there is one.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from labs import document, lab_up, write_lab
from tools import trexbench

from trexbench.config.lab import LabEndpoints
from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.core.tcp.plan import Leg, TcpPlan, Way
from trexbench.dut.apply import revert
from trexbench.dut.tcp_hosts import router_wanted
from trexbench.lab import net
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


class Wire:
    """Counts what leaves and arrives at an interface by kind: ``IPv6``, ``IPv4``, and ``6in4`` of it."""

    def __init__(self, space: str, interface: str) -> None:
        with net.inside(space):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self._socket.bind((interface, 3))
        self._socket.settimeout(0.2)
        self.seen: Counter[str] = Counter()
        self.outer: set[tuple[str, str, int]] = set()
        self.sums: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    def __enter__(self) -> Wire:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _count(self) -> None:
        while not self._over.is_set():
            try:
                frame = self._socket.recv(128)
            except TimeoutError:
                continue
            kind, header = int.from_bytes(frame[12:14], "big"), frame[14:34]
            if kind == 0x86DD and frame[38] != 0xFF and frame[22:24] != b"\xfe\x80":
                self.seen["IPv6"] += 1
            elif kind == 0x0800 and header[9] == 41:
                self.seen["6in4"] += 1
                self.outer.add((socket.inet_ntoa(header[12:16]), socket.inet_ntoa(header[16:20]), header[8]))
                total = sum(struct.unpack("!10H", header))
                self.sums.add((total & 0xFFFF) + (total >> 16))


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


@pytest.mark.parametrize(
    "offloads", ["full", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("mtu", "packet"))]
)
def test_all_of_ipv6_is_protocol_41_between_router_and_server(config: DutConfig, offloads: str) -> None:
    """Frames of all sizes, both ways; the path is proved; the ends are read back."""
    prefix = PREFIX
    if offloads != "full":  # a lab of its own
        prefix = f"{PREFIX}o"
        config = config.with_lab_prefix(prefix)
        assert config.lab is not None
        config = replace(config, lab=replace(config.lab, endpoints=LabEndpoints(offloads)))
    with open_endpoints(config, "test") as found:
        ways = prove_path(found, (4, 6))
        assert [(one.version, one.ttl) for one in ways] == [(4, 63), (4, 63), (6, 63), (6, 63)]
        assert found.attestation.facts["tunnel"] and found.server.attestation.facts["tunnel"]
        bench = HostsBench(found, Buffers(found.hosts), RunClock())
        assert bench.setup.tunnel == "6in4" and bench.setup.tunnel_by == "sit"
        with Wire(f"{prefix}-server", "s0") as server, Wire(f"{prefix}-client", "c0") as client:
            for way in (Way.FORWARD, Way.REVERSE):
                leg = Leg(way, 6)
                read = bench.flow(leg, TcpPlan((leg,), time_s=1, interval_s=0.5), lambda *_: None, None)
                assert read.error is None and read.server[-1].streams[0].payload_bytes > 1e5
                segments = {one.info["snd_mss"] for end in (read.client, read.server) for one in end[-1].streams}
                assert segments <= {1408, 1420}
        assert server.seen["6in4"] > 50 and server.seen["IPv6"] == 0
        assert client.seen["6in4"] == 0 and client.seen["IPv6"] > 50
        assert server.outer == {("100.66.2.1", "100.66.2.2", 255), ("100.66.2.2", "100.66.2.1", 255)}
        assert server.sums <= {0xFFFF}


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


SHORT = ("--ip", "6", "--forward", "--time", "1s", "--interval", "500ms", "--ping", "0", "--no-picture")


def test_the_command_says_which_way_it_went(place: Path) -> None:
    done = trexbench(place, "tcp", "--dut", "./own.yaml", *SHORT, "--tunnel", "6in4")
    assert done.returncode == 0, done.stderr
    assert document(place)["setup"]["tunnel"] == "6in4" and "tunnel  6in4 between DUT and server, by sit" in done.stdout
