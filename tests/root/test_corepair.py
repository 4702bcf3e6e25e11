"""The way between two cores and their clocks, as BPF programs on both find them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

import pytest

from trexbench.lab import corepair
from trexbench.lab.corepair import CorePair
from trexbench.stlserver.kernel import bpf

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or len(CPUS) < 2, reason="needs root and two cores"),
]


@pytest.fixture
def pair() -> Iterator[CorePair]:
    with contextlib.closing(CorePair(CPUS[1], CPUS[0])) as found:
        yield found


@pytest.mark.measures
def test_both_cores_answer(pair: CorePair) -> None:
    """A busy machine only makes attempts fail: a figure is that of the fastest turns, which nothing interrupted."""
    found = [times for _ in range(50) if (times := pair.measure()) is not None]
    round_trips = [one.round_trip_ns for one in found if one.round_trip_ns is not None]
    assert round_trips, "the cores met in none of 50 attempts"
    assert all(10 < ns < 100_000 for ns in round_trips)
    assert all(0.2e9 < hertz < 20e9 for one in found for hertz in one.clocks_hz if hertz is not None)
    assert pair._memory.words[0] <= 2 * corepair.TURNS + 1, "no more turns than meant"


def test_a_side_that_is_left_alone_gives_up(pair: CorePair) -> None:
    words = pair._memory.words
    words[0], words[corepair._ASKER] = 1, 2
    with contextlib.closing(bpf.ProgramSlot()) as slot:
        program = bpf.load_free("alone", corepair.turns(pair._memory.fd, slot.fd, corepair._ASKER, 2))
        slot.put(program)
        bpf.run_here(program)
        os.close(program)
    assert words[0] == 1, "nobody had a turn"


def test_its_threads_end_with_it() -> None:
    def held() -> tuple[int, int]:
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    before = held()
    for _ in range(3):
        with contextlib.closing(CorePair(CPUS[1], CPUS[0])) as pair:
            pair.measure()
    deadline = time.monotonic() + 10
    while held() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert held() == before
