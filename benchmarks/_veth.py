"""Two namespaces' worth of interfaces for the benchmarks: built, pinned, counted, removed."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from _ratios import skip
from frames import FIX, ROUTED_MACS, connect, namespaces, routed, run, udp, var, write

from trexbench.lab.steering import steer
from trexbench.stlserver.engine import EngineError, StreamSpec
from trexbench.stlserver.kernel.engine import KernelEngine

__all__ = ["EngineError", "KernelEngine", "StreamSpec", "Window", "connect", "measure", "need_root", "router", "var2"]

SENDER_CPU, RECEIVER_CPU = 0, 1
CLIENTS, SERVERS, HOSTS = 0x10000004, 0x30000004, 251
MACS = ROUTED_MACS


def need_root() -> None:
    """Exit with one line where the benchmark cannot run."""
    if os.geteuid() != 0:
        skip("this benchmark makes network namespaces: run it as root")
    if len(os.sched_getaffinity(0)) < 2:
        skip("this benchmark needs two CPUs: one that sends and one that receives")


def var2(src_mac: str, dst_mac: str, *, mirrored: bool = False, size: int = 60) -> StreamSpec:
    """UDP between 251 clients and 251 servers in lockstep, IP checksum renewed for every packet."""
    sides = (SERVERS, CLIENTS) if mirrored else (CLIENTS, SERVERS)
    packet = udp(size, macs=(dst_mac + src_mac).replace(":", ""), fill=b"x" * size)
    variables = [var(name, "inc", 4, first, first + HOSTS - 1) for name, first in zip("sd", sides, strict=True)]
    return StreamSpec(1, packet, 1.0, instructions=[*variables, write("s", 26), write("d", 30), FIX])


def pin_napi(interface: str, netns: str, cpu: int) -> None:
    """Give the interface's receive work a kernel thread of its own, on one CPU."""
    setting = f"echo 1 > /sys/class/net/{interface}/threaded"
    run("ip", "netns", "exec", netns, "sh", "-c", setting)
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if (entry / "comm").read_text().startswith(f"napi/{interface}-"):
                os.sched_setaffinity(int(entry.name), {cpu})
                found.append(entry.name)
    if not found:
        sys.exit(f"no NAPI thread of {interface} is to be seen; a kernel with threaded NAPI (5.12) is needed")


@contextlib.contextmanager
def veth_pair() -> Iterator[tuple[str, str, str]]:
    """(namespace, sending interface, receiving interface); attach an engine before use, then pin_napi."""
    netns, out, into = f"tbebench{os.getpid()}", f"s{os.getpid()}"[:15], f"r{os.getpid()}"[:15]
    with namespaces(netns):
        connect(netns, out, into)
        yield netns, out, into


@contextlib.contextmanager
def router() -> Iterator[tuple[str, tuple[str, str]]]:
    """A Linux router between two tester ports: (tester's namespace, the router's MAC addresses)."""
    with routed(f"tbebench{os.getpid()}") as (tester, dut, macs):
        steer(["d0", "d1"], [RECEIVER_CPU], netns=dut)
        yield tester, macs


@dataclass(frozen=True)
class Window:
    """Packets sent and received within ``seconds``."""

    seconds: float
    sent: int
    received: int

    @property
    def sent_pps(self) -> float:
        return self.sent / self.seconds

    @property
    def received_pps(self) -> float:
        return self.received / self.seconds


def measure(engine: KernelEngine, out: int, into: int, seconds: float) -> Window:
    """Differences of raw counters over a monotonic clock."""
    begin, sent, received = time.monotonic(), engine.counters(out).opackets, engine.counters(into).ipackets
    time.sleep(seconds)
    end = time.monotonic()
    after = engine.counters(out).opackets, engine.counters(into).ipackets
    return Window(end - begin, after[0] - sent, after[1] - received)
