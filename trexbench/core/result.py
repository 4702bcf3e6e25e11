"""One run of packets, and its JSON document: the only record of it.

``samples`` and ``dut_readings`` hold raw counters; every reader derives all other figures from them in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, TypeVar

import msgspec

from .dut.cycles import Cost, find_costs, find_intervals
from .dut.flowspread import FlowSpread
from .dut.losses import LossReport, locate, passed
from .dut.spreadcheck import SpreadCheck, compare_spread
from .dut.telemetry import DutReading, Moment, Observation
from .dut.witness import find_twice, hear
from .errors import ConfigError, NoAnswer, StoreError
from .load.plan import Direction
from .load.sample import Phase, Sample, odd_samples, sample_from_dict, stored
from .load.windows import RunWindows
from .run import Run, noted_warnings
from .strategy.analysis import analyse, until_setback
from .strategy.base import Strategy
from .strategy.kinds import plan_from_dict, plan_to_dict, suffix_of
from .tcp.path import TrafficPath
from .typed import Status as Status
from .typed import version_of
from .units import format_pps
from .upgrade import upgrade
from .verdict.blame import misses
from .verdict.latency import Latency, find_latencies, find_latency_warnings
from .verdict.parts import Analysis, DirectionResult, RunWarning, Stall
from .verdict.streams import StreamLoss, find_stream_losses, find_stream_warnings

T = TypeVar("T")
SCHEMA = "trexbench/run"
VERSION = 3
ANALYSIS_VERSION = 31
"""Version of the analysis: raise it whenever a figure changes, so that stored figures are derived again."""


@dataclass(frozen=True, kw_only=True)
class RunResult(Run):
    """One run of packets."""

    plan: Strategy  # what was to be offered, and what counts as loss
    profiles: Mapping[Direction, Mapping[str, Any]]  # what is sent, by direction; in version 1 the first's only
    generator: Mapping[str, Any]  # the tester's server (TRex, or the embedded one): version, ports, client
    samples: Sequence[Sample]  # readings of the tester's counters, in order; totals
    telemetry: str = "off"  # when the DUT's counters were read: ``off``, ``hold``, ``ramp``
    dut_readings: Sequence[DutReading] = ()  # of these counters; a list that grows while the run goes on
    spread: FlowSpread | None = None  # prediction of the flows' spread over the DUT's queues and cores
    over: TrafficPath | None = None  # what the frames passed besides the DUT; None: nothing

    schema: ClassVar[str] = SCHEMA
    version: ClassVar[int] = VERSION

    @property
    def held_pps(self) -> float | None:
        """The rate that a run of ``trexbench efficiency`` held in each direction; None for other runs."""
        if self.command.get("verb") != "efficiency":
            return None
        return float(f"{self.plan.offers[0].target_pps:.4g}")

    @property
    def profile(self) -> Mapping[str, Any]:
        """The first direction's profile; empty where there is none."""
        return next(iter(self.profiles.values()), {})

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """Cost of a packet to the DUT, by interval: cycles, energy."""
        return find_costs(self.plan, self.samples, tuple(self.dut_readings))

    @property
    def held_cost(self) -> Cost | None:
        """The cost that stands for the run: the hold's, else the last confirmation's, which passed if any did."""
        held = (cost for cost in self.costs if cost.phase is Phase.HOLD)
        confirmed = (cost for cost in reversed(self.costs) if cost.phase is Phase.CONFIRM)
        return next(chain(held, confirmed), None)

    @cached_property
    def latencies(self) -> tuple[Latency, ...]:
        """Latency of each direction at shares of the throughput found; empty: not measured."""
        return find_latencies(self.plan, self.samples)

    @cached_property
    def streams(self) -> Mapping[Direction, tuple[StreamLoss, ...]]:
        """Losses of each stream, by direction; directions whose streams were not counted are missing."""
        if not self._counts_streams:
            return {}
        pairs = ((result.direction, self._stream_losses(result)) for result in self.analysis.directions)
        return {direction: losses for direction, losses in pairs if losses}

    @property
    def _counts_streams(self) -> bool:
        return any(sample.reading.streams for sample in self.samples)

    def _stream_losses(self, result: DirectionResult) -> tuple[StreamLoss, ...]:
        streams = self.profiles.get(result.direction, {}).get("streams") or ()
        sizes = [stream.get("frame_bytes") for stream in streams if isinstance(stream, Mapping)]
        known = [size for size in sizes if isinstance(size, int)]  # a damaged document may lack some
        return find_stream_losses(self.measured, result, known)

    @cached_property
    def measured(self) -> RunWindows:
        """The samples up to the first counter that went backwards, and their windows."""
        return RunWindows(self.plan, until_setback(self.plan, self.samples)[0])

    @cached_property
    def _observed(self) -> tuple[Observation, Observation] | None:
        """The DUT before and after; None if it was not read, or a tester's counter went back."""
        observed = {reading.moment: reading.observation for reading in tuple(self.dut_readings)}
        whole = 2 <= len(self.samples) == len(self.measured.samples)
        if Moment.START not in observed or Moment.FINISH not in observed or not whole:
            return None
        return observed[Moment.START], observed[Moment.FINISH]

    def _total(self, port: int, name: str) -> int:
        """Rise of this counter of a tester's port over the run."""
        first, last = (getattr(self.samples[at].reading.ports[port], name) for at in (0, -1))
        return int(last - first)

    @cached_property
    def _twice(self) -> Mapping[Direction, int]:
        """Frames that came twice, as far as that is certain; see core.dut.witness."""
        if self._observed is None:
            return {}
        gone = {d: passed(*self._observed, d.rx, "tx_packets") for d in self.plan.directions}
        return {d: find_twice(self.measured, d, gone[d], self._total(d.rx, "ipackets")) for d in gone}

    @cached_property
    def losses(self) -> LossReport | None:
        """Places where frames were lost; None if the DUT was not read before and after, or a counter went back."""
        if self._observed is None:
            return None
        sent = {d: self._total(d.tx, "opackets") for d in self.plan.directions}
        lost = {d: sent[d] - self._total(d.rx, "ipackets") + self._twice[d] for d in sent}
        return locate(*self._observed, lost, sent, {d.rx: self._total(d.rx, "ierrors") for d in sent})

    @cached_property
    def spread_check(self) -> SpreadCheck | None:
        """Spread of the flows over queues and workers, in the hold that lost least; None without a prediction."""
        pairs = [(begin, end) for begin, end in find_intervals(tuple(self.dut_readings)) if end.moment is Moment.END]
        if self.spread is None or not pairs:
            return None
        loss = {cost.begin_s: cost.loss or 0.0 for cost in self.costs}
        begin, end = min(pairs, key=lambda pair: loss.get(pair[0].t_s, 1.0))
        return compare_spread(self.spread, begin.observation, end.observation)

    @property
    def dut_warnings(self) -> tuple[RunWarning, ...]:
        """Warnings about the DUT's own counters, each once, with the phases of those that only some have."""
        phases: dict[RunWarning, dict[str, None]] = {}
        for cost in self.costs:
            for warning in cost.warnings:
                phases.setdefault(warning, {})[cost.name] = None
        every = len({cost.name for cost in self.costs})
        warnings = [
            one if len(names) == every else replace(one, text=f"{', '.join(names)}: {one.text}")
            for one, names in phases.items()
        ]
        warnings += self.losses.warnings if self.losses else ()
        warnings += self.spread_check.warnings if self.spread_check else ()
        return tuple(dict.fromkeys(warnings))

    @property
    def analysis_warnings(self) -> tuple[RunWarning, ...]:
        """Warnings that follow from the samples."""
        return (*self.analysis.warnings, *self._further_warnings)

    @property
    def _further_warnings(self) -> tuple[RunWarning, ...]:
        """Warnings about streams and latencies, and a given rate that was not sent."""
        unmarked = find_stream_warnings(self.measured, self.plan.directions) if self._counts_streams else ()
        asked, cost = sum(offer.target_pps for offer in self.plan.offers), self.held_cost
        short = tuple[RunWarning, ...]()
        if self.held_pps is not None and cost is not None and misses(asked, cost.offered_pps):
            sent = f"asked for {format_pps(asked)}, sent {format_pps(cost.offered_pps)}"
            short = (RunWarning("rate-not-sent", f"{sent}: what a packet costs at the rate asked for is not known"),)
        return (*unmarked, *find_latency_warnings(self.latencies), *short)

    def derived_warnings(self) -> Iterator[tuple[str, RunWarning]]:
        yield from (("analysis", warning) for warning in self.analysis_warnings)
        yield from (("dut", warning) for warning in self.dut_warnings)

    @property
    def no_answer(self) -> NoAnswer | None:
        reason = self.analysis.unanswered if self.status is Status.COMPLETE else ""
        return NoAnswer(reason) if reason else None

    @cached_property
    def analysis(self) -> Analysis:
        """Verdicts and warnings from the samples, with the DUT's own counters as evidence."""
        return hear(self.measured, analyse(self.plan, self.samples), self.losses, self._twice)

    @property
    def directions(self) -> tuple[DirectionResult, ...]:
        return self.analysis.directions

    @property
    def file_words(self) -> tuple[str, ...]:
        ways = "bidir" if self.plan.bidir else "uni"
        return (str(self.command.get("mode", "")), ways, *filter(None, (suffix_of(self.plan.kind),)))

    def setting(self) -> dict[str, Any]:
        return {
            "profiles": {str(direction): dict(profile) for direction, profile in self.profiles.items()},
            "over": msgspec.to_builtins(self.over),
            "plan": plan_to_dict(self.plan),
            "generator": dict(self.generator),
            "spread": _spread(self.spread, None),
            "telemetry": {"mode": self.telemetry, "readings": msgspec.to_builtins(tuple(self.dut_readings))},
        }

    def readings(self) -> dict[str, Sequence[Any]]:
        return {"samples": [stored(sample) for sample in self.samples]}

    def growing(self) -> dict[str, Sequence[Any]]:
        return {"reading": self.dut_readings}

    def figures(self) -> dict[str, Any]:
        analysis = self.analysis
        return {
            "analysis": [
                msgspec.to_builtins(result)
                | {"direction": str(result.direction), "confirmed_pps": result.confirmed_pps}
                | ({"streams": msgspec.to_builtins(losses)} if (losses := self.streams.get(result.direction)) else {})
                for result in analysis.directions
            ],
            "stalls": [msgspec.to_builtins(stall) | {"direction": str(stall.direction)} for stall in analysis.stalls],
            "total_pps": analysis.total_pps,
            "at_least": analysis.at_least,
            "latency": [latency.to_dict() for latency in self.latencies],
            "efficiency": [cost.to_dict() for cost in self.costs],
            "losses": msgspec.to_builtins(self.losses),
            "spread": _spread(self.spread, self.spread_check),
        }

    def odd_values(self) -> Iterator[str]:
        queues = self.command.get("rx_queues")
        if isinstance(queues, int) and abs(queues) >= 1 << 63:
            yield "command.rx_queues is too large"
        yield from odd_samples(self.plan, self.samples)


def _spread(predicted: FlowSpread | None, measured: SpreadCheck | None) -> dict[str, Any]:
    return {"predicted": msgspec.to_builtins(predicted), "measured": measured and measured.to_dict()}


def reuse_verdicts(result: RunResult, document: Mapping[str, Any]) -> None:
    """Take over the verdicts of a document that this version of the analysis derived, to save deriving them again."""

    def read(name: str, of: type[T]) -> tuple[T, ...]:
        values = [{**values, "direction": Direction.parse(values["direction"])} for values in document[name]]
        return msgspec.convert(values, tuple[of, ...])  # type: ignore[valid-type]

    warnings = noted_warnings(document["warnings"], "analysis")
    own = warnings[: len(warnings) - len(result._further_warnings)]
    verdicts = {
        "analysis": Analysis(read("analysis", DirectionResult), own, read("stalls", Stall)),
        "losses": msgspec.convert(document["losses"], LossReport | None),
        "streams": {
            Direction.parse(verdict["direction"]): msgspec.convert(verdict["streams"], tuple[StreamLoss, ...])
            for verdict in document["analysis"]
            if "streams" in verdict
        },
    }
    vars(result).update(verdicts)  # all of them or none


def from_document(document: Any) -> RunResult:
    """Read the run of a document of any version, but no derived figure; StoreError names a missing or wrong field."""
    version = version_of(document, "run document", SCHEMA, VERSION)
    try:
        document = upgrade(document, version)
        if not document["profiles"]:
            raise ValueError("no profile")
        plan = plan_from_dict(document["plan"])
        telemetry = document.get("telemetry") or {"mode": "off", "readings": []}
        return RunResult(
            id=str(document["id"]),
            started=str(document["started"]),
            finished=document["finished"],
            status=Status(document["status"]),
            reason=document["reason"],
            simulated=bool(document["simulated"]),
            command=_mapping(document["command"]),
            dut=_mapping(document["dut"]),
            profiles={Direction.parse(name): _mapping(profile) for name, profile in document["profiles"].items()},
            generator=_mapping(document["generator"]),
            host=_mapping(document["host"]),
            plan=plan,
            samples=tuple(_samples(document["samples"])),
            warnings=noted_warnings(document["warnings"]),
            telemetry=str(telemetry["mode"]),
            dut_readings=msgspec.convert(telemetry["readings"], tuple[DutReading, ...]),
            over=msgspec.convert(document.get("over"), TrafficPath | None),
            spread=msgspec.convert((document.get("spread") or {}).get("predicted"), FlowSpread | None),
        )
    except KeyError as error:
        raise StoreError(f"run document without {error.args[0]!r}", "the file is damaged") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError, ConfigError) as error:
        raise StoreError(f"run document with a value of the wrong kind ({error})", "the file is damaged") from error


def _samples(values: Any) -> Iterator[Sample]:
    for number, value in enumerate(values):
        try:
            yield sample_from_dict(value)
        except ValueError as error:
            raise ValueError(f"sample {number}: {error}") from error


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object, found {type(value).__name__}")
    return value
