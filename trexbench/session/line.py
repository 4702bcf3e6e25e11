"""The WAN of a run, by what can make it here, until the end of the block; a lab's own line, set and read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from ..config.model import DutConfig
from ..core.errors import DutError, LabError
from ..core.tcp.wan import Wan
from ..lab import RunningLab
from ..lab.server import telling_line
from ..lab.wan import ask, cables_of
from .dut import ConnectedDut
from .netem import netem_line
from .wan import CABLE, StandingWan, WanUse


@contextmanager
def open_line(
    config: DutConfig, use: WanUse, dut: ConnectedDut, lab: RunningLab | None, doing: str, packets: bool = False
) -> Iterator[StandingWan | None]:
    """None where there is none. lab: was brought up with the line, where its cable makes it. packets: see find_wan."""
    if use.wan is None:
        yield None
    elif use.by == CABLE:
        assert lab is not None
        cable = CableLine(lab, "tester" if packets else "server")
        cable.set(use.wan)  # a lab that stays has the last run's
        yield cable
    else:
        with netem_line(config, dut, doing, packets) as line:
            yield line


@dataclass(frozen=True)
class CableLine:
    """A StandingWan of a lab that was brought up with one (LabSpec.wan).

    to: whose cable is counted, ``server``, or ``tester`` for its last port; they are set together.
    """

    lab: RunningLab
    to: str = "server"

    @property
    def by(self) -> str:
        return "cable"

    def set(self, wan: Wan) -> None:
        """It holds for all that comes, and shortens the way of what is on it; DutError where it is not in force."""
        answer = self._ask({"set": asdict(wan)})
        if answer.get("wan") != asdict(wan):
            raise DutError(f"the cable of lab {self.lab.spec.prefix} has {answer.get('wan')}, not {wan}")

    def counts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """From the DUT, and back to it, since the lab is up.

        frames, bytes: delivered (a frame of up to 64 KB is one). queue_drops, losses: in packets, as asked for.
        held_drops, missed, refused: frames that the cable itself failed to carry (more than it holds; it came too late
        to read; the far end was down). DutError where it has died.
        """
        ways = self._ask({"counts": True})["ways"]
        at = 2 * [cable.to for cable in cables_of(self.lab.spec)].index(self.to)
        return ways[at], ways[at + 1]

    def not_carried(self) -> int:
        """Frames that the cable itself failed to carry, both ways, since the lab is up."""
        return sum(way[name] for way in self.counts() for name in ("held_drops", "missed", "refused"))

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        cable, prefix = self.lab.cable, self.lab.spec.prefix
        if cable is None:
            raise DutError(f"lab {prefix} has no line of its own", "bring it up with its WAN")
        try:
            return ask(prefix, question)
        except LabError as error:
            if cable.process.alive:
                raise
            why = f"the cable of lab {prefix} (process {cable.process.pid}) has died: {telling_line(cable.log)}"
            raise DutError(why, f"its log is {cable.log}") from error
