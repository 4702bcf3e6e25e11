"""Imports the output of ``iperf3 -J``, by client or server, as a run of TCP.

A sending client reports by interval what it has sent, but only as a whole what was received; with
``--get-server-output`` both ends report by interval. The format is that of iperf3 3.12, and of src/iperf_api.c of 3.21
(--json-stream).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any

import msgspec

from ..core.errors import StoreError
from ..core.names import REMEDY, is_name, shown
from ..core.tcp.intervals import REGULAR
from ..core.tcp.iperf3 import Asked, Iperf3Output, Told, Whole, told_in
from ..core.tcp.plan import HostReading, Leg, LegReadings, StreamCount, TcpEnvironment, TcpPlan, Way
from ..core.tcp.result import TcpResult
from ..core.typed import Status
from ..core.units import format_bits, format_share
from ..core.verdict.parts import RunWarning
from .document import checked_rows

_MOST = 1 << 53
_NO_RETRANSMITS = 1 << 48
"""iperf3 3.12 prints 2**64 - 1 for an unknown number."""
_EVENTS = ("start", "interval", "end", "error", "server_output_json")
_UNKNOWN = "nothing is known of the router, nor of the endpoints' cores and what they carry without it"


class StreamTotals(msgspec.Struct, frozen=True):
    """The totals of one stream at one end."""

    bytes: Whole = 0.0
    retransmits: Whole | None = None


class EndOfStream(msgspec.Struct, frozen=True):
    sender: StreamTotals = StreamTotals()
    receiver: StreamTotals = StreamTotals()


class Sum(msgspec.Struct, frozen=True):
    bits_per_second: Whole = 0.0


class Ends(msgspec.Struct, frozen=True):
    streams: list[EndOfStream] = []
    sum_received: Sum = Sum()
    cpu_utilization_percent: dict[str, Any] = {}


def joined_stream(lines: Sequence[Any]) -> dict[str, Any]:
    """Assemble the document from the events of ``--json-stream``, one a line."""
    document: dict[str, Any] = {"start": {}, "intervals": [], "end": {}}
    for line in lines:
        if isinstance(line, dict) and (event := line.get("event")) in _EVENTS:
            if event == "interval":
                document["intervals"].append(line.get("data"))
            else:
                document[event] = line.get("data")
    return document


def run_from_iperf3(
    document: Mapping[str, Any],
    dut: str,
    written: str,
    digest: str,
    label: str | None = None,
    line_bps: float | None = None,
) -> TcpResult:
    """Make the run of such a file. written: when the file was, UTC; digest: of its content.

    line_bps: the speed of the slowest line on the way. StoreError for UDP, for a file in which nothing was measured,
    for damage, for figures that no run can have, and if the DUT cannot have this name.
    """
    if not is_name(dut):
        raise StoreError(f"the DUT's name cannot be {shown(dut)}", f"it takes {REMEDY}; say it with --dut")
    try:
        output = msgspec.convert(document, Iperf3Output)
        end = msgspec.convert(output.end, Ends)
        other = msgspec.convert(document.get("server_output_json") or {}, Iperf3Output)
        ours, theirs = told_in(output), told_in(other)
    except (msgspec.ValidationError, OverflowError) as error:
        raise StoreError(f"not what iperf3 -J prints, or damaged: {error}") from None
    asked = output.start.test_start or Asked()
    _refuse_unusable(asked, ours, theirs)
    role, peer = ("client", "server") if output.start.accepted_connection is None else ("server", "client")
    plan, leg, alone = _measured(output, asked, ours, theirs, end, role, peer)
    length_s = ours.length_s - ours.omit_s
    short = f"{length_s:.1f} of {asked.duration:g} s are in the imported file"
    reason = leg.error or (short if length_s < 0.9 * asked.duration else None)
    tool = f"iperf3 {_line(output.start.version.removeprefix('iperf '))[:40]}".strip()
    started, imported = _started(output) or written, {"imported": True, "source": tool, "telemetry": False}
    systems = {role: output.start.system_info[:200], peer: other.start.system_info[:200]}
    result = TcpResult(
        id=f"{started}-{dut}-tcp-{digest}-imported",
        started=started,
        status=Status.COMPLETE if reason is None else Status.INCOMPLETE,
        reason=reason,
        command={"verb": "tcp", "ways": [leg.leg.way.value], **imported, "label": label},
        plan=plan,
        setup=TcpEnvironment(line_bps=line_bps),
        dut={"name": dut, "description": f"{dut}, imported from a file of {tool}"},
        endpoints={host: {"system": system} if system else {} for host, system in systems.items()},
        host={},
        legs=(leg,),
        warnings=(
            RunWarning("imported", f"imported from {tool}: {_UNKNOWN}"),
            *_warnings(ours, end, role, peer, alone),
        ),
    )
    if not any(row.get("total_bps") for row in checked_rows(result)):
        raise StoreError("no payload was measured in it", "it takes a test in which something was sent")
    return result


def _refuse_unusable(asked: Asked, ours: Told, theirs: Told) -> None:
    if asked.protocol != "TCP":
        raise StoreError(f"a test of {asked.protocol[:8]}", "of iperf3's tests only those of TCP are imported")
    if not ours.totals:
        raise StoreError(f"nothing was measured: {_line(ours.error) or 'it has no intervals'}")
    if any(stream.payload_bytes > _MOST for _, streams in (*ours.totals, *theirs.totals) for stream in streams):
        raise StoreError("more bytes than any test sends", "the file is damaged")


def _measured(
    output: Iperf3Output, asked: Asked, ours: Told, theirs: Told, end: Ends, role: str, peer: str
) -> tuple[TcpPlan, LegReadings, bool]:
    """Return the plan, its leg, and True if the peer does not report by interval."""
    last = ours.totals[-1][1]
    sends = {stream.sends for stream in last}
    way = Way.BIDIR if len(sends) > 1 else Way.FORWARD if (True in sends) == (role == "client") else Way.REVERSE
    interval_s, their_s = _interval_s(ours), _interval_s(theirs)
    if way is Way.BIDIR and not REGULAR[0] * interval_s <= their_s <= REGULAR[1] * interval_s:
        theirs = replace(theirs, totals=[])  # a server has its own --interval, and a run has one
    elif theirs.totals and False not in sends:
        interval_s = their_s
    addresses = [connection.remote_host for connection in output.start.connected]
    six = any(":" in address and not address.startswith("::ffff:") for address in addresses)
    plan = TcpPlan(
        legs=(Leg(way, 6 if six else 4),),
        streams=max(1, len(last) // 2 if way is Way.BIDIR else len(last)),
        time_s=asked.duration or round(ours.length_s - ours.omit_s, 3),
        interval_s=interval_s,
        omit_s=round(ours.omit_s, 2),
        pings=0,
        engine="iperf3",
    )
    ends = {role: _readings(ours), peer: _readings(theirs) if theirs.totals else _peer_readings(ours, end)}
    leg = LegReadings(
        leg=plan.legs[0],
        began_s=0.0,
        client=tuple(ends["client"]),
        server=tuple(ends["server"]),
        program=_programs(ours, way),
        error=_line(ours.error) or None,
    )
    return plan, leg, not theirs.totals


def _interval_s(output: Told) -> float:
    """Return the time between reports, once nothing more was omitted."""
    ends = [0.0, *(end_s for end_s, _ in output.totals)]
    return float(f"{median([b - a for a, b in pairwise(ends) if a >= output.omit_s] or [1.0]):.3g}")


def _readings(output: Told) -> list[HostReading]:
    begin = tuple(StreamCount(stream.stream, stream.sends, 0) for stream in output.totals[-1][1])
    return [HostReading(0.0, begin), *(HostReading(at_s, streams) for at_s, streams in output.totals)]


def _peer_readings(ours: Told, end: Ends) -> list[HostReading]:
    """Return readings of the other end: it received what we sent, behind by what was on the way at the end.

    What it sent is known at the end, if reported.
    """
    last_s, last = ours.totals[-1]
    totals = dict(enumerate((stream.sender for stream in end.streams), start=1))
    reported = {at for at, total in totals.items() if total.bytes > 0}
    whole = {at: int(stream.receiver.bytes) for at, stream in enumerate(end.streams, start=1)}
    final = {stream.stream: stream.payload_bytes for stream in last}
    begin = {
        stream.stream: stream.payload_bytes for at_s, some in ours.totals if at_s == ours.omit_s for stream in some
    }
    behind = {at: max(0, final[at] - begin.get(at, 0) - total) for at, total in whole.items() if total and at in final}

    def received(at_s: float, stream: StreamCount) -> StreamCount:
        least = stream.payload_bytes if at_s <= ours.omit_s else begin.get(stream.stream, 0)
        return StreamCount(stream.stream, False, max(least, stream.payload_bytes - behind.get(stream.stream, 0)))

    omitted: Mapping[int, int] = {}
    readings = []
    for at_s, streams in ((0.0, tuple(replace(stream, payload_bytes=0) for stream in last)), *ours.totals):
        there = [received(at_s, stream) for stream in streams if stream.sends]
        sent = [stream for stream in streams if not stream.sends and stream.stream in reported]
        if at_s in (0.0, ours.omit_s):
            omitted = {stream.stream: stream.payload_bytes for stream in sent}
            there += [StreamCount(number, True, payload, {"total_retrans": 0}) for number, payload in omitted.items()]
        elif at_s == last_s:
            there += [_count_at_end(stream.stream, totals[stream.stream], omitted) for stream in sent]
        if there:
            readings.append(HostReading(at_s, tuple(there)))
    return readings


def _count_at_end(stream: int, total: StreamTotals, omitted: Mapping[int, int]) -> StreamCount:
    known = total.retransmits is not None and 0 <= total.retransmits < _NO_RETRANSMITS
    info = {"total_retrans": int(total.retransmits or 0)} if known else {}
    return StreamCount(stream, True, omitted.get(stream, 0) + int(total.bytes), info)


def _programs(ours: Told, way: Way) -> dict[str, dict[str, str]]:
    sender, receiver = ("server", "client") if way is Way.REVERSE else ("client", "server")
    programs = {host: {"name": "iperf3", "version": ours.about["version"]} for host in ("client", "server")}
    for host, side in ((sender, "sender"), (receiver, "receiver")):
        if (used := ours.about.get(f"{side}_congestion")) is not None:
            programs[host]["congestion"] = used[:20]
    return programs


def _warnings(ours: Told, end: Ends, role: str, peer: str, alone: bool) -> Iterator[RunWarning]:
    sends = {stream.sends for stream in ours.totals[-1][1]}
    if alone and True in sends:
        bps = end.sum_received.bits_per_second
        whole = f"reported only in total, {format_bits(bps)}" if bps > 0 else "not reported, and may be less"
        less = ", less what was on the way" if bps > 0 else ""
        text = f"what the {peer} received is {whole}; the intervals are what the {role} sent{less}"
        yield RunWarning("imported-sender", text)
    if alone and False in sends:
        text = f"retransmits of the {peer} are reported only in total, not by interval"
        yield RunWarning("imported-retransmits", text)
    cpu = [
        f"the {host}'s {format_share(used / 100)}"
        for host, key in ((role, "host_total"), (peer, "remote_total"))
        if isinstance(used := end.cpu_utilization_percent.get(key), int | float) and 0 < used < 1e5
    ]
    if cpu:
        yield RunWarning(
            "imported-cpu", f"only the CPU time of the programs is known, in shares of a core: {', '.join(cpu)}"
        )


def _started(output: Iperf3Output) -> str | None:
    at_s = output.start.timestamp.get("timesecs")
    if not isinstance(at_s, int | float) or not 1e8 < at_s < 4e9:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
