"""The table of strategies, and their plans as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from math import isfinite
from typing import Any

from ..load.plan import Direction, Offer
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
    figures = dict(values)
    if (kind := figures.pop("kind")) not in STRATEGIES:
        raise ValueError(f"plan: no strategy {kind!r}")
    if kind == Ramp.kind and type(figures.get("zoom_s")) in (int, float):  # of ramps that had a zoom
        del figures["zoom_s"]
    strategy, offers = STRATEGIES[kind], []
    for offer in figures.pop("offers"):
        numbers = {name: _checked(name, value, float) for name, value in offer.items() if name != "direction"}
        offers.append(Offer(Direction.parse(offer["direction"]), **numbers))
    for field in fields(strategy):
        if field.name in figures:
            figures[field.name] = _checked(field.name, figures[field.name], type(field.default))
    return strategy(offers=tuple(offers), **figures)


def _checked(name: str, value: Any, of: type) -> Any:
    """Return the value of this type, a tuple for a list of numbers; ValueError for another one."""
    if of is tuple:
        return tuple(_checked(name, number, float) for number in value)
    good = type(value) in (int, float) and isfinite(value) if of is float else type(value) is of
    if not good:
        raise ValueError(f"plan: {name} is not {'a number' if of is float else of.__name__}")
    return value
