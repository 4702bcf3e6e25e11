"""lab-linux under a prefix of the test's own, with runs of seconds at rates that a busy machine carries."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import ROOT, trexbench

PLAN = {
    "warmup": "1kpps:500ms",
    "ramp_to": "10kpps",
    "ramp_duration": "1s",
    "hold": "800ms",
    "confirm": "0s",
    "drain": "300ms",
    "sample": "200ms",
    "window": "200ms",
    "loss": "20%",
}
"""Short windows, no confirmation. A sender that shares its core may send less than is asked, and a router lose some."""


def plan(**changes: str) -> str:
    """PLAN with these changes, as YAML."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in {**PLAN, **changes}.items()) + "}"


def write_lab(path: Path, prefix: str, **changes: str) -> Path:
    """The config, with PLAN as its defaults; changes: to PLAN."""
    text = (ROOT / "dut_configs" / "lab-linux.yaml").read_text()
    text, plans = re.subn(r"^plan:\n(?: +.*\n)+", f"plan: {plan(**changes)}\n", text, flags=re.MULTILINE)
    text, prefixes = re.subn(r"prefix: tbx ", f"prefix: {prefix} ", text)
    assert plans == prefixes == 1
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@contextmanager
def lab_up(dut: Path) -> Iterator[Path]:
    """The lab of the config, until the end of the block; yields the config's directory, which knows the lab."""
    folder = dut.parent
    done = trexbench(folder, "lab", "up", "--dut", str(dut))
    try:
        assert done.returncode == 0, done.stderr
        yield folder
    finally:
        trexbench(folder, "lab", "down", "--dut", str(dut), "--force")


def share_lab(of: Path, folder: Path) -> None:
    """Let commands in ``folder`` find the labs of another directory; results they keep by themselves."""
    (folder / "run").symlink_to(of / "run")


def servers(prefix: str) -> set[int]:
    """Process ids of the packet servers of labs with this prefix: without one there is no traffic."""
    mark, found = f"TREXBENCH_LAB={prefix}".encode(), set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            ours = mark in (entry / "environ").read_bytes().split(b"\0")
            if ours and b"trexbench.stlserver" in (entry / "cmdline").read_bytes().split(b"\0"):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def namespaces(prefix: str) -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith(f"{prefix}-")]
