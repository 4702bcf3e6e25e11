"""How a NIC hashes where the DUT does not say: as its config states."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..config import DutConfig
from ..config.twin import RssSpec
from ..core.rss import MICROSOFT_KEY
from ..core.spread import PortHash, Spreading


def with_stated(spreading: Spreading, config: DutConfig) -> Spreading:
    """The same, with the config's ``rss:`` for every port whose hash the DUT itself does not tell."""
    stated = config.rss
    if stated is None or stated.key == "random":
        return spreading
    queues = Counter(place.port for place in spreading.queues)
    told = {one.port: one for one in spreading.hashes if one.key is not None}
    return replace(
        spreading,
        hashes=tuple(told.get(port) or stated_hash(stated, port, queues[port]) for port in sorted(queues)),
    )


def stated_hash(stated: RssSpec, port: int, queues: int) -> PortHash:
    """The hash of a port with so many queues, as a config states it; its key is not ``random``."""
    key = MICROSOFT_KEY.hex() if stated.key == "microsoft" else stated.key.replace(":", "").lower()
    return PortHash(port, key, stated.fields, tuple(entry % queues for entry in range(stated.table)))
