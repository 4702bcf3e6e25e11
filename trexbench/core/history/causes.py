"""Group findings by their likely cause: those of one DUT that began together, led by its rates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .cell import Cell
from .differences import Difference
from .explain import day_words
from .finding import Finding, Kind
from .regression import Judgement


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one DUT, variant and WAN, of one kind and direction, that began in one night or the one beside it."""

    findings: tuple[Finding, ...]
    """The most telling metric first, then the largest change."""
    since: str
    """The night in which most of them began; rates decide first."""
    now: str
    differences: tuple[Difference, ...] | None = None
    """Between the first finding's cell's documents before and from ``since`` on; None: not compared."""

    @property
    def section(self) -> Kind:
        return self.first.kind

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def leading(self) -> tuple[Finding, ...]:
        """Findings of the headline: all rates, or else all of the most telling metric."""
        return tuple(finding for finding in self.findings if finding.metric.rank == self.first.metric.rank)

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(dict.fromkeys(finding.cell for finding in self.findings))

    @property
    def day(self) -> str:
        """``17 November``."""
        return day_words(self.since, self.now)

    def by_metric(self) -> Mapping[str, Sequence[Finding]]:
        """Findings by the name of their metric, the most telling first."""
        by_name: dict[str, list[Finding]] = {}
        for finding in self.findings:
            by_name.setdefault(finding.metric.name, []).append(finding)
        return by_name


def groups_of(judgement: Judgement) -> tuple[FindingGroup, ...]:
    """Group a judgement's findings: what alarms first, then by metric and by the size of the change."""
    kinds, groups = [*Kind], list[FindingGroup]()
    for night, alike in _by_cause(judgement.findings, judgement.nights):
        first, *_ = ordered = sorted(alike, key=lambda finding: (*_importance(finding), str(finding.cell)))
        now = judgement.now or first.reported or night
        groups.append(FindingGroup(tuple(ordered), night, now, judgement.differences.get((first.cell, night))))

    def order(group: FindingGroup) -> tuple[object, ...]:
        return kinds.index(group.section), *_importance(group.first), group.since, str(group.first.cell)

    return tuple(sorted(groups, key=order))


def _by_cause(findings: Iterable[Finding], nights: Sequence[str]) -> Iterator[tuple[str, list[Finding]]]:
    """Split findings into parts that may have one cause each, with the night in which most of a part began.

    A part includes the measured nights beside that one: where a change moves two figures by different amounts, the
    smaller move is detected a night late, or early by chance.
    """
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        cell = finding.cell
        key = (finding.kind, cell.dut_words, cell.simulated, finding.worse, finding.shape, finding.note)
        alike.setdefault(key, []).append(finding)
    for left in alike.values():
        while left:
            starts = [finding.since for finding in left]
            rates = [finding.since for finding in left if finding.metric.bounded]
            night = min(starts, key=lambda since: (-rates.count(since), -starts.count(since), since))
            at = nights.index(night) if night in nights else len(nights) + 1
            beside = {night, *nights[max(0, at - 1) : at + 2]}
            yield night, [finding for finding in left if finding.since in beside]
            left = [finding for finding in left if finding.since not in beside]


def _importance(finding: Finding) -> tuple[int, float]:
    return finding.metric.rank, -finding.severity
