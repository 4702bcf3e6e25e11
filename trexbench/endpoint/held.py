"""One end of what programs on two hosts keep up between them, heard from here: it ends with this process."""

from __future__ import annotations

import json
import select
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ..core.errors import BenchError, DutError
from ..transport import Transport
from . import pppoe, relay
from .hosts import start_program

T = TypeVar("T", bound="HeldEnd")
LONGEST_S = 7 * 86400.0
"""The program's own deadline: it ends with its stdin long before."""


class HeldEnd:
    """A program on a host; a context manager, at whose end nothing is left there.

    name: for messages. options: see its file; secrets and everything else go there on its stdin only. down: why what it
    kept up has ended so far. counters: of the last that ended.
    """

    file, what, thing, remedy = "", "", "", ""

    def __init__(self, name: str, transport: Transport, options: Mapping[str, Any]) -> None:
        """DutError where it cannot be started."""
        self.place = f"{name} ({transport.place})"
        self.up: Mapping[str, Any] | None = None
        self.down: list[str] = []
        self.counters: Mapping[str, int] = {}
        self.listening = False
        self._error: DutError | None = None
        self._running = start_program(
            transport, Path(self.file), {**options, "deadline_s": options.get("deadline_s", LONGEST_S)}
        )

    def wait_listening(self, within_s: float) -> None:
        """Until its interface is open; DutError where that fails."""
        self._wait("listening", within_s, f"its {self.what} did not begin")

    def wait_up(self, within_s: float) -> Mapping[str, Any]:
        """Until it is up, and what it says then; DutError where it does not come up in time."""
        self._wait("up", within_s, f"no {self.thing} came up")
        assert self.up is not None
        return self.up

    def hear(self, within_s: float = 0.0) -> None:
        """Take what it has said, after waiting for something for so long."""
        while self._error is None and select.select([self._running], [], [], within_s)[0]:
            within_s = 0.0
            try:
                for line in self._running.lines():
                    self._take(line)
                if self._running.ended:
                    how = self._running.finish()
                    self._fail(f"python3 ended there ({how.complaint})", "see whether python3 3.7 or later runs there")
            except BenchError as error:
                self._fail(str(error), "")

    def require_up(self) -> None:
        """DutError where it has ended meanwhile."""
        self.hear()
        self.require_well()
        if self.up is None:
            raise DutError(f"{self.place}: the {self.thing} is down{self._why()}", "see what the other end says")

    def require_well(self) -> None:
        """DutError where it has failed, as far as it was heard."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End it, and hear what it counted."""
        self._running.end_input()
        until = time.monotonic() + 2
        while self._error is None and time.monotonic() < until:
            self.hear(0.1)
        self._running.close()

    def _wait(self, what: str, within_s: float, otherwise: str) -> None:
        until = time.monotonic() + within_s
        while not getattr(self, what):
            self.require_well()
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise DutError(f"{self.place}: {otherwise} within {within_s:g} s{self._why()}", self.remedy)
            self.hear(left_s)

    def _why(self) -> str:
        return f" ({self.down[-1]})" if self.down else ""

    def _take(self, line: str) -> None:
        try:
            ((what, value),) = json.loads(line).items()
            if what in ("listening", "dialling"):
                self.listening = True
            elif what == "up":
                self.up = dict(value)
            elif what == "down":
                self.up = None
                self.down.append(str(value["why"]))
            elif what == "counters":
                self.counters = {str(name): int(count) for name, count in value.items()}
            elif what == "error":
                self._fail(str(value["what"]), str(value.get("remedy", "")))
            elif what == "done":
                self._fail("it has ended", "")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._fail(f"it said what cannot be read ({error})", "see what else prints there")

    def _fail(self, what: str, remedy: str) -> None:
        self._error = self._error or DutError(f"{self.place}: {self.what}: {what}", remedy)

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PppEnd(HeldEnd):
    """End of a PPPoE session: the access concentrator (``server``), or the ``client``.

    Once up it reports interface, own and peer address, mtu, auth.
    """

    file, what, thing = pppoe.__file__, "PPPoE", "PPPoE session"
    remedy = "see cables, user and secret, and what the other end says"

    def __init__(self, name: str, transport: Transport, role: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, transport, {"role": role, **options})


class TunnelEnd(HeldEnd):
    """End of a tunnel between two hosts; once up it reports by (what makes it), pid, interface and mtu."""

    file, what, thing = relay.__file__, "tunnel", "tunnel"
    remedy = "see cables and firewalls between them, and what the other end says"
