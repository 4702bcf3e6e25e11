"""One run of TCP through the router, and its JSON document, the only record of it.

``legs``, ``ceilings`` and ``pings`` hold raw totals; every reader derives the same figures from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot
from statistics import fmean
from typing import Any, ClassVar

import msgspec

from ..dut.telemetry import POWER, DutReading, mean_power
from ..errors import StoreError
from ..means import of_known, whole_sum
from ..run import Run, noted_warnings
from ..typed import read_stored
from ..units import LONGEST_S
from ..verdict.parts import RunWarning
from .cpu import HostShare, bits_per_cpu_second, process_shares, share_of_dut, share_of_host
from .intervals import HOSTS, Flow, find_flows
from .limit import TcpLimit, TcpVerdict, find_limit
from .plan import Leg, LegReadings, Ping, TcpEnvironment, TcpPlan, Way, around_plan
from .signs import TcpEvidence
from .statistics import PingStatistics, Statistics, combine, describe, describe_ping

SCHEMA = "trexbench/tcp"
VERSION = 1


@dataclass(frozen=True)
class FlowResult:
    """One direction of a leg."""

    leg: Leg
    flow: Flow
    statistics: Statistics | None
    """Statistics of the regular intervals' received bit/s; None if nothing was measured."""
    shares: Mapping[str, HostShare]
    """CPU time by host, ``dut`` included."""
    verdict: TcpVerdict
    power_w: float | None = None  # the DUT's mean over the time that counts
    ceiling_bps: float | None = None  # rate of the endpoints without the router, for the same way and version
    bits_per_cpu_second: float | None = None
    """Bits received over the CPU seconds of all ``endpoint`` and ``tunnel`` processes; absent where not known."""
    carried_bps: float | None = None
    """Payload of all directions of the leg, which its CPU time was taken for; None if that of one is not known."""

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        return (*self.flow.warnings, *self.verdict.warnings)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; the intervals without their streams, which follow from the readings."""
        values = [{k: v for k, v in vars(interval).items() if k != "streams"} for interval in self.flow.intervals]
        return {
            "leg": msgspec.to_builtins(self.leg),
            "sender": self.flow.sender,
            "received_bps": self.flow.received_bps,
            "statistics": msgspec.to_builtins(self.statistics),
            "retransmits": self.flow.retransmits,
            "retransmitted": self.flow.retransmitted,
            "limit": self.verdict.limit.value,
            "at_least": self.verdict.at_least,
            "reasons": list(self.verdict.reasons),
            "link_bps": self.verdict.link_bps,
            "ceiling_bps": self.ceiling_bps,
            "power_w": self.power_w,
            **({"bits_per_cpu_second": bits} if (bits := self.bits_per_cpu_second) is not None else {}),
            "cpu": [msgspec.to_builtins(share) for share in self.shares.values()],
            "intervals": values,
        }


@dataclass(frozen=True)
class PingResult:
    """Figures of one series of echo requests."""

    leg: Leg
    loaded: bool  # sent while the leg ran, not before the legs
    statistics: PingStatistics


@dataclass(frozen=True)
class LegSummary:
    """All repetitions of one kind of leg."""

    kind: Leg
    repetitions: int  # legs that it sums up
    rate_bps: float  # mean payload rate, of both directions together if there are two
    uncertainty_bps: float | None  # half of its 95 % interval
    limit: TcpLimit  # that of the flow that says least about the DUT
    link_bps: float | None  # payload that the slowest line carries, each way
    retransmitted: float | None  # retransmitted segments, as a share of those received
    cores_per_gbps: float | None  # busy cores of the DUT for each Gbit/s of payload
    power_w: float | None  # the DUT's mean
    idle_power_w: float | None  # the DUT's, while only echo requests passed
    ping_idle_s: float | None  # mean round trip before the legs
    ping_loaded_s: float | None  # mean round trip while these legs ran

    @property
    def at_least(self) -> bool:
        """The rate is a lower bound: the DUT was not the limit."""
        return self.limit is not TcpLimit.DUT

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values = msgspec.to_builtins(self)
        kind = values.pop("kind")
        del kind["repetition"]
        return {**kind, **values, "at_least": self.at_least}


@dataclass(frozen=True)
class LineCalibration:
    """Observations of the line before the legs."""

    pings: tuple[Ping, ...] = ()


WORSE = (TcpLimit.DUT, TcpLimit.UNKNOWN, TcpLimit.WINDOW, TcpLimit.ENDPOINT_CPU, TcpLimit.LINK)
"""The later in this order, the less the rate says about the DUT."""


@dataclass(frozen=True, kw_only=True)
class TcpResult(Run):
    """One run of TCP."""

    plan: TcpPlan  # legs to be run, and their parameters
    setup: TcpEnvironment  # between and around the hosts
    endpoints: Mapping[str, Any]  # by ``client`` and ``server``: what was set there and read back
    legs: tuple[LegReadings, ...] = ()  # readings of the legs that were run, in order
    pings: tuple[Ping, ...] = ()  # echo requests before the legs and beside them
    ceilings: tuple[LegReadings, ...] = ()  # short legs of the endpoints alone, over a cable around the router
    idle: tuple[DutReading, ...] = ()  # the DUT before and after the echo requests of each IP version
    calibration: LineCalibration | None = None  # trial of the WAN's delay; None: no WAN, or it was not tried

    schema: ClassVar[str] = SCHEMA
    version: ClassVar[int] = VERSION

    @property
    def file_words(self) -> tuple[str, ...]:
        ways = dict.fromkeys(leg.way.value for leg in self.plan.legs)
        versions = sorted({leg.version for leg in self.plan.legs})
        return ("tcp", *ways, *(f"ipv{version}" for version in versions))

    def setting(self) -> dict[str, Any]:
        names = ("endpoints", "plan", "setup", "pings", "calibration")
        return {name: msgspec.to_builtins(getattr(self, name)) for name in names}

    def readings(self) -> dict[str, Sequence[Any]]:
        return {"ceilings": self.ceilings, "idle": self.idle, "legs": self.legs}

    def growing(self) -> dict[str, Sequence[Any]]:
        calibration = (self.calibration,) if self.calibration is not None else ()
        return {**self.readings(), "pings": self.pings, "calibration": calibration, "warnings": self._noted}

    def figures(self) -> dict[str, Any]:
        return {
            "summaries": [summary.to_dict() for summary in self.summaries],
            "analysis": [flow.to_dict() for flow in self.flows],
            "ping_statistics": [msgspec.to_builtins(result) for result in self.ping_results],
        }

    def derived_warnings(self) -> Iterator[tuple[str, RunWarning]]:
        yield from (("analysis", warning) for warning in self.analysis_warnings)

    def odd_values(self) -> Iterator[str]:
        plan = self.plan
        for name, value in {"time_s": plan.time_s, "interval_s": plan.interval_s}.items():
            if not 0 < value <= LONGEST_S:
                yield f"plan.{name} is not a time"
        if not 0 <= plan.omit_s <= LONGEST_S:
            yield "plan.omit_s is not a time"
        if plan.streams < 1:
            yield "plan.streams is less than 1"
        tested = (readings.leg for readings in (*self.legs, *self.ceilings))
        for leg in (*plan.legs, *tested, *(ping.leg for ping in self.pings)):
            if leg.version not in (4, 6) or leg.repetition < 1:
                yield f"no such leg: IPv{leg.version} #{leg.repetition}"

    @cached_property
    def flows(self) -> tuple[FlowResult, ...]:
        """Every direction of every leg, in order."""
        return tuple(flow for leg in self.legs for flow in self._flows_of(leg))

    @cached_property
    def ping_results(self) -> tuple[PingResult, ...]:
        return tuple(PingResult(ping.leg, ping.loaded, describe_ping(ping.times_s, ping.sent)) for ping in self.pings)

    @property
    def idle_power_w(self) -> float | None:
        """The DUT's power while only echo requests passed."""
        return mean_power(self.idle)

    @cached_property
    def summaries(self) -> tuple[LegSummary, ...]:
        """A summary for each kind of leg that has a figure, in the plan's order."""
        kinds = dict.fromkeys(leg.kind for leg in (*self.plan.legs, *(readings.leg for readings in self.legs)))
        return tuple(summary for kind in kinds if (summary := self._summary(kind)) is not None)

    @cached_property
    def analysis_warnings(self) -> tuple[RunWarning, ...]:
        """Warnings that follow from the readings, each once."""
        warnings = [warning for flow in self.flows for warning in flow.warnings]
        if self.setup.without_tunnel and any(leg.leg.version == 6 for leg in self.legs):
            warnings.append(RunWarning("no-tunnel", f"IPv6 went without the tunnel: {self.setup.without_tunnel}"))
        for leg in self.legs:
            parts = (part for reading in leg.dut for part in reading.observation.missing)
            missing = (*leg.missing, *(part for part in parts if part.what == POWER))
            warnings += [RunWarning("missing", f"{leg.leg}: {part.what}: {part.reason}") for part in missing]
            warnings += [RunWarning("leg-ended-early", f"{leg.leg}: {leg.error}")] if leg.error else []
        return tuple(dict.fromkeys(warnings))

    @cached_property
    def _ceilings(self) -> Mapping[tuple[Way, int, str], float]:
        plan = around_plan(self.plan)
        rates: dict[tuple[Way, int, str], float] = {}
        for leg in self.ceilings:
            for flow in find_flows(plan, leg):
                key = leg.leg.way, leg.leg.version, flow.sender
                rates[key] = max(rates.get(key, 0.0), flow.received_bps or 0.0)
        return {key: bps for key, bps in rates.items() if bps}

    def _flows_of(self, leg: LegReadings) -> Iterator[FlowResult]:
        version, idle = leg.leg.version, self._ping_times(leg.leg.version, loaded=False)
        counted = leg.dut_while_counted(self.plan.omit_s)
        took = {host: process_shares(leg, host) for host in (*HOSTS, "dut")}
        # Idle time before and after would make a full core of a short leg look half busy.
        dut = share_of_dut(counted if len(counted) > 1 else leg.dut, self.setup, took["dut"], leg.length_s)
        flows = find_flows(self.plan, leg)
        carried_bps = whole_sum(flow.received_bps for flow in flows)
        for flow in flows:
            ends = dict(zip((flow.sender, flow.receiver), (flow.sending, flow.receiving), strict=True))
            shares = {host: share_of_host(host, ends[host], self.setup, took[host]) for host in HOSTS} | {"dut": dut}
            ceiling_bps = self._ceilings.get((leg.leg.way, version, flow.sender))
            ping_s, seen = min(idle, default=None), leg.dut_since_counted(self.plan.omit_s)
            evidence = TcpEvidence(leg.leg, flow, self.setup, shares, ceiling_bps, ping_s, seen, self.idle)
            yield FlowResult(
                leg=leg.leg,
                flow=flow,
                statistics=describe([interval.received_bps for interval in flow.regular], flow.received_bps),
                shares=shares,
                verdict=find_limit(evidence),
                power_w=mean_power(counted),
                ceiling_bps=ceiling_bps,
                bits_per_cpu_second=bits_per_cpu_second(shares, self.setup, carried_bps),
                carried_bps=carried_bps,
            )

    def _ping_times(self, version: int, loaded: bool, kind: Leg | None = None) -> list[float]:
        pings = (ping for ping in self.pings if ping.loaded == loaded and ping.leg.version == version)
        return [time_s for ping in pings if kind in (None, ping.leg.kind) for time_s in ping.times_s]

    def _summary(self, kind: Leg) -> LegSummary | None:
        flows = [flow for flow in self.flows if flow.leg.kind == kind and flow.statistics]
        directions: dict[str, list[FlowResult]] = {}
        for flow in flows:
            directions.setdefault(flow.flow.sender, []).append(flow)
        if not flows or len(directions) < 1 + (kind.way is Way.BIDIR):
            return None
        rates = [rate_of(ones) for ones in directions.values()]
        uncertainties = [uncertainty for _, uncertainty in rates if uncertainty is not None]
        rate_bps = sum(rate for rate, _ in rates)
        cores = [flow.shares["dut"].cores_busy for flow in flows if flow.shares["dut"].cpus]
        idle, loaded = (self._ping_times(kind.version, *which) for which in ((False,), (True, kind)))
        return LegSummary(
            kind=kind,
            repetitions=max(len(ones) for ones in directions.values()),
            rate_bps=rate_bps,
            uncertainty_bps=hypot(*uncertainties) if len(uncertainties) == len(rates) else None,
            limit=max((flow.verdict.limit for flow in flows), key=WORSE.index),
            link_bps=next((bps for flow in flows if (bps := flow.verdict.link_bps) is not None), None),
            retransmitted=of_known(fmean, (flow.flow.retransmitted for flow in flows)),
            cores_per_gbps=fmean(cores) / (rate_bps / 1e9) if cores and rate_bps else None,
            power_w=of_known(fmean, (flow.power_w for flow in flows)),
            idle_power_w=self.idle_power_w,
            ping_idle_s=of_known(fmean, idle),
            ping_loaded_s=of_known(fmean, loaded),
        )


def rate_of(flows: Sequence[FlowResult]) -> tuple[float, float | None]:
    """Return the mean rate of repetitions of one direction, and its uncertainty."""
    known = [flow.statistics for flow in flows if flow.statistics is not None]
    return combine([one.mean for one in known], [one.uncertainty for one in known])


def from_document(document: Any) -> TcpResult:
    """Read a run; StoreError names the field that is missing or of the wrong kind. Stored figures are not read."""
    result = read_stored(document, "TCP document", SCHEMA, VERSION, TcpResult)
    for part in ("legs", "ceilings", "pings"):  # the document has the list even if it is empty
        if part not in document:
            raise StoreError(f"TCP document without {part!r}", "the file is damaged")
    try:
        return replace(result, warnings=noted_warnings(document.get("warnings")))
    except (TypeError, KeyError) as error:
        raise StoreError(f"TCP document with a warning of the wrong kind ({error})", "the file is damaged") from None
