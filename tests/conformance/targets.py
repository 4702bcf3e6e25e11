"""The servers that the suite talks to: the embedded one, and the real TRex that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trexbench.stlserver.engine_fake import FakeEngine
from trexbench.stlserver.server import StlServer

VARIABLE = "TREXBENCH_TREX_SERVER"


@dataclass(frozen=True)
class Target:
    """Where a server listens; real: it is a TRex, sends real packets and takes its time."""

    host: str
    rpc_port: int
    pub_port: int
    real: bool


def real_target() -> Target | None:
    """``host[:rpc[:pub]]`` of the environment."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    host, _, ports = text.partition(":")
    rpc_port, _, pub_port = ports.partition(":")
    return Target(host, int(rpc_port or 4501), int(pub_port or 4500), real=True)


@contextmanager
def embedded_target() -> Iterator[Target]:
    """An embedded server with the fake engine."""
    with StlServer(FakeEngine()) as server:
        yield Target(server.host, server.rpc_port, server.pub_port, real=False)
