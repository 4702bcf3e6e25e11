"""Counters of a port whose driver refuses frames, or does not say at once which it has sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trexbench.stlserver.engine import StreamSpec
from trexbench.stlserver.kernel.netdev import LinkCounters
from trexbench.stlserver.kernel.port import DRIVER, SKB, KernelPort
from trexbench.stlserver.kernel.refusals import Refusals
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
