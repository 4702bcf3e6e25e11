"""Progress of a run: rates asked, sent and received, the current loss, and the time left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from ...core.load.plan import Direction, Plan
from ...core.load.sample import Phase, Sample
from ...core.load.windows import Window, build_window
from ...core.result import RunResult
from ...core.strategy.base import LoadStep, Strategy
from ...core.units import format_duration, format_pps, format_share
from ..room import room_of, wrapped
from ..words import or_dash

LINE_S = 10.0
"""Real seconds between two lines of progress where it is not drawn in place."""
WORDS = {
    Phase.BASELINE: "begin",
    Phase.WARMUP: "warm-up",
    Phase.RAMP: "ramp",
    Phase.SEARCH: "search",
    Phase.HOLD: "hold",
    Phase.RECHECK: "first bad rate again",
    Phase.DRAIN: "drain",
    Phase.ZOOM: "zoom",
    Phase.ZOOM_DRAIN: "drain",
    Phase.CONFIRM: "confirm",
    Phase.CONFIRM_DRAIN: "drain again",
    Phase.LATENCY: "latency",
    Phase.LATENCY_DRAIN: "drain",
}


@dataclass(frozen=True)
class LiveProgress:
    """State of a run in progress; its times are those of the whole run."""

    phase: Phase
    trial: int
    asked_pps: Mapping[Direction, float]
    elapsed_s: float
    left_s: float
    windows: Sequence[Window]
    """One per direction, of about the last second."""
    speedup: float = 1.0
    """Simulated seconds per real second."""

    @property
    def left_words(self) -> str:
        return f"{format_duration(self.left_s / self.speedup)} left"

    @property
    def share(self) -> float:
        """Share of the run that is over, from 0 to 1."""
        return self.elapsed_s / (self.elapsed_s + self.left_s) if self.elapsed_s > 0 else 0.0

    @property
    def phase_words(self) -> str:
        return f"{WORDS[self.phase]}{f' {self.trial}' if self.trial else ''}"


class Follower:
    """Converts the newest samples to progress."""

    def __init__(self, plan: Strategy, speedup: float = 1.0) -> None:
        self._plan, self._speedup = plan, speedup
        self._window = max(1, round(plan.window_s / plan.sample_s))
        self._phase: tuple[Phase, int] | None = None
        self._begun_s = 0.0
        self._begun_index = 0
        self.settling = False
        """True while a new rate settles: the newest sample's counts belong to no single rate."""

    def follow(self, samples: Sequence[Sample]) -> bool:
        """Note the newest sample; return True if it is the first usable one of its phase and trial."""
        last, before, settled = samples[-1], max(0, len(samples) - 2), self.settling
        changed = (last.phase, last.trial) != self._phase
        new_rate = last.asked_pps != samples[before].asked_pps
        self.settling = changed and new_rate and last.phase is Phase.SEARCH and self._plan.settles
        if changed:
            self._phase, self._begun_s = (last.phase, last.trial), samples[before].t_s
            self._begun_index = len(samples) - 1 if self.settling else before
        return (changed or settled) and not self.settling

    def progress(self, samples: Sequence[Sample]) -> LiveProgress:
        """The progress after these samples, which ``follow`` has noted."""
        last = samples[-1]
        recent = samples[max(self._begun_index, len(samples) - 1 - self._window) :]
        windows = [build_window(d, recent) for d in self._plan.directions] if len(recent) > 1 else []
        if not last.asked_pps:  # a drain loses nothing: the few frames counted then were sent before
            windows = [one._replace(sent=0) for one in windows]
        left = self._plan.time_left(last.phase, last.trial, last.t_s - self._begun_s)
        return LiveProgress(
            last.phase, last.trial, last.asked_pps, last.t_s - samples[0].t_s, left, windows, self._speedup
        )


class Rhythm:
    """Times at which progress is shown: every ``apart_s``, and whenever something begins."""

    def __init__(self, apart_s: float, first_s: float = 0.0) -> None:
        self._apart_s, self._next_s = apart_s, first_s

    def is_due(self, now_s: float, begins: bool = False) -> bool:
        """Return True if progress is due, and schedule the next time."""
        due = begins or now_s >= self._next_s
        if due:
            self._next_s = now_s + self._apart_s
        return due


class Live:
    """A sink that writes progress as a line every LINE_S, for pipes and logs; TerminalLive draws it in place.

    A failure to draw is reported once and does not affect the run. speedup: simulated seconds per real second.
    """

    every_s = LINE_S
    """Real seconds between two drawings; each phase adds one at its start."""

    def __init__(self, result: RunResult, stream: TextIO, speedup: float = 1.0) -> None:
        self.result, self.stream = result, stream
        self._follower = Follower(result.plan, speedup)
        self._rhythm = Rhythm(self.every_s * speedup - result.plan.sample_s / 2)
        self._failed = False

    def __enter__(self) -> Live:
        self._attempt(self.start)
        return self

    def __exit__(self, *ended: object) -> None:
        with suppress(Exception):  # also after a failure: it restores the terminal's cursor
            self.stop()

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None:
        self._attempt(lambda: self._show(samples))

    def start(self) -> None:
        """Prepare the stream for the first drawing."""

    def stop(self) -> None:
        """Clean up after the last drawing."""
        self.stream.flush()

    def draw(self, progress: LiveProgress) -> None:
        lines = wrapped([format_progress(self.result.plan, progress)], room_of(self.stream))
        self.stream.write("".join(f"{line}\n" for line in lines))
        self.stream.flush()

    def _show(self, samples: Sequence[Sample]) -> None:
        changed = self._follower.follow(samples)
        if not self._follower.settling and self._rhythm.is_due(samples[-1].t_s, changed):
            self.draw(self._follower.progress(samples))

    def _attempt(self, show: Callable[[], object]) -> None:
        if self._failed:
            return
        try:
            show()
        except Exception as error:
            self._failed = True
            with suppress(Exception):
                self.stream.write(f"progress is no longer shown: {type(error).__name__}: {error}\n")


def format_progress(plan: Plan, progress: LiveProgress) -> str:
    """One line: ``32 s  ramp  asked 649.6 kpps  0->1 sent ... received ... loss ...  45 s left``."""
    parts = [format_duration(progress.elapsed_s), progress.phase_words, asked_words(plan, progress)]
    for direction, window in zip(plan.directions, progress.windows, strict=False):
        rates = f"sent {format_pps(window.sent_pps)} received {format_pps(window.received_pps)}"
        parts.append(f"{direction} {rates} loss {or_dash(window.loss, format_share)}")
    parts.append(progress.left_words)
    return "  ".join(parts)


def asked_words(plan: Plan, progress: LiveProgress) -> str:
    """Each direction's asked rate and its share of line rate; only once where all directions have the same."""
    words = {
        direction: (format_pps(pps), f"({format_share(plan.offer(direction).line_share(pps))} of line rate)")
        for direction, pps in progress.asked_pps.items()
    }
    if len(set(words.values())) > 1:
        return "asked " + ", ".join(f"{direction} {rate} {share}" for direction, (rate, share) in words.items())
    return "asked {} per direction {}".format(*next(iter(words.values()))) if words else "nothing sent"
