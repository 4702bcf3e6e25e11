"""A judgement as text for a terminal, markdown for chat, and annotations for GitHub; all names in it are untrusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.history.causes import FindingGroup, Section, groups_of
from ...core.history.levels import Kind
from ...core.history.regression import Finding, Judgement
from ..clean import clean, escape_markdown
from ..events import events_of_judgement, first_sentence, missing_lines
from ..fit import format_sheet
from ..groups import (
    DIFFERS,
    NOTHING_DIFFERS,
    change_words,
    difference_lines,
    explanation_lines,
    finding_line,
    format_levels,
    format_noise,
    group_lines,
    headline,
    note_of,
    too_few,
)
from ..room import wrapped
from ..sheet import make_sheet
from ..words import format_count

WIDTH = 100
"""Columns of text where there is no terminal."""
CHAT_LINES = 12
"""A chat message shows so many groups, cells and notes, and counts the rest."""
ANNOTATIONS = 50


def format_judgement(judgement: Judgement, width: int = WIDTH) -> str:
    """Groups of findings, the worst first: the headline, what explains it, what differs, and every figure below."""
    lines = [*_wrap(first_sentence(judgement), width), "", *_sections(judgement, width)]
    short = judgement.of(Kind.INSUFFICIENT)
    if short and judgement.judged:
        text = f"{format_count(len(short), 'figure')} not judged: {too_few(*(finding.nights for finding in short))}"
        lines += _wrap(text, width)
    return "\n".join(lines).rstrip() + "\n"


def _sections(judgement: Judgement, width: int) -> Iterator[str]:
    titles = {
        Section.REGRESSION: "REGRESSIONS",
        Section.SUSPICION: "SUSPECTED",
        Section.OLDER: f"REGRESSIONS BEFORE {judgement.since}, NOT ALARMING",
        Section.RECOVERY: "RECOVERED",
        Section.IMPROVEMENT: "IMPROVEMENTS",
        Section.KNOWN: "KNOWN CHANGES",
    }
    groups = groups_of(judgement)
    for section, title in titles.items():
        of_section = [group for group in groups if group.section is section]
        if of_section:
            yield title
        for group in of_section:
            yield from _group(group, width)
            yield ""
    if judgement.missing:
        yield "FAILED"
        for line in missing_lines(judgement.missing):
            yield from _wrap(line, width, 2)
        yield ""
    if judgement.remarks:
        for remark in judgement.remarks:
            yield from _wrap(f"note: {remark}", width)
        yield ""


def _group(group: FindingGroup, width: int) -> Iterator[str]:
    yield from _wrap(headline(group), width, 2)
    for sentence in (*explanation_lines(group), *note_of(group)):
        yield from _wrap(sentence, width, 4)
    if group.differences is not None:
        yield from _wrap(DIFFERS if group.differences else NOTHING_DIFFERS, width, 4)
    for line in difference_lines(group):
        yield from _wrap(line, width, 6)
    for metric, findings in group.by_metric().items():
        yield from _figures(metric, findings, group.since, width)


def _figures(metric: str, findings: Sequence[Finding], since: str, width: int) -> Iterator[str]:
    """A table; where the width is too small for it two lines for each finding, so that none is cut."""
    heads, rows = f":{metric}; change; :before -> after; noise; nights; :since", []
    for one in findings:
        figures = change_words(one), format_levels(one), format_noise(one), str(one.nights), one.since or ""
        rows.append([clean(one.cell), *figures])
    if all(one.since == since for one in findings):
        heads, rows = heads.rpartition(";")[0], [row[:-1] for row in rows]
    table = [f"    {line}" for line in format_sheet(make_sheet(heads, rows))]
    if max(map(len, table)) <= width:
        yield from table
        return
    yield f"    {metric}"
    for name, change, levels, noise, nights, *own in rows:
        about = f"{format_count(int(nights), 'night')}, noise {noise}{f', since {own[0]}' if own else ''}"
        yield f"      {name}"
        yield from _wrap(f"{change}  {levels}  {about}", width, 8)


def _wrap(text: str, width: int, indent: int = 0) -> list[str]:
    return wrapped([f"{'':<{indent}}{clean(text)}"], max(width, 40))


def format_markdown(judgement: Judgement) -> str:
    """A few lines for chat."""
    sign = {0: "OK", 3: "REGRESSION", 4: "NO VERDICT"}[judgement.exit_code]
    lines = [f"**{sign}**: {escape_markdown(first_sentence(judgement))}"]
    entries = [(f"{one.kind}: {one.headline}", *one.lines) for one in events_of_judgement(judgement) if not one.older]
    entries += [(f"note: {remark}",) for remark in judgement.remarks]
    for first, *others in entries[:CHAT_LINES]:
        lines += [f"- {escape_markdown(first)}", *(f"  - {escape_markdown(line)}" for line in others)]
    if len(entries) > CHAT_LINES:
        lines.append(f"- and {len(entries) - CHAT_LINES} more")
    return "\n".join(lines) + "\n"


def format_github(judgement: Judgement) -> str:
    """Workflow commands: an error per regression, a warning per reason of cells not measured, a notice for the rest."""
    lines = []
    for group in groups_of(judgement):
        if group.section is Section.REGRESSION:
            figures = (finding_line(finding) for finding in group.findings[1:])
            text = "\n".join([*group_lines(group), *figures])
            lines.append(_command("error", headline(group), text))
    lines += [_command("warning", "not measured", line) for line in missing_lines(judgement.missing)]
    lines = lines[:ANNOTATIONS]
    lines.append(_command("notice", "trexbench regress", first_sentence(judgement)))
    return "\n".join(lines) + "\n"


def _command(name: str, title: str, text: str) -> str:
    """``::error title=...::text``, escaped as the runner unescapes it."""
    message = "%0A".join(clean(line).replace("%", "%25") for line in text.split("\n"))
    title = clean(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{name} title={title}::{message}"
