"""The table of strategies, and their plans as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from msgspec import convert

from ..load.plan import Direction
from .base import Strategy
from .mlrsearch import MlrSearch
from .ramp import Ramp
from .saturate import Saturate
from .search import Search

STRATEGIES: Mapping[str, type[Strategy]] = {strategy.kind: strategy for strategy in (Ramp, Saturate, Search, MlrSearch)}
"""Every strategy by its name. A new one is a module of this room and an entry here."""


def suffix_of(kind: str) -> str:
    """The word that distinguishes runs of this strategy from ramps in names of cells and files; empty for a ramp."""
    return "" if kind == Ramp.kind else kind


def has_curve(kind: str) -> bool:
    """Test whether runs of this strategy offer rising rates, so that received over offered rate is a curve."""
    return kind in STRATEGIES and STRATEGIES[kind].seeks_knee


def plan_to_dict(plan: Strategy) -> dict[str, Any]:
    offers = [asdict(offer) | {"direction": str(offer.direction)} for offer in plan.offers]
    return {"kind": plan.kind, **asdict(plan), "offers": offers}


def plan_from_dict(values: Mapping[str, Any]) -> Strategy:
    """Read a plan; KeyError, TypeError, ValueError or ConfigError for what is none."""
    if (kind := values["kind"]) not in STRATEGIES:
        raise ValueError(f"plan: no strategy {kind!r}")
    offers = [{**offer, "direction": Direction.parse(offer["direction"])} for offer in values["offers"]]
    return convert({**values, "offers": offers}, STRATEGIES[kind])
