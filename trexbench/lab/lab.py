"""Labs as commands use them: up, down, status, and a lab for one run."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ..child import child_argv, child_environment
from ..core.errors import ConfigError, LabError, TesterBusy
from ..lock import locked, run_dir
from . import endpoints, host, net, server, state, vm
from .build import clean_leftovers, lab_lock
from .spec import LabSpec
from .state import LabState

_UP_TIMEOUT_S = 150.0
_DOWN_TIMEOUT_S = 30.0
_HOST_SETTINGS = ("netdev_max_backlog", "netdev_budget", "netdev_budget_usecs", "dev_weight")
_ERRORS = {cls.__name__: cls for cls in (LabError, ConfigError, TesterBusy)}


@dataclass(frozen=True)
class LabStatus:
    """Status. condition: ``down``, ``starting``, ``up``, ``closing`` or ``leftover`` (the next up removes it)."""

    prefix: str
    condition: str
    mode: str = ""
    namespaces: tuple[str, ...] = ()
    server: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        namespaces = f"namespaces {' '.join(self.namespaces)}" if self.namespaces else ""
        parts = (f"lab {self.prefix}: {self.condition}", self.mode, namespaces, self.server)
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class RunningLab(LabState):
    """A lab that is up, as a run uses it."""

    @property
    def host_facts(self) -> dict[str, Any]:
        """Facts that affect the result and cannot be read inside the DUT's namespace."""
        settings, facts = self.spec.settings, {**self.placement.to_document(), "ephemeral": self.ephemeral}
        if self.spec.endpoints:
            facts["endpoints"] = endpoints.facts_of(self.spec)
        if self.spec.is_vm:
            return {"lab": {**facts, **vm.facts_of(self.spec, self.accelerator, self.placement.router)}}
        facts |= {"steer": settings.steer, "threaded": settings.threaded, "server": self.parts["server"].kind}
        host_facts: dict[str, Any] = {"lab": facts}
        for name in _HOST_SETTINGS:
            value = net.read_sysctl(f"net.core.{name}")
            host_facts[name] = int(value) if value is not None and value.isdigit() else value
        return host_facts

    @property
    def ended(self) -> str:
        """Its dead processes, each with the line of its log that says why; empty if there are none."""
        return "; ".join(
            f"the lab's {name} ended: {server.telling_line(part.log)} (its log: {part.log})"
            for name, part in self.parts.items()
            if not part.process.alive
        )

    def enter(self) -> None:
        """Move the calling thread into the tester's namespace, for good; before any socket is opened."""
        net.enter(self.spec.tester)

    def pin_harness(self) -> None:
        """Move the calling process to its core, away from the router, with real-time priority.

        The sender polls in real time: a thread of normal priority on its core would wake, and sample, tens of
        milliseconds late. Processes and threads that the calling thread starts do not inherit the priority.
        """
        if self.placement.harness is not None:
            os.sched_setaffinity(0, {self.placement.harness})
            host.run_in_real_time(policy=os.SCHED_FIFO | os.SCHED_RESET_ON_FORK)


class Lab:
    """Lab of one spec; its state is on disk, so that any process can use it."""

    def __init__(self, spec: LabSpec) -> None:
        self.spec = spec
        self._remedy = f"trexbench lab down --prefix {spec.prefix}, then try again"

    def up(self, trex_dir: Path | None = None) -> LabStatus:
        """Bring up a lab that stays until ``down``; the same lab, if it is up already, is left alone."""
        host.check(embedded=trex_dir is None)
        with _kept(self.spec, "persistent", trex_dir) as lab:
            self._require_same(lab, trex_dir)
        return status(self.spec.prefix)

    @contextlib.contextmanager
    def running(self, trex_dir: Path | None = None) -> Iterator[RunningLab]:
        """Provide the lab for one run: the persistent one if it is up, else one that cannot outlive the run."""
        host.check(embedded=trex_dir is None and self._standing() is None)
        with contextlib.ExitStack() as stack:
            if (lab := self._standing()) is not None:
                prefix = self.spec.prefix
                stack.enter_context(locked(f"{prefix}.use", f"lab {prefix} is in use by another run"))
                if (lab := self._standing()) is not None:  # 'lab down' may have been faster, and another 'lab up'
                    self._require_same(lab, trex_dir)
            yield self._running(lab or stack.enter_context(_kept(self.spec, "ephemeral", trex_dir)))

    @property
    def stands(self) -> bool:
        """True if the persistent lab is up, which a run then uses."""
        return self._standing() is not None

    def _standing(self) -> LabState | None:
        lab = state.load(self.spec.prefix)
        return lab if lab is not None and not lab.ephemeral and lab.ready else None

    def _running(self, lab: LabState) -> RunningLab:
        if lab.server is None:
            raise LabError(f"lab {lab.prefix} has no server", self._remedy)
        spec = replace(self.spec, most_queues=lab.spec.most_queues)
        return RunningLab(**{**vars(lab), "spec": spec, "warnings": (*lab.warnings, *_shared_cores(lab))})

    def _require_same(self, lab: LabState, trex_dir: Path | None) -> None:
        # A virtual machine that stays has NICs with the most queues that any run asks for.
        queues = lab.spec.most_queues if lab.spec.is_vm else self.spec.most_queues
        if lab.spec != replace(self.spec, most_queues=queues):
            raise LabError(f"lab {lab.prefix} is up with other settings", self._remedy)
        # A run uses the server that runs; only one that names a TRex must get that TRex.
        has = lab.server.trex_dir if lab.server else None
        if trex_dir is not None and has != str(trex_dir.resolve()):
            other = f"the TRex of {has}" if has else "the embedded server"
            raise LabError(f"lab {lab.prefix} is up with {other}", self._remedy)


def down(prefix: str, force: bool = False) -> bool:
    """Take a lab down; False if there was none. TesterBusy while a run uses it, unless force, which ends the run."""
    host.check(embedded=False)
    with contextlib.ExitStack() as stack:
        ended = False
        if not force:
            stack.enter_context(locked(f"{prefix}.use", f"lab {prefix} is in use by a run"))
        elif (lab := state.load(prefix)) is not None and lab.ephemeral and lab.owner.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(lab.owner.pid, signal.SIGTERM)  # the keeper takes its lab down now
            ended = True
        if (lab := state.load(prefix)) is None:
            return ended
        keeper = _Keeper(lab.spec, "down")
        keeper.stdin.close()
        keeper.await_end()
        left = state.load(prefix)
        if left is not None and left.owner == lab.owner:
            what = f"lab {prefix} is still {left.status}: the keeper that was to take it down ended too early"
            raise LabError(what, f"try 'trexbench lab down' again; its log is {keeper.log}")
        return True


def status(prefix: str) -> LabStatus:
    lab = state.load(prefix)
    return LabStatus(prefix, "down") if lab is None else _status_of(lab)


def all_status() -> list[LabStatus]:
    """List the status of every lab that has a state file."""
    return [_status_of(lab) for lab in state.load_all()]


def facts_of(spec: LabSpec) -> dict[str, Any]:
    """Return RunningLab.host_facts of a lab that is up; empty if it is not."""
    lab = state.load(spec.prefix)
    return Lab(spec)._running(lab).host_facts if lab is not None and lab.ready else {}


def said_of(prefix: str) -> str:
    """Return the last lines of the console of a lab's machine at its start; empty if there is none."""
    lab = state.load(prefix)
    return lab.said if lab is not None else ""


def _status_of(lab: LabState) -> LabStatus:
    condition = "leftover" if lab.abandoned else lab.status
    processes = [
        f"{part.kind} {role} (process {part.process.pid}{'' if part.process.alive else ', dead'})"
        for role, part in lab.parts.items()
    ]
    there = tuple(name for name, inode in lab.namespaces.items() if inode == state.namespace_inode(name))
    warnings = (*lab.warnings, *vm.notes_of(lab.accelerator), *_shared_cores(lab))
    return LabStatus(lab.prefix, condition, lab.mode, there, ", ".join(processes), warnings)


def _shared_cores(lab: LabState) -> Iterator[str]:
    """Warn of each other lab on some of this one's cores."""
    with contextlib.suppress(LabError):  # another lab's damaged state is not this one's fault
        for other in state.load_all():
            shared = lab.placement.busy & other.placement.busy
            if other.prefix != lab.prefix and not other.abandoned and shared:
                cores = ", ".join(map(str, sorted(shared)))
                yield f"lab {other.prefix} is up on the same cores ({cores}): what runs in one slows the other"


class _Keeper:
    """A keeper process, started with a request as keeper.main reads it, and its log."""

    def __init__(self, spec: LabSpec, what: str, trex_dir: Path | None = None) -> None:
        self.spec, self.log = spec, run_dir() / f"{spec.prefix}-keeper.log"
        trex = str(trex_dir) if trex_dir else None
        request = {"what": what, "user": os.getpid(), "spec": msgspec.to_builtins(spec), "trex_dir": trex}
        environment = {**child_environment(), state.REQUEST_ENV: json.dumps(request)}
        with state.using(self.log):
            self.log.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            log = self.log.open("wb")
        with log:
            self._process = subprocess.Popen(
                child_argv("trexbench.lab.keeper"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self.stdin, self._stdout = self._process.stdin, self._process.stdout

    def expect_up(self) -> None:
        within_s = _UP_TIMEOUT_S + (self.spec.settings.vm.boot_s if self.spec.is_vm else 0.0)
        ready, _, _ = select.select([self._stdout], [], [], within_s)
        line = self._stdout.readline() if ready else b""
        if not line:
            said = server.telling_line(str(self.log))
            raise LabError(f"lab {self.spec.prefix} did not come up ({said})", f"see {self.log}")
        _raise_error_in(line)

    def await_end(self) -> None:
        prefix, keeper = self.spec.prefix, self._process
        with self._stdout:
            try:
                keeper.wait(_DOWN_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise LabError(f"lab {prefix} is still being taken down", "see 'trexbench lab status' later") from None
            line = self._stdout.readline()
        if keeper.returncode < 0:  # it was killed, and has left the lab to whoever comes next
            with lab_lock(prefix):
                clean_leftovers(prefix)
        _raise_error_in(line)
        if keeper.returncode > 0:
            said = server.telling_line(str(self.log))
            what = f"the keeper of lab {prefix} ended with code {keeper.returncode} ({said})"
            raise LabError(what, f"see {self.log}")


@contextlib.contextmanager
def _kept(spec: LabSpec, mode: str, trex_dir: Path | None) -> Iterator[LabState]:
    """Have a keeper bring a lab up, and take it down if this process ends before it is up.

    An ephemeral one is taken down in any case, when this block or this process ends.
    """
    keeper = _Keeper(spec, mode, trex_dir)
    try:
        keeper.expect_up()
        lab = state.load(spec.prefix)
        if lab is None:
            raise LabError(f"lab {spec.prefix} disappeared while it came up", f"see {keeper.log}")
        yield lab
    except BaseException:
        keeper.stdin.close()
        with contextlib.suppress(LabError):  # the first error is the one to report
            keeper.await_end()
        raise
    with contextlib.suppress(BrokenPipeError), keeper.stdin:
        keeper.stdin.write(b"\n" if mode == "persistent" else b"")  # the word by which it stays
    keeper.await_end()


def _raise_error_in(line: bytes) -> None:
    answer = json.loads(line or b"{}")
    if "error" in answer:
        raise _ERRORS.get(answer["kind"], LabError)(answer["error"])
