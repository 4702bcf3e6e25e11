"""Brings a lab up and takes it down: everything is in the state file before it is made."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ..config.endpoints import lab_namespace
from ..core.errors import BenchError, LabError, TesterBusy
from ..lock import locked, run_dir
from ..signals import uninterrupted
from ..stlserver.engine import EngineError
from . import boot, endpoints, host, net, server, state, steering, vm, vpp
from .spec import LabSpec, Placement, place, place_endpoints
from .state import LabState

LOCK_WAIT_S = 20.0
"""Time to wait for a lab that is being taken down."""
_HOST_LOCK = "host"


def bring_up(
    spec: LabSpec,
    mode: str,
    trex_dir: Path | None = None,
    user: int = 0,
    cancelled: Callable[[], bool] = lambda: False,
) -> LabState:
    """Make a lab and wait until its server answers. The caller holds the lab's lock and has removed leftovers.

    user: pid of the run for which it is made. On any failure, Ctrl-C included, everything made is removed again.
    """
    host.check(embedded=trex_dir is None)
    if spec.settings.router == "vpp":
        vpp.check(spec)
    if spec.is_vm:
        vm.check(spec)
    cpus = host.usable_cpus()
    placement = place_endpoints(spec, place(spec.settings, cpus, host.siblings(cpus)), cpus)
    if trex_dir is not None:
        trex_dir = trex_dir.resolve()
        server.find_trex(trex_dir)
    for name in spec.namespaces:
        if state.namespace_inode(name) is not None:
            what = f"namespace {name} exists already, and belongs to no lab of trexbench"
            raise LabError(what, f"remove it: ip netns del {name}; or set lab.prefix")
    lab = state.new_state(spec, mode, user)
    lab = state.update(lab, placement=placement, warnings=placement.warnings)
    try:
        lab = _make(lab, spec, placement, trex_dir, cancelled)
    except BaseException:
        with uninterrupted(), contextlib.suppress(BenchError):  # the first error is the one to report
            take_down(state.load(spec.prefix) or lab)
        raise
    return lab


@contextlib.contextmanager
def lab_lock(prefix: str) -> Iterator[None]:
    """Hold the lock to change the lab. Waits for a lab that is being taken down; TesterBusy if it is in use."""
    with contextlib.ExitStack() as stack:
        begun = time.monotonic()
        while True:
            try:
                stack.enter_context(locked(f"{prefix}.lab"))
                break
            except TesterBusy:
                lab = state.load(prefix)
                leaving = lab is None or lab.status == "closing" or lab.abandoned
                if time.monotonic() - begun > (LOCK_WAIT_S if leaving else 1.0):
                    user = f"the run of process {lab.user or lab.owner.pid}" if lab else "another process"
                    raise TesterBusy(f"lab {prefix} belongs to {user}", "wait for it to end") from None
            time.sleep(0.05)
        yield


@uninterrupted()
def take_down(lab: LabState) -> None:
    """Remove everything that the state names and that is still the same; LabError, at the end, names all failures."""
    lab = state.update(lab, status="closing")
    problems: list[str] = []

    def attempt(step: Callable[[], None]) -> None:
        try:
            step()
        except (BenchError, OSError) as error:
            problems.append(str(error))

    known = [part.process for part in lab.parts.values()]
    for role in ("tester", "dut") if lab.router else ("tester",):
        if (inode := lab.namespaces.get(lab_namespace(lab.prefix, role))) is not None:
            attempt(partial(server.stop, lab.prefix, inode, known))
    if lab.router is not None:
        attempt(partial(vpp.clean if lab.router.kind == "vpp" else vm.clean, lab.prefix))
    for name, inode in lab.namespaces.items():
        here = state.namespace_inode(name)
        if here is not None and inode in (here, None):
            attempt(partial(net.remove_namespace, name))
    attempt(partial(_restore_sysctls, lab))
    if problems:
        what = f"lab {lab.prefix} was not removed completely: {'; '.join(problems)}"
        raise LabError(what, "try 'trexbench lab down'")
    _trex_yaml(lab.prefix).unlink(missing_ok=True)
    state.forget(lab.prefix)


def clean_leftovers(prefix: str) -> None:
    """Remove what a dead run left of this lab. The caller holds the lab's lock."""
    lab = state.load(prefix)
    if lab is not None and lab.abandoned:
        take_down(lab)


def _make(
    lab: LabState, spec: LabSpec, placement: Placement, trex_dir: Path | None, cancelled: Callable[[], bool]
) -> LabState:
    for name in spec.namespaces:
        lab = state.update(lab, namespaces={**lab.namespaces, name: None})
        net.make_namespace(name)
        lab = state.update(lab, namespaces={**lab.namespaces, name: state.namespace_inode(name)})
    lab = (_start_vm if spec.is_vm else _make_router)(lab, spec, placement, cancelled)
    if trex_dir is None:
        launch = server.embedded(spec, placement)
    else:
        launch = server.trex(spec, placement, trex_dir, _trex_yaml(spec.prefix))
    started, process = server.start(spec, launch, with_parent=lab.ephemeral)
    lab = state.update(lab, server=started)
    name = f"the {started.kind} server"
    server.await_ready(name, process, started.log, lambda: server.answers(spec), server.READY_S, cancelled)
    return state.update(lab, status="up")


def _make_router(lab: LabState, spec: LabSpec, placement: Placement, cancelled: Callable[[], bool]) -> LabState:
    net.make_cables(spec)
    if spec.endpoints:
        endpoints.make_cables(spec)
    if not spec.bypass:
        net.tune(spec, placement.router)
    if spec.endpoints:
        endpoints.tune(spec, placement)
    if spec.settings.steer == "cpumap" and placement.router:
        try:
            steering.steer(spec.dut_interfaces, placement.router, spec.dut)
        except (EngineError, OSError) as error:
            cores = ",".join(map(str, placement.router))
            what = f"lab {spec.prefix} cannot hand frames to core {cores} ({error})"
            raise LabError(what, "try lab.steer: rps") from None
    for key, value in spec.settings.sysctls:
        lab = _set_sysctl(lab, spec, key, value)
    if spec.settings.router == "vpp":
        lab = _start_vpp(lab, spec, placement, cancelled)
    return lab


def _start_vm(lab: LabState, spec: LabSpec, placement: Placement, cancelled: Callable[[], bool]) -> LabState:
    accelerator = vm.choose_accelerator(spec)
    lab = state.update(lab, accelerator=accelerator)
    vm.make_taps(spec)
    launch = vm.launch(spec, placement, accelerator)
    router, process = server.start(spec, launch, with_parent=lab.ephemeral, namespace=spec.tester)
    lab = state.update(lab, router=router)
    with contextlib.suppress(OSError):  # without autogroups its own niceness is all that counts
        Path(f"/proc/{process.pid}/autogroup").write_text(str(vm.NICENESS))
    lab = state.update(lab, said=boot.await_shell(spec, process, router.log, cancelled))
    vm.pin(process.pid, placement.router)
    if vm.spreads_itself(spec):
        nudger, _ = server.start(spec, vm.nudger(spec, placement), with_parent=lab.ephemeral, namespace=spec.tester)
        lab = state.update(lab, nudger=nudger)
    if spec.endpoints:
        vm.hand_out_taps(spec)
        endpoints.make_cables(spec)
        endpoints.tune(spec, placement)
    return lab


def _start_vpp(lab: LabState, spec: LabSpec, placement: Placement, cancelled: Callable[[], bool]) -> LabState:
    with net.inside(spec.dut):  # the kernel sees the frames too, and must not forward them as well
        net.write_sysctl("net.ipv4.ip_forward", "0", required=False)
    launch = vpp.launch(spec, placement, host.usable_cpus())
    router, process = server.start(spec, launch, with_parent=lab.ephemeral, namespace=spec.dut)
    lab = state.update(lab, router=router)
    server.await_ready("VPP", process, router.log, lambda: vpp.answers(spec), vpp.READY_S, cancelled)
    # Its main thread may share the sender's core, where nothing of a lower priority gets to run.
    host.run_in_real_time(process.pid)
    return lab


def _set_sysctl(lab: LabState, spec: LabSpec, key: str, value: str) -> LabState:
    """Set it in the DUT's namespace if it exists there; else on the host, whose former value the state keeps."""
    with net.inside(spec.dut):
        if net.read_sysctl(key) is not None:
            net.write_sysctl(key, value)
            return lab
    with locked(_HOST_LOCK, wait_s=10):
        before = net.read_sysctl(key)
        if before is None:
            warning = f"{key} does not exist here (a container?): it stays as the host has it"
            return state.update(lab, warnings=(*lab.warnings, warning))
        for other in state.load_all():
            if other.prefix != lab.prefix and key in other.sysctls:
                before = other.sysctls[key][0]
        lab = state.update(lab, sysctls={**lab.sysctls, key: (before, value)})
        net.write_sysctl(key, value)
    return lab


def _restore_sysctls(lab: LabState) -> None:
    """Restore the host's former values, unless another lab still needs them or somebody else has changed them."""
    if not lab.sysctls:
        return
    with locked(_HOST_LOCK, wait_s=10):
        others = [other for other in state.load_all() if other.prefix != lab.prefix and not other.abandoned]
        for key, (before, after) in lab.sysctls.items():
            needed = any(key in other.sysctls for other in others)
            if not needed and net.read_sysctl(key) == after:
                net.write_sysctl(key, before)


def _trex_yaml(prefix: str) -> Path:
    return run_dir() / f"{prefix}-trex.yaml"
