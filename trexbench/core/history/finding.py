"""A finding: a change of one figure of one cell, and its kind. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from .cell import Cell
from .detect import Shape
from .rows import Metric


class Kind(str, Enum):
    """A kind of finding."""

    REGRESSION = "regression"
    SUSPICION = "suspicion"
    """One night or a few, which would be a change with more like the last."""
    ENDED = "ended"
    """A regression that has recovered; only as the loss of a recovery."""
    OLDER = "older"
    """A regression that does not alarm, because it began before the nights that are asked for."""
    RECOVERY = "recovery"
    """The end of a regression."""
    IMPROVEMENT = "improvement"
    KNOWN = "known"
    """An acknowledged change."""


@dataclass(frozen=True)
class Finding:
    """A change of one figure of one cell."""

    cell: Cell
    metric: Metric
    kind: Kind
    nights: int
    """Nights measured since the change."""
    since: str = ""
    """The first night of the change."""
    reported: str = ""
    """The night after which it was found."""
    before: float = 0.0
    """Level before the change, in the metric's unit; after: level since."""
    after: float = 0.0
    noise: float = 0.0
    """Standard deviation of a night of the usual level."""
    usual: float = 0.0
    """That level, in the metric's unit."""
    shape: Shape = Shape.STEP
    at_least: bool = False
    """The level since is a lower bound."""
    before_at_least: bool = False
    """The level before is one."""
    explanation: tuple[str, ...] = ()
    note: str | None = None
    between: tuple[str, str] | None = None
    """The first and last night in which it may have begun."""
    loss: Finding | None = None
    """The regression that a recovery ended, or that a relapse repeats."""
    more: int = 0
    """Further nights like the last one that would make a suspicion a change."""
    elsewhere: bool = False
    """Found in the history of another tester than the one that is judged."""
    start: int = 0
    """Index of its first night among those of the figure; end: of the first night of the next level."""
    end: int = 0
    last: str = ""
    """The last night before ``end``."""

    @property
    def steps(self) -> tuple[Finding, ...]:
        """The changes that a trend shows: before a recovery the loss that it ended; a suspicion is none yet."""
        lost = self.loss if self.kind is Kind.RECOVERY else None
        ended = () if lost is None else (replace(lost, noise=self.noise),)
        return () if self.kind is Kind.SUSPICION else (*ended, self)

    @property
    def length(self) -> int:
        """Nights measured until the next level."""
        return self.end - self.start

    @property
    def share(self) -> float | None:
        """The difference as a share of the level before; None if that is 0."""
        return (self.after - self.before) / abs(self.before) if self.before else None

    @property
    def bound(self) -> str:
        """Sign of the change if it is only known to be at least, or at most, ``share``: ``>=`` or ``<=``."""
        return ">=" * self.at_least or "<=" * self.before_at_least

    @property
    def severity(self) -> float:
        """The size of the change as a share, for sorting."""
        return abs(self.share) if self.share is not None else float("inf")

    @property
    def worse(self) -> bool:
        return (self.after < self.before) is (self.metric.better == "higher")

    @property
    def is_relapse(self) -> bool:
        """True if the figure was at this worse level before."""
        return self.worse and self.loss is not None
