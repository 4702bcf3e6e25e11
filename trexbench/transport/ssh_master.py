"""One connection that many commands share: a master ssh, alive as long as its user.

    this process --- pipe (stdin) ---> ssh (a session that only reads) ---> master ssh ---> sshd

The session of that pipe keeps the master from ending while nothing runs. When this process dies, however it does,
the pipe closes, the session ends, and the shell that waits for it tells the master to exit, even if a command hangs.
If that shell is killed too, the master ends PERSIST_S after its last command. Without a network all of it ends after
ALIVE_S * ALIVE_COUNT. The control socket lies in a directory that only its owner can enter.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..core.errors import DutError
from .bounded import kill_group, run_bounded
from .words import remote_command

CONNECT_S = 10
OPEN_S = 30.0
"""For all that comes before the first command: name resolution, jump hosts, keys."""
ALIVE_S, ALIVE_COUNT = 10, 3
"""Not less: a router under full load answers late."""
PERSIST_S = 2
_CLOSE_S = 5.0

_READY = b"trexbench-ready\n"
_SOCKET = "c"
_LONGEST_PATH = 107 - 17
"""A socket's path has 107 bytes, and ssh first binds one with 17 more."""
_SESSION = '"$@"; exec ssh -F/dev/null -S "$0" -O exit -- its-host 2>/dev/null'
_NAME = re.compile(r"ssh-(\d+)-\w+")


@dataclass(frozen=True)
class Master:
    """control: path of its socket. owner: pid of the process that may close it (a fork of it may not)."""

    control: Path
    session: subprocess.Popen[bytes]
    ssh: Sequence[str]
    host: str
    env: Mapping[str, str]
    owner: int

    @property
    def alive(self) -> bool:
        # A master that ends takes its socket away, a moment before the session's shell has noticed.
        return self.session.poll() is None and self.control.exists()

    def ask(self, what: str) -> bool:
        """``check`` or ``exit``; whether the master answered."""
        argv = [*self.ssh, "-S", escaped(self.control), "-O", what, "--", self.host]
        try:
            done = run_bounded(argv, b"", _CLOSE_S, 65536, self.env)
        except OSError:
            return False
        return done.returncode == 0 and not done.cut

    def close(self) -> None:
        """End the connection and everything on it; harmless when repeated."""
        if os.getpid() != self.owner:
            return
        if self.control.exists():
            self.ask("exit")
            deadline = time.monotonic() + _CLOSE_S
            while self.control.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
        assert self.session.stdin is not None and self.session.stdout is not None
        with contextlib.suppress(OSError):
            self.session.stdin.close()
        self.session.stdout.close()
        try:
            self.session.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            kill_group(self.session)
        shutil.rmtree(self.control.parent, ignore_errors=True)


@dataclass
class CannotOpen(Exception):
    """said: what ssh printed. late: it was still trying after open_s."""

    said: str
    late: bool


def open_master(
    ssh: Sequence[str], host: str, run_dir: Path | None, env: Mapping[str, str], open_s: float = OPEN_S
) -> Master:
    """Connect and log in; CannotOpen, or DutError where the socket has no place or the login shell prints something."""
    control = _private_directory(run_dir) / _SOCKET
    argv = [
        *("/bin/sh", "-c", _SESSION, escaped(control), *ssh),
        *("-M", "-S", escaped(control), f"-oControlPersist={PERSIST_S}", f"-oConnectTimeout={CONNECT_S}"),
        *(f"-oServerAliveInterval={ALIVE_S}", f"-oServerAliveCountMax={ALIVE_COUNT}"),
        *("--", host, remote_command(("sh", "-c", f"echo {_READY.decode().strip()}; exec cat >/dev/null"))),
    ]
    # A file: masters before OpenSSH 8.5 keep a pipe open, and nobody would read it.
    with tempfile.TemporaryFile() as said:
        try:
            session = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=dict(env), start_new_session=True
            )
        except OSError as error:
            shutil.rmtree(control.parent, ignore_errors=True)
            raise DutError(f"ssh cannot be started: {error}", "install the package openssh-client") from None
        master = Master(control, session, tuple(ssh), host, env, os.getpid())
        try:
            assert session.stdout is not None
            first = _first_output(session.stdout, time.monotonic() + open_s)
        except BaseException:
            _give_up(master)
            raise
        if first == _READY:
            return master
        _give_up(master)
        if first:
            line = first.decode(errors="replace").splitlines()[0][:80]
            raise DutError(
                f"the login shell on {host} prints something before it runs a command ({line!r})",
                "let its start-up files print nothing without a terminal",
            )
        said.seek(0)
        raise CannotOpen(said.read(65536).decode(errors="replace"), late=first is None)


def escaped(path: Path) -> str:
    """The path as a ControlPath, in which ssh replaces %h and the like."""
    return str(path).replace("%", "%%")


def _give_up(master: Master) -> None:
    """Kill a master that has not logged in: it is still the process that was started, and waits for the server."""
    kill_group(master.session)
    master.close()


def _first_output(pipe: IO[bytes], deadline: float) -> bytes | None:
    """Read until it is _READY or cannot become it; what was read. Less at the end of file, None at the deadline."""
    found = b""
    while found != _READY and _READY.startswith(found):
        if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None
        chunk = os.read(pipe.fileno(), 4096)
        if not chunk:
            return found
        found += chunk
    return found


def _private_directory(run_dir: Path | None) -> Path:
    """A directory of mode 0700 for one socket, in the first place whose path is short enough for it."""
    wanted = [run_dir.absolute()] if run_dir else []
    refused = "no directory is given"
    for base in (*wanted, Path(tempfile.gettempdir()).absolute(), Path("/tmp")):
        longest = len(os.fsencode(base / f"ssh-{os.getpid()}-12345678" / _SOCKET))
        if longest > _LONGEST_PATH or "${" in str(base):
            refused = f"{base}: too long for the path of a socket"
            continue
        try:
            base.mkdir(parents=True, exist_ok=True)
            _sweep(base)
            return Path(tempfile.mkdtemp(prefix=f"ssh-{os.getpid()}-", dir=base))
        except OSError as error:
            refused = f"{base}: {error.strerror}"
    raise DutError(
        f"no place for the connection's socket ({refused})", "set TREXBENCH_RUN_DIR to a short path that can be written"
    )


def _sweep(base: Path) -> None:
    """Remove the directories of killed processes; their masters end by themselves but leave them."""
    for path in base.glob("ssh-*-*"):
        found = _NAME.fullmatch(path.name)
        with contextlib.suppress(OSError):
            state = path.lstat()
            ours = state.st_uid == os.geteuid() and stat.S_ISDIR(state.st_mode)
            if found and ours and not Path("/proc", found[1]).exists() and not _answers(path / _SOCKET):
                shutil.rmtree(path, ignore_errors=True)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        return client.connect_ex(str(path)) not in (errno.ENOENT, errno.ECONNREFUSED)
