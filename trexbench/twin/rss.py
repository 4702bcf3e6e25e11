"""Receive side scaling: which of a port's queues a packet falls into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import xor

from ..config.twin import RssSpec
from ..core.profile import find_tuple5
from .noise import mixed

MICROSOFT_KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
"""Of the RSS specification; the default of DPDK's ixgbe driver."""

_KEY_BYTES = 40


class Rss:
    """The hash of one NIC. seed: where a random key is drawn from."""

    def __init__(self, spec: RssSpec, seed: int) -> None:
        self._spec = spec
        self.key = key_of(spec.key, seed)
        bits, length = int.from_bytes(self.key, "big"), len(self.key) * 8
        windows = [bits >> (length - 32 - at) & 0xFFFFFFFF for at in range(length - 32)]
        # for each byte of input, what each of its values adds to the hash: it is linear
        self._added = [
            [_sum(windows[at + bit] for bit in range(8) if value >> (7 - bit) & 1) for value in range(256)]
            for at in range(0, len(windows) - 7, 8)
        ]

    def hash(self, data: bytes) -> int:
        """Toeplitz, 32 bits."""
        found = 0
        for added, value in zip(self._added, data, strict=False):
            found ^= added[value]
        return found

    def queue(self, packet: bytes, queues: int) -> int:
        """Of a packet without FCS; what is not IP has no hash and goes to queue 0."""
        data = self._hashed(packet)
        return self.hash(data) % self._spec.table % queues if data else 0

    def shares(self, packets: Sequence[bytes], queues: int) -> tuple[float, ...]:
        """The part of these packets that each queue gets; sums to 1."""
        if queues == 1 or not packets:
            return (1.0, *(0.0 for _ in range(queues - 1)))
        counts = [0] * queues
        for packet in packets:
            counts[self.queue(packet, queues)] += 1
        return tuple(count / len(packets) for count in counts)

    def _hashed(self, packet: bytes) -> bytes:
        places = {name.partition(".")[2]: place for name, place in find_tuple5(packet).fields.items()}
        chosen = (places[name] for name in self._spec.fields if name in places)
        return b"".join(packet[start : start + size] for start, size in chosen)


def key_of(text: str, seed: int) -> bytes:
    """The key of an RssSpec."""
    if text == "microsoft":
        return MICROSOFT_KEY
    if text == "random":
        return b"".join(mixed(seed, part).to_bytes(8, "big") for part in range(_KEY_BYTES // 8))
    return bytes.fromhex(text)


def _sum(values: Iterable[int]) -> int:
    """Without carry, as the hash adds."""
    return reduce(xor, values, 0)
