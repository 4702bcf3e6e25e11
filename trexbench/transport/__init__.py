"""Transports, which run a command on a DUT and return its output. Data never becomes a shell's program text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ..config.endpoints import TransportConfig
from ..core.errors import DutError
from .cli import CliTransport
from .command import TIMEOUT_S, Completed, Running, Transport, run_checked
from .console import ConsoleTransport, console_socket
from .local import LocalTransport, NetnsTransport
from .ssh import CONFIG_ENV, SshTransport
from .words import shown

__all__ = [
    "TIMEOUT_S",
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


class NoTransport(Transport):
    """Transport of a DUT that is not reached; place: its name."""

    def __init__(self, place: str) -> None:
        self.place = place

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> NoReturn:
        remedy = "its config has driver: none, without a transport: state another driver, and its transport:"
        raise DutError(f"{shown(argv)} cannot be run on {self.place}", remedy)

    def start(self, argv: Sequence[str]) -> NoReturn:
        self.run(argv, 0.0)


def open_transport(to: TransportConfig, run_dir: Path | None = None, bring_up: str = "") -> Transport:
    """Make the transport of a config; its connection is opened with the first command.

    It is closed with the process, or when the transport is no longer referred to. run_dir: where ssh and virtual
    machines have their sockets. bring_up: the command that makes a missing namespace, if that is a lab's.
    """
    namespace = to.namespace or ""
    ssh_config = Path(named) if (named := os.environ.get(CONFIG_ENV)) else None
    if to.type == "ssh":
        return SshTransport(to, run_dir, ssh_config)
    if to.type == "cli":
        return CliTransport(to, ssh_config)
    if to.type == "console":
        assert run_dir is not None
        return ConsoleTransport(console_socket(run_dir, namespace), f"console of {namespace}", bring_up)
    if to.type == "netns":
        return NetnsTransport(namespace, bring_up)
    return LocalTransport() if to.type == "local" else NoTransport(to.host or "")
