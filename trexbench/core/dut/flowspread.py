"""Predict the spread of a profile's flows over a router's queues and workers, before the run. Pure.

A router that uses its workers unevenly is limited by the busiest one: with r frames/s each, the total is r / the
largest share. What the DUT does not report (often the hash's key) is not assumed: shares that need it are unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap

from ..errors import ConfigError
from ..load.headers import find_tuple5
from ..load.profile import Stream
from .rss import FIELDS, MOST_SEEN, PortHash, Spreading, Toeplitz, hashed_of

UNEVEN = 0.02
"""Excess of the busiest worker's load over its fair share up to which the load counts as even."""
MOST_NAMED = 4
"""Most names or sentences of one kind that are shown."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class QueueShare:
    """One receive queue of the DUT's interface that faces the tester's ``port``."""

    port: int  # which sends
    queue: int  # its number, from 0
    worker: str | None  # that serves it: VPP's thread, or a CPU as in ``cpu2``; None: not known
    share: float | None  # of the frames that ``port`` sends; None: not known


@dataclass(frozen=True)
class PortSpread:
    """Traffic of one port."""

    port: int  # the tester's, which sends
    flows: int | None  # distinct inputs of the hash; None if only a sample was taken, or nothing is known
    reason: str = ""  # why its queues have no share; empty: they have

    @property
    def exact(self) -> bool:
        """True if all packets of the profile were followed, not a sample."""
        return self.flows is not None


@dataclass(frozen=True)
class WorkerShare:
    """One worker that forwards."""

    worker: str  # VPP's thread, or a CPU as in ``cpu2``
    share: float | None  # of all frames; None: not known


@dataclass(frozen=True)
class FlowSpread:
    """A prediction, in which every sending port offers the same rate."""

    ports: tuple[PortSpread, ...] = ()
    queues: tuple[QueueShare, ...] = ()
    workers: tuple[WorkerShare, ...] = ()  # all of them have a share, or none has
    sentences: tuple[str, ...] = ()  # consequences, in words

    def of(self, port: int) -> tuple[QueueShare, ...]:
        return tuple(queue for queue in self.queues if queue.port == port)

    @property
    def busiest(self) -> float | None:
        """The largest share of a worker; None: not known."""
        return max((load.share for load in self.workers if load.share is not None), default=None)

    @property
    def ceiling(self) -> float | None:
        """The total that the router can carry, in units of what one worker carries; None: not known."""
        return 1 / self.busiest if self.busiest else None


def predict(
    spreading: Spreading,
    streams: Mapping[int, Sequence[Stream]],
    ports: Sequence[int],
    workers: Sequence[str] = (),
) -> FlowSpread:
    """Predict the share of each queue and worker in the frames that these ports of the tester send.

    streams: by port. workers: all that forward, if known; those that serve a queue are added.
    """
    followed = [_follow(spreading, port, streams.get(port, ())) for port in ports]
    queues = tuple(queue for _, mine in followed for queue in mine)
    spread = FlowSpread(tuple(port for port, _ in followed), queues)
    if not ports:
        return spread
    names = [place.worker for place in spreading.queues if place.worker is not None]
    loads = [_worker_shares(spread.of(port)) for port in ports]
    known = [load for load in loads if load is not None]
    shares = {
        worker: sum(load.get(worker, 0.0) for load in known) / len(known) if known == loads else None
        for worker in dict.fromkeys([*workers, *names])
    }
    spread = replace(spread, workers=tuple(starmap(WorkerShare, shares.items())))
    sentences = (*_queues_used(spread), *_sharing(spread), *_balance(spread), *_unknowns(spread))
    return replace(spread, sentences=sentences)


def _worker_shares(queues: Sequence[QueueShare]) -> dict[str, float] | None:
    """Return each worker's share of a port's frames; None if that is not known."""
    used = [queue for queue in queues if queue.share != 0]
    servers = {queue.worker for queue in used if queue.worker is not None}
    if not used or None in {queue.worker for queue in used}:
        return None
    if len(servers) == 1:
        return {servers.pop(): 1.0}
    if None in {queue.share for queue in used}:
        return None
    return {worker: sum(queue.share or 0.0 for queue in used if queue.worker == worker) for worker in servers}


def _follow(spreading: Spreading, port: int, streams: Sequence[Stream]) -> tuple[PortSpread, list[QueueShare]]:
    places = {place.queue: place.worker for place in spreading.queues if place.port == port}
    hashing = next((one for one in spreading.hashes if one.port == port), PortHash(port, None))
    flows, shares, reason = None, None, ""
    try:
        inputs, exact, fields_known = _inputs(streams, hashing)
        flows = len(inputs) if exact else None
        shares = _shares(hashing, inputs, sorted(places), fields_known)
    except ConfigError as error:
        reason = f"the profile cannot be followed: {error}"
    except ValueError as error:
        reason = str(error)
    mine = [
        QueueShare(port, queue, places.get(queue), None if shares is None else shares.get(queue, 0.0))
        for queue in sorted({*places, *(shares or ())})
    ]
    return PortSpread(port, flows, reason), mine


def _inputs(streams: Sequence[Stream], hashing: PortHash) -> tuple[dict[bytes, float], bool, bool]:
    """Return the share of each input of the hash; whether all packets were followed; whether all fields are known."""
    if not streams:
        raise ConfigError("it has no streams", "name what this port sends")
    shares: dict[bytes, float] = {}
    total, whole, known = sum(stream.pps for stream in streams), True, True
    for stream in streams:
        fields = hashing.fields_of(find_tuple5(stream.packet).version)
        inputs, exact = hashed_of(stream.packet, stream.instructions, fields or FIELDS, stream.cache)
        whole, known = whole and exact, known and bool(fields)
        for data, count in Counter(inputs).items():
            shares[data] = shares.get(data, 0.0) + stream.pps / total * count / len(inputs)
    return shares, whole, known


def _shares(
    hashing: PortHash, inputs: Mapping[bytes, float], queues: Sequence[int], fields_known: bool
) -> dict[int, float]:
    """Return the share of each queue; ValueError, with the reason, if the DUT did not report what that needs."""
    if len(queues) == 1:
        return {queues[0]: 1.0}
    if len(set(hashing.table)) == 1 and b"" not in inputs:
        return {hashing.table[0]: 1.0}
    for name, value in (
        ("how its NIC hashes", hashing.key),
        ("which fields its NIC hashes", fields_known),
        ("its NIC's table of queues", hashing.table),
    ):
        if not value:
            raise ValueError(hashing.reason or f"the DUT does not say {name}")
    try:
        key = bytes.fromhex((hashing.key or "").replace(":", ""))
    except ValueError:
        raise ValueError(f"the key {(hashing.key or '')[:20]!r} is not a hexadecimal number") from None
    toeplitz, shares = Toeplitz(key), dict.fromkeys(queues, 0.0)
    for data, share in inputs.items():
        queue = hashing.table[toeplitz.hash(data) % len(hashing.table)] if data else 0
        shares[queue] = shares.get(queue, 0.0) + share
    return shares


def _queues_used(spread: FlowSpread) -> Iterator[str]:
    """Yield sentences on ports of which not all queues are used."""
    for port in spread.ports:
        mine = spread.of(port.port)
        used = [f"queue {queue.queue} ({_worker(queue)})" for queue in mine if queue.share]
        flows = "its flows" if port.flows is None else f"{port.flows} flows" if port.flows != 1 else "one flow"
        if len(mine) == 1:
            yield f"port {port.port} has one queue: {_worker(mine[0])} serves it alone"
        elif used and len(used) < len(mine):
            count = "one queue of {} is" if len(used) == 1 else f"{len(used)} queues of {{}} are"
            yield f"port {port.port}: {flows}: {count.format(len(mine))} used, {_listed(used)}"
        elif mine and port.flows == 1:
            yield f"port {port.port}: one flow: one queue of {len(mine)} is used, whichever that is"


def _sharing(spread: FlowSpread) -> Iterator[str]:
    """Yield sentences on workers that serve several queues, all of which may get frames."""
    shared = []
    for worker in dict.fromkeys(queue.worker for queue in spread.queues if queue.worker is not None):
        mine = [queue for queue in spread.queues if queue.worker == worker and queue.share != 0]
        if len(mine) > 1:
            ports = len({queue.port for queue in mine})
            ends = {1: "", 2: ": one core for both directions"}.get(ports, f": one core for {ports} directions")
            names = [f"port {queue.port} queue {queue.queue}" for queue in mine]
            shared.append(f"{_listed(names)} share {worker}{ends}")
    yield from shared[:MOST_NAMED]
    if len(shared) > MOST_NAMED:
        yield f"{len(shared) - MOST_NAMED} more workers serve several queues each"


def _balance(spread: FlowSpread) -> Iterator[str]:
    if spread.busiest is None or spread.ceiling is None:
        return
    total = f"the total is at most {spread.ceiling:.2f} x what one worker carries"
    count, top = len(spread.workers), spread.busiest
    first = [load.worker for load in spread.workers if (load.share or 0.0) > top - _ROUNDING]
    if top - 1 / count > UNEVEN:
        gets = f"{_listed(first)} get{'s' if len(first) == 1 else ''} {100 * top:.0f} % of the load"
        each = " each" if len(first) > 1 else ""
        yield f"{gets}{each}: all {count} workers are busy only up to {100 * (1 / (count * top)):.0f} %, {total}"
    else:
        yield f"the load is spread evenly over {count} worker{'s' if count > 1 else ''}: {total}"
    idle = [load.worker for load in spread.workers if load.share == 0]
    if idle:
        names = idle if len(idle) <= MOST_NAMED else [*idle[:MOST_NAMED], f"{len(idle) - MOST_NAMED} more"]
        yield f"{_listed(names)} get{'s' if len(idle) == 1 else ''} no frames"


def _unknowns(spread: FlowSpread) -> Iterator[str]:
    for port in spread.ports:
        mine = spread.of(port.port)
        if port.reason:
            what = f"what each of its {len(mine)} queues gets" if mine else "what queues it has"
            yield f"port {port.port}: not known {what}: {port.reason}"
        unplaced = [queue for queue in mine if queue.worker is None and queue.share != 0]
        if unplaced:
            names = _listed([f"queue {queue.queue}" for queue in unplaced])
            yield f"port {port.port}: not known which worker serves {names}"
        if not port.exact and not port.reason:
            yield f"port {port.port}: predicted from {MOST_SEEN} packets, since the profile has too many flows"


def _worker(queue: QueueShare) -> str:
    return queue.worker or "a worker that is not known"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
