"""Two runs side by side: whether they may be compared at all, and in which directions they really differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import hypot

from .plan import Direction
from .result import RunResult, Status
from .units import format_bits, format_share
from .verdict import DirectionResult


class Verdict(str, Enum):
    """What the second run's direction is beside the first's. unknown: one of them was not limited by its DUT."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Pair:
    """One direction of both runs. difference_pps: second less first; noise_pps: what their uncertainties leave open."""

    direction: Direction
    first: DirectionResult
    second: DirectionResult

    @property
    def difference_pps(self) -> float:
        return self.second.maximum_pps - self.first.maximum_pps

    @property
    def noise_pps(self) -> float:
        return hypot(self.first.uncertainty_pps, self.second.uncertainty_pps)

    @property
    def share(self) -> float | None:
        """The difference as a share of the first; None where the first is nothing."""
        return self.difference_pps / self.first.maximum_pps if self.first.maximum_pps else None

    @property
    def verdict(self) -> Verdict:
        return judge(self.difference_pps, self.noise_pps, self.first.at_least, self.second.at_least)


def judge(difference: float, noise: float, first_at_least: bool, second_at_least: bool) -> Verdict:
    """Bounds decide only where one lies beyond the other's value: at least 5 is faster than 4."""
    if first_at_least and second_at_least:
        return Verdict.UNKNOWN
    if first_at_least:
        return Verdict.SLOWER if difference < -noise else Verdict.UNKNOWN
    if second_at_least:
        return Verdict.FASTER if difference > noise else Verdict.UNKNOWN
    if abs(difference) <= noise:
        return Verdict.SAME
    return Verdict.FASTER if difference > 0 else Verdict.SLOWER


def find_pairs(first: RunResult, second: RunResult) -> tuple[Pair, ...]:
    """The directions that both runs have, in the first's order."""
    others = {one.direction: one for one in second.analysis.directions}
    return tuple(
        Pair(one.direction, one, others[one.direction]) for one in first.analysis.directions if one.direction in others
    )


def find_unlike(first: RunResult, second: RunResult) -> Iterator[str]:
    """Why a difference between these runs would not be one between their DUTs; nothing where it would."""
    if first.simulated != second.simulated:
        names = {True: "simulated", False: "measured"}
        yield f"one is {names[first.simulated]}, the other {names[second.simulated]}"
    if first.plan.kind != second.plan.kind:
        yield f"one is a {first.plan.kind}, the other a {second.plan.kind}"
    if first.plan.directions != second.plan.directions:
        one, other = (", ".join(map(str, run.plan.directions)) for run in (first, second))
        yield f"directions {one} and {other}"
    if first.profile.get("digest") != second.profile.get("digest"):
        yield f"different traffic: {first.profile.get('mix')} and {second.profile.get('mix')}, or other headers"
    if first.plan.line_rate_bps != second.plan.line_rate_bps:
        yield f"line rates of {format_bits(first.plan.line_rate_bps)} and {format_bits(second.plan.line_rate_bps)}"
    if first.plan.loss_threshold != second.plan.loss_threshold:
        one, other = (format_share(run.plan.loss_threshold) for run in (first, second))
        yield f"loss thresholds of {one} and {other}"
    yield from _unlike_duts(first, second)
    for run in (first, second):
        if run.status is not Status.COMPLETE:
            yield f"the run of {run.started} is {run.status.value}"


def _unlike_duts(first: RunResult, second: RunResult) -> Iterator[str]:
    """Only of one and the same DUT: that two DUTs differ is what one wants to see."""
    if first.dut.get("name") != second.dut.get("name"):
        return
    one, other = first.dut.get("facts_sha256"), second.dut.get("facts_sha256")
    if one != other:
        facts = [run.dut.get("facts") for run in (first, second)]
        yield f"{first.dut.get('name')} was not configured alike{differing_facts(*facts)}"


def differing_facts(one: object, other: object) -> str:
    """Names of the facts in which two DUTs differ, in brackets; nothing where they cannot be named."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return ""
    keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    return f" ({', '.join(keys[:4])}{', ...' if len(keys) > 4 else ''})" if keys else ""
