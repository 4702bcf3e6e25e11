"""State of labs, shared by processes: one JSON file per lab, written before anything that it names is made.

A process is identified by pid and start time, a namespace by name and inode, since pids and names are reused.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import LabError
from ..files import replace_file
from ..lock import RUN_DIR_ENV, run_dir
from ..processes import Process as Process
from ..processes import boot_id, start_of
from .spec import LabSpec, Placement

VERSION = 3
MARK = "TREXBENCH_LAB"
"""Environment variable with the lab's prefix, of a lab's server and of everything that it starts."""
REQUEST_ENV = "TREXBENCH_LAB_REQUEST"
"""Environment variable of a lab's keeper with its request, in JSON."""
NETNS_DIR = Path("/run/netns")


@dataclass(frozen=True)
class Server:
    """A process of a lab, the leader of its own session. kind: ``embedded``, ``trex``, ``vpp``, ``vm``, ``link``."""

    kind: str
    process: Process
    log: str
    trex_dir: str | None = None


@dataclass(frozen=True)
class LabState:
    """A lab as its file describes it."""

    spec: LabSpec
    mode: str
    """``ephemeral``: for one run, or ``persistent``."""
    owner: Process
    """Process that makes it; of an ephemeral lab, its keeper."""
    user: int = 0
    """Process of the run for which an ephemeral lab is made."""
    status: str = "starting"
    """``starting``, ``up`` or ``closing``."""
    namespaces: dict[str, int | None] = field(default_factory=dict)
    """Name -> inode; None until it is made."""
    sysctls: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Changed settings of the host, name -> (before, set to)."""
    server: Server | None = None
    router: Server | None = None
    """The process that forwards; None where the kernel does."""
    nudger: Server | None = None
    """The process that keeps the router's queues receiving, if it needs one."""
    accelerator: str = ""
    """Virtual machines only: ``kvm``, or ``tcg``, which emulates a processor."""
    said: str = ""
    """Last lines of its console when a shell waited there."""
    placement: Placement = field(default_factory=Placement)
    warnings: tuple[str, ...] = ()
    boot: str = ""
    version: int = VERSION

    @property
    def prefix(self) -> str:
        return self.spec.prefix

    @property
    def ephemeral(self) -> bool:
        return self.mode == "ephemeral"

    @property
    def parts(self) -> dict[str, Server]:
        """Its processes, by role."""
        parts = {"server": self.server, "router": self.router, "nudger": self.nudger}
        return {role: part for role, part in parts.items() if part is not None}

    @property
    def ready(self) -> bool:
        """True if it is up, with all its processes alive, and its keeper if it is ephemeral."""
        return self.status == "up" and self._served and (not self.ephemeral or self.owner.alive)

    @property
    def abandoned(self) -> bool:
        """True if a dead process left it behind: the next command that uses the lab removes it."""
        if not self.ephemeral and self.status == "up":
            return not self._served
        return not self.owner.alive

    @property
    def _served(self) -> bool:
        return self.server is not None and all(part.process.alive for part in self.parts.values())


def new_state(spec: LabSpec, mode: str, user: int = 0) -> LabState:
    return LabState(spec, mode, Process.of(os.getpid()), user, boot=boot_id())


def update(state: LabState, **changes: Any) -> LabState:
    """Return the state with these changes, after writing it to its file."""
    state = replace(state, **changes)
    with using(_path(state.prefix)) as path:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(state), indent=1))
    return state


@contextlib.contextmanager
def using(path: Path) -> Iterator[Path]:
    """Raise LabError if the block cannot write this file of run_dir()."""
    try:
        yield path
    except OSError as error:
        remedy = f"run as root, with {RUN_DIR_ENV} a directory that can be written"
        raise LabError(f"{path}: {error.strerror}", remedy) from None


def load(prefix: str) -> LabState | None:
    """Load the state of this lab; None if there is none, or only one from before the last boot."""
    path = _path(prefix)
    try:
        document = json.loads(path.read_bytes())
        if document["version"] != VERSION:
            raise LabError(f"lab {prefix} was brought up by another version of trexbench", "use that to bring it down")
        state = msgspec.convert(document, LabState)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}", f"run as root, or correct {RUN_DIR_ENV}") from None
    except (ValueError, KeyError, TypeError):
        raise LabError(f"{path}: not a lab's state", "see with 'ip netns' what is left, then delete it") from None
    return state if state.boot == boot_id() else None


def load_all() -> list[LabState]:
    prefixes = sorted(path.name.removesuffix(".lab.json") for path in run_dir().glob("*.lab.json"))
    return [state for state in map(load, prefixes) if state is not None]


def forget(prefix: str) -> None:
    _path(prefix).unlink(missing_ok=True)


def namespace_inode(name: str) -> int | None:
    try:
        return (NETNS_DIR / name).stat().st_ino
    except OSError:
        return None


def server_processes(prefix: str, netns_inode: int) -> list[Process]:
    """List the processes in this network namespace that this lab started, with their descendants.

    Processes still in the caller's namespace are on their way into one of the lab's (``ip netns exec``).
    """
    mark = f"{MARK}={prefix}".encode()
    places = {netns_inode, os.stat("/proc/thread-self/ns/net").st_ino}
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        ours = False
        with contextlib.suppress(OSError):
            inside = (entry / "ns/net").stat().st_ino in places
            ours = inside and mark in (entry / "environ").read_bytes().split(b"\0")
        if ours and (start := start_of(int(entry.name))) is not None:
            processes.append(Process(int(entry.name), start))
    return processes


def _path(prefix: str) -> Path:
    return run_dir() / f"{prefix}.lab.json"
