"""Plan of a night: the tester that measures each cell, and how long all takes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """A cell's turn, in times since the night's start."""

    tester: str | None
    """None: no tester can measure it."""
    begin_s: float = 0.0
    end_s: float = 0.0
    reason: str | None = None
    """Reason why none can."""


@dataclass(frozen=True)
class Roster:
    """Turns of a night's cells, in the cells' order."""

    turns: Sequence[Turn]

    @property
    def length_s(self) -> float:
        return max((turn.end_s for turn in self.turns), default=0.0)


def assign_testers(cells: Iterable[tuple[str, float]], reach: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Choose, by DUT, the tester that measures all its cells, so that it has one history. cells: DUT and time in s.

    reach: by tester, the DUTs wired to it. The DUT that fewest testers reach is assigned first, among these the one
    that takes longest, to the tester that is then done first: a tester that alone reaches a DUT is kept for it.
    """
    total: dict[str, float] = {}
    for dut, length_s in cells:
        total[dut] = total.get(dut, 0.0) + length_s
    able = {dut: [tester for tester, duts in reach.items() if dut in duts] for dut in total}
    busy_s, chosen = dict.fromkeys(reach, 0.0), dict[str, str]()
    for dut in _by_need(total, able):
        if able[dut]:
            chosen[dut] = min(able[dut], key=lambda tester: busy_s[tester] + total[dut])
            busy_s[chosen[dut]] += total[dut]
    return chosen


def make_roster(cells: Sequence[tuple[str, float]], chosen: Mapping[str, str]) -> Roster:
    """Return the turns of cells, which come one after the other at each tester. chosen: as by assign_testers."""
    busy_s, turns = dict.fromkeys(chosen.values(), 0.0), list[Turn]()
    for dut, length_s in cells:
        if (tester := chosen.get(dut)) is None:
            turns.append(Turn(None, reason=f"no tester has links to all ports of {dut}"))
        else:
            turns.append(Turn(tester, busy_s[tester], busy_s[tester] + length_s))
            busy_s[tester] += length_s
    return Roster(turns)


def choose_testers(
    left: Mapping[str, int], idle: Collection[str], able: Mapping[str, Collection[str]], own: Mapping[str, str]
) -> Mapping[str, str]:
    """Choose, by DUT, the idle tester that measures its next cell.

    left: number of remaining cells, of DUTs that nobody measures now. own: by DUT, its tester of the roster; a DUT
    without one is measured by any that reaches it. A DUT whose testers are all busy waits.
    """
    free, chosen = list(idle), dict[str, str]()
    by_need = _by_need({dut: count for dut, count in left.items() if count}, able)
    for dut in sorted(by_need, key=lambda dut: dut not in own):
        testers = (own[dut],) if dut in own else able[dut]
        tester = next((name for name in free if name in testers), None)
        if tester is not None:
            chosen[dut] = tester
            free.remove(tester)
    return chosen


def _by_need(size: Mapping[str, float], able: Mapping[str, Collection[str]]) -> list[str]:
    """Sort DUTs: the one that fewest testers reach first, among these the one with the most to do."""
    return sorted(size, key=lambda dut: (len(able[dut]), -size[dut]))
