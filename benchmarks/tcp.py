"""The embedded endpoint's rate beside the genuine iperf3's, on loopback, and the cost of a reading each second.

Runs alternate; medians are compared, of the payload that the receiver got:

    python benchmarks/tcp.py [--repeats 5] [--seconds 3] [--iperf3 PROGRAM]
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import statistics
import time
from collections.abc import Mapping, Sequence

from _ratios import note, options, skip

from trexbench.core.tcp.plan import HostReading, Leg, TcpPlan, Way
from trexbench.endpoint.engines import Embedded, Iperf3, TcpEngine
from trexbench.endpoint.hosts import EndpointHost
from trexbench.endpoint.leg import run_leg
from trexbench.endpoint.programs import payload
from trexbench.transport import LocalTransport

PORT = 5299
ADDRESSES = {4: "127.0.0.1", 6: "::1"}


def gbit_per_s(readings: Sequence[HostReading]) -> float:
    """The payload rate of one host's program."""
    first, last = readings[0], readings[-1]
    got = sum(one.payload_bytes for one in last.streams) - sum(one.payload_bytes for one in first.streams)
    return got * 8e-9 / (last.at_s - first.at_s)


def carried(engine: TcpEngine, leg: Leg, plan: TcpPlan) -> float:
    client, server = (EndpointHost(name, LocalTransport(), ADDRESSES) for name in ("client", "server"))
    found = run_leg(plan, leg, client, server, PORT, engines=(engine, engine))
    if found.error:
        raise SystemExit(found.error)
    return gbit_per_s(found.client if leg.way is Way.REVERSE else found.server)


def reading_cost_s(streams: int, times: int = 300) -> float:
    """CPU time of one reading on the host, as the agent makes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(streams)]
        ends = [payload.PayloadStream(number, True, sock) for number, sock in enumerate(clients, 1)]
        begun = time.process_time()
        for _ in range(times):
            json.dumps(payload.reading(ends, os.getpid(), begun))
        return (time.process_time() - begun) / times


def compare_readings(repeats: int, seconds: float) -> None:
    """Compare a flow read once a second with one read at its ends only."""
    rates: dict[float, list[float]] = {1.0: [], seconds: []}
    for _ in range(repeats):
        for interval_s, found in rates.items():
            found.append(carried(Embedded(), Leg(Way.FORWARD), TcpPlan((), 1, seconds, interval_s)))
    read, unread = (statistics.median(found) for found in rates.values())
    each = " ".join(f"{a:.0f}/{b:.0f}" for a, b in zip(*rates.values(), strict=True))
    print(f"{'read once a second, only at its ends':36}{read:>9.1f}{unread:>10.1f}{read / unread:>8.2f}   {each}")
    note("read once a second / only at its ends", read / unread, noise=0.3, better="higher")


def main() -> None:
    asked = options(__doc__, repeats=5, seconds=3.0, iperf3="iperf3")
    if shutil.which(asked.iperf3) is None:
        skip(f"{asked.iperf3} is missing; install it: apt-get install iperf3")
    engines: Mapping[str, TcpEngine] = {"iperf3": Iperf3(asked.iperf3), "embedded": Embedded()}
    cost_s = reading_cost_s(4)
    print(f"one reading of 4 streams: {cost_s * 1e3:.2f} ms of CPU, at 1 Hz {cost_s:.2%} of a core")
    print(f"{'Gbit/s':36}{'iperf3':>9}{'embedded':>10}{'ratio':>8}   each run")
    for leg, streams, zerocopy in (
        (Leg(Way.FORWARD), 1, False),
        (Leg(Way.REVERSE), 1, False),
        (Leg(Way.FORWARD), 4, False),
        (Leg(Way.FORWARD, 6), 1, False),
        (Leg(Way.FORWARD), 1, True),
    ):
        rates: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(asked.repeats):
            for name, engine in engines.items():
                plan = TcpPlan((), streams, asked.seconds, 1.0, zerocopy=zerocopy)
                rates[name].append(carried(engine, leg, plan))
        genuine, embedded = (statistics.median(rates[name]) for name in engines)
        what = f"{leg}, {streams} stream{'s' * (streams > 1)}{', zerocopy' * zerocopy}"
        each = " ".join(f"{a:.0f}/{b:.0f}" for a, b in zip(*rates.values(), strict=True))
        print(f"{what:36}{genuine:>9.1f}{embedded:>10.1f}{embedded / genuine:>8.2f}   {each}", flush=True)
        note(f"embedded / iperf3: {what}", embedded / genuine, noise=0.4, better="higher")
    compare_readings(asked.repeats, max(2.0, asked.seconds))


if __name__ == "__main__":
    main()
