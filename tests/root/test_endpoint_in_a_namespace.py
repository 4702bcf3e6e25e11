"""Both ends of a TCP test in a network namespace, which the machine's own loopback is not in."""

from __future__ import annotations

import os

import pytest
from endpoints import host, run
from frames import namespaces
from wire import ip

from trexbench.core.errors import DutError
from trexbench.transport import NetnsTransport

NAME = f"tben{os.getpid()}"


def test_a_leg_in_a_namespace() -> None:
    transport = NetnsTransport(NAME)
    with namespaces(NAME):
        ip("-n", NAME, "link", "set", "lo", "up")
        found = run(client=host("client", transport), server=host("server", transport), time_s=0.5)
        assert found.error is None and found.server[-1].streams[0].payload_bytes > 0
        # Nothing there serves whoever is outside, and the other way round.
        with pytest.raises(DutError, match="refuses connections"):
            run(client=host("client", transport), time_s=0.5)
        with transport.start(["no-such-program"]) as running:
            while not running.ended:
                running.lines()
            with pytest.raises(DutError, match=f"no-such-program is not installed on namespace {NAME}"):
                running.finish()
