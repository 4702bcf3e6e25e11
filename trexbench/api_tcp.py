"""TCP from Python: the verbs `tcp` and `bdp`, and their documents; what they share with other verbs is in api.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from .api import Place, interrupts, raise_error, seconds, wan_of, warn
from .core.errors import ConfigError
from .core.tcp.result import TcpResult
from .core.tcp.wan import Wan, parse_size
from .results import store
from .session.tcp.bdp import BdpWish, make_bdp_request
from .session.tcp.keep import TcpOutput, measure_tcp
from .session.tcp.request import WAYS, TcpRequest, TcpSetup, TcpWish, make_tcp_request

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TcpOptions(TypedDict, total=False):
    """More options of a test of TCP; see session.tcp.request. results: a directory for documents, None: none."""

    ip: str | None
    streams: int
    interval: str | float
    omit: str | float
    repeat: int
    zerocopy: bool
    pin: bool
    engine: str
    configs_dir: Path | None
    apply: bool
    telemetry: bool
    variant: str | None
    tunnel: str | None
    wan: str | Wan | None
    scale: bool
    sim: bool
    speedup: float | None
    seed: int | None
    label: str | None
    results: Place | None


def tcp(
    dut: str,
    way: str = "both",
    *,
    time: str | float = "60s",
    ping: int = 60,
    cc: str | None = None,
    buffers: Sequence[str | int] = (),
    **options: Unpack[TcpOptions],
) -> TcpResult:
    """Send TCP through the DUT between two hosts; ``summaries`` of the result say how fast each way was.

    way: ``both``, one after the other, ``forward``, ``reverse`` or ``bidir``. cc: the congestion control. buffers: a
    leg with each, in bytes or as ``"16.8mb"``. The other options are those of `trexbench tcp`, too.
    """
    if way not in WAYS:
        raise ConfigError(f"unknown way {way!r}", f"name one of {', '.join(WAYS)}")
    asked = {"ways": WAYS[way], "congestion": cc, "buffers": _sizes(buffers) or (None,)}
    wish, setup, output = _split_tcp_options(asked, time, ping, options)
    return _measure_tcp(make_tcp_request(dut, wish, setup), output)


def bdp(
    dut: str,
    *,
    reverse: bool = False,
    factor: float | None = None,
    sweep: bool = False,
    buffers: Sequence[str | int] = (),
    time: str | float = "10s",
    ping: int = 10,
    cc: Sequence[str] = (),
    **options: Unpack[TcpOptions],
) -> TcpResult:
    """Send TCP over a long line with the hosts' buffers as they are, then with buffers that fit its BDP.

    The line is ``wan``, or the config's. cc: all legs with each congestion control. The other options are those of
    `trexbench bdp`, too.
    """
    asked = {"ways": WAYS["reverse" if reverse else "forward"], "congestions": tuple(dict.fromkeys(cc)) or (None,)}
    wish, setup, output = _split_tcp_options(asked, time, ping, options)
    return _measure_tcp(make_bdp_request(dut, BdpWish(factor, sweep, _sizes(buffers)), wish, setup), output)


def load_tcp(path: Place) -> TcpResult:
    """The run of TCP of a document; StoreError names what is wrong with it."""
    return store.load_tcp(Path(path))


def _split_tcp_options(
    asked: Mapping[str, Any], time: str | float, ping: int, options: TcpOptions
) -> tuple[TcpWish, TcpSetup, TcpOutput]:
    """The options by what takes them. asked: fields of a TcpWish, besides those that are options."""
    left: dict[str, Any] = {**options, "wan": wan_of(options.get("wan"))}
    results = left.pop("results", None)
    times = {f"{name}_s": seconds(left.pop(name)) for name in ("interval", "omit") if name in left}
    wish = {"time_s": seconds(time), "pings": ping, "pinned": left.pop("pin", False), **times, **asked}
    wish |= {one.name: left.pop(one.name) for one in fields(TcpWish) if one.name in left}
    return TcpWish(**wish), TcpSetup(**left), TcpOutput(None if results is None else Path(results), warn=warn)


def _measure_tcp(request: TcpRequest, output: TcpOutput) -> TcpResult:
    with interrupts():
        done = measure_tcp(request, output)
        raise_error(done.error, done.result)
    return done.result


def _sizes(values: Sequence[str | int]) -> tuple[int, ...]:
    return tuple(parse_size(str(one)) for one in values)
