"""Which receive queue a flow goes to, and which worker serves it: how a load spreads over a router's cores."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QueuePlace:
    """The worker (VPP's thread, or a CPU as in ``cpu2``) that serves one receive queue; None: the DUT does not say.

    port: the tester's, which the queue's interface faces.
    """

    port: int
    queue: int
    worker: str | None


@dataclass(frozen=True)
class PortHash:
    """Choice of a queue by the NIC that faces ``port``: Toeplitz over these header fields, then a table of queues.

    key: in hexadecimal digits; None where it is not known, for this ``reason``. fields: of src, dst, sport, dport.
    table: the queue of each entry; its length is a power of two. ipv6_fields: of IPv6; None: the same as of IPv4.
    """

    port: int
    key: str | None
    fields: tuple[str, ...] = ()
    table: tuple[int, ...] = ()
    reason: str = ""
    ipv6_fields: tuple[str, ...] | None = None

    def fields_of(self, version: int | None) -> tuple[str, ...]:
        """The fields of packets of IP in this version."""
        return self.ipv6_fields if version == 6 and self.ipv6_fields is not None else self.fields


@dataclass(frozen=True)
class Spreading:
    """A DUT's report of its queues, in the order of the tester's ports. workers: all that forward, idle or not."""

    queues: tuple[QueuePlace, ...] = ()
    hashes: tuple[PortHash, ...] = ()
    workers: tuple[str, ...] = ()
