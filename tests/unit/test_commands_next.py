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
from trexbench.core.history.cell import EFFICIENCY, TCP_KIND, Cell, is_chosen
from trexbench.core.history.known import Known
from trexbench.core.tcp.model import TcpMode, Way
from trexbench.core.tcp.path import TrafficPath
from trexbench.core.tcp.wan import Wan
from trexbench.report.commands import acknowledge, compare, doctor, measure, run_again, show

ROW, BEFORE = make_row(), make_row(at="2026-11-19")
CELL = Cell("netgate-vpp", "var2-64b", True, 2)
TCP = replace(CELL, mode=TcpMode(Way.REVERSE, 6, 4), kind=TCP_KIND, rx_queues=None, bidir=False)
MLR = replace(CELL, kind="mlrsearch", variant="nat")
TUNED = TcpMode(Way.FORWARD, 4, monitored=False, buffer_bytes=1_000_000, congestion="bbr", pinned=True)
GROUPS = [
    *groups_of(judgement_of(found(), found("latency", 0.2, mode="imix"))),
    *groups_of(judgement_of(found("cycles/packet", 0.2))),
]
COMMANDS = {
    show(ROW, "my results"): "trexbench show 'my results/2026-11-20/vpp 64b uni.json'",
    compare(BEFORE, ROW, "results"): "trexbench results compare 'results/2026-11-19/vpp 64b uni.json' "
    "'results/2026-11-20/vpp 64b uni.json'",
    doctor(CELL): "trexbench doctor --dut netgate-vpp",
    measure(CELL, "nightly", "results"): "trexbench suite run nightly --only 'netgate-vpp var2-64b bidir 2q'",
    measure(replace(CELL, simulated=True, mode="a[1]*"), "nightly", "my results"): "trexbench suite run nightly --only "
    "'netgate-vpp a[[]1][*] bidir 2q' --sim --results 'my results'",
    run_again("nightly", "here"): "trexbench suite run nightly --results here",
    measure(CELL, None, "results"): "trexbench ramp --dut netgate-vpp --mode var2-64b --rx-queues 2 --bidir",
    measure(replace(MLR, over=over_wan("20ms,1gbit")), None, "here"): "trexbench search --method mlrsearch "
    "--dut netgate-vpp --mode var2-64b --rx-queues 2 --bidir --variant nat --wan 20ms,1gbit --results here",
    measure(replace(CELL, kind=EFFICIENCY, held_pps=1e6, bidir=False), None, "results"): "trexbench efficiency "
    "--dut netgate-vpp --mode var2-64b --rates 1Mpps --rx-queues 2",
    measure(TCP, None, "results"): "trexbench tcp --dut netgate-vpp --reverse --ip 6 --streams 4",
    measure(replace(TCP, mode=TUNED, over=over_wan("20ms,1gbit"), simulated=True), None, "results"): "trexbench tcp "
    "--dut netgate-vpp --forward --ip 4 --buffers 1000000 --cc bbr --pin --no-telemetry --wan 20ms,1gbit --sim",
    acknowledge(GROUPS[0], "my results"): "trexbench regress --results 'my results' --acknowledge "
    "'netgate-vpp 64b uni 1q' --acknowledge 'netgate-vpp imix uni 1q' --note WHY",
    acknowledge(
        GROUPS[1], "results"
    ): "trexbench regress --acknowledge 'netgate-vpp 64b uni 1q' --metric cycles/packet --note WHY",
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


TUNNEL = TrafficPath(tunnel="openvpn", tunnel_by="OpenVPN 2.6.14")
NO_COMMAND = [replace(TCP, over=TUNNEL), replace(TCP, over=TrafficPath(Wan(0.0123456, 1e9), "netem"))]


@pytest.mark.parametrize("cell", NO_COMMAND)
def test_what_cannot_be_said_in_full_is_not_offered(cell: Cell) -> None:
    assert measure(cell, None, "results") is None and measure(cell, "nightly", "results") is not None


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
    words = shlex.split(acknowledge(group, "results"))
    patterns = [word for before, word in pairwise(words) if before == "--acknowledge"]
    known = [Known("2026-11-20", pattern, None, "a new NIC") for pattern in patterns]
    every = {*(cell for some in REGRESSED for cell in some), *OTHERS}
    assert {cell for cell in every for one in known if one.is_about(cell, "maximum rate")} == {*cells}


def test_a_name_matches_itself_whatever_letters_it_has() -> None:
    cell = replace(VPP, mode="[a-c]*")
    assert is_chosen(cell, [str(cell)]) and Known("2026-11-20", str(cell), None, "").is_about(cell, "power")
