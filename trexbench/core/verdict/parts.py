"""The parts of a verdict: what limits a direction, the rate it reached, and warnings about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ..load.plan import Direction


class Limit(str, Enum):
    """The reason why a direction carried no more."""

    DUT = "dut"
    GENERATOR_TX = "generator-tx"
    GENERATOR_RX = "generator-rx"
    LINK = "link"
    NONE = "none"
    UNKNOWN = "unknown"


NOT_FINISHED = "not-finished"
"""Code of the warning that a search used up its looks before its intervals were narrow enough."""


@dataclass(frozen=True)
class RunWarning:
    """A reason to doubt a figure, stored with it."""

    code: str  # for machines, as ``transient-loss``
    text: str  # for people


@dataclass(frozen=True)
class Goal:
    """A search's result for one goal: the highest rate at which no more than the share ``loss`` of the frames is lost.

    For MLRsearch maximum_pps and received_pps are its conditional throughput, low_pps and high_pps its relevant bounds.
    """

    loss: float  # the share that may be lost
    maximum_pps: float  # the estimate
    low_pps: float | None  # offered rate that lost no more, or below it if the DUT varies; None: no rate did
    high_pps: float | None  # offered rate that lost more, or above it if the DUT varies; None: no rate did
    sure: float | None  # probability that the throughput lies between them; None where the method states none
    received_pps: float | None  # median rate received at the good rate that low_pps is, or lies below

    @property
    def carried(self) -> Goal:
        """The goal with a rate that lost no more: that of a bound, or of a loss of 0 that no trial confirms."""
        return self if self.low_pps is None else replace(self, maximum_pps=min(self.maximum_pps, self.low_pps))


@dataclass(frozen=True)
class Verdict:
    """A strategy's conclusion about one direction. The fields are explained in DirectionResult."""

    limit: Limit  # what limited the direction
    reasons: tuple[str, ...]  # evidence, in words
    maximum_pps: float = 0.0  # the throughput, or the most that was carried
    low_pps: float | None = None  # lower end of its interval; None: none is stated
    high_pps: float | None = None  # upper end of it
    last_good_pps: float | None = None  # offered before sustained loss
    first_bad_pps: float | None = None  # offered where sustained loss began
    saturated_at_s: float | None = None  # when sustained loss began, on the run's clock
    goals: tuple[Goal, ...] = ()  # of a search, the first being the loss threshold

    @property
    def confirm_pps(self) -> float:
        """The lower end of the interval, which a steady router carries; without one the maximum."""
        return self.maximum_pps if self.low_pps is None else self.low_pps

    @property
    def uncertainty_pps(self) -> float:
        """The distance from the maximum to the farther end of its interval; 0 without one."""
        low, high = self.low_pps, self.high_pps
        return 0.0 if low is None or high is None else max(self.maximum_pps - low, high - self.maximum_pps)


@dataclass(frozen=True)
class Trial:
    """One confirmation trial: a rate was held and drained, and totals compared."""

    number: int  # from 1
    offered_pps: float  # asked for; or sent, where the generator sent another rate
    sent: int  # frames
    received: int  # frames, drain included
    loss: float | None  # share of those sent
    passed: bool  # lost no more than the threshold, besides what the path loses


@dataclass(frozen=True, kw_only=True)
class DirectionResult(Verdict):
    """One direction's verdict; rates in frames per second, losses as fractions.

    Of a ramp or search, maximum_pps is the best estimate of the rate above which more than the threshold is lost; of a
    threshold of 0, once a trial passed, the rate confirmed (RFC 2544's throughput, RFC 9971's conditional throughput).
    It is a statement about the DUT only without at_least: then it lies between low_pps and high_pps in 95 of 100 runs,
    in a search with the probability that its goal states. With at_least the direction carried *at least* that much, and
    a ramp or search states no interval. A search's first goal has the figures of the direction.

    Of saturate, maximum_pps is the mean rate received over the hold, without its first window, and low_pps to high_pps
    the 95 % interval of that mean. Without at_least the DUT forwards no more of the offered load, which is not a
    loss-free throughput; first_bad_pps is the offered load.
    """

    direction: Direction  # ``0->1``: from the tester's port 0 to its port 1
    at_least: bool  # the direction carried at least maximum_pps; the DUT was not its limit
    max_received_pps: float  # highest rate received in any window; under overload it may exceed maximum_pps
    hold_loss: float | None  # share lost in the hold; None: there was none
    sent: int  # frames of the whole run, warm-up and trials included
    received: int  # frames of the whole run
    trials: tuple[Trial, ...]  # of the confirmation

    @property
    def confirmed_pps(self) -> float | None:
        """Highest rate whose trial passed; None: none did."""
        return max((t.offered_pps for t in self.trials if t.passed), default=None)

    def is_bound(self, goal: Goal) -> bool:
        """Test if the goal's rate is a lower bound: the DUT was not the limit, or never lost more than the goal."""
        return self.at_least or goal.high_pps is None


@dataclass(frozen=True)
class Stall:
    """Sustained loss that is no limit: its rate was held again later, and carried."""

    direction: Direction  # as ``0->1``
    begin_s: float  # on the run's clock
    length_s: float  # how long it lasted
    sent: int  # frames, while it lasted
    lost: int  # frames of these
    nothing_forwarded: bool  # for at least one window; then length_s follows from what was lost


@dataclass(frozen=True)
class Analysis:
    directions: tuple[DirectionResult, ...]
    warnings: tuple[RunWarning, ...]
    stalls: tuple[Stall, ...] = ()

    @property
    def total_pps(self) -> float:
        """Sum of the directions' maximum_pps."""
        return sum(d.maximum_pps for d in self.directions)

    @property
    def at_least(self) -> bool:
        """The sum is a lower bound: in some direction the DUT was not the limit."""
        return any(d.at_least for d in self.directions)

    @property
    def unanswered(self) -> str:
        """The reason why the run does not answer what was asked; empty where it does."""
        reasons = [reason for result in self.directions if result.limit is Limit.UNKNOWN for reason in result.reasons]
        reasons += [warning.text for warning in self.warnings if warning.code == NOT_FINISHED]
        return next(iter(reasons), "")
