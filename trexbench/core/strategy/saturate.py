"""The target offered at once: the rate received is what the DUT can forward under overload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median_low, stdev
from typing import ClassVar

from ..load.plan import Direction
from ..load.sample import Phase, Sample
from ..load.windows import RunWindows, Window, measured_windows
from ..means import mean_uncertainty, student
from ..units import format_length, format_pps, format_share
from ..verdict.blame import blame, limit_without_loss
from ..verdict.knee import find_loss
from ..verdict.parts import Limit, Verdict
from ..verdict.path import AGREE
from .base import LoadStep, Stage, Strategy


@dataclass(frozen=True)
class Saturate(Strategy):
    """A hold of the target. The first window is left out of the verdict: a sudden load needs it to settle."""

    kind: ClassVar[str] = "saturate"
    settling_windows: ClassVar[int] = 1
    target_option: ClassVar[str] = "--rate"
    curve_phases: ClassVar[tuple[Phase, ...]] = (Phase.HOLD,)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_length(self.hold_s, "--hold")

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        warmup, hold = Stage(Phase.WARMUP, self.warmup_s), Stage(Phase.HOLD, self.hold_s)
        return warmup, hold, Stage(Phase.DRAIN, self.drain_s)

    def next_step(self, history: Sequence[Sample]) -> LoadStep | None:
        if (step := self.keep_rates(history)) is not None:
            return step
        if history[-1].phase is Phase.WARMUP:
            return self.begin(Phase.HOLD, history, self.targets())
        return self.drain(history) if history[-1].phase is Phase.HOLD else None

    def words(self, target: str) -> Iterator[str]:
        yield f"{target} at once for {format_length(self.hold_s)}"

    def conclude(self, history: RunWindows, direction: Direction) -> Verdict:
        """Find the mean rate received, and the interval that holds the DUT's in 95 of 100 cases (core.means)."""
        windows = history.sending(direction)
        if not windows:
            return Verdict(Limit.NONE, ("the run ended before it measured anything",))
        received, offered = [w.received_pps for w in windows], fmean(w.sent_pps for w in windows)
        mean = fmean(received)
        between: tuple[float | None, float | None] = (None, None)
        if len(received) > 1:
            spread = mean_uncertainty(received) or student(len(received) - 1) * stdev(received) / len(received) ** 0.5
            between = (max(0.0, mean - spread), mean + spread)
        bad = find_loss(self, windows)
        if bad:
            limit, reasons = blame(self, windows)
            if limit is Limit.DUT and (same := self._lost_in_warmup(history, direction, windows)):
                limit, reasons = Limit.UNKNOWN, (same,)
            reasons = (f"offered {format_pps(offered)}, received {format_pps(mean)}", *reasons)
            return Verdict(limit, reasons, mean, *between, None, windows[bad[0]].sent_pps, windows[bad[0]].begin_s)
        limit, reasons = limit_without_loss(self, windows, windows)
        without_loss = (f"no sustained loss above {100 * self.loss_threshold:g} % of {format_pps(offered)} offered",)
        return Verdict(limit, reasons or without_loss, mean, *between)

    def _lost_in_warmup(self, history: RunWindows, direction: Direction, windows: Sequence[Window]) -> str:
        """Explain that the loss shows no limit, as most of the warm-up lost about as large a share; else empty."""
        warm = [w for w in measured_windows(self, history.samples, direction, (Phase.WARMUP,)) if w.sent]
        share = median_low([w.lost / w.sent for w in warm]) if warm else 0.0
        if share <= 0 or sum(w.lost for w in windows) > share * (1 + AGREE) * sum(w.sent for w in windows):
            return ""
        return (
            f"{format_share(share)} of the frames were lost at {format_pps(warm[-1].sent_pps)} in the warm-up, and "
            "not much more now: the DUT was not at its limit; look for what loses frames on the path"
        )
