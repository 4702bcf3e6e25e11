"""Runs in a line each, and cells: what is measured again and again, night after night."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .damage import find_damage
from .errors import StoreError
from .latency import history_latency
from .result import RunResult, Status, from_document
from .sample import Phase
from .verdict import Limit

_TOO_LARGE = 1e300


@dataclass(frozen=True, order=True)
class Cell:
    """What is measured again and again: runs of one cell may be compared over time. rx_queues: None where unknown."""

    dut: str
    mode: str
    bidir: bool
    rx_queues: int | None
    kind: str = "ramp"
    simulated: bool = False

    def __str__(self) -> str:
        queues = f" {self.rx_queues}q" if self.rx_queues is not None else ""
        kind = "" if self.kind == "ramp" else f" {self.kind}"
        simulated = " simulated" if self.simulated else ""
        return f"{self.dut} {self.mode} {'bidir' if self.bidir else 'uni'}{queues}{kind}{simulated}"


@dataclass(frozen=True)
class RunRow:
    """What an index keeps of one run's document. Absent is None.

    path: below the results directory. started: UTC, ISO 8601. traffic: digest of what went on the wire. facts: SHA-256
    of what was read back from the DUT. suite, night: where a suite's run belongs (night: a date); label: the user's
    word. total_pps: of all directions, a lower bound where at_least; uncertainty_pps: of that sum; line_share: of one
    direction's line rate, so up to 2 both ways. limit: of the direction that is worst off (``dut``, ``generator-tx``
    ...). hold_loss: the worst direction's; latency_s: its mean at half of the throughput. cycles_per_packet and the
    like: of the hold. nodes: cycles per packet by VPP's node, over all workers.
    """

    path: str
    id: str
    started: str
    status: str
    cell: Cell
    traffic: str | None
    line_rate_bps: float
    loss_threshold: float
    facts: str | None
    suite: str | None
    night: str | None
    total_pps: float
    at_least: bool
    uncertainty_pps: float
    line_share: float
    limit: str
    hold_loss: float | None = None
    latency_s: float | None = None
    cycles_per_packet: float | None = None
    with_polling: float | None = None
    vectors_per_call: float | None = None
    power_w: float | None = None
    uj_per_packet: float | None = None
    nodes: Mapping[str, float] = field(default_factory=dict)
    warnings: int = 0
    label: str | None = None

    @property
    def complete(self) -> bool:
        return self.status == Status.COMPLETE.value


@dataclass(frozen=True)
class Metric:
    """A figure of a run that has a history. better: ``higher`` or ``lower``. minimum: changes below this share of the
    value are too small to be told, whatever their significance; ``absolute`` adds a floor in the figure's own unit.
    bounded: the value is only a bound where the run's is (RunRow.at_least).
    """

    name: str
    unit: str
    better: str
    of: Callable[[RunRow], float | None]
    minimum: float
    absolute: float = 0.0
    bounded: bool = False


METRICS: tuple[Metric, ...] = (
    Metric("maximum rate", "pps", "higher", lambda row: row.total_pps, 0.01, bounded=True),
    Metric("cycles/packet", "cycles", "lower", lambda row: row.cycles_per_packet, 0.01),
    Metric("loss in the hold", "share", "lower", lambda row: row.hold_loss, 0.02, absolute=0.001),
    Metric(
        "latency", "us", "lower", lambda row: None if row.latency_s is None else 1e6 * row.latency_s, 0.05, absolute=1.0
    ),
    Metric("power", "W", "lower", lambda row: row.power_w, 0.02),
)


def row_of(result: RunResult, path: str) -> RunRow:
    """The line of one run."""
    analysis = result.analysis
    directions = [
        _Direction(one.limit.value, one.at_least, one.maximum_pps, one.uncertainty_pps, one.hold_loss)
        for one in analysis.directions
    ]
    held = next((cost for cost in result.costs if cost.phase is Phase.HOLD), None)
    figures: dict[str, Any] = {}
    if held is not None:
        workers = [
            (worker.packets, [(node.name, node.cycles_per_packet) for node in worker.nodes]) for worker in held.workers
        ]
        figures = {name: getattr(held, name) for name in _FIGURES} | {"nodes": _nodes(workers)}
    figures["latency_s"] = history_latency([one.to_dict() for one in result.latencies])
    warnings = len(result.caveats) + len(result.analysis_caveats) + len(result.dut_caveats)
    return _row(result, path, directions, warnings, figures)


def row_from_head(document: Mapping[str, Any], path: str) -> RunRow:
    """The same line from a document without its samples, as the writer derived it: of 660 samples 100 times faster.

    StoreError where anything in it is missing or of another kind than the writer writes; the samples may tell more.
    """
    result = from_document({**document, "samples": ()})
    damage = find_damage(result)
    if damage:
        raise StoreError(f"run document with {damage}", "the file is damaged")
    try:
        directions = [_direction_from(one) for one in document["analysis"]]
        names = [one["direction"] for one in document["analysis"]]
        if names != [str(one) for one in result.plan.directions]:
            raise ValueError("analysis of other directions than the plan's")
        held = next((cost for cost in document["efficiency"] if cost["phase"] == Phase.HOLD.value), None)
        figures = {} if held is None else _figures_from(held)
        figures["latency_s"] = history_latency([_latency_from(one) for one in document.get("latency", ())])
        sources = [one["source"] for one in document["warnings"]]
        if not set(sources) <= {"run", "analysis", "dut"}:
            raise ValueError("a warning from nowhere")
        return _row(result, path, directions, len(sources), figures)
    except KeyError as error:
        raise StoreError(f"run document without {error.args[0]!r}", "the file is damaged") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise StoreError(f"run document with a value of the wrong kind ({error})", "the file is damaged") from error


@dataclass(frozen=True)
class _Direction:
    """What a row is made of; as in verdict.DirectionResult."""

    limit: str
    at_least: bool
    maximum_pps: float
    uncertainty_pps: float
    hold_loss: float | None


_FIGURES = ("cycles_per_packet", "with_polling", "vectors_per_call", "power_w", "uj_per_packet")
"""Fields of a cost and of a row alike."""


def _row(
    result: RunResult, path: str, directions: Sequence[_Direction], warnings: int, figures: Mapping[str, Any]
) -> RunRow:
    command = result.command
    queues = command.get("rx_queues")
    total_pps = sum(one.maximum_pps for one in directions)
    return RunRow(
        path=path,
        id=result.id,
        started=result.started,
        status=result.status.value,
        cell=Cell(
            dut=str(result.dut.get("name", "")),
            mode=str(command.get("mode", "")),
            bidir=result.plan.bidir,
            rx_queues=queues if type(queues) is int else None,
            kind=result.plan.kind,
            simulated=result.simulated,
        ),
        traffic=_text(result.profile.get("digest")),
        line_rate_bps=result.plan.line_rate_bps,
        loss_threshold=result.plan.loss_threshold,
        facts=_text(result.dut.get("facts_sha256")),
        suite=_text(command.get("suite")),
        night=_text(command.get("night")),
        label=_text(command.get("label")),
        total_pps=total_pps,
        at_least=any(one.at_least for one in directions),
        uncertainty_pps=sum(one.uncertainty_pps**2 for one in directions) ** 0.5,
        line_share=result.plan.line_share(total_pps),
        limit=max((one.limit for one in directions), key=_badness, default="none"),
        hold_loss=max((one.hold_loss for one in directions if one.hold_loss is not None), default=None),
        warnings=warnings,
        **figures,
    )


def _nodes(workers: Iterable[tuple[int | None, Sequence[tuple[str, float]]]]) -> dict[str, float]:
    """Cycles per packet by node, over all workers: of each its packets, and its nodes' share of its cost."""
    known = list(workers)
    packets = sum(own or 0 for own, _ in known)
    found: dict[str, float] = {}
    for own, nodes in known if packets else ():
        for name, cycles in nodes:
            found[name] = found.get(name, 0.0) + cycles * (own or 0) / packets
    return found


def _direction_from(values: Mapping[str, Any]) -> _Direction:
    if type(values["at_least"]) is not bool:
        raise ValueError(f"at_least is {values['at_least']!r}")
    loss = values["hold_loss"]
    return _Direction(
        limit=Limit(values["limit"]).value,
        at_least=values["at_least"],
        maximum_pps=plain_number(values["maximum_pps"]),
        uncertainty_pps=plain_number(values["uncertainty_pps"]),
        hold_loss=None if loss is None else plain_number(loss),
    )


def _figures_from(cost: Mapping[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {name: None if cost[name] is None else plain_number(cost[name]) for name in _FIGURES}
    workers = []
    for worker in cost["workers"]:
        own = worker["packets"]
        if own is not None and (type(own) is not int or not 0 <= own < 1 << 64):
            raise ValueError(f"packets is {own!r}")
        nodes = [(_word(node["name"]), plain_number(node["cycles_per_packet"])) for node in worker["nodes"]]
        workers.append((own, nodes))
    return figures | {"nodes": _nodes(workers)}


def _latency_from(values: Mapping[str, Any]) -> Mapping[str, Any]:
    history_s = values["history_s"]
    known = None if history_s is None else plain_number(history_s)
    return {"share": plain_number(values["share"]), "history_s": known}


def plain_number(value: Any) -> float:
    """A figure of a document as it stands there; ValueError for what is none, or no float can hold."""
    if type(value) not in (int, float) or not abs(value) < _TOO_LARGE:
        raise ValueError(f"{str(value)[:40]!r} is no number")
    return value  # type: ignore[no-any-return]  # as it stands: a row of the document equals one of the run


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a name is no text")
    return value


def cells_of(rows: Iterable[RunRow]) -> dict[Cell, list[RunRow]]:
    """Complete runs by cell, each in the order of time."""
    found: dict[Cell, list[RunRow]] = {}
    for row in sorted((row for row in rows if row.complete), key=lambda row: row.started):
        found.setdefault(row.cell, []).append(row)
    return found


def _badness(limit: str) -> int:
    order = ("dut", "none", "generator-rx", "generator-tx", "link")
    return order.index(limit) if limit in order else len(order)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
