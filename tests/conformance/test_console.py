"""TRex's own console, as it comes with the client, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from targets import Target

ROOT = Path(__file__).parents[2]
PROFILE = """
import argparse
from trex_stl_lib.api import *


class Profile(object):
    def get_streams(self, tunables, **kwargs):
        parser = argparse.ArgumentParser()
        parser.add_argument("--size", type=int, default=64)
        size = parser.parse_args(tunables).size
        base = Ether() / IP(src="16.0.0.4", dst="48.0.0.4") / UDP(sport=1025, dport=12)
        vm = STLVM()
        vm.var("src", "16.0.0.4", "16.0.0.254", size=4, op="inc")
        vm.write("src", "IP.src")
        vm.fix_chksum()
        packet = STLPktBuilder(pkt=base / ("x" * (size - 4 - len(base))), vm=vm)
        return [STLStream(packet=packet, mode=STLTXCont(pps=1))]


def register():
    return Profile()
"""
CONSOLE = """
import sys
from trexbench.generator.trex.client import load_client
client = load_client()
sys.path[:0] = [str(path) for path in client.external.iterdir()]
with client.namespace():
    from trex.console.trex_console import main
    main()
"""
SUCCESSES = {
    "start": "Starting traffic on port(s) [0._]:",
    "update": "Updating traffic on port(s) [0._]:",
    "pause": "Pausing traffic on port(s) [0._]:",
    "resume": "Resume traffic on port(s) [0._]:",
    "stop": "Stopping traffic on port(s) [0._]:",
    "service": "Enabling service mode on port(s): [0, 1]",
    "reset": "Resetting ports [0, 1]:",
}


def run_console(target: Target, directory: Path, commands: list[str]) -> str:
    """Return what the console prints for these commands, without its colours."""
    batch = directory / "batch"
    batch.write_text("\n".join([*commands, "quit", ""]))
    ports = ["-p", str(target.rpc_port), "--async_port", str(target.pub_port)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONSOLE, "-s", target.host, *ports, "--batch", str(batch)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(directory), "TERM": "dumb"},
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)


def test_a_session_at_the_console(target: Target, tmp_path: Path) -> None:
    profile = tmp_path / "profile.py"
    profile.write_text(PROFILE)
    printed = run_console(
        target,
        tmp_path,
        [
            "reset",
            "portattr",
            f"start -f {profile} -m 1kpps -p 0 -t --size 128",
            "update -m 0.01% -p 0",
            "stats",
            "stats -x",
            "stats -c",
            "stats -m",
            "streams",
            "events",
            "pause -p 0",
            "resume -p 0",
            "stop -p 0",
            "service",
            "service --off",
            "release",
        ],
    )
    for command, line in SUCCESSES.items():
        assert re.search(re.escape(line) + r"\s+\[SUCCESS\]", printed), f"{command}:\n{printed}"
    assert "TRANSMITTING" in printed
    assert re.search(r"1 +\| +- +\| +_ +\| Ethernet:IP:UDP:Raw +\| +128 \| +Continuous", printed), printed
    assert printed.count("Executing line") == 17, printed
