"""A judgement for machines: JSON values, and JUnit XML with a test case per figure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from ...core.history.causes import FindingGroup, Section, groups_of
from ...core.history.levels import Kind
from ...core.history.regression import Finding, Judgement
from ..clean import clean
from ..events import first_sentence, missing_lines
from ..groups import difference_lines, finding_line, headline, too_few


def judgement_values(judgement: Judgement) -> dict[str, Any]:
    """Values in each metric's own unit, shares as fractions."""
    return {
        "exit_code": judgement.exit_code,
        "summary": first_sentence(judgement),
        "judged": judgement.judged,
        "since": judgement.since,
        "regressions": [_values(finding) for finding in judgement.regressions],
        "suspicions": [_values(finding) for finding in judgement.of(Kind.SUSPICION)],
        "older": [_values(finding) for finding in judgement.older],
        "recoveries": [_values(finding) for finding in judgement.of(Kind.RECOVERY)],
        "improvements": [_values(finding) for finding in judgement.of(Kind.IMPROVEMENT)],
        "known": [_values(finding) for finding in judgement.of(Kind.KNOWN)],
        "insufficient": [
            {"cell": str(finding.cell), "metric": finding.metric.name, "nights": finding.nights}
            for finding in judgement.of(Kind.INSUFFICIENT)
        ],
        "groups": [_group_values(group) for group in groups_of(judgement)],
        "missing": [asdict(one) for one in judgement.missing],
        "remarks": list(judgement.remarks),
    }


def _values(finding: Finding) -> dict[str, Any]:
    cell = finding.cell
    return {
        "cell": str(cell),
        **cell.to_dict(),
        "metric": finding.metric.name,
        "unit": finding.metric.unit,
        "shape": finding.shape.value,
        "since": finding.since,
        "between": finding.between,
        "told": finding.told,
        "nights": finding.nights,
        "before": finding.before,
        "after": finding.after,
        "at_least": finding.at_least,
        "change": finding.share,
        "noise": finding.noise,
        "score": finding.score if finding.score != float("inf") else None,
        "explanation": list(finding.explanation),
        "note": finding.note,
        "loss": None if finding.loss is None else asdict(finding.loss),
        "more_nights": finding.more or None,
    }


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
        "explanation": list(group.explanation),
        "differences": None if group.differences is None else [asdict(one) for one in group.differences],
        "note": group.note,
    }


def format_junit(judgement: Judgement) -> str:
    """A test case per figure: failed where it regressed, skipped with too few nights; missing cells are errors."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="trexbench regress")
    groups = [group for group in groups_of(judgement) if group.section is Section.REGRESSION]
    alarming = {id(finding): group for group in groups for finding in group.findings}
    for finding in sorted(judgement.findings, key=lambda one: (str(one.cell), one.metric.name)):
        case, line = _case(suite, finding.cell, finding.metric.name), clean(finding_line(finding))
        if (group := alarming.get(id(finding))) is not None:
            failure = ElementTree.SubElement(case, "failure", type="regression", message=line)
            failure.text = "\n".join(
                map(clean, [headline(group), line, *finding.explanation, *difference_lines(group)])
            )
        elif finding.kind is Kind.INSUFFICIENT:
            ElementTree.SubElement(case, "skipped", message=too_few(finding.nights))
        else:
            ElementTree.SubElement(case, "system-out").text = line
    for cell, metric in judgement.steady:
        _case(suite, cell, metric)
    for missing in judgement.missing:
        case = _case(suite, missing.cell or missing.suite, "measured")
        ElementTree.SubElement(case, "error", type="missing", message=clean(next(missing_lines([missing]))))
    for element in (suites, suite):
        element.set("tests", str(len(suite)))
        for name, outcome in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
            element.set(name, str(len(suite.findall(f"*/{outcome}"))))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(suite: ElementTree.Element, cell: object, metric: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=clean(cell), name=clean(metric))
