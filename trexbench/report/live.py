"""Progress while a run is going on: what is asked, sent, received and lost right now, and how long it still takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, TextIO

from ..core.plan import LATENCY_LOADS, Plan
from ..core.ports import Sink
from ..core.ramp import Step
from ..core.result import RunResult
from ..core.sample import LATENCY_PHASES, Phase, Sample
from ..core.units import format_duration, format_pps, format_share
from ..core.windows import Window, build_window

LINE_S = 5.0
"""Without a terminal: seconds between lines, and one more at each phase."""

ORDER = tuple(phase for phase in Phase if phase is not Phase.BASELINE)
WORDS = {
    Phase.BASELINE: "begin",
    Phase.WARMUP: "warm-up",
    Phase.RAMP: "ramp",
    Phase.HOLD: "hold",
    Phase.DRAIN: "drain",
    Phase.CONFIRM: "confirm",
    Phase.CONFIRM_DRAIN: "drain again",
    Phase.LATENCY: "latency",
    Phase.LATENCY_DRAIN: "drain",
}


class Live(Sink, AbstractContextManager["Live"], Protocol):
    """A sink that shows what it sees until its block ends."""


def open_live(result: RunResult, stream: TextIO, speedup: float = 1.0) -> Live:
    """In place on a terminal, in lines elsewhere. speedup: so many seconds of the run pass in one of the reader's."""
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        from .terminal import TerminalLive  # rich: only where it draws

        return TerminalLive(result, stream, speedup)
    return PlainLive(result.plan, stream, LINE_S * speedup, speedup)


@dataclass(frozen=True)
class Progress:
    """Where a run stands. windows: one per direction, of about the last second; elapsed_s and left_s: of the whole run.

    speedup: so many seconds of the run pass in one of the reader's.
    """

    phase: Phase
    trial: int
    asked_pps: float
    elapsed_s: float
    left_s: float
    windows: Sequence[Window]
    speedup: float = 1.0

    @property
    def left_words(self) -> str:
        return f"{format_duration(self.left_s / self.speedup)} left"

    @property
    def share(self) -> float:
        """How much of the run is over, between 0 and 1."""
        return self.elapsed_s / (self.elapsed_s + self.left_s) if self.elapsed_s > 0 else 0.0

    @property
    def phase_words(self) -> str:
        return f"{WORDS[self.phase]}{f' {self.trial}' if self.trial else ''}"


class Follower:
    """Samples -> progress, looking at the newest of them only."""

    def __init__(self, plan: Plan, speedup: float = 1.0) -> None:
        self._plan, self._speedup = plan, speedup
        self._window = max(1, round(plan.window_s / plan.sample_s))
        self._phase: tuple[Phase, int] | None = None
        self._begun_s = 0.0
        self._begun_index = 0

    def follow(self, samples: Sequence[Sample]) -> bool:
        """Take note of the newest sample; whether a phase began with it."""
        last = samples[-1]
        changed = (last.phase, last.trial) != self._phase
        if changed:
            self._phase, self._begun_index = (last.phase, last.trial), max(0, len(samples) - 2)
            self._begun_s = samples[self._begun_index].t_s
        return changed

    def progress(self, samples: Sequence[Sample]) -> Progress:
        """After ``follow`` of these samples."""
        last = samples[-1]
        recent = samples[max(self._begun_index, len(samples) - 1 - self._window) :]
        windows = [build_window(d, recent) for d in self._plan.directions] if len(recent) > 1 else []
        left = time_left(self._plan, last.phase, last.t_s - self._begun_s, last.trial)
        return Progress(last.phase, last.trial, last.asked_pps, last.t_s - samples[0].t_s, left, windows, self._speedup)


def time_left(plan: Plan, phase: Phase, in_phase_s: float, trial: int = 0) -> float:
    """Seconds to the end of the run, if saturation is found and its first trial confirms it."""
    if phase is Phase.BASELINE:
        return plan.duration_s
    confirms = plan.kind == "ramp" and plan.confirm_s > 0
    lengths = {
        Phase.WARMUP: plan.warmup_s,
        Phase.RAMP: plan.ramp_s if plan.kind == "ramp" else 0.0,
        Phase.HOLD: plan.hold_s,
        Phase.DRAIN: plan.drain_s,
        Phase.CONFIRM: plan.confirm_s if confirms else 0.0,
        Phase.CONFIRM_DRAIN: plan.drain_s if confirms else 0.0,
        Phase.LATENCY: plan.latency_s if plan.load_s else 0.0,
        Phase.LATENCY_DRAIN: plan.drain_s if plan.load_s else 0.0,
    }
    later = sum(lengths[one] for one in ORDER[ORDER.index(phase) + 1 :])
    loads = len(LATENCY_LOADS) - (trial if phase in LATENCY_PHASES else 1)
    return max(0.0, lengths[phase] - in_phase_s) + later + loads * plan.load_s


class PlainLive:
    """One line every few seconds: for pipes and logs."""

    def __init__(self, plan: Plan, stream: TextIO, every_s: float = LINE_S, speedup: float = 1.0) -> None:
        self._stream, self._every_s = stream, every_s
        self._plan, self._follower = plan, Follower(plan, speedup)
        self._next_s = 0.0

    def __enter__(self) -> PlainLive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.flush()

    def sampled(self, samples: Sequence[Sample], step: Step) -> None:
        changed, now_s = self._follower.follow(samples), samples[-1].t_s
        if changed or now_s >= self._next_s:
            self._next_s = now_s + self._every_s - self._plan.sample_s / 2
            self._stream.write(format_progress(self._plan, self._follower.progress(samples)) + "\n")
            self._stream.flush()


def format_progress(plan: Plan, progress: Progress) -> str:
    """One line: ``32 s  ramp  asked 649.6 kpps  0->1 sent ... received ... loss ...  45 s left``."""
    parts = [format_duration(progress.elapsed_s), progress.phase_words, asked_words(plan, progress)]
    for direction, window in zip(plan.directions, progress.windows, strict=False):
        rates = f"sent {format_pps(window.sent_pps)} received {format_pps(window.received_pps)}"
        parts.append(f"{direction} {rates} loss {format_loss(window)}")
    parts.append(progress.left_words)
    return "  ".join(parts)


def asked_words(plan: Plan, progress: Progress) -> str:
    if not progress.asked_pps:
        return "silence"
    share = format_share(plan.line_share(progress.asked_pps))
    return f"asked {format_pps(progress.asked_pps)} per direction ({share} of line rate)"


def format_loss(window: Window) -> str:
    return "-" if window.loss is None else format_share(window.loss)
