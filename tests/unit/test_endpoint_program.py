"""A program beside a TCP test, and what becomes of it when the test ends."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configs import BOX, shipped
from endpoints import host
from tcp_runs import Path as TcpPath
from tcp_runs import make_leg

from trexbench.config.schema import dut_of
from trexbench.core.dut.telemetry import Missing
from trexbench.core.errors import BenchError, DutError, StoreError
from trexbench.core.tcp.plan import HostReading, Leg, LegReadings, Ping, TcpEnvironment, TcpPlan, Way
from trexbench.core.tcp.wan import Wan
from trexbench.core.typed import Status
from trexbench.core.verdict.parts import RunWarning
from trexbench.dut import Attestation
from trexbench.endpoint.leg import run_program
from trexbench.results.store import load_tcp
from trexbench.session.keep import Output
from trexbench.session.loop import Interrupted
from trexbench.session.process import signals_as_exceptions
from trexbench.session.tcp.bench import HostsBench
from trexbench.session.tcp.hosts import Endpoint, Endpoints
from trexbench.session.tcp.legs import run_tcp
from trexbench.session.tcp.request import TcpRequest
from trexbench.session.tcp.simulate import SimulatedBench

pytestmark = pytest.mark.portable

LEG = Leg(Way.FORWARD)
REQUEST = TcpRequest(dut=dut_of(BOX, shipped("lab-linux")), plan=TcpPlan((LEG,), time_s=86400))


def alive(word: str) -> bool:
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word.encode() in one.read_bytes():
                return True
    return False


def test_a_program_is_run_to_its_end() -> None:
    done = run_program(host("client"), ("sh", "-c", "echo one; echo two >&2; exit 3"), 10, threading.Event())
    assert (done.stdout, done.stderr, done.returncode) == ("one\n", "two\n", 3)


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(DutError, match=r"no-such-program cannot be started .*install it$"):
        run_program(host("client"), ("no-such-program",), 10, threading.Event())


def test_a_program_ends_when_it_is_over() -> None:
    over, word = threading.Event(), "86397.25"

    def end_it() -> None:
        while not alive(f"sleep\0{word}"):
            time.sleep(0.05)
        over.set()

    threading.Thread(target=end_it, daemon=True).start()
    with pytest.raises(DutError, match="ended before its time"):
        run_program(host("client"), ("sleep", word), 90000, over)
    while alive(f"sleep\0{word}"):
        time.sleep(0.05)


class Breaking(SimulatedBench):
    """A bench whose legs break off at their first reading, beside echo requests of a day."""

    setup, warnings = TcpEnvironment(), (RunWarning("lab", "its host is busy"),)

    def __init__(self, raises: bool) -> None:
        super().__init__(replace(REQUEST, sim=True, speedup=1e9))
        self._raises, self.ended_early, self.begun = raises, False, threading.Event()

    def ping(self, leg: Leg, count: int, loaded: bool, over: threading.Event) -> Ping:
        if loaded:
            self.begun.set()
            self.ended_early = over.wait(60)
            raise DutError("it was ended")
        return Ping(leg, loaded, count, (0.001,) * count)

    def flow(self, leg: Leg, plan: TcpPlan, seen: Any, counters: Any) -> LegReadings:
        assert not self.begun.wait(0.05), "nothing loads the path yet"
        seen("client", HostReading(0.0))
        assert self.begun.wait(60)
        if self._raises:
            raise DutError("the client cannot be reached")
        return LegReadings(leg, 0.0, error="the server was killed")

    def ping_line(self, leg: Leg, count: int) -> Any:
        return self.ping(leg, count, False, threading.Event())


@pytest.mark.parametrize("raises", [False, True])
def test_echo_requests_end_with_a_leg_that_breaks_off(raises: bool) -> None:
    bench = Breaking(raises)
    done = run_tcp(bench, REQUEST, Output())
    assert done.result.warnings[0].text == "its host is busy"
    assert isinstance(done.error, BenchError) and bench.ended_early


class Interrupting(Breaking):
    """An interruption comes at the fourth second of a leg. carries: whether the readings until then have payload."""

    def __init__(self, carries: bool) -> None:
        super().__init__(False)
        self._carries = carries

    def flow(self, leg: Leg, plan: TcpPlan, seen: Any, counters: Any) -> LegReadings:
        begun = make_leg(replace(plan, time_s=3.0), leg, TcpPath(bps=80e6))
        self.clock.sleep_until(7.0)
        for role, readings in (("client", begun.client), ("server", begun.server)):
            for reading in readings:
                seen(role, reading if self._carries else replace(reading, streams=()))
        counters += [*begun.dut, Missing("the DUT's counters", "it hangs")]
        raise Interrupted("Ctrl-C", 130)


@pytest.mark.parametrize("carries", [True, False])
def test_an_interrupted_leg_is_kept_as_far_as_it_came(carries: bool) -> None:
    done = run_tcp(Interrupting(carries), REQUEST, Output())
    assert isinstance(done.error, Interrupted) and done.result.status is Status.INCOMPLETE
    assert [leg.error for leg in done.result.legs] == ["interrupted by Ctrl-C"] * carries
    assert [(leg.began_s, len(leg.dut), len(leg.missing)) for leg in done.result.legs] == [(7.0, 2, 1)] * carries
    assert [one.rate_bps for one in done.result.summaries] == [pytest.approx(80e6)] * carries


@pytest.mark.parametrize("delay_s", [0.0005, 0.02])
def test_a_line_with_another_delay_than_the_wan_is_refused(delay_s: float) -> None:
    """Echo requests take 1 ms, more than twice as long as the first line, far less than the second."""
    bench = Breaking(True)
    bench.setup = TcpEnvironment(wan=Wan(delay_s), wan_by="netem")
    done = run_tcp(bench, REQUEST, Output())
    assert done.result.calibration is not None and len(done.result.calibration.pings) == 1
    said = "round trips are 1.00 ms at least and 1.00 ms in the median, with a delay of 20.0 ms"
    assert (said in str(done.error)) == (delay_s == 0.02)


def test_what_was_begun_is_ended_whatever_signal_comes(tmp_path: Path) -> None:
    def interrupt(_path: Path) -> None:
        signal.raise_signal(signal.SIGTERM)  # in the very moment in which the document is begun

    def fail(_path: Path) -> None:
        raise StoreError("no space left")

    with signals_as_exceptions():
        done = run_tcp(Breaking(True), REQUEST, Output(tmp_path), interrupt)
    assert isinstance(done.error, Interrupted) and done.error.exit_code == 143 and done.path is not None
    assert load_tcp(done.path).status is done.result.status is Status.INCOMPLETE
    with pytest.raises(StoreError, match="no space left"):
        run_tcp(Breaking(True), REQUEST, Output(tmp_path), fail)


@pytest.mark.parametrize(
    ("told", "stated", "line_bps"),
    [
        ((1000, 1000), None, 1e9),
        ((1000, 100), None, 1e8),
        ((1000, 1000), 1e8, 1e8),  # a switch between them is faster than the DUT's ports
        ((100, 1000), 1e9, 1e8),
        ((1000, None), None, None),
        ((1000, -1), 1e9, 1e9),
    ],
)
def test_the_line_is_the_slowest_that_is_known(told: Any, stated: float | None, line_bps: float | None) -> None:
    nobody: Any = None
    ends = []
    for role, mbps in zip(("client", "server"), told, strict=True):
        found = Attestation(role, "linux", True, facts={"interfaces": {"e": {"speed_mbps": mbps, "mtu": 1500}}})
        more: dict[str, Any] = {"connected": nobody, "attestation": found}
        ends.append(Endpoint(role, nobody, {}, interface="e", bypass={}, bypass_interface="", **more))
    bench = HostsBench(Endpoints(*ends, nobody, ends[0].attestation), nobody, nobody, speed_bps=stated)
    assert (bench.setup.line_bps, bench.setup.mtu) == (line_bps, 1500)
