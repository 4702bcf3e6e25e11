"""The cost of the harness itself: CPU time of a whole ramp (loop, client, document, live view) over its wall time.

    python benchmarks/harness_cpu.py [--seconds 20] [--repeat 3]

The embedded server runs in a process of its own and moves no packets, so that what is counted is the harness alone.
Aims: 1 Hz on 2 ports under 3 % of a core, 10 Hz on 8 ports under 15 %.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from _ratios import ROOT, note, options, yardstick_s
from tools import server_apart

from trexbench.core.load.plan import Offer, pair_directions
from trexbench.core.result import RunResult, Status
from trexbench.core.strategy.ramp import Ramp
from trexbench.generator.trex.connect import ServerAddress, connect
from trexbench.report.run.text import open_live
from trexbench.results.store import RunWriter
from trexbench.session.loop import run
from trexbench.session.process import RunClock

CASES = ((2, 1.0, 3.0), (8, 0.1, 15.0))
"""Ports, seconds between samples, the aim in percent of a core."""


class _Terminal(io.StringIO):
    """Draws as on a terminal, to nowhere."""

    def isatty(self) -> bool:
        return True


def measure(port_count: int, sample_s: float, seconds: float) -> float:
    """Percent of a core."""
    ports, clock = tuple(range(port_count)), RunClock()
    with (
        server_apart(ports=port_count) as (server, _),
        connect(ServerAddress("127.0.0.1", server.rpc_port, server.pub_port), ports, clock) as generator,
        tempfile.TemporaryDirectory() as folder,
    ):
        directions = pair_directions(ports, bidir=True)
        profile = generator.load(ROOT / "stl_profiles" / "bench.py", {"size": "64", "vm": "var2"}, ports)[0]
        line = profile.line_rate_pps(10e9)
        offers = tuple(Offer(one, 10e9, profile.mean_frame_bytes, line, 0.97 * line) for one in directions)
        plan = Ramp(offers, warmup_s=2.0, ramp_s=seconds, hold_s=0.0, confirm_s=0.0, sample_s=sample_s)
        result = RunResult(
            id="x", started="2000-01-01T00:00:00Z", status=Status.RUNNING, plan=plan, profiles={}, generator={},
            command={"verb": "ramp", "mode": "var2-64b", "direction": "bidir"}, dut={"name": "none"}, host={},
            samples=(),
        )  # fmt: skip
        writer = RunWriter(Path(folder), print).begin(result)
        with open_live(result, _Terminal()) as live:
            cpu, wall = time.process_time(), time.monotonic()
            outcome = run(plan, generator, clock, [writer, live])
            writer.end(replace(result, samples=tuple(outcome.samples), status=Status.COMPLETE))
            cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        if outcome.error is not None:
            raise outcome.error
        return 100 * cpu / wall


def main() -> int:
    asked = options(__doc__, seconds=20.0, repeat=3)
    failed = False
    for port_count, sample_s, aim in CASES:
        found = [measure(port_count, sample_s, asked.seconds) for _ in range(asked.repeat)]
        middle = statistics.median(found)
        failed |= middle > aim
        what = f"{port_count} ports at {1 / sample_s:g} Hz"
        note(f"{what}, CPU of a second / yardstick", middle / 100 / yardstick_s(), noise=0.5)
        shown = ", ".join(f"{one:.2f}" for one in found)
        print(f"{what}: {middle:.2f} % of a core (median of {shown}); aim {aim:g} %")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
