"""``trexbench tcp``: TCP through the DUT between two hosts, also over a long line with buffers that fit it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ..config.option import SPEEDUP
from ..core.errors import ConfigError
from ..core.tcp.model import TUNNELS
from ..session.tcp.options import WAYS, BdpWords, TcpSetup, TcpWords
from ..session.tcp.request import make_bdp_request, make_tcp_request
from .options import SHOWN, VERBOSE, Shown, asked, click_options, gathered, given
from .verbs import Heading, Option, verb

_EXAMPLES = """\b
Examples:
  trexbench tcp --dut lab-linux --forward --time 10s
  trexbench tcp --dut lab-linux --bdp --wan 20ms,1gbit
  trexbench tcp --dut lab-linux --ip both --ping 5 -P 4
  trexbench tcp --dut home-router --reverse --engine iperf3 --no-apply
  trexbench tcp --dut lab-linux --variant stateful --cc cubic
  trexbench tcp --dut lab-linux --wan 50ms,100mbit --buffers 1mb --buffers 2mb
  trexbench tcp --dut raspberry-pi --sim
  trexbench tcp --dut lab-linux --bdp --wan 20ms,10gbit --sweep
  trexbench tcp --dut lab-linux --bdp --wan 20ms,1gbit,loss=0.01% --factor 4
  trexbench tcp --dut lab-linux --bdp --wan 20ms,1gbit --cc cubic --cc bbr
  trexbench tcp --dut mininet-lab8 --bdp --buffers 52428800 --sim
"""
_OF_BDP = "factor", "sweep"


def _way(name: str, help: str, usual: bool = True) -> Any:
    return click.option(f"--{name}", is_flag=True, cls=Option, heading=Heading.WHAT, usual=usual, help=help)


_WAYS = (
    _way("both", "The client sends, then the server (default).", usual=False),
    _way("forward", "The client sends."),
    _way("reverse", "The server sends."),
    _way("bidir", "Both send at the same time."),
)
_BDP = click.option(
    "--bdp",
    is_flag=True,
    cls=Option,
    heading=Heading.WHAT,
    help="Legs with the hosts' buffers as they are, then with such as fit the bandwidth-delay product of the line.",
)


def _to_words(bdp: bool, cc: tuple[str, ...], **values: Any) -> TcpWords | BdpWords:
    """Make the words of a test, or of one with --bdp; ConfigError for what the other of them has only."""
    ways = [name for name in WAYS if values.pop(name)]
    if len(ways) > 1:
        raise ConfigError(f"--{ways[0]} and --{ways[1]} exclude each other", "leave one of them out")
    way = ways[0] if ways else "both"
    if bdp:
        excess = [f"--{name}" for name in ways if name in ("both", "bidir")]
        excess += ["--ip both"] if values["ip"] == "both" else []
        if excess:
            raise ConfigError("--bdp measures one way and one version of IP", f"leave {' and '.join(excess)} out")
        return given(BdpWords, {**values, "cc": cc, "reverse": way == "reverse"})
    for name in _OF_BDP:
        if (value := values.pop(name)) is not None and value is not False:  # 0 was given, too
            raise ConfigError(f"--{name} means nothing without --bdp", "add --bdp, or leave it out")
    if len(cc) > 1:
        raise ConfigError("several --cc mean nothing without --bdp", "add --bdp, or name one")
    return replace(given(TcpWords, {**values, "cc": cc[0] if cc else None}), way=way)


_TCP, _LINE = click_options(TcpWords), click_options(BdpWords)
_WORDS = gathered(
    "words",
    _to_words,
    _TCP.pop("dut"),
    *_WAYS,
    _BDP,
    *(_TCP | {name: _LINE[name] for name in ("cc", *_OF_BDP)}).values(),
)
SETUP = asked("setup", TcpSetup, speedup=SPEEDUP, kept="the result", tunnels=", ".join(TUNNELS))


@verb(epilog=_EXAMPLES)
@_WORDS
@SETUP
@SHOWN
@VERBOSE
def tcp(words: TcpWords | BdpWords, setup: TcpSetup, shown: Shown) -> int:
    """Send TCP through the DUT between two hosts, and say how fast it was and who was the limit.

    The DUT's config names the hosts (`endpoints:`); a lab has its own. Pings, retransmits, round trips and the CPU time
    of each host are measured beside it. Buffers are set on both hosts for their leg only, and restored.
    """
    from ..session.tcp.run import measure_tcp
    from .loads import output_of, present

    if isinstance(words, BdpWords):
        request = make_bdp_request(words, setup)
    else:
        request = make_tcp_request(words.dut, words.wish(), setup)
    return present(measure_tcp(request, output_of(shown.results, shown.quiet, request.pace)), shown)
