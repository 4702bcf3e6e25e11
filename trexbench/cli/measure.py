"""One measurement from end to end: lab, lock, generator, DUT, run, document. Everything opened here is closed here."""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any, Protocol

from ..config import TransportConfig
from ..core.errors import GeneratorError
from ..core.plan import Plan
from ..core.ports import Clock, Sink
from ..core.profile import Profile
from ..core.ramp import Step
from ..core.result import RunResult, Status
from ..core.sample import Sample
from ..core.verdict import Caveat
from ..dut import Attestation, not_attested, open_dut
from ..dut.drivers import planned_only, require_driver
from ..generator.connect import Endpoint, connect
from ..generator.trex import TrexGenerator
from ..lab import Lab, LabSpec, RunningLab
from ..lock import locked, run_dir
from ..runner import Interrupted, Outcome, run
from ..transport import Transport, open_transport
from .request import Request, build_plan, check_wishes, line_rate_bps

_LIBRARIES = ("trexbench", "lbr-trex-client", "pyzmq", "numpy", "scapy", "matplotlib")


class RunClock:
    """Seconds since it was made, on the monotonic clock."""

    def __init__(self) -> None:
        self._zero = time.monotonic()

    def now(self) -> float:
        return time.monotonic() - self._zero

    def sleep_until(self, t_s: float) -> None:
        left = t_s - self.now()
        if left > 0:
            time.sleep(left)


@dataclass
class Fan:
    """Hands every sample to several sinks, to each whatever becomes of the others; the first failure is raised."""

    sinks: Sequence[Sink] = field(default_factory=tuple)

    def sampled(self, samples: Sequence[Sample], step: Step) -> None:
        failure: Exception | None = None
        for sink in self.sinks:
            try:
                sink.sampled(samples, step)
            except Exception as failed:
                failure = failure or failed
        if failure is not None:
            raise failure


class Recorder(Protocol):
    """Who keeps and shows a run while it is going on."""

    def begin(self, result: RunResult) -> Sink:
        """A run begins (no samples yet); what shall see its samples."""

    def end(self, result: RunResult) -> None:
        """It is over, complete or not; called before anything is torn down."""


def measure(request: Request, recorder: Recorder, say: Callable[[str], None]) -> tuple[RunResult, Outcome]:
    """Carry the request out; the result holds whatever was measured, the outcome why it ended early, if it did.

    ``say`` gets one line per step before the traffic. Errors before the first sample are raised.
    """
    check_wishes(request)
    if request.apply and not request.sim:
        require_driver(request.dut)
    with signals_as_exceptions(), ExitStack() as stack:
        lab = _lab(request, stack, say)
        generator, clock = _generator(request, lab, stack, say)
        attestation = _configure(request, generator, lab, say)
        profiles, plan = _plan(request, generator)
        result = _begin(request, generator, attestation, profiles, plan, lab)
        outcome = run(plan, generator, clock, recorder.begin(result))
        result = _finish(result, outcome, lab)
        recorder.end(result)
        return result, outcome


def _lab(request: Request, stack: ExitStack, say: Callable[[str], None]) -> RunningLab | None:
    if not request.uses_lab:
        return None
    say(f"bringing up the lab of {request.dut.name}")
    lab = stack.enter_context(Lab(LabSpec.from_config(request.dut)).running(request.trex_dir))
    # Sockets opened from here on live in the tester's namespace, and so do all threads made from here on.
    lab.enter()
    lab.pin_harness()
    return lab


def _generator(
    request: Request, lab: RunningLab | None, stack: ExitStack, say: Callable[[str], None]
) -> tuple[TrexGenerator, Clock]:
    """The tester's ports, taken for this run, and the clock that it goes by."""
    trex_dir = str(request.trex_dir) if request.trex_dir else None
    if request.sim:
        from .simulate import simulated

        simulation = stack.enter_context(simulated(request, say))
        # Its server dies with this process: there is nothing to watch over.
        held = connect(simulation.endpoint, request.ports, simulation.clock, trex_dir=trex_dir, guarded=False)
        return stack.enter_context(held), simulation.clock
    endpoint = _endpoint(request)
    tester = f"lab-{lab.spec.prefix}" if lab else f"{endpoint.server}-{endpoint.rpc_port}"
    doing = f"{request.verb} of {request.dut.name}, {request.mode}"
    stack.enter_context(locked(f"tester-{tester}".replace("/", "_"), f"tester {endpoint} is in use", doing))
    say(f"connecting to {endpoint}")
    clock = RunClock()
    taken = connect(endpoint, request.ports, clock, trex_dir=trex_dir, force=request.force)
    return stack.enter_context(taken), clock


def _endpoint(request: Request) -> Endpoint:
    there = request.dut.generator
    return Endpoint(
        request.server or there.server, request.rpc_port or there.rpc_port, request.pub_port or there.pub_port
    )


def _configure(
    request: Request, generator: TrexGenerator, lab: RunningLab | None, say: Callable[[str], None]
) -> Attestation:
    macs = {one["port"]: one["mac"] for one in generator.facts()["ports"]}
    if request.sim:
        return planned_only(request.dut, macs)
    if not request.apply:
        return not_attested(request.dut)
    say(f"configuring {request.dut.name} and reading it back")
    dut = open_dut(request.dut, lambda: _transport(request.dut.transport), macs, lab.host_facts if lab else None)
    dut.apply()
    return dut.verify().require_match()


def _transport(way: TransportConfig) -> Transport:
    return open_transport(way.type, way.namespace, host=way.host, user=way.user, port=way.port, run_dir=run_dir())


def _plan(request: Request, generator: TrexGenerator) -> tuple[dict[int, Profile], Plan]:
    senders = request.ports if request.bidir else request.ports[::2]
    profiles = generator.load(request.profile_file, request.tunables, senders)
    speed = line_rate_bps(request.dut, {port: generator.speed_bps(port) for port in request.ports})
    return profiles, build_plan(request, profiles[senders[0]], speed)


def _begin(
    request: Request,
    generator: TrexGenerator,
    attestation: Attestation,
    profiles: Mapping[int, Profile],
    plan: Plan,
    lab: RunningLab | None,
) -> RunResult:
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    facts = generator.facts()
    first = profiles[plan.directions[0].tx]
    caveats = [Caveat("lab", text) for text in lab.warnings] if lab else []
    if not attestation.attested and not request.sim:
        caveats.append(Caveat("not-attested", "the DUT's configuration was neither applied nor read back"))
    return RunResult(
        id=f"{started}-{request.dut.name}-{request.mode}-{os.getpid()}",
        started=started,
        status=Status.RUNNING,
        command={
            "verb": request.verb,
            "mode": request.mode,
            "direction": request.direction_name,
            "profile_file": request.profile_file.name,
            "tunables": dict(request.tunables),
            "rx_queues": request.queues if request.sim else request.rx_queues,
        },
        plan=plan,
        profile=first.to_dict(),
        dut={
            "name": request.dut.name,
            "description": request.dut.description,
            "config": request.dut.text,
            **attestation.to_document(),
        },
        generator=facts | {"lab": dict(lab.placement) if lab else None},
        host=host_facts(),
        simulated=bool(facts["simulated"]),
        samples=(),
        caveats=tuple(caveats),
    )


def _finish(result: RunResult, outcome: Outcome, lab: RunningLab | None) -> RunResult:
    reason = None if outcome.error is None else str(outcome.error)
    if isinstance(outcome.error, GeneratorError) and lab is not None and not lab.server_alive:
        reason = f"{reason}; the lab's server ended: {lab.server_says}"
    return replace(
        result,
        samples=tuple(outcome.samples),
        caveats=result.caveats + outcome.caveats,
        status=Status.COMPLETE if outcome.error is None else Status.INCOMPLETE,
        reason=reason,
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def host_facts() -> dict[str, Any]:
    """The tester, as far as it may matter to a result."""
    versions: dict[str, str | None] = {}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _cpu_model() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        return None
    return lines[0] if lines else None


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the block with Interrupted, once: what follows the first is clean-up's time."""
    seen = False

    def handle(number: int, _frame: object) -> None:
        nonlocal seen
        if seen:
            return
        seen = True
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        raise Interrupted(name, 128 + number)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
