"""Run commands on another machine, by the user's own OpenSSH client.

The user's config, agent, jump hosts and known_hosts apply. Nobody is prompted: where a password or a new host key is
needed, the error says what helps. All commands share one connection (see ssh_master).
"""

from __future__ import annotations

import re
import shutil
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from ..config.endpoints import TransportConfig
from ..core.errors import DutError, DutLost
from .command import Completed, Running, missing
from .local import run_here
from .ssh_master import OPEN_S, CannotOpen, Master, open_master
from .words import OWN_255, remote_command, shown

CONFIG_ENV = "TREXBENCH_SSH_CONFIG"
"""Names a file that is read in place of the user's ssh config (``ssh -F``)."""

_OPTIONS = (
    *("-T", "-x", "-a", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oClearAllForwardings=yes"),
    # ERROR: a command's stderr comes the same way, and should have nothing else in it.
    *("-oLogLevel=ERROR", "-oRemoteCommand=none", "-oPermitLocalCommand=no"),
)
_UNCHECKED = ("-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null")
"""Options for a machine that this one started, at the loopback of a namespace with nothing else in it."""


class SshTransport:
    """Transport to a host by ssh, or, with a namespace, to a lab's machine from its loopback; for several threads.

    Closed by ``close``, at the end of the process, or soon after the process was killed. run_dir: for the socket.
    """

    def __init__(self, to: TransportConfig, run_dir: Path | None = None, config_file: Path | None = None) -> None:
        self._host, user = to.host or "", to.user
        if not self._host or self._host.startswith("-") or (user or "").startswith("-"):
            raise DutError(f"{self._host or 'nothing'!r} is not the name of a host to log in to")
        self.place = f"{user}@{self._host}" if user else self._host
        own = [f"-F{config_file}"] if config_file else []
        self._ssh: tuple[str, ...] = ("ssh",)
        if to.namespace is not None:
            self.place = f"{self.place} in {to.namespace}"
            self._ssh = ("ip", "netns", "exec", to.namespace, "ssh", *_UNCHECKED)
        self._to = (*own, *(("-l", user) if user else ()), *(("-p", str(to.port)) if to.port else ()))
        self._run_dir = run_dir
        self._lock = threading.Lock()
        self._running = 0
        self._master: Master | None = None
        self._at_end: weakref.finalize[[], SshTransport] | None = None

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        """Run argv as Transport.run does; timeout_s does not include the time to connect, at most OPEN_S.

        After a time-out the command may still run there: only the ssh that waits for it is killed. DutLost when the
        connection is lost; the next command opens it again.
        """
        command = remote_command(argv)
        master = self._connect()
        try:
            done = run_here(master.through(command), argv, self.place, timeout_s, input)
        finally:
            self._command_ended()
        return self._checked(master, done)

    def start(self, argv: Sequence[str]) -> Running:
        """Start argv as Transport.start does; there its stdin closes when the connection ends."""
        command = remote_command(argv)
        master = self._connect()
        try:
            checked = partial(self._checked, master)
            return Running(master.through(command), argv, self.place, checked, self._command_ended)
        except BaseException:
            self._command_ended()
            raise

    def _command_ended(self) -> None:
        with self._lock:
            self._running -= 1

    def _checked(self, master: Master, done: Completed) -> Completed:
        if done.returncode == 255 and OWN_255 not in done.stderr:
            self._refuse(done, master)
        if done.returncode == 255:
            done = replace(done, stderr=done.stderr.replace(f"{OWN_255}\n", ""))
        if done.returncode in (126, 127) and done.complaint.startswith("env: "):
            if "No such file" in done.complaint:
                raise missing(done.argv[0], self.place)
            raise DutError(f"{shown(done.argv)} on {self.place} cannot be run", done.complaint)
        return done

    def close(self) -> None:
        """End the connection; a later command opens another."""
        with self._lock:
            self._drop()

    def _refuse(self, done: Completed, master: Master) -> NoReturn:
        """Raise DutError for an exit code 255 that is ssh's own and not the command's."""
        connected = master.answers()
        with self._lock:
            # It may have refused a session too many: those of commands that hang there end only with the connection.
            if self._master is master and not (connected and self._running):
                self._drop()
        if connected:
            reason = (done.stderr.strip().splitlines() or ["it or its shell was killed"])[0]
            raise DutError(f"{shown(done.argv)} on {self.place} did not run to its end ({reason})")
        raise DutLost(
            f"the connection to {self.place} was lost while {shown(done.argv)} ran",
            "whether it took effect is not known; see whether the DUT still answers",
        )

    def _connect(self) -> Master:
        """Return the connection, opened if there is none, and count a command that runs on it."""
        with self._lock:
            if self._master is None or not self._master.alive:
                self._drop()
                self._master = self._log_in()
                self._at_end = weakref.finalize(self, self._master.close)
            self._running += 1
            return self._master

    def _log_in(self) -> Master:
        if shutil.which("ssh") is None:
            raise DutError("ssh is not installed on this machine", "install the package openssh-client")
        try:
            return open_master((*self._ssh, *_OPTIONS, *self._to), self._host, self._run_dir)
        except CannotOpen as error:
            login = shown([*self._ssh, *self._to, self._host])
            wrong, remedy = explain(error.said, self._host, login)
            if error.late:
                wrong, remedy = f"no login on {self.place} within {OPEN_S:g} s", f"see what it waits for: {login}"
            raise DutLost(wrong, remedy) from None

    def _drop(self) -> None:
        if self._at_end is not None:
            self._at_end()
        self._master = self._at_end = None


_REASONS: Sequence[tuple[str, str, str]] = (
    (
        r"Host key for (?P<name>\S+) has changed",
        "the host key of {name} is not the one that known_hosts has",
        "this may be an attack; if the DUT was reinstalled: ssh-keygen -R '{name}', then log in by hand: {login}",
    ),
    (
        r"host key is known for (?P<name>\S+) and you have requested strict checking",
        "the host key of {name} is not in known_hosts",
        "log in once by hand and compare its fingerprint: {login}",
    ),
    (
        r"Host key verification failed",
        "the host key of {name} was refused",
        "log in once by hand and read what it says: {login}",
    ),
    (
        r"Permission denied \((?P<detail>[^)]*)\)|Too many authentication failures",
        "{name} accepts none of your keys",
        "load the key (ssh-add) or name it in your ssh config, until this asks for nothing: {login}",
    ),
    (
        r"Could not resolve hostname (?P<name>[^:]+):",
        "no address is known for {name}",
        "correct transport.host, or name it in your ssh config",
    ),
    (
        r"connect to host (?P<name>\S+) port (?P<port>\d+): Connection refused",
        "nothing listens on port {port} of {name}",
        "start sshd there, or correct transport.port",
    ),
    (
        r"connect to host (?P<name>\S+) port \d+: (?P<detail>.+)|(?P<slow>Connection timed out)",
        "{name} cannot be reached",
        "see whether it is up, and whether a route leads there",
    ),
    (
        r"Unable to negotiate with (?P<name>\S+)",
        "{name} and this ssh have no algorithm in common",
        "allow one in your ssh config until this works: {login}",
    ),
    (
        r'Cannot open network namespace "(?P<name>[^"]+)"',
        "namespace {name} does not exist",
        "bring the lab up: trexbench lab up",
    ),
    (
        r"Bad configuration option|Bad owner or permissions|no argument after keyword|terminating, \d+ bad config"
        r"|Can't open user config file",
        "your ssh config is not accepted",
        "correct it until this works: {login}",
    ),
)
"""Pattern of ssh's output (``name``: the host it is about, perhaps a jump host), what is wrong, and what helps."""


def explain(said: str, host: str, login: str) -> tuple[str, str]:
    """Return what is wrong and what helps. said: ssh's stderr. login: the command that logs in by hand."""
    for words, wrong, remedy in _REASONS:
        if found := re.search(words, said):
            names = {"name": host, "login": login, **{k: v for k, v in found.groupdict().items() if v}}
            return f"{wrong.format(**names)} ({_last_line(said)})", remedy.format(**names)
    wrong = f"ssh to {host} failed ({_last_line(said) or 'it said nothing'})"
    return wrong, f"see what this says: {login}"


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:200] if lines else ""
