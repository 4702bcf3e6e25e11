"""``trexbench tcp`` and ``bdp``: TCP through the DUT, between two hosts, and over a long line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ..config.option import SPEEDUP
from ..core.errors import ConfigError
from ..core.tcp.model import TUNNELS
from ..session.tcp.options import WAYS, BdpWords, TcpSetup, TcpWords
from ..session.tcp.request import TcpRequest, make_bdp_request, make_tcp_request
from .options import CONFIGS, DATE, JSON, SHOWN, VERBOSE, Shown, asked, complete_suites, gathered, results_option
from .output import print_json, warn

_EXAMPLES = """\b
Examples:
  trexbench tcp --dut lab-linux
  trexbench tcp --dut lab-linux --forward --time 10s --ping 5 -P 4 --ip both
  trexbench tcp --dut home-router --reverse --engine iperf3 --no-apply
  trexbench tcp --dut lab-linux --variant stateful --cc cubic
  trexbench tcp --dut lab-linux --forward --wan 50ms,100mbit --buffers 1mb --buffers 2mb
  trexbench tcp --dut raspberry-pi --sim
"""


def _to_way(**given: bool) -> str:
    chosen = [name for name in WAYS if given[name]]
    if len(chosen) > 1:
        raise ConfigError(f"--{chosen[0]} and --{chosen[1]} exclude each other", "leave one of them out")
    return chosen[0] if chosen else "both"


_WAY = gathered(
    "way",
    _to_way,
    click.option("--both", is_flag=True, help="The client sends, then the server (default)."),
    click.option("--forward", is_flag=True, help="The client sends."),
    click.option("--reverse", is_flag=True, help="The server sends."),
    click.option("--bidir", is_flag=True, help="Both send at the same time."),
)
SETUP = asked("setup", TcpSetup, speedup=SPEEDUP, kept="the result", tunnels=", ".join(TUNNELS))


@click.command(epilog=_EXAMPLES)
@asked("words", TcpWords)
@_WAY
@SETUP
@SHOWN
@VERBOSE
def tcp(words: TcpWords, way: str, setup: TcpSetup, shown: Shown) -> int:
    """Send TCP through the DUT between two hosts, and say how fast it was and who was the limit.

    The DUT's config names the hosts (`endpoints:`); a lab has its own. Pings, retransmits, round trips and the CPU time
    of each host are measured beside it.
    """
    return _measure(make_tcp_request(words.dut, replace(words, way=way).wish(), setup), shown)


_BDP_EXAMPLES = """\b
Examples:
  trexbench bdp --dut lab-linux --wan 20ms,1gbit
  trexbench bdp --dut lab-linux --wan 20ms,10gbit --scale --sweep --cc cubic --cc bbr
  trexbench bdp --dut lab-linux --wan 20ms,1gbit,loss=0.01% --factor 4 --cc cubic
  trexbench bdp --dut mininet-lab8 --wan 20ms,10gbit --buffers 52428800 --sim
"""


@click.command(epilog=_BDP_EXAMPLES)
@asked("words", BdpWords)
@SETUP
@SHOWN
@VERBOSE
def bdp(words: BdpWords, setup: TcpSetup, shown: Shown) -> int:
    """Send TCP over a long line with the hosts' buffers as they are, then with buffers that fit its BDP.

    The line is --wan, or the config's. Window and rate seen stand beside those that follow from buffer, round trip and
    line. The buffers are set on both hosts for their leg only, and restored.
    """
    return _measure(make_bdp_request(words, setup), shown)


def _measure(request: TcpRequest, shown: Shown) -> int:
    from ..session.tcp.keep import measure_tcp
    from .loads import output_of, present

    return present(measure_tcp(request, output_of(shown.results, shown.quiet, request.pace)), shown)


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
