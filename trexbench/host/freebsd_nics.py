"""Meanings of a NIC's counters, by its FreeBSD driver: their sources differ, and no rule holds for all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .freebsd import device

_LEAF = re.compile(r"dev\.([a-z][a-z0-9_]*)\.([0-9]{1,4})\.(.+)")
SENT_BY_QUEUE = re.compile(r"queue[0-9]{1,4}\.tx_packets")


@dataclass(frozen=True)
class NicCounters:
    """Counters of frames that a driver loses, each frame in one of them.

    columns: of ``netstat -i``. leaves: of sysctl, below the device. by_queue: received and sent frames are the sums
    over its queues, which software counts as it goes; else netstat's Ipkts and Opkts. known: its source was read.
    """

    columns: tuple[str, ...] = ("Ierrs", "Idrop", "Oerrs")
    leaves: tuple[str, ...] = ()
    by_queue: bool = False
    known: bool = True


_IX = NicCounters(
    columns=(),
    leaves=tuple(
        f"mac_stats.{name}"
        for name in (
            "rx_missed_packets",
            "crc_errs",
            "ill_errs",
            "rec_len_errs",
            "recv_undersized",
            "recv_fragmented",
            "recv_oversized",
            "recv_jabberd",
        )
    ),
    by_queue=True,
)
"""sys/dev/ixgbe/if_ix.c, ixgbe_update_stats_counters, 12 to 15. Idrop is always 0. Ierrs has no missed frames in 12;
since 13 it has them, in 13 also bad checksums (xec) of frames that are not lost. Ipkts has the missed frames in it, and
is up to half a second old, as Opkts is. Oerrs and Drop of 15 are iflib's: what its rings refuse, again."""

_E1000 = NicCounters(columns=("Ierrs",))
"""sys/dev/e1000/if_em.c, sys/dev/igc/if_igc.c, *_if_get_counter: Ierrs has the missed frames (mpc) in it, so
``mac_stats.missed_packets`` is left out. Oerrs has collisions, which full duplex has none of, and in 15 what iflib's
rings refuse, again. Ipkts and Opkts are counted by software. No queue counts its packets."""

_BY_DRIVER: Mapping[str, NicCounters] = {"ix": _IX, "em": _E1000, "igb": _E1000, "igc": _E1000}
_ANY = NicCounters(known=False)


def counters_of(interface: str) -> NicCounters:
    """Counters that are right for this NIC; all that ``netstat -i`` has where the source of its driver was not read."""
    which = device(interface)
    return _BY_DRIVER.get(which[0], _ANY) if which else _ANY


def leaf_of(name: str) -> tuple[str, str] | None:
    """Interface and leaf of a sysctl's name: ``dev.ix.0.mac_stats.crc_errs`` -> (``ix0``, ``mac_stats.crc_errs``)."""
    found = _LEAF.fullmatch(name)
    return (f"{found[1]}{found[2]}", found[3]) if found else None


def is_counter(name: str) -> bool:
    """Test for a sysctl that is one of the counters of its driver's row."""
    found = leaf_of(name)
    if found is None:
        return False
    row = counters_of(found[0])
    return found[1] in row.leaves or (row.by_queue and SENT_BY_QUEUE.fullmatch(found[1]) is not None)
