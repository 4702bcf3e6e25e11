"""Faults of the two hosts of a TCP test: one line, what was read is kept, nothing is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from effort import by_day
from endpoints import LOOPBACK, agent, alive, descendants, free_port, host, payload, run
from sshd import WHY_NOT, Sshd, eventually, running_sshd

from trexbench.config.endpoints import TransportConfig
from trexbench.core.errors import DutError
from trexbench.core.tcp.plan import HostReading, Way
from trexbench.endpoint.engines import Embedded, Iperf3
from trexbench.endpoint.hosts import Agent
from trexbench.transport import SshTransport

ROOT = Path(__file__).resolve().parents[2]
NEEDS_IPERF3 = pytest.mark.skipif(not shutil.which("iperf3"), reason="needs iperf3: it is not installed")
NEEDS_SSHD = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "runs")
BOTH = [pytest.param("embedded"), pytest.param("iperf3", marks=NEEDS_IPERF3)]
ABSENT = Iperf3("no-such-iperf3")


def agents() -> list[int]:
    """Return the agents of this process: python3 that was sent one, and what it started."""
    return [pid for pid in descendants(os.getpid()) if alive(pid) and b"trexbench-agent" in words_of(pid)]


def words_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def after(readings: int, act: Callable[[], Any], name: str = "client") -> Callable[[str, HostReading], None]:
    """Act once, when so many readings of a host have come."""
    come = []

    def seen(whose: str, reading: HostReading) -> None:
        if whose == name:
            come.append(reading)
            if len(come) == readings:
                act()

    return seen


def serving() -> int:
    """The agent of the server, which is the older one."""
    return min(agents(), key=lambda pid: int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]))


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    eventually(lambda: not agents(), "the agents have ended", 30)


class Deaf(Embedded):
    """A receiver that no payload reaches, as behind a router that drops large packets."""

    def readings(self, agent: Agent) -> tuple[HostReading, ...]:
        return tuple(
            replace(one, streams=tuple(replace(s, payload_bytes=0) for s in one.streams)) for one in agent.readings
        )


def test_payload_that_only_fills_the_senders_buffer_was_not_carried() -> None:
    with pytest.raises(DutError, match=r"no payload came from server .* to client .*: see the MTUs on the way"):
        run((Deaf(), Embedded()), way=Way.REVERSE)


@pytest.mark.parametrize("engine", BOTH)
def test_kill_9_leaves_no_agent_and_no_listener(engine: str) -> None:
    port = free_port()
    script = f"from endpoints import run; run(port={port}, time_s=30.0, engine={engine!r})"
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "helpers")])
    process = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
    try:
        wanted = 2 if engine == "embedded" else 4
        eventually(lambda: len(descendants(process.pid)) >= wanted and busy(port), "both run")
        left = descendants(process.pid)
    finally:
        process.kill()
        process.wait(30)
    eventually(lambda: not any(alive(pid) for pid in left), "nothing is left", 30)


def busy(port: int) -> bool:
    """Test whether a connection of this port is established: the client's control connection."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "01" for line in lines)


@pytest.mark.parametrize("engine", BOTH)
def test_ctrl_c_ends_both(engine: str) -> None:
    def interrupt(name: str, reading: HostReading) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(seen=interrupt, time_s=30.0, engine=engine)


@NEEDS_IPERF3
@pytest.mark.parametrize("way", by_day(1, [Way.BIDIR, Way.REVERSE]))
def test_ctrl_c_has_iperf3_report_what_it_has(way: Way) -> None:
    heard: dict[str, list[HostReading]] = {"client": [], "server": []}

    def interrupt() -> None:
        raise KeyboardInterrupt

    act = after(60, interrupt)  # 1.5 s

    def seen(name: str, reading: HostReading) -> None:
        heard[name].append(reading)
        act(name, reading)

    with pytest.raises(KeyboardInterrupt):
        run((Iperf3(), Iperf3()), way, seen=seen, time_s=30.0)
    for name, sends in (("client", way is not Way.REVERSE), ("server", way is Way.REVERSE)):
        own = tuple(reading for reading in heard[name] if reading.streams)
        assert len(own) >= 4 and payload(own, sends) > 0, name


def test_a_killed_server_keeps_what_was_read() -> None:
    found = run(seen=after(3, lambda: os.kill(serving(), signal.SIGKILL)), time_s=30.0)
    assert len(found.client) >= 3 and len(found.server) >= 1
    assert found.error is not None and "\n" not in found.error
    assert "server (this machine)" in found.error or "client (this machine)" in found.error


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("hangs", "why"),
    [
        ("server", "client (this machine): the other end did not answer within 10 s: see whether it hangs"),
        ("client", "client (this machine) and server (this machine) did not end in time"),
    ],
)
def test_a_hanging_host_of_many_connections_is_given_up(hangs: str, why: str) -> None:
    def stop() -> None:
        (client,) = {*agents()} - {serving()}
        os.kill(serving() if hangs == "server" else client, signal.SIGSTOP)

    begun = time.monotonic()
    found = run(seen=after(2, stop), streams=20)
    assert found.error is not None and why in found.error
    assert len(found.client) >= 2 and time.monotonic() - begun < 60


@NEEDS_IPERF3
def test_a_killed_genuine_server_keeps_what_was_read() -> None:
    def kill() -> None:
        (server,) = [pid for pid in descendants(serving()) if b"iperf3" in words_of(pid)]
        os.kill(server, signal.SIGKILL)

    found = run((Embedded(), Iperf3()), seen=after(3, kill), time_s=30.0)
    assert found.error is not None and len(found.client) >= 3


@contextmanager
def taken() -> Iterator[int]:
    with socket.socket() as one:
        one.bind((LOOPBACK[4], 0))
        one.listen()
        yield one.getsockname()[1]


@pytest.mark.parametrize("engine", BOTH)
def test_a_port_in_use(engine: str) -> None:
    with taken() as port, pytest.raises(DutError) as caught:
        run(port=port, engine=engine)
    assert str(caught.value) == f"server (this machine): port {port} is in use: end what listens there"


def test_nothing_listens() -> None:
    port = free_port()
    told = {"role": "client", "peer": LOOPBACK[4], "address": LOOPBACK[4], "port": port, "cookie": "x"}
    with agent(**told) as one:
        while not one.ended:
            one.hear()
    assert f"127.0.0.1 port {port} refuses connections: start a server there" in str(one.error)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"congestion": "none-such"},
            "(?=.*the server refuses what was asked .iperf3's error 13.: see what it says)"
            ".*none-such is not available: use one of: ",
        ),
        ({"engines": (ABSENT, Embedded())}, r"client \(this machine\): no-such-iperf3 cannot be started"),
        ({"engines": (Embedded(), ABSENT)}, r"server \(this machine\): no-such-iperf3 cannot be started"),
        ({"engines": (Embedded(), Iperf3("false"))}, r"server .* iperf3 reports .no result, but: exit code 1"),
    ],
)
def test_what_is_not_there(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(DutError, match=words) as caught:
        run(**asked)
    assert "\n" not in str(caught.value)


def test_pinned_programs_stay_on_their_cpu() -> None:
    found: set[str] = set()

    def look(name: str, reading: HostReading) -> None:
        for pid in agents():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            found.update(line.split()[1] for line in lines if line.startswith("Cpus_allowed_list"))

    last = max(os.sched_getaffinity(0))
    run(client=host("client", cpus=(last,)), server=host("server", cpus=(last,)), pinned=True, time_s=0.5, seen=look)
    assert found == {str(last)}


# Over ssh


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    with running_sshd() as running:
        yield running


def to(server: Sshd) -> SshTransport:
    return SshTransport(TransportConfig("ssh", host="dut"), server.folder / "run", server.client_config)


@NEEDS_SSHD
@pytest.mark.parametrize("engine", BOTH)
def test_a_leg_over_ssh(server: Sshd, engine: str) -> None:
    with closing(to(server)) as one, closing(to(server)) as other:
        found = run(client=host("client", one), server=host("server", other), way=Way.REVERSE, engine=engine)
        assert found.error is None
        assert found.client[-1].streams[0].payload_bytes > 0 and not found.client[-1].streams[0].sends
        assert one.run(["true"], 10).returncode == 0  # the connection still stands


@NEEDS_SSHD
def test_a_lost_connection_keeps_what_was_read_and_leaves_nothing(server: Sshd) -> None:
    port = free_port()
    with closing(to(server)) as one:
        found = run(
            client=host("client", one), port=port, way=Way.REVERSE, time_s=30.0, seen=after(3, server.cut, "client")
        )
    assert len(found.client) >= 3 and found.error is not None
    assert "connection to dut was lost" in found.error and "\n" not in found.error
    eventually(lambda: not busy(port), "its client has ended", 30)


@NEEDS_SSHD
def test_a_host_without_python3(tmp_path: Path) -> None:
    for program in ("sh", "env", "cat"):
        (tmp_path / program).symlink_to(shutil.which(program) or "")
    with running_sshd(path=str(tmp_path)) as bare, closing(to(bare)) as one, pytest.raises(DutError) as caught:
        run(server=host("server", one))
    assert str(caught.value) == "server (dut): python3 is not installed on dut: install the package python3"


OLD = [*Path.home().glob(".pyenv/versions/3.7.*/bin/python3"), *map(Path, filter(None, [shutil.which("python3.7")]))]


@pytest.mark.skipif(not OLD, reason="needs a Python 3.7")
def test_it_runs_on_the_oldest_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{OLD[0].parent}{os.pathsep}{os.environ['PATH']}")
    for asked in ({"way": Way.BIDIR}, {"zerocopy": True, "streams": 2, "version": 6}):
        found = run(**asked)  # type: ignore[arg-type]
        assert found.error is None and found.program["client"]["python"].startswith("3.7.")
        assert found.server[-1].streams[0].payload_bytes > 0
