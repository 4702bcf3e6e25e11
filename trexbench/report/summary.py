"""What a run has to say, in the order in which a reader wants it: the answer, the figures, the doubts, the facts.

Words and figures only; text.py and terminal.py lay them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.latency import Latency
from ..core.plan import LATENCY_LOADS, Direction, Plan
from ..core.result import RunResult, Status
from ..core.sample import Phase
from ..core.units import format_bits, format_duration, format_pps, format_share, format_time
from ..core.verdict import DirectionResult, Limit
from ..core.windows import phase_window
from .costs import cost_words

LIMIT_WORDS = {
    Limit.DUT: "the DUT saturated",
    Limit.GENERATOR_TX: "the generator could not send more",
    Limit.GENERATOR_RX: "the generator could not receive more",
    Limit.LINK: "a link failed",
    Limit.NONE: "no limit found",
}
NONE = "-"
COLUMNS = 4
"""Directions side by side in a table; more go below."""


@dataclass(frozen=True)
class Answer:
    """One direction's figure: the last good rate of a ramp, or what came out of a filled line.

    pps is the DUT's own limit only where at_least is False. offered_pps: what was sent meanwhile.
    """

    result: DirectionResult
    offered_pps: float | None

    @property
    def pps(self) -> float:
        return self.result.maximum_pps

    @property
    def at_least(self) -> bool:
        return self.result.at_least

    @property
    def direction(self) -> Direction:
        return self.result.direction

    @property
    def text(self) -> str:
        if self.at_least and not self.pps:
            return NONE
        return f"{'>= ' if self.at_least else ''}{format_pps(self.pps)}"


@dataclass(frozen=True)
class Summary:
    """banners: what must not be overlooked. rows: label, then one cell per direction. facts: label and text."""

    banners: tuple[str, ...]
    headline: str
    directions: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    verdicts: tuple[tuple[str, str], ...]
    doubts: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]

    @property
    def tables(self) -> Iterator[list[tuple[str, ...]]]:
        """Tables of at most COLUMNS directions, each headed by a row with their names."""
        for start in range(0, len(self.directions), COLUMNS):
            chosen = slice(start, start + COLUMNS)
            yield [("", *self.directions[chosen]), *((row[0], *row[1:][chosen]) for row in self.rows)]


def summarise(result: RunResult) -> Summary:
    answers = answers_of(result)
    return Summary(
        banners=_banners(result),
        headline=headline(result, answers),
        directions=tuple(str(a.direction) for a in answers),
        rows=_rows(result, answers),
        verdicts=tuple((str(a.direction), f"{limit_words(result, a)}: {'; '.join(a.result.reasons)}") for a in answers),
        doubts=tuple(c.text for c in (*result.caveats, *result.analysis_caveats, *result.dut_caveats)),
        facts=_facts(result),
    )


def answers_of(result: RunResult) -> tuple[Answer, ...]:
    answers = []
    for one in result.analysis.directions:
        hold = phase_window(one.direction, result.samples, Phase.HOLD) if result.plan.kind == "saturate" else None
        answers.append(Answer(one, hold.sent_pps if hold else None))
    return tuple(answers)


def name_of(result: RunResult) -> str:
    """DUT, mode, direction, and whether it is only a model: ``lab-linux var2-64b bidir``."""
    dut, mode = text_of(result.dut, "name", "?"), text_of(result.command, "mode", "?")
    saturate = " saturate" if result.plan.kind == "saturate" else ""
    simulated = " simulated" if result.simulated else ""
    return f"{dut} {mode} {'bidir' if result.plan.bidir else 'one way'}{saturate}{simulated}"


def headline(result: RunResult, answers: Sequence[Answer]) -> str:
    """The run in one line."""
    return f"{name_of(result)}: {answer_words(result, answers)}"


def answer_words(result: RunResult, answers: Sequence[Answer]) -> str:
    """What came of it: rates, share of line rate, verdict."""
    plan = result.plan
    if not any(a.pps for a in answers):
        return _nothing(answers)
    total, at_least = sum(a.pps for a in answers), any(a.at_least for a in answers)
    rate = f"{'>= ' if at_least else ''}{format_pps(total)}"
    if len(answers) > 1:
        rate += f" in sum ({' + '.join(a.text for a in answers)})" if len(answers) <= 4 else " in sum"
    if plan.kind == "saturate":
        rate += f" came out of {format_pps(sum(a.offered_pps or 0.0 for a in answers))} offered"
    reach = f" ({len(answers)} directions, up to {len(answers)}00 %)" if len(answers) > 1 else ""
    share = f"{format_share(plan.line_share(total))} of {nominal(format_bits(plan.line_rate_bps))} line rate{reach}"
    return f"{rate}, {format_bits(plan.l1_bps(total))} L1, {share}: {verdict(result, answers)}"


def _nothing(answers: Sequence[Answer]) -> str:
    bad = [a.result for a in answers if a.result.first_bad_pps is not None]
    if not bad:
        return "nothing was measured"
    lowest, most = min(r.first_bad_pps or 0.0 for r in bad), max(r.max_received_pps for r in bad)
    return f"no rate without loss, from {format_pps(lowest)} on; received {format_pps(most)} at most"


def verdict(result: RunResult, answers: Sequence[Answer]) -> str:
    """Who was the limit, in words; direction by direction where they differ."""
    words = [limit_words(result, a) for a in answers]
    if len(set(words)) == 1:
        return words[0]
    return ", ".join(f"{a.direction} {word}" for a, word in zip(answers, words, strict=True))


def limit_words(result: RunResult, answer: Answer) -> str:
    """One direction's verdict in words."""
    words = LIMIT_WORDS[answer.result.limit]
    if answer.result.limit is Limit.NONE and result.status is not Status.COMPLETE:
        return f"{words} before the run ended"
    return words


def nominal(text: str) -> str:
    """A round figure without the zeros that only measured ones deserve: ``1 Gbit/s``, ``0.1 %``."""
    return re.sub(r"(\d+\.\d*?)0+(?= )", r"\1", text).replace(". ", " ")


def text_of(values: Mapping[str, Any], key: str, otherwise: str) -> str:
    """A fact as text, on one line: documents hold whatever their owners said."""
    value = values.get(key)
    return " ".join(str(value).split()) if value not in (None, "") else otherwise


def _banners(result: RunResult) -> tuple[str, ...]:
    banners = []
    if result.simulated:
        banners.append("SIMULATED: no real packet was sent; the numbers are a model's")
    if result.status is Status.INCOMPLETE:
        banners.append(f"INCOMPLETE: {result.reason or 'ended early'}; what follows was measured until then")
    if result.status is Status.RUNNING:
        banners.append("UNFINISHED: this run is still being measured, or its writer was killed")
    return tuple(banners)


def _rows(result: RunResult, answers: Sequence[Answer]) -> tuple[tuple[str, ...], ...]:
    plan, limit = result.plan, nominal(format_share(result.plan.loss_threshold))
    if plan.kind == "saturate":
        first = [
            ("offered", [format_pps(a.offered_pps or 0.0) for a in answers]),
            ("came out", [a.text for a in answers]),
        ]
        middle = [("uncertainty", [_uncertainty(a.result, "+-") for a in answers])]
    else:
        first = [(f"last rate with loss <= {limit}", [a.text for a in answers])]
        middle = [
            ("first rate above that loss", [_pps(a.result.first_bad_pps) for a in answers]),
            ("uncertainty", [_uncertainty(a.result, "+-") for a in answers]),
            (f"confirmed, held {format_duration(plan.confirm_s)}", [_confirmed(a.result) for a in answers]),
        ]
    rows = [
        *first,
        ("  on the wire (L1)", [format_bits(plan.l1_bps(a.pps)) for a in answers]),
        ("  of line rate", [format_share(plan.line_share(a.pps)) for a in answers]),
        *middle,
        ("most received in a window", [format_pps(a.result.max_received_pps) for a in answers]),
        ("loss in the hold", [_share(a.result.hold_loss) for a in answers]),
        ("frames sent, whole run", [_count(a.result.sent) for a in answers]),
        ("frames received", [_count(a.result.received) for a in answers]),
        *_latency_rows(result),
    ]
    return tuple((label, *cells) for label, cells in rows)


def _latency_rows(result: RunResult) -> Iterator[tuple[str, list[str]]]:
    """Mean, and the time that 99 of 100 tagged frames kept within, at each share of the throughput found."""
    for share in dict.fromkeys(one.share for one in result.latencies):
        yield (
            f"latency at {100 * share:g} % of the throughput, mean (99 % within)",
            [_time(one) for one in result.latencies if one.share == share],
        )


def _facts(result: RunResult) -> tuple[tuple[str, str], ...]:
    facts = [
        *_dut_words(result),
        ("sent", profile_words(result.profile)),
        ("plan", plan_words(result.plan)),
        ("DUT", text_of(result.dut, "description", text_of(result.dut, "name", "?"))),
        ("generator", _generator(result.generator)),
        *([("label", text_of(result.command, "label", ""))] if result.command.get("label") else []),
        ("started", f"{result.started}{f', ended {result.finished}' if result.finished else ''}"),
    ]
    return tuple(facts)


def _dut_words(result: RunResult) -> Iterator[tuple[str, str]]:
    """What the DUT counted about itself: cost of a packet, where frames were lost, how the flows spread."""
    held = [cost for cost in result.costs if cost.phase is not Phase.RAMP]
    for cost in held:
        name = cost.phase.value if cost.phase is not Phase.CONFIRM or cost.trial < 2 else f"confirm {cost.trial}"
        yield f"{name}:" if len(held) > 1 else "cost", cost_words(cost)
    if result.losses is not None and result.losses.lost:
        yield "loss", result.losses.sentence
    if result.spread is not None and result.spread.sentences:
        yield "spread", "; ".join(result.spread.sentences)
    if result.spread_check is not None:
        yield "", result.spread_check.sentence


def profile_words(profile: Mapping[str, Any]) -> str:
    """What went on the wire: file, sizes, mean, flows, what varies."""
    tunables, varied = profile.get("tunables"), profile.get("varied")
    given = " " + ",".join(f"{k}={v}" for k, v in tunables.items()) if isinstance(tunables, Mapping) else ""
    parts = [f"{text_of(profile, 'name', '?')}{given}: {traffic_words(profile)}"]
    if isinstance(varied, Sequence) and not isinstance(varied, str) and varied:
        parts.append("; ".join(str(v) for v in varied))
    return ", ".join(parts)


def traffic_words(profile: Mapping[str, Any]) -> str:
    """Sizes, mean and flows: ``64 B frames, 251 flows``."""
    mean, flows = profile.get("mean_frame_bytes"), profile.get("flows")
    parts = [text_of(profile, "mix", "frames of unknown size")]
    if isinstance(mean, int | float) and ":" in parts[0] and "mean" not in parts[0]:
        parts.append(f"mean {mean:.1f} B")
    if isinstance(flows, int):
        upper = "" if profile.get("flows_exact", True) else "at most "
        parts.append(f"{upper}{_count(flows)} flow{'' if flows == 1 else 's'}")
    return ", ".join(parts)


def plan_words(plan: Plan) -> str:
    line = f"{format_pps(plan.line_rate_pps)} per direction at {nominal(format_bits(plan.line_rate_bps))}"
    share = nominal(format_share(plan.line_share(plan.target_pps)))
    target = f"{format_pps(plan.target_pps)} ({share} of line rate, {line})"
    steps = [f"{nominal(format_pps(plan.warmup_pps))} for {format_duration(plan.warmup_s)}"]
    if plan.kind == "ramp":
        steps.append(f"ramp to {target} in {format_duration(plan.ramp_s)}")
        steps.append(f"hold {format_duration(plan.hold_s)}")
        if plan.confirm_s:
            steps.append(f"confirm {format_duration(plan.confirm_s)}")
        if plan.latency_s:
            loads = ", ".join(f"{100 * share:g}" for share in LATENCY_LOADS)
            steps.append(f"latency at {loads} % of the throughput, {format_duration(plan.latency_s)} each")
    else:
        steps.append(f"{target} at once for {format_duration(plan.hold_s)}")
    judged = (
        f"bad is loss > {nominal(format_share(plan.loss_threshold))} in {plan.windows} windows of {plan.window_s:g} s"
    )
    return f"{', '.join(steps)}; {judged}; a sample every {plan.sample_s:g} s"


def _generator(generator: Mapping[str, Any]) -> str:
    server = generator.get("server")
    if not isinstance(server, Mapping):
        return " ".join(text_of(generator, key, "") for key in ("kind", "version")).strip() or "?"
    kind = text_of(generator, "kind", "STL server")
    version = text_of(server, "version", "of unknown version")
    return f"{kind}, {version}, at {text_of(server, 'address', '?')}"


def _pps(value: float | None) -> str:
    return NONE if value is None else format_pps(value)


def _share(value: float | None) -> str:
    return NONE if value is None else format_share(value)


def _time(latency: Latency) -> str:
    if latency.mean_s is None:
        return NONE
    within = "" if latency.p99_s is None else f" ({format_time(latency.p99_s)})"
    return f"{format_time(latency.mean_s)}{within}"


def _count(value: int) -> str:
    return f"{value:,}".replace(",", " ")


def _uncertainty(result: DirectionResult, sign: str) -> str:
    return f"{sign} {format_pps(result.uncertainty_pps)}" if result.uncertainty_pps else NONE


def _confirmed(result: DirectionResult) -> str:
    if not result.trials:
        return NONE
    return "none" if result.confirmed_pps is None else format_pps(result.confirmed_pps)
