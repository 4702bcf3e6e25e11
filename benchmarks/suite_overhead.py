"""The cost of a suite besides its traffic: wall time of `trexbench suite run` less what its cells' plans say, per cell.

    python benchmarks/suite_overhead.py [--cells 16]

The embedded server runs in a process of its own and moves no packets; the DUT is left as it is. What is counted is
everything else: start, connecting, loading streams, documents, pictures, the night's own file. Aim: under 3 s a cell.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _ratios import ENVIRONMENT, ROOT, TREXBENCH, note, options
from tools import fake_server

AIM_S = 3.0
MODES = ("var2-1514b", "var2-imix", "var2-64b", "1flow-64b")

SUITE = """
duts: [{duts}]
modes: [{modes}]
directions: [uni, bidir]
plan: {{warmup: "1kpps:2s", ramp_duration: 4s, hold: 1s, confirm: 0s, drain: 200ms}}
"""


def measure(cells: int, folder: Path) -> tuple[float, float, float, int]:
    """Wall seconds of the whole suite and of `suite plan`, planned seconds of its traffic, and cells."""
    text = (ROOT / "dut_configs/netgate-linux.yaml").read_text()
    names = [f"box{number}" for number in range(max(1, cells // 8))]
    (folder / "duts").mkdir()
    for name in names:
        lines = [line for line in text.splitlines() if not line.startswith("rx_queues")]
        (folder / "duts" / f"{name}.yaml").write_text("\n".join(lines))
    suite = folder / "suite.yaml"
    suite.write_text(SUITE.format(duts=", ".join(names), modes=", ".join(MODES)))

    def timed(verb: str, *more: str) -> tuple[str, float]:
        """Return what the verb prints, and the seconds that it takes."""
        begun = time.monotonic()
        argv = [*TREXBENCH, "suite", verb, str(suite), "--configs-dir", str(folder / "duts"), *more]
        environment = {**ENVIRONMENT, "TREXBENCH_RUN_DIR": str(folder / "run")}
        done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=folder)
        return done.stdout, time.monotonic() - begun

    with fake_server() as server:
        planned, planning_s = timed("plan", "--json")
        _, wall_s = timed("run", "-q", *server.options)
    plan = json.loads(planned)
    return wall_s, planning_s, plan["expected_s"], len(plan["cells"])


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tbx-suite-") as name:
        wall_s, planning_s, planned_s, cells = measure(options(__doc__, cells=16).cells, Path(name))
    print(f"{cells} cells: {wall_s:.1f} s, of which {planned_s:.1f} s of traffic as planned")
    each_s = (wall_s - planned_s) / cells
    print(f"besides the traffic {each_s:.2f} s a cell (aim: under {AIM_S:g})")
    note("besides the traffic of a cell / suite plan", each_s / planning_s, noise=0.5)
    return int(each_s >= AIM_S)


if __name__ == "__main__":
    sys.exit(main())
