"""The simulated NIC's receive side scaling."""

from __future__ import annotations

from collections.abc import Sequence

from ..config.twin import RssSpec
from ..core.dut.rss import MICROSOFT_KEY, Toeplitz, queue_of
from .noise import mixed

_KEY_BYTES = 40


class Rss:
    """The hash of one NIC, whose table is filled with the queues in turn. seed: where a random key is drawn from."""

    def __init__(self, spec: RssSpec, seed: int) -> None:
        self._spec = spec
        self.key = _key_of(spec.key, seed)
        self._toeplitz = Toeplitz(self.key)

    def table(self, queues: int) -> tuple[int, ...]:
        """The queue of each entry."""
        return tuple(entry % queues for entry in range(self._spec.table))

    def shares(self, packets: Sequence[bytes], queues: int) -> tuple[float, ...]:
        """The share of these packets (without FCS) that each queue gets; sums to 1. What is not IP goes to queue 0."""
        if queues == 1 or not packets:
            return (1.0, *(0.0 for _ in range(queues - 1)))
        counts, table = [0] * queues, self.table(queues)
        for packet in packets:
            counts[queue_of(self._toeplitz, packet, self._spec.fields, table)] += 1
        return tuple(count / len(packets) for count in counts)


def _key_of(text: str, seed: int) -> bytes:
    """The key of an RssSpec."""
    if text == "microsoft":
        return MICROSOFT_KEY
    if text == "random":
        return b"".join(mixed(seed, part).to_bytes(8, "big") for part in range(_KEY_BYTES // 8))
    return bytes.fromhex(text)
