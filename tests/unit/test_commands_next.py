"""The commands that a card offers can be typed: the command line takes each of them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import click
import pytest
from findings import found, judgement_of
from nights import LINUX, VPP, over_wan
from report_cases import make_row

from trexbench.cli.main import cli
from trexbench.core.history.causes import groups_of
from trexbench.core.history.cell import EFFICIENCY, Cell
from trexbench.core.history.known import Known
from trexbench.report.commands import acknowledge, compare, doctor, run_again, show

ROW, BEFORE = make_row(), make_row(at="2026-11-19")
CELL = Cell("netgate-vpp", "var2-64b", True, 2)
MODES = "64b", "imix"
GROUPS = [
    *groups_of(judgement_of(found(), found("latency", 0.2, mode="imix"))),
    *groups_of(judgement_of(*(found(name, 0.2, mode=mode) for name in ("cycles/packet", "power") for mode in MODES))),
]
COMMANDS = {
    show(ROW, "my results"): "trexbench results show 'my results/2026-11-20/vpp 64b uni.json'",
    compare(BEFORE, ROW, "results"): "trexbench results compare 'results/2026-11-19/vpp 64b uni.json' "
    "'results/2026-11-20/vpp 64b uni.json'",
    doctor(CELL): "trexbench doctor --dut netgate-vpp",
    run_again("nightly", "results", CELL): "trexbench suite run nightly --only 'netgate-vpp var2-64b bidir 2q'",
    run_again("nightly", "my results", replace(CELL, simulated=True, mode="a[1]*")): "trexbench suite run nightly "
    "--only 'netgate-vpp a[[]1][*] bidir 2q' --sim --results 'my results'",
    run_again("nightly", "here"): "trexbench suite run nightly --results here",
    run_again("nightly", "results", by_fleet=True): "trexbench suite run nightly --fleet fleet.yaml",
    **dict(
        zip(
            acknowledge(GROUPS[0], "my results"),
            (
                "trexbench regress --results 'my results' --acknowledge 'netgate-vpp 64b uni 1q' "
                "--metric 'maximum rate' --note WHY",
                "trexbench regress --results 'my results' --acknowledge 'netgate-vpp imix uni 1q' "
                "--metric latency --note WHY",
            ),
            strict=True,
        )
    ),
    "".join(acknowledge(GROUPS[1], "results")): "trexbench regress --acknowledge 'netgate-vpp 64b uni 1q' "
    "--acknowledge 'netgate-vpp imix uni 1q' --metric cycles/packet --metric power --note WHY",
}


@pytest.mark.parametrize(("command", "words"), COMMANDS.items())
def test_what_is_offered_can_be_typed(command: str, words: str) -> None:
    assert command == words
    _, *arguments = shlex.split(command)
    at: click.Command = cli
    context = click.Context(cli)
    while isinstance(at, click.Group):
        name = arguments.pop(0)
        verb = at.get_command(context, name)
        assert verb is not None, name
        at = verb
    at.make_context(at.name, arguments)


FAR = replace(VPP, over=over_wan("20ms,1gbit"))
REGRESSED = [
    (VPP, replace(VPP, mode="imix")),
    (FAR, replace(FAR, mode="imix")),
    (replace(VPP, mode="[a-c]*"),),
    (replace(VPP, simulated=True), replace(VPP, simulated=True, held_pps=1e6, kind=EFFICIENCY)),
]
OTHERS = [replace(VPP, variant="nat"), replace(VPP, dut="netgate-vpp two"), replace(VPP, mode="abc"), LINUX]


@pytest.mark.parametrize("cells", REGRESSED)
def test_the_acknowledgement_covers_the_cells_of_its_group_and_no_other(cells: Sequence[Cell]) -> None:
    (group,) = groups_of(judgement_of(*(replace(found(), cell=cell) for cell in cells)))
    (command,) = acknowledge(group, "results")
    words = [*pairwise(shlex.split(command))]
    (metric,) = (word for before, word in words if before == "--metric")
    known = [Known("2026-11-20", word, metric, "a new NIC") for before, word in words if before == "--acknowledge"]
    every = {*(cell for some in REGRESSED for cell in some), *OTHERS}
    assert {cell for cell in every for one in known if one.is_about(cell, "maximum rate")} == {*cells}
    assert not any(one.is_about(cell, "cycles/packet") for one in known for cell in every)
