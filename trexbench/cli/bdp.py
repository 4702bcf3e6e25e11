"""``trexbench bdp``: TCP's buffers, its windows, and the bandwidth-delay product of a long line."""

from __future__ import annotations

import click

from ..session.tcp.bdp import make_bdp_request
from ..session.tcp.options import BdpWords, TcpSetup
from .options import SHOWN, VERBOSE, Shown, asked
from .tcp import SETUP, carry_out

_EXAMPLES = """\b
Examples:
  trexbench bdp --dut lab-linux --wan 20ms,1gbit
  trexbench bdp --dut lab-linux --wan 20ms,10gbit --scale --sweep --cc cubic --cc bbr
  trexbench bdp --dut lab-linux --wan 20ms,1gbit,loss=0.01% --factor 4 --cc cubic
  trexbench bdp --dut mininet-lab8 --wan 20ms,10gbit --buffers 52428800 --sim
"""


@click.command(epilog=_EXAMPLES)
@asked("words", BdpWords)
@SETUP
@SHOWN
@VERBOSE
def bdp(words: BdpWords, setup: TcpSetup, shown: Shown) -> int:
    """Send TCP over a long line with the hosts' buffers as they are, then with buffers that fit its BDP.

    The line is --wan, or the config's. Window and rate seen stand beside those that follow from buffer, round trip and
    line. The buffers are set on both hosts for their leg only, and restored.
    """
    return carry_out(make_bdp_request(words.dut, words, words.wish(), setup), shown)
