"""Waits for a starting machine's shell: at its console, which may ask for a login, or by ssh."""

from __future__ import annotations

import re
import select
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field

from ..config.lab import MANAGEMENT_PORT, ConsoleLogin
from ..core.errors import LabError
from ..core.patterns import find
from ..lock import run_dir
from ..transport.cli import stated_password
from ..transport.console import PANIC, console_socket, last_lines, plain
from . import net, server
from .spec import LabSpec

_ASK_AGAIN_S = 2.0
"""Silence after which Enter is pressed, for which some consoles wait."""
_QUIET_S = {"shell": 0.2, "name": 3.0, "password": 1.0}
"""Silence after which a line that looks like a prompt is one, and not the beginning of a longer one: a console that
logs in by itself asks for a name first."""
_ASKS_S = 0.3
"""The same for a question for a name that the config answers."""
_QUESTIONS = {
    "name": re.compile(r"(?i)(?:(?<!last )login|user ?name): *$"),
    "password": re.compile(r"(?i)password(?: for [^:]+)?: *$"),
}
_NAMES = 3
"""Number of times that a name is typed while no password is asked for: other output may hide that question."""
_GREETING_S, _LOOK_S = 10.0, 0.2
"""Time in which an ssh server greets a connection; time between two checks for cancellation."""
_KEPT_BYTES = 1 << 16
"""Bytes of a console's output that are kept: some consoles never stop."""


@dataclass
class Dialogue:
    """Output of a console, and replies to it. name: of the machine, in messages."""

    name: str
    prompt: str
    login: ConsoleLogin | None
    password: str = ""
    heard: bytearray = field(default_factory=bytearray)
    asked: dict[str, int] = field(default_factory=dict)
    """Number of replies to each question."""
    _begin: int = 0
    """Where the output since the last reply begins."""

    def hear(self, piece: bytes) -> None:
        self.heard += piece
        surplus = max(0, len(self.heard) - _KEPT_BYTES)
        del self.heard[:surplus]
        self._begin = max(0, self._begin - surplus)

    @property
    def said(self) -> str:
        """Its last lines, for messages, without the password: some consoles show what is typed."""
        password = self.password.encode()
        return last_lines(self.heard.replace(password, b"***") if password else self.heard)

    def waits_for(self) -> str:
        """Return ``shell`` (waits for a command), ``name``, ``password`` or nothing, if no output follows.

        LabError after a panic.
        """
        if PANIC in self.heard:
            raise LabError(f"{self.name} panicked", self.said)
        last = plain(self.heard[max(self._begin, len(self.heard) - 4096) :]).rpartition("\n")[2]
        if find(self.prompt, last) is not None:
            return "shell"
        return next((what for what, words in _QUESTIONS.items() if words.search(last)), "")

    def quiet_s(self, waiting: str) -> float:
        return _ASKS_S if waiting == "name" and self.login is not None else _QUIET_S[waiting]

    def reply(self, waiting: str) -> bytes | None:
        """Return what to type; None: a shell waits. LabError if the config has no answer, or it was refused."""
        number = self.asked.get(waiting, 0)
        self.asked[waiting], self._begin = number + 1, len(self.heard)
        if waiting == "shell":
            self.asked = {waiting: number + 1}
            lines = self.login.then if self.login is not None else ()
            return f"{lines[number]}\n".encode() if number < len(lines) else None
        if self.login is None:
            remedy = "write lab.vm.login, or take an image whose console logs in by itself"
            raise LabError(f"{self.name} asks for a login at its console", f"{remedy}; {self.said}")
        if number and (waiting == "password" or "password" in self.asked or number >= _NAMES):
            raise LabError(f"{self.name} does not let {self.login.user} in", f"correct lab.vm.login; {self.said}")
        return (self.login.user if waiting == "name" else self.password).encode() + b"\n"


def await_shell(spec: LabSpec, process: subprocess.Popen[bytes], log: str, cancelled: Callable[[], bool]) -> str:
    """Wait for a shell, and return its console's last lines; LabError, which has them as well, if none comes."""
    machine = spec.settings.vm
    login = machine.login
    password = stated_password(login.password_env, login.password_file) if login is not None else None
    talk = Dialogue(f"the virtual machine of lab {spec.prefix}", machine.prompt, login, password or "")
    deadline, begun, look_at = time.monotonic() + machine.boot_s, False, 0.0
    with closing(_connected(spec, process, log, cancelled)) as line:
        while time.monotonic() < deadline:
            piece = b""
            if select.select([line], [], [], _ASK_AGAIN_S)[0]:
                with suppress(OSError):
                    piece = line.recv(1 << 16)
                if not piece:
                    why = f"{talk.name} {'panicked' if PANIC in talk.heard else 'ended while it started'}"
                    raise LabError(why, f"{server.telling_line(log)}; {talk.said}")
            talk.hear(piece)
            waiting = talk.waits_for()
            if spec.by_ssh:
                if time.monotonic() >= look_at:
                    if _greets(spec, cancelled):
                        return talk.said
                    look_at = time.monotonic() + _ASK_AGAIN_S
            elif waiting and not select.select([line], [], [], talk.quiet_s(waiting))[0]:
                if (words := talk.reply(waiting)) is None:
                    return talk.said
                _type(line, words)
            elif not piece and begun:
                _type(line, b"\n")
            if cancelled():
                raise LabError(f"interrupted while {talk.name} was starting")
            begun = bool(talk.heard)
    lacks = "answers no ssh" if spec.by_ssh else "shows no prompt"
    keys = "boot" if spec.by_ssh else "prompt, boot"
    raise LabError(f"{talk.name} {lacks} within {machine.boot_s:g} s (lab.vm.{keys})", talk.said)


def _type(line: socket.socket, words: bytes) -> None:
    with suppress(OSError):  # the next read shows that it has ended
        line.send(words)


def _greets(spec: LabSpec, cancelled: Callable[[], bool]) -> bool:
    with suppress(OSError), net.inside(spec.tester), socket.socket() as probe:
        probe.settimeout(1.0)
        probe.connect(("127.0.0.1", MANAGEMENT_PORT))
        deadline = time.monotonic() + _GREETING_S
        while time.monotonic() < deadline and not cancelled():
            if select.select([probe], [], [], _LOOK_S)[0]:
                return probe.recv(4) == b"SSH-"
    return False


def _connected(
    spec: LabSpec, process: subprocess.Popen[bytes], log: str, cancelled: Callable[[], bool]
) -> socket.socket:
    line, path = socket.socket(socket.AF_UNIX), str(console_socket(run_dir(), spec.dut))
    try:
        server.await_ready("QEMU", process, log, lambda: line.connect_ex(path) == 0, 10.0, cancelled)
    except BaseException:
        line.close()
        raise
    return line
