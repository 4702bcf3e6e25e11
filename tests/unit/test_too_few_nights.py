"""Number of nights that a figure needs and has: regress, JUnit, the page's table and its figures all say the same."""

from __future__ import annotations

import re

import pytest
from nights import LINUX, make_rows

from trexbench.core.history.regression import judge_rows
from trexbench.core.history.rows import RunRow
from trexbench.report.groups import too_few
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.regress import format_judgement, format_junit

SAID = re.compile(r"needs \d+ nights, has \d+(?: to \d+)?")


def told(rows: list[RunRow]) -> list[set[str]]:
    """By regress, by JUnit, and by the page: its table of every figure, and the figures of the table of rates."""
    judgement, report = judge_rows(rows), Report(rows)
    trends = next(sheet for sheet in sheets_of(report, ()) if sheet.name == "trends")
    noise = [line.items[5].about for line in trends.lines]
    figures = [cell.change_words for block in report.grid.blocks for row in block.rows for cell in row.cells]
    texts = format_judgement(judgement), format_junit(judgement), "; ".join(noise), "; ".join(figures)
    return [set(SAID.findall(text)) for text in texts]


@pytest.mark.parametrize("nights", [1, 2, 5, 6, 7, 8, 30])
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
