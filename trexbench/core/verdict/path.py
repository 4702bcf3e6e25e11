"""What happens to frames at any rate, and is no limit: a cable that loses some, a switch that doubles some, strangers.

Judged by sums over rows of windows: what two ports' clocks differ by is in a row's ends only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import median_low

from ..load.plan import Direction
from ..load.sample import Phase, Sample
from ..load.windows import Measured, Window, build_window

ROWS = 4
"""Rows of windows whose shares must agree, but for one of them: something else may have happened there."""
AGREE = 0.25
"""Shares that differ by less than this part are the same, if they are of many frames."""
SIGMAS = 3
FEWEST_FRAMES, MANY_FRAMES = 10, 400
"""Missing frames that are not chance; and so many that a share that rises with the rate is seen to rise."""
LEAST_EXTRA = 0.001
"""From this share on more frames received than sent are a finding."""
LEAST_LOST = 0.5
"""From this part of the loss threshold on a loss at every rate is one: half of it may look like a knee."""
LOWEST = (4, 8, 16, 32)
"""The part of the ramp that is looked at, as a divisor; smaller ones where the knee itself lies in it."""


@dataclass(frozen=True)
class FramePath:
    """All are shares of the frames sent, the same at every rate. lost: never came back.

    extra: came back besides those sent. twice: of it, what tagged frames show to be duplicates. foreign: extra frames
    come at a rate of their own.
    """

    lost: float = 0.0
    extra: float = 0.0
    twice: float = 0.0
    foreign: bool = False

    @property
    def doubtful(self) -> float:
        """The extra frames of which nothing shows that they are duplicates: loss may hide behind them."""
        return self.extra - self.twice

    def correct(self, window: Window) -> Window:
        """The window as it would be on a sound path; what is left of the loss may be the DUT's."""
        if not self.lost and not self.twice:
            return window
        # A share of few frames varies by chance, and a little less than the DUT's loss is left where they are many.
        chance = 2 * sqrt(self.lost * window.sent)
        received = window.received / (1 - self.lost) / (1 + self.twice) + chance
        received = min(received, max(window.sent, window.received))
        rate = window.received_pps * (received / window.received if window.received else 1.0)
        return window._replace(received=round(received), received_pps=rate)


SOUND = FramePath()


def find_path(measured: Measured, direction: Direction) -> FramePath:
    """What the warm-up and the lowest rates of the ramp show; a router's own limit shows in no constant share."""
    plan, samples = measured.plan, measured.samples
    ramp = [w for w in measured.sending(direction) if w.phase is Phase.RAMP]
    if not plan.seeks_knee or len(ramp) < plan.windows:
        return SOUND
    warm = _warm_window(samples, direction)
    for part in LOWEST:
        lowest = ramp[: max(ROWS, len(ramp) // part)]
        share = _constant_share(lowest, warm, FEWEST_FRAMES if part == LOWEST[0] else MANY_FRAMES)
        if share is not None and share >= LEAST_LOST * plan.loss_threshold:
            return FramePath(lost=share)
        if share is not None and share <= -LEAST_EXTRA:
            return FramePath(extra=-share, twice=min(-share, _tagged_twice(samples, direction, -share)))
        if len(lowest) <= ROWS:
            break
    return FramePath(foreign=_is_foreign(ramp[: max(ROWS, len(ramp) // LOWEST[0])], warm))


def _warm_window(samples: Sequence[Sample], direction: Direction) -> Window | None:
    """The second half of the warm-up: the first one also contains the frames on their way."""
    warm = [i for i, sample in enumerate(samples) if sample.phase is Phase.WARMUP]
    if len(warm) < 2:
        return None
    window = build_window(direction, samples[warm[len(warm) // 2 - 1] : warm[-1] + 1])
    return window if window.sent else None


def _constant_share(windows: Sequence[Window], warm: Window | None, fewest: int) -> float | None:
    """The share missing in these windows, if it is the same in rows of them and in the warm-up; else None.

    fewest: frames that must be missing in rows that agree.
    """
    rows = [row for row in _rows(windows) if row]
    sums = [(sum(w.lost - w.pending for w in row), sum(w.sent for w in row)) for row in rows]
    middle = median_low(missing / sent for missing, sent in sums)
    agreeing = [one for one in sums if _agrees(one[0], one[1], middle)]
    missing, sent = (sum(one[at] for one in agreeing) for at in (0, 1))
    if len(agreeing) < max(2, len(rows) - 1) or abs(missing) < fewest:
        return None
    if warm is not None and not _agrees(warm.lost, warm.sent, middle):
        return None
    return missing / sent


def _rows(windows: Sequence[Window]) -> list[Sequence[Window]]:
    ends = [len(windows) * row // ROWS for row in range(ROWS + 1)]
    return [windows[begin:end] for begin, end in pairwise(ends)]


def _agrees(missing: float, sent: int, share: float) -> bool:
    size = abs(share)
    return abs(missing / sent - share) <= AGREE * min(size, abs(1 - size)) + SIGMAS * sqrt(size / sent)


def _is_foreign(windows: Sequence[Window], warm: Window | None) -> bool:
    """Whether more came back than was sent, in the warm-up at about the same rate as later."""
    extra, sent = -sum(w.lost - w.pending for w in windows), sum(w.sent for w in windows)
    if warm is None or extra < LEAST_EXTRA * sent:
        return False
    pps = extra / sum(w.end_s - w.begin_s for w in windows)
    return -warm.lost > pps / 2 * (warm.end_s - warm.begin_s)


def _tagged_twice(samples: Sequence[Sample], direction: Direction, extra: float) -> float:
    """The share of tagged frames that came twice; where they bear out the extra share, that, for it is more exact."""
    ends = {s.trial: s.reading.latency.get(direction.tx) for s in samples if s.phase is Phase.LATENCY_DRAIN}
    counts = [(one.duplicate, one.received - one.duplicate) for one in ends.values() if one is not None]
    twice, once = (sum(count[at] for count in counts) for at in (0, 1))
    share = twice / once if once > 0 else 0.0
    return extra if share >= extra / 2 else share
