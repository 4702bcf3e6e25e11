"""Lease of a DUT: the tester that alone may drive it, and until when. Pure.

A lease is a list of records, numbered from 1, to which the store lets exactly one writer append each number. Clocks of
two machines are never compared: the holder counts the lease's length from before it wrote its record, all others from
when they first saw that record and no later one. So the holder has always finished counting before the others, however
late a record arrives and even if an answer is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

DRIFT = 0.001
"""Largest difference between two clocks over the same time, as a share of it."""
RENEW_SHARE, STOP_SHARE = 1 / 6, 2 / 3
"""Shares of a lease's length after which it is renewed, and after which its traffic is stopped if it was not."""


@dataclass(frozen=True)
class LeaseRecord:
    """One record: taken or renewed for ``length_s``, or given back (0)."""

    number: int
    holder: str
    """The tester's name, and a word of its own for each taking."""
    length_s: float
    until: str = ""
    """End by the holder's clock, UTC, for people."""
    cell: str = ""
    """Cell that is measured meanwhile, for people."""


@dataclass(frozen=True)
class Sight:
    """The latest record as one observer knows it; None: there is none yet."""

    latest: LeaseRecord | None
    since_s: float
    """Time at which it was first seen, by the observer's clock."""

    def looked(self, latest: LeaseRecord | None, now_s: float) -> Sight:
        """Return what is known after another look."""
        same = latest is not None and self.latest is not None and latest.number <= self.latest.number
        return self if same else Sight(latest, now_s)

    @property
    def free_s(self) -> float:
        """Time by the observer's clock from which the DUT may be taken."""
        return self.since_s + (self.latest.length_s * (1 + DRIFT) if self.latest is not None else 0.0)

    def next_record(self, holder: str, length_s: float, until: str, cell: str = "") -> LeaseRecord:
        """Return the record by which this holder takes the DUT; whoever appends it first has it."""
        return LeaseRecord(1 if self.latest is None else self.latest.number + 1, holder, length_s, until, cell)


@dataclass(frozen=True)
class Holding:
    """A lease as its holder knows it. Once ``is_over``, no late answer revives it."""

    record: LeaseRecord
    asked_s: float
    """Time by the holder's clock before it wrote the record."""

    @property
    def end_s(self) -> float:
        """End that holds even if the holder is cut off from everything."""
        return self.asked_s + self.record.length_s * (1 - DRIFT)

    @property
    def stop_s(self) -> float:
        """Time at which traffic is stopped, unless the lease was renewed by then."""
        return self.asked_s + self.record.length_s * STOP_SHARE

    @property
    def renew_s(self) -> float:
        return self.asked_s + self.record.length_s * RENEW_SHARE

    def is_over(self, now_s: float) -> bool:
        return now_s >= self.end_s

    def renewal(self, until: str) -> LeaseRecord:
        return replace(self.record, number=self.record.number + 1, until=until)

    def release(self) -> LeaseRecord:
        return replace(self.record, number=self.record.number + 1, length_s=0.0)

    def renewed(self, record: LeaseRecord, asked_s: float, now_s: float) -> Holding:
        """Return the lease after this renewal was written; an answer after its end changes nothing."""
        return self if self.is_over(now_s) else Holding(record, asked_s)
