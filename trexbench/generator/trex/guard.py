"""Our end of the watchdog: a pipe to the process that silences the ports if this one is killed."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Mapping

from ...child import child_argv, child_environment

END_S = 5.0  # time that the watchdog may take to end once asked to


class Guard:
    """A running watchdog. Its pipe closes with this process, however that ends; ``done`` ends it before it acts."""

    def __init__(self, server: str, rpc_port: int, api_h: str, handlers: Mapping[int, str]) -> None:
        self.process = subprocess.Popen(
            child_argv("trexbench.generator.trex.watchdog"),
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        self._pipe = self.process.stdin
        self._write(server=server, rpc_port=rpc_port, api_h=api_h, handlers=dict(handlers))

    def done(self) -> None:
        """End the watchdog once the ports are silent and given back. Safe to call twice."""
        self._write(done=True)
        self.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        """Close the pipe, without waiting; unless ``done`` came before, the watchdog stops and releases the ports."""
        with contextlib.suppress(OSError):
            self._pipe.close()

    def _write(self, **line: object) -> None:
        if not self._pipe.closed:
            with contextlib.suppress(OSError):
                self._pipe.write(json.dumps(line).encode() + b"\n")
                self._pipe.flush()
