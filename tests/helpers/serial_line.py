"""A shell at a serial line that a unix socket leads to, as QEMU's does: echo, prompt, line editing and all."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path


class SerialLine:
    """One user at a time. pid: of the shell; piece: bytes of it that are passed on at once, at most."""

    def __init__(self, path: Path, argv: Sequence[str], piece: int) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], list(argv), {"PATH": os.environ["PATH"], "PS1": "router# ", "TERM": "vt100"})
        self._piece, self._ended = piece, False
        said = b""
        while not {*b"#>"} & {*said}:  # until then Ctrl-C would end it
            said += os.read(self._terminal, piece)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with self._listening, contextlib.suppress(OSError):
            while True:
                user, _ = self._listening.accept()
                with user, contextlib.suppress(ConnectionError):
                    self._pass_on(user)

    def _pass_on(self, user: socket.socket) -> None:
        typed = b""
        os.set_blocking(self._terminal, False)
        while True:
            reads, writes, _ = select.select([user, self._terminal], [self._terminal] if typed else [], [])
            if self._terminal in reads:
                with contextlib.suppress(BlockingIOError):
                    user.sendall(os.read(self._terminal, self._piece))
            if user in reads:
                data = user.recv(1 << 16)
                if not data:
                    return
                typed += data
            if writes:
                with contextlib.suppress(BlockingIOError):  # a terminal that can be written to may yet be full
                    typed = typed[os.write(self._terminal, typed[:512]) :]

    def end(self) -> None:
        """Kill the shell, as if the machine ended; harmless when repeated."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        with contextlib.suppress(OSError):  # whoever serves it may have seen the end before
            self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        os.close(self._terminal)


@contextlib.contextmanager
def serial_line(path: Path, argv: Sequence[str], piece: int = 4096) -> Iterator[SerialLine]:
    line = SerialLine(path, argv, piece)
    try:
        yield line
    finally:
        line.end()
