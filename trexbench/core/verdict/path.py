"""Effects on frames at any rate, which are no limit: a cable that loses some, a switch that doubles some, strangers.

Judged by sums over rows of windows: what two ports' clocks differ by is in a row's ends only. benchmarks/verdicts.py
shows what numbers do: directions with lossy cables and duplicates that are laid to the DUT, or are bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, sqrt
from statistics import median_low
from typing import NamedTuple

from ..load.plan import Direction
from ..load.sample import Phase, Sample
from ..load.windows import RunWindows, Window, build_window, measured_windows, near_blanks, once

ROWS = 6
"""Rows of windows whose shares must agree, but for two neighbours: something else may have happened there."""
AGREE = 0.25
"""Shares that differ by less than this part are the same, if they are of many frames."""
DRIFT = 0.1
"""A share that differs by this part between the lower and the upper half of the rows depends on the rate
(test_wrong_verdicts: few frames lost ever more often).
"""
SIGMAS = 3
FEWEST_FRAMES = 400
"""Missing frames from which on a share that rises with the rate is seen to rise."""
APART = 0.5
"""Rates of a search that differ by less than this part are the same: loss that depends on the rate must show it."""


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


@once
def find_path(measured: RunWindows, direction: Direction) -> FramePath:
    """Judge the path by the warm-up and the lowest rates, of the ramp and of a search; a router's own limit shows in no
    constant share.
    """
    plan, samples = measured.plan, measured.samples
    ramp = [w for w in measured.sending(direction) if w.phase is Phase.RAMP]
    ramp = [w for w, near in zip(ramp, near_blanks(ramp), strict=True) if not near]
    if not plan.seeks_knee or len(ramp) < plan.windows:
        return SOUND
    warm, looks = _warm_window(samples, direction), measured_windows(plan, samples, direction, (Phase.SEARCH,))
    share = _find_share(_with_looks(ramp, looks), warm)
    if share > 0:
        return FramePath(lost=share)
    if share < -plan.loss_threshold:  # less moves the knee by less than the loss that counts
        return FramePath(extra=-share, twice=min(-share, _tagged_twice(samples, direction, -share)))
    return FramePath(foreign=_is_foreign(_lowest(ramp), warm))


def _with_looks(ramp: Sequence[Window], looks: Sequence[Window]) -> Sequence[Window]:
    """The ramp's windows and those of a search whose rates are others, in the order of their rates."""
    found = list(ramp)
    for look in looks:
        if look.sent > 0 and all(abs(one.sent_pps - look.sent_pps) > APART * one.sent_pps for one in found):
            found.append(look)
    return sorted(found, key=lambda window: window.sent_pps) if len(found) > len(ramp) else ramp


def _lowest(ramp: Sequence[Window]) -> Sequence[Window]:
    return ramp[: max(ROWS, len(ramp) // 4)]


def _find_share(ramp: Sequence[Window], warm: Window | None) -> float:
    """The share missing at every rate, negative where more came back; 0 where none is seen.

    It is looked for in the lowest quarter of the ramp; in less of it, for the knee may lie there; and in the quarter
    above, for something else may have happened there, but not less may have been missing.
    """
    lowest = _lowest(ramp)
    parts = [lowest, *(ramp[: len(ramp) // part] for part in (8, 16, 32) if len(ramp) // part >= ROWS)]
    shares = (_constant_share(part, warm) for part in parts)
    share = next((share for share in shares if share is not None), None)
    if share is None and len(ramp) >= 2 * len(lowest):
        share, below = _constant_share(ramp[len(lowest) : 2 * len(lowest)], warm), _Row.of(lowest)
        if share is not None and share > 0 and below.share < share * (1 - DRIFT) - below.chance(share):
            share = None
    return share or 0.0


def _warm_window(samples: Sequence[Sample], direction: Direction) -> Window | None:
    """The second half of the warm-up: the first one also contains the frames on their way."""
    warm = [i for i, sample in enumerate(samples) if sample.phase is Phase.WARMUP]
    if len(warm) < 2:
        return None
    window = build_window(direction, samples[warm[len(warm) // 2 - 1] : warm[-1] + 1])
    return window if window.sent > 0 else None


def _constant_share(windows: Sequence[Window], warm: Window | None) -> float | None:
    """The share missing in these windows, if it is the same in rows of them and in the warm-up; else None.

    The ports' skew may explain as many frames as must be missing in rows that agree.
    """
    ends = [len(windows) * row // ROWS for row in range(ROWS + 1)]
    rows = [windows[begin:end] for begin, end in pairwise(ends) if end > begin]
    on_way = [sum(w.pending for w in row) for row in rows]
    fewest = max(FEWEST_FRAMES, windows[-1].skew)
    raw = [_Row.of(row) for row in rows]
    # Frames on their way are known no better than to a frame of the warm-up: that may be worse than not at all.
    less = [_Row(row.missing - pending, row.sent) for row, pending in zip(raw, on_way, strict=True)]
    share = _same(raw, warm, max(fewest, 2 * sum(on_way)))
    return _same(less, warm, fewest) if share is None else share


def _same(rows: Sequence[_Row], warm: Window | None, fewest: float) -> float | None:
    middle = median_low(row.share for row in rows)
    if middle >= 1:  # a cable was pulled
        return None
    agreeing = [row for row in rows if row.is_like(middle)]
    whole = _add(agreeing)
    if len(agreeing) < max(2, len(rows) - 2) or abs(whole.missing) < fewest:
        return None
    low, high = _add(agreeing[: len(agreeing) // 2]), _add(agreeing[len(agreeing) // 2 :])
    if abs(high.share - low.share) > DRIFT * abs(low.share) + high.chance(middle) + low.chance(middle):
        return None
    if warm is not None and not _Row(warm.lost, warm.sent).is_like(whole.share):
        return None
    return whole.share


class _Row(NamedTuple):
    """Sums over consecutive windows."""

    missing: float
    sent: int

    @classmethod
    def of(cls, windows: Sequence[Window]) -> _Row:
        return cls(sum(w.lost for w in windows), sum(w.sent for w in windows))

    @property
    def share(self) -> float:
        return self.missing / self.sent

    def chance(self, share: float) -> float:
        """By how much the share of so many frames differs by chance."""
        return SIGMAS * sqrt(abs(share) / self.sent)

    def is_like(self, share: float) -> bool:
        return abs(self.share - share) <= alike(share, self.sent)


def alike(share: float, frames: float = inf) -> float:
    """By how much shares of so many frames may differ from this one and be the same."""
    size = abs(share)
    return AGREE * min(size, abs(1 - size)) + SIGMAS * sqrt(size / frames)


def _add(rows: Sequence[_Row]) -> _Row:
    return _Row(sum(row.missing for row in rows), sum(row.sent for row in rows))


def _is_foreign(windows: Sequence[Window], warm: Window | None) -> bool:
    """Test whether more came back than was sent, in the warm-up at about the same rate as later."""
    extra = sum(w.pending - w.lost for w in windows)
    if warm is None or extra < FEWEST_FRAMES:
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
