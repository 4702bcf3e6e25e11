"""A judgement as text, markdown for chat, JSON and JUnit; all names in it are untrusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from ..core.history.causes import FindingGroup, groups_of
from ..core.history.finding import Finding, Kind
from ..core.history.regression import Judgement
from .clean import clean, escape_markdown
from .events import events_of_judgement, failures, first_sentence
from .groups import (
    DIFFERS,
    NOTHING_DIFFERS,
    change_words,
    difference_lines,
    explanation_lines,
    finding_line,
    format_levels,
    format_noise,
    headline,
    too_few,
)
from .room import wrapped
from .sheet import format_sheet, make_sheet
from .words import format_count

WIDTH = 100
"""Columns of text where there is no terminal."""
CHAT_LINES = 12
"""Most groups, failed cells and notes in a chat message, which counts the rest."""


def format_judgement(judgement: Judgement, width: int = WIDTH) -> str:
    """The judgement as text: groups of findings, the worst first, with explanation, differences and figures."""
    lines = [*_wrap(first_sentence(judgement), width), "", *_sections(judgement, width)]
    if judgement.few and judgement.judged:
        text = f"{format_count(len(judgement.few), 'figure')} not judged: {too_few(*judgement.few.values())}"
        lines += _wrap(text, width)
    return "\n".join(lines).rstrip() + "\n"


def _sections(judgement: Judgement, width: int) -> Iterator[str]:
    titles = {
        Kind.REGRESSION: "REGRESSIONS",
        Kind.SUSPICION: "SUSPECTED",
        Kind.OLDER: f"REGRESSIONS BEFORE {judgement.since}, NOT ALARMING",
        Kind.RECOVERY: "RECOVERED",
        Kind.IMPROVEMENT: "IMPROVEMENTS",
        Kind.KNOWN: "KNOWN CHANGES",
    }
    groups = groups_of(judgement)
    for section, title in titles.items():
        of_section = [group for group in groups if group.section is section]
        if of_section:
            yield title
        for group in of_section:
            yield from (*_group(group, width), "")
    if judgement.missing:
        failed = (f"{one.suite}: {one.brief}" for one in failures(judgement.missing, judgement.now))
        lines = (line for text in failed for line in _wrap(text, width, 2))
        yield from ("FAILED", *lines, "")
    if judgement.remarks:
        yield from (*(line for remark in judgement.remarks for line in _wrap(f"note: {remark}", width)), "")


def _group(group: FindingGroup, width: int) -> Iterator[str]:
    yield from _wrap(headline(group), width, 2)
    for sentence in explanation_lines(group):
        yield from _wrap(sentence, width, 4)
    if group.differences is not None:
        yield from _wrap(DIFFERS if group.differences else NOTHING_DIFFERS, width, 4)
    for line in difference_lines(group):
        yield from _wrap(line, width, 6)
    for metric, findings in group.by_metric().items():
        yield from _figures(metric, findings, group.since, width)


def _figures(metric: str, findings: Sequence[Finding], since: str, width: int) -> Iterator[str]:
    own = any(one.since != since for one in findings)
    rows = [
        (clean(one.cell), change_words(one), format_levels(one), format_noise(one), str(one.nights), one.since)
        for one in findings
    ]
    heads = f"::{metric}; change; :before -> after; noise^1; nights^2{'; :since' * own}"
    sheet = make_sheet(heads, (row if own else row[:-1] for row in rows))
    yield from (f"    {line}".rstrip() for line in format_sheet(sheet, max(width, 40) - 4))


def _wrap(text: str, width: int, indent: int = 0) -> list[str]:
    return wrapped([f"{'':<{indent}}{clean(text)}"], max(width, 40))


def format_markdown(judgement: Judgement) -> str:
    """The judgement as a few lines for chat."""
    sign = {0: "OK", 3: "REGRESSION", 4: "NO VERDICT"}[judgement.exit_code]
    sign = "FAILED" if judgement.missing and not judgement.regressions else sign
    lines = [f"**{sign}**: {escape_markdown(first_sentence(judgement))}"]
    entries = [(f"{one.kind}: {one.headline}", *one.lines) for one in events_of_judgement(judgement) if not one.older]
    entries += [(f"note: {remark}",) for remark in judgement.remarks]
    for first, *others in entries[:CHAT_LINES]:
        lines += [f"- {escape_markdown(first)}", *(f"  - {escape_markdown(line)}" for line in others)]
    if len(entries) > CHAT_LINES:
        lines.append(f"- and {len(entries) - CHAT_LINES} more")
    return "\n".join(lines) + "\n"


def judgement_values(judgement: Judgement) -> dict[str, Any]:
    """The judgement as JSON values, in each metric's own unit, shares as fractions."""
    return {
        "exit_code": judgement.exit_code,
        "summary": first_sentence(judgement),
        "judged": judgement.judged,
        "since": judgement.since,
        "regressions": [*map(_values, judgement.regressions)],
        "suspicions": [*map(_values, judgement.of(Kind.SUSPICION))],
        "older": [*map(_values, judgement.of(Kind.OLDER))],
        "recoveries": [*map(_values, judgement.of(Kind.RECOVERY))],
        "improvements": [*map(_values, judgement.of(Kind.IMPROVEMENT))],
        "known": [*map(_values, judgement.of(Kind.KNOWN))],
        "insufficient": [
            {"cell": str(cell), "metric": metric, "nights": nights} for (cell, metric), nights in judgement.few.items()
        ],
        "groups": [*map(_group_values, groups_of(judgement))],
        "missing": [asdict(missing) for missing in judgement.missing],
        "remarks": list(judgement.remarks),
    }


def _values(finding: Finding) -> dict[str, Any]:
    return {
        "cell": str(finding.cell),
        **finding.cell.to_dict(),
        "metric": finding.metric.name,
        "unit": finding.metric.unit,
        "shape": finding.shape.value,
        "since": finding.since,
        "between": finding.between,
        "reported": finding.reported,
        "nights": finding.nights,
        "before": finding.before,
        "after": finding.after,
        "before_at_least": finding.before_at_least,
        "at_least": finding.at_least,
        "change": finding.share,
        "noise": finding.noise,
        "explanation": list(finding.explanation),
        "note": finding.note,
        "loss": None if (loss := finding.loss) is None else _loss_values(loss),
        "more_nights": finding.more or None,
    }


def _loss_values(loss: Finding) -> dict[str, Any]:
    levels = {"before": loss.before, "before_at_least": loss.before_at_least, "after": loss.after}
    return {"first": loss.since, "last": loss.last, "nights": loss.length, **levels}


def _group_values(group: FindingGroup) -> dict[str, Any]:
    first = group.first
    return {
        "kind": group.section.value,
        "headline": headline(group),
        "dut": first.cell.dut,
        "variant": first.cell.variant,
        "over": str(first.cell.over or ""),
        "simulated": first.cell.simulated,
        "emulated": first.cell.emulated,
        "worse": first.worse,
        "since": group.since,
        "cells": [str(cell) for cell in group.cells],
        "figures": [{"cell": str(one.cell), "metric": one.metric.name} for one in group.findings],
        "explanation": list(group.first.explanation),
        "differences": None if group.differences is None else [asdict(one) for one in group.differences],
        "note": group.first.note,
    }


def format_junit(judgement: Judgement) -> str:
    """JUnit XML with a case per figure: failed if it regressed, skipped if nights are too few, error if missing."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="trexbench regress")

    def add_case(cell: object, metric: str) -> ElementTree.Element:
        return ElementTree.SubElement(suite, "testcase", classname=clean(cell), name=clean(metric))

    groups = [group for group in groups_of(judgement) if group.section is Kind.REGRESSION]
    alarming = {id(finding): group for group in groups for finding in group.findings}
    for finding in sorted(judgement.findings, key=lambda one: (str(one.cell), one.metric.name)):
        case, line = add_case(finding.cell, finding.metric.name), clean(finding_line(finding))
        if (group := alarming.get(id(finding))) is not None:
            failure = ElementTree.SubElement(case, "failure", type="regression", message=line)
            texts = [headline(group), line, *finding.explanation, *difference_lines(group)]
            failure.text = "\n".join(map(clean, texts))
        else:
            ElementTree.SubElement(case, "system-out").text = line
    for (cell, metric), nights in judgement.few.items():
        ElementTree.SubElement(add_case(cell, metric), "skipped", message=too_few(nights))
    for cell, metric in judgement.steady:
        add_case(cell, metric)
    for missing in judgement.missing:
        case = add_case(missing.cell or missing.suite, "measured")
        ElementTree.SubElement(case, "error", type="missing", message=clean(next(failures([missing])).brief))
    for element in (suites, suite):
        element.set("tests", str(len(suite)))
        for name, outcome in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
            element.set(name, str(len(suite.findall(f"*/{outcome}"))))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
