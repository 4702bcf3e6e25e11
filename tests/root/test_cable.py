"""The lab's long line: what it does to packets, how it is asked, and that it ends with its lab."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sshd import eventually

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.config.settings import LabEndpoints
from trexbench.core.errors import DutError, LabError
from trexbench.core.tcp.wan import Wan, parse_wan
from trexbench.lab import Lab, LabSpec, down, net, state, status, tap
from trexbench.session.wan import CableLine

ROOT = Path(__file__).parents[2]
PREFIX = f"tbca{os.getpid()}"
HERE, THERE = f"tbch{os.getpid()}", f"tbct{os.getpid()}"
ADDRESSES = {HERE: "192.0.2.1", THERE: "192.0.2.2"}


def within(space: str, *argv: str) -> str:
    argv = ("ip", "netns", "exec", space, *argv)
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout


class Asked:
    """The cable between two namespaces, without a lab."""

    def __init__(self, path: Path) -> None:
        self.path = path
        argv = [sys.executable, "-m", "trexbench.lab.cable", "--ends", f"{HERE}:t0,{THERE}:t0", "--socket", str(path)]
        self.process = subprocess.Popen([*argv, "--wan", '{"delay_s": 0.02}'], stderr=subprocess.PIPE)
        eventually(lambda: path.exists() or self.process.poll() is not None, "the cable is there", 60)

    def ask(self, question: bytes) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as there:
            there.settimeout(20)
            there.connect(str(self.path))
            there.sendall(question + b"\n")
            answer: dict[str, Any] = json.loads(there.makefile().readline())
            return answer

    def set(self, text: str) -> None:
        asked = json.loads(json.dumps(parse_wan(text).__dict__))
        assert self.ask(json.dumps({"set": asked}).encode())["wan"] == asked

    def counts(self) -> list[dict[str, Any]]:
        ways: list[dict[str, Any]] = self.ask(b'{"counts": true}')["ways"]
        return ways


@pytest.fixture(scope="module")
def cable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """One cable for all tests, of which each sets its own line; the last one ends it."""
    try:
        for space, address in ADDRESSES.items():
            net.make_namespace(space)
            tap.make(space, "t0")
            within(space, "ip", "address", "add", f"{address}/24", "dev", "t0")
            within(space, "ip", "link", "set", "t0", "up", "txqueuelen", "4096")
        found = Asked(tmp_path_factory.mktemp("cable") / "asked.sock")
        yield found
        found.process.kill()
        found.process.wait()
    finally:
        for space in ADDRESSES:
            net.remove_namespace(space)


def round_trips_ms(count: int = 20) -> list[float]:
    within(HERE, "ping", "-c", "1", "-W", "5", ADDRESSES[THERE])  # whose neighbour is sought
    text = within(HERE, "ping", "-n", "-c", str(count), "-i", "0.02", ADDRESSES[THERE])
    return [float(one) for one in re.findall(r"time=([0-9.]+)", text)]


def datagrams(count: int, size: int) -> None:
    """Send datagrams of ``size`` bytes of payload from HERE, as fast as they go; its neighbour is known already."""
    code = f"import socket; s = socket.socket(2, 2); a = ({ADDRESSES[THERE]!r}, 9)"
    within(HERE, sys.executable, "-c", f"{code}\nfor _ in range({count}): s.sendto(bytes({size}), a)")


def transferred(send: str, receive: str) -> str:
    """Return what the receiver of a TCP connection ``s`` from HERE to THERE prints; send, receive: Python of each."""
    receiver = f"""
import hashlib, socket, time
l = socket.create_server(({ADDRESSES[THERE]!r}, 5000)); print("up", flush=True)
s, _ = l.accept()
{receive}
"""
    sender = f"import socket\ns = socket.create_connection(({ADDRESSES[THERE]!r}, 5000))\n{send}"
    argv = ["ip", "netns", "exec", THERE, sys.executable, "-c", receiver]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as there:
        assert there.stdout is not None and there.stdout.readline() == "up\n"
        within(HERE, sys.executable, "-c", sender)
        return there.stdout.readline().strip()


@pytest.mark.measures
def test_delay_is_that_asked_for_and_changes_while_it_runs(cable: Asked) -> None:
    """The cable works in real time; a busy machine delays what ping itself reads, by less than 5 ms in the median."""
    for delay_ms in (20, 5, 60):
        cable.set(f"{delay_ms}ms")
        times_ms = round_trips_ms()
        assert min(times_ms) >= delay_ms and statistics.median(times_ms) < delay_ms + 5
    counts = cable.counts()[0]
    assert counts["late_s"] < 0.005 * counts["frames"]


def test_a_long_way_is_shortened_at_once(cable: Asked) -> None:
    cable.set("20ms")
    round_trips_ms(1)
    cable.set("10s")
    datagrams(5, 100)
    assert cable.counts()[0]["waiting"] == 5
    cable.set("2ms")
    eventually(lambda: cable.counts()[0]["waiting"] == 0, "all have passed", 8)


@pytest.mark.measures
def test_tcp_gets_what_the_rate_leaves_it_in_whole_frames(cable: Asked) -> None:
    """A busy machine may keep the receiver from reading for 50 ms: it then counts 3 % more or less of 1.5 s."""
    cable.set("2ms,100mbit")
    before = cable.counts()[0]
    receive = """
begun = time.monotonic(); got = 0; first = None
while (now := time.monotonic()) < begun + 2.5:
    if first is None and now > begun + 1: first, got = now, 0
    got += len(s.recv(1 << 18))
print(got * 8 / (time.monotonic() - first))
"""
    send = "try:\n  while True: s.sendall(bytes(1 << 16))\nexcept OSError: pass"
    rate_bps = float(transferred(send, receive))
    assert 0.7 * 94.9e6 < rate_bps < 1.05 * 94.9e6, "100 Mbit/s without FCS: 1448 bytes of 1514"
    after = cable.counts()[0]
    size, frames = (after[name] - before[name] for name in ("bytes", "frames"))
    assert size > 5 * 1514 * frames, "the kernel does not cut them before"


def test_what_does_not_fit_into_the_queue_is_dropped_and_counted(cable: Asked) -> None:
    cable.set("20ms")
    round_trips_ms(1)
    cable.set("2ms,1mbit,queue=10000")
    before = cable.counts()[0]
    datagrams(200, 1000 - 42)
    eventually(lambda: cable.counts()[0]["waiting"] == 0, "all have passed")
    after = cable.counts()[0]
    passed, dropped = (after[name] - before[name] for name in ("frames", "queue_drops"))
    assert passed + dropped + after["missed"] - before["missed"] >= 200 and 10 <= passed <= 100 and dropped > 50


def test_losses_are_counted_and_repaired(cable: Asked) -> None:
    """Segments are taken out of frames of 64 KB: what TCP gets on the other side is what was sent, nevertheless."""
    cable.set("2ms,loss=1%")
    before = cable.counts()
    data = random.Random(1).randbytes(1 << 16) * 64
    send = "import random\ns.sendall(random.Random(1).randbytes(1 << 16) * 64)"
    receive = "h = hashlib.sha256()\nwhile part := s.recv(1 << 18): h.update(part)\nprint(h.hexdigest())"
    assert transferred(send, receive) == hashlib.sha256(data).hexdigest()
    ways = [{name: after[name] - was[name] for name in was} for was, after in zip(before, cable.counts(), strict=True)]
    assert ways[0]["losses"] > 5 and ways[0]["queue_drops"] == 0
    assert {way["refused"] for way in ways} == {0}


@pytest.mark.parametrize(
    "question", [b"what", b"[]", b"{}", b'{"set": {"loss": 1.0}}', b'{"set": {"delay_s": "20ms"}}']
)
def test_what_it_does_not_understand_it_says_and_stays(cable: Asked, question: bytes) -> None:
    cable.set("20ms")
    assert set(cable.ask(question)) == {"error"}
    assert cable.ask(b'{"counts": true}')["wan"] == Wan(0.02).__dict__


def test_an_end_that_is_down_or_gone(cable: Asked) -> None:
    """Comes after all others: it ends their cable."""
    cable.set("20ms")
    round_trips_ms(1)
    refused = cable.counts()[0]["refused"]
    within(THERE, "ip", "link", "set", "t0", "down")
    datagrams(5, 100)
    eventually(lambda: cable.counts()[0]["refused"] >= refused + 5, "all were refused")
    within(THERE, "ip", "link", "set", "t0", "up")
    assert min(round_trips_ms(3)) >= 20
    within(THERE, "ip", "link", "delete", "t0")
    assert cable.process.wait(20) == 1 and cable.process.stderr is not None
    assert b"an end of the cable has gone" in cable.process.stderr.read()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DutConfig]:
    """lab-linux behind a WAN under names of its own; that nothing of it stays is checked."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    found = load_dut(str(ROOT / "dut_configs/lab-linux.yaml")).with_lab_prefix(PREFIX).with_wan(parse_wan("20ms"))
    assert found.lab is not None
    yield replace(found, lab=replace(found.lab, sysctls=()))
    down(PREFIX, force=True)
    assert [one.name for one in Path("/run/netns").glob(f"{PREFIX}-*")] == []
    assert not list((tmp_path / "run").glob("*.sock"))


def features(role: str, interface: str) -> tuple[bool, bool, bool]:
    (found,) = json.loads(within(f"{PREFIX}-{role}", "ethtool", "--json", "-k", interface))
    kinds = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
    tso, gso, gro = (found[kind]["active"] for kind in kinds)
    return tso, gso, gro


@pytest.mark.parametrize(
    ("offloads", "near", "far"),
    [
        pytest.param("full", (True, True, False), (True, True, False), marks=pytest.mark.nightly),
        ("mtu", (False, True, False), (True, True, True)),
        pytest.param("packet", (False, False, False), (False, False, False), marks=pytest.mark.nightly),
    ],
)
def test_in_a_lab(config: DutConfig, offloads: str, near: tuple[bool, ...], far: tuple[bool, ...]) -> None:
    """In place of the veth pair between DUT and server, with its offloads and steering."""
    assert config.lab is not None
    config = replace(config, lab=replace(config.lab, endpoints=LabEndpoints(offloads)))
    with Lab(LabSpec.from_config(config, cable=True)).running() as lab:
        line = CableLine(lab)
        assert lab.cable is not None and f"wan cable (process {lab.cable.process.pid})" in str(status(PREFIX))
        for role, name, address in (("dut", "e1", "192.0.2.1/24"), ("server", "s0", "192.0.2.2/24")):
            within(f"{PREFIX}-{role}", "ip", "address", "add", address, "dev", name)
            assert "LOWER_UP" in within(f"{PREFIX}-{role}", "ip", "link", "show", name)
        assert features("server", "s0") == near and features("dut", "e1") == far
        line.set(parse_wan("40ms,1gbit"))
        within(f"{PREFIX}-dut", "ping", "-c", "2", "-W", "5", "192.0.2.2")
        text = within(f"{PREFIX}-dut", "ping", "-c", "5", "-i", "0.05", "192.0.2.2")
        assert min(float(one) for one in re.findall(r"time=([0-9.]+)", text)) >= 40
        assert line.by == "cable" and all(way["frames"] >= 5 for way in line.counts())
        (cpu,) = lab.placement["router_cpus"]
        runs_on = os.sched_getaffinity(lab.cable.process.pid)
        assert cpu not in runs_on or os.cpu_count() == 1
    assert status(PREFIX).condition == "down" and not lab.cable.process.alive


def test_in_a_lab_that_stays_it_takes_other_settings_and_its_death_is_told(config: DutConfig) -> None:
    Lab(LabSpec.from_config(config, cable=True)).up()
    other = config.with_wan(parse_wan("3ms,1gbit"))
    with pytest.raises(LabError, match="is up with other settings"):
        Lab(LabSpec.from_config(config)).up()
    with Lab(LabSpec.from_config(other, cable=True)).running() as lab:
        CableLine(lab).set(parse_wan("3ms,1gbit"))
        assert lab.cable is not None and lab.cable.process.alive
        os.kill(lab.cable.process.pid, signal.SIGKILL)
        eventually(lambda: lab.cable is not None and not lab.cable.process.alive, "the cable has ended")
        for ask in (CableLine(lab).counts, lambda: CableLine(lab).set(Wan(0.01))):
            with pytest.raises(DutError, match=rf"the cable of lab {PREFIX} \(process \d+\) has died: "):
                ask()
        assert "dead" in str(status(PREFIX))
        link = within(f"{PREFIX}-server", "ip", "link", "show", "s0")
        assert "NO-CARRIER" in link


def test_it_ends_with_the_keeper_of_its_lab(config: DutConfig) -> None:
    with pytest.raises(LabError), Lab(LabSpec.from_config(config, cable=True)).running() as lab:
        lab_state = state.load(PREFIX)
        assert lab.cable is not None and lab_state is not None
        os.kill(lab_state.owner.pid, signal.SIGKILL)
        eventually(lambda: lab.cable is not None and not lab.cable.process.alive, "the cable has ended")
        raise LabError("the keeper is gone")
