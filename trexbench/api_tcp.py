"""TCP from Python: the verb `tcp`, also with --bdp, and loading its documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from .api import Keeping, Place, output_of, raise_error, with_options
from .config.option import of_options
from .core.tcp.result import TcpResult
from .results import store
from .session.tcp.legs import measure_tcp
from .session.tcp.options import TcpSetup, TcpWish
from .session.tcp.request import make_tcp_request


@dataclass(frozen=True)
class TcpCall(Keeping, TcpSetup, TcpWish):
    """All options of ``tcp``."""


@dataclass(frozen=True, kw_only=True)
class BdpCall(TcpCall):
    """All options of ``bdp``. reverse: the server sends."""

    bdp: bool = True
    reverse: bool = False


@with_options(TcpCall)
def tcp(options: TcpCall) -> TcpResult:
    """Send TCP through the DUT between two hosts; ``summaries`` of the result say how fast each way was.

    way: ``both``, one after the other, ``forward``, ``reverse`` or ``bidir``. cc: a congestion control, or several for
    all legs with each. buffers: a leg with each, in bytes or as ``"16.8mb"``. The other options are those of
    `trexbench tcp`, too.
    """
    return _measure_tcp(options)


@with_options(BdpCall)
def bdp(options: BdpCall) -> TcpResult:
    """Send TCP over a long line with the hosts' buffers as they are, then with buffers that fit its BDP.

    The line is ``wan``, or the config's. This is ``tcp`` with ``bdp=True``.
    """
    return _measure_tcp(replace(options, way="reverse") if options.reverse else options)


def load_tcp(path: Place) -> TcpResult:
    """The run of TCP of a document; StoreError names what is wrong with it."""
    return store.load_tcp(Path(path))


def _measure_tcp(options: TcpCall) -> TcpResult:
    done = measure_tcp(make_tcp_request(options, of_options(TcpSetup, options)), output_of(options))
    raise_error(done.error, done.result)
    return done.result
