"""A run's summary in words: the answer, the verdicts, the warnings, the facts; text.py adds the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.calibration import floors_of
from ...core.dut.cycles import Cost
from ...core.load.plan import Direction, Offer
from ...core.load.sample import Phase
from ...core.load.windows import phase_window
from ...core.result import RunResult, Status
from ...core.strategy.base import Strategy
from ...core.units import format_bits, format_length, format_pps, format_share, format_time
from ...core.verdict.parts import DirectionResult, Goal, Limit
from ...core.verdict.streams import StreamLoss, lost_first, stream_names
from ..sheet import Item, of_interval, of_pps
from ..words import banners_of, format_bound, name_of, or_dash, text_of
from .costs import cost_words

LIMIT_WORDS = {
    Limit.DUT: "the DUT saturated",
    Limit.GENERATOR_TX: "the generator could not send more",
    Limit.GENERATOR_RX: "the generator could not receive more",
    Limit.LINK: "a link failed",
    Limit.NONE: "no limit found",
    Limit.UNKNOWN: "the limit is not known",
}
_ANY = Direction(-1, -1)


@dataclass(frozen=True)
class RunSummary:
    """A run's summary in words."""

    banners: tuple[str, ...]
    headline: str
    verdicts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    """Labels and texts."""


def summarise(result: RunResult) -> RunSummary:
    directions = result.analysis.directions
    verdicts = ((one, "; ".join(one.reasons)) for one in directions)
    return RunSummary(
        banners=tuple(banners_of(result)),
        headline=f"{name_of(result)}: {answer_words(result)}",
        verdicts=tuple((str(one.direction), f"{limit_words(result, one)}: {reasons}") for one, reasons in verdicts),
        warnings=tuple(c.text for c in (*result.warnings, *result.analysis_warnings, *result.dut_warnings)),
        facts=tuple(_facts(result)),
    )


def rate_words(one: DirectionResult) -> str:
    """A direction's rate: the knee of a ramp, or the rate received from a full line."""
    return or_dash(known_pps(one), lambda pps: format_bound(pps, one.at_least))


def known_pps(one: DirectionResult) -> float | None:
    """Return a direction's rate; None for a lower bound of 0, which says nothing."""
    return None if one.at_least and not one.maximum_pps else one.maximum_pps


def goal_items(one: DirectionResult, goal: Goal) -> tuple[Item, Item]:
    """Return the rate of a search's goal and its interval, which a lower bound has not."""
    bound = one.is_bound(goal)
    return of_pps(goal.maximum_pps, bound=bound), of_interval(None if bound else goal)


def answer_words(result: RunResult, brief: bool = False) -> str:
    """A run's result in one line: rates, share of line rate, verdict. brief: only the total, without verdict."""
    if (cost := held_cost_of(result)) is not None:
        return cost_words(cost, cpus=not brief)
    plan, directions = result.plan, result.analysis.directions
    rates = {one.direction: one.maximum_pps for one in directions}
    no_answer = result.analysis.unanswered
    if not any(rates.values()):
        return f"the rate is not known: {no_answer}" if no_answer else _nothing(directions)
    bound = any(one.at_least for one in directions)
    words = format_bound(sum(rates.values()), bound)
    if len(directions) > 1:
        parts = f" ({' + '.join(map(rate_words, directions))})" if len(directions) <= 4 and not brief else ""
        words += f" in total{parts}"
    elif plan.seeks_knee and (interval := of_interval(directions[0])).raw:
        words += f" ({interval.text})"
    if not plan.seeks_knee:
        words += f" received of {format_pps(sum(offered_pps(result, one) for one in directions))} offered"
    reach = f" ({len(directions)} directions, up to {len(directions)}00 %)" if len(directions) > 1 else ""
    share = f"{format_share(plan.line_share(rates), bound)} of {line_speeds(plan)} line rate{reach}"
    if brief:
        return f"{words}, {share}{', NO ANSWER' if no_answer else ''}"
    verdict = f"NO ANSWER: {no_answer}" if no_answer else verdict_words(result)
    return f"{words}, {format_bound(plan.l1_bps(rates), bound, 'bit/s')} L1, {share}: {verdict}"


def held_cost_of(result: RunResult) -> Cost | None:
    """Cost that is the result of a run at a given rate; None for other runs."""
    return result.held_cost if result.held_pps is not None else None


def offered_pps(result: RunResult, direction: DirectionResult) -> float:
    """Return the rate sent in the hold; 0 without one."""
    hold = phase_window(direction.direction, result.measured.samples, Phase.HOLD)
    return hold.sent_pps if hold else 0.0


def _nothing(directions: Sequence[DirectionResult]) -> str:
    lossy = [(one.first_bad_pps, one.max_received_pps) for one in directions if one.first_bad_pps is not None]
    if not lossy:
        return "nothing was measured"
    first, highest = min(bad for bad, _ in lossy), max(received for _, received in lossy)
    words = "more loss than allowed at every rate"
    return f"{words}, from {format_pps(first)} on; max received {format_pps(highest)}"


def verdict_words(result: RunResult) -> str:
    """Limit of the run in words, or of each direction where they differ."""
    limits = {one.direction: limit_words(result, one) for one in result.analysis.directions}
    if len(set(limits.values())) == 1:
        return next(iter(limits.values()))
    return ", ".join(f"{direction} {limit}" for direction, limit in limits.items())


def limit_words(result: RunResult, one: DirectionResult, goal: Goal | None = None) -> str:
    """Limit of one direction in words; or of this goal, whose loss may not have been exceeded."""
    limit = one.limit if goal is None or one.at_least or not one.is_bound(goal) else Limit.NONE
    if goal is not None and limit is Limit.NONE and goal.high_pps is not None and goal.loss < one.goals[0].loss:
        limit = Limit.UNKNOWN  # the verdict is on the first goal's loss, which no rate exceeded
    early = limit is Limit.NONE and result.status is not Status.COMPLETE
    return f"{LIMIT_WORDS[limit]}{' before the run ended' if early else ''}"


def format_frames(value: float) -> str:
    """``16 130 000``"""
    return f"{value:,.0f}".replace(",", " ")


def _facts(result: RunResult) -> Iterator[tuple[str, str]]:
    held = [cost for cost in result.costs if cost.phase is not Phase.RAMP]
    for at, cost in enumerate(held):  # a ramp that went on after a stall has two holds
        again = " again" * any(cost.name == former.name for former in held[:at])
        yield f"{cost.name}{again}:" if len(held) > 1 else "cost", cost_words(cost)
    if result.losses is not None and result.losses.lost:
        yield "loss", result.losses.sentence
    for direction, streams in result.streams.items():
        if words := stream_words(streams):
            # A search's looks are finer than its ramp: without a word its rate would contradict the throughput.
            where = ", in the ramp" if result.plan.length_s(Phase.SEARCH) else ""
            yield "by stream", f"{direction}{where}: {words}"
    if result.spread is not None and result.spread.sentences:
        yield "spread", "; ".join(result.spread.sentences)
    if result.spread_check is not None:
        yield "", result.spread_check.sentence
    if result.latencies and (floors := floors_of(result)):
        times = ", ".join(f"{way} {format_time(floor_s)}" for way, floor_s in floors.items())
        yield "latency", f"of the tester alone, mean: {times}"
    yield from (("hint", words) for words in result.plan.hints(result.analysis.directions))
    yield from (("sent", words) for words in sent_words(result, profile_words))
    yield "plan", plan_words(result.plan)
    yield "DUT", text_of(result.dut, "description", text_of(result.dut, "name", "?"))
    yield "generator", _generator(result.generator)
    if result.command.get("label"):
        yield "label", text_of(result.command, "label", "")
    yield "started", f"{result.started}{f', ended {result.finished}' if result.finished else ''}"


def stream_words(streams: Sequence[StreamLoss]) -> str | None:
    """Name the streams that lost frames first, and each one's loss; None if none did: ``64 B lost first, from ...``."""
    if len(streams) < 2 or not any(one.loss for one in streams):
        return None
    names, first, parts = stream_names(streams), lost_first(streams), []
    if first:
        rate = format_pps(first[0].lossy_from_pps or 0.0)
        who = " and ".join(names[streams.index(one)] for one in first)
        parts.append(f"all lose from {rate} on" if len(first) == len(streams) else f"{who} lost first, from {rate} on")
    knee = any(one.knee_loss is not None for one in streams)
    shares = [(name, one.knee_loss if knee else one.loss) for name, one in zip(names, streams, strict=True)]
    told = ", ".join(f"{name} {format_share(share) if share else 'none'}" for name, share in shares)
    parts.append(f"lost in the first bad windows: {told}" if knee else f"lost in ramp and hold: {told}")
    return "; ".join(parts)


def sent_words(result: RunResult, describe: Callable[[Mapping[str, Any]], str]) -> list[str]:
    """Describe what was sent: once, or for each direction where their frames differ."""
    if len({traffic_words(profile) for profile in result.profiles.values()}) < 2:
        return [describe(result.profile)]
    return [f"{direction}: {describe(profile)}" for direction, profile in result.profiles.items()]


def profile_words(profile: Mapping[str, Any]) -> str:
    """Describe what was sent: file, sizes, mean, flows, fields that vary."""
    tunables, varied = profile.get("tunables"), profile.get("varied")
    given = ",".join(f"{k}={v}" for k, v in tunables.items()) if isinstance(tunables, Mapping) else ""
    name = f"{text_of(profile, 'name', '?')} {given}".rstrip()
    parts = [f"{name}: {traffic_words(profile)}"]
    if isinstance(varied, Sequence) and not isinstance(varied, str) and varied:
        parts.append("; ".join(str(v) for v in varied))
    return ", ".join(parts)


def traffic_words(profile: Mapping[str, Any]) -> str:
    """Describe frame sizes, their mean and the flows: ``64 B frames, 251 flows``."""
    mean, flows = profile.get("mean_frame_bytes"), profile.get("flows")
    parts = [text_of(profile, "mix", "frames of unknown size")]
    if isinstance(mean, int | float) and ":" in parts[0] and "mean" not in parts[0]:
        parts.append(f"mean {mean:.1f} B")
    if isinstance(flows, int):
        upper = "" if profile.get("flows_exact", True) else "at most "
        parts.append(f"{upper}{format_frames(flows)} flow{'' if flows == 1 else 's'}")
    return ", ".join(parts)


def plan_words(plan: Strategy) -> str:
    """Describe the rates offered, which loss is bad, and how often samples were taken."""
    alike: dict[Offer, list[str]] = {}
    for offer in plan.offers:
        alike.setdefault(replace(offer, direction=_ANY), []).append(str(offer.direction))
    targets = []
    for offer, directions in alike.items():
        of = "per direction" if len(alike) == 1 else ", ".join(directions)
        line = f"{format_pps(offer.line_rate_pps)} {of} at {format_bits(offer.line_rate_bps, chosen=True)}"
        share = f"{100 * offer.line_share(offer.target_pps):.3g} %"
        targets.append(f"{format_pps(offer.target_pps)} ({share} of line rate, {line})")
    warmup = format_pps(max(offer.warmup_pps for offer in plan.offers), chosen=True)
    steps = [f"{warmup} for {format_length(plan.warmup_s)}", *plan.words(" and ".join(targets))]
    return f"{', '.join(steps)}; {plan.rule}; a sample every {plan.sample_s:g} s"


def line_speeds(plan: Strategy) -> str:
    return " and ".join(format_bits(speed, chosen=True) for speed in plan.line_rates_bps)


def _generator(generator: Mapping[str, Any]) -> str:
    server = generator.get("server")
    if not isinstance(server, Mapping):
        return " ".join(text_of(generator, key, "") for key in ("kind", "version")).strip() or "?"
    kind = text_of(generator, "kind", "STL server")
    version = text_of(server, "version", "of unknown version")
    listed = generator.get("ports")
    ports = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    skb = [str(one.get("port")) for one in ports if one.get("xdp_mode") == "skb"]
    at = f" at port{'s' * (len(skb) > 1)} {', '.join(skb)}" if len(skb) < len(ports) else ""
    mode = f", in skb mode{at}" if skb else ""
    return f"{kind}, {version}, at {text_of(server, 'address', '?')}{mode}"
