"""A TCP test, measured: its hosts opened, the endpoints' own ceiling, echo requests, then each leg in turn."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from ...core.dut.telemetry import DutReading, Moment
from ...core.errors import BenchError, DutError
from ...core.tcp.model import HostReading, Leg, LegReadings, Ping, Seen, TcpEnvironment, TcpPlan, around_plan
from ...core.tcp.result import LineCalibration, TcpResult
from ...core.tcp.wan import PINGS, wrong_delay
from ...core.typed import Status
from ...core.verdict.model import RunWarning
from ...signals import uninterrupted
from ..keep import Measured, Output, Say, keep
from ..process import host_facts, signals_as_exceptions, utc_now
from ..run import Interrupted, Recorder, as_error
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
        """Everything that lies between and around the hosts."""

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        """Doubts about how hosts and DUT were found, before anything was sent."""

    @property
    def goes_around(self) -> bool:
        """True if the endpoints have a way that leads around the DUT."""

    def ping(self, leg: Leg, count: int, loaded: bool, over: threading.Event) -> Ping:
        """Echo requests from client to server, one a second. DutError where they fail, or ``over`` ends them."""

    def look(self, moment: Moment) -> DutReading | None:
        """The DUT's counters at this moment; None where they cannot be read."""

    @property
    def tries_line(self) -> bool:
        """True if there is a WAN whose delay has to be tried, and can be."""

    @property
    def beneath(self) -> Bench:
        """This bench without a tunnel between the hosts."""

    def set_buffers(self, size: int | None) -> None:
        """Let both hosts' socket buffers grow to this size from now on, in bytes; None: as they were found."""

    def flow(self, leg: Leg, plan: TcpPlan, seen: Seen, watched: bool) -> LegReadings:
        """TCP through the DUT. Interrupted ends it. watched: the DUT's counters are read as well."""

    def around(self, leg: Leg, plan: TcpPlan) -> LegReadings:
        """TCP between the endpoints, around the DUT."""


class TcpDisplay(Protocol):
    """Display of a test while it goes on; it handles its own failures."""

    def begun(self, leg: Leg) -> None: ...

    def seen(self, host: str, reading: HostReading) -> None: ...


@dataclass
class _Test:
    result: TcpResult
    bench: Bench
    recorder: Recorder
    display: TcpDisplay | None = None

    def add(self, **parts: Any) -> None:
        """Join these to what was measured before, and have it kept."""
        joined: dict[str, Any] = {name: (*getattr(self.result, name), *values) for name, values in parts.items()}
        with uninterrupted():
            self.result = replace(self.result, **joined)
            self.recorder.update(self.result)


def measure_tcp(request: TcpRequest, output: Output) -> Measured[TcpResult]:
    """Carry the request out. An error before the first leg is raised, a later one is in what is returned."""
    with signals_as_exceptions(), open_bench(request, output.say) as bench:
        return keep(partial(run_tcp, bench, request), output)


@contextmanager
def open_bench(request: TcpRequest, say: Say) -> Iterator[Bench]:
    """Bench that several tests of one DUT and variant share, until the end of the block."""
    if request.sim:
        from .simulate import SimulatedBench

        simulated = SimulatedBench(request)
        say(f"simulating {request.dut.name}: no packet is sent")
        yield simulated
        return
    from .bench import open_hosts

    with open_hosts(request, say) as bench:
        yield bench


def run_tcp(bench: Bench, request: TcpRequest, recorder: Recorder) -> tuple[TcpResult, BenchError | Interrupted | None]:
    """Carry the request out. Whatever ends it, what was measured is in the result.

    BenchError where the way is not proved: nothing was measured then.
    """
    bench.prove(_versions(request.plan))
    started, dut = utc_now(), request.dut
    result = TcpResult(
        id=f"{started}-{dut.name}-tcp-{os.getpid()}",
        started=started,
        status=Status.RUNNING,
        command=_command(request),
        plan=request.plan,
        setup=bench.setup,
        dut={"name": dut.name, "description": dut.description, "config": dut.text, **bench.facts["dut"]},
        endpoints={name: facts for name, facts in bench.facts.items() if name != "dut"},
        host=host_facts(),
        simulated=request.sim,
        warnings=bench.warnings,
    )
    test, error, begun = _Test(result, bench, recorder), None, False
    try:
        with uninterrupted():  # what was begun is brought to its end
            test.display = recorder.begin(result)
            begun = True
        _drive(test)
    except (Exception, Interrupted, KeyboardInterrupt) as raised:
        if not begun:
            raise
        error = as_error(raised)
    with uninterrupted():
        ended = Status.COMPLETE if error is None else Status.INCOMPLETE
        result = replace(test.result, status=ended, reason=None if error is None else str(error), finished=utc_now())
        recorder.end(result)
    return result, error


def _drive(test: _Test) -> None:
    plan = test.result.plan
    versions = _versions(plan)
    for version in versions:
        _find_ceiling(test, version)
    if test.bench.tries_line:
        _try_line(test)
    for version in versions:
        if plan.pings:
            _ping_idle(test, next(leg for leg in plan.legs if leg.version == version))
    for leg in plan.legs:
        _flow(test, leg)


def _try_line(test: _Test) -> None:
    """DutError where echo requests, outside of any tunnel, take another time than the WAN's."""
    wan, leg = test.result.setup.wan, replace(test.result.plan.legs[0], buffer_bytes=None, congestion=None)
    if wan is None or not wan.delay_s:
        return
    ping = test.bench.beneath.ping(leg, PINGS, False, threading.Event())
    with uninterrupted():
        test.result = replace(test.result, calibration=LineCalibration((ping,)))
    if wrong := wrong_delay(wan, ping.times_s):
        remedy = "see what else runs on these hosts, and whether the WAN's host is between them"
        raise DutError(f"the WAN of {wan}, by {test.result.setup.wan_by}: {wrong}", remedy)


def _ping_idle(test: _Test, leg: Leg) -> None:
    look = test.bench.look if test.result.command["telemetry"] else lambda moment: None
    begin = look(Moment.BEGIN)
    found = test.bench.ping(leg, test.result.plan.pings, False, threading.Event())
    test.add(pings=[found], idle=[one for one in (begin, look(Moment.END)) if one is not None])


def _versions(plan: TcpPlan) -> tuple[int, ...]:
    return tuple(dict.fromkeys(leg.version for leg in plan.legs))


def _find_ceiling(test: _Test, version: int) -> None:
    """The endpoints' own ceiling, each way that the plan goes."""
    plan = around_plan(test.result.plan)
    if not test.bench.goes_around:
        text = "the endpoints were not measured without the DUT between them: their own ceiling"
        test.add(warnings=[RunWarning("no-ceiling", f"{text} (IPv{version}) is unknown")])
        return
    for way in dict.fromkeys(leg.way for leg in test.result.plan.legs):
        found = test.bench.around(Leg(way, version), plan)
        if found.error is not None:
            raise DutError(f"around the DUT, {found.leg}: {found.error}", "the endpoints must do without it first")
        test.add(ceilings=[found])


def _flow(test: _Test, leg: Leg) -> None:
    plan, pings = test.result.plan, list[Ping | BenchError]()
    display = test.display
    if display is not None:
        display.begun(leg)
    beside = None
    if plan.pings and leg.repetition == 1:  # so many of the planned ones as fit into the leg
        count = max(1, min(plan.pings, int(plan.time_s + plan.omit_s) - 1))
        beside = _Beside(partial(test.bench.ping, leg, count, True))
    broken = True
    try:
        test.bench.set_buffers(test.result.setup.buffer_bytes(leg))
        seen: Seen = (lambda *_: None) if display is None else display.seen
        found = test.bench.flow(leg, plan.of(leg), seen, bool(test.result.command["telemetry"]))
        broken = found.error is not None
        test.add(legs=[found])  # first: an interruption while the ping ends must not lose it
    finally:
        if beside is not None:
            pings = beside.end(early=broken)
    for one in pings:
        if isinstance(one, Ping):
            test.add(pings=[one])
        else:
            test.add(warnings=[RunWarning("no-ping", f"{leg}: no echo request was measured: {one}")])
    if found.error is not None:
        raise DutError(f"{leg}: {found.error}")


class _Beside:
    """Runs a function in a thread beside the leg; it ends early where the event that it is given is set."""

    def __init__(self, work: Callable[[threading.Event], Ping]) -> None:
        self._work, self._found, self._over = work, list[Ping | BenchError](), threading.Event()
        self._thread = threading.Thread(target=self._run, name="ping", daemon=True)
        with uninterrupted():  # so that it takes no signal
            self._thread.start()

    def _run(self) -> None:
        try:
            self._found.append(self._work(self._over))
        except BenchError as error:
            self._found.append(error)

    def end(self, early: bool) -> list[Ping | BenchError]:
        """Wait until it is over and return what it found. early: nobody needs it any more."""
        if early:
            self._over.set()
        self._thread.join()
        return self._found


def _command(request: TcpRequest) -> dict[str, Any]:
    ways = tuple(dict.fromkeys(leg.way.value for leg in request.plan.legs))
    return {
        "verb": request.verb,
        "dut": request.dut.name,
        "ways": ways,
        "variant": request.variant,
        "applied": request.apply,
        "telemetry": request.telemetry,
        **({"seed": request.seed} if request.sim else {}),
        **request.labels,
    }
