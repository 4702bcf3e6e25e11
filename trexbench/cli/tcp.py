"""``trexbench tcp``: TCP through the DUT between two hosts, also over a long line with buffers that fit it."""

from __future__ import annotations

from typing import Any

import click

from ..config.option import SPEEDUP
from ..core.errors import ConfigError
from ..core.tcp.plan import TUNNELS
from ..session.tcp.options import WAYS, TcpSetup, TcpWish
from ..session.tcp.request import make_tcp_request
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


def _way(name: str, help: str, usual: bool = True) -> Any:
    return click.option(f"--{name}", is_flag=True, cls=Option, heading=Heading.WHAT, usual=usual, help=help)


_WAYS = (
    _way("both", "First the client sends, then the server: the default without --bdp.", usual=False),
    _way("forward", "Only the client sends. Default: first it, then the server."),
    _way("reverse", "Only the server sends."),
    _way("bidir", "Both send at the same time."),
)


def _to_wish(**values: Any) -> TcpWish:
    """Make the wish; ConfigError for more than one direction."""
    ways = [name for name in WAYS if values.pop(name)]
    if len(ways) > 1:
        raise ConfigError(f"--{ways[0]} and --{ways[1]} exclude each other", "leave one of them out")
    return given(TcpWish, {**values, "way": ways[0] if ways else None})


_OPTIONS = click_options(TcpWish)
WISH = gathered("wish", _to_wish, _OPTIONS.pop("dut"), *_WAYS, *_OPTIONS.values())
SETUP = asked("setup", TcpSetup, speedup=SPEEDUP, kept="the result", tunnels=", ".join(TUNNELS))


@verb(epilog=_EXAMPLES)
@WISH
@SETUP
@SHOWN
@VERBOSE
def tcp(wish: TcpWish, setup: TcpSetup, shown: Shown) -> int:
    """Send TCP through the DUT between two hosts, and report the throughput and what limited it.

    The DUT's config names the hosts (`endpoints:`); a lab has its own. Pings, retransmits, round-trip times and the CPU
    time of each host are measured as well. Buffers are set on both hosts for their leg only, and restored.
    """
    from ..session.tcp.legs import measure_tcp
    from .loads import output_of, present

    request = make_tcp_request(wish, setup)
    return present(measure_tcp(request, output_of(shown.results, shown.quiet, request.pace)), shown)
