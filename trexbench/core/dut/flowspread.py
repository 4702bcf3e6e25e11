"""Predicted spread of a profile's flows over a router's queues and workers, calculated before the run.

A router that uses its workers unevenly is limited by the busiest one: with r frames/s each, the total is r / the
largest share. What the DUT does not report (often the hash's key) is not assumed: only what holds for any hash is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import ConfigError
from ..load.headers import find_tuple5
from ..load.profile import Stream
from .queues import PortHash, Spreading
from .rss import FIELDS, MOST_SEEN, Toeplitz, hashed_of

UNEVEN = 0.02
"""Up to this much above its fair share, the busiest worker's load counts as even."""
MOST_NAMED = 4
"""Names or sentences of one kind that are shown at most."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class QueueShare:
    """The share of the frames arriving at ``port`` that one queue gets; None: not known."""

    port: int
    queue: int
    worker: str | None
    share: float | None


@dataclass(frozen=True)
class PortSpread:
    """One port's traffic. flows: distinct inputs of the hash, None where only a sample was taken.

    exact: from all packets of the profile, not from a sample. reason: why the queues have no share.
    """

    port: int
    flows: int | None
    exact: bool
    reason: str = ""


@dataclass(frozen=True)
class WorkerShare:
    """The share of all frames that one worker gets; None: not known."""

    worker: str
    share: float | None


@dataclass(frozen=True)
class FlowSpread:
    """A prediction, in which every sending port offers the same rate.

    busiest: the largest share of a worker, or where some are not known, at least how much the busiest one gets; None:
    not even that. busiest_exact: it is the former. sentences: what follows from it, for people.
    """

    ports: tuple[PortSpread, ...] = ()
    queues: tuple[QueueShare, ...] = ()
    workers: tuple[WorkerShare, ...] = ()
    busiest: float | None = None
    busiest_exact: bool = False
    sentences: tuple[str, ...] = ()

    def of(self, port: int) -> tuple[QueueShare, ...]:
        """The queues of a port."""
        return tuple(queue for queue in self.queues if queue.port == port)

    @property
    def ceiling(self) -> float | None:
        """The total that the router can carry, in units of what one worker carries: exact, or an upper bound."""
        return 1 / self.busiest if self.busiest else None


def predict(
    spreading: Spreading,
    streams: Mapping[int, Sequence[Stream]],
    ports: Sequence[int],
    workers: Sequence[str] = (),
) -> FlowSpread:
    """The share of each queue and worker in the frames that these ports of the tester send.

    streams: by port. workers: all that forward, where known; those that serve a queue are added.
    """
    found = [_port(spreading, port, streams.get(port, ())) for port in ports]
    queues = tuple(queue for _, shares in found for queue in shares)
    spread = FlowSpread(tuple(port for port, _ in found), queues)
    if not ports:
        return spread
    names = [place.worker for place in spreading.queues if place.worker is not None]
    bounds = {worker: _bounds(spread, worker) for worker in dict.fromkeys([*workers, *names])}
    known = {worker: least if most - least < _ROUNDING else None for worker, (least, most) in bounds.items()}
    loads = tuple(WorkerShare(worker, share) for worker, share in known.items())
    busiest, exact = _busiest(spread, loads, bounds)
    spread = replace(spread, workers=loads, busiest=busiest, busiest_exact=exact)
    sentences = (*_of_queues(spread), *_of_sharing(spread), *_of_balance(spread), *_of_unknowns(spread))
    return replace(spread, sentences=sentences)


def _port(spreading: Spreading, port: int, streams: Sequence[Stream]) -> tuple[PortSpread, list[QueueShare]]:
    places = {place.queue: place.worker for place in spreading.queues if place.port == port}
    hashing = next((one for one in spreading.hashes if one.port == port), PortHash(port, None))
    try:
        inputs, exact = _inputs(streams, hashing)
        shares, reason = _shares(hashing, inputs, sorted(places), _all_known(streams, hashing)), ""
    except ConfigError as error:
        inputs, exact, shares, reason = {}, False, None, f"the profile cannot be followed: {error}"
    except _Unknown as error:
        shares, reason = None, str(error)
    mine = [
        QueueShare(port, queue, places.get(queue), None if shares is None else shares.get(queue, 0.0))
        for queue in sorted({*places, *(shares or ())})
    ]
    return PortSpread(port, len(inputs) if exact else None, exact, reason), mine


class _Unknown(Exception):
    """Why the shares of a port's queues are not known."""


def _all_known(streams: Sequence[Stream], hashing: PortHash) -> bool:
    """Test whether the hash's fields are known for every stream's packets."""
    return all(hashing.fields_of(find_tuple5(stream.packet).version) for stream in streams)


def _inputs(streams: Sequence[Stream], hashing: PortHash) -> tuple[dict[bytes, float], bool]:
    """The hash's inputs of a port's frames, with the share of each; and whether they are of all packets."""
    if not streams:
        raise ConfigError("it has no streams", "name what this port sends")
    found: dict[bytes, float] = {}
    total, whole = sum(stream.pps for stream in streams), True
    for stream in streams:
        fields = hashing.fields_of(find_tuple5(stream.packet).version) or FIELDS
        inputs, exact = hashed_of(stream.packet, stream.instructions, fields)
        whole = whole and exact
        for data, count in Counter(inputs).items():
            found[data] = found.get(data, 0.0) + stream.pps / total * count / len(inputs)
    return found, whole


def _shares(
    hashing: PortHash, inputs: Mapping[bytes, float], queues: Sequence[int], fields_known: bool
) -> dict[int, float]:
    """The share of each queue; _Unknown, with the reason, where the DUT did not report what that needs."""
    if len(queues) == 1:
        return {queues[0]: 1.0}
    if len(set(hashing.table)) == 1 and b"" not in inputs:
        return {hashing.table[0]: 1.0}
    if hashing.key is None:
        raise _Unknown(hashing.reason or "the DUT does not say how its NIC hashes")
    for name, value in (("which fields its NIC hashes", fields_known), ("its NIC's table of queues", hashing.table)):
        if not value:
            raise _Unknown(hashing.reason or f"the DUT does not say {name}")
    try:
        toeplitz, found = Toeplitz(bytes.fromhex(hashing.key.replace(":", ""))), dict.fromkeys(queues, 0.0)
    except ValueError:
        raise _Unknown(f"the key {hashing.key[:20]!r} is not a hexadecimal number") from None
    try:
        for data, share in inputs.items():
            queue = hashing.table[toeplitz.hash(data) % len(hashing.table)] if data else 0
            found[queue] = found.get(queue, 0.0) + share
    except ValueError as error:
        raise _Unknown(str(error)) from None
    return found


def _bounds(spread: FlowSpread, worker: str) -> tuple[float, float]:
    """The least and the largest share of the load that one worker may get."""
    ranges = [_range(spread.of(port.port), worker) for port in spread.ports]
    return sum(least for least, _ in ranges) / len(ranges), sum(most for _, most in ranges) / len(ranges)


def _range(queues: Sequence[QueueShare], worker: str) -> tuple[float, float]:
    """Least and largest share of a port's frames that the worker may get; all shares of a port are known, or none."""
    own = [queue for queue in queues if queue.worker == worker]
    unplaced = [queue for queue in queues if queue.worker is None]
    if queues and queues[0].share is not None:
        least = sum(queue.share or 0.0 for queue in own)
        return least, least + sum(queue.share or 0.0 for queue in unplaced)
    if queues and len(own) == len(queues):
        return 1.0, 1.0
    return 0.0, 1.0 if own or unplaced or not queues else 0.0


def _busiest(
    spread: FlowSpread, loads: Sequence[WorkerShare], bounds: Mapping[str, tuple[float, float]]
) -> tuple[float | None, bool]:
    """The largest share of a worker, and whether that is exact; else it is at least so much."""
    known = [load.share for load in loads if load.share is not None]
    if loads and len(known) == len(loads):
        return max(known), True
    found = [0.0, *(least for least, _ in bounds.values())]
    queues = [spread.of(port.port) for port in spread.ports]
    if all(mine and None not in {queue.worker for queue in mine} for mine in queues):
        found.append(1 / sum(most > 0 for _, most in bounds.values()))
        for port, mine in zip(spread.ports, queues, strict=True):
            if port.flows == 1 and mine[0].share is None and len(servers := {queue.worker for queue in mine}) > 1:
                found.append(1 / len(queues) + min(bounds[server or ""][0] for server in servers))
    return max(found) or None, False


def _of_queues(spread: FlowSpread) -> Iterator[str]:
    """Yield sentences on how many queues are used, where not all are."""
    counts = {len(spread.of(port.port)) for port in spread.ports}
    one_flow = len(spread.ports) > 1 and all(port.flows == 1 for port in spread.ports)
    if one_flow and len(counts) == 1 and counts.isdisjoint({0, 1}):
        used = [f"port {q.port} queue {q.queue} ({_worker(q)})" for q in spread.queues if q.share]
        which = _listed(used) if len(used) == len(spread.ports) else "whichever that is"
        yield f"one flow per direction: one queue of {counts.pop()} is used, {which}"
        return
    for port in spread.ports:
        mine = spread.of(port.port)
        used = [f"queue {queue.queue} ({_worker(queue)})" for queue in mine if queue.share]
        flows = "its flows" if port.flows is None else f"{port.flows} flows" if port.flows != 1 else "one flow"
        if len(mine) == 1:
            yield f"port {port.port} has one queue: {_worker(mine[0])} serves it alone"
        elif used and len(used) < len(mine):
            many = "one queue" if len(used) == 1 else f"{len(used)} queues"
            are = "is" if len(used) == 1 else "are"
            yield f"port {port.port}: {flows}: {many} of {len(mine)} {are} used, {_listed(used)}"
        elif mine and port.flows == 1:
            yield f"port {port.port}: one flow: one queue of {len(mine)} is used, whichever that is"


def _of_sharing(spread: FlowSpread) -> Iterator[str]:
    """Workers that serve several queues, all of which may get frames."""
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


def _of_balance(spread: FlowSpread) -> Iterator[str]:
    if spread.busiest is None or spread.ceiling is None:
        return
    total = f"the total is at most {spread.ceiling:.2f} x what one worker carries"
    if not spread.busiest_exact:
        yield f"whatever the hash, the busiest worker gets at least {_percent(spread.busiest)} of the load: {total}"
        return
    count, top = len(spread.workers), spread.busiest
    first = [load.worker for load in spread.workers if (load.share or 0.0) > top - _ROUNDING]
    if top - 1 / count > UNEVEN:
        gets = f"{_listed(first)} get{'s' if len(first) == 1 else ''} {_percent(top)} of the load"
        each = " each" if len(first) > 1 else ""
        yield f"{gets}{each}: all {count} workers are busy only up to {_percent(1 / (count * top))}, {total}"
    else:
        yield f"the load is spread evenly over {count} worker{'s' if count > 1 else ''}: {total}"
    idle = [load.worker for load in spread.workers if load.share == 0]
    if idle:
        names = idle if len(idle) <= MOST_NAMED else [*idle[:MOST_NAMED], f"{len(idle) - MOST_NAMED} more"]
        yield f"{_listed(names)} get{'s' if len(idle) == 1 else ''} no frames"


def _of_unknowns(spread: FlowSpread) -> Iterator[str]:
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


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
