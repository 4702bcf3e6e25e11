"""The kernel engine on real interfaces: what arrives at the other end of a veth pair is what was asked."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from frames import FIX, FIX_UDP, connect, namespaces, run, udp, var, write

from trexbench.core.load.fieldengine import Program
from trexbench.lab.steering import steer
from trexbench.stlserver.engine import EngineError, StreamSpec
from trexbench.stlserver.kernel.engine import KernelEngine
from trexbench.stlserver.kernel.netdev import inside
from trexbench.stlserver.kernel.port import MODES

pytestmark = pytest.mark.skipif(shutil.which("ip") is None, reason="needs ip (iproute2)")

SEED = 12345
_numbers = itertools.count()


@contextlib.contextmanager
def veths() -> Iterator[str]:
    """A namespace with the veth pairs p0-q0 and p1-q1 and nothing else that could send."""
    name = f"tbe{os.getpid()}x{next(_numbers)}"
    with namespaces(name):
        for number in ("0", "1"):
            connect(name, f"p{number}", f"q{number}")
            run("ip", "netns", "exec", name, "ethtool", "-K", f"q{number}", "gro", "on")
        yield name


@pytest.fixture
def netns() -> Iterator[str]:
    with veths() as name:
        yield name


@pytest.fixture
def engine(netns: str) -> Iterator[KernelEngine]:
    with contextlib.closing(KernelEngine(["p0", "p1"], speed_bps=10e9, netns=netns, random_seed=SEED)) as made:
        yield made


@pytest.fixture(scope="module", params=MODES)
def shared(request: pytest.FixtureRequest) -> Iterator[tuple[KernelEngine, str]]:
    """An engine and its namespace, for tests that compare no counters with their beginning."""
    options: dict[str, Any] = {"speed_bps": 10e9, "random_seed": SEED, "modes": [request.param]}
    with veths() as name, contextlib.closing(KernelEngine(["p0", "p1"], netns=name, **options)) as made:
        yield made, name


def test_each_port_has_the_mode_that_the_kernel_reports(netns: str) -> None:
    """In the driver, but for the port whose peer sends frames too long for XDP; ``ip`` shows the same."""
    run("ip", "-n", netns, "link", "set", "q1", "mtu", "9000")
    with contextlib.closing(KernelEngine(["p0", "p1"], speed_bps=10e9, netns=netns)) as engine:
        assert [port.mode for port in engine.ports] == ["driver", "skb"]
        assert not engine.ports[0].remarks and "skb mode" in engine.ports[1].remarks[0]
        for name, word in (("p0", "xdp"), ("p1", "xdpgeneric")):
            argv = ["ip", "-n", netns, "link", "show", name]
            assert word in subprocess.run(argv, check=True, capture_output=True, text=True, timeout=10).stdout.split()


class Tap:
    """Everything that arrives at an interface, in its order."""

    def __init__(self, netns: str, interface: str) -> None:
        self.socket = inside(netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((interface, 3))
        self.socket.settimeout(10.0)

    def take(self, count: int) -> list[bytes]:
        return [self.socket.recv(4096) for _ in range(count)]

    def silent(self) -> bool:
        self.socket.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            self.socket.recv(4096)
            return False
        return True


def wait_for(condition: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    end = time.monotonic() + timeout_s
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.005)
    return met


def falls_silent(netns: str, interface: str) -> bool:
    """Test whether nothing more arrives there, once what a busy machine left on its way has."""
    return wait_for(lambda: Tap(netns, interface).silent())


FIX_UDP6 = {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 40, "l4_type": 11}


SRC, DST = 0x10000004, 0x30000004
VAR2 = [var("s", "inc", 4, SRC, SRC + 250), var("d", "inc", 4, DST, DST + 250)]
VAR2 += [write("s", 26), write("d", 30), FIX]
TRIM = [{"type": "trim_pkt_size", "name": "n"}, write("n", 16, add=-14), FIX]
PROGRAMS: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "no program": (60, []),
    "full length": (1514, []),
    "var2": (60, VAR2),
    "random": (60, [var("a", "random", 4, SRC, SRC + 250), write("a", 26), FIX]),
    "UDP checksum, odd and long": (
        1513,
        [var("s", "inc", 2, 0, 64000, step=77), write("s", 1510), write("s", 700), FIX_UDP],
    ),
    "UDP checksum over IPv6": (
        90,
        [var("s", "inc", 8, 2**33, 2**34, step=2**20), write("s", 30), write("s", 70), FIX_UDP6],
    ),
    "sizes at random": (900, [var("n", "random", 2, 60, 900), *TRIM]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_frames_are_those_of_the_field_engines_model(name: str, shared: tuple[KernelEngine, str]) -> None:
    engine, netns = shared
    size, instructions = PROGRAMS[name]
    packet = udp(size, 6 if FIX_UDP6 in instructions else 4, label=0)
    for cache in (0, 13):
        spec = StreamSpec(1, packet, 50_000.0, "single_burst", 600, instructions=instructions, vm_cache=cache)
        tap = Tap(netns, "q0")
        engine.check(0, spec)
        engine.start(0, [spec], 1.0, 5.0)
        wanted = list(itertools.islice(Program(instructions, SEED).run(packet), cache or 600))
        for number, frame in enumerate(tap.take(600)):
            assert frame == wanted[number % len(wanted)], f"frame {number}"
        assert tap.silent()
        assert wait_for(lambda: 0 in engine.poll())


def test_streams_of_different_sizes_share_pages_and_arrive_whole(engine: KernelEngine, netns: str) -> None:
    frames = [udp(size, fill=bytes([65 + number]) * size) for number, size in enumerate((60, 590, 1514, 333))]
    specs = [StreamSpec(number, frame, 20_000.0, "single_burst", 500) for number, frame in enumerate(frames)]
    taps = [Tap(netns, "q0"), Tap(netns, "q1")]
    for port in (0, 1):
        engine.start(port, specs[port:], 1.0, 5.0)
    for port, tap in enumerate(taps):
        arrived = tap.take(500 * len(specs[port:]))
        for frame in frames[port:]:
            assert arrived.count(frame) == 500
    assert wait_for(lambda: not any(p.sending for p in engine._ports))
    wanted = sum(500 * (len(frame) + 4) for frame in frames)
    assert engine.counters(0).opackets == 2000 and engine.counters(0).obytes == wanted


def burst(number: int, total: int, **more: Any) -> StreamSpec:
    frame = udp(60, fill=bytes([number]) * 60)
    return replace(StreamSpec(number, frame, 50_000.0, "single_burst", total), **more)


def continuous(rate_pps: float, **more: Any) -> StreamSpec:
    return replace(StreamSpec(1, udp(), rate_pps), **more)


def test_nothing_leaves_after_stop_nor_after_pause(engine: KernelEngine, netns: str) -> None:
    engine.start(0, [continuous(20_000.0)], 1.0, None)
    engine.start(1, [continuous(10_000.0)], 1.0, None)
    assert wait_for(lambda: engine.counters(0).opackets > 500)
    engine.pause(0)
    assert falls_silent(netns, "q0")
    engine.resume(0)
    assert Tap(netns, "q0").take(100)
    engine.stop(0)
    assert falls_silent(netns, "q0")
    before = engine.counters(1).opackets
    assert wait_for(lambda: engine.counters(1).opackets > before), "the other port goes on"
    engine.stop(1)
    assert falls_silent(netns, "q1")
    assert engine.poll() == [] and engine.load()[0].cpu_percent == 0.0


def test_a_peer_that_does_not_poll_shows_as_errors(netns: str) -> None:
    run("ip", "netns", "exec", netns, "ethtool", "-K", "q0", "gro", "off")
    with contextlib.closing(KernelEngine(["p0"], speed_bps=10e9, netns=netns)) as engine:
        engine.start(0, [continuous(100_000.0)], 1.0, None)
        assert wait_for(lambda: engine.counters(0).oerrors > 0)


def test_a_frame_longer_than_the_mtu_is_refused(engine: KernelEngine) -> None:
    with pytest.raises(EngineError, match="1515"):
        engine.check(0, continuous(1000.0, packet=udp(1515)))


def test_constructor_errors_name_the_remedy(netns: str) -> None:
    run("ip", "-n", netns, "link", "set", "p1", "down")
    table: Sequence[tuple[list[str], dict[str, Any], str]] = (
        (["nowhere0"], {}, "interface nowhere0"),
        (["p1"], {}, "ip link set p1 up"),
        (["lo"], {}, "not Ethernet"),
        (["p0"], {"netns": "tbe-nowhere"}, "ip netns list"),
        (["p0"], {"cpus": [4096]}, "CPU 4096"),
        (["p0"], {"cpus": sorted(os.sched_getaffinity(0))[:2]}, "one sends for a pair"),
    )
    for interfaces, more, text in table:
        with pytest.raises(EngineError, match=text) as caught:
            KernelEngine(interfaces, **{"speed_bps": 10e9, "netns": netns, **more})
        assert "\n" not in str(caught.value)
    first = KernelEngine(["p0"], speed_bps=10e9, netns=netns)
    with pytest.raises(EngineError, match="already has an XDP program"):
        KernelEngine(["p0"], speed_bps=10e9, netns=netns)
    first.close()
    first.close()


def test_frames_reach_the_stack_through_the_queue_of_another_cpu(engine: KernelEngine, netns: str) -> None:
    cpu = max(os.sched_getaffinity(0))
    (thread,) = steer(["q0", "q1"], [cpu], netns, niceness=0)
    assert os.sched_getaffinity(thread) == {cpu}
    for port in (0, 1):
        tap = Tap(netns, f"q{port}")
        engine.start(port, [burst(port + 1, 200)], 1.0, 5.0)
        assert {frame[42] for frame in tap.take(200)} == {port + 1} and tap.silent()


def test_a_tap_is_no_nic_and_its_speed_is_not_believed(netns: str) -> None:
    run("ip", "-n", netns, "tuntap", "add", "t0", "mode", "tap")
    run("ip", "-n", netns, "link", "set", "t0", "up")
    with contextlib.closing(KernelEngine(["t0"], netns=netns)) as engine:
        (port,) = engine.ports
    assert (port.driver, port.pci, port.speed_bps, port.remarks) == ("tun", "", 10e9, ())


def test_each_pair_of_ports_has_a_sender_and_a_cpu_of_its_own(netns: str) -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    with contextlib.closing(KernelEngine(["p0", "q0", "p1", "q1"], speed_bps=10e9, netns=netns, cpus=cpus)) as engine:
        for port in (0, 2):
            engine.start(port, [continuous(10_000.0)], 1.0, None)
        assert wait_for(lambda: all(engine.counters(port).ipackets > 1000 for port in (1, 3)))
        threads = [one.native_id for one in threading.enumerate() if one.name == "trexbench-sender"]
        assert {frozenset([cpu]) for cpu in cpus} <= {frozenset(os.sched_getaffinity(one)) for one in threads if one}
        engine.stop(0)
        before = engine.counters(3).ipackets
        assert wait_for(lambda: engine.counters(3).ipackets > before + 1000)
        assert wait_for(lambda: engine.counters(1).ipackets == engine.counters(0).opackets)
        assert all(engine.load()[port].waited_ns is not None for port in range(4))
