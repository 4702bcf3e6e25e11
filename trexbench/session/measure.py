"""Runs in an open session: traffic, samples, the DUT's counters, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ..core.calibration import Calibration, calibration_warnings
from ..core.dut.flowspread import FlowSpread, predict
from ..core.errors import BenchError, ConfigError, DutChanged, DutError, GeneratorError, LabError
from ..core.load.headers import find_tuple5, mtu_needed
from ..core.load.plan import pair_directions
from ..core.load.profile import Profile
from ..core.load.sample import Phase
from ..core.protocols import Clock
from ..core.result import RunResult
from ..core.strategy.base import Strategy
from ..core.tcp.path import TrafficPath
from ..core.tcp.wan import Wan
from ..core.verdict.parts import RunWarning
from ..dut import Attestation
from ..lab import RunningLab
from ..lab.host import run_in_real_time
from ..signals import uninterrupted
from .keep import Begun, Measured, Output, Underway, carry_out, envelope_of
from .loop import Interrupted, Outcome, Watch, run
from .request import Request, build_plan
from .wan import made_by
from .watch import Observed, Watcher

if TYPE_CHECKING:
    from ..generator.trex.ports import TrexGenerator

NO_LATENCY = RunWarning("no-latency", "no latency was measured: the generator's ports cannot time frames")

_VOID = "what was measured is void: measure again"


@dataclass(frozen=True)
class Session:
    """Open resources for runs."""

    request: Request
    lab: RunningLab | None
    generator: TrexGenerator
    clock: Clock
    attestation: Attestation
    """The DUT as it was found."""
    observed: Observed | None
    """The DUT's counters."""
    say: Callable[[str], None]
    watch: Watch = lambda: None
    """Reads the lab's conditions."""
    calibration: Calibration | None = None
    """Rates that the tester carries without a DUT, if they were measured."""
    line: Wan | None = None
    """The WAN in the path, if any."""
    read_back: Callable[[], Attestation] | None = None
    """Reads the DUT again after each run; None if its settings stay by themselves."""

    def measure(self, request: Request, output: Output, begun: Begun = lambda _: None) -> Measured[RunResult]:
        """Measure one request for the session's DUT, ports and queues."""
        profiles, plan = _plan(request, self.generator)
        _require_mtu(request, self.attestation, profiles)
        unable = plan.length_s(Phase.LATENCY) > 0 and not self.generator.can_tag
        plan = plan.without_latency() if unable else plan
        # A simulation's time stands still while its counters are read; any other reading must not delay the samples.
        background = not self.request.sim
        # In a lab its few short commands may take their time from the sender.
        prepare = run_in_real_time if self.lab else lambda: None
        # A virtual machine's few cores would forward less while it reads its counters.
        around = background and self.request.dut.in_vm
        mode = self.request.telemetry_mode
        watcher = Watcher(self.observed, plan, self.clock, mode, background, prepare, around)
        result = _begin(request, self, profiles, plan)
        calibrated = self.calibration.of_run(result) if self.calibration is not None else None
        result = replace(
            result,
            generator={**result.generator, "calibration": calibrated},
            warnings=(*result.warnings, NO_LATENCY) if unable else result.warnings,
            spread=self._predict_spread(profiles, plan),
            dut_readings=watcher.dut_readings,
            telemetry=request.telemetry_mode,
        )
        return carry_out(result, partial(self._drive, watcher), output, begun)

    def _drive(self, watcher: Watcher, underway: Underway[RunResult]) -> None:
        outcome = Outcome(())
        try:
            watcher.start()
            shown = [] if underway.display is None else [underway.display]
            outcome = run(underway.run.plan, self.generator, self.clock, [underway, *shown, watcher], self.watch)
            if not isinstance(outcome.error, Interrupted):
                watcher.finish()
                outcome = self._read_back(outcome)
        finally:  # an interruption costs its reading, and no sample
            with uninterrupted():
                underway.error = outcome.error
                warnings = underway.run.warnings + outcome.warnings + watcher.warnings
                samples, readings = tuple(outcome.samples), tuple(watcher.dut_readings)
                result = replace(underway.run, samples=samples, dut_readings=readings, warnings=warnings)
                underway.run = result  # before anything is derived, of which a defect must not cost the samples
                if self.calibration is not None:
                    near = calibration_warnings(self.calibration, result, result.analysis.directions)
                    underway.run = replace(result, warnings=(*warnings, *near))

    def _read_back(self, outcome: Outcome) -> Outcome:
        """Add an error to the outcome where the lab or the DUT is no longer what was measured."""
        if self.lab is not None and self.lab.ended:
            if outcome.error is None:
                return replace(outcome, error=LabError(self.lab.ended, _VOID))
            if isinstance(outcome.error, GeneratorError):
                return replace(outcome, error=type(outcome.error)(f"{outcome.error}; {self.lab.ended}"))
        if self.read_back is None or outcome.error is not None:
            return outcome
        try:
            now = self.read_back()
        except BenchError as error:
            text = f"the DUT's configuration was not read back after the run: {error}"
            return replace(outcome, warnings=(*outcome.warnings, RunWarning("not-attested", text)))
        if not now.mismatches:
            return outcome
        return replace(outcome, error=DutChanged(now.in_words("is no longer"), _VOID))

    def _predict_spread(self, profiles: Mapping[int, Profile], plan: Strategy) -> FlowSpread | None:
        """Predict how flows spread over the DUT's queues and workers, and say so; None if those are unknown."""
        spreading = self.attestation.spreading
        if spreading is None or not spreading.queues:
            return None
        streams = {port: profile.streams for port, profile in profiles.items()}
        spread = predict(spreading, streams, plan.tx_ports, spreading.workers)
        for sentence in spread.sentences:
            self.say(f"  {sentence}")
        return spread


def _plan(request: Request, generator: TrexGenerator) -> tuple[Mapping[int, Profile], Strategy]:
    senders = [direction.tx for direction in pair_directions(request.ports, request.bidir)]
    vlans = {cable.tester: cable.vlan for cable in request.dut.cables}
    profiles = generator.load(request.profile_file, request.tunables, senders, vlans)
    if request.dut.ports and (request.apply or request.sim):
        _require_families(request, profiles)
    speeds_bps = {port: generator.speed_bps(port) for port in request.ports}
    return profiles, build_plan(request, profiles, speeds_bps)


def _require_families(request: Request, profiles: Mapping[int, Profile]) -> None:
    """ConfigError where the profile sends packets of an IP version of which the DUT's ports have no address."""
    sent = {find_tuple5(stream.packet).version for profile in profiles.values() for stream in profile.streams}
    for version in sent - {None, *request.dut.versions}:
        raise ConfigError(
            f"{request.dut.file}: {request.mode} sends IPv{version}, but the ports have no IPv{version} address",
            "add one to ports[].address and .neighbour, and routes to what the mode sends",
        )


def _require_mtu(request: Request, attestation: Attestation, profiles: Mapping[int, Profile]) -> None:
    """DutError where an interface's MTU is smaller than the longest packets: the DUT would fragment them."""
    needed = max(mtu_needed(stream.packet) for profile in profiles.values() for stream in profile.streams)
    interfaces = attestation.facts.get("interfaces", {})
    for cable in request.dut.cables:
        mtu = (interfaces.get(cable.interface) or {}).get("mtu")
        if cable.tester in request.ports and mtu is not None and mtu < needed:
            raise DutError(
                f"{request.dut.name}: {cable.interface} has an MTU of {mtu}, and {request.mode} needs {needed}",
                "set it on the DUT by hand, on each of its interfaces, or use smaller frames",
            )


def _begin(request: Request, session: Session, profiles: Mapping[int, Profile], plan: Strategy) -> RunResult:
    attestation, lab, facts = session.attestation, session.lab, session.generator.facts()
    accelerator = {"accelerator": lab.accelerator} if lab is not None and lab.accelerator else {}
    header = envelope_of(request, request.mode, {**accelerator, **attestation.to_document()}, _doubts(request, session))
    return RunResult(
        **header | {"simulated": bool(facts["simulated"])},
        command={
            "verb": request.verb,
            "mode": request.mode,
            "direction": request.direction_name,
            "profile_file": request.profile_file.name,
            "tunables": dict(request.tunables),
            "rx_queues": request.queues if request.apply else request.rx_queues,
            **({"variant": request.dut.variant} if request.dut.variant is not None else {}),
            **request.labels,
        },
        plan=plan,
        profiles={direction: profiles[direction.tx].to_dict() for direction in plan.directions},
        generator=facts | {"lab": lab.placement.to_document() if lab else None},
        over=TrafficPath(session.line, made_by(session.line)) if session.line is not None else None,
        samples=(),
    )


def _doubts(request: Request, session: Session) -> list[RunWarning]:
    """Warnings about lab, DUT and generator as they were found, before anything was sent."""
    attestation, lab = session.attestation, session.lab
    warnings = [RunWarning("lab", text) for text in lab.warnings] if lab else []
    if not attestation.attested and not request.sim:
        text = f"the DUT's configuration was neither applied nor read back ({attestation.reason})"
        warnings.append(RunWarning("not-attested", text))
    ignored = dict.fromkeys((*(request.wished.ignored or ()), *(request.dut.plan.ignored or ())))
    warnings += [RunWarning("dut", text) for text in (*attestation.doubts, *ignored)]
    if ports := session.generator.flow_controlled:
        text = f"flow control is on at the tester's ports {', '.join(map(str, ports))}: PAUSE frames may hold a sender "
        text += "back where the DUT would lose frames; start TRex without --no-flow-control-change"
        warnings.append(RunWarning("flow-control", text))
    if session.line is not None:
        text = f"a WAN of {session.line}, by {made_by(session.line)}, is in the path: what it drops counts as lost"
        warnings.append(RunWarning("wan", text))
    return warnings
