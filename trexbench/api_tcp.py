"""TCP from Python: the verb `tcp`, also with --bdp, and its documents; what other verbs share is in api.py."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .api import Keeping, Place, output_of, raise_error, with_options
from .config.option import of_options
from .core.tcp.result import TcpResult
from .results import store
from .session.tcp.options import BdpWords, TcpSetup, TcpWords
from .session.tcp.request import TcpRequest, make_bdp_request, make_tcp_request
from .session.tcp.run import measure_tcp


@dataclass(frozen=True)
class TcpCall(Keeping, TcpSetup, TcpWords):
    """All options of ``tcp``."""


@dataclass(frozen=True)
class BdpCall(Keeping, TcpSetup, BdpWords):
    """All options of ``tcp --bdp``."""

    def __post_init__(self) -> None:
        """ConfigError as of both of its parts, of which Python would ask the first only."""
        TcpSetup.__post_init__(self)
        BdpWords.__post_init__(self)


@with_options(TcpCall)
def tcp(options: TcpCall) -> TcpResult:
    """Send TCP through the DUT between two hosts; ``summaries`` of the result say how fast each way was.

    way: ``both``, one after the other, ``forward``, ``reverse`` or ``bidir``. cc: the congestion control. buffers: a
    leg with each, in bytes or as ``"16.8mb"``. The other options are those of `trexbench tcp`, too.
    """
    return _measure_tcp(make_tcp_request(options.dut, options.wish(), of_options(TcpSetup, options)), options)


@with_options(BdpCall)
def bdp(options: BdpCall) -> TcpResult:
    """Send TCP over a long line with the hosts' buffers as they are, then with buffers that fit its BDP.

    The line is ``wan``, or the config's. cc: all legs with each congestion control. The other options are those of
    `trexbench tcp --bdp`, too.
    """
    return _measure_tcp(make_bdp_request(options, of_options(TcpSetup, options)), options)


def load_tcp(path: Place) -> TcpResult:
    """The run of TCP of a document; StoreError names what is wrong with it."""
    return store.load_tcp(Path(path))


def _measure_tcp(request: TcpRequest, options: Keeping) -> TcpResult:
    done = measure_tcp(request, output_of(options))
    raise_error(done.error, done.result)
    return done.result
