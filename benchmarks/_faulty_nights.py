"""Nights of a simulated fleet and their stores, with the faults that each can have."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any

import _ratios  # noqa: F401  # first, for the path to the tests' helpers
import cut_lines
import lasting_s3
import lost_testers

LEASE_S, TESTERS = 4.0, 3
FAULTS_OF_STORES = {
    "kill -9 of the store": 8, "SIGSTOP of the store": 8, "store cut and healed": 8, "store held up and healed": 8,
    "errors of the store": 8, "store full": 8,
}  # fmt: skip


class Night:
    """A night's process, whose children are its testers."""

    faults: Mapping[str, int] = {"kill -9": 30, "SIGSTOP": 65, "kill -9 of the night": 5}
    """Fault -> its weight."""

    def __init__(self, folder: Path, store: FaultyStore | None) -> None:
        self.folder, self.store = folder, store
        self.faults = {**self.faults, **(FAULTS_OF_STORES if store is not None else {})}
        self._stopped: list[int] = []

    def __enter__(self) -> Night:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.night.kill()
        self.night.wait()
        for tester in self._stopped:  # which nobody continues where the storm ends early
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(tester, signal.SIGKILL)
            os.close(tester)

    def begin(self) -> None:
        self.night = lost_testers.start_night(self.folder, TESTERS, LEASE_S)

    def mend(self) -> None:
        """Start again what is not the night's own."""

    @property
    def parents(self) -> Sequence[int]:
        return (self.night.pid,)

    def do(self, kind: str, rng: random.Random) -> bool:
        """Return whether the fault was made."""
        if self.store is not None and kind in FAULTS_OF_STORES:
            self.store.do(kind, length_s(rng))
            return True
        if kind == "kill -9 of the night":
            self.night.kill()
            return True
        testers = lost_testers.driving(self.folder, *self.parents) or lost_testers.testers_of(*self.parents)
        if not testers:
            return False
        pid, number = rng.choice(testers), signal.SIGKILL if kind == "kill -9" else signal.SIGSTOP
        if not lost_testers.send(pid, number):
            return False
        if number is signal.SIGSTOP:
            self._stopped.append(os.pidfd_open(pid))
            later(length_s(rng), go_on, os.pidfd_open(pid))
        return True


class ClusterNight(Night):
    """Scheduler, client and testers apart, each connection through a line that can be cut."""

    faults: Mapping[str, int] = {
        "kill -9": 16, "SIGSTOP": 32, "kill -9 of the night": 4, "kill -9 of a tester's command": 4,
        "kill -9 of the scheduler": 4, "connection cut and healed": 15, "connection held up and healed": 25,
    }  # fmt: skip

    def __enter__(self) -> Night:
        with socket.create_server(("127.0.0.1", 0)) as bound:
            self._port: int = bound.getsockname()[1]
        self._lines = [cut_lines.Line(self._port) for _ in range(TESTERS + 1)]
        self._commands: dict[int | str, Popen[bytes]] = {}
        self.mend()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for command in self._commands.values():
            command.kill()
            command.wait()
        for line in self._lines:
            line.end()

    def begin(self) -> None:
        address = f"tcp://127.0.0.1:{self._lines[TESTERS].port}"
        self.night = lost_testers.start_night(self.folder, TESTERS, LEASE_S, address)

    def mend(self) -> None:
        for what in ("scheduler", *range(TESTERS)):
            if what not in self._commands or self._commands[what].poll() is not None:
                self._commands[what] = self._start(what)

    def _start(self, what: int | str) -> Popen[bytes]:
        if isinstance(what, str):
            return lost_testers.start(self.folder, what, f"tcp://127.0.0.1:{self._port}", LEASE_S)
        address = f"tcp://127.0.0.1:{self._lines[what].port}"
        return lost_testers.start(self.folder, "tester", f"t{what + 1}", address, LEASE_S)

    @property
    def parents(self) -> Sequence[int]:
        return [one.pid for what, one in self._commands.items() if what != "scheduler"]

    def do(self, kind: str, rng: random.Random) -> bool:
        if kind == "kill -9 of the scheduler":
            self._commands["scheduler"].kill()
        elif kind == "kill -9 of a tester's command":
            self._commands[rng.randrange(TESTERS)].kill()
        elif kind.startswith("connection"):
            line = rng.choice(self._lines)
            (line.cut if "cut" in kind else line.hold)()
            later(length_s(rng), line.heal)
        else:
            return super().do(kind, rng)
        return True


class FaultyStore:
    """An S3 server with a line to it, and the address of a night's results there."""

    address = "s3://lab/results"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ends: list[threading.Timer] = []
        """Ends of faults, of which none may come once the server has ended."""

    def __enter__(self) -> FaultyStore:
        self._server = lasting_s3.LastingServer(self.folder)
        self._server.wait()
        self._line = cut_lines.Line(self._server.port)
        os.environ |= {**lasting_s3.CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.port}"}
        self._bucket().mkdir("lab")
        return self

    def __exit__(self, *_: object) -> None:
        for end in self._ends:
            end.cancel()
            end.join()
        self._server.go_on()
        self._server.kill()
        self._line.end()

    def _bucket(self) -> Any:
        import fsspec

        return fsspec.filesystem("s3", skip_instance_cache=True)

    @property
    def variables(self) -> dict[str, str]:
        """Variables of the processes of its night."""
        return {lost_testers.STORE: self.address, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._line.port}"}

    def do(self, kind: str, for_s: float) -> None:
        """One fault, which is over after this time."""
        server, line = self._server, self._line
        faults: Mapping[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "kill -9 of the store": (server.kill, server.revive),
            "SIGSTOP of the store": (server.stop, server.go_on),
            "store cut and healed": (line.cut, line.heal),
            "store held up and healed": (line.hold, line.heal),
            "errors of the store": (
                partial(server.have_trouble, lasting_s3.ERRORS),
                partial(server.have_trouble, lasting_s3.ERRORS, True),
            ),
            "store full": (
                partial(server.have_trouble, lasting_s3.FULL),
                partial(server.have_trouble, lasting_s3.FULL, True),
            ),
        }
        begin, end = faults[kind]
        begin()
        self._ends.append(later(for_s, end))

    def fetch(self, to: Path) -> Path:
        """All that is there, as another machine sees it."""
        self._server.heal()
        self._server.wait()
        self._bucket().get(self.address.removeprefix("s3://"), str(to), recursive=True)
        return to


def length_s(rng: random.Random) -> float:
    """The length of a fault: as often a shorter as a longer one than what costs a tester its lease."""
    return LEASE_S * rng.choice((0.1, 1.0)) * rng.uniform(0.2, 2.0)


def later(after_s: float, what: Callable[..., object], *arguments: object) -> threading.Timer:
    timer = threading.Timer(after_s, what, arguments)
    timer.daemon = True
    timer.start()
    return timer


def go_on(stopped: int) -> None:
    """Continue this process, and no other that has its number by now."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(stopped, signal.SIGCONT)
    os.close(stopped)
