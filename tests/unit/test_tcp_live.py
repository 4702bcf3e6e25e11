"""The line that shows a TCP test while it goes on."""

from __future__ import annotations

import io

import pytest
from tcp_runs import Path, make_tcp_result

from trexbench.core.tcp.model import TcpEnvironment
from trexbench.report.tcp.live import TcpLive

ONE_KERNEL = TcpEnvironment(one_kernel=True, cpus={"client": (0,), "server": (1,), "dut": (2,)})


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (ONE_KERNEL, "CPU client 20.0 %, CPU server 50.0 %, CPU DUT 80.0 %"),
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
