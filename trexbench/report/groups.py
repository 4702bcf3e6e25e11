"""A group of findings in words: headline, figures metric by metric, and what differs at the change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.history.causes import FindingGroup
from ..core.history.detect import SURE, Shape
from ..core.history.explain import day_range, day_words
from ..core.history.finding import Finding, Kind
from ..core.history.levels import NEEDED_NIGHTS
from ..core.history.rows import COST, Metric
from ..core.units import round_bound
from .clean import clean
from .words import format_change, format_count, format_figure

MOST_DIFFERENCES = 8
NOTHING_DIFFERS = "nothing that was read back differs from the run before"
DIFFERS = "what differs from the run before:"
ROUGH = 0.095
"""From this change on a sentence rounds to whole percents."""
_BOUNDS = {"": "", ">=": "at least ", "<=": "at most "}
LONGEST_CAUSE = 40
"""Most letters of a cause in a sentence."""


def too_few(*nights: int) -> str:
    """``needs 7 nights, has 3``; of several figures ``needs 7 nights, has 1 to 3``."""
    least, most = min(nights, default=0), max(nights, default=0)
    return f"needs {NEEDED_NIGHTS} nights, has {f'{least} to ' if least < most else ''}{most}"


def headline(group: FindingGroup, brief: bool = False) -> str:
    """``netgate-vpp 8.1 to 13.8 % slower since 17 November (8 cells)``

    brief: for a sentence, ``netgate-vpp is 8 to 14 % slower since 17 November, with vpp 26.10``.
    """
    first, leading = group.first, group.leading
    cause = f", {cause_words(group)}" if brief and cause_words(group) else ""
    dut, again = first.cell.dut_marked, ""
    if first.is_relapse and first.loss is not None:
        nights = day_range(first.loss.since, first.loss.last, group.now)
        again = f", as {'on' if first.loss.length == 1 else 'from'} {nights}"
    words = " again" if again else ""
    if group.section is Kind.RECOVERY and first.loss is not None:
        was = f"was {_loss_words(leading)} for {format_count(first.loss.length, 'night')}"
        count = "" if brief else f" ({format_count(len(group.cells), 'cell')})"
        return f"{dut} recovered on {group.day}, {was}{count}{cause}"
    if brief:
        is_share = first.metric.bounded and any(one.share is not None for one in leading)
        dut += " is" if is_share else ":"
    if group.section is Kind.SUSPICION:
        most = max(one.more for one in leading)
        nights = "one more such night makes" if most == 1 else f"{most} more such nights make"
        change = "a regression" if first.worse else "an improvement" if first.loss is None else "a recovery"
        several, day = group.since < first.reported, day_words(first.reported, group.now)
        at = f"since {group.day}" if several else "tonight" if first.reported == group.now else f"on {day}"
        return f"{dut} {figures_words(leading, f'{words} {at}{again}', brief)}{cause}; {nights} it {change}"
    about, sure = "about " if first.shape is Shape.DRIFT else "", ""
    if not brief and first.between is not None and first.between[0] != first.between[1]:
        sure = f" ({100 * SURE:.0f} % sure: {day_range(*first.between, group.now)})"
    return f"{dut} {figures_words(leading, f'{words} since {about}{group.day}{sure}{again}', brief)}{cause}"


def group_kind(group: FindingGroup) -> str:
    """The group's kind in one word: one of events.SIGNS."""
    named = {Kind.SUSPICION: "suspected", Kind.RECOVERY: "recovered", Kind.KNOWN: "known"}
    if group.section in named:
        return named[group.section]
    if not group.first.worse:
        return "improvement"
    if group.first.is_relapse:
        return "relapse"
    return "dearer" if group.first.metric.name == COST.name else "regression"


def cause_words(group: FindingGroup) -> str:
    """``with vpp 26.10``: the first difference since the change, and the number of the others; empty for none."""
    if not group.differences:
        return ""
    first, more = group.differences[0], len(group.differences) - 1
    path = (first.path[1:] or first.path) if first.path[0].startswith("DUT") else first.path
    name = " ".join(path[:-1] if first.after and len(path) > 1 and path[-1] in ("version", "release") else path)
    change = f"without {name}" if first.after is None else f"with {name} {clean(first.after, LONGEST_CAUSE)}"
    return f"{change} and {format_count(more, 'other change')}" if more else change


def _loss_words(findings: Sequence[Finding]) -> str:
    """``6.5 to 10.9 % slower``: the losses that ended."""
    lost = (finding.loss for finding in findings if finding.loss is not None)
    return figures_words([*lost]).rpartition(" (")[0]


def figures_words(findings: Sequence[Finding], since: str = "", brief: bool = False) -> str:
    """``8.1 to 13.8 % slower (8 cells)``, ``cycles/packet 9.1 % higher (1 cell)``: of one metric, or of all rates.

    brief: without the number of cells, and rounded from ROUGH on.
    """
    metric, rises = findings[0].metric, findings[0].after > findings[0].before
    count = "" if brief else f" ({format_count(len({finding.cell for finding in findings}), 'cell')})"
    shares = sorted(abs(finding.share) for finding in findings if finding.share is not None)
    sign = max(finding.bound for finding in findings)
    bound = (">=" if (sign == ">=") == rises else "<=") if sign else ""  # of the size
    if not shares:
        most = format_figure(max(finding.after for finding in findings), metric)
        return f"{metric.name} from nothing to {most}{since}{count}"
    rough, unit = brief and shares[-1] >= ROUGH, "%"
    low, high = (_size(share, rough, bound) for share in (shares[0], shares[-1]))
    if metric.unit == "share":
        apart = sorted(abs(finding.after - finding.before) for finding in findings)
        low, high, unit = _points(apart[0]), _points(apart[-1]), "points"
    size = f"{high} {unit}" if low == high else f"{low} to {high} {unit}"
    way = ("faster" if rises else "slower") if metric.bounded else ("higher" if rises else "lower")
    return f"{'' if metric.bounded else f'{metric.name} '}{_BOUNDS[bound]}{size} {way}{since}{count}"


def _size(share: float, rough: bool, bound: str) -> str:
    """Size of a change in percent: ``8.1``, ``5031``."""
    places = 0 if rough or share >= 10 else 1
    return f"{round_bound(100 * share, places, bound):.{places}f}"


def explanation_lines(group: FindingGroup) -> Iterator[str]:
    """Yield the first finding's explanation, with its cell where the headline is about several; and the note."""
    several = len({one.cell for one in group.leading}) > 1
    for sentence in group.first.explanation:
        yield f"{group.first.cell}: {sentence}" if several else sentence
    if group.first.note is not None:
        yield f"known: {group.first.note}"


def own_explanation(group: FindingGroup, finding: Finding) -> str:
    """Explanation of a finding, without what the group or the cell's first finding already says."""
    first = next(one for one in group.findings if one.cell == finding.cell)
    said = {*group.first.explanation, *(first.explanation if first is not finding else ())}
    return "; ".join(sentence for sentence in finding.explanation if sentence not in said)


def also_line(group: FindingGroup) -> str:
    """The group's other metrics in a line; empty where there are none."""
    others = [findings for findings in group.by_metric().values() if findings[0] not in group.leading]
    return f"also {', '.join(map(figures_words, others))}" if others else ""


def difference_lines(group: FindingGroup) -> Iterator[str]:
    """Yield ``DUT / kernel: 6.1 -> 6.8``; nothing where no documents were compared."""
    differences = group.differences or ()
    for difference in differences[:MOST_DIFFERENCES]:
        before, after = ("absent" if word is None else word for word in (difference.before, difference.after))
        yield f"{' / '.join(difference.path)}: {before} -> {after}"
    if len(differences) > MOST_DIFFERENCES:
        yield f"and {len(differences) - MOST_DIFFERENCES} more"


def change_words(finding: Finding) -> str:
    """``-13.8 %``, ``>= +9.1 %``; for a share ``+7.2 points``."""
    if finding.share is None:
        return "from nothing"
    return step_words(finding.share, finding.before, finding.metric, finding.bound)


def step_words(step: float, before: float, metric: Metric, bound: str = "") -> str:
    """``-13.8 %``; for a share ``+7.2 points``. step: as a share of the level before. bound: its sign."""
    apart = step * abs(before)
    if metric.unit == "share":
        return f"{'+' if apart > 0 else '-' if apart else '+-'}{_points(abs(apart))} points"
    return format_change(step, bound)


def _points(share: float) -> str:
    """``7.2``, ``0.05``: difference between two shares in percentage points."""
    return f"{100 * share:.1f}" if share >= 0.01 else f"{100 * share:.2g}"


def format_levels(finding: Finding) -> str:
    """``5.010 -> 4.760 Mpps``, each with its unit where these differ."""
    before, after = (format_figure(level, finding.metric) for level in (finding.before, finding.after))
    number, _, unit = before.rpartition(" ")
    same = number and not unit.isdigit() and after.endswith(f" {unit}")
    least = ("at least " * one for one in (finding.before_at_least, finding.at_least))
    return f"{next(least)}{number if same else before} -> {next(least)}{after}"


def format_noise(finding: Finding) -> str:
    return noise_words(finding.noise, finding.usual, finding.metric)


def noise_words(noise: float, usual: float, metric: Metric) -> str:
    """A night's noise as a share of the usual level, or in the figure's unit where that is 0 or a share."""
    if metric.unit == "share":
        return f"{_points(noise)} points"
    if usual:
        return f"{_points(abs(noise / usual))} %"
    return format_figure(noise, metric)


def group_lines(group: FindingGroup) -> Iterator[str]:
    """Yield a message's lines below the headline: explanation, the worst figure, other metrics, what differs."""
    yield from explanation_lines(group)
    yield finding_line(group.first)
    if also := also_line(group):
        yield also
    if group.differences == ():
        yield NOTHING_DIFFERS
    yield from (f"differs: {line}" for line in difference_lines(group))


def finding_line(finding: Finding) -> str:
    """``netgate-vpp var2-64b uni 1q  maximum rate  -5.0 %  5.010 -> 4.760 Mpps  since 2026-11-19 (2 nights)``"""
    about = "since about" if finding.shape is Shape.DRIFT else "since"
    between = finding.between or ("", "")
    apart = "" if between[0] == between[1] else f"between {between[0]} and {between[1]}; "
    return (
        f"{finding.cell}  {finding.metric.name} {change_words(finding)}: {format_levels(finding)} {about} "
        f"{finding.since} ({apart}{format_count(finding.nights, 'night')}; noise {format_noise(finding)})"
    )
