"""The servers that the suite talks to: the embedded one with each engine, and the TRex that the environment names.

That TRex runs somewhere (TREXBENCH_TREX_SERVER: where), or is started in a lab (TREXBENCH_TREX_DIR: its directory).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from engine_fake import FakeEngine

from trexbench.config.lookup import load_dut
from trexbench.config.twin import TwinSpec
from trexbench.dut import Wanted, open_dut
from trexbench.dut.apply import apply
from trexbench.dut.journal import NoJournal
from trexbench.lab import Lab, LabSpec
from trexbench.lab.net import inside
from trexbench.stlserver.engine import Engine
from trexbench.stlserver.rpc.server import StlServer
from trexbench.transport import open_transport
from trexbench.twin.router import TwinRouter
from trexbench.twin.simulated import SimEngine

SERVER_VARIABLE = "TREXBENCH_TREX_SERVER"
DIRECTORY_VARIABLE = "TREXBENCH_TREX_DIR"


@dataclass(frozen=True)
class Target:
    """Where a server listens; real: its packets are, and its ports are not the suite's own to reconfigure."""

    host: str
    rpc_port: int
    pub_port: int
    real: bool


def named_server() -> str | None:
    """``host[:rpc[:pub]]`` of a TRex that runs."""
    return os.environ.get(SERVER_VARIABLE)


def trex_directory() -> Path | None:
    """Where the TRex is that a lab can start."""
    text = os.environ.get(DIRECTORY_VARIABLE)
    return Path(text) if text else None


@contextmanager
def named_target() -> Iterator[Target]:
    """The TRex that runs."""
    host, _, ports = (named_server() or "").partition(":")
    rpc_port, _, pub_port = ports.partition(":")
    yield Target(host, int(rpc_port or 4501), int(pub_port or 4500), real=True)


@contextmanager
def embedded_target() -> Iterator[Target]:
    """An embedded server with the fake engine."""
    yield from _served(FakeEngine())


@contextmanager
def simulated_target() -> Iterator[Target]:
    """An embedded server with the simulating engine and a router that is faster than the suite's traffic."""
    yield from _served(SimEngine(TwinRouter(TwinSpec(workers=1, clock_hz=2.2e9, packet_cycles=100.0))))


def _served(engine: Engine) -> Iterator[Target]:
    with StlServer(engine) as server:
        yield Target(server.host, server.rpc_port, server.pub_port, real=False)


@contextmanager
def kernel_target() -> Iterator[Target]:
    """An embedded server that sends real packets through the lab's router; the thread stays in its namespace."""
    yield from _in_a_lab(None)


@contextmanager
def lab_trex_target() -> Iterator[Target]:
    """A TRex in the embedded server's place."""
    yield from _in_a_lab(trex_directory())


def _in_a_lab(trex_dir: Path | None) -> Iterator[Target]:
    config = load_dut("lab-linux").with_lab_prefix(f"tbs{os.getpid()}")
    # the texts to compare with come from ports of 10 Gbit/s
    spec = replace(LabSpec.from_config(config), speed_bps=None)
    with Lab(spec).running(trex_dir) as lab, inside(spec.tester):
        transport = open_transport(config.transport)
        # without its routes the router forwards nothing, and what ought to arrive does not
        dut = open_dut(Wanted(config, spec.tester_macs, None, lab.host_facts), transport)
        apply(dut, transport, NoJournal())
        yield Target("127.0.0.1", spec.rpc_port, spec.pub_port, real=True)
