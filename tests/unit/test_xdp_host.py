"""Facts that the engine reads from the host: kernel versions and interface totals."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from trexbench.stlserver.engine import EngineError
from trexbench.stlserver.kernel import bpf
from trexbench.stlserver.kernel.netdev import LinkCounters, enter_netns, parse_speed, parse_totals
from trexbench.stlserver.kernel.taken import Taken, TakenWatch, parse_taken


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
