"""Opens what tests of TCP need, and measures one there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ...core.tcp.result import TcpResult
from ..keep import Measured, Output, Say, keep
from ..process import signals_as_exceptions
from .request import TcpRequest
from .run import Bench, run_tcp


def measure_tcp(request: TcpRequest, output: Output) -> Measured[TcpResult]:
    """Carry the request out. An error before the first leg is raised, a later one is in what is returned."""
    with signals_as_exceptions(), open_bench(request, output.say) as bench:
        return keep(partial(run_tcp, bench, request), output)


@contextmanager
def open_bench(request: TcpRequest, say: Say) -> Iterator[Bench]:
    """Bench that several tests of one DUT and variant share, until the end of the block."""
    if request.sim:
        from .simulate import SimulatedBench

        simulated = SimulatedBench(request)
        say(f"simulating {request.dut.name}: no packet is sent")
        yield simulated
        return
    from .bench import open_hosts

    with open_hosts(request, say) as bench:
        yield bench
