"""WAN emulation by the kernel's queueing disciplines, pure: netem delays and loses, tbf beneath it limits the rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import DutError
from ...core.tcp.wan import Wan, format_size
from ...core.units import format_bits, format_share, format_time
from ...host.linux import WAN_HANDLE, parse_json
from ..settings import Command
from .parse import mapping_at

NETEM, TBF = "netem", "tbf"
HANDLES = (WAN_HANDLE, "7b1:")
"""Handles of our root qdisc and of the one beneath it."""
BURST_S = 0.004
"""Burst that tbf passes at once, as time at its rate: 5 MB at 10 Gbit/s."""
LARGEST_TAGS = 22
"""Bytes of Ethernet's header with two VLAN tags."""
SMALLEST_FRAME, LEAST_PACKETS = 60, 1000
FASTEST_BPS = 100e9
"""Assumed for the size of netem's queue where no rate is stated."""
MOST_BYTES, MOST_PACKETS = 2**32 - 1, 2**32 - 1
"""Limits of netem and tbf."""
IN_ORDER = ("rate", "1tbit")
"""Keeps packets in order: with a rate netem sends each after the one before it, without one jitter reorders them. This
rate is too high to matter: 12 ns a frame."""
REMEDY = ("qdisc kind is unknown", "modprobe sch_netem sch_tbf, or install the kernel's package that has them")
_GONE = ("Invalid handle", "Cannot find", "handle of zero", "No such file", "does not exist")
_TICK_S = 2.2e-6
"""tc converts a burst to microseconds at its rate, and prints a queue in them."""


@dataclass(frozen=True)
class Qdisc:
    """Queueing discipline, to be set or read by ``tc -s qdisc show``; None: not of this kind, or not reported."""

    kind: str
    handle: str
    """``0:`` where the kernel made it by itself."""
    root: bool
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    rate_bps: float | None = None
    burst: float | None = None
    limit: float | None = None
    """Packets for netem, bytes for tbf."""

    def argv(self, interface: str) -> tuple[str, ...]:
        """Build the command that sets it: as the root, or beneath our root."""
        above = ("root",) if self.root else ("parent", f"{HANDLES[0]}1")
        if self.kind == TBF:
            words = ["rate", f"{round(self.rate_bps or 0)}bit", "burst", str(self.burst), "limit", str(self.limit)]
        else:
            words = ["limit", str(self.limit)]
            words += ["delay", _microseconds(self.delay_s)] if self.delay_s else []
            words += [_microseconds(self.jitter_s)] if self.jitter_s else []
            words += ["loss", "random", f"{100 * self.loss:.10g}%"] if self.loss else []
            words += IN_ORDER
        return ("tc", "qdisc", "add", "dev", interface, *above, "handle", self.handle, self.kind, *words)


def parts(wan: Wan, mtu: int) -> tuple[Qdisc, ...]:
    """Build the qdiscs for one direction of the line; DutError for what tbf cannot do.

    netem has half the delay, the jitter and the loss; tbf the rate and the queue. mtu: of the interface.
    """
    qdiscs: list[Qdisc] = []
    if wan.delay_s or wan.loss:
        # holds all that is in flight and queued even if all frames are the smallest; netem's own default is 1000
        size = (wan.rate_bps or FASTEST_BPS) / 8 * (wan.delay_s / 2 + wan.jitter_s) + (wan.queue_bytes or 0)
        limit = min(max(math.ceil(size / SMALLEST_FRAME), LEAST_PACKETS), MOST_PACKETS)
        qdiscs.append(Qdisc(NETEM, HANDLES[0], True, wan.delay_s / 2, wan.jitter_s, wan.loss, limit=limit))
    if wan.rate_bps is not None and wan.queue_bytes is not None:
        if wan.queue_bytes > MOST_BYTES:
            most = format_size(MOST_BYTES)
            raise DutError(f"tbf's queue is {most} at most, not {format_size(wan.queue_bytes)}", "reduce it")
        # two of the largest frames at least: tbf drops what is larger than its burst
        burst = max(round(wan.rate_bps / 8 * BURST_S), 2 * (mtu + LARGEST_TAGS))
        handle = HANDLES[len(qdiscs)]
        qdiscs.append(Qdisc(TBF, handle, not qdiscs, rate_bps=wan.rate_bps, burst=burst, limit=wan.queue_bytes))
    return tuple(qdiscs)


def _microseconds(seconds: float) -> str:
    return f"{round(1e6 * seconds, 3):.12g}us"


def commands(wan: Wan, interface: str, mtu: int) -> tuple[Command, ...]:
    """Commands that set the line's direction out of this interface."""
    why = f"one direction of a WAN of {wan}"
    return tuple(Command(qdisc.argv(interface), why, remedy=REMEDY) for qdisc in parts(wan, mtu))


def removal(interface: str) -> Command:
    """Command that removes our root only: another has another handle."""
    why = "the kernel puts its own back"
    return Command(("tc", "qdisc", "del", "dev", interface, "root", "handle", HANDLES[0]), why, fine_if=_GONE)


def foreign(found: Sequence[Qdisc]) -> Qdisc | None:
    """Find a root qdisc that somebody has set, who would lose it; None where it is the kernel's own."""
    return next((qdisc for qdisc in found if qdisc.root and qdisc.handle != "0:"), None)


def deviations(wan: Wan, mtu: int, found: Sequence[Qdisc]) -> Iterator[str]:
    """Yield what was read back and differs from the line, in words."""
    wanted, there = parts(wan, mtu), [qdisc for qdisc in found if qdisc.handle in HANDLES]
    kinds, others = ([qdisc.kind for qdisc in qdiscs] for qdiscs in (wanted, there))
    if kinds != others:
        yield f"{' and '.join(others) or 'nothing'} in place of {' and '.join(kinds)}"
        return
    for own, read in zip(wanted, there, strict=True):
        for what, had, want, tolerance, shown in _comparisons(own, read):
            if had is None or abs(had - want) > tolerance:
                yield f"{what} {'none' if had is None else shown(had)} in place of {shown(want)}"
        if read.rate_bps is None and own.kind == NETEM:
            yield "no rate, which keeps packets in order"


def _comparisons(own: Qdisc, read: Qdisc) -> Iterator[tuple[str, float | None, float, float, Callable[[float], str]]]:
    """Yield each setting's name, value read, value wanted, tolerance and formatter."""
    limit = own.limit or 0
    if own.kind == NETEM:  # tc prints its settings to a microsecond and a millionth
        yield "delay", read.delay_s, own.delay_s, 2e-6, format_time
        yield "jitter", read.jitter_s, own.jitter_s, 2e-6, format_time
        yield "loss", read.loss, own.loss, 2e-6, format_share
        yield "limit", read.limit, limit, 0, str
        return
    rate = own.rate_bps or 0.0
    tick_bytes = 2 + _TICK_S * rate / 8
    yield "rate", read.rate_bps, rate, 8 + 1e-6 * rate, format_bits
    yield "burst", read.burst, own.burst or 0, tick_bytes, format_size
    yield "queue", read.limit, limit, tick_bytes, format_size


def parse_qdiscs(text: str) -> tuple[Qdisc, ...]:
    """Parse ``tc -j -s qdisc show dev D``."""
    return tuple(map(_qdisc, parse_json(text, "tc qdisc")))


def _qdisc(entry: Mapping[str, Any]) -> Qdisc:
    # delays are in seconds, rates in bytes/s, a queue is in bytes or microseconds
    options = mapping_at(entry, "options")
    delay, loss = mapping_at(options, "delay"), mapping_at(options, "loss-random")
    rate = _number(mapping_at(options, "rate").get("rate", options.get("rate")))
    burst, limit = _number(options.get("burst")), _number(options.get("limit"))
    wait_us = _number(options.get("lat"))
    if limit is None and wait_us is not None and rate and burst is not None:
        limit = rate * wait_us / 1e6 + burst
    return Qdisc(
        str(entry.get("kind")),
        str(entry.get("handle")),
        entry.get("root") is True,
        _number(delay.get("delay")) or 0.0,
        _number(delay.get("jitter")) or 0.0,
        _number(loss.get("loss")) or 0.0,
        None if rate is None else 8 * rate,
        burst,
        limit,
    )


def _number(value: Any) -> float | None:
    plausible = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18
    return value if plausible else None
