"""The kernel engine's rate beside the asked one: one-second windows of a ramp to 70 % of its maximum.

The ramp runs on a veth pair whose sink drops, or (--router, --bidir) through a Linux router in a namespace; there
the loss beside each rate shows the router's knee. As root:

    python benchmarks/engine_fidelity.py [--seconds 30] [--share 0.7] [--router] [--bidir]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import time
from dataclasses import dataclass

import _veth as veth
from _ratios import leave_out, note
from _veth import EngineError, KernelEngine

from trexbench.stlserver.engine import EngineCounters, EngineLoad

ALLOWED = 0.005
STEP_S = 0.1
TAKEN_S = 0.002
LOOKS, SNAPSHOT_S = 3, 0.006
"""Looks at the engine at a window's edge, and between them, since a look's counters last so long."""
QUIET_SHARE = 0.3
"""Share of windows that must be undisturbed for ratios to be noted."""
RATIOS = {
    "off the asked rate, median": "quiet_median_miss",
    "windows within 0.5 % of the asked rate": "quiet_share_within",
}


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
    load: EngineLoad

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
    before, after = then.load.ports[port], now.load.ports[port]
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


def report(rows: list[dict[str, float]], show_loss: bool) -> dict[str, float]:
    for row in rows:
        loss = f", loss {100 * row['loss']:6.2f} %" if show_loss else ""
        print(
            f"port {row['port']:.0f}: asked {row['asked'] / row['seconds'] / 1e6:7.4f} Mpps, sent "
            f"{row['sent'] / row['seconds'] / 1e6:7.4f}, off by {100 * row['miss']:+7.3f} %{loss}"
            f"; late {100 * row['late'] / row['asked']:6.3f} %, else {100 * row['unexplained']:+7.3f} %, edges "
            f"{1e3 * row['edges']:.1f} ms; waited {1e3 * row['waited']:.1f} ms in {row['preempted']:.0f} times, stolen "
            f"{1e3 * row['stolen']:.0f} ms"
        )
    misses = [abs(row["miss"]) for row in rows]
    quiet = [abs(row["miss"]) for row in rows if row["waited"] + row["stolen"] <= TAKEN_S]
    else_off = [abs(row["unexplained"]) for row in rows]
    return {
        "quiet_windows": len(quiet),
        "quiet_median_miss": veth.median(quiet or [0.0]),
        "quiet_worst_miss": max(quiet, default=0.0),
        "quiet_share_within": sum(miss <= ALLOWED for miss in quiet) / max(len(quiet), 1),
        "unexplained_median": veth.median(else_off),
        "unexplained_within": sum(miss <= ALLOWED for miss in else_off) / len(rows),
        "windows": len(rows),
        "median_miss": veth.median(misses),
        "worst_miss": max(misses),
        "share_within": sum(miss <= ALLOWED for miss in misses) / len(misses),
    }


def measure(args: argparse.Namespace) -> dict[str, float]:
    ports = [0, 1] if args.bidir else [0]
    if args.router or args.bidir:
        with veth.router() as (netns, macs):
            streams = [veth.var2(veth.MACS[n], macs[n], mirrored=n == 1) for n in (0, 1)]
            return on(["p0", "p1"], netns, ports, streams, args, pin=False)
    with veth.veth_pair() as (netns, out, into):
        return on([out, into], netns, ports, [veth.var2(*veth.MACS)] * 2, args, pin=True)


def on(
    names: list[str],
    netns: str,
    ports: list[int],
    streams: list[veth.StreamSpec],
    args: argparse.Namespace,
    *,
    pin: bool,
) -> dict[str, float]:
    engine = KernelEngine(names, speed_bps=100e9, netns=netns, cpus=[veth.SENDER_CPU])
    for port in engine._ports if args.give_up else ():
        port.owed_most_s = 0.0
    try:
        if pin:
            veth.pin_napi(names[1], netns, veth.RECEIVER_CPU)
        os.sched_setaffinity(0, {veth.RECEIVER_CPU})
        most = maximum_pps(engine, ports, streams)
        rows = ramp(engine, ports, streams, most * args.share, args.seconds)
        return {"maximum_pps": most, **report(rows, show_loss=not pin)}
    finally:
        engine.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=30, help="length of the ramp")
    parser.add_argument("--share", type=float, default=0.7, help="of the engine's maximum")
    parser.add_argument("--router", action="store_true")
    parser.add_argument("--bidir", action="store_true")
    parser.add_argument("--give-up", action="store_true", help="catch up with nothing that is late beyond the credit")
    parser.add_argument("--json", action="store_true", help="one line of JSON at the end")
    args = parser.parse_args()
    veth.need_root()
    try:
        result = measure(args)
    except EngineError as error:
        sys.exit(str(error))
    print(
        f"maximum {result['maximum_pps'] / 1e6:.3f} Mpps a port; of {result['windows']} windows up to "
        f"{100 * args.share:.0f} % of it, {100 * result['share_within']:.1f} % within 0.5 % of asked; "
        f"off by {100 * result['median_miss']:.3f} % in the median, {100 * result['worst_miss']:.3f} % at worst"
    )
    print(
        f"undisturbed windows (others, the host among them, had the sender's CPU for {1e3 * TAKEN_S:.0f} ms at most): "
        f"{result['quiet_windows']}, {100 * result['quiet_share_within']:.1f} % within 0.5 %; off by "
        f"{100 * result['quiet_median_miss']:.3f} % in the median, {100 * result['quiet_worst_miss']:.3f} % at worst"
    )
    print(
        f"with frames given up as late (queue_full): {100 * result['unexplained_within']:.1f} % within 0.5 %, off by "
        f"{100 * result['unexplained_median']:.3f} % in the median; load {os.getloadavg()[0]:.1f}"
    )
    for name, ratio in RATIOS.items():
        if result["quiet_windows"] >= QUIET_SHARE * result["windows"]:
            note(name, result[ratio], noise=0.5, better="higher" if "within" in ratio else "lower")
        else:
            leave_out(name, f"{result['quiet_windows']:.0f} of {result['windows']:.0f} windows were undisturbed")
    if args.json:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
