"""A fake pfSense, its driver in front of it, and its journal: what tests of the driver begin with."""

from __future__ import annotations

from pathlib import Path

from box_pfsense import PfsenseBox
from boxes import BoxTransport

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.dut import Wanted
from trexbench.dut.apply import apply, revert
from trexbench.dut.freebsd.driver import PfsenseDut
from trexbench.dut.journal import FileJournal

CONFIG = load_dut(str(Path(__file__).parents[2] / "dut_configs/netgate-pfsense.yaml"))
READERS = (
    "ifconfig -a",
    "sysctl -ei",
    "sysctl -Ni",
    "sysctl -xei",
    "stat -f",
    "arp -an",
    "netstat",
    "pfctl -s",
    "route -n",
    "vmstat",
    "cpuset",
    "grep",
    "kenv",
    "cpucontrol",
)


class Bench:
    """A box, the driver in front of it, and its journal."""

    def __init__(self, folder: Path, box: PfsenseBox, config: DutConfig = CONFIG, rx_queues: int | None = None) -> None:
        self.box, self.transport = box, BoxTransport(box)
        self.dut = PfsenseDut(Wanted(config, {}, rx_queues), self.transport, link_wait_s=0)
        self.journal = FileJournal(config.name, folder)

    def apply(self) -> list[str]:
        return [" ".join(command.argv) for step in apply(self.dut, self.transport, self.journal) for command in step.do]

    def revert(self) -> int:
        return len(revert(self.dut, self.transport, self.journal).reverted)

    def wrong(self) -> list[str]:
        return [str(mismatch) for mismatch in self.dut.verify().mismatches]

    def changing(self) -> list[str]:
        """The commands that arrived, without those that only read."""
        return [line for line in self.transport.ran if not line.startswith(READERS)]
