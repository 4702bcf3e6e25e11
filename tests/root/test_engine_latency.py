"""Latency of real frames as the kernel engine reports it: through a router, and through a hand that holds them."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from frames import ROUTED_MACS, run, udp
from frames import routed as namespaces_routed
from test_engine_kernel import Tap, continuous, engine, netns, wait_for

from trexbench.stlserver.engine import LatencyTotals, StreamSpec
from trexbench.stlserver.kernel.engine import KernelEngine

pytestmark = pytest.mark.skipif(shutil.which("ip") is None, reason="needs ip (iproute2)")
__all__ = ["engine", "netns"]  # fixtures of the other file

HELD_S = 0.005
_numbers = itertools.count()


@pytest.fixture
def routed() -> Iterator[tuple[KernelEngine, list[bytes]]]:
    """Two ports with a Linux router between them, and each port's frame of 64 bytes to the other."""
    with namespaces_routed(f"tbl{os.getpid()}x{next(_numbers)}") as (tester, dut, macs):
        for number in range(2):
            run("ip", "netns", "exec", dut, "ethtool", "-K", f"d{number}", "gro", "on")
        with contextlib.closing(KernelEngine(["p0", "p1"], speed_bps=10e9, netns=tester)) as engine:
            yield engine, [routable(number, macs[number]) for number in range(2)]


def routable(port: int, router_mac: str, size: int = 60) -> bytes:
    """UDP from the hosts behind one port to those behind the other."""
    hosts = (bytes([16, 0, 0, 4]), bytes([48, 0, 0, 4]))
    macs = (router_mac + ROUTED_MACS[port]).replace(":", "")
    return udp(size, macs=macs, ends=hosts[port] + hosts[1 - port])


def timed(pg_id: int, frame: bytes, rate_pps: float = 1000.0, number: int = 1) -> StreamSpec:
    return StreamSpec(number, frame, rate_pps, fixed_rate=True, pg_id=pg_id)


def finished(engine: KernelEngine, *ports: int) -> None:
    """Wait for the end of the ports' traffic and for what is on its way."""
    silent: set[int] = set()
    assert wait_for(lambda: bool(silent.update(engine.poll()) or silent >= set(ports)))
    assert wait_for(lambda: all(one.sent == one.received for port in ports for one in engine.latency(port).values()))


def plausible(totals: LatencyTotals) -> None:
    assert totals.received == totals.sent == sum(totals.histogram.values()) > 0
    assert totals.received_bytes == totals.sent_bytes == 64 * totals.sent
    assert totals.out_of_order == totals.missing == 0
    assert 0 < totals.min_s <= totals.sum_s / totals.received <= totals.max_s
    assert totals.min_s < 10e-3, "most of the time nobody else has the CPU"
    assert min(totals.histogram) <= totals.min_s * 1e6 and max(totals.histogram) <= totals.max_s * 1e6
    assert 0 < totals.jitter_s < totals.max_s


def test_every_frame_through_a_router_is_timed(routed: tuple[KernelEngine, list[bytes]]) -> None:
    engine, frames = routed
    for port, frame in enumerate(frames):
        specs = [timed(7 + port, frame), replace(continuous(1000.0), stream_id=2, packet=frame)]
        engine.check(port, specs[0])
        engine.start(port, specs, 3.0, 1.0)
    finished(engine, 0, 1)
    for port in (0, 1):
        (pg_id, totals), *others = engine.latency(port).items()
        assert (pg_id, totals.rx_port, others) == (7 + port, 1 - port, [])
        plausible(totals)
        assert engine.counters(port).opackets > totals.sent, "the frames that are not timed are counted, too"
        assert engine.counters(1 - port).ipackets == engine.counters(port).opackets


def test_a_hand_that_holds_each_frame_shows_in_the_times(engine: KernelEngine, netns: str) -> None:
    arriving, leaving, done = Tap(netns, "q0"), Tap(netns, "q1"), threading.Event()
    arriving.socket.settimeout(0.2)
    held_s: list[float] = []

    def hold() -> None:
        while not done.is_set():
            try:
                frame = arriving.socket.recv(4096)
            except TimeoutError:
                continue
            taken_s = time.monotonic()
            time.sleep(HELD_S)
            held_s.append(time.monotonic() - taken_s)
            leaving.socket.send(frame)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        began_s = time.monotonic()
        engine.start(0, [timed(3, udp(), 50.0)], 1.0, 1.0)
        finished(engine, 0)
        (totals,) = engine.latency(0).values()
        assert totals.received == sum(totals.histogram.values()) == totals.sent > 10
        # how long a frame waits before the hand is free depends on who else wants the CPU
        assert totals.min_s >= min(held_s) >= HELD_S and totals.sum_s >= sum(held_s)
        assert totals.max_s < time.monotonic() - began_s
        assert min(totals.histogram) >= 5000 and totals.missing == totals.out_of_order == 0
    finally:
        done.set()
        thread.join(5)
