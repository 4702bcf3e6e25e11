"""The tester's ports, the router behind them, and the step in which frames pass between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..config.twin import TesterSpec
from .latency import Delay, LatencyGroup
from .tester import Tally, TxPort, received_share

LINGER_S = 2.0
"""Time after a flow's last frame for which the router is still asked for frames that it kept."""


@dataclass(frozen=True)
class Arrival:
    """Frames that reached the router on one port within a span of time, all of one stream.

    port: the tester's port that sent them. spread: their share per receive queue of that port, summing to 1.
    frame_bytes: mean size with FCS. tag: the sender's own mark, handed back with what comes out. timed: whether the
    sender will ask what these frames took.
    """

    port: int
    tag: int
    spread: tuple[float, ...]
    frames: float
    frame_bytes: float
    timed: bool = False


class Router(Protocol):
    """A router between pairs of the tester's ports; frames of one port of a pair leave towards the other."""

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        """Share of these packets (without FCS, each equally frequent) that each receive queue of the port gets."""

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        """Let the span pass with these arrivals, evenly over it: frames of each (port, tag) that leave within it.

        One figure per arrival, in their order; what leaves may have arrived in an earlier span with the same port and
        tag. Frames that are neither gone nor lost are kept inside. Call it with no frames to let the rings run empty.
        """

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        """Delays of the timed frames of this port and tag that left in the last ``carry``; not empty if any did."""

    def kept(self, port: int, tag: int) -> float:
        """Frames of this port and tag that are neither gone nor lost."""


Mark = tuple[int, int]
"""A packet group of one start: its pg_id and the start's number."""


class FrameClass(NamedTuple):
    """Frames that are all treated alike: port, length with FCS, spread over the receive queues, whether timed, and the
    mark by which they are counted.
    """

    port: int
    length: int
    spread: tuple[float, ...]
    mark: Mark | None = None
    counted: int | None = None


@dataclass
class TesterPort:
    """One of the tester's ports. flows: where the frames of each of its streams belong, by the stream's id.

    rx_limit_pps: frames per second that it can receive; rx_silent: it does not count the others. groups: of the latency
    streams that were started last. flows_sent, flows_received: counted frames by their marks.
    """

    tx: TxPort
    rx_limit_pps: float | None = None
    rx_silent: bool = False
    flows: dict[int, FrameClass] = field(default_factory=dict)
    groups: dict[Mark, LatencyGroup] = field(default_factory=dict)
    sent: Tally = field(default_factory=Tally)
    received: Tally = field(default_factory=Tally)
    errors: Tally = field(default_factory=Tally)
    flows_sent: dict[int, Tally] = field(default_factory=dict)
    flows_received: dict[int, Tally] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: TesterSpec, port: int, speed_bps: float) -> TesterPort:
        """Port number ``port``, which falls short as the spec says of it."""
        limit_pps, stretches = spec.limit_of("tx", port), spec.overload == "stretch"
        silent = spec.rx_overload == "silent"
        return cls(TxPort(speed_bps, limit_pps, stretches), spec.limit_of("rx", port), silent)

    def tallies(self) -> tuple[Tally, ...]:
        return self.sent.copy(), self.received.copy(), self.errors.copy()


@dataclass
class World:
    """Everything that changes with time, and the moment at which it stands.

    partners: by port, the one that the router connects it to. tags: the router's names for flows. active_s: when frames
    were last seen of each flow that the router may still hold frames of.
    """

    router: Router
    ports: list[TesterPort]
    partners: Mapping[int, int]
    at_s: float = 0.0
    tags: dict[FrameClass, int] = field(default_factory=dict)
    active_s: dict[FrameClass, float] = field(default_factory=dict)

    def step(self, end_s: float) -> list[int]:
        """Let time pass up to this moment; the ports whose traffic ended in it."""
        span_s, frames = end_s - self.at_s, self._send(end_s)
        for flow, count in frames.items():
            if count:
                self.active_s[flow] = end_s
        flows = list(self.active_s)
        arrivals = [
            Arrival(flow.port, self.tags[flow], flow.spread, frames.get(flow, 0.0), flow.length, flow.mark is not None)
            for flow in flows
        ]
        gone = self.router.carry(span_s, arrivals)
        self._receive(span_s, list(zip(flows, gone, strict=True)))
        for flow, count in zip(flows, gone, strict=True):
            if count:
                self.active_s[flow] = end_s
            elif end_s - self.active_s[flow] > LINGER_S:
                del self.active_s[flow]
        self.at_s = end_s
        return self._end_traffic()

    def kept(self, port: int, mark: Mark) -> float:
        """Frames of the group, which this port sent, that are still in the router."""
        flows = {flow for flow in self.ports[port].flows.values() if flow.mark == mark}
        return sum(self.router.kept(port, self.tags[flow]) for flow in flows)

    def _send(self, end_s: float) -> dict[FrameClass, float]:
        """Return the frames that leave the tester towards the router."""
        frames: dict[FrameClass, float] = {}
        for port in self.ports:
            for spec, count in port.tx.send(self.at_s, end_s):
                flow = port.flows[spec.stream_id]
                port.sent.add(flow.length, count)
                if flow.mark is not None:
                    port.groups[flow.mark].sent.add(flow.length, count)
                if flow.counted is not None:
                    port.flows_sent.setdefault(flow.counted, Tally()).add(flow.length, count)
                frames[flow] = frames.get(flow, 0.0) + count
        return frames

    def _receive(self, span_s: float, gone: Sequence[tuple[FrameClass, float]]) -> None:
        for number, port in enumerate(self.ports):
            arrived = [(flow, count) for flow, count in gone if self.partners.get(flow.port) == number and count]
            if not arrived:
                continue
            share = received_share(port.rx_limit_pps, sum(count for _, count in arrived), span_s)
            for flow, count in arrived:
                port.received.add(flow.length, count * share)
                if share < 1 and not port.rx_silent:
                    port.errors.add(flow.length, count * (1 - share))
                if flow.counted is not None:
                    port.flows_received.setdefault(flow.counted, Tally()).add(flow.length, count * share)
                # frames of an earlier start belong to no group any more
                group = None if flow.mark is None else self.ports[flow.port].groups.get(flow.mark)
                if group is not None:
                    group.receive(flow.length, count * share, self.router.delays(flow.port, self.tags[flow]))

    def _end_traffic(self) -> list[int]:
        ended = []
        for number, port in enumerate(self.ports):
            if port.tx.traffic is not None and port.tx.traffic.over(self.at_s):
                port.tx.traffic = None
                ended.append(number)
        return ended
