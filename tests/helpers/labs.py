"""Labs of a test's own for whole commands: lab-linux under another name, and what runs in its namespaces."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import packet_lab
from endpoints import alive
from routed import plain_lab

ENDS = ("client", "server", "dut")


def write_lab(folder: Path, prefix: str, cables: str = "{offloads: full}", more: str = "") -> Path:
    """Write the config ``own.yaml``. cables: ``lab: endpoints:``; more: sections besides those of lab-linux.

    It has no cable around the router, over which a run would first measure the hosts' own ceiling, 4 s each way.
    """
    text = re.sub(r"^ *bypass:.*\n", "", plain_lab(), flags=re.M)
    head, found, tail = text.partition("  endpoints:\n    offloads: full")
    assert found and "  prefix: tbx " in head
    head = head.replace("  prefix: tbx ", f"  prefix: {prefix} ")
    path = folder / "own.yaml"
    path.write_text(f"{head}  endpoints: {cables} #{tail}\n{more}")
    return path


def lab_up(folder: Path) -> AbstractContextManager[Path]:
    """The lab of ``own.yaml`` in this directory, until the end of the block."""
    return packet_lab.lab_up(folder / "own.yaml")


def slow_rules(times: int) -> str:
    """A firewall that makes a router slow: each packet passes 1000 rules so many times, and meets none of them."""
    rules = "".join(f"    ip saddr 10.0.{number >> 8}.{number & 255} drop\n" for number in range(1000))
    jumps = "    jump slow\n" * times
    forward = f"  chain forward {{\n    type filter hook forward priority 0;\n{jumps}  }}\n"
    return f"table inet trexbench {{\n  chain slow {{\n{rules}  }}\n{forward}}}\n"


def document(folder: Path, dut: str = "own") -> dict[str, Any]:
    """The latest in this directory's results."""
    found: dict[str, Any] = json.loads(max(folder.glob(f"results/*/{dut}/*.json")).read_text())
    return found


def inside(prefix: str) -> dict[str, list[int]]:
    """Processes in each namespace of the lab; of those that are gone none."""
    found = {}
    for name in (*ENDS, "tester"):
        done = subprocess.run(["ip", "netns", "pids", f"{prefix}-{name}"], capture_output=True, text=True, timeout=20)
        found[name] = [pid for pid in map(int, done.stdout.split()) if alive(pid)]
    return found


def flows(prefix: str, host: str = "client") -> bool:
    """Test whether a control connection and one with payload are established there."""
    select = "( dport = 5201 or sport = 5201 )"
    argv = ["ip", "netns", "exec", f"{prefix}-{host}", "ss", "-tnH", "state", "established", select]
    return len(subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout.splitlines()) >= 2
