"""Opens a session: lab, lock, tester's ports, DUT. Everything opened here is closed here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..core.errors import ConfigError
from ..core.protocols import Clock
from ..core.tcp.wan import Wan
from ..dut import Attestation, Wanted, not_attested
from ..dut.apply import apply_and_verify, read_back, summary
from ..generator.trex.connect import connect
from ..lab import Lab, LabSpec, RunningLab
from ..lab.conditions import watch_of
from ..lab.net import returning
from ..lock import locked
from .dut import ConnectedDut, connect_dut, endpoint_of
from .loop import Watch
from .measure import Session
from .process import RunClock, signals_as_exceptions
from .request import Request, expected_s
from .testers import load, name_of_tester
from .wan import open_line, require_wan
from .watch import Observed

if TYPE_CHECKING:
    from ..generator.trex.ports import TrexGenerator
    from .simulate import Simulation


@contextmanager
def open_session(request: Request, say: Callable[[str], None]) -> Iterator[Session]:
    """Open lab, ports and DUT for one run or several. ``say`` gets a line per step."""
    expected_s(request)  # raises ConfigError for what cannot be measured
    with signals_as_exceptions(), ExitStack() as stack:
        _check_wan(request)
        lab = _lab(request, stack, say)
        generator, clock, simulation = _generator(request, lab, stack, say)
        attestation, dut, line = _configure(request, generator, lab, stack, say)
        observed: Observed | None = dut.observed if dut is not None else None
        again = dut is not None and dut.unsteady and attestation.attested
        reads_back = partial(read_back, dut.dut) if dut is not None and again else None
        if simulation is not None:
            observed, attestation = simulation.dut, replace(attestation, spreading=simulation.dut.spreading())
        known = None if request.sim else load(name_of_tester(request.dut, request))
        watch: Watch = watch_of(lab).read if lab is not None else lambda: None
        yield Session(request, lab, generator, clock, attestation, observed, say, watch, known, line, reads_back)


def _check_wan(request: Request) -> None:
    """BenchError if the config's WAN cannot be made, or must not be."""
    wan = request.dut.wan
    if wan is not None and request.sim:
        raise ConfigError(f"a WAN of {wan}: simulated packets pass none", "remove it, or use another variant")
    if wan is not None and not request.apply:
        raise ConfigError(f"a WAN of {wan}, which --no-apply does not set", "leave one of them out")
    if wan is not None and wan.loss:
        raise ConfigError(f"a WAN of {wan}: its losses could not be told from the DUT's", "remove loss= for packets")
    require_wan(request.dut, packets=True)


@contextmanager
def _own_place() -> Iterator[None]:
    """Restore this process's namespace, cores and priority, which a lab changes, at the end of the block."""
    cpus, policy, priority = os.sched_getaffinity(0), os.sched_getscheduler(0), os.sched_getparam(0)
    with returning():
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, cpus)
                os.sched_setscheduler(0, policy, priority)


def _lab(request: Request, stack: ExitStack, say: Callable[[str], None]) -> RunningLab | None:
    if not request.uses_lab:
        return None
    stack.enter_context(_own_place())
    machine = request.dut.lab.vm if request.dut.lab is not None and request.dut.in_vm else None
    takes = f", a virtual machine that may take {machine.boot_s:g} s to start" if machine is not None else ""
    lab = Lab(LabSpec.from_config(request.dut, request.queues))
    name = request.dut.name
    say(f"using the lab of {name}" if lab.stands else f"bringing up the lab of {name}{takes}")
    running = stack.enter_context(lab.running(request.trex_dir))
    # Sockets and threads made from here on live in the tester's namespace.
    running.enter()
    running.pin_harness()
    return running


def _generator(
    request: Request, lab: RunningLab | None, stack: ExitStack, say: Callable[[str], None]
) -> tuple[TrexGenerator, Clock, Simulation | None]:
    """Take the tester's ports; return them with the run's clock, and the simulation of both if one is asked for."""
    trex_dir = str(request.trex_dir) if request.trex_dir else None
    if request.sim:
        from .simulate import simulated

        simulation = stack.enter_context(simulated(request, say))
        # Its server dies with this process: there is nothing to watch over.
        held = connect(simulation.endpoint, request.ports, simulation.clock, trex_dir=trex_dir, guarded=False)
        return stack.enter_context(held), simulation.clock, simulation
    endpoint = endpoint_of(request.dut.generator, request)
    tester = name_of_tester(request.dut, request)
    doing = f"{request.verb} of {request.dut.name}, {request.mode}"
    stack.enter_context(locked(f"tester-{tester}".replace("/", "_"), f"tester {endpoint} is in use", doing))
    say(f"connecting to {endpoint}")
    clock = RunClock()
    taken = connect(endpoint, request.ports, clock, trex_dir=trex_dir, force=request.force)
    return stack.enter_context(taken), clock, None


def _configure(
    request: Request,
    generator: TrexGenerator,
    lab: RunningLab | None,
    stack: ExitStack,
    say: Callable[[str], None],
) -> tuple[Attestation, ConnectedDut | None, Wan | None]:
    """Configure the DUT and read it back; return that with the connection to it and the WAN behind it, if any."""
    if request.sim:
        return not_attested(request.dut, "--sim: a twin forwards, no DUT was configured"), None, None
    if not request.apply and request.telemetry_mode == "off":
        return not_attested(request.dut), None, None
    asked = request.dut.tester_ports if request.dut.asks_for_macs else ()
    macs = {port: mac for port in asked if (mac := generator.mac(port)) is not None}
    wanted = Wanted(request.dut, macs, request.queues, lab.host_facts if lab else {})
    doing = f"{request.verb} of {request.dut.name}, {request.mode}"
    dut = stack.enter_context(connect_dut(wanted, doing, temporary=lab is not None and lab.ephemeral))
    if not request.apply:
        return not_attested(request.dut), dut, None
    if request.dut.is_reached:
        say(f"configuring {request.dut.name} and reading it back")
    variant, unsteady = request.dut.variant, dut.unsteady
    attestation = apply_and_verify(dut.dut, dut.transport, dut.journal, variant=variant, unsteady=unsteady)
    attestation.require_match()
    say(f"  {summary(attestation.changed)}" if attestation.attested else f"{request.dut.name}: {attestation.reason}")
    line = stack.enter_context(open_line(request.dut, dut, doing, packets=True))
    return attestation, dut, line
