"""A run in the format of trex-loadtest, which wejn/trex-loadtest-viz plots.

That program counts samples as seconds: they are made 1 s apart, from the raw counters. It divides as Ruby does: rates
are floats. It divides by what was sent: a second without traffic is left out. Its maximum is where a loss begins that
lasts to the last sample: nothing after the hold is exported.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from ...core.errors import StoreError
from ...core.load.plan import Plan
from ...core.load.sample import Phase, PortCounters, Sample, find_setback
from ...core.result import RunResult
from ...core.units import seconds_of
from ..clean import clean
from ..words import text_of

EXPORTED = (Phase.BASELINE, Phase.WARMUP, Phase.RAMP, Phase.HOLD)
INTERVAL_S = 1.0
LATE_SHARE = 0.05
"""Share of the last second that may be missing for it to count as whole."""


def to_loadtest(result: RunResult) -> bytes:
    """Bytes of the file, whose port "0" sends the first direction and "1" receives it.

    StoreError for a search, and if counters are too great for rates.
    """
    if Phase.SEARCH in result.plan.curve_phases:
        raise StoreError("a search, without a ramp to its target", "export runs of ramp or saturate")
    try:
        return json.dumps({"vars": _vars(result), "stats": _stats(result)}, indent=1, allow_nan=False).encode()
    except (OverflowError, ValueError):
        raise StoreError("counters too great for rates", "the file is damaged") from None


def name_of_series(result: RunResult, stem: str) -> str:
    """Name of the file without ending, with DUT, variant and day for a plot's legend. stem: of the run's document."""
    dut, variant = clean(text_of(result.dut, "name", "unnamed")), text_of(result.command, "variant", "")
    return "-".join(filter(None, (dut, variant, result.started[:10], stem)))


def _vars(result: RunResult) -> dict[str, Any]:
    plan, offer = result.plan, result.plan.offers[0]
    return {
        "dut": text_of(result.dut, "name", ""),
        "profile_file": _profile_file(result),
        "warmup_mult": f"{offer.warmup_pps:g}pps",
        "warmup_duration": _number(plan.warmup_s),
        "rampup_target": _number(100 * offer.line_share(offer.target_pps)),
        "rampup_duration": _number(plan.length_s(Phase.RAMP)),
        "hold_duration": _number(plan.hold_s),
        "unidirectional": not plan.bidir,
        "simulated": result.simulated,
    }


def _profile_file(result: RunResult) -> str:
    # The program plots files of one name together: those of one kind of traffic, simulated ones apart.
    stem = PurePath(str(result.command.get("profile_file") or result.profile.get("name") or "profile")).stem
    mode = str(result.command.get("mode") or stem)
    simulated = "-simulated" if result.simulated else ""
    return f"{stem}{simulated}.py" if mode == stem else f"{stem}-{mode}{simulated}.py"


def _stats(result: RunResult) -> dict[str, Any]:
    plan, samples = result.plan, _exported(result)
    if len(samples) < 2:
        return {}
    epoch_s = seconds_of(result.started) or 0.0
    ports = dict.fromkeys(port for direction in plan.directions for port in (direction.tx, direction.rx))
    names = {port: str(number) for number, port in enumerate(ports)}
    readings = {port: [sample.reading.ports[port] for sample in samples] for port in names}
    first_s, last_s = samples[0].t_s, samples[-1].t_s
    stats: dict[str, Any] = {}
    for second in range(1, int((last_s - first_s) / INTERVAL_S + LATE_SHARE) + 1):
        begin_s, end_s = first_s + (second - 1) * INTERVAL_S, min(first_s + second * INTERVAL_S, last_s)
        entry: dict[str, Any] = {}
        for port, name in names.items():
            (sent, received), (sent_then, received_then) = (_frames_at(readings[port], at) for at in (end_s, begin_s))
            rates = (sent - sent_then) / (end_s - begin_s), (received - received_then) / (end_s - begin_s)
            entry[name] = _entry(plan, port, *rates)
        if all(entry[names[tx]]["tx_pps"] > 0 for tx in plan.tx_ports):
            stats[f"{epoch_s + end_s:.6f}"] = entry | {"global": {}}
    return stats


def _exported(result: RunResult) -> list[Sample]:
    """Return the samples from warm-up to hold, up to the first counter that went back."""
    samples: list[Sample] = []
    for sample in result.samples:
        if sample.phase not in EXPORTED or (samples and find_setback(samples[-1], sample, result.plan.ports)):
            break
        samples.append(sample)
    return samples


def _entry(plan: Plan, port: int, tx_pps: float, rx_pps: float) -> dict[str, float]:
    sends = next((offer for offer in plan.offers if offer.direction.tx == port), plan.offers[0])
    receives = next((offer for offer in plan.offers if offer.direction.rx == port), plan.offers[0])
    return {
        "tx_pps": float(tx_pps),
        "tx_util": float(100 * sends.line_share(tx_pps)),
        "rx_pps": float(rx_pps),
        "rx_util": float(100 * receives.line_share(rx_pps)),
    }


def _frames_at(readings: Sequence[PortCounters], t_s: float) -> tuple[float, float]:
    """Return the frames sent and received at any instant, interpolated linearly."""
    i = min(max(1, bisect_right(readings, t_s, key=lambda reading: reading.t_s)), len(readings) - 1)
    a, b = readings[i - 1], readings[i]
    share = (t_s - a.t_s) / (b.t_s - a.t_s)
    return a.opackets + share * (b.opackets - a.opackets), a.ipackets + share * (b.ipackets - a.ipackets)


def _number(value: float) -> int | float:
    """Return whole numbers as integers, as in trex-loadtest's own files: configurations are compared by value."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded
