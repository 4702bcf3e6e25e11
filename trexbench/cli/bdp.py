"""``trexbench bdp``: TCP's buffers, its windows, and the bandwidth-delay product of a long line."""

from __future__ import annotations

from typing import Any

import click

from ..core.tcp.model import Way
from ..core.tcp.wan import parse_size
from ..session.tcp.bdp import FACTOR, BdpWish, make_bdp_request
from ..session.tcp.request import TcpSetup, TcpWish
from .options import SHOWN, VERBOSE, Finite, Parsed, Shown, gathered
from .tcp import (
    DUT,
    ENGINE,
    INTERVAL,
    OMIT,
    PIN,
    REPEAT,
    SETUP,
    STREAMS,
    ZEROCOPY,
    carry_out,
    ping_option,
    time_option,
)

_EXAMPLES = """\b
Examples:
  trexbench bdp --dut lab-linux --wan 20ms,1gbit
  trexbench bdp --dut lab-linux --wan 20ms,10gbit --scale --sweep --cc cubic --cc bbr
  trexbench bdp --dut lab-linux --wan 20ms,1gbit,loss=0.01% --factor 4 --cc cubic
  trexbench bdp --dut mininet-lab8 --wan 20ms,10gbit --buffers 52428800 --sim
"""


def _to_wish(reverse: bool, congestions: tuple[str, ...], **values: Any) -> TcpWish:
    ways = (Way.REVERSE if reverse else Way.FORWARD,)
    return TcpWish(ways=ways, congestions=tuple(dict.fromkeys(congestions)) or (None,), **values)


_WISH = gathered(
    "wish",
    _to_wish,
    click.option("--reverse", is_flag=True, help="The server sends; else the client does."),
    click.option("--ip", type=click.Choice(("4", "6")), help="Default: 4, where the endpoints have it."),
    click.option(
        "--cc",
        "congestions",
        metavar="NAME",
        multiple=True,
        help="Congestion control: cubic, bbr ...; for each one given all legs. Default: the hosts' own.",
    ),
    STREAMS,
    time_option("10s"),
    INTERVAL,
    OMIT,
    REPEAT,
    ping_option(10),
    ZEROCOPY,
    PIN,
    ENGINE,
)
_BUFFERS = gathered(
    "wanted",
    BdpWish,
    click.option("--factor", type=Finite(0, 1000), help=f"The buffers to set, in BDPs ({FACTOR:g})."),
    click.option("--sweep", is_flag=True, help="Buffers of 1/16 to 4 BDPs instead, each double the one before."),
    click.option(
        "--buffers",
        type=Parsed("SIZE", parse_size),
        multiple=True,
        help="Buffers of this size instead: 52428800, 16.8mb; may be given again.",
    ),
)


@click.command(epilog=_EXAMPLES)
@DUT
@_BUFFERS
@_WISH
@SETUP
@SHOWN
@VERBOSE
def bdp(dut: str, wanted: BdpWish, wish: TcpWish, setup: TcpSetup, shown: Shown) -> int:
    """Send TCP over a long line with the hosts' buffers as they are, then with buffers that fit its BDP.

    The line is --wan, or the config's. Window and rate seen stand beside those that follow from buffer, round trip and
    line. The buffers are set on both hosts for their leg only, and restored.
    """
    return carry_out(make_bdp_request(dut, wanted, wish, setup), shown)
