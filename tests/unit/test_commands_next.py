"""The commands that a card offers can be typed: the command line takes each of them."""

from __future__ import annotations

import shlex
from dataclasses import replace

import click
import pytest
from findings import found, judgement_of
from report_cases import make_row

from trexbench.cli.main import cli
from trexbench.core.history.causes import groups_of
from trexbench.core.history.cell import EFFICIENCY, TCP_KIND, Cell
from trexbench.core.history.known import Known
from trexbench.core.tcp.model import TcpMode, Way
from trexbench.report.commands import acknowledge, compare, doctor, measure, show

ROW, BEFORE = make_row(), make_row(at="2026-11-19")
CELL = Cell("netgate-vpp", "var2-64b", True, 2)
TCP = replace(CELL, mode=TcpMode(Way.REVERSE, 6, 4), kind=TCP_KIND, rx_queues=None, bidir=False)
GROUPS = [
    *groups_of(judgement_of(found(), found("latency", 0.2, mode="imix"))),
    *groups_of(judgement_of(found("cycles/packet", 0.2))),
]
COMMANDS = {
    show(ROW, "my results"): "trexbench show 'my results/2026-11-20/vpp 64b uni.json'",
    compare(BEFORE, ROW, "results"): "trexbench results compare 'results/2026-11-19/vpp 64b uni.json' "
    "'results/2026-11-20/vpp 64b uni.json'",
    doctor(CELL): "trexbench doctor --dut netgate-vpp",
    measure(CELL, "nightly"): "trexbench suite run nightly --only 'netgate-vpp var2-64b bidir 2q'",
    measure(replace(CELL, simulated=True), "nightly"): "trexbench suite run nightly --only "
    "'netgate-vpp var2-64b bidir 2q' --sim",
    measure(CELL, None): "trexbench ramp --dut netgate-vpp --mode var2-64b --rx-queues 2 --bidir",
    measure(replace(CELL, kind="mlrsearch", variant="nat"), None): "trexbench search --method mlrsearch "
    "--dut netgate-vpp --mode var2-64b --rx-queues 2 --bidir --variant nat",
    measure(replace(CELL, kind=EFFICIENCY, held_pps=1e6, bidir=False), None): "trexbench efficiency "
    "--dut netgate-vpp --mode var2-64b --rates 1Mpps --rx-queues 2",
    measure(TCP, None): "trexbench tcp --dut netgate-vpp --reverse --ip 6 --streams 4",
    acknowledge(GROUPS[0]): "trexbench regress --acknowledge 'netgate-vpp *' --note WHY",
    acknowledge(GROUPS[1]): "trexbench regress --acknowledge 'netgate-vpp 64b uni 1q' --metric cycles/packet "
    "--note WHY",
}


@pytest.mark.parametrize(("command", "words"), COMMANDS.items())
def test_what_is_offered_can_be_typed(command: str, words: str) -> None:
    assert command == words
    _, *arguments = shlex.split(command)
    at: click.Command = cli
    context = click.Context(cli)
    while isinstance(at, click.Group):
        name = arguments.pop(0)
        found_one = at.get_command(context, name)
        assert found_one is not None, name
        at = found_one
    at.make_context(at.name, arguments)


def test_the_acknowledgement_covers_all_cells_of_its_group() -> None:
    for group in GROUPS:
        words = shlex.split(acknowledge(group))
        pattern = words[words.index("--acknowledge") + 1]
        metric = words[words.index("--metric") + 1] if "--metric" in words else None
        known = Known("2026-11-20", pattern, metric, "WHY")
        assert all(known.is_about(one.cell, one.metric.name) for one in group.findings)
