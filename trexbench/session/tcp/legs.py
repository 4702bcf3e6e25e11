"""The course of a TCP test: open the hosts, measure the endpoints' own ceiling, echo requests, then each leg."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from ...core.dut.telemetry import DutReading, Missing, Moment
from ...core.errors import BenchError, DutError
from ...core.protocols import Clock
from ...core.tcp.intervals import HOSTS
from ...core.tcp.plan import Counters, HostReading, Leg, LegReadings, Ping, Seen, TcpEnvironment, TcpPlan, around_plan
from ...core.tcp.result import LineCalibration, TcpResult
from ...core.tcp.wan import PINGS, wrong_delay
from ...core.verdict.parts import RunWarning
from ...signals import Interrupted, uninterrupted
from ..keep import Begun, Measured, Output, Say, Underway, carry_out, envelope_of
from ..process import signals_as_exceptions
from .request import TcpRequest


class Bench(Protocol):
    """Two endpoints with the DUT between them."""

    def prove(self, versions: Sequence[int]) -> None:
        """BenchError unless they reach one another through the DUT, both ways, with each version of IP."""

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Facts about ``client``, ``server`` and ``dut``: what was set and read back."""

    @property
    def setup(self) -> TcpEnvironment:
        """Environment of the test: everything between and around the hosts."""

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        """Warnings about hosts and DUT as they were found, before anything was sent."""

    def ping(self, leg: Leg, count: int, loaded: bool, over: threading.Event) -> Ping:
        """Echo requests from client to server, one a second. DutError where they fail, or ``over`` ends them."""

    def look(self, moment: Moment) -> DutReading | None:
        """The DUT's counters at this moment; None if they cannot be read."""

    def ping_line(self, leg: Leg, count: int) -> Ping | None:
        """Echo requests over the WAN, outside of any tunnel; None without a WAN, or if its delay cannot be tried."""

    @property
    def clock(self) -> Clock:
        """The run's clock."""

    def flow(self, leg: Leg, plan: TcpPlan, seen: Seen, counters: Counters | None) -> LegReadings:
        """TCP through the DUT, with the leg's buffers on both hosts.

        counters: gets what is read of the DUT meanwhile, which is left empty in the leg; None: read nothing.
        """

    def around(self, leg: Leg, plan: TcpPlan) -> LegReadings | None:
        """TCP between the endpoints, around the DUT; None if no way leads around it."""


class TcpDisplay(Protocol):
    """A display of a running test, which handles its own failures."""

    def begun(self, leg: Leg) -> None: ...

    def seen(self, host: str, reading: HostReading) -> None: ...


def measure_tcp(request: TcpRequest, output: Output) -> Measured[TcpResult]:
    """Carry the request out. An error before the first leg is raised, a later one is part of the result."""
    with signals_as_exceptions(), open_bench(request, output.say) as bench:
        return run_tcp(bench, request, output)


@contextmanager
def open_bench(request: TcpRequest, say: Say) -> Iterator[Bench]:
    """Open a bench, which several tests of one DUT and variant can share."""
    if request.sim:
        from .simulate import SimulatedBench

        simulated = SimulatedBench(request)
        say(f"simulating {request.dut.name}: no packet is sent")
        yield simulated
        return
    from .bench import open_hosts

    with open_hosts(request, say) as bench:
        yield bench


def run_tcp(bench: Bench, request: TcpRequest, output: Output, begun: Begun = lambda _: None) -> Measured[TcpResult]:
    """Carry the request out on this bench; BenchError, before anything is measured, if the path is not proved."""
    bench.prove(_versions(request.plan))
    facts = dict(bench.facts)
    result = TcpResult(
        **envelope_of(request, "tcp", facts.pop("dut"), bench.warnings),
        command={
            "verb": request.verb,
            "dut": request.dut.name,
            "ways": tuple(dict.fromkeys(leg.way.value for leg in request.plan.legs)),
            "variant": request.variant,
            "applied": request.apply,
            "telemetry": request.telemetry,
            **({"seed": request.seed} if request.sim else {}),
            **request.labels,
        },
        plan=request.plan,
        setup=bench.setup,
        endpoints=facts,
    )
    return carry_out(result, partial(_drive, bench), output, begun)


def _drive(bench: Bench, test: Underway[TcpResult]) -> None:
    plan = test.run.plan
    versions = _versions(plan)
    for version in versions:
        _find_ceiling(bench, test, version)
    _try_line(bench, test)
    look = bench.look if test.run.command["telemetry"] else lambda moment: None
    for version in versions if plan.pings else ():
        begin = look(Moment.BEGIN)
        leg = next(leg for leg in plan.legs if leg.version == version)
        ping = bench.ping(leg, plan.pings, False, threading.Event())
        test.add(pings=[ping], idle=[reading for reading in (begin, look(Moment.END)) if reading is not None])
    for leg in plan.legs:
        _flow(bench, test, leg)


def _try_line(bench: Bench, test: Underway[TcpResult]) -> None:
    """Ping over the WAN, outside of any tunnel; DutError if the round trip is not the WAN's."""
    setup, leg = test.run.setup, replace(test.run.plan.legs[0], buffer_bytes=None, congestion=None)
    if setup.wan is None or not setup.wan.delay_s or (ping := bench.ping_line(leg, PINGS)) is None:
        return
    with uninterrupted():
        test.run = replace(test.run, calibration=LineCalibration((ping,)))
    if wrong := wrong_delay(setup.wan, ping.times_s):
        remedy = "check what else runs on these hosts, and whether the WAN's host is between them"
        raise DutError(f"the WAN of {setup.wan}, by {setup.wan_by}: {wrong}", remedy)


def _versions(plan: TcpPlan) -> tuple[int, ...]:
    return tuple(dict.fromkeys(leg.version for leg in plan.legs))


def _find_ceiling(bench: Bench, test: Underway[TcpResult], version: int) -> None:
    """Measure the endpoints' own ceiling, each way of the plan."""
    plan = around_plan(test.run.plan)
    for way in dict.fromkeys(leg.way for leg in test.run.plan.legs):
        readings = bench.around(Leg(way, version), plan)
        if readings is None:
            text = "the endpoints were not measured without the DUT between them: their own ceiling"
            test.add(warnings=[RunWarning("no-ceiling", f"{text} (IPv{version}) is unknown")])
            return
        if readings.error is not None:
            what = f"around the DUT, {readings.leg}: {readings.error}"
            raise DutError(what, "make the endpoints work without the DUT first")
        test.add(ceilings=[readings])


def _flow(bench: Bench, test: Underway[TcpResult], leg: Leg) -> None:
    plan, pings, beside = test.run.plan, list[Ping | BenchError](), list[_PingBeside]()
    display: TcpDisplay | None = test.display
    if display is not None:
        display.begun(leg)
    # as many as fit into the leg
    count = max(1, min(plan.pings, int(plan.time_s + plan.omit_s) - 1)) if leg.repetition == 1 and plan.pings else 0
    heard: dict[str, list[HostReading]] = {host: [] for host in HOSTS}
    counters, began_s = Counters(), list[float]()

    def seen(host: str, reading: HostReading) -> None:
        if host == HOSTS[0] and not began_s:
            began_s.append(bench.clock.now())
            if count:  # not earlier: until payload flows the path is idle
                beside.append(_PingBeside(partial(bench.ping, leg, count, True)))
        heard[host].append(reading)
        if display is not None:
            display.seen(host, reading)

    broken = True
    try:
        try:
            readings = bench.flow(leg, plan.of(leg), seen, counters if test.run.command["telemetry"] else None)
        except (Interrupted, KeyboardInterrupt) as interrupt:
            early = _interrupted(leg, (began_s or [0.0])[0], heard, str(interrupt))
            test.add(legs=[with_counters(one, counters) for one in early])
            raise
        readings = with_counters(readings, counters)
        broken = readings.error is not None
        test.add(legs=[readings])  # first: an interruption while the ping ends must not lose it
    finally:
        for series in beside:
            pings = series.end(early=broken)
    for ping in pings:
        if isinstance(ping, Ping):
            test.add(pings=[ping])
        else:
            test.add(warnings=[RunWarning("no-ping", f"{leg}: no echo request was measured: {ping}")])
    if readings.error is not None:
        raise DutError(f"{leg}: {readings.error}")


def with_counters(readings: LegReadings, counters: Counters) -> LegReadings:
    """Add to a leg what was read of the DUT meanwhile."""
    dut = tuple(one for one in counters if isinstance(one, DutReading))
    return replace(readings, dut=dut, missing=tuple(one for one in counters if isinstance(one, Missing)))


def _interrupted(leg: Leg, began_s: float, heard: Mapping[str, Sequence[HostReading]], why: str) -> list[LegReadings]:
    """Return what the hosts reported of a leg until its interruption; nothing if no payload flowed."""
    client, server = (tuple(reading for reading in heard[host] if reading.streams) for host in HOSTS)
    carried = any(stream.payload_bytes for reading in (*client, *server) for stream in reading.streams)
    return [LegReadings(leg, began_s, client, server, error=why or "interrupted")] if carried else []


class _PingBeside:
    """Pings in a thread beside the leg. work: ends early when the event is set."""

    def __init__(self, work: Callable[[threading.Event], Ping]) -> None:
        self._work, self._pings, self._over = work, list[Ping | BenchError](), threading.Event()
        self._thread = threading.Thread(target=self._run, name="ping", daemon=True)
        with uninterrupted():  # so that it takes no signal
            self._thread.start()

    def _run(self) -> None:
        try:
            self._pings.append(self._work(self._over))
        except BenchError as error:
            self._pings.append(error)

    def end(self, early: bool) -> list[Ping | BenchError]:
        """Wait for the end and return the ping or its error. early: end it now."""
        if early:
            self._over.set()
        self._thread.join()
        return self._pings
