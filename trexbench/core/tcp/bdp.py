"""The bandwidth-delay product of a run, and for each kind of leg its buffer, window and rate: predicted, and seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from ..means import of_known, whole_sum
from ..units import format_bits, format_share, format_time
from .intervals import HOSTS
from .laws import SENDABLE, last_integer, loss_bound, window_rule
from .limit import TcpLimit
from .plan import Leg, StreamCount, Way
from .result import FlowResult, TcpResult, rate_of
from .wan import Wan, format_size

LINE, WINDOW, LOSS = "line", "window", "loss"
FILLS, FULL = 0.85, 0.95
"""Shares of the line's payload rate: a leg that carries the first, its slow start included, fills the line unless a CPU
was the limit; one that carries the second fills it even then."""
NEAR = 0.75, 1.3
"""Range of a loss-limited leg's rate over what losses allow in the long run; a faster one met too few losses."""
OFFERED = "offered by the receiver"


@dataclass(frozen=True)
class BdpRow:
    """All repetitions of one direction of one kind of leg; None: not known.

    Sizes in bytes, of all connections together except buffer_bytes, which is of each.
    """

    kind: Leg
    sender: str  # ``client`` or ``server``
    congestion: str  # congestion control that the sender used
    buffer_bytes: int | None  # largest buffer, of the end that allows less in flight
    buffer_by: str  # source of that size
    window_predicted_bytes: float | None  # most that can be in flight with that buffer
    window_bytes: float | None  # window seen, as a median
    window_by: str  # what that is: offered by the receiver, in flight, or the congestion window
    cwnd_bytes: float | None  # median congestion window
    round_trip_s: float | None  # of the idle path
    line_bps: float | None  # payload that the slowest line carries
    window_bps: float | None  # window over round trip
    loss_bps: float | None  # rate that the law of the congestion control allows at the WAN's loss
    loss_law: str  # name of that law; empty: none applies
    predicted_bps: float | None  # the least of these three
    predicted_by: str  # which it is: ``line``, ``window`` or ``loss``
    rate_bps: float  # mean payload rate
    uncertainty_bps: float | None  # half of its 95 % interval
    limit: TcpLimit  # what limited most repetitions
    retransmits: int | None  # retransmitted segments, in all repetitions
    reasons: tuple[str, ...] = ()  # the evidence for that limit, in sentences

    @property
    def name(self) -> str:
        """All but the buffers: ``forward IPv4, cubic``; the sender too for a bidirectional leg."""
        sender = f", {self.sender} sends" if self.kind.way is Way.BIDIR else ""
        return f"{self.kind.way.value} IPv{self.kind.version}{sender}, {self.congestion}"

    @property
    def at_least(self) -> bool:
        """The rate is a lower bound: the DUT was not the limit."""
        return self.limit is not TcpLimit.DUT

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        return self.rate_bps / self.predicted_bps if self.predicted_bps else None

    @property
    def words(self) -> str:
        """The verdict in words."""
        rate, line, law = self.rate_bps, self.line_bps, self.loss_bps
        kept = self.limit in (TcpLimit.WINDOW, TcpLimit.LINK, TcpLimit.UNKNOWN)
        if line is not None and rate >= (FILLS if kept else FULL) * line and self.predicted_by == LINE:
            return f"fills the line: {format_share(rate / line)} of {format_bits(line)}"
        if law is not None and self.predicted_by == LOSS and rate >= NEAR[0] * law and kept:
            most = f"{format_bits(law)} by {self.loss_law}"
            if rate <= NEAR[1] * law:
                return f"loss-limited: about {most}"
            again = "few" if self.retransmits is None else f"{self.retransmits} retransmits"
            return f"faster than losses allow in the long run, {most}: {again} were too few to slow it down"
        if self.limit is TcpLimit.WINDOW and self.round_trip_s and self.window_bps:
            size, trip = format_size(self.window_bps * self.round_trip_s / 8), format_time(self.round_trip_s)
            return f"window-limited: {size} over {trip} is {format_bits(self.window_bps)}"
        return f"{self.limit.words}: {'; '.join(self.reasons)}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values = {name: value for name, value in vars(self).items() if name not in ("kind", "limit")}
        kind = {"way": self.kind.way.value, "version": self.kind.version, "set_bytes": self.kind.buffer_bytes}
        more = {"limit": self.limit.value, "at_least": self.at_least, "ratio": self.ratio, "words": self.words}
        return {**kind, **values, **more}


@dataclass(frozen=True)
class Bdp:
    """A bandwidth-delay product."""

    size_bytes: float  # rate times delay
    rate_bps: float  # of the WAN, else of the slowest line
    delay_s: float  # round trip: the WAN's delay, else the idle path's
    by: str  # source of the rate and the delay
    scale: float = 1.0  # of rate and buffers; below 1 if the host could not carry what was asked for


def tells_bdp(result: TcpResult) -> bool:
    """Test whether the run is about buffers: there is a WAN, or its legs have different buffers."""
    return result.setup.wan is not None or len({leg.buffer_bytes for leg in result.plan.legs}) > 1


def find_product(result: TcpResult) -> Bdp | None:
    """Find the product of the WAN, else of the slowest line and the idle round trip; None where either is unknown."""
    line_bps, wan = result.setup.line_bps, result.setup.wan or Wan()
    rates = [bps for bps in (wan.rate_bps, None if wan.rate_bps and wan.delay_s else line_bps) if bps]
    delay_s = wan.delay_s or (_idle_s(result, result.plan.legs[0].version) if result.plan.legs else None)
    if not rates or not delay_s:
        return None
    by = dict.fromkeys(("the WAN" if min(rates) == wan.rate_bps else "the line", "the WAN" if wan.delay_s else "ping"))
    return Bdp(min(rates) * delay_s / 8, min(rates), delay_s, ", ".join(by), result.setup.scale)


def find_rows(result: TcpResult) -> tuple[BdpRow, ...]:
    """Make a row for each direction of each kind of leg that has a figure, in the plan's order."""
    by_direction: dict[tuple[Leg, str], list[FlowResult]] = {}
    for flow in result.flows:
        if flow.statistics is not None:
            by_direction.setdefault((flow.leg.kind, flow.flow.sender), []).append(flow)
    programs = {leg.leg.kind: leg.program for leg in result.legs}
    return tuple(_row(result, flows, programs.get(kind, {})) for (kind, _), flows in by_direction.items())


def bdp_part(result: TcpResult) -> dict[str, Any]:
    """JSON values for the document; empty for a run that is not about buffers."""
    if not tells_bdp(result):
        return {}
    product = find_product(result)
    rows = [row.to_dict() for row in find_rows(result)]
    return {"bdp_product": None if product is None else vars(product), "bdp": rows}


def _row(result: TcpResult, flows: Sequence[FlowResult], program: Mapping[str, Mapping[str, str]]) -> BdpRow:
    kind, wan, streams = flows[0].leg.kind, result.setup.wan or Wan(), result.plan.streams
    sender, receiver = flows[0].flow.sender, flows[0].flow.receiver
    about = {host: program.get(host, {}) for host in HOSTS}
    usable, buffer_bytes, buffer_by, whose = _smaller_buffer(kind, about, sender, receiver)
    rate, uncertainty = rate_of(flows)
    in_flight = _median_of(flows, lambda count: count.in_bytes("unacked"))
    cwnd = _median_of(flows, lambda count: count.in_bytes("snd_cwnd"))
    seen, window_by = _window(flows, in_flight, None if wan.loss else cwnd)
    predicted = None if usable is None else streams * usable
    window = seen if seen is not None else predicted
    if whose == sender and window_by == OFFERED and seen and predicted:  # the sender may be unable to use all of it
        window = min(seen, max(predicted, in_flight or 0.0))
    trip_s = _idle_s(result, kind.version) or _shortest_s(flows) or wan.delay_s
    congestion = about[sender].get("congestion") or kind.congestion or result.plan.congestion or "?"
    law_bps, law = loss_bound(congestion, fmean(flow.flow.mss for flow in flows), trip_s, wan.loss) or (None, "")
    bounds = {
        LINE: next((flow.verdict.link_bps for flow in flows if flow.verdict.link_bps), None),
        WINDOW: 8 * window / trip_s if window and trip_s else None,
        LOSS: None if law_bps is None else streams * law_bps,
    }
    least_bps, least_by = min(((bps, by) for by, bps in bounds.items() if bps is not None), default=(None, ""))
    again = [flow.flow.retransmits for flow in flows if flow.flow.retransmits is not None]
    limits = [flow.verdict.limit for flow in flows]
    limit = max(limits, key=limits.count)
    return BdpRow(
        kind=kind,
        sender=sender,
        congestion=congestion,
        buffer_bytes=buffer_bytes,
        buffer_by=buffer_by,
        window_predicted_bytes=predicted,
        window_bytes=seen,
        window_by=window_by,
        cwnd_bytes=cwnd,
        round_trip_s=trip_s or None,
        line_bps=bounds[LINE],
        window_bps=bounds[WINDOW],
        loss_bps=bounds[LOSS],
        loss_law=law,
        predicted_bps=least_bps,
        predicted_by=least_by,
        rate_bps=rate,
        uncertainty_bps=uncertainty,
        limit=limit,
        retransmits=sum(again) if again else None,
        reasons=next(flow.verdict.reasons for flow in flows if flow.verdict.limit is limit),
    )


def _smaller_buffer(
    kind: Leg, about: Mapping[str, Mapping[str, str]], sender: str, receiver: str
) -> tuple[float | None, int | None, str, str]:
    """Find the end's buffer that allows less in flight: payload and size in bytes, source of the size, and its host."""
    size, (share, _) = kind.buffer_bytes, window_rule(about[receiver])
    as_set = "as found" if size is None else "set"
    known = [
        (part * most, most, f"{as_set}: {name} of the {host}", host)
        for host, name, part in ((receiver, "tcp_rmem", share), (sender, "tcp_wmem", SENDABLE))
        if (most := last_integer(about[host].get(name, ""))) is not None
    ]
    if known:
        return min(known, key=lambda buffer: buffer[0])
    return None if size is None else min(share, SENDABLE) * size, size, as_set, ""


def _window(flows: Sequence[FlowResult], in_flight: float | None, cwnd: float | None) -> tuple[float | None, str]:
    """Return the offered window and its source; or what the limit was: the bytes in flight for a full send buffer, else
    the congestion window. cwnd: None where losses keep it small."""
    kinds = {flow.verdict.window.kind for flow in flows if flow.verdict.window is not None}
    if kinds == {"send buffer"}:
        return in_flight, "in flight, of the send buffer"
    if kinds == {"congestion window"} and cwnd is not None:
        return cwnd, "congestion window"
    offered = _median_of(flows, lambda count: count.value("snd_wnd"))
    return (offered, OFFERED) if offered else (in_flight, "in flight" if in_flight else "")


def _median_of(flows: Sequence[FlowResult], value: Callable[[StreamCount], float | None]) -> float | None:
    """Return the median over all readings, each the sum over its connections; the first reading has none yet."""
    readings = (reading for flow in flows for reading in flow.flow.sending)
    return of_known(median, (whole_sum(map(value, reading.streams)) for reading in readings))


def _idle_s(result: TcpResult, version: int) -> float | None:
    """Return the median round trip of the idle path: the first echo request may wait for address resolution."""
    pings = (ping for ping in result.pings if not ping.loaded and ping.leg.version == version)
    return of_known(median, (time_s for ping in pings for time_s in ping.times_s))


def _shortest_s(flows: Sequence[FlowResult]) -> float | None:
    counts = (count for flow in flows for reading in flow.flow.sending for count in reading.streams)
    return min((value / 1e6 for count in counts if (value := count.value("min_rtt"))), default=None)
