"""Another program that one of these holds: it ends with it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from .common import ProgramFailure, die_with_parent, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

UP_S = 20.0
"""For another program to have its interface, and to agree with its peer."""
END_S = 1.0
"""For it to end by itself."""


@contextlib.contextmanager
def child(argv: list[str], told: str = "", **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with the block, and with this one. told: on its stdin, which is then closed."""
    try:
        running = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
    except OSError as error:
        raise ProgramFailure(f"{argv[0]} cannot be started ({error.strerror})", f"install {argv[0]}") from None
    assert running.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            running.stdin.write(told.encode())
            running.stdin.close()
        yield running
    finally:
        running.terminate()
        try:
            running.wait(END_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def wait_for(running: subprocess.Popen[bytes], what: str, path: str = "", word: bytes = b"") -> None:
    """Until the path is there, and the program has said the word; ProgramFailure if it ends, or not in time."""
    until, said = time.monotonic() + UP_S, b""
    assert running.stdout is not None
    while not (os.path.exists(path) if path else word in said):
        if select.select([running.stdout], [], [], 0.05)[0]:
            part = os.read(running.stdout.fileno(), 65536)
            said = (said + part)[-65536:]
            if not part and running.poll() is not None:
                raise ProgramFailure(f"{what} has ended ({readable(said)})", "see what it says there")
        if select.select([0], [], [], 0)[0] and not os.read(0, 4096):
            raise SystemExit(0)
        if time.monotonic() > until:
            raise ProgramFailure(
                f"{what} was not up within {UP_S:g} s ({readable(said)})", "see what the other end says"
            )
