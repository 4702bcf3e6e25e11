"""A host of a TCP test, and the programs that are sent there through its transport, given options, and listened to."""

from __future__ import annotations

import json
import re
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..core.errors import BenchError, DutError
from ..core.tcp.iperf3 import Iperf3Output, Told, told_in
from ..core.tcp.plan import HostReading, Processes
from ..host.linux import parse_stat
from ..transport import Transport

T = TypeVar("T", bound="HostProgram")

PROGRAMS = Path(__file__).with_name("programs")
_BOOTSTRAP = """
import json, os, sys, types
source = b""
while len(source) < {size}:
    part = os.read(0, {size} - len(source))
    if not part:
        os._exit(0)
    source += part
sys.modules["programs"] = types.ModuleType("programs")
for name, text in json.loads(source.decode()).items():
    module = sys.modules["programs." + name] = types.ModuleType("programs." + name)
    module.__package__ = "programs"
    exec(compile(text, name, "exec"), module.__dict__)
module.main()  # "trexbench-{name}"
"""
"""Reads only the program's source: the rest of stdin is the program's. Its last line names the process."""


def sources_of(name: str) -> dict[str, str]:
    """Source of each module of a program by name, each after those that it imports, the program's own last."""
    text = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    sources: dict[str, str] = {}
    for imported in re.findall(r"^from \.(\w+) import", text, re.MULTILINE):
        sources.update(sources_of(imported))
    return {**sources, name: text}


class HostProgram(ABC):
    """A program on a host; a context manager, at whose end nothing is left there.

    options: see its file; secrets and everything else go there on its stdin only.
    """

    def __init__(self, place: str, transport: Transport, name: str, options: Mapping[str, Any]) -> None:
        """Start it in the host's python3, with its options as a line of JSON; DutError if that fails."""
        self.place = place
        self.done = False
        self.error: DutError | None = None
        """Error that ended it early."""
        source = json.dumps(sources_of(name)).encode() + b"\n"
        self.running = transport.start(("python3", "-I", "-S", "-c", _BOOTSTRAP.format(size=len(source), name=name)))
        try:
            self.running.send(source + json.dumps(options).encode() + b"\n")
        except BaseException:
            self.running.close()
            raise

    @property
    def ended(self) -> bool:
        return self.done or self.error is not None

    def listen(self) -> None:
        """Wait for the program's next reports, and take them in."""
        try:
            for line in self.running.lines():
                self._take(line)
            if self.running.ended and not self.ended:
                end = self.running.finish()
                remedy = "see whether python3 3.7 or later runs there, and what ended it"
                self.fail(f"python3 ended there ({end.complaint})", remedy)
        except BenchError as error:
            self.fail(str(error))

    def listen_until(self, reached: Callable[[], bool], within_s: float) -> None:
        """Listen until ``reached()`` is true or the program has ended, for within_s at most."""
        deadline = time.monotonic() + within_s
        while not reached() and not self.ended and (left_s := deadline - time.monotonic()) > 0:
            if select.select([self.running], [], [], left_s)[0]:
                self.listen()

    @abstractmethod
    def take(self, what: str, value: Any) -> None:
        """Take in a report of this kind of program; ValueError, KeyError or TypeError where it cannot be read."""

    def fail(self, what: str, remedy: str = "") -> None:
        """Keep the first error."""
        self.error = self.error or DutError(f"{self.place}: {what}", remedy)

    def close(self) -> None:
        self.running.close()

    def _take(self, line: str) -> None:
        try:
            ((what, value),) = msgspec.json.decode(line, type=dict[str, Any]).items()
            if what == "done":
                self.done = True
            elif what == "error":
                words = msgspec.convert(value, dict[str, str])
                self.fail(words["what"], words.get("remedy", ""))
            else:
                self.take(what, value)
        except (ValueError, KeyError, TypeError) as error:
            self.fail(f"its report cannot be read ({error})", "see what else prints there")

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class EndpointHost:
    """A host of a TCP test."""

    name: str
    """``client`` or ``server``."""
    transport: Transport
    addresses: Mapping[int, str]
    """By version of IP."""
    cpus: tuple[int, ...] = ()
    """CPUs for its programs; a pinned one runs on the first."""

    @property
    def place(self) -> str:
        """Name in messages: ``server (namespace tbx-server)``."""
        return f"{self.name} ({self.transport.place})"


class Agent(HostProgram):
    """An agent, and its reports so far."""

    def __init__(self, host: EndpointHost, options: Mapping[str, Any]) -> None:
        super().__init__(host.place, host.transport, "agent", options)
        self.host = host
        self.readings: list[HostReading] = []
        self.facts: dict[str, str] = {}
        """Facts about the host, and what was used there."""
        self.output: Mapping[str, Any] | None = None
        """Output of the program that it ran, such as the genuine iperf3; told: the same as iperf3's."""
        self.told: Told | None = None
        self.processes: Processes | None = None
        self.ready = False

    @property
    def failed(self) -> bool:
        """True if it ended early, or its iperf3 reports an error (with -J its exit code is 0 all the same)."""
        return self.error is not None or (self.told is not None and bool(self.told.error))

    def hear(self) -> list[HostReading]:
        """Wait for the agent's next reports, take them in and return the readings among them."""
        before = len(self.readings)
        self.listen()
        return self.readings[before:]

    def take(self, what: str, value: Any) -> None:
        if what == "reading":
            cpus = parse_stat(lines, {}) if (lines := value["stat"]) else ()
            self.readings.append(replace(msgspec.convert(value, HostReading), cpus=cpus))
        elif what in ("facts", "used"):
            self.facts.update(msgspec.convert(value, dict[str, str]))
        elif what == "processes":
            self.processes = msgspec.convert(value, Processes)
        elif what == "output":
            self.output = msgspec.convert(value, dict[str, Any])
            self.told = told_by(self.output)
        elif what == "ready":
            self.ready = True


def told_by(output: Mapping[str, Any]) -> Told:
    """Read iperf3's output as the agent sends it (stdout, stderr, code); an error where it is not iperf3's."""
    text = str(output.get("stdout", ""))
    try:
        return told_in(msgspec.json.decode(text, type=Iperf3Output))
    except (ValueError, RecursionError):
        said = " ".join(str(output.get("stderr") or text or f"exit code {output.get('code')}").split())[:200]
        return Told([], 0.0, {}, f"no result, but: {said}")
