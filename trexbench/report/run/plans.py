"""Load that a plan offers, in words."""

from __future__ import annotations

from dataclasses import replace

from ...core.load.plan import Direction, Offer
from ...core.strategy.base import Strategy
from ...core.units import format_bits, format_duration, format_pps, format_share, nominal

_ANY = Direction(-1, -1)


def plan_words(plan: Strategy) -> str:
    """Describe what was offered, which loss is bad, and how often samples were taken."""
    alike: dict[Offer, list[str]] = {}
    for offer in plan.offers:
        alike.setdefault(replace(offer, direction=_ANY), []).append(str(offer.direction))
    targets = [_target(offer, "per direction" if len(alike) == 1 else ", ".join(of)) for offer, of in alike.items()]
    warmup = nominal(format_pps(max(offer.warmup_pps for offer in plan.offers)))
    steps = [f"{warmup} for {format_duration(plan.warmup_s)}", *plan.words(" and ".join(targets))]
    return f"{', '.join(steps)}; {plan.rule}; a sample every {plan.sample_s:g} s"


def line_speeds(plan: Strategy) -> str:
    return " and ".join(nominal(format_bits(speed)) for speed in plan.line_rates_bps)


def _target(offer: Offer, of: str) -> str:
    line = f"{format_pps(offer.line_rate_pps)} {of} at {nominal(format_bits(offer.line_rate_bps))}"
    share = nominal(format_share(offer.line_share(offer.target_pps)))
    return f"{format_pps(offer.target_pps)} ({share} of line rate, {line})"
