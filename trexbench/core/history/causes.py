"""Findings by their likely cause: those of one DUT that began together, headed by what the rate did. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .cell import Cell
from .detect import Shape
from .differences import Difference
from .explain import day_words
from .levels import Kind
from .regression import Finding, Judgement


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one DUT, variant and WAN, of one kind and direction, that began in one night or in one beside it.

    findings: the most telling metric first, then the largest change. since: the night in which most of them, of rates
    first, began; now: the last night. differences: of the first finding's cell, between the documents
    of its last run before ``since`` and of its first one from then on; None: not compared.
    """

    section: Kind
    findings: tuple[Finding, ...]
    since: str
    now: str
    differences: tuple[Difference, ...] | None = None

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def leading(self) -> tuple[Finding, ...]:
        """Findings of the headline: all rates, or the most telling metric that there is."""
        return tuple(one for one in self.findings if one.metric.rank == self.first.metric.rank)

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(dict.fromkeys(finding.cell for finding in self.findings))

    @property
    def day(self) -> str:
        """``17 November``."""
        return day_words(self.since, self.now)

    def by_metric(self) -> Mapping[str, Sequence[Finding]]:
        """The findings by their metric's name, the most telling first."""
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            found.setdefault(finding.metric.name, []).append(finding)
        return found


def groups_of(judgement: Judgement) -> tuple[FindingGroup, ...]:
    """All groups of a judgement: what alarms first, then by metric and by the size of the change."""
    apart = {Kind.REGRESSION: judgement.regressions, Kind.OLDER: judgement.older, Kind.INSUFFICIENT: ()}
    every: list[FindingGroup] = []
    for section in Kind:
        groups, findings = [], apart.get(section, judgement.of(section))
        for night, part in _parts(findings, judgement.nights):
            ordered = tuple(sorted(part, key=lambda one: (*_size(one), str(one.cell))))
            first = ordered[0]
            now = judgement.now or first.told or night
            groups.append(FindingGroup(section, ordered, night, now, judgement.differences.get((first.cell, night))))
        every += sorted(groups, key=lambda one: (*_size(one.first), one.since, str(one.first.cell)))
    return tuple(every)


def _parts(findings: Iterable[Finding], nights: Sequence[str]) -> Iterator[tuple[str, list[Finding]]]:
    """Parts that may have one cause each, with the night in which most of them began.

    Those that began in the measured night beside it are among them: of two figures that a change moves by different
    amounts one is told to begin a night later, or earlier by chance.
    """
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        key = (one.cell.dut_words, one.cell.simulated, one.worse, one.shape is Shape.DRIFT, one.note)
        alike.setdefault(key, []).append(one)
    for left in alike.values():
        while left:
            every = [one.since or "" for one in left]
            rates = [one.since or "" for one in left if one.metric.bounded]
            night = min(every, key=lambda since: (-rates.count(since), -every.count(since), since))
            at = nights.index(night) if night in nights else len(nights) + 1
            beside = {night, *nights[max(0, at - 1) : at + 2]}
            yield night, [one for one in left if (one.since or "") in beside]
            left = [one for one in left if (one.since or "") not in beside]


def _size(finding: Finding) -> tuple[int, float]:
    """For sorting: the most telling metric first, then the largest difference."""
    return finding.metric.rank, -finding.severity
