"""The run document: everything a report may ever need, as plain JSON values. The only record of a run.

Version 1. ``samples`` hold raw counters; ``analysis`` is derived from them and can be derived again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import cached_property
from math import isfinite
from typing import Any

from .analysis import analyse
from .cycles import Cost, find_costs, find_stretches
from .errors import ConfigError, StoreError
from .flowspread import FlowSpread
from .latency import Latency, find_latencies, find_latency_caveats
from .losses import LossReport, locate
from .plan import Direction, Plan
from .sample import LatencyCounters, Phase, PortCounters, Reading, Sample
from .spreadcheck import SpreadCheck, compare_spread
from .telemetry import Moment, Sighting, sighting_from_dict, sighting_to_dict
from .verdict import Analysis, Caveat, DirectionResult

SCHEMA = "trexbench/run"
VERSION = 1


class Status(str, Enum):
    """running: still being written, or its writer was killed. incomplete: ended early, ``reason`` says why."""

    RUNNING = "running"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True)
class RunResult:
    """One run. started/finished: UTC, ISO 8601. The mappings are facts as their owners gave them (JSON values).

    dut: name, driver, configuration, what was applied, what was read back. profile: what went on the wire.
    generator: kind, version, ports, client. host: the tester. simulated: no real packet was sent. telemetry: when the
    DUT was looked at (``off``, ``hold``, ``ramp``); sightings: what it counted, raw. spread: how the load was expected
    to fall on the DUT's queues and cores.
    """

    id: str
    started: str
    status: Status
    command: Mapping[str, Any]
    plan: Plan
    profile: Mapping[str, Any]
    dut: Mapping[str, Any]
    generator: Mapping[str, Any]
    host: Mapping[str, Any]
    samples: Sequence[Sample]
    finished: str | None = None
    reason: str | None = None
    simulated: bool = False
    caveats: tuple[Caveat, ...] = field(default_factory=tuple)
    telemetry: str = "off"
    sightings: Sequence[Sighting] = ()
    spread: FlowSpread | None = None

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """What a packet cost the DUT, stretch by stretch; see core.cycles."""
        return find_costs(self.plan, self.samples, tuple(self.sightings))

    @cached_property
    def latencies(self) -> tuple[Latency, ...]:
        """How long frames took at shares of the throughput found; see core.latency."""
        return find_latencies(self.plan, self.samples)

    @cached_property
    def losses(self) -> LossReport | None:
        """Where the run's lost frames were lost; None where the DUT was not looked at before and after it."""
        seen = {one.moment: one.observation for one in tuple(self.sightings)}
        if Moment.START not in seen or Moment.FINISH not in seen or len(self.samples) < 2:
            return None
        first, last = self.samples[0].reading.ports, self.samples[-1].reading.ports
        directions = self.plan.directions
        sent = {d: last[d.tx].opackets - first[d.tx].opackets for d in directions}
        lost = {d: sent[d] - (last[d.rx].ipackets - first[d.rx].ipackets) for d in directions}
        errors = {d.rx: last[d.rx].ierrors - first[d.rx].ierrors for d in directions}
        return locate(seen[Moment.START], seen[Moment.FINISH], lost, sent, errors)

    @cached_property
    def spread_check(self) -> SpreadCheck | None:
        """How the flows fell on queues and workers, in the stretch that lost least; None where nothing was foretold."""
        pairs = [(begin, end) for begin, end in find_stretches(tuple(self.sightings)) if end.moment is Moment.END]
        if self.spread is None or not pairs:
            return None
        loss = {cost.begin_s: cost.loss or 0.0 for cost in self.costs}
        begin, end = min(pairs, key=lambda pair: loss.get(pair[0].t_s, 1.0))
        return compare_spread(self.spread, begin.observation, end.observation)

    @property
    def dut_caveats(self) -> tuple[Caveat, ...]:
        """Doubts about what the DUT told of itself, each once."""
        found = [caveat for cost in self.costs for caveat in cost.caveats]
        found += self.losses.caveats if self.losses else ()
        found += self.spread_check.caveats if self.spread_check else ()
        return tuple(dict.fromkeys(found))

    @property
    def analysis_caveats(self) -> tuple[Caveat, ...]:
        """Doubts about what was measured, as it follows from the samples."""
        return (*self.analysis.caveats, *find_latency_caveats(self.latencies))

    @cached_property
    def analysis(self) -> Analysis:
        """Derived once: everything that goes into it is frozen."""
        return analyse(self.plan, self.samples)


def to_document(result: RunResult, with_samples: bool = True) -> dict[str, Any]:
    """The JSON document of a run, analysis included; the samples come last, or not at all."""
    samples = {"samples": [sample_to_dict(s) for s in result.samples]} if with_samples else {}
    return {**raw_part(result), **_derived_part(result), **samples}


def raw_part(result: RunResult) -> dict[str, Any]:
    """What cannot be derived again, but for the samples. Of the warnings only those that were noted during the run."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "id": result.id,
        "status": result.status.value,
        "reason": result.reason,
        "simulated": result.simulated,
        "started": result.started,
        "finished": result.finished,
        "command": dict(result.command),
        "dut": dict(result.dut),
        "profile": dict(result.profile),
        "plan": plan_to_dict(result.plan),
        "generator": dict(result.generator),
        "host": dict(result.host),
        "spread": {"predicted": result.spread.to_dict() if result.spread else None, "measured": None},
        "telemetry": {
            "mode": result.telemetry,
            "sightings": [sighting_to_dict(one) for one in tuple(result.sightings)],
        },
        "warnings": [_warning("run", c) for c in result.caveats],
    }


def _derived_part(result: RunResult) -> dict[str, Any]:
    analysis = result.analysis
    return {
        "analysis": [_direction_to_dict(d) for d in analysis.directions],
        "total_pps": analysis.total_pps,
        "at_least": analysis.at_least,
        "latency": [one.to_dict() for one in result.latencies],
        "efficiency": [_cost_to_dict(cost) for cost in result.costs],
        "losses": result.losses.to_dict() if result.losses else None,
        "spread": {
            "predicted": result.spread.to_dict() if result.spread else None,
            "measured": result.spread_check.to_dict() if result.spread_check else None,
        },
        "warnings": [
            *(_warning("run", c) for c in result.caveats),
            *(_warning("analysis", c) for c in result.analysis_caveats),
            *(_warning("dut", c) for c in result.dut_caveats),
        ],
    }


def from_document(document: Mapping[str, Any]) -> RunResult:
    """The run of a document; StoreError names the field that is missing or of the wrong kind.

    The analysis is not read: it is derived anew from the samples.
    """
    if not isinstance(document, Mapping):
        raise StoreError(f"not a run document, but a JSON {type(document).__name__}", "it was not written by trexbench")
    if document.get("schema") != SCHEMA:
        raise StoreError(f"not a run document (schema {document.get('schema')!r})", f"expected {SCHEMA!r}")
    version = document.get("version")
    if not isinstance(version, int) or version < 1:
        raise StoreError(f"run document of unknown version {version!r}", "it was not written by trexbench")
    if version > VERSION:
        raise StoreError(f"run document of version {version}, newer than {VERSION}", "upgrade trexbench to read it")
    try:
        samples = tuple(sample_from_dict(s) for s in document["samples"])
        plan = plan_from_dict(document["plan"])
        telemetry = document.get("telemetry") or {"mode": "off", "sightings": []}
        caveats = [Caveat(str(w["code"]), str(w["text"])) for w in document["warnings"] if w["source"] == "run"]
        return RunResult(
            id=str(document["id"]),
            started=str(document["started"]),
            finished=document["finished"],
            status=Status(document["status"]),
            reason=document["reason"],
            simulated=bool(document["simulated"]),
            command=_mapping(document["command"]),
            dut=_mapping(document["dut"]),
            profile=_mapping(document["profile"]),
            generator=_mapping(document["generator"]),
            host=_mapping(document["host"]),
            plan=plan,
            samples=samples,
            caveats=tuple(caveats),
            telemetry=str(telemetry["mode"]),
            sightings=tuple(sighting_from_dict(one) for one in telemetry["sightings"]),
            spread=_spread_of(document),
        )
    except KeyError as error:
        raise StoreError(f"run document without {error.args[0]!r}", "the file is damaged") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError, ConfigError) as error:
        raise StoreError(f"run document with a value of the wrong kind ({error})", "the file is damaged") from error


_NOT_NUMBERS = ("directions", "kind", "stop_on_saturation")


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    return asdict(plan) | {"directions": [[d.tx, d.rx] for d in plan.directions]}


def plan_from_dict(values: Mapping[str, Any]) -> Plan:
    directions = tuple(Direction(int(tx), int(rx)) for tx, rx in values["directions"])
    for name, value in values.items():
        if name not in _NOT_NUMBERS and (type(value) not in (int, float) or not isfinite(value)):
            raise ValueError(f"plan: {name} is no number")
    if not isinstance(values["windows"], int) or values["windows"] < 1:
        raise ValueError("plan: windows is no count")
    return Plan(**{**values, "directions": directions})


def _warning(source: str, caveat: Caveat) -> dict[str, str]:
    """``source`` tells what was noted during the run from what follows from the samples again."""
    return {"source": source, "code": caveat.code, "text": caveat.text}


def _direction_to_dict(result: DirectionResult) -> dict[str, Any]:
    values = asdict(result)
    values["direction"] = str(result.direction)
    values["limit"] = result.limit.value
    values["confirmed_pps"] = result.confirmed_pps
    return values


def _spread_of(document: Mapping[str, Any]) -> FlowSpread | None:
    predicted = (document.get("spread") or {}).get("predicted")
    return None if predicted is None else FlowSpread.from_dict(_mapping(predicted))


def _cost_to_dict(cost: Cost) -> dict[str, Any]:
    values = asdict(cost)
    del values["caveats"]  # they stand among the document's warnings
    return {**values, "phase": cost.phase.value, "effective_hz": cost.effective_hz, "loss": cost.loss}


def sample_to_dict(sample: Sample) -> dict[str, Any]:
    reading = sample.reading
    tagged = {"latency": {str(p): dict(vars(c)) for p, c in reading.latency.items()}} if reading.latency else {}
    return {
        "phase": sample.phase.value,
        "trial": sample.trial,
        "t_s": sample.t_s,
        "asked_pps": sample.asked_pps,
        "queue_full": reading.queue_full,
        "cpu_percent": reading.cpu_percent,
        "ports": {str(p): dict(vars(c)) for p, c in reading.ports.items()},
        **tagged,
    }


def sample_from_dict(values: Mapping[str, Any]) -> Sample:
    """KeyError, TypeError or ValueError for what is no sample; whether its figures can be is find_damage's to say."""
    ports = {int(p): PortCounters(**c) for p, c in values["ports"].items()}
    latency = {int(p): _latency_counters(c) for p, c in values["latency"].items()} if "latency" in values else {}
    reading = Reading(ports, values["queue_full"], values["cpu_percent"], latency)
    return Sample(Phase(values["phase"]), float(values["t_s"]), float(values["asked_pps"]), reading, values["trial"])


def _latency_counters(values: Mapping[str, Any]) -> LatencyCounters:
    return LatencyCounters(**{**values, "histogram": {int(low): n for low, n in values["histogram"].items()}})


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object, found {type(value).__name__}")
    return value
