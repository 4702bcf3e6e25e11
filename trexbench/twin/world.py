"""The tester's ports, the router between them, and the step in which frames pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..config.twin import TesterSpec
from .latency import Delay, LatencyGroup
from .tester import Tally, TxPort

LINGER_S = 2.0  # time after a flow's last frame for which the router is still asked for frames that it holds


@dataclass(frozen=True)
class Arrival:
    """Frames of one stream that reached the router within a span of time."""

    port: int  # the tester's port that sent them
    tag: int  # the sender's name for the stream
    spread: tuple[float, ...]  # share of each receive queue of the port, summing to 1
    frames: float
    frame_bytes: float  # mean size with FCS
    timed: bool = False  # the sender will ask for their delays


class Router(Protocol):
    """A router between pairs of the tester's ports; frames of one port of a pair leave towards the other."""

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        """Share of these packets (without FCS, each equally frequent) that each receive queue of the port gets."""

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        """Let the span pass with these arrivals spread evenly over it; return the frames that leave, for each arrival.

        They may have arrived in an earlier span with the same port and tag. Frames that neither leave nor are lost stay
        inside. Call it with arrivals of 0 frames to let the rings run empty.
        """

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        """Delays of the timed frames of this port and tag that left in the last ``carry``; not empty if any did."""

    def kept(self, port: int, tag: int) -> float:
        """Frames of this port and tag that are still inside."""


Mark = tuple[int, int]  # packet group of one start: its pg_id and the start's number


class FrameClass(NamedTuple):
    """Frames that are all treated alike."""

    port: int
    length: int  # with FCS
    spread: tuple[float, ...]  # over the receive queues
    mark: Mark | None = None  # None: not timed
    counted: int | None = None  # mark by which they are counted


@dataclass
class TesterPort:
    """One of the tester's ports."""

    tx: TxPort
    rx_limit_pps: float | None = None  # frames per second that it can receive
    rx_silent: bool = False  # frames beyond that are no errors
    flows: dict[int, FrameClass] = field(default_factory=dict)  # by stream id
    groups: dict[Mark, LatencyGroup] = field(default_factory=dict)  # of the streams started last
    sent: Tally = field(default_factory=Tally)
    received: Tally = field(default_factory=Tally)
    errors: Tally = field(default_factory=Tally)
    flows_sent: dict[int, Tally] = field(default_factory=dict)  # counted frames by mark
    flows_received: dict[int, Tally] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: TesterSpec, port: int, speed_bps: float) -> TesterPort:
        """Make a port with the shortcomings that the spec gives it."""
        tx = TxPort(speed_bps, spec.limit_of("tx", port), spec.overload == "stretch")
        return cls(tx, spec.limit_of("rx", port), spec.rx_overload == "silent")


@dataclass
class World:
    """Everything that changes with time."""

    router: Router
    ports: list[TesterPort]
    partners: Mapping[int, int]  # port to which the router connects each port
    at_s: float = 0.0  # present moment
    tags: dict[FrameClass, int] = field(default_factory=dict)  # the router's names for flows
    active_s: dict[FrameClass, float] = field(default_factory=dict)  # last frame of each flow that it may still hold

    def step(self, end_s: float) -> list[int]:
        """Let time pass up to this moment; returns the ports whose traffic ended."""
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
        ended = []
        for number, port in enumerate(self.ports):
            if port.tx.traffic is not None and port.tx.traffic.over(end_s):
                port.tx.traffic = None
                ended.append(number)
        return ended

    def kept(self, port: int, mark: Mark) -> float:
        """Frames of a group that this port sent and the router still holds."""
        flows = {flow for flow in self.ports[port].flows.values() if flow.mark == mark}
        return sum(self.router.kept(port, self.tags[flow]) for flow in flows)

    def _send(self, end_s: float) -> dict[FrameClass, float]:
        """Let the tester send until ``end_s``; returns the frames by flow."""
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
            frames, limit_pps = sum(count for _, count in arrived), port.rx_limit_pps
            share = 1.0 if limit_pps is None else min(1.0, limit_pps * span_s / frames)
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
