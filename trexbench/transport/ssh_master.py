"""Share one connection between many commands: OpenSSH's ControlMaster, which ends with its user.

    this process --- pipe (stdin) ---> guard, a shell that only reads
                                         |  at the end of its input: ssh -O exit
    ssh of each command ---> socket ---> master ssh ---> sshd

When this process dies in any way, the pipe closes, and the guard ends the master, even if a command hangs. If the guard
is killed too, the master ends PERSIST_S after its last command. Without a network it ends after ALIVE_S * ALIVE_COUNT.
The control socket is in a directory that only its owner can enter.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import DutError
from .command import kill_group, started
from .local import run_bounded
from .words import remote_command

CONNECT_S = 10
OPEN_S = 30.0
"""Limit of each step before the first command: logging in (name resolution, jump hosts, keys), and the login shell."""
ALIVE_S, ALIVE_COUNT = 10, 3
"""Long enough for a router under full load, which answers late."""
PERSIST_S = 3600
"""Longer than a run is idle: a later command would log in again, which a router under full load may refuse."""
_CLOSE_S = 5.0

_SOCKET = "c"
_LONGEST_PATH = 107 - 17
"""Longest path of the socket: the system allows 107 bytes, and ssh first binds one with 17 more."""
_GUARD = f'cat >/dev/null; [ ! -S "$0/{_SOCKET}" ] || "$@"; rm -rf "$0"'
_OUTPUT_BYTES = 65536


@dataclass(frozen=True)
class Master:
    """Connection that is logged in."""

    control: Path
    """Its socket, in a directory of its own."""
    guard: subprocess.Popen[bytes]
    """Ends the connection, and removes the directory, at the end of its stdin."""
    ssh: Sequence[str]
    """Start of each command: ssh with the user's options and the socket."""
    host: str
    owner: int
    """Pid of the process that may close it; a fork may not."""

    @property
    def alive(self) -> bool:
        """Test whether its socket exists, which it removes when it ends."""
        return self.control.exists()

    def through(self, command: str) -> Sequence[str]:
        """Build the argv that runs a command; the proxy keeps ssh from connecting by itself without the master."""
        return [*self.ssh, "-oControlMaster=no", "-oProxyCommand=false", "--", self.host, command]

    def answers(self) -> bool:
        """Ask the master whether the connection is up."""
        try:
            done = run_bounded([*self.ssh, "-O", "check", "--", self.host], b"", _CLOSE_S, _OUTPUT_BYTES)
        except OSError:
            return False
        return done.returncode == 0 and not done.cut

    def close(self) -> None:
        """End the connection and everything on it; harmless when repeated."""
        if os.getpid() != self.owner:
            return
        assert self.guard.stdin is not None
        with contextlib.suppress(OSError):
            self.guard.stdin.close()
        try:
            self.guard.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            kill_group(self.guard)
        shutil.rmtree(self.control.parent, ignore_errors=True)


@dataclass
class CannotOpen(Exception):
    """Failed login. said: what ssh printed. late: it was still trying after open_s."""

    said: str
    late: bool


def open_master(
    ssh: Sequence[str], host: str, run_dir: Path | None, open_s: float = OPEN_S, persist_s: int = PERSIST_S
) -> Master:
    """Connect and log in; CannotOpen, or DutError where the socket has no place or the login shell prints something."""
    control = _private_directory(run_dir) / _SOCKET
    # In a ControlPath ssh replaces %h and the like.
    shared = (*ssh, "-S", str(control).replace("%", "%%"))
    leave = ("/bin/sh", "-c", _GUARD, str(control.parent), *shared, "-O", "exit", "--", host)
    guard = started(leave, subprocess.PIPE, subprocess.DEVNULL, subprocess.DEVNULL)
    master = Master(control, guard, shared, host, os.getpid())
    try:
        _log_in(master, open_s, persist_s)
        # the command prints nothing, so that any output is the login shell's
        first = run_bounded(master.through(remote_command(("sh", "-c", ":"))), b"", open_s, _OUTPUT_BYTES)
        if first.cut == "time" or (first.returncode and not first.stdout):
            raise CannotOpen(first.stderr.decode(errors="replace"), late=first.cut == "time")
        if first.stdout:
            line = first.stdout.decode(errors="replace").splitlines()[0][:80]
            raise DutError(
                f"the login shell on {host} prints something before it runs a command ({line!r})",
                "let its start-up files print nothing without a terminal",
            )
    except BaseException:
        master.close()
        raise
    return master


def _log_in(master: Master, open_s: float, persist_s: int) -> None:
    argv = [
        *(*master.ssh, "-M", "-N", "-f", f"-oControlPersist={persist_s}", f"-oConnectTimeout={CONNECT_S}"),
        *(f"-oServerAliveInterval={ALIVE_S}", f"-oServerAliveCountMax={ALIVE_COUNT}", "--", master.host),
    ]
    # A file: the master keeps it open, and nobody would read a pipe.
    with tempfile.TemporaryFile() as said:
        try:
            process = started(argv, subprocess.DEVNULL, subprocess.DEVNULL, said)
        except OSError as error:
            raise DutError(f"ssh cannot be started: {error}", "install the package openssh-client") from None
        code = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(open_s)
        finally:
            kill_group(process)
        if code != 0:
            said.seek(0)
            raise CannotOpen(said.read(_OUTPUT_BYTES).decode(errors="replace"), late=code is None)


def _private_directory(run_dir: Path | None) -> Path:
    """Make a directory of mode 0700 for one socket, in the first place whose path is short enough."""
    wanted = [run_dir.absolute()] if run_dir else []
    refused = "no directory is given"
    for base in (*wanted, Path(tempfile.gettempdir()).absolute(), Path("/tmp")):
        longest = len(os.fsencode(base / f"ssh-{os.getpid()}-12345678" / _SOCKET))
        if longest > _LONGEST_PATH or "${" in str(base):
            refused = f"{base}: too long for the path of a socket"
            continue
        try:
            base.mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix=f"ssh-{os.getpid()}-", dir=base))
        except OSError as error:
            refused = f"{base}: {error.strerror}"
    raise DutError(
        f"no place for the connection's socket ({refused})", "set TREXBENCH_RUN_DIR to a short path that can be written"
    )
