"""The kernel engine's rate beside the asked one: one-second windows of a ramp to 70 % of its maximum.

The ramp runs on a veth pair whose sink drops, or (--router, --bidir) through a Linux router in a namespace; there
the loss beside each rate shows the router's knee. As root:

    python benchmarks/engine_fidelity.py [--seconds 30] [--share 0.7] [--router] [--bidir]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time

import _veth as veth
from _ratios import leave_out, note
from _veth import EngineError, KernelEngine

ALLOWED = 0.005
STEP_S = 0.1
STOLEN_S = 0.002
QUIET_SHARE = 0.3
"""Share of windows that must be undisturbed for ratios to be noted."""
RATIOS = {
    "off the asked rate, median": "quiet_median_miss",
    "windows within 0.5 % of the asked rate": "quiet_share_within",
}


def taken_s() -> float:
    """For how long others have had the sender's CPU: processes of this machine, and the machine's host (steal)."""
    sender = next(one for one in threading.enumerate() if one.name == "trexbench-sender")
    with open(f"/proc/self/task/{sender.native_id}/schedstat") as file:
        waited_ns = int(file.read().split()[1])
    with open("/proc/stat") as file:
        steal = next(int(line.split()[8]) for line in file if line.startswith(f"cpu{veth.SENDER_CPU} "))
    return waited_ns / 1e9 + steal / os.sysconf("SC_CLK_TCK")


def maximum_pps(engine: KernelEngine, ports: list[int], streams: list[veth.StreamSpec]) -> float:
    """The rate of each port when asked for far too much."""
    for port in ports:
        engine.start(port, [streams[port]], 50e6, 30.0)
    time.sleep(0.5)
    window = veth.measure(engine, ports[0], 1 - ports[0], 2.0)
    for port in ports:
        engine.stop(port)
    return window.sent_pps


def ramp(
    engine: KernelEngine, ports: list[int], streams: list[veth.StreamSpec], top_pps: float, seconds: int
) -> list[dict[str, float]]:
    """Raise the rate ten times a second; per port and window, what was asked, sent and received."""
    for port in ports:
        engine.start(port, [streams[port]], top_pps / seconds / 10, seconds + 10.0)
    begin = time.monotonic()
    rows: list[dict[str, float]] = []
    rate = 0.0
    for second in range(seconds):
        before, waited = [engine.counters(port) for port in (0, 1)], taken_s()
        then, asked = time.monotonic(), 0.0
        for step in range(round(1 / STEP_S)):
            since = time.monotonic()
            rate = top_pps * (second + step * STEP_S + STEP_S / 2) / seconds
            for port in ports:
                engine.update(port, rate)
            due = begin + second + (step + 1) * STEP_S
            time.sleep(max(0.0, due - time.monotonic()))
            asked += rate * (time.monotonic() - since)
        after, now = [engine.counters(port) for port in (0, 1)], time.monotonic()
        stolen = taken_s() - waited
        for port in ports:
            sent = after[port].opackets - before[port].opackets
            received = after[1 - port].ipackets - before[1 - port].ipackets
            row = {
                "port": port,
                "seconds": now - then,
                "asked": asked,
                "sent": sent,
                "received": received,
                "stolen": stolen,
            }
            rows.append({**row, "miss": sent / asked - 1, "loss": 1 - received / max(sent, 1)})
    for port in ports:
        engine.stop(port)
    return rows


def report(rows: list[dict[str, float]], show_loss: bool) -> dict[str, float]:
    for row in rows:
        loss = f", loss {100 * row['loss']:6.2f} %" if show_loss else ""
        print(
            f"port {row['port']:.0f}: asked {row['asked'] / row['seconds'] / 1e6:7.4f} Mpps, sent "
            f"{row['sent'] / row['seconds'] / 1e6:7.4f}, off by {100 * row['miss']:+7.3f} %{loss}"
            + (f" (others had the CPU for {1e3 * row['stolen']:.1f} ms)" if row["stolen"] > STOLEN_S else "")
        )
    misses = [abs(row["miss"]) for row in rows]
    quiet = [abs(row["miss"]) for row in rows if row["stolen"] <= STOLEN_S]
    return {
        "quiet_windows": len(quiet),
        "quiet_median_miss": veth.median(quiet or [0.0]),
        "quiet_worst_miss": max(quiet, default=0.0),
        "quiet_share_within": sum(miss <= ALLOWED for miss in quiet) / max(len(quiet), 1),
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
        f"undisturbed windows (others, the host among them, had the sender's CPU for {1e3 * STOLEN_S:.0f} ms at most): "
        f"{result['quiet_windows']}, {100 * result['quiet_share_within']:.1f} % within 0.5 %; off by "
        f"{100 * result['quiet_median_miss']:.3f} % in the median, {100 * result['quiet_worst_miss']:.3f} % at worst"
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
