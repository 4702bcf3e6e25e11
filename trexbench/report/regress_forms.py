"""A judgement for machines: JSON values, and JUnit's XML with a case per figure that was judged."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from ..core.regression import Finding, Judgement, Kind
from .regress import finding_line, missing_line, printable, summary_line


def judgement_values(judgement: Judgement) -> dict[str, Any]:
    """Values in each metric's own unit, shares as fractions."""
    return {
        "exit_code": judgement.exit_code,
        "summary": summary_line(judgement),
        "judged": judgement.judged,
        "since": judgement.since,
        "regressions": [_values(finding) for finding in judgement.regressions],
        "older": [_values(finding) for finding in judgement.older],
        "improvements": [_values(finding) for finding in judgement.of(Kind.IMPROVEMENT)],
        "known": [_values(finding) for finding in judgement.of(Kind.KNOWN)],
        "insufficient": [
            {"cell": str(finding.cell), "metric": finding.metric.name, "nights": finding.nights}
            for finding in judgement.of(Kind.INSUFFICIENT)
        ],
        "missing": [
            {"cell": one.cell, "suite": one.suite, "night": one.night, "reason": one.reason}
            for one in judgement.missing
        ],
        "remarks": list(judgement.remarks),
    }


def _values(finding: Finding) -> dict[str, Any]:
    cell = finding.cell
    return {
        "cell": str(cell),
        "dut": cell.dut,
        "mode": cell.mode,
        "bidir": cell.bidir,
        "rx_queues": cell.rx_queues,
        "kind": cell.kind,
        "simulated": cell.simulated,
        "metric": finding.metric.name,
        "unit": finding.metric.unit,
        "shape": finding.shape.value,
        "since": finding.since,
        "told": finding.told,
        "nights": finding.nights,
        "before": finding.before,
        "after": finding.after,
        "at_least": finding.at_least,
        "change": finding.share,
        "noise": finding.spread,
        "score": finding.score if finding.score != float("inf") else None,
        "explanation": list(finding.explanation),
        "note": finding.note,
    }


def format_junit(judgement: Judgement) -> str:
    """A test case per figure: failed where it regressed, skipped with too few nights; missing cells are errors."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="trexbench regress")
    cases = failures = skipped = 0
    alarming = set(map(id, judgement.regressions))
    for finding in sorted(judgement.findings, key=lambda one: (str(one.cell), one.metric.name)):
        case = _case(suite, str(finding.cell), finding.metric.name)
        cases += 1
        if id(finding) in alarming:
            failures += 1
            failure = ElementTree.SubElement(
                case, "failure", type="regression", message=printable(finding_line(finding))
            )
            failure.text = "\n".join(map(printable, [finding_line(finding), *finding.explanation]))
        elif finding.kind is Kind.INSUFFICIENT:
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=f"{finding.nights} nights are too few")
        else:
            ElementTree.SubElement(case, "system-out").text = printable(finding_line(finding))
    for cell, metric in judgement.steady:
        _case(suite, str(cell), metric)
        cases += 1
    for missing in judgement.missing:
        case = _case(suite, missing.cell, "measured")
        cases += 1
        ElementTree.SubElement(case, "error", type="missing", message=printable(missing_line(missing)))
    counts = {"tests": cases, "failures": failures, "skipped": skipped, "errors": len(judgement.missing)}
    for element in (suites, suite):
        for name, count in counts.items():
            element.set(name, str(count))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(suite: ElementTree.Element, cell: str, metric: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=printable(cell), name=printable(metric))
