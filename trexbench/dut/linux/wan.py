"""A WAN by the kernel's own queueing, pure: netem delays and loses, tbf beneath it sets the rate; what tc prints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import DutError
from ...core.tcp.wan import Wan, format_size
from ...core.units import format_bits, format_share, format_time
from ...host.linux import WAN_HANDLE, parse_json
from ..model import Command
from .parse import mapping_at

NETEM, TBF = "netem", "tbf"
HANDLES = (WAN_HANDLE, "7b1:")
"""Handles of our root, and of what is beneath it."""
BURST_S = 0.004
"""Burst that tbf passes at once, as time at its rate: 5 MB at 10 Gbit/s."""
LARGEST_TAGS = 22
"""Bytes of Ethernet's header with two VLAN tags."""
SMALLEST_FRAME, LEAST_PACKETS = 60, 1000
FASTEST_BPS = 100e9
"""Where no rate is stated: what netem has to hold at most, which is no more than what is on its way."""
LONGEST_JITTER_S, MOST_BYTES, MOST_PACKETS = 2.147, 2**32 - 1, 2**32 - 1
"""Limits of netem and tbf."""
IN_ORDER = ("rate", "1tbit")
"""netem sends by the instants that it has drawn, so that jitter changes the order; with a rate each packet is sent
after the one before it. This one is too fast to be felt: 12 ns a frame."""
REMEDY = ("qdisc kind is unknown", "modprobe sch_netem sch_tbf, or install the kernel's package that has them")
_GONE = ("Invalid handle", "Cannot find", "handle of zero", "No such file", "does not exist")
_TICK_S = 2.2e-6
"""tc counts a burst in microseconds at its rate, and tells a queue in such."""


@dataclass(frozen=True)
class QdiscSpec:
    """A queueing discipline as it is set. parent: ``root``, or the class above it. words: its own, after its kind."""

    kind: str
    parent: tuple[str, ...]
    handle: str
    words: tuple[str, ...]

    def argv(self, interface: str) -> tuple[str, ...]:
        return ("tc", "qdisc", "add", "dev", interface, *self.parent, "handle", self.handle, self.kind, *self.words)


@dataclass(frozen=True)
class Qdisc:
    """One entry of ``tc -s qdisc show``; None: not of this kind, or not reported.

    handle: ``0:`` where the kernel made it by itself. limit: packets of netem, bytes of tbf.
    """

    kind: str
    handle: str
    root: bool
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    rate_bps: float | None = None
    burst: float | None = None
    limit: float | None = None


def parts(wan: Wan, mtu: int) -> tuple[QdiscSpec, ...]:
    """Qdiscs for one direction of the line on an interface of this MTU. DutError for what netem or tbf cannot do."""
    found = list[QdiscSpec]()
    for kind, words in ((NETEM, _netem(wan)), (TBF, _tbf(wan, mtu))):
        if words:
            above = HANDLES[len(found) - 1]
            found.append(QdiscSpec(kind, ("parent", f"{above}1") if found else ("root",), HANDLES[len(found)], words))
    return tuple(found)


def _netem(wan: Wan) -> tuple[str, ...]:
    """Half the delay, and its jitter and loss; nothing where there are none."""
    if not wan.delay_s and not wan.loss:
        return ()
    words = ["limit", str(_held_packets(wan))]
    if wan.delay_s:
        words += ["delay", _microseconds(wan.delay_s / 2)]
    if wan.jitter_s:
        if wan.jitter_s > LONGEST_JITTER_S:
            raise DutError(f"netem's jitter is {LONGEST_JITTER_S:g} s at most, not {wan.jitter_s:g} s", "take less")
        words.append(_microseconds(wan.jitter_s))
    if wan.loss:
        words += ["loss", "random", f"{100 * wan.loss:.10g}%"]
    return (*words, *IN_ORDER)


def _held_packets(wan: Wan) -> int:
    """All that is on its way and in the queue, if it were of the smallest frames; netem's own default is 1000."""
    at_bps = wan.rate_bps or FASTEST_BPS
    size = at_bps / 8 * (wan.delay_s / 2 + wan.jitter_s) + (wan.queue_bytes or 0)
    return min(max(math.ceil(size / SMALLEST_FRAME), LEAST_PACKETS), MOST_PACKETS)


def _tbf(wan: Wan, mtu: int) -> tuple[str, ...]:
    """The rate, and what waits for it; nothing where there is none."""
    if wan.rate_bps is None or wan.queue_bytes is None:
        return ()
    burst = _burst(wan.rate_bps, mtu)
    if wan.queue_bytes > MOST_BYTES:
        raise DutError(f"tbf's queue is {format_size(MOST_BYTES)} at most, not {format_size(wan.queue_bytes)}", "less")
    return ("rate", f"{round(wan.rate_bps)}bit", "burst", str(burst), "limit", str(wan.queue_bytes))


def _burst(rate_bps: float, mtu: int) -> int:
    """BURST_S, and two of the largest frames at least: tbf drops what is larger than its burst."""
    return max(round(rate_bps / 8 * BURST_S), 2 * (mtu + LARGEST_TAGS))


def _microseconds(seconds: float) -> str:
    return f"{round(1e6 * seconds, 3):.12g}us"


def commands(wan: Wan, interface: str, mtu: int) -> tuple[Command, ...]:
    """Commands that set the line's direction out of this interface."""
    why = f"one direction of a WAN of {wan}"
    return tuple(Command(one.argv(interface), why, remedy=REMEDY) for one in parts(wan, mtu))


def removal(interface: str) -> Command:
    """Command that removes ours alone: another root has another handle."""
    why = "the kernel puts its own back"
    return Command(("tc", "qdisc", "del", "dev", interface, "root", "handle", HANDLES[0]), why, fine_if=_GONE)


def ours(found: Sequence[Qdisc]) -> tuple[Qdisc, ...]:
    """Qdiscs of a line, the root first."""
    return tuple(one for one in found if one.handle in HANDLES)


def foreign(found: Sequence[Qdisc]) -> Qdisc | None:
    """The root that somebody has set, who would lose it; None: it is the kernel's own."""
    return next((one for one in found if one.root and one.handle != "0:"), None)


def deviations(wan: Wan, mtu: int, found: Sequence[Qdisc]) -> Iterator[str]:
    """Yield what was read back and differs from the line; nothing where all is as it was set."""
    wanted, there = (tuple(one.kind for one in each) for each in (parts(wan, mtu), ours(found)))
    if wanted != there:
        yield f"{' and '.join(there) or 'nothing'} in place of {' and '.join(wanted)}"
        return
    for one in ours(found):
        yield from _off_netem(wan, one) if one.kind == NETEM else _off_tbf(wan, mtu, one)


def _off_netem(wan: Wan, found: Qdisc) -> Iterator[str]:
    """To a microsecond and a millionth, which is all that tc prints."""
    if abs(found.delay_s - wan.delay_s / 2) > 2e-6:
        yield f"delay {format_time(found.delay_s)} in place of {format_time(wan.delay_s / 2)}"
    if abs(found.jitter_s - wan.jitter_s) > 2e-6:
        yield f"jitter {format_time(found.jitter_s)} in place of {format_time(wan.jitter_s)}"
    if abs(found.loss - wan.loss) > 2e-6:
        yield f"loss {format_share(found.loss)} in place of {format_share(wan.loss)}"
    if found.limit != _held_packets(wan):
        yield f"limit {found.limit} in place of {_held_packets(wan)}"
    if found.rate_bps is None:
        yield "no rate, which keeps packets in order"


def _off_tbf(wan: Wan, mtu: int, found: Qdisc) -> Iterator[str]:
    rate, queue = wan.rate_bps or 0.0, wan.queue_bytes or 0
    if found.rate_bps is None or abs(found.rate_bps - rate) > 8 + 1e-6 * rate:
        yield f"rate {format_bits(found.rate_bps or 0)} in place of {format_bits(rate)}"
        return
    slack = 2 + _TICK_S * rate / 8
    for what, told, wanted in (("burst", found.burst, _burst(rate, mtu)), ("queue", found.limit, queue)):
        if told is None or abs(told - wanted) > slack:
            yield f"{what} {'none' if told is None else format_size(told)} in place of {format_size(wanted)}"


def parse_qdiscs(text: str) -> tuple[Qdisc, ...]:
    """``tc -j -s qdisc show dev D``: delays in seconds, rates in bytes/s, a queue in bytes or as microseconds."""
    return tuple(_qdisc(entry) for entry in parse_json(text, "tc qdisc"))


def _qdisc(entry: Mapping[str, Any]) -> Qdisc:
    options = mapping_at(entry, "options")
    delay, loss = mapping_at(options, "delay"), mapping_at(options, "loss-random")
    asked = mapping_at(options, "rate").get("rate", options.get("rate"))
    rate, burst, limit = _number(asked), _number(options.get("burst")), _number(options.get("limit"))
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
    """Return a value that may be a counter or a quantity, else None."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18
    return value if good else None
