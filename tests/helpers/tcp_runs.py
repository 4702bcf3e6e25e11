"""Readings of TCP legs and whole TCP results, built from a few figures; no packet, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trexbench.core.dut.telemetry import CpuTime, DropCount, DutReading, Moment, Observation, PortCount
from trexbench.core.tcp.plan import (
    HostReading,
    Leg,
    LegReadings,
    Ping,
    Processes,
    ProcessTime,
    StreamCount,
    TcpEnvironment,
    TcpPlan,
    ThreadTime,
    Way,
)
from trexbench.core.tcp.result import TcpResult
from trexbench.core.typed import Status

MSS = 1448
BEGUN_S = {"client": 3.0, "server": 50.0}
"""Time that each host's own clock shows at the start."""


@dataclass(frozen=True)
class Path:
    """Readings that a built leg shows. bps: of each stream, by interval; a single value: in every one.

    cores: busy share of each CPU by host (``client``, ``server``, ``dut``); packets: the part of that in soft
    interrupts; user: in programs. threads: (user, system, waiting) by host.
    in_flight, cwnd, send_buffer, peer_window: bytes per stream. drops: frames that the DUT lost over the leg and
    calls ``drop_name``.
    """

    bps: float | Sequence[float] = 940e6
    rtt_s: float = 0.001
    min_rtt_s: float = 0.001
    in_flight: int = 100_000
    cwnd: int = 400_000
    send_buffer: int = 4_000_000
    peer_window: int = 4_000_000
    retransmits: int = 0
    cores: Mapping[str, Sequence[float]] = field(default_factory=dict)
    packets: float = 0.9
    user: float | None = None
    threads: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    drops: int = 0
    drop_name: str = "rx_missed_errors"
    power_w: float | None = None


def make_leg(plan: TcpPlan, leg: Leg, path: Path = Path(), jitter: Mapping[str, float] = {}) -> LegReadings:
    """Readings of both ends and of the DUT; jitter: by host, how much later each reading comes than it should."""
    count = round((plan.time_s + plan.omit_s) / plan.interval_s)
    rates = [path.bps] * count if isinstance(path.bps, int | float) else list(path.bps)
    sends = {"client": leg.way is not Way.REVERSE, "server": leg.way is not Way.FORWARD}
    ends = {
        host: tuple(
            _reading(plan, path, rates, host, at, late=jitter.get(host, 0.0) if at else 0.0, sends=sends)
            for at in range(count + 1)
        )
        for host in ("client", "server")
    }
    end_s = count * plan.interval_s
    dut = tuple(_dut(path, moment, t_s, t_s / end_s) for moment, t_s in ((Moment.BEGIN, 0.0), (Moment.END, end_s)))
    return LegReadings(leg=leg, began_s=10.0, client=ends["client"], server=ends["server"], dut=dut)


def _reading(
    plan: TcpPlan,
    path: Path,
    rates: Sequence[float],
    host: str,
    at: int,
    late: float,
    sends: Mapping[str, bool],
) -> HostReading:
    time_s = at * plan.interval_s + late
    payload = sum(rates[:at]) * plan.interval_s / 8 + (rates[min(at, len(rates) - 1)] * late / 8)
    other = {"client": "server", "server": "client"}[host]
    ways = [way for way, there in ((True, sends[host]), (False, sends[other])) if there]
    info = {
        "rtt": round(path.rtt_s * 1e6),
        "min_rtt": round(path.min_rtt_s * 1e6),
        "snd_mss": MSS,
        "snd_cwnd": path.cwnd // MSS,
        "unacked": path.in_flight // MSS,
        "snd_wnd": path.peer_window,
        "total_retrans": path.retransmits * at // len(rates),
    }
    streams = tuple(
        StreamCount(
            stream=number,
            sends=way,
            payload_bytes=round(payload),
            info=info if way else {},
            send_buffer_bytes=path.send_buffer if way else None,
        )
        for way in ways
        for number in range(plan.streams)
    )
    user, system, waiting = path.threads.get(host, (0.05, 0.2, 0.0))
    return HostReading(
        at_s=BEGUN_S[host] + time_s,
        streams=streams,
        cpus=_cpus(path.cores.get(host, (0.3,)), time_s, path.packets, path.user),
        threads=(ThreadTime(1, user * time_s, system * time_s, waiting * time_s),),
    )


def _cpus(shares: Sequence[float], time_s: float, packets: float, user: float | None) -> tuple[CpuTime, ...]:
    return tuple(
        CpuTime(
            number,
            1000 + time_s,
            100 + share * time_s,
            10 + share * time_s * packets,
            user_s=20 + share * time_s * user if user is not None else None,
        )
        for number, share in enumerate(shares)
    )


def _dut(path: Path, moment: Moment, t_s: float, done: float) -> DutReading:
    seen = Observation(
        at_s=500 + t_s,
        cpus=_cpus(path.cores.get("dut", (0.4,)), t_s, path.packets, path.user),
        ports=(PortCount(0, 1000, 1000), PortCount(1, 1000, 1000)),
        drops=(DropCount(path.drop_name, round(7 + path.drops * done), 0),),
        power_w=path.power_w,
    )
    return DutReading(moment, 10.0 + t_s, 0.01, seen)


def make_tcp_result(
    path: Path = Path(),
    legs: Sequence[Leg] = (Leg(Way.FORWARD), Leg(Way.REVERSE)),
    ceiling: Path | None = None,
    setup: TcpEnvironment | None = None,
    **changes: Any,
) -> TcpResult:
    """A complete run of these legs, ten seconds each, all of one path; changes: of the result's own fields."""
    plan = changes.pop("plan", TcpPlan(legs=tuple(legs), time_s=10.0))
    values: dict[str, Any] = {
        "id": "tcp-1",
        "started": "2026-11-20T12:03:01Z",
        "finished": "2026-11-20T12:05:01Z",
        "status": Status.COMPLETE,
        "command": {"verb": "tcp", "suite": None, "night": None, "label": None},
        "dut": {"name": "lab-linux", "driver": "linux", "facts_sha256": "ab" * 32},
        "endpoints": {"client": {"kernel": "6.18"}, "server": {"kernel": "6.18"}},
        "host": {"kernel": "6.18"},
        "pings": (
            Ping(plan.legs[0], False, 4, tuple(path.min_rtt_s * share for share in (1.2, 1.0, 1.4))),
            Ping(plan.legs[0], True, 2, tuple(path.min_rtt_s * share for share in (4, 6))),
        ),
    }
    return TcpResult(
        plan=plan,
        setup=setup or TcpEnvironment(),
        legs=tuple(make_leg(plan, leg, path) for leg in plan.legs),
        ceilings=tuple(make_leg(plan, leg, ceiling) for leg in plan.legs) if ceiling else (),
        **(values | changes),
    )


def through_a_tunnel() -> TcpResult:
    """OpenVPN between client and server, each of whose processes was read."""
    times = (
        ProcessTime(7, "openvpn", 2.0, 5.0, 1.0, (1, 0), role="tunnel"),
        ProcessTime(8, "iperf", 0.5, 1.5, 0.0, (0,), role="endpoint"),
    )
    result = make_tcp_result(legs=[Leg(Way.FORWARD)])
    setup = TcpEnvironment(tunnel="openvpn", tunnel_between="client-server", tunnel_by="OpenVPN 2.6", tunnel_mtu=1400)
    legs: tuple[LegReadings, ...] = tuple(
        replace(leg, processes={host: Processes(10.0, times) for host in ("client", "server")}) for leg in result.legs
    )
    return replace(result, setup=setup, legs=legs)
