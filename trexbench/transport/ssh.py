"""Commands on another machine, by the user's own OpenSSH client.

Their config, agent, jump hosts and known_hosts hold. Nothing is ever asked: what needs a password or a new host key is
refused with the words that help. All commands share one connection (see ssh_master), and none opens one of its own.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from ..core.errors import DutError, DutLost
from .bounded import Ended, run_bounded
from .command import Completed
from .local import missing
from .ssh_master import OPEN_S, CannotOpen, Master, escaped, open_master
from .ssh_reasons import explain
from .words import OWN_255, remote_command, shown

CONFIG_ENV = "TREXBENCH_SSH_CONFIG"
"""Names a file that is read in place of the user's ssh config (``ssh -F``)."""

OUTPUT_LIMIT_BYTES = 16 << 20

_OPTIONS = (
    *("-T", "-x", "-a", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oClearAllForwardings=yes"),
    # ERROR: a command's stderr comes the same way, and nothing else should stand in it.
    *("-oLogLevel=ERROR", "-oRemoteCommand=none", "-oPermitLocalCommand=no"),
)


class SshTransport:
    """host is a name of the user's ssh config or an address; user and port as there where they are None.

    run_dir: where the connection's socket may lie. Usable by several threads. Closed by ``close``, at the end of the
    process, or soon after its sudden death.
    """

    def __init__(
        self,
        host: str,
        user: str | None = None,
        port: int | None = None,
        run_dir: Path | None = None,
        config_file: Path | None = None,
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    ) -> None:
        if not host or host.startswith("-") or (user or "").startswith("-"):
            raise DutError(f"{host or 'nothing'!r} is not the name of a host to log in to")
        self.place = f"{user}@{host}" if user else host
        self._host = host
        own = [f"-F{config_file}"] if config_file else []
        self._to = (*own, *(("-l", user) if user else ()), *(("-p", str(port)) if port else ()))
        self._run_dir = run_dir
        self._limit_bytes = output_limit_bytes
        self._lock = threading.Lock()
        self._running = 0
        self._master: Master | None = None
        self._at_end: weakref.finalize[[], SshTransport] | None = None

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        """As Transport; the time to connect, at most OPEN_S, is not part of timeout_s.

        After a time-out the command may still run there: only the ssh that waits for it is ended. DutError also when
        the connection is lost meanwhile, which the next command opens again.
        """
        command = remote_command(argv)
        master = self._connected()
        begun = time.monotonic()
        try:
            ended = run_bounded(
                self._through(master, command), (input or "").encode(), timeout_s, self._limit_bytes, _environment()
            )
        except (OSError, ValueError) as error:
            raise DutError(f"{shown(argv)} on {self.place} cannot be run: {error}") from None
        finally:
            with self._lock:
                self._running -= 1
        duration_s = time.monotonic() - begun
        self._refuse(ended, argv, timeout_s, master)
        stderr = ended.stderr.decode(errors="replace")
        if ended.returncode == 255:
            stderr = stderr.replace(f"{OWN_255}\n", "")
        stdout = ended.stdout.decode(errors="replace")
        done = Completed(tuple(argv), ended.returncode, stdout, stderr, duration_s)
        if done.returncode in (126, 127) and done.complaint.startswith("env: "):
            if "No such file" in done.complaint:
                raise missing(argv[0], self.place)
            raise DutError(f"{shown(argv)} on {self.place} cannot be run", done.complaint)
        return done

    def close(self) -> None:
        """End the connection; a later command opens another."""
        with self._lock:
            self._drop()

    def __enter__(self) -> SshTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _through(self, master: Master, command: str) -> list[str]:
        # Without its master ssh would connect by itself; with this it has no way to.
        alone = ("-oControlMaster=no", "-oProxyCommand=false")
        return [*master.ssh, "-S", escaped(master.control), *alone, "--", self._host, command]

    def _refuse(self, ended: Ended, argv: Sequence[str], timeout_s: float, master: Master) -> None:
        """DutError for what is not the end of the command itself."""
        what = f"{shown(argv)} on {self.place}"
        if ended.cut == "time":
            raise DutError(f"{what} did not end within {timeout_s:g} s", "see whether the DUT still answers")
        if ended.cut == "size":
            raise DutError(f"{what} said more than {self._limit_bytes} bytes", "it was cut off: ask for less")
        if ended.returncode == 255 and OWN_255.encode() not in ended.stderr:
            stands = master.ask("check")
            with self._lock:
                # Refused for too many sessions: those of commands that hang there go with their connection only.
                if self._master is master and not (stands and self._running):
                    self._drop()
            if stands:
                said = ended.stderr.decode(errors="replace").strip().splitlines()
                raise DutError(f"{what} was not run to its end ({said[0] if said else 'it or its shell was killed'})")
            raise DutLost(
                f"the connection to {self.place} was lost while {shown(argv)} ran",
                "whether it took effect is not known; see whether the DUT still answers",
            )

    def _connected(self) -> Master:
        """The connection, opened if there is none, with one more command running on it."""
        with self._lock:
            if self._master is None or not self._master.alive:
                self._drop()
                self._master = self._open()
                self._at_end = weakref.finalize(self, self._master.close)
            self._running += 1
            return self._master

    def _open(self) -> Master:
        if shutil.which("ssh") is None:
            raise DutError("ssh is not installed on this machine", "install the package openssh-client")
        try:
            return open_master(("ssh", *_OPTIONS, *self._to), self._host, self._run_dir, _environment())
        except CannotOpen as error:
            self._explain(error)

    def _explain(self, failure: CannotOpen) -> NoReturn:
        login = shown(["ssh", *self._to, self._host])
        if failure.late:
            wrong = f"{self.place} let nobody in within {OPEN_S:g} s"
            raise DutLost(wrong, f"see what it waits for: {login}") from None
        raise DutLost(*explain(failure.said, self._host, login)) from None

    def _drop(self) -> None:
        if self._at_end is not None:
            self._at_end()
        self._master = self._at_end = None


def _environment() -> Mapping[str, str]:
    """Ours, in plain English, and without the program that would ask at a display."""
    kept = {key: value for key, value in os.environ.items() if key != "SSH_ASKPASS"}
    return {**kept, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
