"""Throughput by frame size, the table and the picture of several runs; the plots of what a packet costs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from matplotlib.text import Text
from report_cases import make_costs
from runs import SIZED_PPS, sized

from trexbench.core.load.plan import Direction
from trexbench.core.result import RunResult, Status
from trexbench.core.units import line_rate_pps
from trexbench.report.run.costs import cost_plots
from trexbench.report.run.picture_plot import compose_plot, compose_sizes, draw_costs, draw_sizes
from trexbench.report.run.sizes import format_sizes, throughputs

FORTH, BACK = Direction(0, 1), Direction(1, 0)


@pytest.fixture(scope="module")
def both_ways() -> list[RunResult]:
    return [sized(64, bidir=True), sized(1518, bidir=True)]


def test_a_row_for_each_size_and_goal_with_rates_shares_and_limit(both_ways: list[RunResult]) -> None:
    lines = format_sizes(both_ways).splitlines()
    assert re.split(" {2,}", lines[0].strip()) == [
        "frame", "line rate", "loss", "0->1", "1->0", "throughput", "L2", "of line rate", "limit",
    ]  # fmt: skip
    assert [line.split()[:2] for line in lines[1:5]] == [["64", "B"]] * 2 + [["1518", "B"]] * 2
    assert all("1.488 Mpps" in line and "the DUT saturated" in line and ">=" not in line for line in lines[1:3])
    assert "<= 0 %" in lines[1] and "<= 1 %" in lines[2]
    assert all("81.27 kpps" in line and line.count(">= ") == 3 and "no limit found" in line for line in lines[3:5])
    assert "1 Gbit/s" in lines[-1] and "2 directions together (up to 200 %)" in lines[-1]


def test_its_figures_are_those_of_the_knee(both_ways: list[RunResult]) -> None:
    small, more, large, _ = throughputs(both_ways)
    assert small.rates_pps == dict.fromkeys((FORTH, BACK), pytest.approx(SIZED_PPS, rel=0.01))
    assert more.total_pps > small.total_pps and not small.bounds and large.bounds == {FORTH, BACK}
    assert small.l2_bps == pytest.approx(small.total_pps * 512)
    assert small.line_rate_pps == pytest.approx(2 * line_rate_pps(64, 1e9))


def test_one_way_the_sum_has_the_only_column() -> None:
    head, row, *_ = format_sizes([sized(64, goals=(0.001,))]).splitlines()
    assert "0->1" not in head and row.count("kpps") == 1 and "<= 0.1 %" in row


def test_a_run_that_ended_early_says_why_and_one_without_a_rate_has_dashes() -> None:
    run = sized(64, goals=(0.001,))
    early = replace(run, samples=run.samples[:2], status=Status.INCOMPLETE, reason="trex1 does not answer")
    row = format_sizes([early]).splitlines()[1]
    assert row.endswith("incomplete: trex1 does not answer") and row.split()[7:10] == ["-", "-", "-"]
    assert draw_sizes([early]).startswith(b"\x89PNG")


def test_a_goal_that_was_never_exceeded_is_a_bound_though_another_was() -> None:
    """A router that loses 1 % from a rate on, and never more: NDR has a limit, PDR of 5 % none."""
    run = sized(64, goals=(0.0, 0.05))
    (direction,) = run.directions
    first, second = direction.goals
    verdict = replace(direction, goals=(first, replace(second, high_pps=None)))
    run.__dict__["analysis"] = replace(run.analysis, directions=(verdict,))
    run.__dict__["directions"] = (verdict,)
    lines = format_sizes([run]).splitlines()
    assert ">=" not in lines[1] and "the DUT saturated" in lines[1]
    assert ">=" in lines[2] and "no limit found" in lines[2]


def test_the_picture_shows_line_rate_and_throughput_over_the_size(both_ways: list[RunResult]) -> None:
    figure = compose_sizes(both_ways[::-1])
    (axes,) = figure.axes
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0].startswith("line rate") and "throughput, loss ≤ 0 %" in labels
    assert any(label.startswith("hollow") for label in labels)
    line, first, *_ = axes.get_lines()
    assert list(line.get_xdata()) == list(first.get_xdata()) == [64, 1518]
    assert list(line.get_ydata()) == pytest.approx([2 * line_rate_pps(size, 1e9) for size in (64, 1518)])
    assert list(first.get_ydata()) == pytest.approx([2 * SIZED_PPS, 2 * line_rate_pps(1518, 1e9)], rel=0.04)
    assert "SIMULATED" in [text.get_text() for text in figure.findobj(Text)]
    real = compose_sizes([replace(one, simulated=False) for one in both_ways])
    assert not any("simulated" in text.get_text().lower() for text in real.findobj(Text))


@pytest.mark.parametrize(
    ("cycles", "polling", "vectors", "scale", "labels"),
    [
        ((300.0, 200.0), None, None, "linear", [["cycles/packet"]]),
        ((300.0, 31.0), None, None, "linear", [["cycles/packet"]]),
        ((300.0, 29.0), None, None, "log", [["cycles/packet"]]),
        ((300.0, 200.0), 1900.0, None, "linear", [["without polling", "with polling"]]),
        ((300.0, 200.0), 2100.0, 4.0, "log", [["without polling", "with polling"], ["vectors/call"]]),
        ((300.0, 200.0), None, 0.0, "linear", [["cycles/packet"]]),
    ],
)
def test_cycles_have_a_log_scale_beyond_a_factor_of_ten_and_vectors_a_plot_of_their_own(
    cycles: tuple[float, ...], polling: float | None, vectors: float | None, scale: str, labels: list[list[str]]
) -> None:
    costs = [replace(cost, with_polling=polling, vectors_per_call=vectors) for cost in make_costs(*cycles)]
    plots = list(cost_plots(costs))
    assert [[line.name for line in plot.lines] for plot in plots] == labels
    assert [plot.y.title for plot in plots] == ["cycles/packet", "vectors/call"][: len(labels)]
    assert all(list(line.x) == [1.0, 2.0] for plot in plots for line in plot.lines)
    assert list(plots[0].lines[0].y) == list(cycles)
    panels = compose_plot(*plots).axes
    assert [axes.get_yscale() for axes in panels] == [scale, "log"][: len(labels)]
    assert {axes.get_xscale() for axes in panels} == {"log"}
    drawn = [text.get_text() for axes in panels for text in axes.texts]
    assert ("4" in drawn) == bool(vectors) and "300" in drawn
    assert draw_costs(sized(64), costs).startswith(b"\x89PNG")
