"""Both ends of a TCP test in a network namespace, which the machine's own loopback is not in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoints import host, run
from sshd import eventually

from trexbench.core.errors import DutError
from trexbench.endpoint import watched_processes
from trexbench.transport import NetnsTransport

NAME = f"tben{os.getpid()}"


@pytest.fixture
def namespace() -> Iterator[str]:
    subprocess.run(["ip", "netns", "add", NAME], check=True, timeout=20)
    try:
        subprocess.run(["ip", "-n", NAME, "link", "set", "lo", "up"], check=True, timeout=20)
        yield NAME
    finally:
        subprocess.run(["ip", "netns", "del", NAME], check=True, timeout=20)


def test_a_leg_in_a_namespace(namespace: str) -> None:
    transport = NetnsTransport(namespace)
    found = run(client=host("client", transport), server=host("server", transport), time_s=0.5)
    assert found.error is None and found.server[-1].streams[0].payload_bytes > 0
    # Nothing there serves whoever is outside, and the other way round.
    with pytest.raises(DutError, match="refuses connections"):
        run(client=host("client", transport), time_s=0.5)
    with transport.start(["no-such-program"]) as running:
        while not running.ended:
            running.lines()
        with pytest.raises(DutError, match=f"no-such-program is not installed on namespace {namespace}"):
            running.finish()


def test_a_process_belongs_to_the_host_whose_namespace_it_is_in(namespace: str) -> None:
    """All of them see one /proc."""
    busy = "import time\nend = time.monotonic() + 120\nwhile time.monotonic() < end: pass"
    argv = [sys.executable, "-c", busy]
    with (
        subprocess.Popen(["ip", "netns", "exec", namespace, *argv]) as within,
        subprocess.Popen(argv) as outside,
    ):
        try:
            with (
                watched_processes(host("dut", NetnsTransport(namespace)), 60.0) as watched_there,
                watched_processes(host("dut"), 60.0) as watched_here,
            ):
                until_s = [worked_s(one) + 0.3 for one in (within, outside)]
                eventually(lambda: worked_s(within) > until_s[0] and worked_s(outside) > until_s[1], "both worked", 60)
                there, here = watched_there(), watched_here()
        finally:
            within.kill()
            outside.kill()
    assert there is not None and here is not None
    whose = [{one.process: one.whose for one in found.took} for found in (there, here)]
    assert (whose[0][within.pid], whose[0][outside.pid]) == ("", "elsewhere")
    assert (whose[1][within.pid], whose[1][outside.pid]) == ("elsewhere", "")


def worked_s(process: subprocess.Popen[bytes]) -> float:
    """CPU time of this process so far."""
    return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9
