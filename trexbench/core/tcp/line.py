"""One direction of a long line, as arithmetic: which packets of a frame pass, and when they have arrived."""

from __future__ import annotations

import math
from random import Random

from .wan import Wan

NEVER = 1 << 62
"""Packets until the next one is lost, where none is."""


class OneWay:
    """The state of one direction. Times are those of one monotonic clock, in seconds.

    A frame may stand for several packets, which arrive at once and leave together when the last of them has: as many
    of them as the queue has room for take their time at the rate, the others are dropped; then each is lost or not,
    on its own; then what is left takes half of the delay. With jitter each frame's delay is drawn anew, evenly, but
    nothing overtakes: a frame behind a late one is as late, so the mean of a dense flow is above delay_s / 2.
    """

    def __init__(self, wan: Wan, random: Random) -> None:
        self._random = random
        self._free_s = self._last_s = -math.inf
        self._set(wan)

    def change(self, wan: Wan, now_s: float) -> float:
        """Other settings from now on: what waits goes on waiting at the new rate.

        Returns when all that is on its way would have arrived by the new ones: nothing needs to stay longer than that.
        """
        waiting = self.waiting_bytes(now_s)
        self._set(wan)
        self._free_s = now_s + waiting * self._byte_s
        self._last_s = min(self._last_s, self._free_s + self._delay_s + self._jitter_s)
        return self._free_s + self._delay_s + self._jitter_s

    def _set(self, wan: Wan) -> None:
        self._byte_s = 0.0 if wan.rate_bps is None else 8 / wan.rate_bps
        self._room = math.inf if wan.queue_bytes is None else wan.queue_bytes
        self._delay_s, self._jitter_s, self._loss = wan.delay_s / 2, wan.jitter_s, wan.loss
        self._until_loss = self._draw()

    def waiting_bytes(self, now_s: float) -> float:
        """Bytes that have not yet left towards the other end."""
        return (self._free_s - now_s) / self._byte_s if self._byte_s and self._free_s > now_s else 0.0

    def take(self, now_s: float, size: int, packets: int = 1, each: int = 0) -> tuple[float, int, tuple[int, ...]]:
        """A frame of so many bytes on the wire; each: of every packet but the last, where it stands for several.

        Returns when it arrives at the other end, how many of its packets found room (the first ones), and which of
        those are lost. A packet finds room while what waits before it, with it, is no more than the queue holds; an
        empty queue takes one of any size.
        """
        kept, byte_s = packets, self._byte_s
        if byte_s:
            begin_s = self._free_s if self._free_s > now_s else now_s
            waiting = (begin_s - now_s) / byte_s
            if waiting + size > self._room:
                kept = self._fitting(waiting, size, packets, each)
                size = each * kept if kept < packets else size
            self._free_s = now_s = begin_s + size * byte_s
        lost: tuple[int, ...] = ()
        if self._until_loss < kept:
            lost = self._lose(kept)
        else:
            self._until_loss -= kept
        if not kept:
            return now_s, 0, lost
        delay_s = self._delay_s
        if self._jitter_s:
            delay_s += self._jitter_s * (2 * self._random.random() - 1)
        arrives_s = now_s + delay_s
        if arrives_s < self._last_s:
            arrives_s = self._last_s
        self._last_s = arrives_s
        return arrives_s, kept, lost

    def _fitting(self, waiting: float, size: int, packets: int, each: int) -> int:
        if packets == 1:
            return 0 if waiting else 1
        fitting = min(packets - 1, int((self._room - waiting) // each)) if waiting + each <= self._room else 0
        return fitting or (0 if waiting else 1)

    def _lose(self, packets: int) -> tuple[int, ...]:
        lost, at = [], self._until_loss
        while at < packets:
            lost.append(at)
            at += 1 + self._draw()
        self._until_loss = at - packets
        return tuple(lost)

    def _draw(self) -> int:
        """Draw the number of packets that pass before the next one that is lost."""
        if not self._loss:
            return NEVER
        return int(math.log(1 - self._random.random()) / math.log(1 - self._loss))
