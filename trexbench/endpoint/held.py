"""Ends of tunnels and PPPoE sessions, which programs on the hosts keep up as long as this process lives."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..core.errors import DutError
from ..transport import Transport
from .hosts import HostProgram

LONGEST_S = 7 * 86400.0
"""The program's own deadline; usually it ends long before, with its stdin."""


class HeldEnd(HostProgram):
    """An end that is kept up. what, thing: words for it in messages."""

    program, what, thing, remedy = "", "", "", ""

    def __init__(self, name: str, transport: Transport, options: Mapping[str, Any]) -> None:
        self.up: Mapping[str, Any] | None = None
        self.down: list[str] = []
        """Reasons why it has gone down so far."""
        self.listening = False
        options = {**options, "deadline_s": options.get("deadline_s", LONGEST_S)}
        super().__init__(f"{name} ({transport.place})", transport, self.program, options)

    def wait_listening(self, within_s: float) -> None:
        """Wait until its interface is open; DutError where that fails."""
        self._wait(lambda: self.listening, within_s, f"its {self.what} did not begin")

    def wait_up(self, within_s: float) -> Mapping[str, Any]:
        """Wait until it is up and return what it reports then; DutError where it does not come up in time."""
        self._wait(lambda: self.up is not None, within_s, f"no {self.thing} came up")
        assert self.up is not None
        return self.up

    def hear(self, within_s: float = 0.0) -> None:
        """Take in what it has reported, after waiting for a report for at most this long."""
        while not self.ended and select.select([self.running], [], [], within_s)[0]:
            within_s = 0.0
            self.listen()

    def require_up(self) -> None:
        """DutError where it is down or has ended."""
        self.hear()
        self.require_running()
        if self.up is None:
            raise DutError(f"{self.place}: the {self.thing} is down{self._why()}", "see what the other end says")

    def require_running(self) -> None:
        """DutError where it has ended, as far as its reports were taken in."""
        if self.done:
            self.fail("it has ended")
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """End it, and wait until nothing of it is left."""
        self.running.end_input()
        self.listen_until(lambda: self.ended, 2.0)
        super().close()

    def _wait(self, reached: Callable[[], bool], within_s: float, otherwise: str) -> None:
        self.listen_until(reached, within_s)
        if not reached():
            self.require_running()
            raise DutError(f"{self.place}: {otherwise} within {within_s:g} s{self._why()}", self.remedy)

    def _why(self) -> str:
        return f" ({self.down[-1]})" if self.down else ""

    def take(self, what: str, value: Any) -> None:
        if what == "listening":
            self.listening = True
        elif what == "up":
            self.up = dict(value)
        elif what == "down":
            self.up = None
            self.down.append(str(value["why"]))

    def fail(self, what: str, remedy: str = "") -> None:
        super().fail(f"{self.what}: {what}", remedy)


def lost_of(ends: Iterable[HeldEnd]) -> str:
    """Say why one of these ends is down; empty while all are up."""
    for end in ends:
        try:
            end.require_up()
        except DutError as error:
            return str(error)
    return ""


class PppEnd(HeldEnd):
    """End of a PPPoE session: the access concentrator (``server``), or the ``client``.

    Once up it reports interface, own and peer address, mtu, auth.
    """

    program, what, thing = "pppoe", "PPPoE", "PPPoE session"
    remedy = "see cables, user, secret and service, and what the other end says"


class TunnelEnd(HeldEnd):
    """End of a tunnel between two hosts; once up it reports by (the program or kernel), pid, interface and mtu."""

    program, what, thing = "relay", "tunnel", "tunnel"
    remedy = "see cables and firewalls between them, and what the other end says"
