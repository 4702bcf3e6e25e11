"""News of a night as values: changes by their cause, failures by their reason, and the verdict in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.history.causes import FindingGroup, groups_of
from ..core.history.explain import day_words
from ..core.history.finding import Kind
from ..core.history.regression import Judgement, MissingCell
from ..core.history.series import night_of
from .groups import group_kind, group_lines, headline, too_few
from .words import format_count, status_words

FAILED = "failed"
"""Kind of an event that is a failure."""
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
"""Kind of an event -> its sign, in the order in which events are listed."""
COUNTED = ("regression", "relapse", "improvement")
"""Kinds that have a plural."""


@dataclass(frozen=True)
class NightEvent:
    """A group of findings, or the cells that were not measured for one reason."""

    kind: str
    """One of SIGNS."""
    headline: str
    """The event in a line, the same in every output."""
    subject: str
    """The headline's subject: the DUT and how many of its cells, or the cells that failed."""
    brief: str
    """The beginning of a sentence: without the number of cells, but with the likely cause."""
    cells: tuple[str, ...]
    """Names of the cells; none where a night was not run."""
    group: FindingGroup | None = None
    """The findings; None: a failure."""
    everything: bool = False
    """Nothing at all was measured, or a suite's last night was not run."""
    suite: str = ""
    """The suite of a failure."""
    outcome: str = FAILED
    """Fate of the cells or nights of a failure: ``failed``, ``not measured``, ``not run``."""
    alarms: bool = True
    """False: the change is known, or began before ``--since``, and is only listed."""

    @property
    def lines(self) -> list[str]:
        """Lines of a message below the headline."""
        return [*group_lines(self.group)] if self.group is not None else [*self.cells[len(self.cells) == 1 :]]

    @property
    def older(self) -> bool:
        """True if the change began before ``--since``."""
        return self.group is not None and self.group.section is Kind.OLDER

    @property
    def sign(self) -> str:
        return SIGNS[self.kind]

    @property
    def tone(self) -> str:
        """``bad``, ``doubt``, ``good`` or ``known``, which names a colour of the page."""
        worse = self.group is None or self.group.first.worse
        return {"known": "known", "suspected": "doubt"}.get(self.kind, "bad" if worse else "good")


def events_of_judgement(judgement: Judgement) -> list[NightEvent]:
    return events_of(groups_of(judgement), judgement.missing, judgement.now, judgement.nothing_measured)


def events_of(
    groups: Sequence[FindingGroup], missing: Sequence[MissingCell], now: str, nothing: bool = False
) -> list[NightEvent]:
    """All events, the worst first. now: the last night; nothing: it measured no cell.

    Recoveries whose figures are all worse again are left out: the relapse says when they were worse before.
    """
    events = [*failures(missing, now, nothing)]
    relapsed = {(one.cell, one.metric.name) for group in groups for one in group.findings if one.is_relapse}
    for group in groups:
        if group.section is Kind.RECOVERY and relapsed >= {(one.cell, one.metric.name) for one in group.findings}:
            continue
        cells = tuple(map(str, group.cells))
        subject = f"{group.first.cell.dut_marked} ({format_count(len(cells), 'cell')})"
        brief = headline(group, brief=True)
        alarms = group.section not in (Kind.OLDER, Kind.KNOWN)
        events.append(NightEvent(group_kind(group), headline(group), subject, brief, cells, group, alarms=alarms))
    kinds = [*SIGNS]

    def rank(event: NightEvent) -> tuple[bool, bool, int]:
        hopeful = event.kind == "suspected" and event.group is not None and not event.group.first.worse
        return not event.everything, not event.alarms, kinds.index("improvement" if hopeful else event.kind)

    return sorted(events, key=rank)


def failures(missing: Sequence[MissingCell], now: str = "", nothing: bool = False) -> Iterator[NightEvent]:
    """Yield an event for each suite, night and reason."""
    alike: dict[tuple[str, str, str], list[MissingCell]] = {}
    for one in missing:
        alike.setdefault((one.suite, one.night, one.reason), []).append(one)
    for some in alike.values():
        first, names = some[0], tuple(one.cell for one in some if one.cell is not None)
        day = day_words(first.night, now)
        if not names:
            night, why = f"night of {day}", f"was not run: {first.reason}"
            lines = f"the {night} {why}", f"the {night}", f"The {night} {why}"
            yield NightEvent(FAILED, *lines, (), None, first.night == now, first.suite, "not run")
            continue
        cells = f"all {len(some)} cells" if len(some) == first.of else f"{len(some)} of {first.of} cells"
        name, on = names[0] if len(some) == 1 else cells, "" if first.night == now else f" on {day}"
        verb, was = ("", FAILED) if first.failed else (" not measured", "not measured")
        lines = f"{name}{verb}{on}: {first.reason}", name, f"{name} {was}{on}: {first.reason}"
        yield NightEvent(FAILED, *lines, names, None, nothing and not on, first.suite, was)


def first_sentence(judgement: Judgement) -> str:
    """The verdict in a sentence, which every output begins with: the worst event, then the number of the others."""
    every = events_of_judgement(judgement)
    events = [event for event in every if event.alarms]
    if not events and (older := sum(event.older for event in every)):
        return f"Nothing new since {judgement.since}; {format_count(older, 'older change')}"
    if not events:
        return _all_well(judgement)
    first, *others = events
    if first.everything and first.cells:
        return f"Nothing was measured tonight: {'; '.join(event.brief for event in events if event.everything)}"
    kinds = dict.fromkeys((event.kind, event.outcome) for event in others)
    alike = ([event for event in others if (event.kind, event.outcome) == kind] for kind in kinds)
    more = [_count_words(some, (first.kind, first.outcome)) for some in alike]
    quiet = ["all else as usual"] if first.tone == "good" and not more else []
    return "; ".join([first.brief, *more, *quiet])


def _count_words(events: Sequence[NightEvent], first: tuple[str, str]) -> str:
    """``2 more regressions``, ``3 cells failed``. first: kind and outcome of the event before them."""
    kind, outcome = events[0].kind, events[0].outcome
    more = "more " * ((kind, outcome) == first)
    if kind == FAILED:
        number = len({cell for event in events for cell in event.cells or (event.headline,)})
        return f"{format_count(number, more + ('cell' if events[0].cells else 'night'))} {outcome}"
    return f"{len(events)} {more}{kind}{'s' * (len(events) > 1 and kind in COUNTED)}"


def _all_well(judgement: Judgement) -> str:
    few = {cell: nights for (cell, _), nights in judgement.few.items()}
    if not judgement.judged and few:
        return f"{format_count(len(few), 'cell')} measured; too early to judge: {too_few(*few.values())}"
    if not judgement.judged and not judgement.without:
        return "Nothing was measured yet"
    if not judgement.judged:
        last, before = judgement.without[-1], len(judgement.without) - 1
        words = f"{last.cell} on {day_words(night_of(last), night_of(last))}: {status_words(last)}"
        return f"No run has a figure yet: {words}{f'; {before} more before' if before else ''}"
    every = {cell for cell, _ in judgement.steady} | {one.cell for one in judgement.findings}
    young = {cell: nights for cell, nights in few.items() if cell not in every}
    usual, resting = every - judgement.resting, every & judgement.resting
    known = sum(group.section is Kind.KNOWN for group in groups_of(judgement))
    every_one = "" if young or resting else "All "
    parts = [f"{every_one}{len(usual)} cells as usual" if len(usual) > 1 else "As usual"] if usual else []
    parts += [format_count(known, "known change")] if known else []
    parts += [f"{format_count(len(young), 'cell')} not judged yet: {too_few(*young.values())}"] if young else []
    parts += [f"{format_count(len(resting), 'cell')} not measured in the last night"] if resting else []
    return "; ".join(parts)
