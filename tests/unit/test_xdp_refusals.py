"""Counters of a port whose driver refuses frames, and other facts that the engine reads from the host."""

from __future__ import annotations

import os
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from trexbench.stlserver.engine import EngineError, StreamSpec, Taken
from trexbench.stlserver.kernel import bpf
from trexbench.stlserver.kernel.netdev import LinkCounters, Refusals, enter_netns, parse_speed, parse_totals, parse_xdp
from trexbench.stlserver.kernel.port import DRIVER, SKB, KernelPort
from trexbench.stlserver.kernel.sender import TakenWatch, parse_taken
from trexbench.stlserver.kernel.xdp_layout import PORT_WORDS_MAX, Gate, ReceivedWord, StreamWord
from trexbench.stlserver.kernel.xdp_plan import plan_port

SLACK = 1024


class Refusing:
    """A port that sends, the driver's count of its frames, and a clock."""

    def __init__(self, driver: str = "e1000e", mode: str = SKB) -> None:
        self.now_s, self.counted, self.asked = 0.0, 0, 0
        device: Any = SimpleNamespace(pci=driver != "veth", driver=driver, counters=self.counters)
        nothing: Any = None
        maps: list[Any] = [
            SimpleNamespace(words=memoryview(bytearray(8 * words)).cast("Q"))
            for words in (PORT_WORDS_MAX, ReceivedWord.LINE_WORDS)
        ]
        first = LinkCounters(tx_packets=0, tx_dropped=0, rx_errors=0, rx_dropped=0)
        refusals = Refusals(lambda: self.now_s)
        self.port = KernelPort(device, None, *maps, nothing, nothing, first, mode=mode, refusals=refusals)
        self.port.prepare(plan_port(0, [StreamSpec(1, bytes(60), 1e6)]), 1.0, None)
        self.port.gate = Gate.RUNNING

    def counters(self) -> LinkCounters:
        self.asked += 1
        return LinkCounters(tx_packets=self.counted, tx_dropped=0, rx_errors=0, rx_dropped=0)

    def give(self, frames: int) -> None:
        assert self.port.plan is not None
        self.port.memory.words[self.port.plan.streams[0].word(StreamWord.SENT)] = frames

    def read(self, given: int, counted: int, after_s: float = 1.0) -> tuple[int, int, int]:
        """Frames sent, errors and overruns at a later moment."""
        self.now_s, self.counted = self.now_s + after_s, counted
        self.give(given)
        counters = self.port.counters(self.port.moved())
        assert counters.obytes == 64 * counters.opackets
        return counters.opackets, counters.oerrors, self.port.overrun()


def test_no_counter_goes_back_when_the_ring_drains() -> None:
    port = Refusing()
    assert port.read(10_000, 6_000) == (10_000 - (4_000 - SLACK), 4_000 - SLACK, 4_000 - SLACK)
    assert port.read(11_000, 7_900) == (11_000 - (4_000 - SLACK), 4_000 - SLACK, 4_000 - SLACK)
    assert port.read(11_000, 7_950) == (11_000 - (4_000 - SLACK), 4_000 - SLACK, 4_000 - SLACK)


def test_no_count_of_sent_frames_goes_back_when_refusals_were_read_later() -> None:
    port = Refusing()
    before, _, _ = port.read(10_000, 10_000 - SLACK)
    port.give(10_100)
    moved = port.port.moved()
    port.give(12_000)
    assert port.port.overrun() == 2_000
    assert port.port.counters(moved).opackets == before


def test_a_port_at_rest_shows_the_first_refused_frames_once_its_ring_is_empty() -> None:
    port = Refusing()
    assert port.read(10_000, 9_200) == (10_000, 0, 0)
    port.port.gate = Gate.CLOSED
    assert port.read(10_000, 9_300) == (10_000, 0, 0)
    assert port.read(10_000, 9_500) == (10_000, 0, 0), "it still counts"
    assert port.read(10_000, 9_500, after_s=0.001) == (10_000, 0, 0), "too early to say"
    port.read(10_000, 9_500)
    assert port.read(10_000, 9_500) == (10_000, 500, 500)
    port.port.gate = Gate.RUNNING
    assert port.read(20_000, 19_000) == (20_000, 500, 500)


@pytest.mark.parametrize("mode", [DRIVER, SKB])
def test_a_ring_that_counts_its_last_frames_late_is_not_accused(mode: str) -> None:
    port = Refusing("virtio_net", mode)
    port.port.gate = Gate.CLOSED
    for _ in range(3):
        assert port.read(10_000, 9_800) == (10_000, 0, 0)


@pytest.mark.parametrize(("driver", "mode"), [("veth", DRIVER), ("e1000e", DRIVER)])
def test_totals_that_say_nothing_are_not_read(driver: str, mode: str) -> None:
    port = Refusing(driver, mode)
    assert port.port.overrun() == 0 and port.asked == 0


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.18.44-generic", (6, 18)), ("5.4.0-1", (5, 4)), ("6.1-rc3", (6, 1)), ("5.18.0", (5, 18))],
)
def test_kernel_releases_compare_as_numbers(release: str, version: tuple[int, int]) -> None:
    assert bpf.kernel_version(release) == version


def test_totals_of_proc_net_dev() -> None:
    line = " 7000  70    1    2    3     4          5         6    8000  80    9   10    0     0       0          0"
    assert parse_totals(line) == LinkCounters(tx_packets=80, tx_dropped=10, rx_errors=4, rx_dropped=2)


def test_a_namespace_that_is_not_there_is_named() -> None:
    with pytest.raises(EngineError, match="network namespace 'tbe-nowhere'"):
        enter_netns("tbe-nowhere")


@pytest.mark.parametrize(
    ("mbps", "bps"), [(1000, 1e9), (10_000, 1e10), (400_000, 4e11), (0, None), (0xFFFF, None), (0xFFFFFFFF, None)]
)
def test_a_nics_speed_is_in_two_halves(mbps: int, bps: float | None) -> None:
    settings = bytearray(44)
    settings[12:14], settings[28:30] = (mbps & 0xFFFF).to_bytes(2, "little"), (mbps >> 16).to_bytes(2, "little")
    assert parse_speed(bytes(settings)) == bps


def test_what_was_taken_of_a_core() -> None:
    status = "Name:\tsender\nvoluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t41\n"
    totals = "cpu  1 2 3 4 5 6 7 80 0 0\ncpu1 1 2 3 4 5 6 7 90 0 0\ncpu11 1 2 3 4 5 6 7 30 0 0\n"
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    assert parse_taken("500 1234 7\n", status, totals, 1) == Taken(1234, 41, 90 * tick_ns)
    assert parse_taken("500 1234 7\n", status, totals, None).stolen_ns is None
    assert parse_taken("", "", "", 1) == Taken()


def test_a_thread_that_has_ended_has_nothing_taken_from_it() -> None:
    with ThreadPoolExecutor(1) as thread:
        watch, number = thread.submit(lambda: (TakenWatch(None), threading.get_native_id())).result()
        assert watch.read().preempted is not None
    while os.path.exists(f"/proc/self/task/{number}"):  # Python does not wait until the kernel is done with it
        time.sleep(0.001)
    assert watch.read() == Taken()
    watch.close()


def test_the_mode_is_read_from_what_the_kernel_says_of_a_link() -> None:
    def attribute(number: int, value: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(value), number) + value + bytes(-len(value) % 4)

    name, fd = attribute(3, b"p0\0"), attribute(4, b"\7\0\0\0")
    for nested in (43, 43 | 0x8000):
        xdp = attribute(nested, attribute(2, b"\2") + fd)
        assert parse_xdp(bytes(32) + name + xdp) == parse_xdp(bytes(32) + xdp + name) == 2
    assert parse_xdp(bytes(32) + name) == parse_xdp(bytes(32) + attribute(43, fd)) == parse_xdp(bytes(20)) == 0
    assert parse_xdp(bytes(32) + attribute(43, b"\x20\0\2\0\1")) == 1, "cut off"
