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

STRATEGIES: Mapping[str, type[Strategy]] = {one.kind: one for one in (Ramp, Saturate, Search, MlrSearch)}
"""Every strategy by its name. A new one is a module of this room and an entry here."""


def suffix_of(kind: str) -> str:
    """Words that distinguish runs of this strategy from ramps in names of cells and files; empty for a ramp."""
    return "" if kind == Ramp.kind else kind


def has_curve(kind: str) -> bool:
    """Test whether runs of this strategy offer rising rates, so that received over offered rate is a curve."""
    return kind in STRATEGIES and STRATEGIES[kind].seeks_knee


def plan_to_dict(plan: Strategy) -> dict[str, Any]:
    offers = [asdict(offer) | {"direction": str(offer.direction)} for offer in plan.offers]
    return {"kind": plan.kind, **asdict(plan), "offers": offers}


def plan_from_dict(values: Mapping[str, Any]) -> Strategy:
    """KeyError, TypeError, ValueError or ConfigError for what is not a plan."""
    figures = dict(values)
    if (kind := figures.pop("kind")) not in STRATEGIES:
        raise ValueError(f"plan: no strategy {kind!r}")
    if kind == Ramp.kind and type(figures.get("zoom_s")) in (int, float):  # of ramps that had a zoom
        del figures["zoom_s"]
    strategy = STRATEGIES[kind]
    offers = tuple(_offer(one) for one in figures.pop("offers"))
    for field in fields(strategy):
        if field.name in figures:
            figures[field.name] = _checked(field.name, figures[field.name], type(field.default))
    return strategy(offers=offers, **figures)


def _offer(values: Mapping[str, Any]) -> Offer:
    figures = {name: value for name, value in values.items() if name != "direction"}
    for name, value in figures.items():
        _check_type(name, value, float)
    return Offer(Direction.parse(values["direction"]), **figures)


def _checked(name: str, value: Any, of: type) -> Any:
    if of is not tuple:
        _check_type(name, value, of)
        return value
    for one in value:
        _check_type(name, one, float)
    return tuple(value)


def _check_type(name: str, value: Any, of: type) -> None:
    good = type(value) is of if of is not float else type(value) in (int, float) and isfinite(value)
    if not good:
        raise ValueError(f"plan: {name} is not {'a number' if of is float else of.__name__}")
