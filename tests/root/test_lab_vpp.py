"""lab-vpp with a real VPP: set up, forwarding, its accidents mended, and gone with the lab."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sshd import eventually
from tools import trexbench

from trexbench.config.catalogue import DUTS
from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig, vpp_socket
from trexbench.core.errors import LabError
from trexbench.dut import Wanted
from trexbench.dut.apply import apply, read_back, revert
from trexbench.dut.journal import FileJournal, NoJournal
from trexbench.dut.vpp.driver import VppDut
from trexbench.lab import Lab, LabSpec, RunningLab, down, state
from trexbench.transport import NetnsTransport

pytestmark = pytest.mark.skipif(not shutil.which("vpp"), reason="needs VPP: no vpp in PATH")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DutConfig]:
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    prefix = f"tlv{os.getpid()}"
    yield load_dut("lab-vpp").with_lab_prefix(prefix)
    down(prefix, force=True)
    assert not Path(vpp_socket(prefix)).exists()
    assert list(Path("/dev/shm").glob(f"{prefix}*")) == []
    assert list(Path("/run/netns").glob(f"{prefix}*")) == []


@pytest.fixture
def lab(config: DutConfig) -> Iterator[RunningLab]:
    with Lab(LabSpec.from_config(config)).running() as running:
        yield running


def driver(config: DutConfig, rx_queues: int | None = None) -> tuple[VppDut, NetnsTransport]:
    spec = LabSpec.from_config(config)
    transport = NetnsTransport(spec.dut)
    return VppDut(Wanted(config, spec.tester_macs, rx_queues), transport), transport


def vppctl(config: DutConfig, line: str) -> str:
    argv = ["vppctl", "-s", config.vpp.socket, *line.split()]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def test_queues_one_to_three_and_back(config: DutConfig, lab: RunningLab, tmp_path: Path) -> None:
    journal = FileJournal("vpp", tmp_path / "state")
    before = vppctl(config, "show interface address")
    for queues in (1, 2, 3, 1):
        dut, transport = driver(config, queues)
        assert apply(dut, transport, journal) != ()
        assert dut.plan() == []
        attested = read_back(dut)
        assert attested.mismatches == () and attested.digest == dut.verify().digest
        assert attested.spreading is not None and len(attested.spreading.queues) == 2 * queues
    revert(dut, transport, journal)
    assert journal.entries() == ()
    assert vppctl(config, "show interface address") == before


def test_the_accidents_are_seen_and_mended(config: DutConfig, lab: RunningLab) -> None:
    dut, transport = driver(config)
    apply(dut, transport, NoJournal())
    mac = LabSpec.from_config(config).tester_macs[0]
    for line in (
        "delete host-interface name d0",
        "create host-interface name d0 num-rx-queues 1 hw-addr 02:7b:78:00:01:00",
        "set interface state host-d0 up",
        "set interface ip address host-d0 100.65.1.1/24",
        f"set ip neighbor host-d0 100.65.1.2 {mac} static",
        "ip route add 16.0.0.0/8 via 100.65.1.2 host-d0",
        "enable ip6 interface host-d0",
        "set interface ip address host-d0 2001:2:0:1::1/64",
        f"set ip neighbor host-d0 2001:2:0:1::2 {mac} static",
        "ip route add 2001:2:0:16::/64 via 2001:2:0:1::2 host-d0",
    ):
        assert vppctl(config, line) in ("", "host-d0")
    assert [wrong.found for wrong in read_back(dut).mismatches] == [
        "dpo-drop ip4 (unresolved: 100.65.1.2 if_index:1)",
        "dpo-drop ip6 (unresolved: 2001:2:0:1::2 if_index:1)",
    ]
    apply(dut, transport, NoJournal())
    assert dut.verify().mismatches == ()
    assert vppctl(config, "ip route add 48.0.0.0/8 via 100.65.2.2 host-d0") == ""
    (wrong,) = dut.verify().mismatches
    assert "arp-ipv4: via 100.65.2.2 host-d0" in wrong.found
    apply(dut, transport, NoJournal())
    assert (dut.verify().mismatches, dut.plan()) == ((), [])


def test_what_it_counts(config: DutConfig, lab: RunningLab) -> None:
    dut, transport = driver(config)
    apply(dut, transport, NoJournal())
    dut.observe(clear=True)
    time.sleep(0.2)
    seen = dut.observe()
    assert seen.missing == () and seen.clock_hz is not None and seen.clock_hz > 1e8
    assert [count.port for count in seen.ports] == [0, 1]
    assert {drop.name for drop in seen.drops} >= {"drops", "af_packet ring", "rx-error"}
    assert all((thread.time_s or 0) < 60 for thread in seen.threads)


def test_vpp_ends_with_the_keeper_of_its_lab(config: DutConfig) -> None:
    prefix = LabSpec.from_config(config).prefix
    with contextlib.suppress(LabError), Lab(LabSpec.from_config(config)).running():
        found = state.load(prefix)
        assert found is not None and found.router is not None
        router = found.router.process
        os.kill(found.owner.pid, signal.SIGKILL)
        eventually(lambda: not router.alive, "VPP ends with its lab")


@pytest.mark.parametrize(("vlan", "mode"), [("[100]", "var2-64b"), ("[100, 200]", "var2-64b-v6")])
def test_frames_with_tags_come_back(vlan: str, mode: str, tmp_path: Path) -> None:
    text = DUTS.find("lab-vpp").read_text().replace("prefix: tbv", f"prefix: tlw{os.getpid()}")
    for port in (0, 1):
        text = text.replace(f"    interface: host-d{port}", f"    interface: host-d{port}\n    vlan: {vlan}")
    (tmp_path / "tagged.yaml").write_text(text)
    short = ("--ramp-to", "20kpps", "--ramp-duration", "4", "--hold", "2", "--confirm", "0", "--warmup", "1kpps:2s")
    done = trexbench(tmp_path, "ramp", "--dut", "tagged.yaml", "--mode", mode, "--bidir", *short, "-q", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert all(one["max_received_pps"] > 0 for one in document["analysis"])
    assert document["dut"]["attested"] and document["dut"]["mismatches"] == []
