"""Memory shared by the sending program and Python: word numbers, and the program's unit of time.

Times are nanoseconds since the program's epoch (CLOCK_MONOTONIC) times 4096, unsigned: 52 days fit. A port's
virtual time starts at BIAS and falls behind real time by its LAG whenever slots are given up.
"""

from __future__ import annotations

from enum import IntEnum

from ..engine import MAX_STREAMS

FRACTION_BITS = 12
BIAS = 1 << 60
NEVER = 1 << 62
NO_DEADLINE = (1 << 64) - 1
CATCH_UP = 64  # a port that was held up sends faster by one part in this many, until it has sent what it owes
XDP_ABORTED, XDP_DROP, XDP_PASS = 0, 1, 2
PREFIX_BYTES = 8
"""Length of the port's number before a frame that goes through the stack; the kernel keeps room there anyway."""


class CoreWord(IntEnum):
    """Words of the map that all ports of one sender share."""

    NOW = 0
    IDLE_BEFORE = 1
    IDLE_TIME = 2


class PortWord(IntEnum):
    """Words of a port's map; the streams follow from word STREAMS on. OWED is in CATCH_UP-ths of a packet."""

    GATE = 0
    LAG = 1
    DEADLINE = 2
    DURATION = 3
    CREDIT = 4
    LOST_TIME = 5
    FORGIVE = 6
    ACTIVE = 7
    LIMIT_INTERVAL = 8
    LIMIT_NEXT = 9
    REFUSED = 10
    OWED = 11
    OWED_MOST = 12
    STEP = 13
    STREAMS = 16


class Gate(IntEnum):
    """State of a port. Python arms, pauses and closes it; the program sets RUNNING and ENDED."""

    CLOSED = 0
    ARMED = 1
    RUNNING = 2
    PAUSED = 3
    ENDED = 4


class StreamWord(IntEnum):
    """Words of a stream within its port's map."""

    ACTIVE = 0
    LAST = 1
    INTERVAL = 2
    SENT = 3
    BYTES = 4
    BURST_LEFT = 5
    BURSTS_LEFT = 6
    ACTION_LEFT = 7
    NEXT_FRAME = 8


PORT_WORDS_MAX = PortWord.STREAMS + MAX_STREAMS * len(StreamWord)


class ReceivedWord(IntEnum):
    """Words of one CPU's line in the map of a receiving port (a cache line each)."""

    PACKETS = 0
    BYTES = 1
    LINE_WORDS = 8


def ticks(nanoseconds: float) -> int:
    """Convert a duration to the program's unit; NEVER if it is too long, even infinite."""
    return round(min(nanoseconds * (1 << FRACTION_BITS), NEVER))


def interval(rate_pps: float) -> int:
    """Time between two packets at this rate; NEVER at zero."""
    return ticks(1e9 / rate_pps) if rate_pps > 0 else NEVER
