"""The watchdog: what it sends, when it stays quiet, and that traffic does not outlive a killed harness."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from engine_fake import FakeEngine
from rpc import Stub, ask
from sshd import eventually

from trexbench.child import child_argv, child_environment
from trexbench.generator.trex import watchdog
from trexbench.generator.trex.guard import Guard
from trexbench.stlserver.rpc.server import StlServer

pytestmark = pytest.mark.portable

REPOSITORY = Path(__file__).parents[2]
WATCHED = {"server": "127.0.0.1", "rpc_port": 4501, "api_h": "h", "handlers": {"0": "a", "3": "b"}}


@pytest.mark.parametrize(
    ("said", "expected", "why"),
    [
        ("", None, "nothing to watch"),
        ('{"server": 1}\n', {"server": 1}, "killed"),
        ('{"server": 1}\n{"done": true}\n', None, "all is well"),
        ('{"server": 1}\n{"done": tr', {"server": 1}, "killed while it wrote"),
        ('{"serv', None, "killed before it said which ports"),
    ],
)
def test_what_the_input_means(said: str, expected: Any, why: str) -> None:
    assert watchdog.read(io.StringIO(said)) == expected, why


@pytest.fixture
def server() -> Iterator[Stub]:
    with closing(Stub()) as server:
        yield server


def test_a_guard_that_was_told_all_is_well_stays_quiet(server: Stub) -> None:
    guard = Guard("127.0.0.1", server.port, "h", {0: "a"})
    guard.done()
    guard.done()
    assert guard.process.poll() is not None and server.heard == []


def test_a_pipe_that_closes_without_a_word_silences_the_ports(server: Stub) -> None:
    guard = Guard("127.0.0.1", server.port, "h", {0: "a", 1: "b"})
    guard.close()
    eventually(lambda: guard.process.poll() is not None, "it has ended", 60)
    sent = json.loads(server.heard[0])
    methods = ["stop_traffic"] * 2 + ["remove_all_streams"] * 2 + ["release"] * 2
    assert [one["method"] for one in sent] == methods, "all stop before one is released"
    assert [(one["params"]["port_id"], one["params"]["handler"]) for one in sent] == 3 * [(0, "a"), (1, "b")]
    assert all(one["params"]["api_h"] == "h" and one["jsonrpc"] == "2.0" for one in sent)
    assert len({one["id"] for one in sent}) == 6


def test_it_outlives_the_signals_that_end_its_harness(server: Stub) -> None:
    guard = Guard("127.0.0.1", server.port, "h", {0: "a"})
    eventually(lambda: _ignores(guard.process.pid), "it ignores them", 60)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(guard.process.pid, number)
    assert guard.process.poll() is None and os.getsid(guard.process.pid) == guard.process.pid
    guard.close()
    eventually(lambda: guard.process.poll() is not None, "it has ended", 60)
    assert server.heard


def _ignores(pid: int) -> bool:
    ignored = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn"))
    wanted = 1 << (signal.SIGTERM - 1)
    return bool(int(ignored.split()[1], 16) & wanted)


def test_a_later_try_reaches_a_server_that_hung_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "TIMEOUT_MS", 300)
    with closing(Stub(deaf=4)) as server:
        assert watchdog.silence({**WATCHED, "rpc_port": server.port}) and len(server.heard) == 1


def test_a_server_that_is_gone_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "TIMEOUT_MS", 50)
    assert not watchdog.silence({**WATCHED, "rpc_port": 1})


HARNESS = """
import sys, time
from pathlib import Path
from trexbench.generator.trex.connect import ServerAddress, connect

class Clock:
    now = staticmethod(time.monotonic)
    sleep_until = None

with connect(ServerAddress("127.0.0.1", int(sys.argv[1]), int(sys.argv[2])), (0, 1), Clock()) as generator:
    generator.load(Path("stl_profiles/bench.py"), {"size": "64", "vm": "var2"}, (0, 1))
    generator.start({0: 1000.0, 1: 1000.0}, 3600)
    print("sending", flush=True)
    time.sleep(3600)
"""


def test_ports_fall_silent_when_the_harness_is_killed() -> None:
    engine = FakeEngine(2)
    with StlServer(engine) as server:
        harness = subprocess.Popen(
            [sys.executable, "-c", HARNESS, str(server.rpc_port), str(server.pub_port)],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
        )
        try:
            assert harness.stdout is not None and harness.stdout.readline() == b"sending\n"
            assert _states(server) == [("TX", True), ("TX", True)]
        finally:
            harness.kill()
            harness.communicate()
        eventually(lambda: _states(server) == [("IDLE", False), ("IDLE", False)], "they are silent", 60)


def test_a_file_of_the_users_is_not_run_in_place_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles lie in the current directory, and one may be named like a module."""
    for module in ("json", "runpy", "trexbench"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)  # Python 3.10 does not know it
    guard = Guard("127.0.0.1", 1, "h", {})
    guard.done()
    assert guard.process.returncode == 0
    argv = [*child_argv("trexbench.stlserver"), "--help"]
    shown = subprocess.run(argv, env=child_environment(), capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and "--interfaces" in shown.stdout, shown.stderr


def _states(server: StlServer) -> list[tuple[str, bool]]:
    """State of both ports, and whether somebody owns them, asked over the wire."""
    status = [ask(server.rpc_port, "get_port_status", port_id=port, profile_id="*", block=False) for port in (0, 1)]
    return [(one["state"], bool(one["owner"])) for one in status]
