"""Runs of TCP over a WAN of 1 Gbit/s and 20 ms, whose legs differ in buffers; no packet, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tcp_runs import Path, make_leg, make_tcp_result

from trexbench.core.tcp.plan import Leg, LegReadings, Ping, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.result import TcpResult
from trexbench.core.tcp.wan import Wan

F = Way.FORWARD
MB = 1_000_000
LONG = Wan(0.02, 1e9)
BEHIND = TcpEnvironment(wan=LONG, wan_by="netem")
FOUND, SET = Leg(F), Leg(F, buffer_bytes=5 * MB)


def told(most: int, sent: int | None = None, **more: str) -> dict[str, dict[str, str]]:
    sysctls = {"tcp_rmem": f"4096 131072 {most}", "tcp_wmem": f"4096 16384 {sent or most}"}
    facts = {"congestion": "cubic", "kernel": "5.15.0", "tcp_adv_win_scale": "1", **sysctls, **more}
    return {"client": facts, "server": facts}


def leg_of(leg: Leg, path: Path, program: Mapping[str, Mapping[str, str]]) -> LegReadings:
    return replace(make_leg(TcpPlan((leg,), time_s=10.0), leg, path), program=program)


SLOW = Path(bps=300e6, rtt_s=0.02, min_rtt_s=0.02, in_flight=750_000, cwnd=3 * MB, peer_window=800_000)
FULL = Path(bps=0.94e9, rtt_s=0.022, min_rtt_s=0.02, in_flight=2_500_000, cwnd=4 * MB, peer_window=2_500_000)


def run(*legs: LegReadings, setup: TcpEnvironment = BEHIND, **changes: Any) -> TcpResult:
    plan = TcpPlan(tuple(one.leg for one in legs), time_s=10.0, streams=changes.pop("streams", 1))
    pings = (Ping(plan.legs[0], False, 5, (0.0408, 0.0200, 0.0201, 0.0199, 0.0200)),)
    result = make_tcp_result(plan=plan, setup=setup, **{"pings": pings, **changes})
    return replace(result, legs=legs)


SIZES = (1 * MB, 5 * MB)


def swept(setup: TcpEnvironment = BEHIND, **changes: Any) -> TcpResult:
    """A run whose buffers of 1 MB bound the first leg, and of 5 MB the second no more."""
    return run(
        *(leg_of(Leg(F, buffer_bytes=size), path, told(size)) for size, path in zip(SIZES, (SLOW, FULL), strict=True)),
        setup=setup,
        **changes,
    )
