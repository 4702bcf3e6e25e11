"""The DUT's own counters as evidence: frames that it sent and the tester did not count are no limit of the DUT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..load.plan import Direction
from ..load.windows import RunWindows
from ..units import format_share
from ..verdict.blame import BLAME_SHARE
from ..verdict.evidence import find_evidence
from ..verdict.parts import Analysis, DirectionResult, Limit
from ..verdict.path import find_path
from .losses import AFTER, FEW, LossReport

APART = 0.1
"""Part by which a share of frames that come twice may differ from rate to rate."""


def find_twice(measured: RunWindows, direction: Direction, gone: int | None, received: int) -> int:
    """Return a lower bound of the frames that came twice in the run, and hide as many lost ones; 0 if not known.

    gone: frames that the DUT reports as sent, None if it does not. A DUT that doubles frames itself counts both: only
    if more came back than that they are certainly doubled behind it.
    """
    share = -find_path(measured, direction).lost
    if gone is None or received <= gone or share <= 0:
        return 0
    twice = int((1 - APART) * share * gone)
    return twice if received - gone > FEW + APART * twice else 0


def hear(
    measured: RunWindows, analysis: Analysis, losses: LossReport | None, twice: Mapping[Direction, int]
) -> Analysis:
    """Clear the DUT in each direction whose loss came after it, by its own counters.

    Counters of frames that the DUT dropped while sending explain loss first (core.dut.losses): those are its own.
    twice: by direction, frames received that came twice (find_twice).
    """
    if losses is None:
        return analysis
    cleared = (_clear_dut(measured, result, losses, twice[result.direction]) for result in analysis.directions)
    return replace(analysis, directions=tuple(cleared))


def _clear_dut(measured: RunWindows, result: DirectionResult, losses: LossReport, twice: int) -> DirectionResult:
    direction, once = result.direction, result.received - twice
    lost, rx = result.sent - once, direction.rx
    places = (place for place in losses.places if place.kind == AFTER and place.directions == (str(direction),))
    after, enough = sum(place.frames for place in places), max(FEW + 1, BLAME_SHARE * lost)
    if result.limit is not Limit.DUT or after < enough:
        return result
    # What is lost at every rate, on a bad cable behind the DUT, says nothing about its limit.
    if after - _usual_loss(measured, result) * result.sent < enough:
        return result
    down = any(not sample.reading.ports[rx].link_up for sample in measured.samples)
    reason = (
        f"of {lost} lost frames ({format_share(lost / result.sent)}) the DUT sent {after}: it counts "
        f"{once + after} sent to port {rx}, the tester {result.received} received there"
    ) + (f", of which {twice} came twice" if twice else "")
    limit = Limit.LINK if down else Limit.GENERATOR_RX
    goals, carried = tuple(goal.carried for goal in result.goals), result.maximum_pps
    if measured.plan.seeks_knee:  # an estimate
        carried = min(carried, result.confirm_pps)
    bound = replace(result, maximum_pps=carried, at_least=True, low_pps=None, high_pps=None, goals=goals)
    return replace(bound, limit=limit, reasons=(reason,))


def _usual_loss(measured: RunWindows, result: DirectionResult) -> float:
    """Return the share lost before the loss that counts, by sums: what its windows' ends may hide counts as lost."""
    evidence, end_s = find_evidence(measured, result.direction), result.saturated_at_s
    before = [w for w in evidence.windows if end_s is not None and w.end_s <= end_s]
    good = {w.begin_s for w in before if not w.is_bad(measured.plan.loss_threshold)}
    raw = [w for w in measured.sending(result.direction) if w.begin_s in good]
    share = (sum(w.lost for w in raw) + raw[-1].skew) / sum(w.sent for w in raw) if raw else 0.0
    return max(share, evidence.path.lost)
