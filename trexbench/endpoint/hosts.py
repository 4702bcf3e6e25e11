"""A host of a TCP test, and the agent on it: started through its transport, told what to do, heard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import BenchError, DutError
from ..core.tcp.model import HostReading, Processes
from ..transport import Running, Transport
from . import agent
from .genuine import told_by

_BOOTSTRAP = """
import os
source = b""
while len(source) < {size}:
    part = os.read(0, {size} - len(source))
    if not part:
        os._exit(0)
    source += part
exec(compile(source, "trexbench-{name}", "exec"), {{"__name__": "__main__"}})
"""
"""Reads no byte more than the program's source: the rest of stdin is the program's."""


def start_program(transport: Transport, file: Path, options: Mapping[str, Any]) -> Running:
    """A file of Python in the host's python3, which reads the options as a line of JSON; DutError where it cannot."""
    source = file.read_bytes()
    bootstrap = _BOOTSTRAP.format(size=len(source), name=file.stem)
    running = transport.start(("python3", "-I", "-S", "-c", bootstrap))
    try:
        running.send(source + json.dumps(options).encode() + b"\n")
    except BaseException:
        running.close()
        raise
    return running


@dataclass(frozen=True)
class EndpointHost:
    """name: ``client`` or ``server``. addresses: by version of IP. cpus: a pinned program runs on the first.

    tunnels: numbers of the processes that carry the payload in a tunnel, where they are not known by their names.
    """

    name: str
    transport: Transport
    addresses: Mapping[int, str]
    cpus: tuple[int, ...] = ()
    tunnels: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        """For messages: ``server (namespace tbx-server)``."""
        return f"{self.name} ({self.transport.place})"


class Agent:
    """Reports of an agent so far. Usable as a context manager; at its end nothing is left on the host.

    output: what the genuine iperf3 printed. told: facts and what was used. error: why it ended early.
    """

    def __init__(self, host: EndpointHost, options: Mapping[str, Any]) -> None:
        """DutError where it cannot be started."""
        self.host = host
        self.readings: list[HostReading] = []
        self.told: dict[str, str] = {}
        self.output: Mapping[str, Any] | None = None
        self.processes: Processes | None = None
        self.ready = self.done = False
        self.error: DutError | None = None
        self.running: Running = start_program(host.transport, Path(agent.__file__), options)

    @property
    def ended(self) -> bool:
        return self.done or self.error is not None

    @property
    def failed(self) -> bool:
        """It ended early, or its iperf3 tells of an error; with -J that ends with 0 all the same."""
        return self.error is not None or (self.output is not None and bool(told_by(self.output).error))

    def hear(self) -> list[HostReading]:
        """Wait for the agent to say something, take it in and return the readings of it."""
        before = len(self.readings)
        try:
            for line in self.running.lines():
                self._take(line)
            if self.running.ended and not self.ended:
                self._explain(self.running.finish())
        except BenchError as error:
            self.error = self.error or DutError(f"{self.host.place}: {error}")
        return self.readings[before:]

    def _take(self, line: str) -> None:
        try:
            ((what, value),) = msgspec.json.decode(line, type=dict[str, Any]).items()
            if what == "reading":
                self.readings.append(msgspec.convert(value, HostReading))
            elif what in ("facts", "used"):
                self.told.update(msgspec.convert(value, dict[str, str]))
            elif what == "processes":
                self.processes = msgspec.convert(value, Processes)
            elif what == "output":
                self.output = msgspec.convert(value, dict[str, Any])
            elif what == "ready":
                self.ready = True
            elif what == "done":
                self.done = True
            elif what == "error" and self.error is None:
                words = msgspec.convert(value, dict[str, str])
                self.error = DutError(f"{self.host.place}: {words['what']}", words.get("remedy", ""))
        except (ValueError, KeyError) as error:
            self.error = self.error or DutError(
                f"{self.host.place}: its agent said what cannot be read ({error})", "see what else prints there"
            )

    def _explain(self, how: Any) -> None:
        self.error = DutError(
            f"{self.host.place}: python3 ended there ({how.complaint})", "see whether python3 3.7 or later runs there"
        )

    def close(self) -> None:
        self.running.close()
