"""Cycles that perf counts beside the looks at a Linux DUT: told when they are there, and never waited for."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from bench import LINUX_FULL
from box_linux import LinuxBox
from boxes import BoxTransport, Said

from trexbench.dut import Wanted
from trexbench.dut.linux.driver import LinuxDut
from trexbench.transport import Completed


class SlowPerf(BoxTransport):
    """A box that counts cycles for as long as the test wants, beside whatever else it is asked."""

    def __init__(self, said: Said | None) -> None:
        programs = (*LinuxBox.programs, *(("perf",) if said else ()))
        super().__init__(LinuxBox(programs), fail={"perf stat": said or Said()})
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        if argv[0] == "perf":
            self.begun.release()
            assert self.go_on.wait(10)
        return super().run(argv, timeout_s, input)

    @property
    def asked(self) -> list[str]:
        return [line for line in self.ran if line.startswith("perf ")]

    def begins(self) -> None:
        assert self.begun.acquire(timeout=10)

    def end(self) -> None:
        """Let perf end, and wait for it."""
        self.go_on.set()
        for thread in threading.enumerate():
            if thread.name == "perf":
                thread.join(10)
        self.go_on.clear()


def slow_perf(said: Said | None) -> tuple[SlowPerf, LinuxDut]:
    transport = SlowPerf(said)
    return transport, LinuxDut(Wanted(LINUX_FULL), transport)


COUNTED = Said(stderr="Some notice\n4400000000,,cycles:u,2000000000,100.00,,\n")
OF_TWO_KINDS = Said(
    stderr="4000000000,,cpu_core/cycles/,2,100.00,0.0,GHz\n400000000,,cpu_atom/cycles/,2,54.00,0.0,GHz\n"
)


@pytest.mark.parametrize("said", [COUNTED, OF_TWO_KINDS])
def test_cycles_are_told_by_the_look_after_the_one_that_began_them(said: Said) -> None:
    transport, box = slow_perf(said)
    assert box.observe(clear=True).perf_hz is None
    transport.begins()
    assert box.observe().perf_hz is None, "perf has not ended, and no look waits for it"
    transport.end()
    assert box.observe().perf_hz == 2.2e9
    assert box.observe().perf_hz is None, "told once"
    assert transport.asked == ["perf stat -x, -a -C 1,2 -e cycles sleep 2"]


def test_cycles_of_an_earlier_interval_are_nobodys() -> None:
    transport, box = slow_perf(COUNTED)
    box.observe(clear=True)
    transport.begins()
    assert box.observe(clear=True).perf_hz is None
    transport.end()
    assert box.observe().perf_hz is None, "what ended was begun before the interval"
    box.observe(clear=True)
    transport.begins()
    transport.end()
    assert box.observe(clear=True).perf_hz == 2.2e9, "of the interval that ends with this look"
    transport.begins()
    transport.end()
    assert len(transport.asked) == 3


@pytest.mark.parametrize(
    "said",
    [
        None,
        Said(stderr="<not supported>,,cycles,0,100.00,,\n"),
        Said(stderr="Error: no permission\n", returncode=255),
        Said(stderr=""),
    ],
)
def test_perf_that_cannot_count_is_tried_once_and_missed_by_nobody(said: Said | None) -> None:
    transport, box = slow_perf(said)
    looks = [box.observe(clear=True)]
    transport.begins()
    transport.end()
    looks += [box.observe(), box.observe(clear=True), box.observe()]
    assert all(one.perf_hz is None and not any("perf" in m.what for m in one.missing) for one in looks)
    assert len(transport.asked) == 1
