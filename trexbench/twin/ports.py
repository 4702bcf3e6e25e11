"""Interface that the simulating engine requires of a simulated router."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .delay import Delay


@dataclass(frozen=True)
class Arrival:
    """Frames that reached the router on one port within a span of time, all of one stream.

    port: the tester's port that sent them. spread: their share per receive queue of that port, summing to 1.
    frame_bytes: mean size with FCS. tag: the sender's own mark, handed back with what comes out. timed: whether the
    sender will ask what these frames took.
    """

    port: int
    tag: int
    spread: tuple[float, ...]
    frames: float
    frame_bytes: float
    timed: bool = False


class Router(Protocol):
    """A router between pairs of the tester's ports; frames of one port of a pair leave towards the other."""

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        """Share of these packets (without FCS, each equally frequent) that each receive queue of the port gets."""

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        """Let the span pass with these arrivals, evenly over it: frames of each (port, tag) that leave within it.

        One figure per arrival, in their order; what leaves may have arrived in an earlier span with the same port and
        tag. Frames that are neither gone nor lost are kept inside. Call it with no frames to let the rings run empty.
        """

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        """Delays of the timed frames of this port and tag that left in the last ``carry``; not empty if any did."""

    def kept(self, port: int, tag: int) -> float:
        """Frames of this port and tag that are neither gone nor lost."""
