"""Requirements of a measurement, checked one by one: what was found, whether that is good, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from .errors import BenchError, DutError, GeneratorError, LabError, StoreError


class State(Enum):
    """doubtful: runs work, but their figures may be less true than they could be. bad: they do not work."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


class Area(Enum):
    """Where a check looks."""

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
    """One check. found: in words, with the cause where it is not good; remedy: what a person can do then."""

    area: Area
    what: str
    state: State
    found: str
    remedy: str = ""

    def to_document(self) -> dict[str, Any]:
        return {**asdict(self), "area": self.area.value, "state": self.state.value}


def judge(area: Area, what: str, good: bool, found: str, remedy: str) -> Check:
    """A check that is good, or else doubtful with this remedy."""
    return Check(area, what, State.GOOD, found) if good else Check(area, what, State.DOUBTFUL, found, remedy)


def attempt(area: Area, what: str, find: Callable[[], str]) -> Check:
    """A check that is good with what ``find`` returns, or bad with its error."""
    try:
        return Check(area, what, State.GOOD, find())
    except BenchError as error:
        return failed(area, what, error)


def failed(area: Area, what: str, error: BenchError) -> Check:
    """A check that ended in an error, whose line names cause and remedy."""
    return Check(area, what, State.BAD, str(error))


def exit_code(checks: Iterable[Check]) -> int:
    """Return the exit code of the first bad check, as an error there would have had it; 0 without one."""
    return next((_ERRORS[one.area].exit_code for one in checks if one.state is State.BAD), 0)
