"""Is a WAN what it is said to be: its delay by echo requests, its rate by a flow that nothing else holds back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from ..units import format_bits, format_time, tcp_payload_bps
from .intervals import find_flows
from .model import Leg, LegReadings, Ping, TcpEnvironment, TcpPlan
from .wan import Wan

HEADROOM = 1.3
"""Multiple of the line's rate that its emulator must carry, so as not to be the limit itself."""
FILLED, EXACT = 0.9, 1.02
"""Least and largest share of a line's payload rate that a flow with large buffers carries."""
STEPS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""A line that cannot be carried is scaled by one of these: the same one on most nights."""
PINGS = 5
TRIAL_S, TRIAL_INTERVAL_S, OPENED_S, ROUND_TRIPS = 2.0, 0.2, 0.5, 20.0
"""A trial's time; it begins to count after this and so many round trips, when windows are open."""
WINDOWS = 4.0
"""A trial's buffers, in bandwidth-delay products: half may be the kernel's overhead, and losses need as much again."""
LEAST_BUFFER = 4_000_000
LATE, LATE_S, EARLY = 0.1, 0.002, 0.02
"""Round trips may be so much longer than the delay (the path and the hosts add theirs), and so much shorter."""


@dataclass(frozen=True)
class LineTrial:
    """One flow, while the line was set like this."""

    wan: Wan
    readings: LegReadings


@dataclass(frozen=True)
class LineCalibration:
    """Observations of the line before the legs. trials: with HEADROOM times its rate, the last one with its own."""

    pings: tuple[Ping, ...] = ()
    trials: tuple[LineTrial, ...] = ()


def trial_plan(plan: TcpPlan, wan: Wan) -> TcpPlan:
    """Return the plan of each trial."""
    omit_s = OPENED_S + ROUND_TRIPS * wan.delay_s
    return replace(plan, time_s=TRIAL_S + 2 * wan.delay_s, interval_s=TRIAL_INTERVAL_S, omit_s=omit_s)


def trial_buffer(wan: Wan) -> int:
    """Bytes that both ends' buffers may grow to in a trial."""
    return max(LEAST_BUFFER, round(WINDOWS * (wan.bdp_bytes or 0)))


def payload_bps(setup: TcpEnvironment, wan: Wan, version: int) -> float:
    """TCP payload that fills the line; 0 without a rate."""
    tunnel = setup.header_bytes(version)
    return tcp_payload_bps(wan.rate_bps or 0.0, setup.mtu, version, True, setup.tags, tunnel, framing=0)


def carried_bps(plan: TcpPlan, trial: LineTrial) -> float:
    """Payload that the trial has carried: the median interval's, of the slower direction; 0 where there is none."""
    flows = find_flows(trial_plan(plan, trial.wan), trial.readings)
    rates = [[one.received_bps for one in flow.regular] for flow in flows]
    return min((median(ones) if ones else 0.0 for ones in rates), default=0.0)


def wrong_delay(wan: Wan, times_s: Sequence[float]) -> str | None:
    """Describe what is wrong with the round trips of these answers; None: nothing."""
    if not times_s:
        return "no echo request was answered"
    least_s = wan.delay_s * (1 - EARLY) - 2 * wan.jitter_s
    most_s = wan.delay_s * (1 + LATE) + 2 * wan.jitter_s + LATE_S
    if min(times_s) >= least_s and median(times_s) <= most_s:
        return None
    seen = f"round trips are {format_time(min(times_s))} at least and {format_time(median(times_s))} in the median"
    return f"{seen}, with a delay of {format_time(wan.delay_s)}"


def fitting_scale(wanted_bps: float, carried: float) -> float | None:
    """The largest of STEPS with which the line has its headroom; None: not even with the smallest.

    wanted_bps: payload of the line as asked; carried: in the trial with HEADROOM times its rate.
    """
    possible = carried / (FILLED * HEADROOM * wanted_bps)
    return next((step for step in STEPS if step <= possible), None)


def wrong_rate(wanted_bps: float, carried: float) -> str | None:
    """Describe what is wrong with the rate that the line carried as it is set; None: nothing."""
    if FILLED * wanted_bps <= carried <= EXACT * wanted_bps:
        return None
    return f"a flow with large buffers gets {format_bits(carried)} of the {format_bits(wanted_bps)} of its payload rate"


def first_leg(plan: TcpPlan) -> Leg:
    """The leg that trials are: the plan's first, with the hosts' buffers and the plan's congestion control."""
    return replace(plan.legs[0].kind, buffer_bytes=None, congestion=None)
