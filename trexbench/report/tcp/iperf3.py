"""The legs of a run of TCP as the JSON that ``iperf3 -J --get-server-output`` prints: one file for each leg.

Keys and types are those of iperf3 3.12. The client's intervals are the client's own readings, as there, and
``server_output_json`` has the server's; what was to be omitted is left out of both. What trexbench does not know
(ports, block size) is not there. ``extra_data`` and ``title`` say what it is, and that it was simulated.
"""

from __future__ import annotations

import json
from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import fmean
from time import gmtime, strftime, strptime
from typing import Any

from ...core.errors import StoreError
from ...core.tcp.cpu import HostShare
from ...core.tcp.intervals import HOSTS, NOT_COUNTED
from ...core.tcp.iperf3 import MARK
from ...core.tcp.model import HostReading, Leg, LegReadings, StreamCount, Way
from ...core.tcp.result import FlowResult, TcpResult
from ..words import text_of

_OF_SENDERS = ("snd_wnd", "rtt", "rttvar", "pmtu")
"""By the names of TCP_INFO, which are iperf3's, too."""


def to_iperf3(result: TcpResult) -> Iterator[tuple[str, bytes]]:
    """Each leg's name (``reverse-ipv6``, repetitions with their number) and its file; StoreError where nothing was
    measured, or for counters that are too great for rates."""
    flows = iter(result.flows)
    if not result.legs:
        raise StoreError(f"run {result.id}: no leg was measured", "there is nothing to export")
    for leg in result.legs:
        own = [next(flows) for _ in range(2 if leg.leg.way is Way.BIDIR else 1)]
        try:
            text = json.dumps(_document(result, leg, own), indent=1, allow_nan=False)
        except (OverflowError, ValueError):
            raise StoreError(f"run {result.id}: counters too great for rates", "the file is damaged") from None
        yield _name(leg.leg), text.encode()


def _name(leg: Leg) -> str:
    again = f"-{leg.repetition}" if leg.repetition > 1 else ""
    return f"{leg.way.value}-ipv{leg.version}{again}"


def _document(result: TcpResult, leg: LegReadings, flows: Sequence[FlowResult]) -> dict[str, Any]:
    simulated = "SIMULATED: " if result.simulated else ""
    told = {
        "simulated": result.simulated,
        "monitored": result.command.get("telemetry") is not False,
        "engine": result.plan.engine,
        "ip_version": leg.leg.version,
        "dut": result.dut.get("name"),
        "variant": result.command.get("variant"),
        "run": result.id,
        "limit": [one.verdict.limit.value for one in flows],
    }
    server = _side(result, leg, flows, "server")
    return {
        **_side(result, leg, flows, "client"),
        "title": f"{simulated}{text_of(result.dut, 'name', '?')} {leg.leg}",
        "extra_data": json.dumps({MARK: told}),
        "server_output_json": server,
        **({"error": leg.error} if leg.error else {}),
    }


@dataclass(frozen=True)
class _Ways:
    """One direction of a leg as one of its hosts read it. sockets: of its streams, by their numbers."""

    flow: FlowResult
    sends: bool
    readings: Sequence[HostReading]
    sockets: Mapping[int, int]


def _side(result: TcpResult, leg: LegReadings, flows: Sequence[FlowResult], host: str) -> dict[str, Any]:
    """Return what an iperf3 on this host would print. The client's direction comes first, on both."""
    ways, sockets = [], 0
    for flow in flows:
        sends = flow.flow.sender == host
        numbers = sorted({s.stream for r in (*flow.flow.sending, *flow.flow.receiving) for s in r.streams})
        numbered = dict(zip(numbers, range(sockets + 1, sockets + 1 + len(numbers)), strict=True))
        sockets += len(numbers)
        ways.append(_Ways(flow, sends, flow.flow.sending if sends else flow.flow.receiving, numbered))
    return {
        "start": _start(result, leg, ways, host),
        "intervals": list(_intervals(ways)),
        "end": _end(leg, ways, host),
    }


def _start(result: TcpResult, leg: LegReadings, ways: Sequence[_Ways], host: str) -> dict[str, Any]:
    plan, program = result.plan, leg.program.get(host, {})
    counts = [one for way in ways for reading in way.readings for one in reading.streams]
    sizes = {
        "tcp_mss_default": next((s.info["snd_mss"] for s in counts if s.info.get("snd_mss")), None),
        "sock_bufsize": plan.window_bytes or 0,
        "sndbuf_actual": next((s.send_buffer_bytes for s in counts if s.send_buffer_bytes is not None), None),
        "rcvbuf_actual": next((s.receive_buffer_bytes for s in counts if s.receive_buffer_bytes is not None), None),
    }
    return {
        "connected": [{"socket": socket} for way in ways for socket in way.sockets.values()],
        "version": _version(result, program),
        "system_info": text_of(program, "kernel", ""),
        **_named("timestamp", _timestamp(result, leg)),
        **{name: size for name, size in sizes.items() if size is not None},
        "test_start": {
            "protocol": "TCP",
            "num_streams": plan.streams,
            "omit": _whole(plan.omit_s),
            "duration": _whole(plan.time_s),
            "bytes": 0,
            "blocks": 0,
            "reverse": int(leg.leg.way is Way.REVERSE),
            "bidir": int(leg.leg.way is Way.BIDIR),
        },
    }


def _timestamp(result: TcpResult, leg: LegReadings) -> dict[str, Any]:
    try:
        begun_s = timegm(strptime(result.started[:19], "%Y-%m-%dT%H:%M:%S")) + int(leg.began_s)
        return {"time": strftime("%a, %d %b %Y %H:%M:%S GMT", gmtime(begun_s)), "timesecs": begun_s}
    except (ValueError, OverflowError, OSError):  # the document does not tell it
        return {}


def _version(result: TcpResult, program: Mapping[str, str]) -> str:
    if program.get("name") == "iperf3":
        return f"iperf {text_of(program, 'version', '')}".strip()
    versions = result.host.get("versions")
    return f"trexbench {text_of(versions, 'trexbench', '') if isinstance(versions, Mapping) else ''}".strip()


def _whole(value: float) -> float:
    """iperf3's are whole numbers, and readers expect them where it can be."""
    return int(value) if value == int(value) else value


def _intervals(ways: Sequence[_Ways]) -> Iterator[dict[str, Any]]:
    steps = [list(pairwise(way.readings)) for way in ways]
    for at in range(max(map(len, steps), default=0)):
        streams: list[dict[str, Any]] = []
        sums: dict[str, Any] = {}
        for way, mine, name in zip(ways, steps, ("sum", "sum_bidir_reverse"), strict=False):
            if at >= len(mine):
                continue
            found = list(_of_streams(way, *mine[at]))
            streams += found
            sums[name] = _sum(found)
        yield {"streams": streams, **sums}


def _of_streams(way: _Ways, before: HostReading, after: HostReading) -> Iterator[dict[str, Any]]:
    origin_s = way.readings[0].at_s
    then = {one.stream: one for one in before.streams}
    for one in after.streams:
        was = then.get(one.stream, StreamCount(one.stream, one.sends, 0))
        count = max(0, one.payload_bytes - was.payload_bytes)
        socket, span = way.sockets[one.stream], (before.at_s - origin_s, after.at_s - origin_s)
        more = _of_sender(was, one) if way.sends else {}
        yield {"socket": socket, **_rate(*span, count), **more, "omitted": False, "sender": way.sends}


def _of_sender(was: StreamCount, now: StreamCount) -> dict[str, int]:
    found: dict[str, int] = {}
    if (again := _again(was, now)) is not None:
        found["retransmits"] = again
    if now.info.get("snd_cwnd") is not None and now.info.get("snd_mss"):
        found["snd_cwnd"] = now.info["snd_cwnd"] * now.info["snd_mss"]
    return found | {name: value for name in _OF_SENDERS if 0 <= (value := now.info.get(name, -1)) < NOT_COUNTED}


def _again(was: StreamCount, now: StreamCount) -> int | None:
    first, last = was.info.get("total_retrans", None if was.payload_bytes else 0), now.info.get("total_retrans")
    return last - first if first is not None and last is not None and 0 <= first <= last < NOT_COUNTED else None


def _rate(start_s: float, end_s: float, count: int) -> dict[str, Any]:
    length_s = end_s - start_s
    bps = 8 * count / length_s if length_s > 0 else 0.0
    if not isfinite(bps):
        raise OverflowError
    return {"start": start_s, "end": end_s, "seconds": length_s, "bytes": count, "bits_per_second": bps}


def _sum(streams: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up one direction: its times are those of the first stream, as in iperf3."""
    if not streams:
        return {}
    first = streams[0]
    found = _rate(first["start"], first["end"], sum(one["bytes"] for one in streams))
    again = [one["retransmits"] for one in streams if "retransmits" in one]
    known = {"retransmits": sum(again)} if len(again) == len(streams) else {}
    return {**found, **known, **{key: first[key] for key in ("omitted", "sender") if key in first}}


def _end(leg: LegReadings, ways: Sequence[_Ways], host: str) -> dict[str, Any]:
    streams: list[dict[str, Any]] = []
    sums: dict[str, Any] = {}
    for way, name in zip(ways, ("", "_bidir_reverse"), strict=False):
        flow = way.flow.flow
        sent, received = (list(_totals(way, readings)) for readings in (flow.sending, flow.receiving))
        extremes, got = _extremes(way), {one["socket"]: one for one in received}
        streams += [
            {"sender": one | extremes[one["socket"]], **_named("receiver", got.get(one["socket"]))} for one in sent
        ]
        sums |= {**_named(f"sum_sent{name}", _sum(sent)), **_named(f"sum_received{name}", _sum(received))}
    other = HOSTS[host == HOSTS[0]]
    shares = ways[0].flow.shares
    cpu = {**_cpu("host", shares.get(host)), **_cpu("remote", shares.get(other))}
    sender = ways[0].flow.flow.sender
    controls = {"sender": sender, "receiver": HOSTS[sender == HOSTS[0]]}
    used = {f"{side}_tcp_congestion": leg.program.get(who, {}).get("congestion") for side, who in controls.items()}
    return {
        "streams": streams,
        **sums,
        **_named("cpu_utilization_percent", cpu),
        **{key: one for key, one in used.items() if one is not None},
    }


def _named(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value} if value else {}


def _totals(way: _Ways, readings: Sequence[HostReading]) -> Iterator[dict[str, Any]]:
    """Yield each stream's totals from the first reading to the last. sender: of this host, as iperf3 has it."""
    if len(readings) < 2:
        return
    first, last = readings[0], readings[-1]
    then = {one.stream: one for one in first.streams}
    for one in last.streams:
        was = then.get(one.stream, StreamCount(one.stream, one.sends, 0))
        again = {"retransmits": n} if one.sends and (n := _again(was, one)) is not None else {}
        count = max(0, one.payload_bytes - was.payload_bytes)
        rate = _rate(0.0, last.at_s - first.at_s, count)
        yield {"socket": way.sockets[one.stream], **rate, **again, "sender": way.sends}


def _extremes(way: _Ways) -> dict[int, dict[str, int]]:
    """By socket, of what the sender read after the first reading."""
    read: dict[int, list[dict[str, int]]] = {socket: [] for socket in way.sockets.values()}
    for one in (one for reading in way.flow.flow.sending[1:] for one in reading.streams):
        read[way.sockets[one.stream]].append(_of_sender(one, one))
    return {socket: dict(_extremes_of(told)) for socket, told in read.items()}


def _extremes_of(told: Sequence[Mapping[str, int]]) -> Iterator[tuple[str, int]]:
    for name in ("snd_cwnd", "snd_wnd"):
        if values := [one[name] for one in told if name in one]:
            yield f"max_{name}", max(values)
    if rtts := [one["rtt"] for one in told if "rtt" in one]:
        yield from (("max_rtt", max(rtts)), ("min_rtt", min(rtts)), ("mean_rtt", round(fmean(rtts))))


def _cpu(side: str, share: HostShare | None) -> dict[str, float]:
    """CPU usage of the program's threads, in percent of one core."""
    if share is None or not share.threads:
        return {}
    user, system = (100 * sum(getattr(one, kind) for one in share.threads) for kind in ("user", "system"))
    return {f"{side}_total": user + system, f"{side}_user": user, f"{side}_system": system}
