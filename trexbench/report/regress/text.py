"""A judgement as text for a terminal, markdown for chat, and annotations for GitHub; all names in it are untrusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.history.detect import Shape
from ...core.history.regression import NEEDED_NIGHTS, Finding, Judgement, Kind, Missing
from ..clean import clean, escape_markdown
from ..words import format_count, format_figure

CHAT_LINES = 12
"""A chat message shows so many findings and counts the rest."""
ANNOTATIONS = 50


def format_judgement(judgement: Judgement) -> str:
    """A line per finding, the worst first, with its explanation below."""
    lines = [clean(summary_line(judgement)), ""]
    lines += _sections(judgement)
    short = judgement.of(Kind.INSUFFICIENT)
    if short:
        fewest = min(finding.nights for finding in short)
        lines.append(f"{format_count(len(short), 'figure')} not judged: needs {NEEDED_NIGHTS} nights, has {fewest}")
    return "\n".join(lines).rstrip() + "\n"


def _sections(judgement: Judgement) -> Iterator[str]:
    for title, findings in (
        ("REGRESSIONS", judgement.regressions),
        (f"REGRESSIONS BEFORE {judgement.since}, NOT ALARMING", judgement.older),
        ("IMPROVEMENTS", judgement.of(Kind.IMPROVEMENT)),
        ("KNOWN CHANGES", judgement.of(Kind.KNOWN)),
    ):
        if findings:
            yield title
            for finding in findings:
                yield f"  {clean(finding_line(finding))}"
                yield from (f"      {clean(sentence)}" for sentence in _sentences(finding))
            yield ""
    if judgement.missing:
        yield "NOT MEASURED"
        yield from (f"  {clean(missing_line(missing))}" for missing in judgement.missing)
        yield ""
    if judgement.remarks:
        yield from (f"note: {clean(remark)}" for remark in judgement.remarks)
        yield ""


def summary_line(judgement: Judgement) -> str:
    """The judgement in one line: how many of what."""
    found = judgement.regressions
    cells = {str(finding.cell) for finding in found}
    if found:
        verdict = f"{format_count(len(found), 'regression')} in {format_count(len(cells), 'cell')}"
    elif judgement.judged:
        verdict = f"no regression in {format_count(judgement.judged, 'figure')}"
    else:
        have = max((finding.nights for finding in judgement.of(Kind.INSUFFICIENT)), default=0)
        verdict = f"not enough nights to judge anything yet (have {have}, need {NEEDED_NIGHTS})"
    if judgement.missing:
        verdict += f"; {format_count(len(judgement.missing), 'cell')} not measured"
    return verdict


def finding_line(finding: Finding) -> str:
    """``netgate-vpp var2-64b uni 1q  maximum rate  -5.0 %  5.010 -> 4.760 Mpps  since 2026-11-19 (2 nights)``"""
    change = "from nothing" if finding.share is None else f"{'+' if finding.share > 0 else '-'}{_percent(finding)}"
    before, after = format_figure(finding.before, finding.metric), format_figure(finding.after, finding.metric)
    bound = "at least " if finding.at_least else ""
    about = "since about" if finding.shape is Shape.DRIFT else "since"
    return (
        f"{finding.cell}  {finding.metric.name} {change}: {before} -> {bound}{after} {about} {finding.since} "
        f"({format_count(finding.nights, 'night')}; noise {_noise(finding)})"
    )


def missing_line(missing: Missing) -> str:
    return f"{missing.cell} not measured on {missing.night}: {missing.reason}"


def format_markdown(judgement: Judgement) -> str:
    """A few lines for chat."""
    sign = {0: "OK", 3: "REGRESSION", 4: "NO VERDICT"}[judgement.exit_code]
    lines = [f"**{sign}**: {escape_markdown(summary_line(judgement))}"]
    shown = [*judgement.regressions, *judgement.of(Kind.IMPROVEMENT), *judgement.of(Kind.KNOWN)]
    entries = []
    for finding in shown:
        mark = {Kind.REGRESSION: "worse", Kind.IMPROVEMENT: "better"}.get(finding.kind, "known")
        said = "; ".join(_sentences(finding))
        entries.append(f"{mark}: {finding_line(finding)}{f' -- {said}' if said else ''}")
    entries += [missing_line(missing) for missing in judgement.missing]
    entries += [f"note: {remark}" for remark in judgement.remarks]
    lines += [f"- {escape_markdown(entry)}" for entry in entries[:CHAT_LINES]]
    if len(entries) > CHAT_LINES:
        lines.append(f"- and {len(entries) - CHAT_LINES} more")
    return "\n".join(lines) + "\n"


def format_github(judgement: Judgement) -> str:
    """Workflow commands: an error per regression, a warning per cell that was not measured, a notice for the rest."""
    lines = []
    for finding in judgement.regressions:
        text = "\n".join([finding_line(finding), *_sentences(finding)])
        lines.append(_command("error", f"{finding.cell}: {finding.metric.name}", text))
    lines += [_command("warning", missing.cell, missing_line(missing)) for missing in judgement.missing]
    lines = lines[:ANNOTATIONS]
    lines.append(_command("notice", "trexbench regress", summary_line(judgement)))
    return "\n".join(lines) + "\n"


def _command(name: str, title: str, text: str) -> str:
    """``::error title=...::text``, escaped as the runner unescapes it."""
    message = "%0A".join(clean(line).replace("%", "%25") for line in text.split("\n"))
    title = clean(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{name} title={title}::{message}"


def _sentences(finding: Finding) -> Sequence[str]:
    return (*finding.explanation, *([f"known: {finding.note}"] if finding.note is not None else []))


def _percent(finding: Finding) -> str:
    share = abs(finding.share or 0.0)
    return f"{share * 100:.1f} %" if share < 10 else f"{share * 100:.0f} %"


def _noise(finding: Finding) -> str:
    if finding.before:
        return f"{abs(finding.noise / finding.before) * 100:.1f} %"
    return format_figure(finding.noise, finding.metric)
