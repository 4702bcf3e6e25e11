"""A stream -> the packets that it really sends, whose headers RSS hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..core.dut import rss
from ..core.errors import ConfigError
from ..stlserver.engine import EngineError, StreamSpec

T = TypeVar("T")


def headers_of(spec: StreamSpec) -> list[bytes]:
    """Follow the stream with ``core.dut.rss.headers_of``; EngineError, naming the instruction, where that fails."""
    return _follow(rss.headers_of, spec.packet, spec.instructions)


def check_program(spec: StreamSpec) -> None:
    """Raise EngineError unless every packet has the stream's length and a program that ``headers_of`` follows."""
    if any(one["type"] == "trim_pkt_size" for one in spec.instructions):
        raise EngineError("the simulating engine cannot change the packet's size (trim_pkt_size)")
    _follow(rss.period_of, spec.instructions)


def _follow(function: Callable[..., T], *args: object) -> T:
    try:
        return function(*args)
    except ConfigError as error:
        raise EngineError(f"the simulating engine cannot follow the stream: {error}") from error
