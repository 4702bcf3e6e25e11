"""Checks of a measurement's requirements, each with its finding and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from .errors import BenchError, DutError, GeneratorError, LabError, StoreError


class State(Enum):
    """Outcome of a check."""

    GOOD = "good"
    DOUBTFUL = "doubtful"  # runs work, but their figures may be less true than they could be
    BAD = "bad"  # runs do not work


class Area(Enum):
    """The place that a check looks at."""

    HOST = "this machine"
    TESTER = "tester"
    LAB = "lab"
    DUT = "DUT"
    RESULTS = "results"


_ERRORS: dict[Area, type[BenchError]] = {
    Area.HOST: BenchError,
    Area.TESTER: GeneratorError,
    Area.LAB: LabError,
    Area.DUT: DutError,
    Area.RESULTS: StoreError,
}


@dataclass(frozen=True)
class Check:
    """One check, in words."""

    area: Area
    what: str
    state: State
    found: str  # with the cause where it is not good
    remedy: str = ""

    def to_document(self) -> dict[str, Any]:
        return {**asdict(self), "area": self.area.value, "state": self.state.value}


def judge(area: Area, what: str, good: bool, found: str, remedy: str) -> Check:
    """Return a check that is good, or else doubtful with this remedy."""
    return Check(area, what, State.GOOD, found) if good else Check(area, what, State.DOUBTFUL, found, remedy)


def attempt(area: Area, what: str, find: Callable[[], str]) -> Check:
    """Return a check that is good with the words that ``find`` returns, or bad with its error."""
    try:
        return Check(area, what, State.GOOD, find())
    except BenchError as error:
        return failed(area, what, error)


def failed(area: Area, what: str, error: BenchError) -> Check:
    """Return a check that ended in an error, whose line names cause and remedy."""
    return Check(area, what, State.BAD, str(error))


def exit_code(checks: Iterable[Check]) -> int:
    """Return the exit code that an error in the first bad check's area has; 0 without a bad check."""
    return next((_ERRORS[check.area].exit_code for check in checks if check.state is State.BAD), 0)
