"""A linear rise of the load: sustained loss marks the knee. Then that rate is confirmed, and latency measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot
from statistics import median
from typing import ClassVar

from ..load.plan import LATENCY_LOADS, MIN_OFFERED_PPS, Direction, require
from ..load.sample import LATENCY_PHASES, Phase, Sample
from ..load.windows import RunWindows, Window
from ..units import format_length, format_pps, format_rate, format_share
from ..verdict.blame import blame_onset, limit_without_loss
from ..verdict.evidence import AT_ONCE, MAX_RECHECKS, find_evidence, find_rechecks
from ..verdict.knee import find_knee, slow_share
from ..verdict.parts import DirectionResult, Limit, Verdict
from .analysis import FAR_LOWER, TRIALS_LOWER, analyse, next_trial
from .base import LoadStep, Rates, Stage, Strategy, phase_begun, phase_first

COARSE_STEP = 0.02
"""A step of more than this share of the knee leaves open where the knee lies."""
LOWER_AT_NO_LOSS = 0.01
"""Share by which a trial is below the interval's lower end with --loss 0, whose throughput is the rate confirmed.
Without it, eight of eight ramps of a twin with noise of 0.3 % (netgate-vpp) state 3 % too little, with it two of four
do."""


@dataclass(frozen=True)
class Ramp(Strategy):
    """A linear ramp, a hold at the target, the first bad rate once more, confirmation, latency."""

    ramp_s: float = 600.0  # from zero to the target
    confirm_s: float = 10.0  # hold that confirms the rate found; 0: neither that, nor a recheck of the first bad rate
    latency_s: float = 0.0  # then at each of 10, 50 and 90 % of the throughput, with tagged frames; 0: none

    kind: ClassVar[str] = "ramp"
    seeks_knee: ClassVar[bool] = True
    curve_phases: ClassVar[tuple[Phase, ...]] = (Phase.RAMP,)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.latency_s == 0 or self.latency_s >= 2 * self.sample_s,
            f"--latency of {self.latency_s:g} s is too short for a mean",
            f"use at least {2 * self.sample_s:g} s, or 0",
        )
        self.require_length(self.ramp_s, "--ramp-duration")

    def step_pps(self, direction: Direction) -> float:
        return self.offer(direction).target_pps * max(self.window_s, self.sample_s) / self.ramp_s

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        stages = [Stage(Phase.WARMUP, self.warmup_s), Stage(Phase.RAMP, self.ramp_s), Stage(Phase.HOLD, self.hold_s)]
        if self.confirm_s:
            # Twice as long as loss must last: the second half decides.
            stages.append(Stage(Phase.RECHECK, 2 * self.windows * max(self.window_s, self.sample_s)))
        stages.append(Stage(Phase.DRAIN, self.drain_s))
        if self.confirm_s:
            stages += [Stage(Phase.CONFIRM, self.confirm_s, 1), Stage(Phase.CONFIRM_DRAIN, self.drain_s, 1)]
        for load in range(1, len(LATENCY_LOADS) + 1) if self.latency_s else ():
            stages += [Stage(Phase.LATENCY, self.latency_s, load), Stage(Phase.LATENCY_DRAIN, self.drain_s, load)]
        return tuple(stages)

    def next_step(self, history: Sequence[Sample]) -> LoadStep | None:
        last = history[-1]
        going_on = self._climb if last.phase is Phase.RAMP else self.keep_rates
        if (step := going_on(history)) is not None:
            return step
        if last.phase is Phase.WARMUP:
            step = self.begin(Phase.RAMP, history, {})
            share = (step.until_s - last.t_s) / self.ramp_s
            return LoadStep(Phase.RAMP, self.rates_at(dict.fromkeys(self.directions, share)), step.until_s)
        if last.phase is Phase.RAMP and self.hold_s:
            return self.begin(Phase.HOLD, history, self.targets(), last.trial)
        if last.phase in (Phase.RAMP, Phase.HOLD):
            return self._recheck(history, last.trial) or self.drain(history)
        if last.asked_pps:
            return self.drain(history)
        if last.phase is Phase.LATENCY_DRAIN:
            return self._next_load(history, last.trial + 1)
        again = self._resume(history) or self._recheck(history, last.trial + 1) if last.phase is Phase.DRAIN else None
        return again or next_trial(self, history, self._tries) or self._next_load(history, 1)

    def conclude(self, history: RunWindows, direction: Direction) -> Verdict:
        """Find the knee; without one, the rate carried without loss, and what limited it."""
        evidence = find_evidence(history, direction)
        windows = evidence.windows
        knee = find_knee(self, windows, self.step_pps(direction))
        if knee is None:
            return self._unsaturated(windows, evidence.path.lost)
        limit, reasons = blame_onset(self, [windows[at] for at in knee.row], windows)
        since_s = windows[knee.row[0]].begin_s
        if limit is not Limit.DUT:
            bounds = (knee.last_good_pps, knee.first_bad_pps, since_s)
            return Verdict(limit, reasons, knee.last_good_pps, None, None, *bounds)
        slow = 2 * slow_share([w for w in windows if w.phase is Phase.HOLD]) * knee.maximum_pps
        low, high = (hypot(end - knee.maximum_pps, slow) for end in knee.interval_pps)
        low = max(0.0, knee.maximum_pps - low)
        high += knee.maximum_pps
        return Verdict(limit, reasons, knee.maximum_pps, low, high, knee.last_good_pps, knee.first_bad_pps, since_s)

    def hints(self, results: Sequence[DirectionResult]) -> Iterator[str]:
        """Report that the ramp's step is coarse for the knee found, and what resolves it finer."""
        enough_pps = 2 * max(result.maximum_pps for result in results)
        limited = [result for result in results if result.limit is Limit.DUT]
        lower = len(limited) == len(results) and all(enough_pps < offer.target_pps for offer in self.offers)
        finer = f"--ramp-to {format_rate(enough_pps)}, or trexbench search" if lower else "trexbench search"
        for result in limited:
            share = self.step_pps(result.direction) / result.maximum_pps if result.maximum_pps else 0.0
            if share > COARSE_STEP:
                yield f"{result.direction}: a step of the ramp is {format_share(share)} of the rate found: use {finer}"

    def words(self, target: str) -> Iterator[str]:
        yield f"ramp to {target} in {format_length(self.ramp_s)}"
        yield f"hold {format_length(self.hold_s)}"
        if self.confirm_s:
            yield f"confirm {format_length(self.confirm_s)}"
        if self.latency_s:
            loads = ", ".join(f"{100 * share:g}" for share in LATENCY_LOADS)
            yield f"latency at {loads} % of the throughput, {format_length(self.latency_s)} each"

    def without_latency(self) -> Ramp:
        return replace(self, latency_s=0.0)

    def throughput(self, history: Sequence[Sample]) -> float:
        """The rate that all directions carried: confirmed where a trial passed, else that to be confirmed; or 0."""
        results = analyse(self, [s for s in history if s.phase not in LATENCY_PHASES]).directions
        return min((r.confirm_pps if r.confirmed_pps is None else r.confirmed_pps for r in results), default=0.0)

    def _tries(self, verdict: Verdict) -> tuple[float, ...]:
        """The rates of a direction's trials: the estimate, which a steady router carries in half of the runs."""
        lower = (*TRIALS_LOWER, FAR_LOWER) if self.loss_threshold else (LOWER_AT_NO_LOSS, *TRIALS_LOWER)
        ends = () if verdict.low_pps is None else (verdict.low_pps,)
        return verdict.maximum_pps, *ends, *(verdict.confirm_pps * (1 - share) for share in lower)

    def _climb(self, history: Sequence[Sample]) -> LoadStep | None:
        """The next step of the ramp; None at its end. A ramp resumed after a stall begins at the first bad rate."""
        trial, begun_s, skipped_s = history[-1].trial, phase_begun(history), 0.0
        if trial:
            first = history[phase_first(history)].asked_pps
            share = max(pps / self.offer(direction).target_pps for direction, pps in first.items())
            skipped_s = share * self.ramp_s - self.sample_s
        until_s = self.go_on(history, self.ramp_s - skipped_s)
        if until_s is None:
            return None
        share = (skipped_s + until_s - begun_s) / self.ramp_s
        return LoadStep(Phase.RAMP, self.rates_at(dict.fromkeys(self.directions, share)), until_s, trial)

    def _recheck(self, history: Sequence[Sample], number: int) -> LoadStep | None:
        """Hold the rates at which loss set in once more; None where none is left to check.

        All directions get what the ramp offered then, as the DUT's directions may depend on one another. The same hold
        checks loss that set in elsewhere a little later.
        """
        if self.confirm_s == 0 or number >= MAX_RECHECKS:
            return None
        measured = RunWindows(self, history)
        ends = [w.end_s for d in self.directions if (w := self._unchecked(measured, d)) is not None]
        if not ends:
            return None
        near_s = self.windows * max(self.window_s, self.sample_s)
        at_s = max(end_s for end_s in ends if end_s <= min(ends) + near_s)
        return self.begin(Phase.RECHECK, history, _asked_at(history, at_s), number)

    def _unchecked(self, measured: RunWindows, direction: Direction) -> Window | None:
        """The first window of the DUT's sustained loss, unless its rate has been held again since."""
        verdict = self.conclude(measured, direction)
        if verdict.limit is not Limit.DUT:
            return None
        first = next(w for w in measured.judged(direction) if w.begin_s == verdict.saturated_at_s)
        least_pps = first.asked_pps * (1 - AT_ONCE)
        most_pps = first.asked_pps + (self.windows + 1) * self.step_pps(direction)
        later = [recheck for recheck in find_rechecks(measured, direction) if recheck.begin_s >= first.end_s]
        checked = any(least_pps <= again.window.asked_pps <= most_pps and not again.stood for again in later)
        return None if checked else first

    def _resume(self, history: Sequence[Sample]) -> LoadStep | None:
        """Go on from the first bad rate where that was carried after all, and the ramp had ended there."""
        if history[-1].trial > MAX_RECHECKS:
            return None
        measured = RunWindows(self, history)
        from_s = [w.end_s for d in self.directions if (w := find_evidence(measured, d).cut_short) is not None]
        if not from_s:
            return None
        return self.begin(Phase.RAMP, history, _asked_at(history, min(from_s)), history[-1].trial + 1)

    def _next_load(self, history: Sequence[Sample], first: int) -> LoadStep | None:
        """Begin the next load of the latency, from number ``first`` on, that is high enough to be sent evenly."""
        if self.latency_s == 0:
            return None
        throughput = self.throughput(history)
        for load, share in enumerate(LATENCY_LOADS[first - 1 :], first):
            if (pps := share * throughput) >= MIN_OFFERED_PPS:
                rates = {offer.direction: offer.within(pps) for offer in self.offers}
                return self.begin(Phase.LATENCY, history, rates, load)
        return None

    def _unsaturated(self, windows: Sequence[Window], path_loss: float) -> Verdict:
        """Conclude without sustained loss, besides what the path loses at every rate."""
        if not windows:
            return Verdict(Limit.NONE, ("the run ended before it measured anything",))
        good = [w for w in windows if not w.is_bad(self.loss_threshold)]
        if not good:
            return Verdict(Limit.NONE, ("every window was lossy, and there were too few to judge",))
        hold = [w for w in windows if w.phase is Phase.HOLD]
        limit, reasons = limit_without_loss(self, windows, hold or windows[-self.windows :])
        if limit is Limit.NONE and (erratic := self._erratic(windows)) is not None:
            return erratic
        held = [w.sent_pps for w in good if w.phase is Phase.HOLD]
        carried = max(w.sent_pps for w in good) if limit is not Limit.NONE or not held else median(held)
        loss = f"no sustained loss above {100 * self.loss_threshold:g} %"
        loss += f" beyond the {format_share(path_loss)} lost at every rate" if path_loss > 0 else ""
        return Verdict(limit, reasons or (f"{loss} up to {format_pps(carried)}, the most that was offered",), carried)

    def _erratic(self, windows: Sequence[Window]) -> Verdict | None:
        """Conclude that from some window on at least half lose frames, though never enough in a row; None if not.

        What was carried before it is a bound. Frames that are only late show as loss in one window and as too many in
        another: all together they are not lost.
        """
        lossy = [at for at, window in enumerate(windows) if window.is_bad(self.loss_threshold)]
        for number, since in enumerate(lossy[: len(lossy) - self.windows + 1]):
            after, count = windows[since:], len(lossy) - number
            share = sum(w.lost for w in after) / sum(w.sent for w in after)
            if 2 * count >= len(after) and share > self.loss_threshold:
                carried = max((w.sent_pps for w in windows[:since] if not w.is_bad(self.loss_threshold)), default=0.0)
                reason = (
                    f"{format_share(share)} of the frames were lost from {format_pps(after[0].sent_pps)} on, in "
                    f"{count} of {len(after)} windows, but never in {self.windows} in a row: use a longer `window:` in "
                    "the plan, or trexbench search"
                )
                return Verdict(Limit.UNKNOWN, (reason,), carried, last_good_pps=carried)
        return None


def _asked_at(history: Sequence[Sample], t_s: float) -> Rates:
    """The rates asked of every direction until this moment."""
    return next(sample.asked_pps for sample in history if sample.t_s >= t_s)
