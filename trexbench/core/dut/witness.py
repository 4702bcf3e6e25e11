"""The DUT's own counters as evidence: frames that it sent and the tester did not count are no limit of the DUT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from ..load.plan import Plan
from ..load.sample import Sample
from ..load.windows import Measured
from ..units import format_share
from ..verdict.blame import RX_BLAME_SHARE
from ..verdict.evidence import find_evidence
from ..verdict.model import Analysis, DirectionResult, Limit
from .losses import AFTER, FEW, LossReport


def hear(plan: Plan, samples: Sequence[Sample], analysis: Analysis, losses: LossReport | None) -> Analysis:
    """The analysis, with no direction laid to the DUT whose loss came after it by its own counters.

    Counters of frames that the DUT dropped while sending explain loss first (core.dut.losses): those are its own.
    """
    if losses is None:
        return analysis
    heard = tuple(_hear(plan, samples, one, losses) for one in analysis.directions)
    return replace(analysis, directions=heard)


def _hear(plan: Plan, samples: Sequence[Sample], result: DirectionResult, losses: LossReport) -> DirectionResult:
    direction, lost = result.direction, result.sent - result.received
    after = sum(one.frames for one in losses.places if one.kind == AFTER and one.directions == (str(direction),))
    enough = max(FEW + 1, RX_BLAME_SHARE * lost)
    if result.limit is not Limit.DUT or after < enough:
        return result
    # What is lost at every rate, on a bad cable behind the DUT, says nothing about its limit.
    if after - _usual_loss(plan, samples, result) * result.sent < enough:
        return result
    rx = direction.rx
    down = any(not sample.reading.ports[rx].link_up for sample in samples)
    reason = (
        f"of {lost} lost frames ({format_share(lost / result.sent)}) the DUT sent {after}: it counts "
        f"{result.received + after} sent to port {rx}, the tester {result.received} received there"
    )
    limit = Limit.LINK if down else Limit.GENERATOR_RX
    return replace(result, limit=limit, reasons=(reason,), at_least=True, low_pps=None, high_pps=None)


def _usual_loss(plan: Plan, samples: Sequence[Sample], result: DirectionResult) -> float:
    """The share lost in a typical window before the loss that counts, or on its way: not all of it is known apart."""
    evidence, end_s = find_evidence(Measured(plan, samples), result.direction), result.saturated_at_s
    shares = [w.lost / w.sent for w in evidence.sending if end_s is not None and w.end_s <= end_s]
    return evidence.path.lost + (max(0.0, median(shares)) if shares else 0.0)
