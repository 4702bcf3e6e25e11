"""Imports trex-loadtest's JSON as a stored run: its rates, one a second, are added up to counters.

The file has neither the rate asked for, taken to be the one sent, nor the tester's own losses, taken to be the DUT's:
warnings say both. Format: what wejn/trex-loadtest-viz reads (see report/run/loadtest.py).
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import PurePath
from statistics import median
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert

from ..core.errors import ConfigError, StoreError
from ..core.load.plan import MIN_OFFERED_PPS, Direction, Offer, pair_directions
from ..core.load.profile import is_mode
from ..core.load.sample import Phase, PortCounters, Reading, Sample
from ..core.names import REMEDY, is_name, shown
from ..core.result import RunResult, Status
from ..core.strategy.base import Strategy
from ..core.strategy.ramp import Ramp
from ..core.strategy.saturate import Saturate
from ..core.units import L1_OVERHEAD_BYTES, format_bits, parse_rate
from ..core.verdict.parts import RunWarning

MAX_SECONDS = 1_000_000
_FRAMES = (60.0, 9300.0)
_NOT_ASKED = "what was asked is not in the file: taken as what was sent, so no verdict shows that the tester sent less"
_INTEGRATED = "counters were added up from rates, one a second; what the tester itself lost counts as the DUT's loss"
Length = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
Rate = Annotated[float, Meta(ge=0, le=1e12)]


class Vars(Struct):
    profile_file: Annotated[str, Meta(min_length=1)]
    warmup_mult: Any
    warmup_duration: Length
    rampup_target: Length
    rampup_duration: Length
    hold_duration: Length
    unidirectional: bool | None
    simulated: Any = False


class PortRates(Struct):
    """One port in one second: frames sent and received, and the sent ones as a percentage of the line."""

    tx_pps: Rate
    rx_pps: Rate
    tx_util: Any = None


Second = Mapping[int, PortRates]
"""One entry of ``stats``, by port."""


def dut_of_loadtest(document: Mapping[str, Any]) -> str | None:
    """Return the DUT's name, which files exported by trexbench have; None for any other file."""
    name = values.get("dut") if isinstance(values := document.get("vars"), dict) else None
    return name if is_name(name) else None


def run_from_loadtest(document: Any, dut: str, line_rate_bps: float, written: str) -> RunResult:
    """Make the run of such a file. dut: its name; written: when the file was, UTC, used if it has no times itself.

    StoreError for any other file, and for one whose run cannot be analysed.
    """
    given, seconds, started = _read_vars(document), _read_stats(document), _started(document, written)
    directions = pair_directions(sorted(seconds[0]), bidir=not given.unidirectional)
    line_pps = _line_rate_pps(seconds, directions)
    frame_bytes = line_rate_bps / line_pps / 8 - L1_OVERHEAD_BYTES
    if not _FRAMES[0] <= frame_bytes <= _FRAMES[1]:
        what = f"its utilisation means frames of {frame_bytes:.0f} B at {format_bits(line_rate_bps)}"
        raise StoreError(what, "say the ports' real speed with --speed")
    try:
        plan = _plan(given, directions, line_rate_bps, frame_bytes, line_pps)
    except ConfigError as error:
        raise StoreError(f"it cannot be judged: {error}") from None
    samples = tuple(_samples(plan, seconds))
    length_s = round(plan.duration_s)  # to the end of the hold, with which the plan ends
    whole = len(samples) - 1 >= length_s
    stem, simulated = PurePath(given.profile_file).stem, given.simulated is True
    stem = stem.removesuffix("-simulated") if simulated else stem
    for what, called in (("the DUT's name", dut), ("profile_file", stem)):
        if not is_name(called):
            raise StoreError(f"{what} cannot be {shown(called)}", f"it takes {REMEDY}")
    return RunResult(
        # runs of one mode, one way and both ways, may begin within one second
        id=f"{started}-{dut}-{stem}{'-bidir' if plan.bidir else ''}-imported",
        started=started,
        finished=None,
        status=Status.COMPLETE if whole else Status.INCOMPLETE,
        reason=None if whole else f"{len(samples) - 1} of {length_s} s are in the imported file",
        simulated=simulated,
        command={
            "verb": plan.kind,
            "mode": _mode(stem),
            "direction": "bidir" if plan.bidir else "unidir",
            "imported": True,
        },
        plan=plan,
        profiles={
            directions[0]: {
                "name": given.profile_file,
                "mix": f"frames of {frame_bytes:.0f} B on average, by its utilisation of the line",
                "mean_frame_bytes": frame_bytes,
                "digest": f"imported {given.profile_file}",
            }
        },
        dut={"name": dut, "description": f"{dut}, imported from a trex-loadtest file"},
        generator={"kind": "trex-loadtest", "ports": list(plan.ports)},
        host={},
        samples=samples,
        warnings=tuple(_warnings(len(seconds) - length_s)),
    )


def _read_vars(document: Any) -> Vars:
    values = document.get("vars") if isinstance(document, dict) else None
    if not isinstance(values, dict) or not isinstance(document.get("stats"), dict):
        raise StoreError("not a trex-loadtest file", "it has objects `vars` and `stats`")
    try:
        return convert(values, Vars)
    except ValidationError as error:
        raise StoreError(f"vars: {error}", "not a trex-loadtest file, or a damaged one") from None


def _read_stats(document: Mapping[str, Any]) -> list[Second]:
    seconds: list[Second] = []
    for key, entry in document["stats"].items():
        if not isinstance(entry, dict):
            raise StoreError(f"stats: {key[:40]!r} is no object")
        ports = {int(name): values for name, values in entry.items() if re.fullmatch("[0-9]{1,3}", name)}
        if len(ports) < 2 or len(ports) % 2 or (seconds and ports.keys() != seconds[0].keys()):
            raise StoreError(f"stats: {key[:40]!r} has an odd number of ports, or others than the entries before it")
        try:
            seconds.append({port: convert(values, PortRates) for port, values in ports.items()})
        except ValidationError as error:
            raise StoreError(f"stats: a port at {key[:40]!r}: {error}") from None
    if not 3 <= len(seconds) <= MAX_SECONDS:
        raise StoreError(f"stats of {len(seconds)} seconds", f"it takes 3 to {MAX_SECONDS}")
    return seconds


def _line_rate_pps(seconds: Sequence[Second], directions: tuple[Direction, ...]) -> float:
    """Estimate the line rate from the higher half of the rates, whose shares of the line have the most digits."""
    estimates = []
    for port in (second[direction.tx] for second in seconds for direction in directions):
        share = port.tx_util
        if type(share) in (int, float) and isfinite(share) and share > 0 and port.tx_pps > 0:
            estimates.append((port.tx_pps, 100 * port.tx_pps / share))
    if not estimates:
        raise StoreError("nothing was sent, or tx_util is missing", "without it the line rate is unknown")
    estimates.sort()
    return float(median(line for _, line in estimates[len(estimates) // 2 :]))


def _plan(
    given: Vars, directions: tuple[Direction, ...], line_bps: float, frame_bytes: float, line_pps: float
) -> Strategy:
    target = min(given.rampup_target / 100, 1.0) * line_pps
    try:
        warmup = parse_rate(str(given.warmup_mult)).to_pps(frame_bytes, line_bps)
    except ConfigError:
        warmup = MIN_OFFERED_PPS
    offers = tuple(Offer(d, line_bps, frame_bytes, line_pps, target, min(warmup, target)) for d in directions)
    times = given.warmup_duration, given.hold_duration, 0.0
    if given.rampup_duration:
        return Ramp(offers, *times, ramp_s=given.rampup_duration, confirm_s=0.0)
    return Saturate(offers, *times)


def _samples(plan: Strategy, seconds: Sequence[Second]) -> Iterator[Sample]:
    """Add up the rates to counters until the end of the plan; a ramp-down is left out."""
    frame_bytes, totals = plan.offers[0].mean_frame_bytes, dict.fromkeys(plan.ports, (0.0, 0.0))
    silence = dict.fromkeys(plan.ports, PortRates(0.0, 0.0))
    ends = {Phase.BASELINE: 0.0, Phase.WARMUP: plan.warmup_s, Phase.RAMP: plan.warmup_s + plan.length_s(Phase.RAMP)}
    for at_s, second in enumerate([silence, *seconds[: round(plan.duration_s)]]):
        totals = {
            port: (sent + second[port].tx_pps, received + second[port].rx_pps)
            for port, (sent, received) in totals.items()
        }
        ports = {
            port: PortCounters(
                t_s=float(at_s),
                opackets=round(sent),
                obytes=round(sent * frame_bytes),
                ipackets=round(received),
                ibytes=round(received * frame_bytes),
                ierrors=0,
                oerrors=0,
            )
            for port, (sent, received) in totals.items()
        }
        rates = {direction: second[direction.tx].tx_pps for direction in plan.directions} if at_s else {}
        phase = next((phase for phase, end_s in ends.items() if at_s <= end_s + 0.5), Phase.HOLD)
        yield Sample(phase, float(at_s), rates, Reading(ports))


def _warnings(beyond_s: int) -> Iterator[RunWarning]:
    yield RunWarning("imported", _INTEGRATED)
    yield RunWarning("imported-asked", _NOT_ASKED)
    if beyond_s > 0:
        yield RunWarning("imported-tail", f"the last {beyond_s} s of the file are after the hold and left out")


def _mode(stem: str) -> str:
    """Return the mode in a name that `trexbench results export` gave; else the name itself."""
    words = stem.split("-")
    ends = ("-".join(words[at:]) for at in range(1, len(words)))
    return next((end for end in ends if is_mode(end)), stem)


def _started(document: Mapping[str, Any], written: str) -> str:
    """Return when the first second began, by its key; else when the file was written."""
    with contextlib.suppress(ValueError, OverflowError):
        if 1e8 < (ended_s := float(next(iter(document["stats"])))) < 4e9:
            return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ended_s - 1))
    return written
