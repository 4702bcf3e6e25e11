"""Transports: run a command on a DUT and return its output. No data ever becomes a shell's program text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import DutError
from .cli import CliLogin, CliTransport
from .command import TIMEOUT_S, Transport, run_checked
from .console import ConsoleTransport, console_socket
from .local import LocalTransport, NetnsTransport
from .running import Completed, Running
from .ssh import CONFIG_ENV, SshTransport
from .words import shown

__all__ = [
    "TIMEOUT_S",
    "CliLogin",
    "Completed",
    "ConsoleTransport",
    "LocalTransport",
    "NetnsTransport",
    "Running",
    "SshTransport",
    "Transport",
    "open_transport",
    "run_checked",
]


class NoTransport:
    """For a DUT that is not reached; place: its name."""

    def __init__(self, place: str) -> None:
        self.place = place

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        raise DutError(f"{shown(argv)} cannot be run on {self.place}", "its config names no transport")

    def start(self, argv: Sequence[str]) -> Running:
        raise DutError(f"{shown(argv)} cannot be run on {self.place}", "its config names no transport")

    def close(self) -> None:
        """Nothing is open."""


def open_transport(
    kind: str,
    namespace: str | None = None,
    *,
    host: str | None = None,
    user: str | None = None,
    port: int | None = None,
    run_dir: Path | None = None,
    login: CliLogin | None = None,
    bring_up: str = "trexbench lab up",
) -> Transport:
    """The transport of a DUT config's ``transport.type``; DutError where that, its host or its namespace is missing.

    bring_up: the command that makes a missing namespace. run_dir: where ssh keeps the socket of its connection. The
    connection is opened with the first command, and ends with the process, or when the transport is no longer referred
    to.
    """
    places = {
        "local": ("here", ""),
        "netns": (namespace, "namespace"),
        "ssh": (host, "host"),
        "cli": (host if login is not None else None, "host or platform"),
        "console": (namespace if run_dir is not None else None, "namespace"),
        "none": (host, "host"),
    }
    if kind not in places:
        raise DutError(f"transport {kind} is not known", f"write one of {', '.join(places)}")
    place, key = places[kind]
    if not place:
        raise DutError(f"transport {kind} has no {key}", f"write transport.{key} in the DUT's config")
    config = Path(named) if (named := os.environ.get(CONFIG_ENV)) else None
    if kind == "ssh":
        return SshTransport(place, user, port, run_dir, config, namespace=namespace)
    if login is not None:
        return CliTransport(place, user, port, login, config)
    if kind == "console":
        assert run_dir is not None
        return ConsoleTransport(console_socket(run_dir, place), f"console of {place}", bring_up)
    if kind == "none":
        return NoTransport(place)
    return NetnsTransport(place, bring_up) if kind == "netns" else LocalTransport()
