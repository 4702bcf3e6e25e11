"""The lab's long line (trexbench/lab/cable.py) beside netem, where the kernel has it: how late it is, what it carries.

Runs alternate; medians are printed (needs root):

    python benchmarks/wan.py [--repeats 5] [--seconds 3]

late: of datagrams that are sent 1 ms apart over a line of 20 ms (round trip), by the kernel's time of their arrival,
less the 10 ms that were asked for; the sender's own way through the kernel is in it. Gbit/s: one TCP connection (cubic)
over the same line, frames of up to 64 KB, buffers of 100 MB. kpps: frames of 60 bytes, offered as fast as one process
can, counted where they arrive.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from _ratios import leave_out, note
from _veth import need_root

from trexbench.lab import net, tap

HERE, THERE = (f"tbw{os.getpid()}-{name}" for name in ("here", "there"))
DELAY_S = 0.02
BUFFERS = "4096 131072 104857600"

_LATE = """
import socket, struct, sys, time
count = 1000
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
there.bind(("", 5001))
print("up", flush=True)
for number in range(count):
    data, (control,), *_ = there.recvmsg(64, 256)
    seconds, ns = struct.unpack("qq", control[2][:16])
    sent = struct.unpack("q", data)[0]
    print((seconds * 10**9 + ns - sent) * 1e-9)
"""
_PACED = """
import socket, struct, time
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
due = time.monotonic()
for _ in range(1000):
    here.sendto(struct.pack("q", time.time_ns()), ("192.0.2.2", 5001))
    due += 0.001
    time.sleep(max(0, due - time.monotonic()))
"""
_TAKE = """
import socket, sys, time
there = socket.create_server(("192.0.2.2", 5002))
print("up", flush=True)
stream, _ = there.accept()
begun, got, first, room = time.monotonic(), 0, None, bytearray(1 << 20)
while (now := time.monotonic()) < begun + 1.5 + float(sys.argv[1]):
    if first is None and now > begun + 1.5:
        first, got = now, 0
    got += stream.recv_into(room)
print(got * 8e-9 / (time.monotonic() - first))
"""
_GIVE = """
import socket
here = socket.socket()
here.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
here.connect(("192.0.2.2", 5002))
try:
    while True:
        here.sendall(bytes(1 << 18))
except OSError:
    pass
"""
_BLAST = """
import socket, sys, time
here = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
here.bind(("t0", 0))
frame = bytes.fromhex("02fffffffffe02ffffffffff88b5") + bytes(46)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(100):
        try:
            here.send(frame)
        except OSError:  # the interface's queue is full
            pass
"""


def command(space: str, code: str, *argv: str) -> list[str]:
    return ["ip", "netns", "exec", space, sys.executable, "-c", code, *argv]


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, timeout=60)


def both(taking: str, giving: str, *argv: str) -> list[float]:
    """Run the receiver, then the sender once it listens; return what the receiver prints."""
    with subprocess.Popen(command(THERE, taking, *argv), stdout=subprocess.PIPE, text=True) as there:
        assert there.stdout is not None and there.stdout.readline() == "up\n"
        run(*command(HERE, giving))
        return [float(line) for line in there.stdout]


def late() -> Mapping[str, float]:
    found = sorted(one - DELAY_S / 2 for one in both(_LATE, _PACED))
    return {"p50 us": found[len(found) // 2] * 1e6, "p99 us": found[len(found) * 99 // 100] * 1e6}


def arrived() -> int:
    with net.inside(THERE):
        line = next(one for one in Path("/proc/thread-self/net/dev").read_text().splitlines() if "t0:" in one)
    return int(line.split()[2])


def small(seconds: float) -> float:
    """kpps: what arrives while frames are offered, and after that until nothing comes any more."""
    before, begun = arrived(), time.monotonic()
    run(*command(HERE, _BLAST, str(seconds)))
    passed = time.monotonic() - begun
    time.sleep(0.3)
    return (arrived() - before) / passed / 1e3


@contextlib.contextmanager
def spaces(make: Callable[[], None]) -> Iterator[None]:
    """Two namespaces joined by whatever makes t0 in each."""
    try:
        for space in (HERE, THERE):
            net.make_namespace(space)
        make()
        for space, address in ((HERE, "192.0.2.1/24"), (THERE, "192.0.2.2/24")):
            run("ip", "-n", space, "address", "add", address, "dev", "t0")
            run("ip", "-n", space, "link", "set", "t0", "up", "txqueuelen", "4096")
            for name in ("tcp_rmem", "tcp_wmem"):
                with net.inside(space):
                    net.write_sysctl(f"net.ipv4.{name}", BUFFERS)
        yield
    finally:
        for space in (HERE, THERE):
            net.remove_namespace(space)


def make_taps() -> None:
    for space in (HERE, THERE):
        tap.make(space, "t0")


def make_veth() -> None:
    run("ip", "link", "add", "t0", "netns", HERE, "type", "veth", "peer", "name", "t0", "netns", THERE)


@contextlib.contextmanager
def cable() -> Iterator[None]:
    with spaces(make_taps), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cable.sock"
        argv = [sys.executable, "-m", "trexbench.lab.cable", "--ends", f"{HERE}:t0,{THERE}:t0"]
        argv += ["--socket", str(path), "--wan", json.dumps({"delay_s": DELAY_S})]
        with subprocess.Popen(argv) as process:
            try:
                while not path.exists() and process.poll() is None:
                    time.sleep(0.05)
                yield
            finally:
                process.terminate()


@contextlib.contextmanager
def netem() -> Iterator[None]:
    with spaces(make_veth):
        for space in (HERE, THERE):
            each_way = f"{DELAY_S / 2 * 1e6:.0f}us"
            run("tc", "-n", space, "qdisc", "add", "dev", "t0", "root", "netem", "delay", each_way, "limit", "1000000")
        yield


def measure(seconds: float) -> dict[str, float]:
    run("ip", "netns", "exec", HERE, "ping", "-c", "2", "-W", "5", "192.0.2.2")  # whose neighbour is sought
    found = dict(late())
    (found["Gbit/s"],) = both(_TAKE, _GIVE, str(seconds))
    found["kpps"] = small(seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    asked = parser.parse_args()
    need_root()
    lines = {"cable": cable, "netem": netem}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in lines}
    for _ in range(asked.repeats):
        for name, line in lines.items():
            try:
                with line():
                    runs[name].append(measure(asked.seconds))
            except subprocess.CalledProcessError as error:
                if "netem" not in error.cmd:
                    raise
    print(f"{'20 ms round trip':18}" + "".join(f"{name:>10}" for name in ("p50 us", "p99 us", "Gbit/s", "kpps")))
    for name, found in runs.items():
        if not found:
            print(f"{name:18}this kernel has none")
            continue
        medians = {key: statistics.median(one[key] for one in found) for key in found[0]}
        print(f"{name:18}" + "".join(f"{figure:>10.{0 if figure > 20 else 1}f}" for figure in medians.values()))
        for key in medians:
            print(f"  each {key:9}  " + " ".join(f"{one[key]:.4g}" for one in found))

    for key in runs["cable"][0]:
        if runs["netem"]:
            cable_, netem_ = (statistics.median(one[key] for one in runs[name]) for name in lines)
            note(
                f"cable / netem: {key}", cable_ / netem_, noise=0.3, better="lower" if key.endswith("us") else "higher"
            )
        else:
            leave_out(f"cable / netem: {key}", "this kernel has no netem")


if __name__ == "__main__":
    main()
