"""Commands in a network namespace of this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import DutError
from .command import Completed
from .local import missing, run_here

_NETNS_DIR = Path("/run/netns")


class NetnsTransport:
    """``ip netns exec`` rather than setns: it mounts the /sys of the namespace, where queues and RPS are set."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.place = f"namespace {namespace}"

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        if not (_NETNS_DIR / self.namespace).exists():
            raise DutError(f"{self.place} is not there", "bring it up: trexbench lab up")
        done = run_here(["ip", "netns", "exec", self.namespace, *argv], argv, self.place, timeout_s, input)
        # ip tells its own failures from the command's by these words only; its exit code varies.
        if done.returncode and done.stderr.startswith(f'exec of "{argv[0]}" failed: No such file'):
            raise missing(argv[0], self.place)
        if done.returncode and re.match(r"setting the network namespace|Cannot open network namespace", done.stderr):
            raise DutError(f"{self.place} cannot be entered ({done.complaint})", "run as root")
        return done

    def close(self) -> None:
        """Nothing is open."""
