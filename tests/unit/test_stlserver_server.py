"""The sockets, the thread and the process: beginning, ending, and ending badly."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engine_fake
import pytest
import zmq
from engine_fake import FakeEngine
from rpc import ask

from trexbench.stlserver import __main__ as cli
from trexbench.stlserver.rpc.server import ServerError, StlServer

pytestmark = pytest.mark.portable

ROOT = Path(__file__).parents[2]
READY = re.compile(r"ready rpc=tcp://127\.0\.0\.1:(\d+) pub=tcp://127\.0\.0\.1:(\d+) ports=fake0,fake1")


def test_a_taken_port_is_named_and_the_engine_given_back() -> None:
    with StlServer(FakeEngine()) as server:
        engine = FakeEngine()
        with pytest.raises(ServerError, match=f"cannot listen on tcp://127.0.0.1:{server.rpc_port}"):
            StlServer(engine, rpc_port=server.rpc_port)
        assert engine.closed


@pytest.mark.parametrize("started", [True, False])
def test_stopping_closes_the_engine_and_may_be_repeated(started: bool) -> None:
    engine = FakeEngine()
    server = StlServer(engine)
    if started:
        server.start()
    server.stop()
    server.stop()
    assert engine.closed


def test_a_client_can_shut_it_down() -> None:
    engine = FakeEngine()
    with StlServer(engine) as server:
        assert ask(server.rpc_port, "shutdown", user="me", force=False) == {}
        server.stop()
    assert engine.closed


def test_an_engine_that_breaks_ends_the_server_and_is_closed() -> None:
    class Broken(FakeEngine):
        def poll(self) -> Any:
            raise RuntimeError("the wire is cut")

    engine = Broken()
    server = StlServer(engine)
    with pytest.raises(RuntimeError, match="the wire is cut"):
        server.run()
    assert engine.closed


def test_frames_of_any_size_and_number_of_parts_leave_it_alive() -> None:
    with StlServer(FakeEngine()) as server, zmq.Context() as context:
        for parts in ([b"{", b"}"], [b""], [b"x" * 2_000_000], [b"x" * 40_000_000]):
            with context.socket(zmq.REQ) as socket:
                socket.setsockopt(zmq.LINGER, 0)
                socket.connect(f"tcp://127.0.0.1:{server.rpc_port}")
                socket.send_multipart(parts)
                socket.poll(200)
        assert "ts" in ask(server.rpc_port, "ping")


@pytest.fixture
def process(request: Any) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, engine_fake.__file__, "--rpc-port", "0", "--pub-port", "0"]
    with subprocess.Popen(
        [*command, *getattr(request, "param", [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as running:
        yield running
        running.kill()


def rpc_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    line = process.stdout.readline()
    match = READY.match(line)
    assert match, line
    return int(match[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_process_outlives_its_parents_pipe_unless_told_and_ends_cleanly_on_a_signal(
    process: subprocess.Popen[str], number: signal.Signals
) -> None:
    port = rpc_port(process)
    assert process.stdin is not None and process.stderr is not None
    process.stdin.close()
    assert "ts" in ask(port, "ping")
    process.send_signal(number)
    assert process.wait(60) == 0
    assert process.stderr.read() == ""


@pytest.mark.parametrize("process", [["--die-with-parent"]], indirect=True)
def test_the_process_ends_with_its_parents_pipe(process: subprocess.Popen[str]) -> None:
    rpc_port(process)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("about", "argv", "text"),
    [
        ("no ports", [], "no ports: name their --interfaces, or"),
        ("an interface twice", ["--interfaces", "p0,p0"], "not a list of different interfaces"),
        ("a speed without unit", ["--interfaces", "p0", "--speed", "10"], "'--speed': speed '10' not understood"),
        ("a port too large", ["--interfaces", "p0", "--rpc-port", "65536"], "65536 is not in the range 0<=x<=65535"),
        ("a MAC that is none", ["--interfaces", "p0", "--dst-mac", "x"], "is not a MAC address"),
        ("MACs for other ports", ["--interfaces", "p0,p1", "--dst-mac", "-"], "1 addresses for 2 interfaces"),
        ("a limit below zero", ["--interfaces", "p0", "--limit-pps", "-1"], "is not in the range x>0"),
    ],
)
def test_wrong_usage(about: str, argv: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.serve(argv)
    assert left.value.code == 2
    assert text in capsys.readouterr().err


def test_neighbours() -> None:
    assert cli.macs("02:00:00:00:00:0A,-") == ["02:00:00:00:00:0a", None]


def test_an_address_that_is_not_ours_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        engine_fake.serve(["--host", "192.0.2.1", "--rpc-port", "0"])
    assert left.value.code == 7
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.count("192.0.2.1") == 1
