"""Locate lost frames: reconcile the tester's loss in each direction with the DUT's own counters. Pure.

A direction has three stretches: up to the DUT's receive counter, through the DUT, and from its transmit counter on.
Drop counters are assigned to the stretches that they can belong to, and never to more frames than were lost there; the
rest is reported by stretch, or is unexplained if no counters bound it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..load.plan import Direction
from ..units import format_share
from ..verdict.parts import RunWarning
from .telemetry import DropCount, Observation

FEW = 10
"""So few lost frames may have any cause."""
STRAY = 0.001
"""A DUT's counters may exceed the tester's by this share, or by FEW: neighbour discovery, link-layer protocols."""
WRAP = 2**32
"""Value at which counters of 32 bits begin anew."""
NAMED, ENOUGH = 3, 0.9
"""Most places that the sentence names, and the share of the loss that is enough to name."""

BEFORE, INSIDE, AFTER, SOMEWHERE = "before", "inside", "after", "somewhere"
"""The stretches; somewhere: in any of those that no counter separates."""

_RX = re.compile(r"rx|(?<![a-z])(?:i?miss|ierr|idrop|iqdrop|in(?=put|[^a-z]|$)|receive)|^drops$")
_TX = re.compile(r"tx|(?<![a-z])(?:oerr|odrop|oqdrop|out(?=put|[^a-z]|$)|coll|transmit)|^drop$")
"""Patterns for the end of an interface that a counter's name is about. VPP's ``drops`` are received frames, ``Drop`` of
FreeBSD's ``netstat -d`` frames to be sent."""

Segment = tuple[Direction, str]
"""One stretch of one direction."""
Tiers = tuple[tuple[Segment, ...], ...]
Key = tuple[str, int | None, int | None]


@dataclass(frozen=True)
class LossPlace:
    """Frames whose loss one counter, or one stretch, accounts for."""

    what: str  # the place in words
    kind: str
    """``counter``; or a stretch in which no counter accounts for them: ``before`` the DUT counted them as received,
    ``inside`` it, ``after`` it counted them as sent; ``somewhere``: not known where."""
    frames: int  # lost there
    share: float  # of all lost frames
    directions: tuple[str, ...]  # as ``0->1``
    counter: str | None = None  # its name by the DUT, or ``ierrors of the tester``; None: no counter
    port: int | None = None  # of the tester, which the counter's interface faces; None: no counter, or the whole DUT's
    queue: int | None = None  # the interface's receive queue; None: the whole interface


@dataclass(frozen=True)
class LossReport:
    """All lost frames of a run, by place."""

    sent: int  # frames of the run
    lost: int  # frames of these
    places: tuple[LossPlace, ...]  # largest first; their frames sum to ``lost``
    sentence: str  # the largest places in words
    warnings: tuple[RunWarning, ...] = ()  # about counters that do not fit one another; also in the document's


@dataclass
class _Claim:
    """A drop counter's frames, and where they can have been lost."""

    drop: DropCount
    tiers: Tiers
    """The likeliest first."""
    placed: Counter[Segment] = field(default_factory=Counter)

    @property
    def frames(self) -> int:
        return sum(self.placed.values())


def locate(
    before: Observation,
    after: Observation,
    lost: Mapping[Direction, int],
    sent: Mapping[Direction, int],
    tester_errors: Mapping[int, int] | None = None,
) -> LossReport:
    """Locate lost frames between two observations made in silence, before the first and after the last frame.

    lost, sent: frames by direction. tester_errors: by port, frames that came back and the tester lost (ierrors).
    """
    warnings: list[RunWarning] = []
    unassigned: dict[Segment, int] = {}
    for direction, count in lost.items():
        if count < 0:
            text = f"{direction}: {-count} more frames came back than were sent: something else sends to the tester"
            warnings.append(RunWarning("loss-foreign", text))
        stretches, more = _stretches(before, after, direction, sent[direction], count)
        unassigned |= {(direction, stretch): frames for stretch, frames in stretches.items()}
        warnings += more
    total = sum(max(0, count) for count in lost.values())
    drops, set_back = _new_drops(before, after, total)
    claims = [_Claim(drop, _tiers(drop, list(lost))) for drop in drops]
    for port, count in (tester_errors or {}).items():
        if count > 0:
            back = [direction for direction in lost if direction.rx == port]
            tiers = tuple(tuple((direction, stretch) for direction in back) for stretch in (AFTER, SOMEWHERE))
            claims.append(_Claim(DropCount("ierrors of the tester", count, port), tiers))
    _assign(claims, unassigned)
    places = sorted(_places(claims, unassigned, total), key=lambda place: (-place.frames, place.what))
    sentence = _sentence(places, total, sum(sent.values()))
    return LossReport(sum(sent.values()), total, tuple(places), sentence, (*warnings, *set_back, *_excesses(claims)))


def _stretches(
    before: Observation, after: Observation, direction: Direction, sent: int, lost: int
) -> tuple[dict[str, int], list[RunWarning]]:
    """Return the frames lost on each stretch of a direction, which sum to its loss; and warnings about counters."""
    got, received = passed(before, after, direction.tx, "rx_packets"), sent - lost
    gone = passed(before, after, direction.rx, "tx_packets")
    warnings = [
        RunWarning("loss-set-back", f"{words} of the DUT's interface that faces port {port} went back: left out")
        for words, port, count in (("rx_packets", direction.tx, got), ("tx_packets", direction.rx, gone))
        if count is not None and count < 0
    ]
    got, gone = (None if count is None or count < 0 else count for count in (got, gone))
    stretches: dict[str, int]
    if got is not None and gone is not None:
        stretches = {BEFORE: sent - got, INSIDE: got - gone, AFTER: gone - received}
    elif got is not None:
        stretches = {BEFORE: sent - got, SOMEWHERE: got - received}
    elif gone is not None:
        stretches = {SOMEWHERE: sent - gone, AFTER: gone - received}
    else:
        stretches = {SOMEWHERE: lost}
    if len(stretches) > 1 and min(stretches.values()) < -max(FEW, STRAY * sent):
        arrived, left = ("an unknown number" if count is None else str(count) for count in (got, gone))
        counts = f"{sent} sent, {arrived} received by the DUT, {left} sent by the DUT, {received} returned"
        text = f"{direction}: the DUT's counters of frames do not fit the tester's ({counts}): left out"
        warnings.append(RunWarning("loss-contradiction", text))
        stretches = {SOMEWHERE: lost}
    parts = [max(0, count) for count in stretches.values()]
    return dict(zip(stretches, _split(min(max(0, lost), sum(parts)), parts), strict=True)), warnings


def passed(before: Observation, after: Observation, port: int, name: str) -> int | None:
    """Count frames by an interface's counter; negative if it went back, None if it is not there.

    name: a field of PortCount. port: the tester's, which the interface faces.
    """
    then, now = (
        next((getattr(count, name) for count in observation.ports if count.port == port), None)
        for observation in (before, after)
    )
    return None if then is None or now is None else int(now - then)


def _new_drops(before: Observation, after: Observation, lost: int) -> tuple[list[DropCount], list[RunWarning]]:
    """Return by how much drop counters rose, and warnings. One that was not there before began at 0, as VPP's do.

    One that went back is taken for a counter of 32 bits (i40e's, conntrack's) that has wrapped around, if it then did
    not rise by more frames than were lost; else it began anew.
    """
    then, now = _sums(before), _sums(after)
    rises, warnings = [], []
    for key, count in now.items():
        rise = count - then.get(key, 0)
        if rise < 0 and rise + WRAP <= lost and then[key] < WRAP:
            rise += WRAP
        if rise < 0:
            text = f"{_name(*key)} went back from {then[key]} to {count}: left out"
            warnings.append(RunWarning("loss-set-back", text))
        elif rise:
            rises.append(DropCount(key[0], rise, *key[1:]))
    for key, count in then.items():
        if count and key not in now:
            warnings.append(RunWarning("loss-set-back", f"{_name(*key)} is no longer reported: left out"))
    added = [_name(*key) for key, count in now.items() if count and key not in then]
    if added and not {*before.missing} <= {*after.missing}:  # what is never read hid nothing
        text = f"{', '.join(added)}: not reported before, when not everything could be read: taken as 0 then"
        warnings.append(RunWarning("loss-from-zero", text))
    return rises, warnings


def _sums(observation: Observation) -> Counter[Key]:
    sums: Counter[Key] = Counter()
    for drop in observation.drops:
        sums[drop.name, drop.port, drop.queue] += drop.count
    return sums


def _tiers(drop: DropCount, directions: Sequence[Direction]) -> Tiers:
    """Return where the frames of a drop counter can have been lost, the likeliest first.

    A receive counter may come before the DUT's count of received frames or after it; likewise for sending.
    """
    name = drop.name.lower()
    receives, sends = (bool(pattern.search(name)) for pattern in (_RX, _TX))
    either = drop.port is None or receives == sends
    coming = [d for d in directions if drop.port in (None, d.tx) and (either or receives)]
    going = [d for d in directions if drop.port in (None, d.rx) and (either or sends)]
    both = list(dict.fromkeys([*coming, *going]))
    first, second = (BEFORE, INSIDE) if receives and not either else (INSIDE, BEFORE)
    if not going:
        order = [(coming, first), (coming, second), (coming, SOMEWHERE)]
    else:
        order = [(both, INSIDE), (both, SOMEWHERE), (coming, BEFORE), (going, AFTER)]
    return tuple(tuple((direction, stretch) for direction in ones) for ones, stretch in order)


def _assign(claims: Sequence[_Claim], unassigned: dict[Segment, int]) -> None:
    """Assign lost frames to the claims: those with the fewest choices first, alike ones in proportion."""
    groups: dict[Tiers, list[_Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.tiers, []).append(claim)
    for tiers, group in sorted(groups.items(), key=lambda item: sum(map(len, item[0]))):
        wanted = [claim.drop.count for claim in group]
        most = sum(unassigned.get(segment, 0) for tier in tiers for segment in tier)
        for claim, frames in zip(group, _split(min(most, sum(wanted)), wanted), strict=True):
            for tier in tiers:
                free = [unassigned.get(segment, 0) for segment in tier]
                for segment, taken in zip(tier, _split(min(frames, sum(free)), free), strict=True):
                    if taken:
                        claim.placed[segment] += taken
                        unassigned[segment] -= taken
                        frames -= taken


def _split(amount: int, weights: Sequence[int]) -> list[int]:
    """Split an amount, at most the weights' sum, into whole parts in proportion to them, none above its weight."""
    total = sum(weights)
    if not total:
        return [0 for _ in weights]
    parts = [amount * weight // total for weight in weights]
    rests = sorted(range(len(weights)), key=lambda at: -(amount * weights[at] % total))
    for at in rests[: amount - sum(parts)]:
        parts[at] += 1
    return parts


def _excesses(claims: Sequence[_Claim]) -> Iterator[RunWarning]:
    for claim in claims:
        drop, excess = claim.drop, claim.drop.count - claim.frames
        if excess > max(FEW, STRAY * drop.count):
            known = f"only {claim.frames} of them can be" if claim.frames else "none of them is known to be"
            rose = f"{_name(drop.name, drop.port, drop.queue)} rose by {drop.count}"
            text = f"{rose}, {known} lost frames of the test: other traffic, or frames counted twice"
            yield RunWarning("loss-overclaimed", text)


_STRETCHES = {
    BEFORE: "on the way from port {tx} into the DUT, which did not count them",
    INSIDE: "inside the DUT between port {tx} and port {rx}, in no counter that was read",
    AFTER: "on the way from the DUT, which counted them as sent, to port {rx}",
    SOMEWHERE: "in no counter that was read ({tx}->{rx})",
}


def _places(claims: Sequence[_Claim], unassigned: Mapping[Segment, int], total: int) -> Iterator[LossPlace]:
    for claim in claims:
        if claim.frames:
            drop, ways = claim.drop, tuple(sorted({str(direction) for direction, _ in claim.placed}))
            what, share = _name(drop.name, drop.port, drop.queue), claim.frames / total
            yield LossPlace(what, "counter", claim.frames, share, ways, drop.name, drop.port, drop.queue)
    for (direction, stretch), frames in unassigned.items():
        if frames:
            what = _STRETCHES[stretch].format(tx=direction.tx, rx=direction.rx)
            yield LossPlace(what, stretch, frames, frames / total, (str(direction),))


def _sentence(places: Sequence[LossPlace], lost: int, sent: int) -> str:
    if not lost:
        return "no frame was lost"
    named = [(place.frames, place.what) for place in places]
    if lost <= FEW:
        where = ", ".join(f"{frames} {words}" for frames, words in named)
        return f"only {lost} of {sent} frames {'was' if lost == 1 else 'were'} lost: {where}"
    if sum(frames for frames, _ in named[:NAMED]) < ENOUGH * lost:  # name a counter of several ports and queues once
        groups: dict[str, list[LossPlace]] = {}
        for place in places:
            groups.setdefault(place.counter or place.what, []).append(place)
        named = []
        for name, group in groups.items():
            most, frames = group[0], sum(place.frames for place in group)
            share, where = format_share(most.frames / frames), most.what.removeprefix(name).strip()
            several = f"{name} in {len(group)} places ({share} of it {where})"
            named.append((frames, several if len(group) > 1 else most.what))
        named.sort(key=lambda part: -part[0])
    while len(named) > 1 and (len(named) > NAMED or sum(frames for frames, _ in named[:-1]) >= ENOUGH * lost):
        named.pop()
    shares = [
        format_share(frames / lost) + (" is " if at else " of the loss is ") + words
        for at, (frames, words) in enumerate(named)
    ]
    text = ", ".join(shares)
    return f"unexplained: {text}" if places[0].kind == SOMEWHERE else text


def _name(name: str, port: int | None, queue: int | None) -> str:
    return name + ("" if port is None else f" on port {port}") + ("" if queue is None else f" queue {queue}")
