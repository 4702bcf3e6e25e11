"""Which tester would measure which cell of a night, and how long the night takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """A cell's turn: by which tester, from when to when after the night's start. tester None: nobody can."""

    tester: str | None
    begin_s: float = 0.0
    end_s: float = 0.0
    reason: str | None = None
    """Why nobody can measure it."""


@dataclass(frozen=True)
class Roster:
    """Turns of a night's cells, in the cells' order."""

    turns: Sequence[Turn]

    @property
    def length_s(self) -> float:
        return max((turn.end_s for turn in self.turns), default=0.0)


def make_roster(cells: Sequence[tuple[str, float]], reach: Mapping[str, Sequence[str]]) -> Roster:
    """Return the turns of cells, each of a DUT and a time in seconds. reach: tester -> DUTs that are wired to it.

    Cells of one DUT come one after the other by one tester. The DUT that takes longest is given first, and to the
    tester that is then done first.
    """
    total: dict[str, float] = {}
    for dut, length_s in cells:
        total[dut] = total.get(dut, 0.0) + length_s
    busy_s, chosen = dict.fromkeys(reach, 0.0), dict[str, str]()
    for dut in sorted(total, key=lambda name: -total[name]):
        able = [tester for tester, duts in reach.items() if dut in duts]
        if able:
            chosen[dut] = min(able, key=lambda tester: busy_s[tester] + total[dut])
            busy_s[chosen[dut]] += total[dut]
    busy_s, turns = dict.fromkeys(reach, 0.0), []
    for dut, length_s in cells:
        tester = chosen.get(dut)
        if tester is None:
            turns.append(Turn(None, reason=f"no tester has links to all ports of {dut}"))
            continue
        turns.append(Turn(tester, busy_s[tester], busy_s[tester] + length_s))
        busy_s[tester] += length_s
    return Roster(turns)
