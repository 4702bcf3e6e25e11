"""The line that shows a TCP test while it goes on."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from tcp_runs import Path, make_tcp_result

from trexbench.core.tcp.plan import TcpEnvironment
from trexbench.report.run.live import LINE_S
from trexbench.report.tcp.live import TcpLive

ONE_KERNEL = TcpEnvironment(one_kernel=True, cpus={"client": (0,), "server": (1,), "dut": (2,)})


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (ONE_KERNEL, "CPU client 20.0 %, CPU server 50.0 %, CPU DUT 80.0 %"),
        (replace(ONE_KERNEL, dut_is_guest=True), "CPU client 20.0 %, CPU server 50.0 %"),
        (TcpEnvironment(), "CPU client 50.0 %, CPU server 50.0 %"),
    ],
)
def test_hosts_of_one_kernel_are_shown_with_their_own_cpus(setup: TcpEnvironment, words: str) -> None:
    every = (0.2, 0.5, 0.8)
    result, stream = make_tcp_result(Path(cores={"client": every, "server": every}), setup=setup), io.StringIO()
    live = TcpLive(result, stream)
    live.begun(result.legs[0].leg)
    for client, server in zip(result.legs[0].client, result.legs[0].server, strict=True):
        live.seen("client", client)
        live.seen("server", server)
    assert f"{words}, " in stream.getvalue().splitlines()[-1]


@pytest.mark.parametrize(("speedup", "lines"), [(1.0, 3), (1.5, 2), (100.0, 0)])
def test_where_nothing_is_drawn_in_place_there_is_a_line_per_ten_real_seconds(speedup: float, lines: int) -> None:
    result, stream = make_tcp_result(), io.StringIO()
    live = TcpLive(result, stream, speedup)
    live.begun(result.legs[0].leg)
    for second in range(int(3 * LINE_S) + 1):
        live.seen("server", replace(result.legs[0].server[0], at_s=float(second)))
    assert len(stream.getvalue().splitlines()) == lines
