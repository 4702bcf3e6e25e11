"""Receive side scaling: the queue that a packet goes to, the worker that serves it, and the packets of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import islice
from math import lcm
from operator import xor

from ..load.fieldengine import Instruction, Program
from ..load.headers import find_tuple5

MICROSOFT_KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
"""Key of the RSS specification; the default of DPDK's ixgbe driver."""

FIELDS = ("src", "dst", "sport", "dport")
"""Fields that may be hashed, in the order of the hash's input."""

MOST_PACKETS = 2048
"""Programs with a shorter period are followed for one period; of others so many packets are a sample."""

MOST_SEEN = 8192
"""Likewise, for predictions."""

_NO_EFFECT = ("fix_checksum_ipv4", "fix_checksum_hw")
"""Instructions that have no effect on the choice of a receive queue."""


@dataclass(frozen=True)
class QueuePlace:
    """The worker that serves one receive queue."""

    port: int
    """The tester's, which the queue's interface faces."""
    queue: int
    worker: str | None
    """VPP's thread, or a CPU as in ``cpu2``; None: the DUT does not say."""


@dataclass(frozen=True)
class PortHash:
    """Choice of a queue by the NIC that faces ``port``: Toeplitz over header fields, then a table of queues."""

    port: int
    key: str | None
    """Hexadecimal digits; None: not known, for this ``reason``."""
    fields: tuple[str, ...] = ()
    table: tuple[int, ...] = ()
    """Queue of each entry; the length is a power of two."""
    reason: str = ""
    ipv6_fields: tuple[str, ...] | None = None
    """None: as for IPv4."""

    def fields_of(self, version: int | None) -> tuple[str, ...]:
        """Return the hashed fields of packets of this IP version."""
        return self.ipv6_fields if version == 6 and self.ipv6_fields is not None else self.fields


@dataclass(frozen=True)
class Spreading:
    """A DUT's report of its queues, in the order of the tester's ports."""

    queues: tuple[QueuePlace, ...] = ()
    hashes: tuple[PortHash, ...] = ()
    workers: tuple[str, ...] = ()
    """All that forward, idle or not."""


@lru_cache(maxsize=16)  # each run asks for its DUT's ports', all of one key
def _added_by(key: bytes) -> list[list[int]]:
    """For each byte of input, what each of its values adds to the hash, which is linear."""
    bits, length = int.from_bytes(key, "big"), len(key) * 8
    windows = [bits >> (length - 32 - at) & 0xFFFFFFFF for at in range(length - 32)]
    return [
        [reduce(xor, (windows[at + bit] for bit in range(8) if value >> (7 - bit) & 1), 0) for value in range(256)]
        for at in range(0, len(windows) - 7, 8)
    ]


class Toeplitz:
    """The hash of the RSS specification, with one key."""

    def __init__(self, key: bytes) -> None:
        self.key, self._added = key, _added_by(key)

    def hash(self, data: bytes) -> int:
        """Return 32 bits; ValueError if the key is too short for so much input."""
        if len(data) > len(self._added):
            raise ValueError(f"a key of {len(self.key)} bytes hashes {len(self._added)} bytes, not {len(data)}")
        bits = 0
        for added, value in zip(self._added, data, strict=False):
            bits ^= added[value]
        return bits


def hash_input(packet: bytes, fields: Sequence[str]) -> bytes:
    """Return the hash's input from a packet (without FCS); empty if it is not IP."""
    places = {name.partition(".")[2]: place for name, place in find_tuple5(packet).fields.items()}
    chosen = (places[name] for name in FIELDS if name in fields and name in places)
    return b"".join(packet[start : start + size] for start, size in chosen)


def queue_of(toeplitz: Toeplitz, packet: bytes, fields: Sequence[str], table: Sequence[int]) -> int:
    """Return a packet's queue by hash and indirection table; a packet that is not IP goes to queue 0."""
    data = hash_input(packet, fields)
    return table[toeplitz.hash(data) % len(table)] if data else 0


def headers_of(packet: bytes, instructions: Sequence[Instruction]) -> list[bytes]:
    """Return packets (without FCS) with addresses and ports as frequent as in the stream; checksums are not updated.

    ConfigError, naming the instruction, for a program that cannot be followed.
    """
    program = _program(instructions)
    return list(islice(program.run(packet), MOST_PACKETS if program.draws else min(program.period, MOST_PACKETS)))


def hashed_of(
    packet: bytes, instructions: Sequence[Instruction], fields: Sequence[str], cache: int = 0
) -> tuple[list[bytes], bool]:
    """Return the hash's inputs of a stream's packets, each as often as it is sent, and whether they are all.

    Else they are a sample: fields are random, or repeat after more than MOST_SEEN packets. cache: as in Stream.
    ConfigError as headers_of.
    """
    program, places = _program(instructions), find_tuple5(packet).fields
    hashed = [place for name, place in places.items() if name.partition(".")[2] in fields]
    periods = [program.variables[name].period for name in {write.name for write in program.writes_into(hashed)}]
    count = cache or (lcm(*periods) if all(periods) else MOST_SEEN + 1)
    seen = islice(program.run(packet), min(count, MOST_SEEN))
    return [hash_input(data, fields) for data in seen], all(periods) and count <= MOST_SEEN


def _program(instructions: Sequence[Instruction]) -> Program:
    return Program([instruction for instruction in instructions if instruction["type"] not in _NO_EFFECT])
