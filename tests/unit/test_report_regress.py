"""A judgement's forms: text, markdown, JUnit, JSON; names in it are untrusted."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nights import LINUX, VPP, make_rows

from trexbench.core.history.differences import Difference
from trexbench.core.history.finding import Finding, Kind
from trexbench.core.history.regression import Judgement, MissingCell, judge_rows
from trexbench.core.history.rows import COST, METRICS, RATE, RunRow
from trexbench.report.groups import too_few
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.regress import format_judgement, format_junit, format_markdown, judgement_values

FOUND: dict[str, Any] = {"before": 5.01e6, "after": 4.76e6, "noise": 15e3, "usual": 5.01e6}
FOUND["explanation"] = ("ip4-lookup +31 cycles/packet since 19 November",)
SLOWER = Finding(VPP, RATE, Kind.REGRESSION, 2, "2026-11-19", "2026-11-20", **FOUND)
FASTER = replace(SLOWER, kind=Kind.IMPROVEMENT, after=5.3e6, explanation=())
KNOWN = replace(SLOWER, kind=Kind.KNOWN, metric=COST, before=438.0, after=460.0, usual=438.0, note="NIC firmware")
OLDER = replace(SLOWER, kind=Kind.OLDER)
FEW = {(VPP, "latency"): 3}
MISSING = MissingCell("netgate-vpp imix uni", "nightly", "2026-11-20", "the tester was not there")
ALL = Judgement((SLOWER, FASTER, KNOWN), 3, (MISSING,), ("a remark",), None, ((VPP, "steady"),), few=FEW)
NOTHING = Judgement((), 4, steady=((VPP, "a"), (replace(VPP, mode="imix"), "b")))
HOSTILE = "<script>alert(1)</script>\x1b[2J\x00]]>&*_[x](y)\r\n::error::%0A|@all\ud800"
BAD = replace(
    ALL,
    findings=(replace(SLOWER, cell=replace(VPP, dut=HOSTILE, mode=HOSTILE), explanation=(HOSTILE,)),),
    missing=(MissingCell(HOSTILE, HOSTILE, "2026-11-20", HOSTILE),),
    remarks=(HOSTILE,),
)
BAD = replace(BAD, differences={(BAD.findings[0].cell, "2026-11-19"): (Difference((HOSTILE,), HOSTILE, None),)})


def test_text_has_a_block_per_group_worst_first() -> None:
    text = format_judgement(ALL)
    assert text.startswith("netgate-vpp is 5.0 % slower since 19 November; 1 cell failed; 1 improvement\n")
    assert "  netgate-vpp 5.0 % slower since 19 November (1 cell)\n    ip4-lookup +31 cycles/packet since 19" in text
    assert (
        "    maximum rate                 change  before -> after      noise  nights\n"
        "    netgate-vpp var2-64b uni 1q  -5.0 %  5.010 -> 4.760 Mpps  0.3 %       2\n"
    ) in text
    assert text.index("REGRESSIONS") < text.index("IMPROVEMENTS") < text.index("KNOWN") < text.index("FAILED")
    assert "nightly: netgate-vpp imix uni failed: the tester was not there" in text
    for words in ("known: NIC firmware", "1 figure not judged: needs 7 nights, has 3", "note: a remark"):
        assert words in text


CELLS = [replace(VPP, mode=mode, bidir=bidir) for mode in ("var2-64b", "var2-imix-tunnel") for bidir in (False, True)]
LOSSIER = replace(SLOWER, metric=METRICS["hold_loss"], before=0.001, after=0.006, noise=1e-4, since="2026-11-18")
EIGHT = tuple(
    one
    for at, cell in enumerate(CELLS)
    for one in (replace(SLOWER, cell=cell, after=4.6e6 - at * 9e4), replace(LOSSIER, cell=cell))
)
GROUPED = Judgement(EIGHT, 9, nights=("2026-11-18", "2026-11-19", "2026-11-20"))
HEADLINE = "netgate-vpp 8.2 to 13.6 % slower since 19 November (4 cells)"


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_text_fits_the_terminal_and_says_what_it_leaves_out(width: int) -> None:
    differences = (Difference(("DUT", "interfaces", "ix0, ix1", "driver", "firmware-version"), "1.2.3", "4.5.6" * 9),)
    text = format_judgement(replace(GROUPED, differences={(CELLS[-1], "2026-11-19"): differences}), width)
    assert max(map(len, text.splitlines())) <= width
    told = " ".join(text.split())
    assert told.startswith("netgate-vpp is 8 to 14 % slower since 19 November, with interfaces ix0, ix1")
    assert HEADLINE in told
    rate, loss = "-13.6 % 5.010 -> 4.330 Mpps", "+0.5 points 0.100 -> 0.600 %"
    assert told.count(f"{CELLS[-1]} {rate} 0.3 % 2") == (width >= 100)
    noise = {60: "", 80: " 0.01 points"}.get(width, " 0.01 points 2")
    assert told.count(rate) == 1 and told.count(f"{loss}{noise} 2026-11-18") == 4
    assert told.count("left out for want of room: ") == {60: 2, 80: 1}.get(width, 0)
    assert "DUT / interfaces / ix0, ix1 / driver / firmware-version: 1.2.3 ->" in told


def test_every_form_is_headed_by_the_rate() -> None:
    text = format_markdown(GROUPED)
    assert HEADLINE in text.splitlines()[1] and text.count("regression: ") == 1
    assert "also loss in the hold 0.5 points higher (4 cells)" in text
    (group,) = judgement_values(GROUPED)["groups"]
    assert group["headline"] == HEADLINE and len(group["figures"]) == 8 and len(group["cells"]) == 4
    assert (group["kind"], group["worse"], group["since"]) == ("regression", True, "2026-11-19")
    failures = [*ElementTree.fromstring(format_junit(GROUPED).encode()).iter("failure")]
    assert len(failures) == 8 and all((one.text or "").startswith(f"{HEADLINE}\n") for one in failures)


def test_a_regression_from_before_the_night_that_was_named_alarms_nobody() -> None:
    text = format_judgement(replace(ALL, findings=(OLDER,), since="2026-11-20"))
    assert "REGRESSIONS BEFORE 2026-11-20, NOT ALARMING" in text


def test_markdown_is_short() -> None:
    many = replace(ALL, findings=tuple(replace(SLOWER, cell=replace(VPP, dut=f"dut{at}")) for at in range(100)))
    assert len(format_markdown(many).splitlines()) == 38 and "and 90 more" in format_markdown(many)
    assert format_markdown(ALL).startswith("**REGRESSION**: netgate-vpp is 5.0 % slower")
    assert format_markdown(NOTHING).startswith("**OK**")
    assert format_markdown(replace(NOTHING, missing=(MISSING,))).startswith("**FAILED**: netgate-vpp imix uni failed")
    assert format_markdown(Judgement((), 0)).startswith("**NO VERDICT**")


def test_junit_has_a_case_per_figure() -> None:
    root = ElementTree.fromstring(format_junit(ALL).encode())
    assert root.attrib == {"tests": "6", "failures": "1", "skipped": "1", "errors": "1"}
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    assert [(case.get("classname"), case.get("name")) for case in failed] == [(str(VPP), "maximum rate")]
    assert "ip4-lookup" in (failed[0].findtext("failure") or "")


def test_hostile_names_stay_text() -> None:
    ElementTree.fromstring(format_junit(BAD).encode())
    for text in (format_judgement(BAD), format_markdown(BAD)):
        assert "\x1b" not in text and "\x00" not in text and "\r" not in text
        text.encode()
    assert "<script>" not in format_markdown(BAD) and "](y)" not in format_markdown(BAD).replace("\\](", "")
    json.dumps(judgement_values(BAD), allow_nan=False)


@given(st.text())
def test_any_text_makes_readable_junit(text: str) -> None:
    name = replace(SLOWER, explanation=(text,))
    cases = ElementTree.fromstring(format_junit(replace(ALL, findings=(name,))).encode()).iter("testcase")
    assert [case.get("name") for case in cases]


def test_json_says_it_all() -> None:
    values = judgement_values(ALL)
    assert values["exit_code"] == 3 and values["regressions"][0]["change"] == pytest.approx(-0.0499, abs=1e-3)
    assert [len(values[name]) for name in ("improvements", "known", "insufficient", "missing")] == [1, 1, 1, 1]


SAID = re.compile(r"needs \d+ nights, has \d+(?: to \d+)?")


def told(rows: list[RunRow]) -> list[set[str]]:
    """By regress, by JUnit, and by the page: its table of every figure, and the figures of the table of rates."""
    judgement, report = judge_rows(rows), Report(rows)
    trends = next(sheet for sheet in sheets_of(report, ()) if sheet.name == "trends")
    noise = [line.items[5].about for line in trends.lines]
    figures = [cell.change_words for block in report.grid.blocks for row in block.rows for cell in row.cells]
    texts = format_judgement(judgement), format_junit(judgement), "; ".join(noise), "; ".join(figures)
    return [set(SAID.findall(text)) for text in texts]


@pytest.mark.parametrize("nights", [1, 6, 7])
def test_one_count_and_one_rule_everywhere(nights: int) -> None:
    rows = make_rows([5e6 + 1e3 * (at % 3) for at in range(nights)], hold_loss=0.0, cycles_per_packet=400.0)
    expected = {f"needs 7 nights, has {nights}"} if nights < 7 else set()
    text, junit, table, figures = told(rows)
    assert text == junit == table == expected
    assert figures == (expected if nights > 1 else set()), "a single night has nothing to compare with"


def test_cells_of_different_age_give_a_range_and_of_mixed_cells_only_the_young_are_named() -> None:
    young, old = make_rows([5e6, 5e6]), make_rows([5e5] * 4, LINUX)
    text, junit, table, _ = told([*old, *young])
    assert text == {"needs 7 nights, has 2 to 4"} and junit == table == {too_few(2), too_few(4)}
    text, junit, table, _ = told([*make_rows([5e5] * 9, LINUX), *young])
    assert text == junit == table == {too_few(2)}
