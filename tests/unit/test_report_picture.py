"""Drawings of a run, its picture and its curve of characters: each kind has one, which says what it must."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from effort import scaled
from matplotlib.text import Text
from runs import World, make_plan, make_result

from trexbench.core.load.plan import LATENCY_LOADS
from trexbench.core.result import RunResult, Status
from trexbench.core.strategy.base import curve_windows
from trexbench.core.units import format_time
from trexbench.report.run.curve import COLUMNS, draw_curve
from trexbench.report.run.picture import compose, draw
from trexbench.report.words import typeset


def nightly(*values: object) -> Any:
    """Mark a row of a table that the others stand for outside of nights."""
    return pytest.param(*values, marks=pytest.mark.nightly)


KNEE = World(capacity_pps=660e3, collapse=0.2, noise=0.01)


def texts(result: RunResult) -> list[str]:
    """Everything that is written in the picture."""
    return [one.get_text() for one in compose(result).findobj(Text)]


@pytest.mark.parametrize(
    ("plan", "world"),
    [
        (make_plan(), KNEE),
        (make_plan(bidir=True), KNEE),
        nightly(make_plan(), World()),
        (make_plan(bidir=True), World(tx_limit_pps={0: 1e6})),
        nightly(make_plan(), World(rx_limit_pps=1e6)),
        (make_plan(), World(dead_ports=[0])),
        nightly(make_plan(), World(link_down_at_s=20.0)),
        nightly(make_plan(), World(foreign_pps=1e5)),
        (make_plan(kind="saturate", hold_s=10.0), KNEE),
        (make_plan(ports=range(scaled(6, 4)), bidir=True, ramp_s=10.0), KNEE),
    ],
)
def test_every_kind_of_run_has_a_picture(plan: Any, world: World) -> None:
    data = draw(make_result(plan, world))
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.rstrip(b"\0").endswith(b"IEND\xaeB`\x82")


@pytest.mark.parametrize("count", scaled([0, 1, 2, 6, 7, 8], [1, 7]))
def test_runs_cut_short_have_one_too(count: int) -> None:
    result = make_result(make_plan(bidir=True), KNEE)
    assert draw(replace(result, samples=result.samples[:count], status=Status.INCOMPLETE, reason="cut"))


@pytest.mark.portable
def test_a_run_that_ended_at_its_first_sample_costs_no_words_of_matplotlibs() -> None:
    first = replace(make_result().samples[0], t_s=0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(make_result(samples=(first,), status=Status.INCOMPLETE, reason="cut"))


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


@pytest.mark.portable
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
