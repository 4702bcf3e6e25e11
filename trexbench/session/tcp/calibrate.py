"""The WAN of a run is tried before it is believed: echo requests for its delay, a flow for its rate."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Protocol

from ...core.errors import DutError
from ...core.tcp.calibration import (
    HEADROOM,
    PINGS,
    LineCalibration,
    LineTrial,
    carried_bps,
    first_leg,
    fitting_scale,
    payload_bps,
    trial_buffer,
    trial_plan,
    wrong_delay,
    wrong_rate,
)
from ...core.tcp.model import Leg, LegReadings, Ping, Seen, TcpEnvironment, TcpPlan
from ...core.tcp.wan import Wan
from ...core.units import format_bits
from ...core.verdict.model import RunWarning

TRIES = 2
"""With headroom: what else runs on these hosts may spoil one."""
CABLE = "cable"
"""Maker of a line that is a program of trexbench, whose limits are not the DUT's."""
SCALE_REMEDY = "take a lower rate, or --scale, which makes rate and buffers smaller together"


class Tried(Protocol):
    """Part of a run.Bench that a calibration needs."""

    def set_wan(self, wan: Wan) -> None: ...

    def set_buffers(self, size: int | None) -> None: ...

    def ping(self, leg: Leg, count: int, loaded: bool, over: threading.Event) -> Ping: ...

    def flow(self, leg: Leg, plan: TcpPlan, seen: Seen, watched: bool) -> LegReadings: ...


@dataclass(frozen=True)
class Calibrated:
    """setup: with the line as it is now, which may be slower than what was asked for."""

    setup: TcpEnvironment
    calibration: LineCalibration
    warnings: tuple[RunWarning, ...] = ()


def calibrate(bench: Tried, plan: TcpPlan, setup: TcpEnvironment, scale: bool) -> Calibrated:
    """Find out whether the line of this setup is what it is said to be. DutError where it is not.

    scale: a line that cannot be carried here becomes slower.
    """
    assert setup.wan is not None
    wan, leg, warnings = setup.wan, first_leg(plan), list[RunWarning]()
    lossless = replace(wan, loss=0.0)  # which would hold the flow back
    found = LineCalibration()
    if wan.delay_s:
        bench.set_wan(lossless)
        ping = bench.ping(leg, PINGS, False, threading.Event())
        found = replace(found, pings=(ping,))
        if wrong := wrong_delay(wan, ping.times_s):
            raise DutError(f"the WAN of {wan}, by {setup.wan_by}: {wrong}", "see what else runs on these hosts")
    if wan.rate_bps is not None:
        wanted_bps, most_bps = payload_bps(setup, wan, leg.version), 0.0
        while len(found.trials) < TRIES and fitting_scale(wanted_bps, most_bps) != 1.0:
            ample = _try(bench, plan, leg, lossless.scaled(HEADROOM))
            found = replace(found, trials=(*found.trials, ample))
            most_bps = max(most_bps, carried_bps(plan, ample))
        setup, told = _fitted(setup, fitting_scale(wanted_bps, most_bps), most_bps, scale)
        warnings += told
        assert setup.wan is not None
        own = _try(bench, plan, leg, replace(setup.wan, loss=0.0))
        found = replace(found, trials=(*found.trials, own))
        if wrong := wrong_rate(payload_bps(setup, setup.wan, leg.version), carried_bps(plan, own)):
            warnings.append(RunWarning("wan-rate", f"the WAN of {setup.wan}, by {setup.wan_by}: {wrong}"))
    bench.set_buffers(None)
    bench.set_wan(setup.wan or wan)
    return Calibrated(setup, found, tuple(warnings))


def _try(bench: Tried, plan: TcpPlan, leg: Leg, wan: Wan) -> LineTrial:
    bench.set_wan(wan)
    bench.set_buffers(trial_buffer(wan))
    readings = bench.flow(leg, trial_plan(plan, wan), lambda host, reading: None, False)
    if readings.error is not None:
        raise DutError(f"the WAN's calibration, {leg}: {readings.error}")
    return LineTrial(wan, readings)


def _fitted(
    setup: TcpEnvironment, factor: float | None, carried: float, scale: bool
) -> tuple[TcpEnvironment, list[RunWarning]]:
    """The setup with a line that is carried with headroom, and what is to be said of that."""
    wan = setup.wan
    assert wan is not None
    if factor == 1.0:
        return setup, []
    got = f"with {HEADROOM:g} times its rate it carries {format_bits(carried)} of payload"
    said = f"the WAN of {wan}, by {setup.wan_by}: {got}"
    if setup.wan_by != CABLE:
        return setup, [RunWarning("wan-headroom", f"{said}; whether it or the DUT is the limit is not known")]
    if factor is None or not scale:
        raise DutError(said, SCALE_REMEDY)
    smaller = wan.scaled(factor)
    text = f"{said}: rate and buffers are {factor:g} of what was asked for"
    return replace(setup, wan=smaller, wan_asked=wan), [RunWarning("wan-scaled", text)]
