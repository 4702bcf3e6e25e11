"""A stream -> the packets that it really sends, for whoever hashes their headers."""

from __future__ import annotations

from itertools import islice
from math import lcm

from ..core.errors import ConfigError
from ..core.fieldengine import Instruction, Program
from ..stlserver.engine import EngineError, StreamSpec

MOST_PACKETS = 2048
"""Programs that repeat sooner are followed for one period exactly; of the others this many packets stand for all."""

_UNSEEN = ("fix_checksum_ipv4", "fix_checksum_hw", "fix_checksum_icmpv6")
"""Instructions that change nothing that a receive queue is chosen by."""


def headers_of(spec: StreamSpec) -> list[bytes]:
    """Packets (without FCS) whose addresses and ports are as frequent as in the stream; checksums are not mended.

    Raises EngineError, naming the instruction, for a program that cannot be followed.
    """
    program = _program(spec)
    periods = [variable.period for variable in program.variables.values()]
    period = lcm(*periods) if all(periods) else MOST_PACKETS
    return list(islice(program.run(spec.packet), min(period, MOST_PACKETS)))


def check_program(spec: StreamSpec) -> None:
    """Raise EngineError unless every packet has the stream's length and a program that ``headers_of`` follows."""
    if any(one["type"] == "trim_pkt_size" for one in spec.instructions):
        raise EngineError("the simulating engine cannot change the packet's size (trim_pkt_size)")
    _program(spec)


def _program(spec: StreamSpec) -> Program:
    seen: list[Instruction] = [one for one in spec.instructions if one["type"] not in _UNSEEN]
    try:
        return Program(seen)
    except ConfigError as error:
        raise EngineError(f"the simulating engine cannot follow the stream: {error}") from error
