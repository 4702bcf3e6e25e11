"""``trexbench tcp``: TCP through the DUT, between two hosts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..core.errors import ConfigError
from ..core.tcp.model import ENGINES, TUNNELS
from ..core.tcp.tunnel import parse_tunnel
from ..core.tcp.wan import parse_size
from ..session.tcp.request import SPEEDUP, WAYS, TcpRequest, TcpSetup, TcpWish, make_tcp_request
from .options import (
    CONFIGS,
    DATE,
    DURATION,
    JSON,
    LABEL,
    SHOWN,
    VERBOSE,
    WAN,
    Finite,
    Parsed,
    Shown,
    complete_duts,
    complete_suites,
    gathered,
    results_option,
)
from .output import exit_code, note, print_json, print_run, save_picture, say_unless, warn

_EXAMPLES = """\b
Examples:
  trexbench tcp --dut lab-linux
  trexbench tcp --dut lab-linux --forward --time 10s --ping 5 -P 4 --ip both
  trexbench tcp --dut home-router --reverse --engine iperf3 --no-apply
  trexbench tcp --dut lab-linux --variant stateful --cc cubic
  trexbench tcp --dut lab-linux --forward --wan 50ms,100mbit --buffers 1mb --buffers 2mb
  trexbench tcp --dut raspberry-pi --sim
"""


def _way(name: str, help: str) -> Any:
    return click.option(f"--{name}", is_flag=True, help=help)


def _to_wish(buffers: tuple[int, ...], **values: Any) -> TcpWish:
    chosen = [name for name in WAYS if values.pop(name)]
    if len(chosen) > 1:
        raise ConfigError(f"--{chosen[0]} and --{chosen[1]} exclude each other", "leave one of them out")
    return TcpWish(ways=WAYS[chosen[0] if chosen else "both"], buffers=buffers or (None,), **values)


def time_option(default: str) -> Any:
    return click.option("--time", "time_s", type=DURATION, default=default, show_default=True, help="Of each leg.")


def ping_option(default: int) -> Any:
    text = "Echo requests, one a second: before, and while each way is full. 0: none."
    return click.option("--ping", "pings", metavar="N", type=int, default=default, show_default=True, help=text)


STREAMS = click.option("-P", "--streams", type=int, default=1, show_default=True, help="Connections at the same time.")
INTERVAL = click.option("--interval", "interval_s", type=DURATION, default="1s", show_default=True, help="Of a figure.")
OMIT = click.option("--omit", "omit_s", type=DURATION, default="0s", help="Sent before, and not counted (0s).")
REPEAT = click.option("--repeat", type=int, default=1, show_default=True, help="Each leg so many times over.")
BUFFERS = click.option(
    "--buffers",
    type=Parsed("SIZE", parse_size),
    multiple=True,
    help="A leg with TCP's buffers of up to so much on both hosts, which are restored; may be given again.",
)
ZEROCOPY = click.option("--zerocopy", is_flag=True, help="Send without copying, as iperf3 -Z does.")
PIN = click.option("--pin", "pinned", is_flag=True, help="Keep each endpoint's program on one of its CPUs.")
ENGINE = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=ENGINES[0],
    show_default=True,
    help="embedded: needs nothing but python3 on the hosts. iperf3: the program that is installed there.",
)

_WISH = gathered(
    "wish",
    _to_wish,
    _way("both", "The client sends, then the server (default)."),
    _way("forward", "The client sends."),
    _way("reverse", "The server sends."),
    _way("bidir", "Both send at the same time."),
    STREAMS,
    click.option("--ip", type=click.Choice(("4", "6", "both")), help="Default: 4, where the endpoints have it."),
    time_option("60s"),
    INTERVAL,
    OMIT,
    REPEAT,
    ping_option(60),
    click.option(
        "--cc", "congestion", metavar="NAME", help="Congestion control: cubic, bbr ... Default: the hosts' own."
    ),
    BUFFERS,
    ZEROCOPY,
    PIN,
    ENGINE,
)


def _to_setup(no_apply: bool, no_telemetry: bool, **values: Any) -> TcpSetup:
    return TcpSetup(apply=not no_apply, telemetry=not no_telemetry, **values)


SETUP = gathered(
    "setup",
    _to_setup,
    CONFIGS,
    click.option("--no-apply", is_flag=True, help="Configure neither DUT nor endpoints."),
    click.option("--no-telemetry", is_flag=True, help="Do not read the DUT's counters."),
    click.option("--variant", metavar="NAME", help="A variant of the DUT's config: with a firewall, NAT, ..."),
    click.option(
        "--tunnel",
        type=Parsed("KIND[,BETWEEN][,mtu=N][,cipher=C]", lambda text: str(parse_tunnel(text))),
        help=f"{', '.join(TUNNELS)}; between client-server or client-dut. Default: as the config says.",
    ),
    WAN,
    click.option("--scale", is_flag=True, help="Scale the WAN's rate and the buffers down to what can be had here."),
    click.option("--sim", is_flag=True, help="Simulate DUT and endpoints (the config's twin). Marked as simulated."),
    click.option(
        "--speedup", type=Finite(1, 10000), help=f"With --sim: simulated seconds per real second ({SPEEDUP:g})."
    ),
    click.option("--seed", type=click.IntRange(0), help="With --sim: seed of the noise; default: the twin's."),
    click.option("--label", type=LABEL, help="A word stored with the result, to search and compare by: kernel-6.18."),
)


DUT = click.option(
    "--dut", required=True, metavar="NAME", shell_complete=complete_duts, help="A name in dut_configs/, or a file."
)


@click.command(epilog=_EXAMPLES)
@DUT
@_WISH
@SETUP
@SHOWN
@VERBOSE
def tcp(dut: str, wish: TcpWish, setup: TcpSetup, shown: Shown) -> int:
    """Send TCP through the DUT between two hosts, and say how fast it was and who was the limit.

    The DUT's config names the hosts (`endpoints:`); a lab has its own. Pings, retransmits, round trips and the CPU time
    of each host are measured beside it.
    """
    return carry_out(make_tcp_request(dut, wish, setup), shown)


def carry_out(request: TcpRequest, shown: Shown) -> int:
    """Measure, print and draw what was asked for; the exit code."""
    from ..report.tcp.live import TcpLive
    from ..session.tcp.keep import TcpOutput, draw_tcp_run, measure_tcp

    live = None if shown.quiet else lambda result: TcpLive(result, sys.stderr, request.pace)
    done = measure_tcp(request, TcpOutput(shown.results, say_unless(shown.quiet), warn, live))
    print_run(done.result, shown.as_json, done.path if shown.brief else None)
    note(f"result   {done.path}")
    if shown.picture and done.result.legs and done.path is not None:
        picture = done.path.with_suffix(".png")
        save_picture(lambda: draw_tcp_run(done.result, picture))
    return exit_code(done.error)


_TABLE_EXAMPLES = """\b
Examples:
  trexbench suite run home-routers-2022 --sim && trexbench tcp-table home-routers-2022
  trexbench tcp-table raspberry-pi-2015 --date 2026-11-21 --json
"""


@click.command("tcp-table", epilog=_TABLE_EXAMPLES)
@click.argument("suite", shell_complete=complete_suites)
@click.option("--date", type=DATE, help="The night's date; default: the latest.")
@CONFIGS
@results_option()
@JSON
def tcp_table(suite: str, date: str | None, configs_dir: Path | None, results: Path, as_json: bool) -> None:
    """A night of a TCP suite beside what was published of the same tests."""
    from ..report.tcp.table import format_table
    from ..suite.table import published_table

    night, lines = published_table(suite, results, configs_dir, date, warn)
    if as_json:
        values = {"suite": night.suite, "night": night.night, "simulated": night.simulated}
        print_json({**values, "cells": [one.to_dict() for one in lines]})
    else:
        click.echo(format_table(night, lines), nl=False)
