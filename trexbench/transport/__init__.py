"""Ways to a DUT: run a command there, get back what it said. No data ever becomes a shell's program text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ..core.errors import DutError
from .command import Completed, Transport
from .local import LocalTransport
from .netns import NetnsTransport
from .ssh import CONFIG_ENV, SshTransport

__all__ = ["Completed", "LocalTransport", "NetnsTransport", "SshTransport", "Transport", "open_transport"]


def open_transport(
    kind: str,
    namespace: str | None = None,
    *,
    host: str | None = None,
    user: str | None = None,
    port: int | None = None,
    run_dir: Path | None = None,
) -> Transport:
    """The transport of a DUT config's ``transport.type``; DutError for one that is not known or lacks its place.

    run_dir: where ssh keeps the socket of its connection. The connection is opened with the first command, and ends
    with the process, or when the transport is no longer referred to.
    """

    def ssh(to: str) -> Transport:
        config = os.environ.get(CONFIG_ENV)
        return SshTransport(to, user, port, run_dir, Path(config) if config else None)

    ways: Mapping[str, tuple[str | None, str, Callable[[str], Transport]]] = {
        "local": ("here", "", lambda _: LocalTransport()),
        "netns": (namespace, "namespace", NetnsTransport),
        "ssh": (host, "host", ssh),
    }
    if kind not in ways:
        raise DutError(f"transport {kind} is not known", f"write one of {', '.join(ways)}")
    place, key, opens = ways[kind]
    if not place:
        raise DutError(f"transport {kind} has no {key}", f"write transport.{key} in the DUT's config")
    return opens(place)
