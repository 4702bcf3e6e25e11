"""The gain by a second sending core: two pairs of ports, sent on by one core or by one each.

Each core also receives, as a veth's frames are taken on the core that sends them. Runs alternate; medians are
compared. As root:

    python benchmarks/engine_cores.py [--repeats 5] [--seconds 1.5]
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from statistics import median

import _veth as veth
from _ratios import note, options
from _veth import EngineError, KernelEngine

CORES = (veth.SENDER_CPU, veth.RECEIVER_CPU)


def arriving_pps(engine: KernelEngine, seconds: float) -> float:
    """Frames per second that arrive on the second ports of both pairs, when far too many are asked for."""
    for port in (0, 2):
        engine.start(port, [veth.var2(*veth.MACS)], 50e6, 60.0)
    time.sleep(0.3)
    before, begun = [engine.counters(port).ipackets for port in (1, 3)], time.monotonic()
    time.sleep(seconds)
    after, passed_s = [engine.counters(port).ipackets for port in (1, 3)], time.monotonic() - begun
    for port in (0, 2):
        engine.stop(port)
    return (sum(after) - sum(before)) / passed_s


def compare(repeats: int, seconds: float) -> tuple[float, float]:
    """Frames per second by one core and by two."""
    with veth.veth_pair() as (netns, *names):
        more = [f"{name[0]}2{os.getpid()}"[:15] for name in names]
        veth.connect(netns, *more)
        seen: dict[int, list[float]] = {1: [], 2: []}
        for number in range(repeats):
            for cores in seen:
                engine = KernelEngine([*names, *more], speed_bps=100e9, netns=netns, cpus=CORES[:cores])
                with contextlib.closing(engine):
                    seen[cores].append(arriving_pps(engine, seconds))
            one, two = seen[1][-1], seen[2][-1]
            load = os.getloadavg()[0]
            print(f"run {number + 1}: {one / 1e6:.2f} and {two / 1e6:.2f} Mpps: {two / one:.2f}x (load {load:.1f})")
    return median(seen[1]), median(seen[2])


def main() -> int:
    args = options(__doc__, repeats=5, seconds=1.5)
    veth.need_root()
    try:
        one, two = compare(args.repeats, args.seconds)
    except EngineError as error:
        sys.exit(str(error))
    print(f"medians: one core {one / 1e6:.2f} Mpps, two {two / 1e6:.2f} Mpps: {two / one:.2f}x (1.8x is asked for)")
    note("two sending cores / one", two / one, noise=0.1, better="higher")
    return 0


if __name__ == "__main__":
    sys.exit(main())
