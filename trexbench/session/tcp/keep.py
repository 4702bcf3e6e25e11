"""Measures TCP and keeps it: in a document that is current after each leg, shown while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ...core.errors import BenchError
from ...core.tcp.model import HostReading, Leg
from ...core.tcp.result import TcpResult
from ...results.store import RunWriter
from ..keep import picture_form, write_picture
from ..process import signals_as_exceptions
from ..run import Interrupted
from .request import TcpRequest
from .run import Bench, run_tcp

Say = Callable[[str], None]


class TcpDisplay(Protocol):
    """Display of a test while it goes on; it handles its own failures."""

    def begun(self, leg: Leg) -> None: ...

    def seen(self, host: str, reading: HostReading) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class TcpOutput:
    """results: the directory of the documents, None keeps none. say: gets a line per step; warn: per failure that ends
    no measurement. show: opens what shows a test while it goes on.
    """

    results: Path | None = None
    say: Say = lambda _: None
    warn: Say = lambda _: None
    show: Callable[[TcpResult], TcpDisplay] | None = None


@dataclass(frozen=True)
class TcpMeasured:
    """One test as it ended. error: what ended it early, None: all was measured. path: of its document."""

    result: TcpResult
    error: BenchError | Interrupted | None
    path: Path | None


class _Keeper:
    """A TcpRecorder."""

    def __init__(self, output: TcpOutput, begun: Callable[[Path], None]) -> None:
        self._output, self._begun = output, begun
        self._writer = RunWriter(output.results, output.warn) if output.results is not None else None
        self._shown: TcpDisplay | None = None

    @property
    def path(self) -> Path | None:
        return self._writer.path if self._writer is not None else None

    def begin(self, result: TcpResult) -> None:
        if self._writer is not None:
            self._writer.begin(result)
            if self._writer.path is not None:
                self._begun(self._writer.path)
        if self._output.show is not None:
            self._shown = self._output.show(result)

    def begun(self, leg: Leg) -> None:
        if self._shown is not None:
            self._shown.begun(leg)

    def seen(self, host: str, reading: HostReading) -> None:
        if self._shown is not None:
            self._shown.seen(host, reading)

    def ended(self, result: TcpResult) -> None:
        if self._writer is not None:
            self._writer.update(result)

    def end(self, result: TcpResult) -> None:
        self.close()
        if self._writer is not None:
            self._writer.end(result)

    def close(self) -> None:
        if self._shown is not None:
            self._shown.close()
            self._shown = None


def measure_tcp(request: TcpRequest, output: TcpOutput) -> TcpMeasured:
    """Carry the request out. An error before the first leg is raised, a later one is in what is returned."""
    with signals_as_exceptions(), open_bench(request, output.say) as bench:
        return measure_there(request, bench, output)


def measure_there(
    request: TcpRequest, bench: Bench, output: TcpOutput, begun: Callable[[Path], None] = lambda _: None
) -> TcpMeasured:
    """Carry the request out on a bench that is open. begun: gets the document's path once there is one."""
    keeper = _Keeper(output, begun)
    try:
        result, error = run_tcp(request, bench, keeper)
    finally:
        keeper.close()
    return TcpMeasured(result, error, keeper.path)


def draw_tcp_run(result: TcpResult, path: Path) -> Path:
    """Draw the run into this file, in the format of its ending; StoreError where it cannot be written."""
    form = picture_form(path)
    from ...report.tcp.picture import draw_tcp  # matplotlib is slow to load, and not needed before the run is over

    return write_picture(path, draw_tcp(result, form))


@contextmanager
def open_bench(request: TcpRequest, say: Say) -> Iterator[Bench]:
    """Bench that several tests of one DUT and variant share, until the end of the block."""
    if request.setup.sim:
        from .simulate import SimulatedBench

        simulated = SimulatedBench(request)
        say(f"simulating {request.dut.name}: no packet is sent")
        yield simulated
        return
    from .bench import open_hosts

    with open_hosts(request, say) as bench:
        yield bench
