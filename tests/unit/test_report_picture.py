"""Drawings: a run's picture and curve of characters, throughput by frame size, and what a packet costs."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from effort import by_day
from matplotlib.text import Text
from report_cases import make_costs
from runs import SIZED_PPS, World, make_plan, make_result, sized

from trexbench.core.load.plan import LATENCY_LOADS, Direction
from trexbench.core.result import RunResult, Status
from trexbench.core.strategy.base import curve_windows
from trexbench.core.units import format_time, line_rate_pps
from trexbench.report.run.costs import cost_plots
from trexbench.report.run.curve import COLUMNS, draw_curve
from trexbench.report.run.picture import compose, draw
from trexbench.report.run.picture_plot import compose_plot, compose_sizes, draw_costs, draw_sizes
from trexbench.report.run.sizes import format_sizes, size_figure, size_sheet, throughputs
from trexbench.report.words import typeset

KNEE = World(capacity_pps=660e3, collapse=0.2, noise=0.01)


def texts(result: RunResult) -> list[str]:
    """Everything that is written in the picture."""
    return [one.get_text() for one in compose(result).findobj(Text)]


@pytest.mark.parametrize(
    ("plan", "world"),
    by_day(
        1,
        [
            (make_plan(bidir=True), KNEE),
            (make_plan(), World(dead_ports=[0])),
            (make_plan(kind="saturate", hold_s=10.0), KNEE),
            (make_plan(), KNEE),
            (make_plan(bidir=True), World(tx_limit_pps={0: 1e6})),
            (make_plan(ports=range(6), bidir=True, ramp_s=10.0), KNEE),
        ],
    ),
)
def test_every_kind_of_run_has_a_picture(plan: Any, world: World) -> None:
    data = draw(make_result(plan, world))
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.rstrip(b"\0").endswith(b"IEND\xaeB`\x82")


@pytest.mark.parametrize("count", by_day(1, [1, 0, 2, 7]))
def test_runs_cut_short_have_one_too_without_words_of_matplotlibs(count: int) -> None:
    result = make_result(make_plan(bidir=True), KNEE)
    samples = tuple(replace(one, t_s=0.4) if count == 1 else one for one in result.samples[:count])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(replace(result, samples=samples, status=Status.INCOMPLETE, reason="cut"))


def test_it_names_the_run_and_its_verdict() -> None:
    shown = texts(make_result(make_plan(bidir=True), KNEE, simulated=False))
    assert "lab-linux var2-64b bidir" in shown
    assert any(t.startswith("0→1: ") and t.endswith("the DUT saturated") for t in shown)
    assert any("2026-03-01" in t and "64 B frames, 251 flows" in t for t in shown)
    assert any(t.startswith("confirmed ") for t in shown)
    assert "SIMULATED" not in shown


@pytest.mark.parametrize(
    ("world", "changes", "words"),
    [
        (World(tx_limit_pps=1e6), {}, "more than the generator sends"),
        (World(rx_limit_pps=1e6), {}, "more than the generator receives"),
        (World(link_down_at_s=30.0), {}, "after the link failed"),
        (World(), {}, "not offered"),
        (World(), {}, "SIMULATED"),
        (World(), {"status": Status.INCOMPLETE, "reason": "a $bad$ ending"}, "INCOMPLETE: a $bad$ ending"),
        (World(), {"status": Status.RUNNING}, "RUNNING: its file was not brought to an end"),
    ],
)
def test_it_says_what_must_not_be_overlooked(world: World, changes: dict[str, Any], words: str) -> None:
    assert words in texts(make_result(world=world, **changes))


def test_latency_steps_are_named_with_what_was_found() -> None:
    result = make_result(make_plan(bidir=True, latency_s=3.0), KNEE)
    slowest = max(one.mean_s or 0.0 for one in result.latencies if one.share == 0.5)
    assert slowest and f"latency at 50 %: {typeset(format_time(slowest))}" in texts(result)
    assert sum(text.startswith("latency at ") for text in texts(result)) == len(LATENCY_LOADS)


def test_no_loss_is_drawn_below_zero() -> None:
    result = make_result(make_plan(), World(foreign_pps=1e5))
    windows = curve_windows(result.plan, result.samples, result.plan.directions[0])
    assert min(window.loss or 0.0 for window in windows) < 0
    (loss,) = (axes for axes in compose(result).axes if axes.get_ylabel() == "loss, %")
    drawn = [value for line in loss.lines for value in line.get_ydata()]
    assert len(drawn) > len(windows) > 3 and min(drawn) == 0


def test_no_direction_hides_another_over_time() -> None:
    picture = compose(make_result(make_plan(bidir=True), KNEE))
    (over_time,) = (axes for axes in picture.axes if axes.get_xlabel() == "time, s")
    first, second = (line for line in over_time.lines if str(line.get_label()).startswith("received"))
    assert first.get_linewidth() > second.get_linewidth() and first.get_linestyle() == "-" != second.get_linestyle()
    assert first.get_color() != second.get_color()


def test_heavy_libraries_are_imported_only_where_they_draw() -> None:
    code = (
        "import sys; import trexbench.report.run.text, trexbench.report.run.live, trexbench.report.run.loadtest, "
        "trexbench.results.store; "
        "print(sorted({'matplotlib', 'rich'} & set(sys.modules)))"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def limited(bidir: bool = False) -> RunResult:
    """A run of a DUT that carries a half of the target, and on the way back a quarter."""
    plan = make_plan(bidir=bidir)
    target = plan.offers[0].target_pps
    return make_result(plan, World(capacity_pps={"0->1": target / 2, "1->0": target / 4}))


def rows(text: str) -> list[str]:
    return [line.split("|", 1)[1].ljust(COLUMNS) for line in text.splitlines() if "|" in line]


def test_a_plateau_lies_right_of_the_knee_and_below_the_line_without_loss() -> None:
    drawn = rows(draw_curve(limited()))
    top = drawn[0]
    assert top.rstrip().endswith("o"), "the plateau reaches the right edge at the height of the capacity"
    assert "o" not in top[: COLUMNS // 3], "far left of the knee nothing is that high"
    assert drawn[-1].lstrip().startswith(("o", "."))


def test_markers_alternate_where_directions_coincide_and_part_where_they_differ() -> None:
    drawn = rows(draw_curve(limited(bidir=True), 80))
    upper, lower = (sum(marker in row for row in drawn[:6]) for marker in "ox")
    assert upper > lower
    rising = "".join(row.replace(".", "").split("o")[0] + "".join(row.split()) for row in drawn[9:])
    assert rising.count("o") > 3 < rising.count("x"), "both are seen below either one's knee"
    assert "xxxxxx" in "".join(drawn) and "oooooo" in "".join(drawn), "each has a plateau of its own"


def test_nothing_measured_draws_nothing() -> None:
    assert draw_curve(make_result(make_plan(), World(capacity_pps=0.0))) == ""


@pytest.mark.parametrize("width", [140, 100, 80, 60, 40])
def test_it_fits_into_a_terminal(width: int) -> None:
    drawn = draw_curve(limited(bidir=True), width)
    assert max(map(len, drawn.splitlines())) <= width
    assert width < 120 or max(map(len, drawn.splitlines())) > 100, "a wide terminal is used"
    assert "offered per direction, Mpps\n" in drawn
    for name in ("o 0->1", "x 1->0", ". no loss"):
        assert name in drawn


@pytest.mark.parametrize("share", [0.9, 0.37, 0.11, 0.031])
@pytest.mark.parametrize("width", [100, 60])
def test_ticks_are_round_and_stand_where_their_values_are(share: float, width: int) -> None:
    plan = make_plan()
    drawn = draw_curve(make_result(plan, World(capacity_pps=plan.offers[0].target_pps * share)), width).splitlines()
    axis = next(line for line in drawn if line.startswith("       0 +"))
    levels = [float(line.split("|")[0]) for line in drawn if "|" in line and line.split("|")[0].strip()]
    below = drawn[drawn.index(axis) + 1]
    for values in (sorted(levels), [float(one) for one in below.split()]):
        step = values[0]
        assert len(values) in range(1, 10) and float(f"{step:e}".split("e")[0]) in (1, 2, 2.5, 5)
        assert values == pytest.approx([step * number for number in range(1, len(values) + 1)])
    ends = [match.end() for match in re.finditer(r"\S+", below)]
    assert [axis[end - 1] for end in ends] == ["+"] * len(ends) == [one for one in axis[10:] if one == "+"]


FORTH, BACK = Direction(0, 1), Direction(1, 0)


@pytest.fixture(scope="module")
def both_ways() -> list[RunResult]:
    return [sized(64, bidir=True), sized(1518, bidir=True)]


def test_a_row_for_each_size_and_goal_with_rates_shares_and_limit(both_ways: list[RunResult]) -> None:
    lines = format_sizes(both_ways).splitlines()
    assert re.split(" {2,}", lines[0].strip()) == [
        "Frame", "Line rate", "Loss", "0->1", "1->0", "Throughput", "L2", "Of line rate", "Limit",
    ]  # fmt: skip
    assert [line.split()[:2] for line in lines[1:5]] == [["64", "B"]] * 2 + [["1518", "B"]] * 2
    assert all("1.488 Mpps" in line and "the DUT saturated" in line and ">=" not in line for line in lines[1:3])
    assert "<= 0 %" in lines[1] and "<= 1 %" in lines[2]
    assert all("81.27 kpps" in line and line.count(">= ") == 5 and "no limit found" in line for line in lines[3:5])
    assert "1 Gbit/s" in lines[-1] and "2 directions together (up to 200 %)" in lines[-1]


def test_its_figures_are_those_of_the_knee(both_ways: list[RunResult]) -> None:
    small, more, large, _ = throughputs(both_ways)
    assert small.rates_pps == dict.fromkeys((FORTH, BACK), pytest.approx(SIZED_PPS, rel=0.01))
    assert more.total_pps > small.total_pps and not small.bounds and large.bounds == {FORTH, BACK}
    assert small.l2_bps == pytest.approx(small.total_pps * 512)
    of_line = next(line.items[-2].text for line in size_sheet(both_ways).lines)
    assert size_figure([("", (), both_ways)]).lines[1].texts[0].endswith(f" at 64 B, {of_line} of line rate")


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
    by_day(
        3,
        [
            ((300.0, 31.0), None, None, "linear", [["cycles/packet"]]),
            ((300.0, 29.0), None, None, "log", [["cycles/packet"]]),
            ((300.0, 200.0), 2100.0, 4.0, "log", [["without polling", "with polling"], ["vectors/call"]]),
            ((300.0, 200.0), None, None, "linear", [["cycles/packet"]]),
            ((300.0, 200.0), 1900.0, None, "linear", [["without polling", "with polling"]]),
            ((300.0, 200.0), None, 0.0, "linear", [["cycles/packet"]]),
        ],
    ),
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
    if vectors:
        assert draw_costs(sized(64), costs).startswith(b"\x89PNG")
