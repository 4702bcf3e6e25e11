"""The trex-loadtest JSON of others -> a run: its rates, one a second, become counters again.

What the file does not tell is not made up: what was asked is taken to be what was sent, nothing is known of the
tester's own losses, and a caveat says both. Format: what wejn/trex-loadtest-viz reads; report/loadtest.py writes it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import PurePath
from statistics import median
from typing import Any

from .core.errors import ConfigError, StoreError
from .core.names import REMEDY, is_name, shown
from .core.plan import MIN_OFFERED_PPS, Direction, Plan, pair_directions
from .core.profile import MODES
from .core.result import RunResult, Status
from .core.sample import Phase, PortCounters, Reading, Sample
from .core.units import L1_OVERHEAD_BYTES, parse_rate
from .core.verdict import Caveat

VARS = ("warmup_mult", "warmup_duration", "rampup_target", "rampup_duration", "hold_duration")
RATES = ("tx_pps", "tx_util", "rx_pps", "rx_util")
MAX_PPS = 1e12
MAX_SECONDS = 1_000_000
_FRAMES = (60.0, 9300.0)
_NOT_ASKED = "what was asked is not in the file: taken as what was sent, so a tester that sent less shows in no verdict"
_INTEGRATED = "counters were added up from rates, one a second; the tester's own losses and its load are not known"


@dataclass(frozen=True)
class _Second:
    """One entry of ``stats``: port -> (sent, received), frames per second."""

    rates: Mapping[int, tuple[float, float]]


def run_from_loadtest(document: Any, dut: str, line_rate_bps: float, written: str) -> RunResult:
    """The run of such a file. dut: what it is to be called. written: when, UTC, where the file itself does not say.

    StoreError for what is no such file, or none that can be judged.
    """
    told, seconds, started = _read_vars(document), _read_stats(document), _started(document, written)
    directions = pair_directions(
        sorted(seconds[0].rates), bidir=told["unidirectional"] is False or told["unidirectional"] is None
    )
    line_pps = _line_rate_pps(document, directions)
    frame_bytes = line_rate_bps / line_pps / 8 - L1_OVERHEAD_BYTES
    if not _FRAMES[0] <= frame_bytes <= _FRAMES[1]:
        raise StoreError(
            f"its utilisation means frames of {frame_bytes:.0f} B at {line_rate_bps:g} bit/s",
            "say the ports' real speed with --speed",
        )
    try:
        plan = _plan(told, directions, line_rate_bps, frame_bytes, line_pps)
    except ConfigError as error:
        raise StoreError(f"it cannot be judged: {error}") from None
    samples = _samples(plan, seconds)
    whole = len(samples) - 1 >= round(plan.sending_s)
    stem, simulated = PurePath(told["profile_file"]).stem, bool(told.get("simulated") is True)
    stem = stem.removesuffix("-simulated") if simulated else stem
    for what, called in (("the DUT's name", dut), ("profile_file", stem)):
        if not is_name(called):
            raise StoreError(f"{what} is no name: {shown(called)}", f"it takes {REMEDY}")
    return RunResult(
        id=f"{started}-{dut}-{stem}-imported",
        started=started,
        finished=None,
        status=Status.COMPLETE if whole else Status.INCOMPLETE,
        reason=None if whole else f"{len(samples) - 1} of {plan.sending_s:g} s are in the imported file",
        simulated=simulated,
        command={
            "verb": plan.kind,
            "mode": _mode(stem),
            "direction": "bidir" if plan.bidir else "unidir",
            "imported": True,
        },
        plan=plan,
        profile={
            "name": told["profile_file"],
            "mix": f"frames of {frame_bytes:.0f} B on average, by its utilisation of the line",
            "mean_frame_bytes": frame_bytes,
            "digest": f"imported {told['profile_file']}",
        },
        dut={"name": dut, "description": f"{dut}, imported from a trex-loadtest file"},
        generator={"kind": "trex-loadtest", "ports": list(plan.ports)},
        host={},
        samples=samples,
        caveats=tuple(_caveats(told, seconds, plan)),
    )


def _read_vars(document: Any) -> dict[str, Any]:
    told = document.get("vars") if isinstance(document, dict) else None
    if not isinstance(told, dict) or not isinstance(document.get("stats"), dict):
        raise StoreError("not a trex-loadtest file", "it has objects `vars` and `stats`")
    missing = [name for name in ("profile_file", "unidirectional", *VARS) if name not in told]
    if missing:
        raise StoreError(f"vars without {', '.join(missing)}", "not a trex-loadtest file, or a damaged one")
    if not isinstance(told["profile_file"], str) or not told["profile_file"]:
        raise StoreError("vars: profile_file is no text")
    for name in VARS[1:]:
        if type(told[name]) not in (int, float) or not 0 <= told[name] <= MAX_SECONDS:
            raise StoreError(f"vars: {name} is {str(told[name])[:40]!r}, not a number")
    return told


def _read_stats(document: Mapping[str, Any]) -> list[_Second]:
    seconds: list[_Second] = []
    for key, entry in document["stats"].items():
        if not isinstance(entry, dict):
            raise StoreError(f"stats: {key[:40]!r} is no object")
        ports = {int(name): values for name, values in entry.items() if re.fullmatch("[0-9]{1,3}", name)}
        rates = {
            port: (_rate(key, port, values, "tx_pps"), _rate(key, port, values, "rx_pps"))
            for port, values in ports.items()
        }
        if len(rates) < 2 or len(rates) % 2 or (seconds and rates.keys() != seconds[0].rates.keys()):
            raise StoreError(f"stats: {key[:40]!r} has not the same even number of ports as the others")
        seconds.append(_Second(rates))
    if not 3 <= len(seconds) <= MAX_SECONDS:
        raise StoreError(f"stats of {len(seconds)} seconds", "there is nothing in it to judge")
    return seconds


def _rate(key: str, port: int, values: Any, name: str) -> float:
    value: Any = values.get(name) if isinstance(values, dict) else None
    if type(value) not in (int, float) or not 0 <= value <= MAX_PPS:
        raise StoreError(f"stats: {name} of port {port} at {key[:40]!r} is {str(value)[:40]!r}, not a rate")
    return float(value)


def _line_rate_pps(document: Mapping[str, Any], directions: tuple[Direction, ...]) -> float:
    """By what the file says a rate is of the line, at its higher rates, where the figures have most digits."""
    found = []
    for entry in document["stats"].values():
        for direction in directions:
            values = entry[str(direction.tx)]
            share = values.get("tx_util")
            if type(share) in (int, float) and isfinite(share) and share > 0 and values["tx_pps"] > 0:
                found.append((values["tx_pps"], 100 * values["tx_pps"] / share))
    if not found:
        raise StoreError("nothing was sent, or tx_util is missing", "the line rate cannot be told from it")
    found.sort()
    return float(median(line for _, line in found[len(found) // 2 :]))


def _plan(
    told: Mapping[str, Any], directions: tuple[Direction, ...], line_bps: float, frame_bytes: float, line_pps: float
) -> Plan:
    target = min(told["rampup_target"] / 100, 1.0) * line_pps
    try:
        warmup = parse_rate(str(told["warmup_mult"])).to_pps(frame_bytes, line_bps)
    except ConfigError:
        warmup = MIN_OFFERED_PPS
    return Plan(
        directions=directions,
        line_rate_bps=line_bps,
        mean_frame_bytes=frame_bytes,
        line_rate_pps=line_pps,
        target_pps=target,
        kind="ramp" if told["rampup_duration"] else "saturate",
        warmup_pps=min(warmup, target),
        warmup_s=float(told["warmup_duration"]),
        ramp_s=float(told["rampup_duration"]) or 600.0,
        hold_s=float(told["hold_duration"]),
        confirm_s=0.0,
        drain_s=0.0,
    )


def _samples(plan: Plan, seconds: list[_Second]) -> tuple[Sample, ...]:
    """Counters as sums of the rates, as far as the plan goes; a ramp-down is left out."""
    ports = plan.ports
    sent, received = dict.fromkeys(ports, 0.0), dict.fromkeys(ports, 0.0)
    samples = [_sample(plan, Phase.BASELINE, 0, 0.0, sent, received)]
    for number, second in enumerate(seconds[: round(plan.sending_s)], start=1):
        for port in ports:
            sent[port] += second.rates[port][0]
            received[port] += second.rates[port][1]
        asked = sum(second.rates[port][0] for port in plan.tx_ports) / len(plan.tx_ports)
        samples.append(_sample(plan, _phase(plan, number), number, asked, sent, received))
    return tuple(samples)


def _sample(
    plan: Plan, phase: Phase, at_s: int, asked_pps: float, sent: Mapping[int, float], received: Mapping[int, float]
) -> Sample:
    ports = {
        port: PortCounters(
            t_s=float(at_s),
            opackets=round(sent[port]),
            obytes=round(sent[port] * plan.mean_frame_bytes),
            ipackets=round(received[port]),
            ibytes=round(received[port] * plan.mean_frame_bytes),
            ierrors=0,
            oerrors=0,
        )
        for port in plan.ports
    }
    return Sample(phase, float(at_s), asked_pps, Reading(ports, None, None))


def _phase(plan: Plan, second: int) -> Phase:
    if second <= plan.warmup_s + 0.5:
        return Phase.WARMUP
    ramp_s = plan.ramp_s if plan.kind == "ramp" else 0.0
    return Phase.RAMP if second <= plan.warmup_s + ramp_s + 0.5 else Phase.HOLD


def _caveats(told: Mapping[str, Any], seconds: list[_Second], plan: Plan) -> list[Caveat]:
    found = [Caveat("imported", _INTEGRATED), Caveat("imported-asked", _NOT_ASKED)]
    beyond = len(seconds) - round(plan.sending_s)
    if beyond > 0:
        found.append(Caveat("imported-tail", f"the last {beyond} s of the file are after the hold and left out"))
    if not isinstance(told["unidirectional"], bool):
        text = f"unidirectional is {str(told['unidirectional'])[:20]!r}, no boolean: taken as the visualiser takes it"
        found.append(Caveat("imported-direction", text))
    return found


def _mode(stem: str) -> str:
    """The mode in a name that our export gave; else the name itself."""
    return max((mode.name for mode in MODES if stem.endswith(f"-{mode.name}")), key=len, default=stem)


def _started(document: Mapping[str, Any], written: str) -> str:
    """When its first second began, by its first key."""
    try:
        first = float(next(iter(document["stats"])))
    except (ValueError, OverflowError):
        return written
    if not 1e8 < first < 4e9:
        return written
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(first - 1))
