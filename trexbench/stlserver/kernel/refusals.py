"""Frames that a NIC's driver refused, found in its own totals: figures that only grow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

_ON_THEIR_WAY = 1024
"""Frames that a driver may have taken and not counted yet."""
_DRAINED_S = 0.1
"""A resting port that has counted no frame for so long has no more on their way."""


@dataclass
class Refusals:
    """Counts so far. A driver counts a frame only once it has left the ring, and totals are read one by one."""

    clock: Callable[[], float] = time.monotonic
    unsent: int = 0
    """Refused for certain while the port sent: they do not count as sent."""
    known: int = 0
    """These, and up to _ON_THEIR_WAY that only a port at rest shows."""
    _still: tuple[int, float] | None = field(default=None, init=False)
    """The driver's count when the port came to rest, and when that was seen."""

    def see(self, attempted: int, counted: int, resting: bool) -> None:
        """Take in a reading: frames given to the driver, and those that it has counted."""
        lacking = attempted - counted
        self.unsent = max(self.unsent, lacking - _ON_THEIR_WAY)
        self.known = max(self.known, self.unsent)
        if not resting:
            self._still = None
        elif self._still is None or self._still[0] != counted:
            self._still = counted, self.clock()
        elif self.clock() - self._still[1] >= _DRAINED_S:
            self.known = max(self.known, lacking)
