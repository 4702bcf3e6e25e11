"""News for a morning's reader, as values: changes by their cause, failures by their reason, and the verdict on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.history.causes import FindingGroup, groups_of
from ..core.history.explain import day_words
from ..core.history.levels import Kind
from ..core.history.regression import Judgement, MissingCell
from ..core.history.rows import RunRow
from ..core.history.series import night_of
from .groups import dut_words, group_kind, group_lines, headline, too_few
from .words import format_count, status_words

FAILED = "failed"
"""The kind of an event that is a failure."""
SIGNS = {
    "regression": "\u25bc",
    "relapse": "\u25bc",
    "dearer": "\u25bc",
    "suspected": "?",
    FAILED: "\u2715",
    "recovered": "\u25b2",
    "improvement": "\u25b2",
    "known": "=",
}
"""Sign of each kind, in the order in which events are listed."""
COUNTED = ("regression", "relapse", "improvement")
"""Kinds that have a plural."""


@dataclass(frozen=True)
class NightEvent:
    """A group of findings, or the cells that were not measured for one reason."""

    kind: str
    """One of SIGNS."""
    headline: str
    """All of it in a line, as every output says it."""
    subject: str
    """The part that the headline is about: the DUT and how many of its cells, or the cells that failed."""
    brief: str
    """The beginning of a sentence: no number of cells, but the likely cause."""
    cells: tuple[str, ...]
    """Their names; none where a night was not run."""
    group: FindingGroup | None = None
    """The findings; None of a failure."""
    everything: bool = False
    """Nothing at all was measured, or a suite's last night was not run."""
    suite: str = ""
    """The suite of a failure."""
    alarms: bool = True
    """False for what is only listed: changes that are known, or began before the night that was named."""

    @property
    def lines(self) -> list[str]:
        """Lines that a message has below the headline."""
        return [*group_lines(self.group)] if self.group is not None else [*self.cells[len(self.cells) == 1 :]]

    @property
    def older(self) -> bool:
        """True if it began before the night that was named."""
        return self.group is not None and self.group.section is Kind.OLDER

    @property
    def sign(self) -> str:
        return SIGNS[self.kind]

    @property
    def tone(self) -> str:
        """``bad``, ``doubt``, ``good`` or ``known``: its colour, which never stands alone."""
        if self.kind in ("known", "suspected"):
            return {"known": "known", "suspected": "doubt"}[self.kind]
        return "bad" if self.group is None or self.group.first.worse else "good"


def events_of_judgement(judgement: Judgement) -> list[NightEvent]:
    return events_of(groups_of(judgement), judgement.missing, judgement.now, judgement.nothing_measured)


def events_of(
    groups: Sequence[FindingGroup], missing: Sequence[MissingCell], now: str, nothing: bool = False
) -> list[NightEvent]:
    """All events, the worst first. now: the last night; nothing: it measured no cell.

    Recoveries whose figures are all worse again are left out: that says when they were worse before.
    """
    again = {(one.cell, one.metric.name) for group in groups for one in group.findings if one.is_relapse}
    lasting = (
        group
        for group in groups
        if group.section is not Kind.RECOVERY
        or not again.issuperset((one.cell, one.metric.name) for one in group.findings)
    )
    kinds = [*SIGNS]

    def place(one: NightEvent) -> tuple[bool, bool, int]:
        hopeful = one.kind == "suspected" and one.group is not None and not one.group.first.worse
        return not one.everything, not one.alarms, kinds.index("improvement" if hopeful else one.kind)

    return sorted([*_failures(missing, now, nothing), *map(_of_group, lasting)], key=place)


def _of_group(group: FindingGroup) -> NightEvent:
    alarms = group.section not in (Kind.OLDER, Kind.KNOWN)
    cells = tuple(map(str, group.cells))
    subject = f"{dut_words(group)} ({format_count(len(cells), 'cell')})"
    return NightEvent(
        group_kind(group), headline(group), subject, headline(group, brief=True), cells, group, alarms=alarms
    )


def _failures(missing: Sequence[MissingCell], now: str, nothing: bool) -> Iterator[NightEvent]:
    """Yield an event for each reason."""
    for some in _by_reason(missing):
        first, names = some[0], tuple(one.cell for one in some if one.cell is not None)
        day = day_words(first.night, now)
        if not names:
            night, why = f"night of {day}", f"was not run: {first.reason}"
            lines = f"the {night} {why}", f"the {night}", f"The {night} {why}"
            yield NightEvent(FAILED, *lines, (), everything=first.night == now, suite=first.suite)
            continue
        cells = f"all {len(some)} cells" if len(some) == first.of else f"{len(some)} of {first.of} cells"
        name, on = names[0] if len(some) == 1 else cells, "" if first.night == now else f" on {day}"
        lines = f"{name}{on}: {first.reason}", name, f"{name} {FAILED}{on}: {first.reason}"
        yield NightEvent(FAILED, *lines, names, everything=nothing and not on, suite=first.suite)


def missing_lines(missing: Sequence[MissingCell]) -> Iterator[str]:
    """A line for each reason: ``all 16 cells of nightly failed on 2026-11-20: no TRex server``."""
    for some in _by_reason(missing):
        first, every = some[0], "all " * (len(some) == some[0].of)
        if first.cell is None:
            yield f"the night of {first.night} of {first.suite} was not run: {first.reason}"
            continue
        names = first.cell if len(some) == 1 else f"{every}{len(some)} cells of {first.suite}"
        yield f"{names} {FAILED} on {first.night}: {first.reason}"


def _by_reason(missing: Sequence[MissingCell]) -> list[list[MissingCell]]:
    alike: dict[tuple[str, str, str], list[MissingCell]] = {}
    for one in missing:
        alike.setdefault((one.suite, one.night, one.reason), []).append(one)
    return [*alike.values()]


def first_sentence(judgement: Judgement) -> str:
    """The verdict in a sentence, which page, terminal, chat and markdown begin with: the worst, then how much else."""
    every = events_of_judgement(judgement)
    events = [one for one in every if one.alarms]
    if not events and judgement.older:
        return f"Nothing new since {judgement.since}; {format_count(sum(one.older for one in every), 'older change')}"
    if not events:
        return _all_well(judgement)
    if events[0].everything and events[0].cells:
        return f"Nothing was measured tonight: {'; '.join(one.brief for one in events if one.everything)}"
    first, others = events[0], events[1:]
    kinds = dict.fromkeys(one.kind for one in others)
    more = [_count_words([one for one in others if one.kind == kind], kind == first.kind) for kind in kinds]
    quiet = ["all else as usual"] if first.tone == "good" and not more else []
    return "; ".join([first.brief, *more, *quiet])


def _count_words(events: Sequence[NightEvent], again: bool) -> str:
    """``2 more regressions``, ``3 cells failed``."""
    kind, more = events[0].kind, "more " * again
    if kind == FAILED:
        number = len({cell for one in events for cell in one.cells or (one.subject,)})
        return f"{number} {more}{'cell' if number == 1 else 'cells'} {FAILED}"
    return f"{len(events)} {more}{kind}{'s' * (len(events) > 1 and kind in COUNTED)}"


def _no_figure(rows: Sequence[RunRow]) -> str:
    """The sentence that no run has a figure, and what became of the last."""
    if not rows:
        return "Nothing was measured yet"
    last, before = rows[-1], len(rows) - 1
    words = f"{last.cell} on {day_words(night_of(last), night_of(last))}: {status_words(last)}"
    return f"No run has a figure yet: {words}{f'; {before} more before' if before else ''}"


def _all_well(judgement: Judgement) -> str:
    """The sentence that nothing changed, or that there are too few nights to judge."""
    few = {one.cell: one.nights for one in judgement.of(Kind.INSUFFICIENT)}
    if not judgement.judged:
        words = f"{format_count(len(few), 'cell')} measured; too early to judge: {too_few(*few.values())}"
        return words if few else _no_figure(judgement.without)
    every = {cell for cell, _ in judgement.steady} | {one.cell for one in judgement.findings if one.cell not in few}
    young = {cell: nights for cell, nights in few.items() if cell not in every}
    usual, resting = every - judgement.resting, every & judgement.resting
    known = sum(group.section is Kind.KNOWN for group in groups_of(judgement))
    parts = [f"All {len(usual)} cells as usual" if len(usual) > 1 else "As usual" if usual else "Nothing changed"]
    parts += [format_count(known, "known change")] if known else []
    parts += [f"{len(young)} not judged yet: {too_few(*young.values())}"] if young else []
    parts += [f"{len(resting)} not measured in the last night"] if resting else []
    return "; ".join(parts)
