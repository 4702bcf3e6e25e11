"""The commands that a card offers can be typed: the command line takes each of them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import click
import pytest
from findings import found, judgement_of
from nights import LINUX, VPP, over_wan
from report_cases import make_row
from verbs import empty_directory  # noqa: F401

from trexbench.cli.main import cli
from trexbench.core.history.causes import groups_of
from trexbench.core.history.cell import EFFICIENCY, TCP_KIND, Cell, is_chosen
from trexbench.core.history.known import Known
from trexbench.core.tcp.model import TcpMode, Way
from trexbench.core.tcp.path import TrafficPath
from trexbench.core.tcp.tunnel import NOT_READ
from trexbench.core.tcp.wan import Wan, parse_wan
from trexbench.report.commands import acknowledge, compare, doctor, measure, run_again, show
from trexbench.session import keep
from trexbench.session.keep import Output
from trexbench.session.tcp import run as session_tcp

ROW, BEFORE = make_row(), make_row(at="2026-11-19")
CELL = Cell("netgate-vpp", "var2-64b", True, 2)
TCP = replace(CELL, mode=TcpMode(Way.REVERSE, 6, 4), kind=TCP_KIND, rx_queues=None, bidir=False)
MLR = replace(CELL, kind="mlrsearch", variant="nat")
TUNED = TcpMode(Way.FORWARD, 4, monitored=False, buffer_bytes=1_000_000, congestion="bbr", pinned=True)
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


def parsed(command: str) -> tuple[click.Command, click.Context]:
    """The verb and its arguments, as the command line takes them."""
    _, *arguments = shlex.split(command)
    at: click.Command = cli
    context = click.Context(cli)
    while isinstance(at, click.Group):
        name = arguments.pop(0)
        verb = at.get_command(context, name)
        assert verb is not None, name
        at = verb
    return at, at.make_context(at.name, arguments)


@pytest.mark.parametrize(("command", "words"), COMMANDS.items())
def test_what_is_offered_can_be_typed(command: str, words: str) -> None:
    assert command == words
    parsed(command)


class Planned(Exception):
    """Ends a verb in the place of its measurement."""


def planned(command: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The request of what the command would measure."""

    def stop(request: Any, output: Output) -> None:
        raise Planned(request[0][1] if isinstance(request, list) else request)

    for module, name in ((keep, "measure"), (keep, "measure_series"), (session_tcp, "measure_tcp")):
        monkeypatch.setattr(module, name, stop)
    verb, context = parsed(command)
    with context, pytest.raises(Planned) as ended:
        verb.invoke(context)
    return ended.value.args[0]


LAB = Cell("lab-linux", "var2-64b", False, 2)
PACKETS = [
    LAB,
    replace(LAB, mode="var2-333b", bidir=True, variant="nat", over=over_wan("20ms,1gbit")),
    replace(LAB, mode="var2-imix,seed=3,vm=random", kind="saturate"),
    replace(LAB, kind="search", simulated=True),
    replace(LAB, kind="mlrsearch", over=over_wan("12.34ms,0.1234mbit,queue=2.5mb")),
    replace(LAB, kind=EFFICIENCY, held_pps=1e6),
    replace(LAB, kind=EFFICIENCY, held_pps=14880952.380952382 / 7, simulated=True),
]


@pytest.mark.usefixtures("empty_directory")
@pytest.mark.parametrize("cell", PACKETS, ids=str)
def test_a_rerun_by_hand_plans_the_same_cell(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    request = planned(measure(cell, None, "results") or "", monkeypatch)
    kind, held = request.kind, None
    if request.verb == EFFICIENCY:
        kind, held = EFFICIENCY, request.wished.ramp_to.to_pps(64.0, 1e9)
    over = None if request.dut.wan is None else TrafficPath(request.dut.wan, "netem")
    variant, queues = request.dut.variant, request.queues
    assert cell == Cell(request.dut.name, request.mode, request.bidir, queues, kind, request.sim, variant, over, held)


IPV4 = replace(TCP, dut="lab-linux", mode=replace(TCP.tcp, version=4))
THROUGH = {
    "relay,client-dut,mtu=1400": TrafficPath(
        tunnel="relay", tunnel_between="client-dut", tunnel_by="trexbench", tunnel_mtu=1400
    ),
    "openvpn,mtu=1432,cipher=AES-128-GCM": TrafficPath(
        parse_wan("20ms,1gbit"), "netem", "openvpn", "client-server", "OpenVPN 2.6.14, AES-128-GCM", 1432
    ),
    "ipsec,mtu=1440": TrafficPath(
        tunnel="ipsec", tunnel_between="client-server", tunnel_by="the kernel, AES-256-GCM", tunnel_mtu=1440
    ),
    "6in4": TrafficPath(tunnel="6in4", tunnel_by="tc-bpf"),
    "none": TrafficPath(parse_wan("20ms,1gbit,loss=0.01%,jitter=1ms"), "netem"),
}


@pytest.mark.usefixtures("empty_directory")
@pytest.mark.parametrize(("tunnel", "over"), THROUGH.items())
def test_a_rerun_of_tcp_goes_through_the_same_line_and_tunnel(
    tunnel: str, over: TrafficPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = replace(IPV4, variant="pppoe", over=over) if tunnel == "none" else replace(IPV4, over=over)
    request = planned(measure(cell, None, "results") or "", monkeypatch)
    assert (request.dut.name, request.dut.variant, request.plan.streams) == ("lab-linux", cell.variant, 4)
    assert [leg.kind for leg in request.plan.legs] == [cell.tcp and cell.tcp.leg]
    assert (request.dut.endpoints.tunnel, request.dut.wan, request.apply) == (tunnel, over.wan, True)
    as_it_is = replace(cell, over=TrafficPath(tunnel="6in4", tunnel_by=NOT_READ), variant=None)
    assert not planned(measure(as_it_is, None, "results") or "", monkeypatch).apply


NO_COMMAND = [
    replace(TCP, over=TrafficPath(Wan(0.0123456, 1e9), "netem")),
    replace(TCP, over=TrafficPath(Wan(60.0, 1e13), "netem")),
    replace(TCP, over=TrafficPath(tunnel="a later one")),
    replace(TCP, over=TrafficPath(tunnel="relay", tunnel_between="client-moon")),
    replace(TCP, over=TrafficPath(tunnel="gre", tunnel_mtu=100)),
    replace(TCP, over=TrafficPath(tunnel="openvpn", tunnel_by="OpenVPN 2.6.14")),
    *(replace(CELL, kind=EFFICIENCY, held_pps=pps) for pps in (0.0, 1e-7, 1e300)),
    replace(CELL, mode="my-profile"),
    replace(CELL, mode="var2-imix,0123abcd"),
]


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
    (command,) = acknowledge(group, "results")
    words = [*pairwise(shlex.split(command))]
    (metric,) = (word for before, word in words if before == "--metric")
    known = [Known("2026-11-20", word, metric, "a new NIC") for before, word in words if before == "--acknowledge"]
    every = {*(cell for some in REGRESSED for cell in some), *OTHERS}
    assert {cell for cell in every for one in known if one.is_about(cell, "maximum rate")} == {*cells}
    assert not any(one.is_about(cell, "cycles/packet") for one in known for cell in every)


def test_a_name_matches_itself_whatever_letters_it_has() -> None:
    cell = replace(VPP, mode="[a-c]*")
    assert is_chosen(cell, [str(cell)]) and Known("2026-11-20", str(cell), None, "").is_about(cell, "power")
