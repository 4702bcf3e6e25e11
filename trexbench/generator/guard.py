"""Our end of the watchdog: a pipe to a process that silences the ports if this one is killed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

_PACKAGES = str(Path(__file__).parents[2])
"""Where the package is imported from: the watchdog needs it too, wherever we were started."""

END_S = 5.0
"""How long the watchdog may take to end once it was told to."""


class Guard:
    """A running watchdog. Its pipe closes with this process, however that ends; ``done`` sends it home quietly."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    def start(cls, server: str, rpc_port: int, api_h: str, handlers: Mapping[int, str]) -> Guard:
        process = subprocess.Popen(
            [sys.executable, "-m", "trexbench.watchdog"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([_PACKAGES, os.environ.get("PYTHONPATH", "")])},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        guard = cls(process)
        guard._say({"server": server, "rpc_port": rpc_port, "api_h": api_h, "handlers": dict(handlers)})
        return guard

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def done(self) -> None:
        """The ports are silent and given back: nothing is left to watch. Safe to call twice."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._say({"done": True})
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._wait()

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Without ``done`` before, the pipe's end makes the watchdog stop and release the ports, without us waiting."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _say(self, line: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()

    def _wait(self) -> None:
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
