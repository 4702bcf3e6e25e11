"""Counts of marked frames in the kernel engine: through a router, and beside frames of others."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from frames import FIX, var, write
from test_engine_kernel import engine, netns, wait_for
from test_engine_latency import routable, routed, timed

from trexbench.stlserver.engine import FlowTotals, StreamSpec
from trexbench.stlserver.kernel.engine import KernelEngine

pytestmark = pytest.mark.skipif(shutil.which("ip") is None, reason="needs ip (iproute2)")
__all__ = ["engine", "netns", "routed"]  # fixtures of the other files


def test_streams_are_told_apart_behind_a_router(routed: tuple[KernelEngine, list[bytes]]) -> None:
    """The router drops frames whose header has a wrong checksum: with mark and field engine it is right."""
    engine, frames = routed
    fields = [var("s", "inc", 4, 0x10000004, 0x100000FE), write("s", 26), FIX]
    long = replace(StreamSpec(2, routable(0, frames[0][:6].hex(":"), 586), 2000.0, mark=4), instructions=fields)
    specs = [
        StreamSpec(1, frames[0], 1000.0, mark=3),
        long,
        StreamSpec(3, frames[0], 500.0),
        timed(9, frames[0], 100, 4),
    ]
    specs = [replace(one, mode="single_burst", total_pkts=int(one.rate_pps)) for one in specs]
    for start in (1, 2):
        engine.start(0, specs, 1.0, None)
        engine.start(1, [replace(specs[0], packet=frames[1])], 1.0, None)
        sent = 3600 * start
        assert wait_for(lambda: engine.counters(1).ipackets == sent), engine.counters(1)  # noqa: B023
        assert wait_for(lambda: engine.counters(0).ipackets == 1000 * start)  # noqa: B023
        assert engine.flows() == {
            0: {3: FlowTotals(*2 * (1000 * start, 64_000 * start)), 4: FlowTotals(2000 * start, 590 * 2000 * start)},
            1: {
                3: FlowTotals(*2 * (1000 * start, 64_000 * start)),
                4: FlowTotals(0, 0, 2000 * start, 590 * 2000 * start),
            },
        }
        assert engine.latency(0)[9].received == 100
