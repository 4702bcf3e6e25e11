"""One measurement from end to end: lab, lock, generator, DUT, run, document. Everything opened here is closed here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from ..core.errors import GeneratorError
from ..core.flowspread import FlowSpread, predict
from ..core.plan import Plan
from ..core.ports import Clock, Sink
from ..core.profile import Profile
from ..core.ramp import Step
from ..core.result import RunResult, Status
from ..core.sample import Sample
from ..core.telemetry import Observation
from ..core.verdict import Caveat
from ..dut import Attestation, Wanted, not_attested
from ..dut.apply import apply, changes
from ..dut.drivers import planned_only
from ..dut.hashes import with_stated
from ..generator.connect import Endpoint, connect
from ..generator.trex import TrexGenerator
from ..lab import Lab, LabSpec, RunningLab
from ..lock import locked
from ..runner import Interrupted, Outcome, as_error, run
from .box import opened
from .process import host_facts, signals_as_exceptions
from .request import Request, build_plan, check_wishes, line_rate_bps
from .watch import Observed, Watcher

if TYPE_CHECKING:
    from .simulate import Simulation


NO_LATENCY = Caveat("no-latency", "no latency was measured: the generator's ports cannot time frames")


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


@dataclass(frozen=True)
class Bench:
    """Everything a run needs, opened: the tester's ports, the DUT as it was found, who looks at it, the run's clock."""

    request: Request
    lab: RunningLab | None
    generator: TrexGenerator
    clock: Clock
    attestation: Attestation
    observed: Observed | None
    say: Callable[[str], None]

    def measure(self, recorder: Recorder, request: Request | None = None) -> tuple[RunResult, Outcome]:
        """One run of the request that this was opened for, or of one like it: of the same DUT, ports and queues."""
        request = request or self.request
        profiles, plan = _plan(request, self.generator)
        unable = plan.latency_s > 0 and not self.generator.can_tag
        plan = replace(plan, latency_s=0.0) if unable else plan
        watcher = self._watcher(plan)
        result = _begin(request, self, profiles, plan)
        if unable:
            result = replace(result, caveats=(*result.caveats, NO_LATENCY))
        spread = self._foretell(profiles, plan)
        result = replace(result, sightings=watcher.sightings, telemetry=request.telemetry_mode, spread=spread)
        sink = recorder.begin(result)
        try:
            watcher.start()
            outcome = run(plan, self.generator, self.clock, Fan([sink, watcher]))
        except (Interrupted, KeyboardInterrupt) as raised:  # before the first sample; of the others the loop takes care
            outcome = Outcome((), as_error(raised))
        outcome = _last_look(watcher, outcome)
        result = _finish(result, outcome, self.lab, watcher)
        recorder.end(result)
        return result, outcome

    def _foretell(self, profiles: Mapping[int, Profile], plan: Plan) -> FlowSpread | None:
        """How the flows will fall on the DUT's queues and workers, told before the traffic; None: nothing is known."""
        spreading = self.attestation.spreading
        if spreading is None or not spreading.queues:
            return None
        streams = {port: profile.streams for port, profile in profiles.items()}
        found = predict(spreading, streams, plan.tx_ports, spreading.workers)
        for sentence in found.sentences:
            self.say(f"  {sentence}")
        return found

    def _watcher(self, plan: Plan) -> Watcher:
        mode = self.request.telemetry_mode if self.observed is not None else "off"
        # A simulation's time stands still while it is looked at; any other look must not delay the samples.
        unseen, prepare = _Unseen(), self.lab.hasten if self.lab else lambda: None
        return Watcher(self.observed or unseen, plan, self.clock, mode, not self.request.sim, prepare)


def _last_look(watcher: Watcher, outcome: Outcome) -> Outcome:
    """The DUT once more, in silence. Who interrupts it loses that look, and no sample."""
    if isinstance(outcome.error, Interrupted):
        return outcome
    try:
        watcher.finish()
    except (Interrupted, KeyboardInterrupt) as raised:
        return replace(outcome, error=outcome.error or as_error(raised))
    return outcome


class _Unseen:
    def observe(self, clear: bool = False) -> Observation:
        return Observation()


def measure(request: Request, recorder: Recorder, say: Callable[[str], None]) -> tuple[RunResult, Outcome]:
    """Carry the request out; the result holds whatever was measured, the outcome why it ended early, if it did.

    ``say`` gets one line per step before the traffic. Errors before the first sample are raised.
    """
    with bench(request, say) as opened_bench:
        return opened_bench.measure(recorder)


@contextmanager
def bench(request: Request, say: Callable[[str], None]) -> Iterator[Bench]:
    """Lab, ports and DUT until the end of the block, for one run or several."""
    check_wishes(request)
    with signals_as_exceptions(), ExitStack() as stack:
        lab = _lab(request, stack, say)
        generator, clock, simulation = _generator(request, lab, stack, say)
        attestation, observed = _configure(request, generator, lab, stack, say)
        if simulation is not None:
            observed, attestation = simulation.dut, replace(attestation, spreading=simulation.dut.spreading())
        yield Bench(request, lab, generator, clock, attestation, observed, say)


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
) -> tuple[TrexGenerator, Clock, Simulation | None]:
    """The tester's ports, taken for this run, the clock that it goes by, and what simulates both if that is asked."""
    trex_dir = str(request.trex_dir) if request.trex_dir else None
    if request.sim:
        from .simulate import simulated

        simulation = stack.enter_context(simulated(request, say))
        # Its server dies with this process: there is nothing to watch over.
        held = connect(simulation.endpoint, request.ports, simulation.clock, trex_dir=trex_dir, guarded=False)
        return stack.enter_context(held), simulation.clock, simulation
    endpoint = _endpoint(request)
    tester = f"lab-{lab.spec.prefix}" if lab else f"{endpoint.server}-{endpoint.rpc_port}"
    doing = f"{request.verb} of {request.dut.name}, {request.mode}"
    stack.enter_context(locked(f"tester-{tester}".replace("/", "_"), f"tester {endpoint} is in use", doing))
    say(f"connecting to {endpoint}")
    clock = RunClock()
    taken = connect(endpoint, request.ports, clock, trex_dir=trex_dir, force=request.force)
    return stack.enter_context(taken), clock, None


def _endpoint(request: Request) -> Endpoint:
    there = request.dut.generator
    return Endpoint(
        request.server or there.server, request.rpc_port or there.rpc_port, request.pub_port or there.pub_port
    )


def _configure(
    request: Request,
    generator: TrexGenerator,
    lab: RunningLab | None,
    stack: ExitStack,
    say: Callable[[str], None],
) -> tuple[Attestation, Observed | None]:
    """The DUT brought into its state, read back, and open for looking at."""
    macs = {one["port"]: one["mac"] for one in generator.facts()["ports"]}
    wanted = Wanted(request.dut, macs, request.queues, lab.host_facts if lab else {})
    if request.sim:
        return planned_only(wanted), None
    if not request.apply and request.telemetry_mode == "off":
        return not_attested(request.dut), None
    doing = f"{request.verb} of {request.dut.name}, {request.mode}"
    there = stack.enter_context(opened(wanted, doing, passing=lab is not None and lab.ephemeral))
    if not request.apply:
        return not_attested(request.dut), there.observed
    say(f"configuring {request.dut.name} and reading it back")
    changed = apply(there.dut, there.transport, there.journal)
    say(f"  {changes(changed)}")
    attested = there.dut.verify()
    stated = None if attested.spreading is None else with_stated(attested.spreading, request.dut)
    return replace(attested, changed=changed, spreading=stated).require_match(), there.observed


def _plan(request: Request, generator: TrexGenerator) -> tuple[dict[int, Profile], Plan]:
    senders = request.ports if request.bidir else request.ports[::2]
    profiles = generator.load(request.profile_file, request.tunables, senders)
    speed = line_rate_bps(request.dut, {port: generator.speed_bps(port) for port in request.ports})
    return profiles, build_plan(request, profiles[senders[0]], speed)


def _begin(request: Request, there: Bench, profiles: Mapping[int, Profile], plan: Plan) -> RunResult:
    generator, attestation, lab = there.generator, there.attestation, there.lab
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
            "rx_queues": request.queues if request.apply else request.rx_queues,
            **request.labels,
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


def _finish(result: RunResult, outcome: Outcome, lab: RunningLab | None, watcher: Watcher) -> RunResult:
    reason = None if outcome.error is None else str(outcome.error)
    if isinstance(outcome.error, GeneratorError) and lab is not None and not lab.server_alive:
        reason = f"{reason}; the lab's server ended: {lab.server_says}"
    return replace(
        result,
        samples=tuple(outcome.samples),
        sightings=tuple(watcher.sightings),
        caveats=result.caveats + outcome.caveats + watcher.caveats,
        status=Status.COMPLETE if outcome.error is None else Status.INCOMPLETE,
        reason=reason,
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
