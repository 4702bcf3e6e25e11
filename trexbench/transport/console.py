"""Run commands at the prompt of a POSIX shell on a serial line, which QEMU offers as a unix socket.

A prompt edits lines, echoes and wraps them, and colours what it prints. One line is typed at it, which starts a loop
without all that: it reads a command, runs it, and puts marks around what the command prints. A mark begins with a
character that is typed only in another spelling, so that an echo is none. The loop ends with the transport.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import select
import shlex
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import DutError, DutLost
from .command import Completed, Transport, write_all
from .words import quoted, remote_command, shown

READY_S = 10.0
"""Time for the prompt, or the loop of a former user, to answer."""
OUTPUT_LIMIT_BYTES = 2_000_000
_SEND_S = 10.0
_AGAIN_S = 2.0
"""Time without an answer after which the line is typed again: an interrupted program may have discarded it."""
_LOOP = (
    b"[ $tbx ]&&echo tbx-rea$tbx||{ stty -echo -icanon -opost;sh -c "
    b"'tbx=dy;trap : 2;echo tbx-rea$tbx;while IFS= read -r l;do eval \"$l\";done';stty sane;}\n"
)
"""Typed at the prompt; harmless in a loop that runs already.

Only a loop prints the word: an interrupted shell may discard the beginning of the line, and run the rest.
"""
_READY, _TYPED = b"tbx-ready", "[ $tbx ]&&"
_PREPARE = b"stty -opost;export LC_ALL=C TERM=dumb PATH=$PATH:/usr/sbin:/sbin;dmesg -n 1 2>/dev/null\n"
"""Turns off colours and the kernel's messages, finds all programs, and keeps line ends as they are, even where the loop
of a former user ended late and set the line to what a person wants."""
_STOP, _END_LOOP = b"\x03\n", b"[ $tbx ]&&exit\n"
"""The second ends only a loop: a prompt that reads it, as the next user's Ctrl-C came first, stays."""
_ERRORS = "/tmp/.tbx"
_NOT_SHOWN = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|[c78=>])|\r|\x1e[0-9a-f]+[<>]?")
"""Sequences that move the cursor or set colours, and marks."""
PANIC = b"Kernel panic - not syncing"
_PANIC_S = 5.0
"""Silence after which these words are the kernel's own, and not a command's output."""


def typed_command(argv: Sequence[str], input: str | None, mark: str) -> str:
    """Build a line for the loop: ^mark< stdout ^mark=code^ stderr ^mark>, where ^ is the character before a mark."""
    command = remote_command(argv)  # which checks argv, too
    if all(word.isascii() and word.isprintable() for word in argv):
        command = shlex.join(argv)
    feed, empty = (f"printf %b {quoted(input)}|", "") if input else ("", " </dev/null")
    return (
        f"printf '\\036{mark}<';{feed}{command}{empty} 2>{_ERRORS};printf '\\036{mark}=%s\\036' $?;"
        f"[ -s {_ERRORS} ]&&cat {_ERRORS};printf '\\036{mark}>'\n"
    )


class MarkedReply:
    """Reply to a typed_command, put together from pieces."""

    def __init__(self, mark: str) -> None:
        self._end = f"\x1e{mark}>".encode()
        self._whole = re.compile(rf"\x1e{mark}<(.*)\x1e{mark}=(\d+)\x1e(.*)\x1e{mark}>".encode(), re.DOTALL)
        self.heard = bytearray()

    def feed(self, piece: bytes) -> tuple[int, str, str] | None:
        """Add a piece; return exit code, stdout and stderr once the last mark has come, None before."""
        begin = max(0, len(self.heard) - len(self._end))
        self.heard += piece
        match = self._whole.search(self.heard) if self.heard.find(self._end, begin) >= 0 else None
        if match is None:
            return None
        return int(match[2]), match[1].decode(errors="replace"), match[3].decode(errors="replace")


def console_socket(run_dir: Path, name: str) -> Path:
    """Socket of the virtual machine of this name."""
    return run_dir / f"{name}.console"


def last_lines(heard: bytes | bytearray) -> str:
    """Quote the last lines of a console in one line, without cursor movements."""
    lines = ["".join(c if c.isprintable() else " " for c in line).strip() for line in plain(heard).splitlines()]
    last = [line[:160] for line in lines if line and _TYPED not in line][-10:]
    return f"its console said: {' | '.join(last)}" if last else "its console said nothing"


def plain(heard: bytes | bytearray) -> str:
    """Text of a console as a person would see it."""
    return _NOT_SHOWN.sub(b"", heard).decode(errors="replace")


class ConsoleTransport(Transport):
    """Shell on a serial line, for several threads, one command after the other. path: of its socket."""

    def __init__(self, path: Path, place: str, bring_up: str = "") -> None:
        self.place = place
        self._path, self._bring_up = path, bring_up or "trexbench lab up"
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._session, self._count = "", 0

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        """Run argv as Transport.run does; after any error the next command begins anew at the prompt."""
        with self._lock:
            try:
                line = self._line or self._open()
                code, stdout, stderr = self._ask(line, argv, timeout_s, input)
            except BaseException:
                self._drop()
                raise
        if code == 127 and "not found" in stderr:
            raise DutError(f"{argv[0]} is not installed on {self.place}", "install it there")
        return Completed(tuple(argv), code, stdout, stderr)

    def close(self) -> None:
        with self._lock:
            if self._line is not None:
                with contextlib.suppress(DutError):
                    self._send(self._line, _END_LOOP)
            self._drop()

    def _ask(
        self, line: socket.socket, argv: Sequence[str], timeout_s: float, input: str | None
    ) -> tuple[int, str, str]:
        deadline, what = time.monotonic() + timeout_s, f"{shown(argv)} on {self.place}"
        self._count += 1
        mark = f"{self._session}{self._count}"
        self._send(line, typed_command(argv, input, mark).encode())
        reply = MarkedReply(mark)
        while (left_s := deadline - time.monotonic()) > 0:
            panicked = PANIC in reply.heard
            piece = self._receive(line, min(left_s, _PANIC_S) if panicked else left_s, what, reply.heard)
            if (outcome := reply.feed(piece)) is not None:
                return outcome
            if panicked and not piece:
                raise DutLost(f"{self.place}: its kernel panicked while {shown(argv)} ran", last_lines(reply.heard))
            if len(reply.heard) > 2 * OUTPUT_LIMIT_BYTES:
                raise DutError(f"{what} printed more than {OUTPUT_LIMIT_BYTES} bytes", "it was cut off: ask for less")
        raise DutError(f"{what} did not end within {timeout_s:g} s", last_lines(reply.heard))

    def _open(self) -> socket.socket:
        self._line = line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(str(self._path))
        except OSError as error:
            what = f"{self.place} cannot be reached ({error.strerror})"
            raise DutError(what, f"bring it up: {self._bring_up}") from None
        line.setblocking(False)
        self._session = secrets.token_hex(4)
        heard, deadline = bytearray(), time.monotonic() + READY_S
        self._send(line, _STOP + _LOOP)
        while _READY not in heard:
            if time.monotonic() > deadline:
                raise DutLost(f"{self.place} shows no shell's prompt within {READY_S:g} s", last_lines(heard))
            piece = self._receive(line, _AGAIN_S, self.place, heard)
            heard += piece
            if not piece:
                self._send(line, _LOOP)
        self._send(line, _PREPARE)
        self._ask(line, (":",), READY_S, None)
        return line

    def _receive(self, line: socket.socket, within_s: float, what: str, heard: bytes | bytearray) -> bytes:
        """Return bytes as they come; none where there were none in time."""
        if not select.select([line], [], [], within_s)[0]:
            return b""
        try:
            piece = line.recv(1 << 16)
        except OSError:
            piece = b""
        if not piece:
            why = "its kernel panicked" if PANIC in heard else "its virtual machine has ended"
            raise DutLost(f"{what}: {why}", last_lines(heard))
        return piece

    def _send(self, line: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError):  # that it has ended shows when something is read
            if not write_all(line.fileno(), data, _SEND_S):
                remedy = "see whether it still runs: trexbench lab status"
                raise DutLost(f"{self.place} accepts no more input", remedy)

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = None
