"""However the server ends, its ports fall silent: counted where the frames arrive, behind the wire."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest
from calls import stream
from rpc import RawClient
from sshd import eventually

from trexbench.config.lookup import load_dut
from trexbench.lab import Lab, LabSpec, RunningLab
from trexbench.lab.net import inside
from trexbench.transport import NetnsTransport

pytestmark = pytest.mark.root


def send_without_end(rpc_port: int) -> None:
    """10 000 packets/s on port 0, for ever, as a client that is gone a moment later leaves them."""
    client = RawClient("127.0.0.1", rpc_port)
    client.sync()
    common = {"port_id": 0, "user": "me", "session_id": 1, "force": True, "duration": -1}
    owned = {**common, "handler": client.call("acquire", common)["result"]}
    mul = {"type": "pps", "op": "abs", "value": 10_000}
    client.call("add_stream", {**owned, "stream_id": 1, "stream": stream()})
    assert client.call("start_traffic", {**owned, "mul": mul})["result"]["multiplier"] == 10_000
    client.close()


def arrived(lab: RunningLab) -> int:
    """Frames that came to the DUT's side of port 0."""
    name = lab.spec.dut_interfaces[0]
    done = NetnsTransport(lab.spec.dut).run(["cat", f"/sys/class/net/{name}/statistics/rx_packets"], 10)
    return int(done.stdout)


def is_silent(lab: RunningLab) -> bool:
    before = arrived(lab)
    time.sleep(0.3)
    return arrived(lab) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_frame_after_the_servers_end(number: signal.Signals) -> None:
    config = load_dut("lab-linux").with_lab_prefix(f"tbs{os.getpid()}")
    spec = replace(LabSpec.from_config(config), speed_bps=None)
    with Lab(spec).running() as lab, inside(spec.tester):
        send_without_end(spec.rpc_port)
        before = arrived(lab)  # the client is gone, the traffic is not: TRex's way
        eventually(lambda: arrived(lab) > before + 1000, "it sends")
        os.kill(lab.server.process.pid, number)
        eventually(lambda: lab.ended, "it has ended")
        eventually(lambda: is_silent(lab), "what was on its way has arrived")
