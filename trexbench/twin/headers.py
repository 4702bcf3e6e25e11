"""A stream -> the packets that it really sends, for whoever hashes their headers."""

from __future__ import annotations

from ..core import rss
from ..core.errors import ConfigError
from ..stlserver.engine import EngineError, StreamSpec


def headers_of(spec: StreamSpec) -> list[bytes]:
    """As ``core.rss.headers_of``; EngineError, naming the instruction, for a program that cannot be followed."""
    try:
        return rss.headers_of(spec.packet, spec.instructions)
    except ConfigError as error:
        raise _cannot_follow(error) from error


def check_program(spec: StreamSpec) -> None:
    """Raise EngineError unless every packet has the stream's length and a program that ``headers_of`` follows."""
    if any(one["type"] == "trim_pkt_size" for one in spec.instructions):
        raise EngineError("the simulating engine cannot change the packet's size (trim_pkt_size)")
    try:
        rss.period_of(spec.instructions)
    except ConfigError as error:
        raise _cannot_follow(error) from error


def _cannot_follow(error: ConfigError) -> EngineError:
    return EngineError(f"the simulating engine cannot follow the stream: {error}")
