"""A box of tests/unit behind a real sshd: a folder with each of its programs, all one script that asks this process.

The folder goes first into the PATH of the session (``SetEnv``). The script imports nothing but what the interpreter has
built in, for it is started for every command; the box, its log and its orders (cut the connection, before or after the
box has done what it was told) are in a thread of the test.
"""

from __future__ import annotations

import copy
import marshal
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCRIPT = """#!{python} -SEI
import sys, posix, marshal, time, _socket
argv = [sys.argv[0].rpartition("/")[2], *sys.argv[1:]]
if argv == ["cat"]:
    posix.execv("/bin/cat", argv)  # what keeps the connection open, not a command of the driver's
there = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
there.connect({socket!r})
there.sendall(marshal.dumps((argv, sys.stdin.read(), posix.getpid())))
there.shutdown(_socket.SHUT_WR)
answer = b""
while part := there.recv(1 << 16):
    answer += part
stdout, stderr, code, wait_s = marshal.loads(answer)
time.sleep(wait_s)
sys.stdout.write(stdout)
sys.stderr.write(stderr)
sys.exit(code)
"""


@dataclass(frozen=True)
class Order:
    """Cut the connection at every command line that contains these words. after: when the box has done it."""

    words: str
    after: bool = False


def programs_of(box: Any) -> list[str]:
    """All but sh: what a driver has it do is done by the real one, with the box's programs."""
    return [program for program in box.programs if program != "sh"]


class Shim:
    """A folder that is a box; ``path`` is what goes into PATH. Closed with the test's process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bin"
        self.path.mkdir(parents=True)
        self._script = folder / "script"
        self._script.write_text(_SCRIPT.format(python=sys.executable, socket=str(folder / "s")))
        self._script.chmod(0o755)
        self._lock = threading.Lock()
        self._box: Any = None
        self._server = 0
        self._order: Order | None = None
        self._arrived: list[list[str]] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(folder / "s"))
        self._listener.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()

    def install(self, box: Any, server: int) -> None:
        """This box from now on, with nothing logged and no orders. server: process of sshd."""
        for old in self.path.iterdir():
            old.unlink()
        for program in programs_of(box):
            (self.path / program).symlink_to(self._script)
        self._box, self._server = box, server
        self.forget()
        self.order()

    @property
    def box(self) -> Any:
        """Copy of the box as it is now; later changes to the box do not affect it."""
        with self._lock:
            return copy.deepcopy(self._box)

    def order(self, order: Order | None = None) -> None:
        self._order = order

    @property
    def arrived(self) -> Sequence[Sequence[str]]:
        """Every command that arrived, as argv."""
        return list(self._arrived)

    def forget(self) -> None:
        self._arrived = []

    def _serve(self) -> None:
        while True:
            there, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(there,), daemon=True).start()

    def _answer(self, there: socket.socket) -> None:
        with there, suppress(OSError):
            asked = b""
            while part := there.recv(1 << 16):
                asked += part
            argv, fed, pid = marshal.loads(asked)
            with self._lock:
                said = self._do(argv, fed, pid)
            there.sendall(marshal.dumps(said))

    def _do(self, argv: list[str], fed: str, pid: int) -> tuple[str, str, int, float]:
        self._arrived.append(argv)
        order = self._order if self._order is not None and self._order.words in " ".join(argv) else None
        stdout, stderr, code = "", "", 0
        if order is None or order.after:
            said = self._box.run(argv, fed)
            stdout, stderr, code = said.stdout, said.stderr, said.returncode
        if order is not None:
            self._cut(pid)
        return stdout, stderr, code, 0.0 if order is None else 1.0

    def _cut(self, pid: int) -> None:
        """Kill the child of sshd that serves the connection which this process came by."""
        while True:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if parent == self._server:
                os.kill(pid, signal.SIGKILL)
                return
            if parent <= 1:
                return
            pid = parent
