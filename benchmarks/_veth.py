"""Two namespaces' worth of interfaces for the benchmarks: built, pinned, counted, removed."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _ratios import skip

from trexbench.lab.steering import steer
from trexbench.stlserver.engine import EngineError, StreamSpec
from trexbench.stlserver.kernel.engine import KernelEngine
from trexbench.stlserver.kernel.netdev import NetDevice, inside

__all__ = ["EngineError", "KernelEngine", "StreamSpec", "Window", "measure", "need_root", "router", "var2", "veth_pair"]

SENDER_CPU, RECEIVER_CPU = 0, 1
CLIENTS, SERVERS, HOSTS = 0x10000004, 0x30000004, 251
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


def need_root() -> None:
    """Exit with one line where the benchmark cannot run."""
    if os.geteuid() != 0:
        skip("this benchmark makes network namespaces: run it as root")
    if len(os.sched_getaffinity(0)) < 2:
        skip("this benchmark needs two CPUs: one that sends and one that receives")


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=30, capture_output=True)


def var2(src_mac: str, dst_mac: str, *, mirrored: bool = False, size: int = 60, rate_pps: float = 1.0) -> StreamSpec:
    """UDP between 251 clients and 251 servers in lockstep, IP checksum renewed for every packet."""
    sides = (SERVERS, CLIENTS) if mirrored else (CLIENTS, SERVERS)
    length = size - 14
    packet = bytes.fromhex((dst_mac + src_mac).replace(":", "")) + b"\x08\x00\x45\x00" + length.to_bytes(2, "big")
    packet += bytes.fromhex("0001000040110000") + b"".join(side.to_bytes(4, "big") for side in sides)
    packet += bytes.fromhex("0401000c") + (length - 20).to_bytes(2, "big") + b"\0\0"
    instructions: list[dict[str, Any]] = []
    for name, first in zip(("src", "dst"), sides, strict=True):
        limits = {"min_value": first, "max_value": first + HOSTS - 1, "init_value": first, "step": 1}
        instructions.append({"type": "flow_var", "name": name, "size": 4, "op": "inc", **limits})
    for name, offset in (("src", 26), ("dst", 30)):
        place = {"pkt_offset": offset, "add_value": 0, "is_big_endian": True}
        instructions.append({"type": "write_flow_var", "name": name, **place})
    instructions.append({"type": "fix_checksum_ipv4", "pkt_offset": 14})
    return StreamSpec(1, packet.ljust(size, b"x"), rate_pps, instructions=instructions)


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
def namespaces(*names: str) -> Iterator[None]:
    made: list[str] = []
    try:
        for name in names:
            run("ip", "netns", "add", name)
            made.append(name)
            quiet = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
            run("ip", "netns", "exec", name, "sysctl", "-qw", *quiet)
        yield
    finally:
        for name in made:
            run("ip", "netns", "del", name)


@contextlib.contextmanager
def veth_pair() -> Iterator[tuple[str, str, str]]:
    """(namespace, sending interface, receiving interface); attach an engine before use, then pin_napi."""
    netns, out, into = f"tbebench{os.getpid()}", f"s{os.getpid()}"[:15], f"r{os.getpid()}"[:15]
    with namespaces(netns):
        run("ip", "-n", netns, "link", "add", out, "type", "veth", "peer", "name", into)
        for name in (out, into):
            run("ip", "-n", netns, "link", "set", name, "up")
        yield netns, out, into


@contextlib.contextmanager
def router() -> Iterator[tuple[str, tuple[str, str]]]:
    """A Linux router between two tester ports: (tester's namespace, the router's MAC addresses)."""
    tester, dut = f"tbebencht{os.getpid()}", f"tbebenchd{os.getpid()}"
    with namespaces(tester, dut):
        for number, side in enumerate(("16", "48")):
            link = f"100.65.{number + 1}"
            peer = ("peer", "name", f"d{number}", "netns", dut)
            run("ip", "-n", tester, "link", "add", f"p{number}", "address", MACS[number], "type", "veth", *peer)
            run("ip", "-n", dut, "addr", "add", f"{link}.1/24", "dev", f"d{number}")
            run("ip", "-n", tester, "link", "set", f"p{number}", "up")
            run("ip", "-n", dut, "link", "set", f"d{number}", "up")
            neighbour = (f"{link}.2", "lladdr", MACS[number], "dev", f"d{number}", "nud", "permanent")
            run("ip", "-n", dut, "neigh", "replace", *neighbour)
            run("ip", "-n", dut, "route", "add", f"{side}.0.0.0/8", "via", f"{link}.2")
        run("ip", "netns", "exec", dut, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        steer(["d0", "d1"], [RECEIVER_CPU], netns=dut)
        macs = inside(dut, lambda: [NetDevice(f"d{number}").mac for number in range(2)])
        yield tester, (macs[0], macs[1])


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


def median(values: Sequence[float]) -> float:
    return statistics.median(values)
