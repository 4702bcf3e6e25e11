"""Counters of latency streams: assigns slots to streams, and reads the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..engine import FCS_BYTES, EngineError, LatencyTotals, StreamSpec
from .port import KernelPort
from .xdp_latency import SLOTS, LatencyWord, Mark, buckets, lines_of
from .xdp_layout import StreamWord
from .xdp_plan import PortPlan, StreamPlan

_ALL_ONES = (1 << 64) - 1


class Timing:
    """Hands out slots, each time with a new generation, so that late frames of an earlier start are not counted."""

    def __init__(self) -> None:
        self._generations = [0] * SLOTS

    def reserve(self, port: int, specs: Sequence[StreamSpec], ports: Sequence[KernelPort]) -> dict[int, Mark]:
        """Mark of each latency stream that ``port`` is to send, by pg_id; EngineError if there are too many.

        Slots of silent ports are given away once no others are left.
        """
        wanted = [spec.pg_id for spec in specs if spec.pg_id is not None]
        silent: list[int] = []
        busy: list[int] = []
        for number, state in enumerate(ports):
            if number != port:
                held = busy if state.busy else silent
                held.extend(mark.slot for _, mark, _ in _timed(state.plan))
        slots = [*(slot for slot in range(SLOTS) if slot not in busy and slot not in silent), *silent]
        if len(wanted) > len(slots):
            raise EngineError(f"{len(wanted)} latency streams and {len(busy)} on other ports: {SLOTS} can be timed")
        marks = (Mark(slot, self._generations[slot] + 1 & 0xFF) for slot in slots)
        return dict(zip(wanted, marks, strict=False))

    def activate(self, plan: PortPlan, former: PortPlan | None, ports: Sequence[KernelPort]) -> None:
        """Count the frames of this plan's marks from zero, and no longer those of the former plan's."""
        for state in ports:
            for _, mark, _ in _timed(former):
                if state.timed.words[mark.slot] == mark.control:
                    state.timed.words[mark.slot] = 0
        fresh = [(mark, state) for _, mark, _ in _timed(plan) for state in ports]
        for mark, state in fresh:
            self._generations[mark.slot] = mark.generation
            state.timed.words[mark.slot] = 0
        for mark, state in fresh:  # a receiver that was booking a late frame has finished by now
            lines = lines_of(mark.slot, state.cpus)
            zeroes = memoryview(bytes(8 * len(lines) * LatencyWord.WORDS)).cast("Q")
            state.timed.words[lines.start : lines.stop] = zeroes
            state.timed.words[mark.slot] = mark.control


def totals(port: int, ports: Sequence[KernelPort], partner: int | None = None) -> Mapping[int, LatencyTotals]:
    """Totals by pg_id of the latency streams in the port's plan; their frames are expected at ``partner``."""
    state, expected_at = ports[port], port if partner is None else partner
    by_group: dict[int, LatencyTotals] = {}
    for pg_id, mark, stream in _timed(state.plan):
        sent = int(state.memory.words[stream.word(StreamWord.SENT)])
        size = len(stream.frames.packet) + FCS_BYTES
        by_group[pg_id] = _add_received(LatencyTotals(sent, sent * size, rx_port=expected_at), mark, ports)
    return by_group


def _timed(plan: PortPlan | None) -> Iterator[tuple[int, Mark, StreamPlan]]:
    for stream in plan.streams if plan else ():
        if stream.mark is not None and stream.spec.pg_id is not None:
            yield stream.spec.pg_id, stream.mark, stream


def _add_received(sent: LatencyTotals, mark: Mark, ports: Sequence[KernelPort]) -> LatencyTotals:
    """Add what all ports and CPUs have received, and name the port that received most."""
    by_port: Counter[int] = Counter()
    lines: list[list[int]] = []
    for number, state in enumerate(ports):
        if state.timed.words[mark.slot] != mark.control:
            continue
        for first in lines_of(mark.slot, state.cpus):
            line = state.timed.words[first : first + LatencyWord.WORDS].tolist()
            if line[LatencyWord.RECEIVED]:
                lines.append(line)
                by_port[number] += line[LatencyWord.RECEIVED]
    if not lines:
        return sent
    total, most = [sum(words) for words in zip(*lines, strict=True)], [max(words) for words in zip(*lines, strict=True)]
    received = total[LatencyWord.RECEIVED]
    twice = sum(line[LatencyWord.BEHIND_OR_TWICE] >> 32 for line in lines)
    return replace(
        sent,
        rx_port=by_port.most_common(1)[0][0],
        received=received,
        received_bytes=total[LatencyWord.BYTES],
        sum_s=total[LatencyWord.SUM] / 1e9,
        min_s=(_ALL_ONES - most[LatencyWord.LEAST_INVERTED]) / 1e9,
        max_s=most[LatencyWord.MOST] / 1e9,
        histogram=dict(buckets(total)),
        out_of_order=sum(line[LatencyWord.BEHIND_OR_TWICE] & 0xFFFFFFFF for line in lines),
        missing=max(0, most[LatencyWord.HIGHEST] - (received - twice)),
        jitter_s=sum(line[LatencyWord.JITTER_16] * line[LatencyWord.RECEIVED] for line in lines) / 16e9 / received,
        duplicate=twice,
    )
