"""The curve of characters: what it shows of runs whose truth is known."""

from __future__ import annotations

import re

import pytest
from runs import World, make_plan, make_result

from trexbench.report.run.curve import COLUMNS, draw_curve


def rows(text: str) -> list[str]:
    return [line.split("|", 1)[1].ljust(COLUMNS) for line in text.splitlines() if "|" in line]


def test_a_plateau_lies_right_of_the_knee_and_below_the_line_without_loss() -> None:
    plan = make_plan()
    drawn = rows(draw_curve(make_result(plan, World(capacity_pps=plan.offers[0].target_pps / 2))))
    top = drawn[0]
    assert top.rstrip().endswith("o"), "the plateau reaches the right edge at the height of the capacity"
    assert "o" not in top[: COLUMNS // 3], "far left of the knee nothing is that high"
    assert drawn[-1].lstrip().startswith(("o", "."))


def test_every_direction_has_a_marker_of_its_own() -> None:
    plan = make_plan(bidir=True)
    capacity = {"0->1": plan.offers[0].target_pps / 2, "1->0": plan.offers[0].target_pps / 4}
    drawn = draw_curve(make_result(plan, World(capacity_pps=capacity)))
    assert "o 0->1" in drawn and "x 1->0" in drawn
    upper, lower = (sum(marker in row for row in rows(drawn)[:6]) for marker in "ox")
    assert upper > lower


def test_markers_alternate_where_directions_coincide_and_part_where_they_differ() -> None:
    plan = make_plan(bidir=True)
    target = plan.offers[0].target_pps
    drawn = rows(draw_curve(make_result(plan, World(capacity_pps={"0->1": target / 2, "1->0": target / 4})), 80))
    rising = "".join(row.replace(".", "").split("o")[0] + "".join(row.split()) for row in drawn[9:])
    assert rising.count("o") > 3 < rising.count("x"), "both are seen below either one's knee"
    assert "xxxxxx" in "".join(drawn) and "oooooo" in "".join(drawn), "each has a plateau of its own"


def test_nothing_measured_draws_nothing() -> None:
    plan = make_plan()
    assert draw_curve(make_result(plan, World(capacity_pps=0.0))) == ""


@pytest.mark.parametrize("width", [140, 100, 80, 60, 40])
def test_it_fits_into_a_terminal(width: int) -> None:
    plan = make_plan(bidir=True)
    capacity = {"0->1": plan.offers[0].target_pps / 2, "1->0": plan.offers[0].target_pps / 4}
    drawn = draw_curve(make_result(plan, World(capacity_pps=capacity)), width)
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
