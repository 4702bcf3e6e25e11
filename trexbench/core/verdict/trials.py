"""Rates that were held and drained, so that totals can be compared: confirmation trials and latency loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..load.plan import Direction, Plan
from ..load.sample import CONFIRM_PHASES, Phase, Sample
from ..load.windows import Window, build_window
from .blame import misses
from .model import Trial
from .path import SOUND, FramePath


class HeldRate(NamedTuple):
    """One direction at one rate. samples: while sending; last: after the drain; window: from begin to drained."""

    samples: Sequence[Sample]
    last: Sample
    window: Window
    offered_pps: float
    sent_pps: float


def find_held(samples: Sequence[Sample], direction: Direction, phases: tuple[Phase, Phase], number: int) -> HeldRate:
    """The trial of this number, which must have been drained; phases: of sending, and of the drain after it."""
    inside = [i for i, s in enumerate(samples) if s.phase in phases and s.trial == number]
    held = [i for i in inside if samples[i].phase is phases[0]]
    # The first sample contains the time that a start takes: the sent rate is that of the others, if there are any.
    first = held[0] if len(held) > 1 else held[0] - 1
    return HeldRate(
        samples=samples[held[0] : held[-1] + 1],
        last=samples[inside[-1]],
        window=build_window(direction, samples[inside[0] - 1 : inside[-1] + 1]),
        offered_pps=samples[held[0]].asked_pps[direction],
        sent_pps=build_window(direction, samples[first : held[-1] + 1]).sent_pps,
    )


def find_trials(
    plan: Plan, samples: Sequence[Sample], direction: Direction, path: FramePath = SOUND
) -> tuple[Trial, ...]:
    """Trials that were drained. One passes if the loss beyond the path is within the threshold.

    The trial's own loss is that of all frames; its offered load is what was sent.
    """
    trials = []
    for number in sorted({s.trial for s in samples if s.phase is Phase.CONFIRM_DRAIN}):
        _, _, window, offered, sent_pps = find_held(samples, direction, CONFIRM_PHASES, number)
        beyond = path.correct(window).loss
        offered = sent_pps if misses(offered, sent_pps) else offered
        kept = beyond is not None and beyond <= plan.loss_threshold
        trials.append(Trial(number, offered, window.sent, window.received, window.loss, kept))
    return tuple(trials)
