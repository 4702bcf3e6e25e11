"""The cost of a suite besides its traffic: wall time of `trexbench suite run` less what its cells' plans say, per cell.

    python benchmarks/suite_overhead.py [--cells 16]

The embedded server runs in a process of its own and moves no packets; the DUT is left as it is. What is counted is
everything else: start, connecting, loading streams, documents, pictures, the night's own file. Aim: under 3 s a cell.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _ratios import note

ROOT = Path(__file__).resolve().parents[1]
AIM_S = 3.0
TREXBENCH = (sys.executable, "-c", "from trexbench.cli import main; main()")
MODES = ("var2-1514b", "var2-imix", "var2-64b", "1flow-64b")

SUITE = """
duts: [{duts}]
modes: [{modes}]
directions: [uni, bidir]
plan: {{warmup: "1kpps:2s", ramp_duration: 4s, hold: 1s, confirm: 0s, zoom: 0s, drain: 200ms}}
"""


def measure(cells: int, folder: Path) -> tuple[float, float, float, int]:
    """Wall seconds of the whole suite and of `suite plan`, planned seconds of its traffic, and cells."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TREXBENCH_RUN_DIR": str(folder / "run")}
    text = (ROOT / "dut_configs/netgate-linux.yaml").read_text()
    names = [f"box{number}" for number in range(max(1, cells // 8))]
    (folder / "duts").mkdir()
    for name in names:
        lines = [line for line in text.splitlines() if not line.startswith("rx_queues")]
        (folder / "duts" / f"{name}.yaml").write_text("\n".join(lines))
    suite = folder / "suite.yaml"
    suite.write_text(SUITE.format(duts=", ".join(names), modes=", ".join(MODES)))
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/helpers/engine_fake.py"), "--rpc-port", "0", "--pub-port", "0"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert server.stdout is not None
    try:
        rpc, pub = re.findall(r":(\d+)", server.stdout.readline())[:2]
        common = ["--configs-dir", str(folder / "duts")]
        begun = time.monotonic()
        planned = subprocess.run(
            [*TREXBENCH, "suite", "plan", str(suite), *common, "--json"],
            env=environment, capture_output=True, text=True, check=True, cwd=folder,
        )  # fmt: skip
        plan = json.loads(planned.stdout)
        planning_s, begun = time.monotonic() - begun, time.monotonic()
        subprocess.run(
            [*TREXBENCH, "suite", "run", str(suite), *common, "--no-apply", "-q", "--server", "127.0.0.1",
             "--rpc-port", rpc, "--pub-port", pub],
            env=environment, check=True, cwd=folder,
        )  # fmt: skip
        return time.monotonic() - begun, planning_s, plan["expected_s"], len(plan["cells"])
    finally:
        server.terminate()
        server.wait(10)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=16, help="eight per DUT (16)")
    with tempfile.TemporaryDirectory(prefix="tbx-suite-") as name:
        wall_s, planning_s, planned_s, cells = measure(parser.parse_args().cells, Path(name))
    print(f"{cells} cells: {wall_s:.1f} s, of which {planned_s:.1f} s of traffic as planned")
    each_s = (wall_s - planned_s) / cells
    print(f"besides the traffic {each_s:.2f} s a cell (aim: under {AIM_S:g})")
    note("besides the traffic of a cell / suite plan", each_s / planning_s, noise=0.5)
    return int(each_s >= AIM_S)


if __name__ == "__main__":
    sys.exit(main())
