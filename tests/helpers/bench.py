"""A box of any kind, the driver in front of it, and its journal: what tests of drivers begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from box_linux import LinuxBox
from box_pfsense import PfsenseBox
from box_vpp import VppBox
from boxes import BoxTransport

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.config.settings import LinuxSettings, VppSettings
from trexbench.dut import Wanted
from trexbench.dut.apply import apply, revert
from trexbench.dut.freebsd.driver import PfsenseDut
from trexbench.dut.journal import FileJournal
from trexbench.dut.linux.driver import LinuxDut
from trexbench.dut.vpp.driver import VppDut

CONFIGS = Path(__file__).parents[2] / "dut_configs"
LAB = load_dut(str(CONFIGS / "lab-linux.yaml"))
LINUX_SHIPPED = load_dut(str(CONFIGS / "netgate-linux.yaml"))
LINUX = replace(LINUX_SHIPPED, linux=LinuxSettings())
LINUX_FULL = replace(
    LINUX,
    linux=LinuxSettings(
        (1, 2), "off", "spread", "cpus", "performance", (("generic-receive-offload", False), ("lro", True))
    ),
)
PFSENSE = load_dut(str(CONFIGS / "netgate-pfsense.yaml"))
VPP_SHIPPED = load_dut(str(CONFIGS / "netgate-vpp.yaml"))
VPP = replace(VPP_SHIPPED, vpp=VppSettings(), rss=None)
VPP_HOST = replace(
    VPP,
    name="host",
    cables=tuple(
        replace(port, interface=f"host-d{port.tester}", neighbour=replace(port.neighbour, mac=None))
        for port in VPP.ports
    ),
    vpp=VppSettings(interfaces="af_packet"),
)
NICS = ("TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1")
VLANS = {"untagged": ((), ()), "VLAN": ((100,), (200,)), "two tags": ((100, 10), (100, 20))}
MACS = {0: "f2:1f:ed:c6:5d:f9", 1: "3a:b2:9c:72:7d:32"}


def dual_stack(config: DutConfig, vlans: tuple[tuple[int, ...], ...] = ((), ())) -> DutConfig:
    """Return this config with the lab's addresses and routes of both families, behind VLANs."""
    ports = tuple(
        replace(port, addresses=lab.addresses, neighbour=lab.neighbour, vlan=vlan)
        for port, lab, vlan in zip(config.ports, LAB.ports, vlans, strict=True)
    )
    return replace(config, cables=ports, routes=LAB.routes)


KINDS: Mapping[type, tuple[Any, DutConfig]] = {
    LinuxBox: (LinuxDut, LINUX),
    PfsenseBox: (PfsenseDut, PFSENSE),
    VppBox: (VppDut, VPP),
}
VPPCTL = "vppctl -s /run/vpp/cli.sock "
READING = (
    *("ifconfig -a", "sysctl -ei", "sysctl -Ni", "sysctl -xei", "stat -f", "arp -an", "netstat", "pfctl -s"),
    *("route -n", "vmstat", "cpuset", "grep", "kenv", "cpucontrol", "sh -c", "cat ", "show version", "readlink"),
)


class Bench:
    """A box, the driver in front of it, and its journal."""

    def __init__(self, folder: Path, box: Any, config: DutConfig | None = None, rx_queues: int | None = None) -> None:
        self.box, self.transport = box, BoxTransport(box)
        self.config = config or KINDS[type(box)][1]
        self.journal = FileJournal(self.config.name, folder)
        self.want(rx_queues)

    def want(self, rx_queues: int | None) -> None:
        self.use(Wanted(self.config, MACS, rx_queues))

    def use(self, wanted: Wanted) -> None:
        driver, _ = KINDS[type(self.box)]
        self.wanted, self.dut = wanted, driver(wanted, self.transport)

    def apply(self) -> list[str]:
        """Return the commands that made the changes, VPP's without the way to it; the changes are in ``steps``."""
        self.steps = apply(self.dut, self.transport, self.journal, variant=self.wanted.variant)
        return [" ".join(command.argv).removeprefix(VPPCTL) for step in self.steps for command in step.do]

    def revert(self) -> int:
        return len(revert(self.dut, self.transport, self.journal).reverted)

    def wrong(self) -> list[str]:
        return [str(mismatch) for mismatch in self.dut.verify().mismatches]

    def changing(self) -> list[str]:
        """The commands that arrived, without those that only read."""
        told = (line.removeprefix(VPPCTL) for line in self.transport.ran)
        return [line for line in told if not line.startswith(READING)]
