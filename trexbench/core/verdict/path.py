"""Faults of the path that show at every rate and are no limit, and the warm-up's proof that the path works at all.

Lost, duplicated and foreign frames are judged by sums over rows of windows, since the skew of two ports' counters is in
a row's ends only. benchmarks/verdicts.py shows the effect of each number: directions with lossy cables or duplicates
that are laid to the DUT, or are bounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf, sqrt
from statistics import median_low
from typing import NamedTuple

from ..load.plan import Direction, Plan
from ..load.sample import Phase, Sample
from ..load.windows import RunWindows, Window, build_window, measured_windows, near_blanks, once
from ..units import format_share

ROWS = 6
"""Rows of windows whose shares must agree, all but two: something else may have happened in those."""
AGREE = 0.25
"""Shares of many frames that differ by less than this part count as equal."""
SIGMAS = 3
FEWEST_FRAMES = 400
"""Missing frames needed to see that a share rises with the rate."""
APART = 0.5
"""Rates of a search that differ by less than this part count as equal: loss that depends on the rate must show it."""
LESS = 2
"""Rows, at any rate, that lose clearly less than the share found at low rates: it is not lost at every rate. Without
it, 4 of 22 searches of routers that lose frames at low rates only state a limit that is up to 4 % too high."""
WARMUP_RETURN_SHARE = 0.5
"""If less than this share comes back in the warm-up, the path is broken; a slow router does not lose so much."""
TAGS_BYTES = 8
"""NICs may count a frame longer or shorter by two VLAN tags. An ICMP error is at least 10 bytes longer than a short
frame, and shorter than a long one."""


@dataclass(frozen=True)
class FramePath:
    """Effects of a path on frames that are the same at every rate."""

    lost: float = 0.0  # share of those sent that the path loses itself; negative where frames come twice
    others_pps: float = 0.0  # received beyond them, as something else sends all the time

    def correct(self, window: Window) -> Window:
        """The window as it would be on a sound path; the loss that is left may be the DUT's."""
        if self == SOUND:
            return window
        # The share of few frames varies by chance; of many, a little less than the DUT's loss is left.
        others = self.others_pps * (window.end_s - window.begin_s)
        chance = 2 * sqrt(abs(self.lost) * window.sent + others)
        received = (window.received - others) / (1 - self.lost)
        received = min(received + chance, max(window.sent, received))
        rate = window.received_pps * (received / window.received if window.received else 1.0)
        return window._replace(received=round(received), received_pps=rate)


SOUND = FramePath()


@once
def find_path(measured: RunWindows, direction: Direction) -> FramePath:
    """Judge the path by the lowest rates; a router's own limit never shows as a constant share."""
    plan, samples = measured.plan, measured.samples
    ramp = [w for w in measured.sending(direction) if w.phase is Phase.RAMP]
    ramp = [w for w, near in zip(ramp, near_blanks(ramp), strict=True) if not near]
    if not plan.seeks_knee or len(ramp) < plan.windows:
        return SOUND
    windows = list(ramp)
    looks = [look for look in measured_windows(plan, samples, direction, (Phase.SEARCH,)) if look.sent > 0]
    for look in looks:
        if all(abs(w.sent_pps - look.sent_pps) > APART * w.sent_pps for w in windows):
            windows.append(look)
    if len(windows) > len(ramp):
        windows.sort(key=lambda window: window.sent_pps)
    if share := _find_share(windows, (*ramp, *looks)):
        return FramePath(share)
    # Frames of others come at one rate in time, so their share of the microseconds is the same in all windows.
    warm = measured_windows(plan, samples, direction, (Phase.WARMUP,))
    timed, seen, warm = ([_in_time(window) for window in part] for part in (windows, (*ramp, *looks), warm))
    # As a load rises, a port that is read late has received more at a steady rate, too, but not in the warm-up.
    share = _find_share(timed, seen) if warm else 0.0
    return FramePath(others_pps=-1e6 * share) if share < 0 and _row_of(warm).is_like(share) else SOUND


def _in_time(window: Window) -> Window:
    """The window with its microseconds in place of the frames sent, and as many missing."""
    elapsed_us = round(1e6 * (window.end_s - window.begin_s))
    return window._replace(sent=elapsed_us, received=elapsed_us - window.lost)


def _find_share(ramp: Sequence[Window], seen: Sequence[Window]) -> float:
    """Share of frames lost at every rate, negative where more came back than were sent; 0 where none is seen.

    It is sought from the ramp's beginning to a quarter of its highest rate; and to less, as the knee may lie there.
    Many windows at one rate, as of a generator at its limit, would agree in any loss. seen: all windows, in order, that
    may show that it is not lost at every rate.
    """
    highest = list(accumulate((window.sent_pps for window in ramp), max))
    counts = (bisect_right(highest, highest[-1] / part) for part in (4, 8, 16, 32))
    parts = (ramp[:count] for count in (*(count for count in counts if count > ROWS), ROWS))
    for part in parts:
        if (share := _constant_share(part)) is not None:
            size, fewest = max(1, len(part) // ROWS), max(FEWEST_FRAMES, seen[-1].skew)
            rows = (_row_of(seen[begin : begin + size]) for begin in range(0, len(seen), size))
            return 0.0 if sum(row.is_less(share, fewest) for row in rows) >= LESS else share
    return 0.0


def _constant_share(windows: Sequence[Window]) -> float | None:
    """The share missing in these windows, if it agrees across rows of them; else None."""
    ends = [len(windows) * row // ROWS for row in range(ROWS + 1)]
    parts = [windows[begin:end] for begin, end in pairwise(ends) if end > begin]
    pending = [sum(w.pending for w in part) for part in parts]
    fewest = max(FEWEST_FRAMES, windows[-1].skew)  # missing by more than the skew explains
    raw = [_row_of(part) for part in parts]
    # The frames on their way are known only to a frame of the warm-up, so leaving them in may be nearer the truth; as
    # frames that come twice they never show.
    least = fewest if _Row.total(raw).missing < 0 else max(fewest, 2 * sum(pending))
    share = _agreed_share(raw, least)
    less = [_Row(row.missing - on_way, row.sent) for row, on_way in zip(raw, pending, strict=True)]
    return _agreed_share(less, fewest) if share is None else share


def _agreed_share(rows: Sequence[_Row], fewest: float) -> float | None:
    middle = median_low(row.share for row in rows)
    agreeing = [row for row in rows if row.is_like(middle)]
    half = len(agreeing) // 2
    low, high, whole = map(_Row.total, (agreeing[:half], agreeing[half:], agreeing))
    if middle >= 1 or len(agreeing) < max(2, len(rows) - 2) or abs(whole.missing) < fewest:  # 1: a cable was pulled
        return None
    if any(row.is_less(middle, fewest) for row in rows):  # not at every rate
        return None
    if not low.is_like(high.share):  # the share grows with the rate; rows of few frames are alike by chance
        return None
    return median_low(row.share for row in agreeing)  # of all frames it would be less where the last row is past a knee


class _Row(NamedTuple):
    """Sums over consecutive windows."""

    missing: float
    sent: int

    @classmethod
    def total(cls, rows: Sequence[_Row]) -> _Row:
        return cls(sum(row.missing for row in rows), sum(row.sent for row in rows))

    @property
    def share(self) -> float:
        return self.missing / self.sent

    def is_like(self, share: float) -> bool:
        return abs(self.share - share) <= alike(share, self.sent)

    def is_less(self, share: float, fewest: float) -> bool:
        """Test whether clearly fewer frames than this share are missing, by more than this number."""
        return self.missing + fewest < (share - alike(share, self.sent)) * self.sent


def _row_of(windows: Sequence[Window]) -> _Row:
    return _Row(sum(w.lost for w in windows), sum(w.sent for w in windows))


def alike(share: float, frames: float = inf) -> float:
    """The distance within which another share, of this number of frames, counts as equal to this one."""
    size = abs(share)
    spread = min(size, abs(1 - size))  # nearly all frames lost: those that come through must agree
    return AGREE * spread + SIGMAS * sqrt((spread if share > 0 else size) / frames)


def check_warmup(plan: Plan, samples: Sequence[Sample]) -> str | None:
    """Explain in one line why the warm-up does not prove a working path; None when it does."""
    warm = [i for i, s in enumerate(samples) if s.phase is Phase.WARMUP]
    if not warm:
        return None
    # Only the second half counts, so that the DUT may resolve neighbours and leave power saving first.
    half = samples[warm[0] - 1 + len(warm) // 2 : warm[-1] + 1]
    for direction in plan.directions:
        window = build_window(direction, half)
        if window.sent == 0:
            return (
                f"nothing was sent on port {direction.tx} in the warm-up: the generator accepted the "
                "streams but sends no frames; check its log and the port's link"
            )
        if window.received < WARMUP_RETURN_SHARE * window.sent:
            return _why_missing(plan, half, direction, window)
    return None


def _why_missing(plan: Plan, half: Sequence[Sample], direction: Direction, window: Window) -> str:
    share = "none" if window.received <= 0 else f"only {format_share(window.received / window.sent)}"
    share += f" of the frames that port {direction.tx} sent came back on port {direction.rx}"
    then, now = half[0].reading.ports, half[-1].reading.ports
    tx, expected = direction.tx, {d.rx: build_window(d, half).sent for d in plan.directions}
    came = {port: now[port].ipackets - then[port].ipackets for port in now}
    rx = next((port for port in now if came[port] - expected.get(port, 0) > window.sent / 2), None)
    if rx is None:
        too_fast = "" if window.received <= 0 else "a --warmup beyond what the DUT carries, "
        return (
            f"{share}: likely causes are {too_fast}a missing route or neighbour on the DUT, forwarding off or a "
            "firewall there, a wrong destination MAC, or a link that is down"
        )
    sent_bytes = (now[tx].obytes - then[tx].obytes) / max(1, now[tx].opackets - then[tx].opackets)
    came_bytes = (now[rx].ibytes - then[rx].ibytes) / max(1, now[rx].ipackets - then[rx].ipackets)
    if came_bytes and abs(came_bytes - sent_bytes) > TAGS_BYTES:
        return (
            f"{share}; port {rx} received frames of {came_bytes:.0f} B, not {sent_bytes:.0f} B: probably the router's "
            f"ICMP errors; give the DUT a route to where port {tx}'s frames go, and a neighbour for its next hop"
        )
    elsewhere = f"the frames arrived on port {rx}: swap the cables or the DUT's routes"
    elsewhere += ", or have the profile send other addresses by its argument direction" if rx == tx else ""
    return f"{share}; {elsewhere}"
