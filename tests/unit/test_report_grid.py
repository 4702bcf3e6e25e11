"""The summary table, as the article has it: what stands where, what is bold, what is said where there is no figure."""

from __future__ import annotations

import pytest
from nights import changed, over_wan, passing
from report_cases import make_change, make_night, make_record, make_row

from trexbench.core.history.cell import EFFICIENCY
from trexbench.core.history.levels import Usual
from trexbench.core.history.night import CellState
from trexbench.core.history.rows import RATE, RunRow
from trexbench.report.page.grid import Grid, GridCell, build_cost_grid, build_grid, change_text

SEED = {
    ("1514b", False): "97 97 97 97 97",
    ("imix", False): "61 75 96 95 95",
    ("64b", False): "15 17 33 66 96",
    ("1flow", False): "4.4 4.7 33 33 33",
    ("1514b", True): "192 193 193 193 194",
    ("1flow", True): "8.6 9.0 61 61 33",
}
COLUMNS = (("pfsense", None), ("linux", None), ("vpp", 1), ("vpp", 2), ("vpp", 3))


def seed_grid() -> Grid:
    rows = [
        make_row(dut, mode, bidir=bidir, rx_queues=queues, line_share=float(percent) / 100)
        for (mode, bidir), line in SEED.items()
        for (dut, queues), percent in zip(COLUMNS, line.split(), strict=True)
    ]
    return build_grid(rows, None)


def last(rows: list[RunRow], found: Usual | None = None) -> GridCell:
    """The first cell of the table."""
    usual = {} if found is None else {(rows[-1].cell, "maximum rate"): found}
    return build_grid(rows, None, usual).blocks[0].rows[0].cells[0]


def test_the_articles_table_comes_out_as_it_went_in() -> None:
    grid = seed_grid()
    assert [str(column) for column in grid.columns] == ["pfsense", "linux", "vpp 1q", "vpp 2q", "vpp 3q"]
    assert [block.name for block in grid.blocks] == ["Unidirectional", "Bidirectional"]
    for block in grid.blocks:
        for row in block.rows:
            expected = [f"{one} %" for one in SEED[(row.mode, block.name == "Bidirectional")].split()]
            assert [cell.percent for cell in row.cells] == expected
    best = {row.mode: [at for at, cell in enumerate(row.cells) if cell.best] for row in grid.blocks[0].rows}
    assert best == {"64b": [4], "imix": [2], "1514b": [0, 1, 2, 3, 4], "1flow": [2, 3, 4]}, "all that read the same"
    assert not last([make_row()]).best, "of a single figure"
    unlike = [make_row("a", line_rate_bps=1e9), make_row("b", line_rate_bps=1e10)]
    bounds = [make_row("a", line_share=0.96, at_least=True), make_row("b", line_share=0.97, at_least=True)]
    for rows, why in ((unlike, "of unlike lines"), (bounds, "a bound below the largest may be better")):
        assert not any(cell.best for cell in build_grid(rows, None, {}).blocks[0].rows[0].cells), why


def test_percentages_have_the_digits_that_an_eye_wants() -> None:
    texts = [last([make_row(line_share=share)]).percent for share in (0.0995, 0.0004, 0.0)]
    assert texts == ["10 %", "0.04 %", "0.0 %"]


def test_a_path_that_a_column_names_makes_no_row_of_its_own() -> None:
    """In a suite no column names it."""
    sent, wans = "TCP by embedded, cubic", (None, over_wan("20ms"))
    rows = [passing(make_row("a", traffic=sent, suite=None), wan) for wan in wans]
    (block,) = build_grid(rows, None).blocks
    assert [row.mode for row in block.rows] == ["64b"] and len(block.rows[0].cells) == 2
    rows = [passing(make_row(dut, traffic=sent, suite="s"), wan) for dut, wan in zip("ab", wans, strict=True)]
    (block,) = build_grid(rows, None).blocks
    assert [row.mode for row in block.rows] == [f"64b, {sent}", f"64b, {sent}, WAN 20ms by netem"]


def test_runs_of_one_mode_name_with_other_traffic_share_no_row() -> None:
    rows = [make_row("a"), make_row("b"), make_row("c", traffic="64b instead"), make_row("d", traffic=None)]
    first, second = build_grid(rows, None).blocks[0].rows
    assert (first.mode, second.mode) == ("64b, traffic 0", "64b, traffic 64b instead")
    assert [cell.state for cell in first.cells] == ["value", "value", "missing", "value"]
    assert [cell.state for cell in second.cells] == ["missing", "missing", "value", "value"]


def test_a_bound_is_said_to_be_one() -> None:
    cell = last([make_row(at_least=True, line_share=0.97, total_pps=1.4e7)])
    assert (cell.percent, cell.rate) == (">= 97 %", ">= 14.00 Mpps") and "at least" in cell.about
    bounds = [last([make_row(at_least=True, line_share=share)]).percent for share in (0.996, 0.0096, 0.00096)]
    assert bounds == [">= 99.6 %", ">= 0.9 %", ">= 0.09 %"], "none is rounded up"


def test_without_a_night_the_latest_run_of_a_cell_counts() -> None:
    rows = [make_row(at="2026-11-19", line_share=0.1), make_row(at="2026-11-20", line_share=0.2)]
    assert last(rows).percent == "20 %"
    cut = [*rows, make_row(at="2026-11-21", status="incomplete")]
    assert last(cut).about == "the run of 2026-11-21T02:00:00Z is incomplete"
    cut = [*rows, make_row(at="2026-11-21", status="running")]
    assert "is still running, or was killed" in last(cut).about


def test_the_loss_limit_is_that_of_the_runs_in_the_table() -> None:
    rows = [make_row(at="2026-11-19", loss_threshold=0.01), make_row(at="2026-11-20", loss_threshold=1e-6)]
    assert build_grid(rows, None).loss_limit == "0.0001 %"
    assert build_grid(rows, make_night(make_record(rows[0]))).loss_limit == "1 %"
    assert build_grid([], None).loss_limit == "the limit"


def test_a_night_shows_what_failed_and_what_was_not_reached() -> None:
    rows = [make_row(), make_row(mode="imix"), make_row(mode="1514b"), make_row(mode="1flow")]
    night = make_night(
        make_record(rows[0]),
        make_record(rows[1], "ssh: no route to host"),
        make_record(rows[2], state=CellState.WAITING),
        make_record(rows[3]),
        error="power cut",
    )
    cells = {row.mode: row.cells[0] for row in build_grid(rows[:3], night).blocks[0].rows}
    percents = {mode: cell.percent for mode, cell in cells.items()}
    assert percents == {"64b": "34 %", "imix": "failed", "1514b": "-", "1flow": "failed"}
    assert cells["1514b"].about == "not measured: power cut" and "cannot be read" in cells["1flow"].about
    assert cells["imix"].about == "ssh: no route to host"


def nights_of(*rates: float, **changes: object) -> list[RunRow]:
    """One cell's run of each night, in Mpps."""
    dated = [(f"2026-11-{day:02}", rate) for day, rate in enumerate(rates, 1)]
    return [make_row(at=at, total_pps=1e6 * rate, line_share=rate / 15, **changes) for at, rate in dated]


STEADY = (5.0, 5.01, 4.99, 5.0, 5.02, 4.98)


@pytest.mark.parametrize(
    ("tonight", "text"),
    [(4.6, "\u25bc -8.0 %"), (5.5, "\u25b2 +10.0 %"), (5.02, "+0.4 %"), (4.98, "-0.4 %"), (5.0, "+-0.0 %")],
)
def test_a_figure_stands_beside_its_change_and_a_sign_where_it_is_beyond_the_noise(tonight: float, text: str) -> None:
    assert last(nights_of(*STEADY, tonight)).change == text


def test_few_nights_before_show_a_change_and_do_not_judge_it() -> None:
    cell = last(nights_of(5.0, 5.0, 2.5))
    assert cell.change == "-50.0 %" and "needs 7 nights, has 3" in cell.change_words
    assert last(nights_of(5.0)).change == ""


def test_the_level_before_a_change_that_was_found_is_the_baseline_from_then_on() -> None:
    rows = nights_of(*STEADY, 4.5, 4.5, 4.5, 4.5)
    nights = tuple(f"2026-11-{day:02}" for day in range(1, 7))
    loss = make_change(rows[0].cell, "2026-11-07", 5.2e6, 4.5e6)
    usual = Usual(nights, tuple(1e6 * rate for rate in STEADY), loss)
    cell = last(rows, found=usual)
    assert cell.change == "\u25bc -13.5 %" and "the level before the change (5.200 Mpps)" in cell.change_words
    assert cell.delta is not None and cell.delta.noise == pytest.approx(0.0027, abs=1e-4), "of the nights before it"
    assert "night" in last(rows[:6], found=usual).change_words, "of a run before the change it says nothing"


def test_a_baseline_of_bounds_bounds_the_change_and_proves_no_gain() -> None:
    nights = tuple(f"2026-11-{day:02}" for day in range(1, 7))
    usual = Usual(nights, tuple(1e6 * rate for rate in STEADY), at_least=True)
    cell = last(nights_of(*STEADY, 4.402), found=usual)
    assert cell.change == "\u25bc <= -11.9 %" and "(at least 5.000 Mpps)" in cell.change_words
    assert last(nights_of(*STEADY, 5.5), found=usual).change == "<= +10.0 %"


def test_nothing_is_compared_with_bounds_or_other_conditions() -> None:
    assert last([*nights_of(*STEADY), *nights_of(4.0, at_least=True)]).change == ""
    assert last([*nights_of(*STEADY, loss_threshold=0.01), make_row(at="2026-11-20")]).change == ""


def of_duts(*duts: tuple[str, int | None, float], modes: tuple[str, ...] = ("64b",)) -> Grid:
    """The table of DUTs with their queues and tonight's rates."""
    rows = [
        row
        for dut, queues, tonight in duts
        for mode in modes
        for row in nights_of(*STEADY, tonight, dut=dut, mode=mode, rx_queues=queues)
    ]
    return build_grid(sorted(rows, key=lambda row: row.started), None)


def test_a_column_counts_what_changed_in_it() -> None:
    grid = of_duts(("vpp", None, 4.5), ("linux", None, 5.0), modes=("64b", "imix"))
    assert [grid.marks(column) for column in (0, 1)] == [[(True, "2 slower")], []]


def test_a_bound_shows_what_its_packets_cost_more() -> None:
    cycles = enumerate((400.0, 401.0, 399.0, 400.0, 401.0, 399.0, 452.0), 1)
    rows = [make_row("linux", at=f"2026-11-{day:02}", cycles_per_packet=one, at_least=True) for day, one in cycles]
    cell = last(rows)
    assert cell.delta is None and cell.cost is not None and change_text(cell.cost) == "\u25bc +13.0 %"
    assert build_grid(rows, None).marks(0) == [(True, "1 dearer")]
    assert build_grid(rows[:-1], None).marks(0) == [] and last(rows[:-1]).cost is None
    assert last([changed(row, at_least=False) for row in rows]).cost is None, "a rate tells for itself"


def test_the_dut_that_changed_stands_first_with_all_of_its_columns() -> None:
    grid = of_duts(("linux", None, 5.0), ("vpp", 1, 5.0), ("pf", None, 5.5), ("vpp", 3, 4.5))
    assert [str(column) for column in grid.columns] == ["vpp 1q", "vpp 3q", "pf", "linux"]
    (row,) = grid.blocks[0].rows
    assert [cell.dut for cell in row.of] == ["vpp", "vpp", "pf", "linux"]
    assert [figure.row and figure.row.cell for figure in row.cells] == list(row.of)


def test_runs_at_given_rates_are_no_maximum_and_have_a_table_of_their_costs() -> None:
    rates = {10e6: 358.0, 1e3: 4943.0, 1e6: 584.0}
    rows = [
        make_row(kind=EFFICIENCY, held_pps=rate, cycles_per_packet=cycles, total_pps=1e6, at_least=True)
        for rate, cycles in rates.items()
    ]
    assert build_grid(rows, None).columns == () and all(RATE.of(row) is None for row in rows)
    (block,) = build_cost_grid(rows).blocks
    assert [(row.mode, row.cells[0].rate, row.cells[0].share) for row in block.rows] == [
        ("64b at 1 kpps", "4 943", None),
        ("64b at 1 Mpps", "584", None),
        ("64b at 10 Mpps", "358", None),
    ]
