"""Verdicts of the analysis on simulated runs, as far as reports rely on them."""

from __future__ import annotations

import pytest
from runs import World, make_plan, make_result

from trexbench.core.verdict.model import Limit


def test_a_run_that_ended_in_the_warmup_says_so() -> None:
    (direction,) = make_result(world=World(dead_ports=[0])).analysis.directions
    assert (direction.limit, direction.maximum_pps) == (Limit.NONE, 0.0)
    assert direction.reasons == ("the run ended before it measured anything",)


@pytest.mark.parametrize(
    ("kind", "world", "code"),
    [
        ("ramp", World(capacity_pps=5e3), "bad-from-start"),
        ("ramp", World(base_loss=0.01), "lossy-path"),
        ("saturate", World(base_loss=0.01), None),
    ],
)
def test_loss_from_the_start_is_a_doubt_of_a_ramp_only(kind: str, world: World, code: str | None) -> None:
    codes = [c.code for c in make_result(make_plan(kind=kind, hold_s=10.0), world).analysis.warnings]
    assert code in codes if code else codes == []


def test_shares_are_of_one_direction() -> None:
    plan = make_plan(bidir=True)
    assert plan.offers[0].line_share(plan.offers[0].line_rate_pps) == 1.0
    assert plan.offers[0].l1_bps(plan.offers[0].line_rate_pps) == pytest.approx(1e9)
    assert plan.bidir and not make_plan().bidir and not make_plan(ports=(0, 1, 2, 3)).bidir
