"""The kernel engine's rate beside the asked one: one-second windows of a ramp to 70 % of its maximum.

The ramp runs on a veth pair whose sink drops, or (--router, --bidir) through a Linux router in a namespace; there
the loss beside each rate shows the router's knee. --give-up: catch up with nothing that is late beyond the credit. As
root:

    python benchmarks/engine_fidelity.py [--seconds 30] [--share 0.7] [--router] [--bidir] [--give-up]
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import _veth as veth
from _ratios import Options, leave_out, note, options
from _veth import EngineError, KernelEngine

from trexbench.stlserver.engine import EngineCounters, PortLoad

ALLOWED = 0.005
STEP_S = 0.1
TAKEN_S = 0.002
LOOKS, SNAPSHOT_S = 3, 0.006
"""Looks at the engine at a window's edge, and between them, since a look's counters last so long."""
QUIET_SHARE = 0.3
"""Share of windows that must be undisturbed for ratios to be noted."""


def maximum_pps(engine: KernelEngine, ports: list[int], streams: list[veth.StreamSpec]) -> float:
    """The rate of each port when asked for far too much."""
    for port in ports:
        engine.start(port, [streams[port]], 50e6, 30.0)
    time.sleep(0.5)
    window = veth.measure(engine, ports[0], 1 - ports[0], 2.0)
    for port in ports:
        engine.stop(port)
    return window.sent_pps


@dataclass(frozen=True)
class Edge:
    """One look at the engine. at_s: between the clock's readings before and after it, which are ``wide_s`` apart."""

    at_s: float
    wide_s: float
    counters: tuple[EngineCounters, EngineCounters]
    load: Mapping[int, PortLoad]

    @classmethod
    def now(cls, engine: KernelEngine) -> Edge:
        """The narrowest of some looks: the harness may be put aside within one."""
        looks = []
        for _ in range(LOOKS):
            before = time.monotonic()
            counters = engine.counters(0), engine.counters(1)
            after = time.monotonic()
            looks.append(cls((before + after) / 2, after - before, counters, engine.load()))
            time.sleep(SNAPSHOT_S)
        return min(looks, key=lambda look: look.wide_s)


def ramp(
    engine: KernelEngine, ports: list[int], streams: list[veth.StreamSpec], top_pps: float, seconds: int
) -> list[dict[str, float]]:
    """Raise the rate ten times a second; per port and window, what was asked, sent and received, and what it lacks."""
    for port in ports:
        engine.start(port, [streams[port]], top_pps / seconds / 10, seconds + 20.0)
    begin = time.monotonic()
    rates = [(begin, top_pps / seconds / 10)]
    edges = [Edge.now(engine)]
    for second in range(seconds):
        for step in range(round(1 / STEP_S)):
            rate = top_pps * (second + step * STEP_S + STEP_S / 2) / seconds
            before = time.monotonic()
            for port in ports:
                engine.update(port, rate)
            rates.append(((before + time.monotonic()) / 2, rate))
            time.sleep(max(0.0, begin + second + (step + 1) * STEP_S - time.monotonic()))
        edges.append(Edge.now(engine))
    for port in ports:
        engine.stop(port)
    return [row(port, then, now, rates) for then, now in itertools.pairwise(edges) for port in ports]


def row(port: int, then: Edge, now: Edge, rates: list[tuple[float, float]]) -> dict[str, float]:
    ends = [*(at_s for at_s, _ in rates[1:]), math.inf]
    asked = sum(
        rate * max(0.0, min(end, now.at_s) - max(at_s, then.at_s))
        for (at_s, rate), end in zip(rates, ends, strict=True)
    )
    sent = now.counters[port].opackets - then.counters[port].opackets
    received = now.counters[1 - port].ipackets - then.counters[1 - port].ipackets
    before, after = then.load[port], now.load[port]
    late = after.queue_full - before.queue_full
    waited_ns = (after.waited_ns or 0) - (before.waited_ns or 0)
    return {
        "port": port,
        "seconds": now.at_s - then.at_s,
        "edges": then.wide_s + now.wide_s,
        "asked": asked,
        "sent": sent,
        "received": received,
        "late": late,
        "waited": waited_ns / 1e9,
        "stolen": ((after.stolen_ns or 0) - (before.stolen_ns or 0)) / 1e9,
        "preempted": (after.preempted or 0) - (before.preempted or 0),
        "miss": sent / asked - 1,
        "unexplained": (sent + late) / asked - 1,
        "loss": 1 - received / max(sent, 1),
    }


def show(row: dict[str, float], with_loss: bool) -> None:
    loss = f", loss {100 * row['loss']:6.2f} %" if with_loss else ""
    print(
        f"port {row['port']:.0f}: asked {row['asked'] / row['seconds'] / 1e6:7.4f} Mpps, sent "
        f"{row['sent'] / row['seconds'] / 1e6:7.4f}, off by {100 * row['miss']:+7.3f} %{loss}"
        f"; late {100 * row['late'] / row['asked']:6.3f} %, else {100 * row['unexplained']:+7.3f} %, edges "
        f"{1e3 * row['edges']:.1f} ms; waited {1e3 * row['waited']:.1f} ms in {row['preempted']:.0f} times, stolen "
        f"{1e3 * row['stolen']:.0f} ms"
    )


def within(misses: list[float]) -> float:
    """The share of the windows that were near enough."""
    return sum(miss <= ALLOWED for miss in misses) / max(len(misses), 1)


def told(misses: list[float]) -> str:
    """The errors of so many windows."""
    middle, worst = median(misses or [0.0]), max(misses, default=0.0)
    return (
        f"{100 * within(misses):.1f} % within 0.5 % of asked; off by {100 * middle:.3f} % in the median, "
        f"{100 * worst:.3f} % at worst"
    )


def measure(args: Options) -> tuple[float, list[dict[str, float]]]:
    """The maximum of a port, and the windows."""
    ports = [0, 1] if args.bidir else [0]
    if args.router or args.bidir:
        with veth.router() as (netns, macs):
            streams = [veth.var2(veth.MACS[n], macs[n], mirrored=n == 1) for n in (0, 1)]
            return on(["p0", "p1"], netns, ports, streams, args)
    with veth.veth_pair() as (netns, out, into):
        return on([out, into], netns, ports, [veth.var2(*veth.MACS)] * 2, args)


def on(
    names: list[str], netns: str, ports: list[int], streams: list[veth.StreamSpec], args: Options
) -> tuple[float, list[dict[str, float]]]:
    engine = KernelEngine(names, speed_bps=100e9, netns=netns, cpus=[veth.SENDER_CPU])
    for port in engine._ports if args.give_up else ():
        port.owed_most_s = 0.0
    with contextlib.closing(engine):
        if not (args.router or args.bidir):
            veth.pin_napi(names[1], netns, veth.RECEIVER_CPU)
        os.sched_setaffinity(0, {veth.RECEIVER_CPU})
        most = maximum_pps(engine, ports, streams)
        return most, ramp(engine, ports, streams, most * args.share, args.seconds)


def main() -> int:
    args = options(__doc__, seconds=30, share=0.7, router=False, bidir=False, give_up=False)
    veth.need_root()
    try:
        most, rows = measure(args)
    except EngineError as error:
        sys.exit(str(error))
    for row in rows:
        show(row, args.router or args.bidir)
    misses = [abs(row["miss"]) for row in rows]
    quiet = [abs(row["miss"]) for row in rows if row["waited"] + row["stolen"] <= TAKEN_S]
    print(
        f"maximum {most / 1e6:.3f} Mpps a port; of {len(misses)} windows up to {100 * args.share:.0f} % of it, "
        f"{told(misses)}"
    )
    print(
        f"undisturbed windows (others, the host among them, had the sender's CPU for {1e3 * TAKEN_S:.0f} ms at most): "
        f"{len(quiet)}, {told(quiet)}"
    )
    unexplained = told([abs(row["unexplained"]) for row in rows])
    print(f"with frames given up as late (queue_full): {unexplained}; load {os.getloadavg()[0]:.1f}")
    names = ("off the asked rate, median", "windows within 0.5 % of the asked rate")
    if len(quiet) >= QUIET_SHARE * len(rows):
        note(names[0], median(quiet), noise=0.5)
        note(names[1], within(quiet), noise=0.5, better="higher")
    else:
        for name in names:
            leave_out(name, f"{len(quiet)} of {len(rows)} windows were undisturbed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
