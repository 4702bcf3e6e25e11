"""Decide what limited one direction of a leg, with warnings that qualify it.

Only ``dut`` is a statement about the DUT: with any other limit it carries *at least* what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ..units import format_bits, format_share
from ..verdict.parts import RunWarning
from . import signs
from .signs import TcpEvidence
from .window import TcpWindow


class TcpLimit(str, Enum):
    ENDPOINT_CPU = "endpoint-cpu"
    WINDOW = "window"
    LINK = "link"
    DUT = "dut"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    TcpLimit.DUT: "the DUT was the limit",
    TcpLimit.ENDPOINT_CPU: "an endpoint's CPU was the limit",
    TcpLimit.WINDOW: "a window was the limit",
    TcpLimit.LINK: "the line was full",
    TcpLimit.UNKNOWN: "no limit found",
}

RULES: tuple[tuple[TcpLimit, Callable[[TcpEvidence], Iterable[str]]], ...] = (
    (TcpLimit.ENDPOINT_CPU, signs.of_endpoints),
    (TcpLimit.WINDOW, lambda evidence: () if evidence.window is None else (str(evidence.window),)),
    (TcpLimit.LINK, signs.of_line),
    (TcpLimit.DUT, signs.of_dut),
    (TcpLimit.ENDPOINT_CPU, signs.of_sleepers),
    (TcpLimit.UNKNOWN, signs.of_shared_cores),
)
"""In order of precedence: the first rule with signs is the limit, and they are its reasons."""
NOTHING = "no CPU, window, line or drop explains the rate"


@dataclass(frozen=True)
class TcpVerdict:
    limit: TcpLimit  # what limited the rate
    reasons: tuple[str, ...]  # the evidence, in sentences
    window: TcpWindow | None = None  # the window that is the limit
    link_bps: float | None = None  # payload that the slowest line carries; None: no line, or unknown
    warnings: tuple[RunWarning, ...] = ()

    @property
    def at_least(self) -> bool:
        """The rate is a lower bound: the DUT was not the limit."""
        return self.limit is not TcpLimit.DUT


def find_limit(evidence: TcpEvidence) -> TcpVerdict:
    """Apply RULES to the evidence of one direction, unless it has no rate that a limit could explain."""
    rules = RULES if evidence.flow.regular and evidence.rate_bps else ()
    no_rate = "nothing was received" if evidence.flow.regular else "no whole interval was measured"
    nothing = (TcpLimit.UNKNOWN, (NOTHING if rules else no_rate,))
    seen = ((limit, tuple(signs_of(evidence))) for limit, signs_of in rules)
    limit, reasons = next((verdict for verdict in seen if verdict[1]), nothing)
    return TcpVerdict(
        limit=limit,
        reasons=reasons,
        window=evidence.window if limit is TcpLimit.WINDOW else None,
        link_bps=evidence.link_bps,
        warnings=tuple(_warnings(evidence, limit)),
    )


def _warnings(evidence: TcpEvidence, limit: TcpLimit) -> Iterator[RunWarning]:
    leg, dut = evidence.leg, evidence.share("dut")
    for host in (evidence.flow.sender, evidence.flow.receiver):
        waiting = evidence.share(host).waiting
        if signs.waits(waiting):
            beside = evidence.beside(host)
            why = f"{' and '.join(beside)} may run on the same core" if beside else "other work ran there"
            text = f"the {host}'s program waited for a CPU for {format_share(waiting or 0.0)} of the time: {why}"
            yield RunWarning("cores-shared" if beside else "foreign-load", f"{leg}: {text}")
        if foreign := {*evidence.busy_cores(host)} - {*evidence.filled_cores(host)}:
            first = min(core.cpu for core in foreign)
            text = f"the {host}'s CPU {first} had no time left, most of it for other work than the endpoints'"
            yield RunWarning("foreign-load", f"{leg}: {text}")
    for tunnel in dut.tunnels:
        if tunnel.thread is None and signs.waits(tunnel.waiting):
            waited = f"waited for a CPU for {format_share(tunnel.waiting or 0.0)} of the time: other work ran there"
            yield RunWarning("foreign-load", f"{leg}: the DUT's tunnel ({tunnel.name}) {waited}")
    for bps, line in evidence.given_lines:
        if evidence.rate_bps > signs.BEYOND_LINE * bps:
            text = f"{format_bits(evidence.rate_bps)} of payload came through, and {line} carries {format_bits(bps)}"
            yield RunWarning("line-speed", f"{leg}: {text}: the speed given must be wrong, and does not count")
    if not evidence.cores_apart:
        text = "the router may work on the endpoints' cores: the CPU time of a program may include the router's"
        yield RunWarning("cores-shared", text)
    if evidence.ceiling_bps is None and limit in (TcpLimit.DUT, TcpLimit.UNKNOWN):
        yield RunWarning("no-ceiling", "what the endpoints carry without the router was not measured")
    if evidence.ceiling_bps is not None and evidence.refutes_ceiling:
        text = f"the endpoints carried only {format_bits(evidence.ceiling_bps)} without the router: it does not count"
        yield RunWarning("no-ceiling", f"{leg}: {text}")
    if limit is TcpLimit.DUT and (cpu := evidence.dut_other_work) is not None:
        text = f"the DUT's CPU {cpu} spent most of its time on programs or threads, which need not be forwarding"
        yield RunWarning("other-work", f"{leg}: {text}")
    if evidence.dut_polls:
        yield RunWarning("dut-polls", "the DUT's workers poll and are always busy: its CPU is no evidence")
    elif not evidence.dut_busy and (full := evidence.busy_cores("dut")):
        text = f"the DUT's CPU {full[0].cpu} had no time left, most of it for other work than packets"
        yield RunWarning("foreign-load", f"{leg}: {text}")
    elif limit is TcpLimit.UNKNOWN and not dut.cpus:
        why = "no CPU time of the DUT is known"
        if evidence.setup.dut_is_guest and any(reading.observation.cpus for reading in evidence.dut):
            why = "the guest's CPU times run at another pace than the clock, as an emulated processor's do"
        yield RunWarning("dut-unread", f"{leg}: {why}: the DUT may have been the limit")
