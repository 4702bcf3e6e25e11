"""docs/fleet.md from its first to its last line: every block, in the machines that it is about.

The scheduler, two testers, a switch and two DUTs are namespaces. Packets are real: each tester's embedded server sends
them through the switch, which is reached by ssh and joins ports by nftables; the DUTs are Linux kernels.
"""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from machines import HOME, Machine, join, machine, serve_ssh, wire
from packet_lab import plan
from sshd import WHY_NOT, eventually
from tools import ROOT

pytest.importorskip("distributed")
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

PAGE = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
NAMES = {"fleet.example.net": "fleet", "t1": "t1", "t2": "t2", "sw1.example.net": "sw1"}
NAMES |= {name: name for name in ("netgate-vpp", "netgate-linux")}
TESTERS, DUTS = ("t1", "t2"), ("netgate-vpp", "netgate-linux")
CABLES = {"p1": ("t1", "p0"), "p2": ("t1", "p1"), "p3": ("t2", "p0"), "p4": ("t2", "p1")}
CABLES |= {f"p{5 + at}": (DUTS[at // 2], f"enp3s0f{at % 2}") for at in range(4)}
"""Port of the switch -> what is plugged in."""
SUITE = "duts: [netgate-vpp, netgate-linux]\nmodes: [64b]\ndirections: [uni]\nplan: {plan}\n"
"""Stands for the forty cells of netgate-6100."""
VLAN_SET = """\
#!/bin/sh -e
fwd() {
  nft "add table netdev $1; add chain netdev $1 to { type filter hook ingress device $1 priority 0; }"
  nft "add rule netdev $1 to fwd to $2"
}
for other in $(cd /run; grep -lx "$2" vlan-of-*); do
  fwd $1 ${other#vlan-of-}
  fwd ${other#vlan-of-} $1
done
echo "$2" > /run/vlan-of-$1
"""
VLAN_UNSET = """\
#!/bin/sh -e
vlan=$(cat /run/vlan-of-$1) || exit 0
for port in $(cd /run; grep -lx "$vlan" vlan-of-*); do
  nft delete table netdev ${port#vlan-of-} 2>/dev/null || true
done
rm /run/vlan-of-$1
"""
VLAN_SHOW = '#!/bin/sh\necho "$1 $(cat /run/vlan-of-$1)"\n'


STAND_IN = """\
driver: none
speed: 10gbit
ports: [{tester: 0, interface: enp3s0f0}, {tester: 1, interface: enp3s0f1}]
twin: {workers: 1, clock: 1ghz, cycles_per_packet: 500}
"""
"""The config of both DUTs, which the test has set up itself: to apply it by ssh takes longer than to measure."""
ROUTER = """\
echo 1 > /proc/sys/net/ipv4/ip_forward
for port in 0 1; do
  ip link set enp3s0f$port address 02:00:00:00:01:0$port
  ip address add 100.65.$port.1/24 dev enp3s0f$port
  ip neigh add 100.65.$port.2 lladdr 02:00:00:00:00:0$port dev enp3s0f$port nud permanent
done
ip route add 16.0.0.0/8 via 100.65.0.2
ip route add 48.0.0.0/8 via 100.65.1.2
tc qdisc add dev enp3s0f1 root tbf rate 2900kbit burst 3000 limit 6000
"""
"""A router between the testers' networks, which carries about 6 kpps to the second."""


def as_linux(text: str) -> str:
    """The page's text with names that interfaces of Linux can have."""
    return text.replace("TenGigabitEthernet3/0/", "enp3s0f")


def blocks() -> Iterator[tuple[str, str]]:
    """Yield each block of the page: ``yaml``, or ``line``, a command with the lines that go on with it."""
    for found in re.finditer(r"(?ms)^```(\w+)\n(.*?)^```|^    (\S.*?(?:\\\n.*?)*)$", PAGE):
        kind, text, line = found.groups()
        yield (kind, text) if kind else ("line", line)


@dataclass
class Walk:
    """The page, as far as it was followed."""

    machines: dict[str, Machine]
    fleet: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    night: subprocess.Popen[bytes] | None = None
    seen: dict[str, Any] = field(default_factory=dict)

    def go(self) -> None:
        for kind, text in blocks():
            if kind == "yaml":
                self.fleet |= yaml.safe_load(as_linux(text))
                self.install()
                continue
            self.ran.append(text)
            for start, follow in PLACES.items():
                if text.startswith(start):
                    follow(self, text)
                    break
            else:
                self.machines["t1"].run(text)

    def install(self, hold: str = "20s") -> None:
        """Write the files that all must have. hold: of the cells, long enough to be looked at."""
        for name in ("fleet", *TESTERS):
            self.machines[name].write(f"{HOME}/fleet.yaml", yaml.safe_dump(self.fleet))
            self.machines[name].write(f"{HOME}/suites/netgate-6100.yaml", SUITE.format(plan=plan(hold=hold)))

    def status(self) -> dict[str, Any]:
        done = self.machines["t1"].run("trexbench fleet status --results /srv/trexbench/results --json")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def make_authority(self, line: str) -> None:
        self.machines["fleet"].run(f"mkdir -p /srv/ca; cd /srv/ca; {line}")

    def certify(self, line: str) -> None:
        for name in ("fleet", *TESTERS):
            self.machines["fleet"].run(f"cd /srv/ca; {line.replace('/CN=t1', f'/CN={name}')}")
            for file in ("ca.pem", "cert.pem", "key.pem"):
                text = self.machines["fleet"].file(f"/srv/ca/{file}").read_text()
                self.machines[name].write(f"/etc/trexbench/fleet/{file}", text, 0o600)

    def schedule(self, line: str) -> None:
        self.machines["fleet"].start("scheduler", line)
        self.machines["fleet"].await_words("scheduler", "scheduler tls://")

    def work(self, line: str) -> None:
        """Start one tester by hand, and the other by its unit."""
        self.machines["t1"].start("worker", line)
        unit = self.unit["Service"]
        settings = dict(pair.split("=", 1) for pair in unit["Environment"].split())
        self.machines["t2"].start("worker", unit["ExecStart"].replace("%i", "t2"), settings, unit["WorkingDirectory"])
        for name in TESTERS:
            self.machines[name].await_words("worker", f"tester {name} has joined tls://")

    @property
    def unit_file(self) -> Path:
        (path,) = re.findall(r"\]\((systemd/\S+?)\)", PAGE)
        return ROOT / "docs" / path

    @property
    def unit(self) -> configparser.ConfigParser:
        found = configparser.ConfigParser(interpolation=None)
        found.optionxform = str  # type: ignore[assignment,method-assign]
        found.read(self.unit_file)
        return found

    def begin_night(self, line: str) -> None:
        self.machines["t2"].start("night", line)

    def look(self, line: str) -> None:
        """Look while the night runs, then wait for its end."""
        night = self.machines["t2"]
        ended = night.running["night"].poll
        eventually(lambda: self.is_measuring() or ended() is not None, "both are measuring", 90)
        assert self.seen["is_measuring"], night.log("night") + night.log("worker")
        self.seen["status"] = self.machines["t1"].run(line).stdout
        assert night.running["night"].wait(120) == 0, night.log("night") + night.log("worker")

    def is_measuring(self) -> bool:
        """Test whether both are, which have leased the DUTs by then."""
        now = self.seen["now"] = self.status()
        are = all(one["state"] == "measuring" for one in now["testers"])
        self.seen["is_measuring"] = are and {one["dut"] for one in now["leases"]} == {*DUTS}
        return bool(self.seen["is_measuring"])

    def calibrate(self, line: str) -> None:
        self.install(hold="800ms")
        self.seen["calibrated"] = self.machines["t1"].run(line, timeout_s=600).stdout


PLACES = {
    "openssl req -x509 -newkey rsa:3072 -nodes -days 3650 -subj /CN=fleet": Walk.make_authority,
    "openssl": Walk.certify,
    "trexbench fleet scheduler": Walk.schedule,
    "trexbench fleet worker": Walk.work,
    "trexbench nightly netgate-6100 --fleet": Walk.begin_night,
    "trexbench fleet status": Walk.look,
    "trexbench fleet calibrate": Walk.calibrate,
}
"""Beginning of a line -> where and how it is run; others are run at a tester, and end."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """All of the page was followed."""
    folder = tmp_path_factory.mktemp("fleet")
    with ExitStack() as stack:
        machines = {name: stack.enter_context(machine(name, folder / name)) for name in NAMES.values()}
        join(machines["fleet"], [one for one in machines.values() if one.name != "fleet"], NAMES)
        for port, (box, interface) in CABLES.items():
            wire(machines["sw1"], port, machines[box], interface)
        for dut in DUTS:
            machines[dut].run(ROUTER)
        serve_ssh([machines["sw1"]], [machines[name] for name in TESTERS], [*NAMES], folder / "keys")
        for name, text in (("vlan-set", VLAN_SET), ("vlan-unset", VLAN_UNSET), ("vlan-show", VLAN_SHOW)):
            machines["sw1"].write(f"/opt/{name}", text, 0o755)
        (folder / "results").mkdir()
        for name in ("fleet", *TESTERS):
            box = machines[name]
            box.run(f"mkdir -p /srv/trexbench/results; mount --bind {folder}/results /srv/trexbench/results")
            for dut in DUTS:
                box.write(f"{HOME}/dut_configs/{dut}.yaml", STAND_IN)
        for name in TESTERS:
            for port in (0, 1):
                machines[name].run(f"ip link set p{port} address 02:00:00:00:00:0{port}")
            words = "--interfaces p0,p1 --dst-mac 02:00:00:00:01:00,02:00:00:00:01:01"
            machines[name].start("server", f"trexbench lab serve {words}")
            machines[name].await_words("server", "rpc=")
        found = Walk(machines)
        found.go()
        yield found


def test_every_line_was_run(walk: Walk) -> None:
    """Lines that are not named in PLACES ran at a tester, and ended with 0."""
    assert walk.ran == [text for kind, text in blocks() if kind == "line"] and len(walk.ran) >= 12
    assert [start for start in PLACES if not any(line.startswith(start) for line in walk.ran)] == []


def test_the_night_was_seen_while_it_ran(walk: Walk) -> None:
    now = walk.seen["now"]
    assert {one["tester"]: one["state"] for one in now["testers"]} == dict.fromkeys(TESTERS, "measuring")
    assert {one["dut"] for one in now["leases"]} == {*DUTS} and [one["waiting"] for one in now["nights"]] == [2]
    assert all(name in walk.seen["status"] for name in (*TESTERS, *DUTS, "measuring", "night "))


def test_both_measured_real_packets_through_the_switch(walk: Walk) -> None:
    results = walk.machines["t1"].file("/srv/trexbench/results")
    found = [json.loads(path.read_text()) for path in sorted(results.glob("20*/*/*.json"))]
    assert [one["dut"]["name"] for one in found] == ["netgate-linux", "netgate-vpp"]
    assert {one["command"]["tester"] for one in found} == {*TESTERS}
    for one in found:
        assert one["status"] == "complete" and not one["simulated"]
        assert all(each["received"] > 0.5 * each["sent"] > 1000 for each in one["analysis"]), one["analysis"]
    assert not list(walk.machines["sw1"].file("/run").glob("vlan-of-*"))
    assert not list(results.glob(".fleet/switches/*/changes/*"))


def test_the_testers_were_compared(walk: Walk) -> None:
    stored = json.loads(walk.machines["t2"].file("/srv/trexbench/results/.fleet/testers.json").read_text())
    rates = [one for one in stored["ratios"] if one["metric"] == "total_pps"]
    found = sorted((one["dut"], one["tester"], one["reference"]) for one in rates)
    assert found == [(dut, "t2", "t1") for dut in sorted(DUTS)]
    assert all(one["count"] > 1 and one["ratio"] > 0 and not one["simulated"] for one in rates)
    assert "t2" in walk.seen["calibrated"]


def test_systemd_takes_the_unit(walk: Walk) -> None:
    tester, name = walk.machines["t1"], "trexbench-tester@t1.service"
    tester.write(f"/etc/systemd/system/{name.replace('t1', '')}", walk.unit_file.read_text(encoding="utf-8"))
    if shutil.which("systemd-analyze"):
        assert tester.run(f"systemd-analyze verify {name} 2>&1").stdout == ""
    assert {"ExecStart", "Restart", "User"} <= {*walk.unit["Service"]}
