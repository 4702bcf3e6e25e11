"""Ramps of older nights to lay beside the latest: which of them explain something, and their curves in few points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import isfinite
from typing import Any

from ..core.damage import find_sample_damage
from ..core.errors import StoreError
from ..core.history import RunRow, plain_number
from ..core.plan import Direction
from ..core.result import RunResult, from_document
from ..core.series import night_of
from ..core.units import format_bits, format_share
from ..core.verdict import DirectionResult, Limit, Trial
from .overlay import Curve, curve_of
from .trends import Change

MOST_POINTS = 64
"""Points of an older curve: a third of them lie at its knee."""
REASONS: Mapping[str, str] = {
    "change": "before the change",
    "night": "the night before",
    "month": "a month before",
    "year": "a year before",
}
"""Why an older night is worth a look; so many curves a cell has at most."""
_ABOUT_DAYS: Mapping[str, tuple[int, int]] = {"month": (30, 10), "year": (365, 45)}
"""So many days before, give or take."""


@dataclass(frozen=True)
class Older:
    """A run of an earlier night of a cell. why: keys of REASONS. unlike: why it cannot lie over the latest, or nothing.

    otherwise: its DUT was configured otherwise than for the latest. curves: none where it is unlike.
    """

    row: RunRow
    why: tuple[str, ...]
    unlike: str = ""
    otherwise: bool = False
    curves: tuple[Curve, ...] = ()

    @property
    def night(self) -> str:
        return night_of(self.row)

    @property
    def words(self) -> str:
        return ", ".join(REASONS[key] for key in self.why)


def choose_older(latest: RunRow, runs: Sequence[RunRow], changes: Sequence[Change]) -> tuple[Older, ...]:
    """The nights worth laying beside the latest, newest first and without their curves.

    runs: complete ones of the same cell, oldest first; changes: of this cell. Of several runs in a night the last
    counts, and those that belong to no night only where the latest belongs to none. A run under other conditions is
    chosen only where none under the same would do, to be named.
    """
    before = [row for row in runs if bool(row.night) == bool(latest.night) and night_of(row) < night_of(latest)]
    alike = {night_of(row): row for row in before if not _unlike(row, latest)}
    unlike = {night_of(row): row for row in before if _unlike(row, latest)}
    since = _night_of_change(runs, changes)
    chosen: dict[str, tuple[RunRow, list[str]]] = {}
    for key in REASONS:
        row = _pick(key, [*alike.values()], latest, since) or _pick(key, [*unlike.values()], latest, since)
        if row is not None:
            chosen.setdefault(row.path, (row, []))[1].append(key)
    return tuple(
        Older(row, tuple(why), "; ".join(_unlike(row, latest)), row.facts != latest.facts)
        for row, why in sorted(chosen.values(), key=lambda one: night_of(one[0]), reverse=True)
    )


def _night_of_change(runs: Sequence[RunRow], changes: Sequence[Change]) -> str | None:
    """The first night of the newest change."""
    at = max((change.at for change in changes), default=None)
    return None if at is None else next((night_of(row) for row in runs if row.started == at), at[:10])


def _pick(key: str, rows: Sequence[RunRow], latest: RunRow, since: str | None) -> RunRow | None:
    """The row for one of REASONS. since: the first night of the newest change."""
    if key == "night":
        return rows[-1] if rows else None
    if key == "change":
        earlier = [row for row in rows if since is not None and night_of(row) < since]
        return earlier[-1] if earlier else None
    days, give = _ABOUT_DAYS[key]
    away = {abs(gap - days): row for row in rows if (gap := _days_between(row, latest)) is not None}
    nearest = min(away, default=None)
    return None if nearest is None or nearest > give else away[nearest]


def _days_between(row: RunRow, latest: RunRow) -> int | None:
    try:
        return (date.fromisoformat(night_of(latest)) - date.fromisoformat(night_of(row))).days
    except ValueError:
        return None


def _unlike(row: RunRow, latest: RunRow) -> list[str]:
    """In what the two runs' conditions differ, as the history of a figure tells them apart."""
    found = []
    if row.traffic != latest.traffic:
        found.append("other traffic")
    if row.line_rate_bps != latest.line_rate_bps:
        found.append(f"line rate of {format_bits(row.line_rate_bps)}")
    if row.loss_threshold != latest.loss_threshold:
        found.append(f"loss threshold of {format_share(row.loss_threshold)}")
    return found


def older_curves(row: RunRow, document: Mapping[str, Any], most: int = MOST_POINTS) -> tuple[Curve, ...]:
    """The curves of this row's document, StoreError where it is damaged or another run's.

    The verdicts are the stored ones, as in the index: to derive them anew takes longer than everything else.
    """
    result = from_document(document)
    if (result.started, result.status.value) != (row.started, row.status):
        raise StoreError("another run than the index names", "it was replaced meanwhile: make the report again")
    try:
        damage = next(_damage(result), None)
        verdicts = () if damage else tuple(map(_verdict_from, document["analysis"]))
        made = [curve_of(row.cell, result, one, most) for one in verdicts if one.direction in result.plan.directions]
    except KeyError as error:
        raise StoreError(f"run document without {error.args[0]!r}", "the file is damaged") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
        raise StoreError(f"run document with a value of the wrong kind ({error})", "the file is damaged") from error
    curves = tuple(curve for curve in made if curve is not None)
    if damage is None and not all(
        map(isfinite, (value for c in curves for value in (*c.offered_pps, *c.received_pps)))
    ):
        damage = "a rate that is no number"
    if damage is not None:
        raise StoreError(damage, "the file is damaged")
    return curves


def _damage(result: RunResult) -> Iterator[str]:
    """What no run can have produced, as far as a curve depends on it."""
    before_s = float("-inf")
    for number, sample in enumerate(result.samples):
        problem = find_sample_damage(sample, result.plan)
        if problem is not None:
            yield f"sample {number}: {problem}"
        if sample.t_s < before_s:
            yield f"sample {number}: time goes back to {sample.t_s:g} s"
        before_s = sample.t_s


def _verdict_from(values: Mapping[str, Any]) -> DirectionResult:
    """KeyError, TypeError or ValueError for what is none."""
    tx, rx = values["direction"].split("->")
    if type(values["at_least"]) is not bool:
        raise ValueError(f"at_least is {str(values['at_least'])[:40]!r}")
    trials = [Trial(**{**one, "offered_pps": plain_number(one["offered_pps"])}) for one in values["trials"]]
    return DirectionResult(
        direction=Direction(int(tx), int(rx)),
        limit=Limit(values["limit"]),
        at_least=values["at_least"],
        maximum_pps=plain_number(values["maximum_pps"]),
        first_bad_pps=_optional(values["first_bad_pps"]),
        uncertainty_pps=plain_number(values["uncertainty_pps"]),
        max_received_pps=plain_number(values["max_received_pps"]),
        saturated_at_s=_optional(values["saturated_at_s"]),
        reasons=(),
        hold_loss=_optional(values["hold_loss"]),
        sent=int(values["sent"]),
        received=int(values["received"]),
        trials=tuple(trials),
    )


def _optional(value: Any) -> float | None:
    return None if value is None else plain_number(value)
