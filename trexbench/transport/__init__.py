"""Transports: run a command on a DUT and return its output. No data ever becomes a shell's program text."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.errors import DutError
from .command import TIMEOUT_S, Completed, Transport, run_checked
from .local import LocalTransport, NetnsTransport
from .ssh import CONFIG_ENV, SshTransport

__all__ = [
    "TIMEOUT_S",
    "Completed",
    "LocalTransport",
    "NetnsTransport",
    "SshTransport",
    "Transport",
    "open_transport",
    "run_checked",
]


def open_transport(
    kind: str,
    namespace: str | None = None,
    *,
    host: str | None = None,
    user: str | None = None,
    port: int | None = None,
    run_dir: Path | None = None,
    bring_up: str = "trexbench lab up",
) -> Transport:
    """The transport of a DUT config's ``transport.type``; DutError where that, its host or its namespace is missing.

    bring_up: the command that makes a missing namespace. run_dir: where ssh keeps the socket of its connection. The
    connection is opened with the first command, and ends with the process, or when the transport is no longer referred
    to.
    """
    places = {"local": ("here", ""), "netns": (namespace, "namespace"), "ssh": (host, "host")}
    if kind not in places:
        raise DutError(f"transport {kind} is not known", f"write one of {', '.join(places)}")
    place, key = places[kind]
    if not place:
        raise DutError(f"transport {kind} has no {key}", f"write transport.{key} in the DUT's config")
    if kind == "ssh":
        config = os.environ.get(CONFIG_ENV)
        return SshTransport(place, user, port, run_dir, Path(config) if config else None)
    return NetnsTransport(place, bring_up) if kind == "netns" else LocalTransport()
