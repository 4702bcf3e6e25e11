"""Labs as the command line knows them: up, down, status, and one for the length of a run."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import ConfigError, LabError, TesterBusy
from ..lock import locked, run_dir
from . import host, net, server, state
from .build import bring_up, clean_leftovers, lab_lock, take_down
from .spec import LabSpec
from .state import LabState, Server

_UP_TIMEOUT_S = 150.0
_DOWN_TIMEOUT_S = 30.0
_HOST_SETTINGS = ("netdev_max_backlog", "netdev_budget", "netdev_budget_usecs", "dev_weight")
_ERRORS = {cls.__name__: cls for cls in (LabError, ConfigError, TesterBusy)}


@dataclass(frozen=True)
class LabStatus:
    """condition: ``down``, ``starting``, ``up``, ``closing`` or ``leftover`` (of a crash: the next up cleans it)."""

    prefix: str
    condition: str
    mode: str = ""
    namespaces: tuple[str, ...] = ()
    server: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"lab {self.prefix}: {self.condition}"]
        parts += [self.mode] if self.mode else []
        parts += [f"namespaces {' '.join(self.namespaces)}"] if self.namespaces else []
        parts += [self.server] if self.server else []
        return ", ".join(parts)


@dataclass(frozen=True)
class RunningLab:
    """A lab that is up; ephemeral: made for this run, and taken away with it.

    host_facts: what decides the figure and cannot be seen from within the DUT's namespace.
    """

    spec: LabSpec
    ephemeral: bool
    server: Server
    placement: dict[str, Any]
    host_facts: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def server_alive(self) -> bool:
        return self.server.process.alive

    @property
    def server_says(self) -> str:
        """The telling line of the server's log, for messages about its end."""
        return server.last_words(self.server.log)

    def enter(self) -> None:
        """Move the calling thread into the tester's namespace, for good; before any socket is opened."""
        net.enter(self.spec.tester)

    def pin_harness(self) -> None:
        """Keep the calling process off the router's core, if the placement says where else, and its samples on time.

        The sender spins at the highest priority: what shares its core would wake tens of milliseconds late. The
        calling thread is made to run at once when it is due; processes and threads that it makes are not.
        """
        cpu = self.placement.get("harness_cpu")
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
            host.run_at_once(policy=os.SCHED_FIFO | os.SCHED_RESET_ON_FORK)

    @staticmethod
    def run_at_once() -> None:
        """Give the calling thread, and all that it starts from here on, the sender's priority, to share its core.

        For a few short commands only: the time that they take is the sender's.
        """
        host.run_at_once()


class Lab:
    """The lab of one spec; its state is on disk, so any process can ask and act."""

    def __init__(self, spec: LabSpec) -> None:
        self.spec = spec

    def up(self, trex_dir: Path | None = None) -> LabStatus:
        """A lab that stays until ``down``; one that is up already and the same is left as it is."""
        host.check(embedded=trex_dir is None)
        with lab_lock(self.spec.prefix):
            clean_leftovers(self.spec.prefix)
            found = state.load(self.spec.prefix)
            if found is not None:
                self._require_same(found, trex_dir)
            else:
                bring_up(self.spec, "persistent", trex_dir)
        return status(self.spec.prefix)

    @contextlib.contextmanager
    def running(self, trex_dir: Path | None = None) -> Iterator[RunningLab]:
        """The lab for one run: the persistent one if it is up, else one of its own that cannot outlive the run."""
        host.check(embedded=trex_dir is None)
        found = state.load(self.spec.prefix)
        if found is not None and found.mode == "persistent" and found.ready:
            self._require_same(found, trex_dir)
            busy = f"lab {self.spec.prefix} is in use by another run"
            with locked(f"{self.spec.prefix}.use", busy=busy):
                yield self._running(found)
            return
        with _kept(self.spec, trex_dir) as kept:
            yield self._running(kept)

    def _running(self, found: LabState) -> RunningLab:
        if found.server is None:
            raise LabError(f"lab {found.prefix} has no server", "trexbench lab down, then try again")
        ephemeral = found.mode == "ephemeral"
        facts: dict[str, Any] = {
            "lab": {
                **found.placement,
                "steer": self.spec.settings.steer,
                "threaded": self.spec.settings.threaded,
                "server": found.server.kind,
                "ephemeral": ephemeral,
            }
        }
        for name in _HOST_SETTINGS:
            value = net.read_sysctl(f"net.core.{name}")
            facts[name] = int(value) if value is not None and value.isdigit() else value
        return RunningLab(self.spec, ephemeral, found.server, found.placement, facts, found.warnings)

    def _require_same(self, found: LabState, trex_dir: Path | None) -> None:
        if found.spec != self.spec.to_json():
            raise LabError(f"lab {found.prefix} is up with other settings", "trexbench lab down, then try again")
        # A run takes the server that is there; only who names a TRex must get that one.
        has = found.server.trex_dir if found.server else None
        if trex_dir is not None and has != str(trex_dir.resolve()):
            other = f"the TRex of {has}" if has else "the embedded server"
            raise LabError(f"lab {found.prefix} is up with {other}", "trexbench lab down, then try again")


def down(prefix: str, force: bool = False) -> bool:
    """Take a lab away by its name; False if there was none. TesterBusy while a run uses it, unless force."""
    host.check(embedded=False)
    with contextlib.ExitStack() as stack:
        if not force:
            busy = f"lab {prefix} is in use by a run"
            stack.enter_context(locked(f"{prefix}.use", busy=busy))
        stack.enter_context(lab_lock(prefix))
        found = state.load(prefix)
        if found is None:
            return False
        take_down(found)
        return True


def status(prefix: str) -> LabStatus:
    found = state.load(prefix)
    return LabStatus(prefix, "down") if found is None else _status_of(found)


def all_status() -> list[LabStatus]:
    """Every lab of which there is a trace."""
    return [_status_of(found) for found in state.load_all()]


def facts_of(spec: LabSpec) -> dict[str, Any]:
    """The host's facts of a lab that is up (RunningLab.host_facts); none where it is not."""
    found = state.load(spec.prefix)
    return Lab(spec)._running(found).host_facts if found is not None and found.ready else {}


def _status_of(found: LabState) -> LabStatus:
    condition = "leftover" if found.abandoned else found.status
    processes = [
        f"{one.kind} {role} (process {one.process.pid}{'' if one.process.alive else ', dead'})"
        for role, one in (("server", found.server), ("router", found.router))
        if one is not None
    ]
    there = tuple(name for name, inode in found.namespaces.items() if inode == state.namespace_inode(name))
    return LabStatus(found.prefix, condition, found.mode, there, ", ".join(processes), found.warnings)


@contextlib.contextmanager
def _kept(spec: LabSpec, trex_dir: Path | None) -> Iterator[LabState]:
    """A lab owned by a keeper process, which takes it away when this block or this process ends."""
    log_path = run_dir() / f"{spec.prefix}-keeper.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    order = {"user": os.getpid(), "spec": spec.to_json(), "trex_dir": str(trex_dir) if trex_dir else None}
    environment = {**os.environ, "PYTHONPATH": server.python_path(), state.ORDER_ENV: json.dumps(order)}
    with log_path.open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "trexbench.lab.keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    assert keeper.stdin is not None and keeper.stdout is not None
    try:
        _expect_up(keeper, log_path, spec)
        found = state.load(spec.prefix)
        if found is None:
            raise LabError(f"lab {spec.prefix} went away while it came up", f"see {log_path}")
        yield found
    except BaseException:
        keeper.stdin.close()
        with contextlib.suppress(LabError):  # the first error is the one to tell
            _await_end(keeper, spec)
        raise
    keeper.stdin.close()
    _await_end(keeper, spec)


def _expect_up(keeper: subprocess.Popen[bytes], log_path: Path, spec: LabSpec) -> None:
    assert keeper.stdout is not None
    ready, _, _ = select.select([keeper.stdout], [], [], _UP_TIMEOUT_S)
    line = keeper.stdout.readline() if ready else b""
    if not line:
        said = server.last_words(str(log_path))
        raise LabError(f"lab {spec.prefix} did not come up ({said})", f"see {log_path}")
    _raise_what_it_says(line)


def _await_end(keeper: subprocess.Popen[bytes], spec: LabSpec) -> None:
    assert keeper.stdout is not None
    with keeper.stdout:
        try:
            keeper.wait(_DOWN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise LabError(f"lab {spec.prefix} is slow to go", "see 'trexbench lab status' in a while") from None
        line = keeper.stdout.readline()
    _raise_what_it_says(line)


def _raise_what_it_says(line: bytes) -> None:
    """A line of the keeper's, if it tells of an error."""
    answer = json.loads(line or b"{}")
    if "error" in answer:
        raise _ERRORS.get(answer["kind"], LabError)(answer["error"])
