"""iperf3's protocol as the agent speaks it: what it takes from another end, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from effort import by_day, examples, scaled
from endpoints import LOOPBACK, agent, free_port, host
from hypothesis import given
from hypothesis import strategies as st
from samples import PROC_STAT
from sshd import eventually

from trexbench.core.errors import DutError
from trexbench.endpoint import leg
from trexbench.endpoint.hosts import Agent, EndpointHost
from trexbench.endpoint.leg import watched_processes
from trexbench.endpoint.programs import ends, iperf, payload, processes
from trexbench.endpoint.programs.common import ProgramFailure

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=9,
)
NUMBERS = ["omit", "time", "num", "blockcount", "MSS", "parallel", "len", "bandwidth"]
NAMES = st.sampled_from([*NUMBERS, "tcp", "reverse", "bidirectional", "congestion", "zerocopy"])
ODD = st.sampled_from([True, False, 1, 0, -1, 4, 1.5, 1e300, float("nan"), 10**30, "", "reno", "x" * 99, [], {}, None])


def told(data: bytes) -> socket.socket:
    """A connection on which this has come, and its end."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(data)
    return ours


@pytest.mark.portable
@given(st.binary(max_size=200), st.booleans())
def test_damaged_json_is_a_failure(data: bytes, sized: bool) -> None:
    with told(struct.pack("!I", len(data)) + data if sized else data) as sock:
        try:
            found = iperf.receive_json(sock, 150)
        except ProgramFailure as failure:
            assert failure.what.isprintable()
        else:
            assert isinstance(found, dict)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "closed the connection"),
        (b"\xff\xff\xff\xff", "announced 4294967295 bytes"),
        (b"\0\0\0\x05{}", "closed the connection"),
        (b"\0\0\0\x02[]", "no JSON object"),
        (struct.pack("!I", 5000) + b"[" * 5000, "no JSON object"),
    ],
)
def test_why_json_is_refused(data: bytes, words: str) -> None:
    with told(data) as sock, pytest.raises(ProgramFailure, match=words):
        iperf.receive_json(sock, 8192)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "busy with another test"),
        (b"\xfe" + struct.pack("!ii", 13, 98), "Address already in use"),
        (b"\x0b", "the server was ended"),
        (b"G", "71, which is no state"),
        (b"", "closed the connection"),
    ],
)
def test_what_a_server_says_instead_of_going_on(data: bytes, words: str) -> None:
    with told(data) as sock, pytest.raises(ProgramFailure, match=words):
        iperf.expect(sock, iperf.PARAM_EXCHANGE)


def test_an_end_that_drips_is_given_up() -> None:
    """Each byte comes in time; all of them do not."""
    ours, theirs = socket.socketpair()
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.02):
            theirs.send(b"x")

    dripping = threading.Thread(target=drip)
    with ours, theirs:
        dripping.start()
        with pytest.raises(ProgramFailure, match=r"did not answer within 0\.2 s"):
            iperf.receive(ours, 10**6, 0.2)
        over.set()
        dripping.join()


@examples(300)
@given(st.dictionaries(NAMES, ODD | JSON, max_size=6), st.booleans())
def test_parameters_are_within_limits_or_refused(asked: dict[str, Any], tcp: bool) -> None:
    try:
        found = ends.asked_of({**asked, "tcp": True} if tcp else asked)
    except ProgramFailure:
        return
    assert 1 <= found["streams"] <= ends.MOST_STREAMS and found["way"] in ("forward", "reverse", "bidir")
    assert 0 <= found["omit_s"] <= 86400 and 0 <= found["time_s"] <= 86400


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"udp": True}, "another protocol than TCP"),
        ({"tcp": True, "reverse": True, "bandwidth": 1000}, "limit its rate"),
        ({"tcp": True, "parallel": 129}, "parallel '129'"),
        ({"tcp": True, "congestion": "x" * 16}, "no name"),
    ],
)
def test_what_this_server_cannot_do_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(ProgramFailure, match=words):
        ends.asked_of(asked)


@given(st.binary(max_size=400))
def test_any_length_of_tcp_info_is_read(data: bytes) -> None:
    found = payload.parse_info(data)
    assert all(isinstance(value, int) and value >= 0 for value in found.values())
    assert ("total_retrans" in found) == (len(data) >= 104) and ("snd_wnd" in found) == (len(data) >= 232)


def test_tcp_info_by_the_kernels_names() -> None:
    """At the offsets of linux/tcp.h."""
    data = bytearray(280)
    data[6:8] = (0x97, 0b101) if sys.byteorder == "little" else (0x79, 0b11000000)
    counts = (68, "I", 1234), (80, "I", 10), (100, "I", 7), (160, "Q", 1 << 40), (272, "I", 9), (276, "I", 0x21)
    for at, kind, value in counts:
        struct.pack_into(f"={kind}", data, at, value)
    found = payload.parse_info(bytes(data))
    assert (found["rtt"], found["snd_cwnd"], found["total_retrans"]) == (1234, 10, 7)
    assert (found["delivery_rate"], found["received_ce_bytes"]) == (1 << 40, 9)
    assert not any("accecn" in name for name in found), "7.0 has four fields in the two words of 6.18"
    assert (found["snd_wscale"], found["rcv_wscale"], found["delivery_rate_app_limited"]) == (7, 9, 1)


# A server among peers that mean it no good

TOKEN = "t" * 36


def connect(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK[4], port), 5)


def garbage(source: random.Random, port: int, over: threading.Event) -> None:
    """Connections that tell nothing, half a cookie, a wrong one, or what comes to mind."""
    kept = []
    while not over.is_set():
        with contextlib.suppress(OSError):
            sock = connect(port)
            sock.settimeout(0.2)
            sock.send(
                source.choice([b"", b"x" * 36, b"x" * 37, b"\xff" * 5000, source.randbytes(source.randrange(1, 99))])
            )
            kept.append(sock)
            if len(kept) > 50:
                kept.pop(0).close()
    for sock in kept:
        sock.close()


def server_options(port: int, cookie: str | None) -> dict[str, Any]:
    return {"role": "server", "address": LOOPBACK[4], "port": port, "cookie": cookie}


def client_options(port: int, cookie: str) -> dict[str, Any]:
    told = {"role": "client", "address": LOOPBACK[4], "peer": LOOPBACK[4], "port": port, "cookie": cookie}
    return {**told, "way": "forward", "streams": 2, "time_s": 0.3, "omit_s": 0, "congestion": None, "zerocopy": False}


def until_ended(one: Any, or_else: Callable[[], object] = lambda: False) -> None:
    deadline = time.monotonic() + 60
    while not (one.ended or or_else()):
        assert time.monotonic() < deadline
        one.hear()


@contextlib.contextmanager
def serving(cookie: str | None = TOKEN) -> Iterator[tuple[int, Agent]]:
    """A server that listens, and its port."""
    port = free_port()
    with agent(**server_options(port, cookie)) as server:
        until_ended(server, lambda: server.ready)
        yield port, server


def client_of(port: int, cookie: str = TOKEN) -> Agent:
    """A client that has ended."""
    with agent(**client_options(port, cookie)) as client:
        until_ended(client)
    return client


@pytest.mark.portable
def test_hostile_peers_are_cut_off_and_the_test_goes_on() -> None:
    over = threading.Event()
    with serving() as (port, server):
        noise = threading.Thread(target=garbage, args=(random.Random(5), port, over))
        noise.start()
        client = client_of(port)
        assert client.error is None and client.readings[-1].streams[1].payload_bytes > 0
        until_ended(server)
        assert server.error is None and len(server.readings[-1].streams) == 2
        over.set()
        noise.join()
        with pytest.raises(OSError):  # one test only
            connect(port)


def test_each_connection_has_its_time() -> None:
    """Over a long line a client opens each a round trip after the one before."""
    with socket.create_server((LOOPBACK[4], 0)) as listener:

        def open_them() -> None:
            for sock in opened:
                sock.sendall(ends.cookie_bytes(TOKEN))
                time.sleep(0.4)

        opened = [connect(listener.getsockname()[1]) for _ in range(6)]
        client = threading.Thread(target=open_them)
        client.start()
        with pytest.raises(ProgramFailure, match=r"6 of 7 connections came, the next not within 1 s"):
            ends.gather(listener, b"", 7, 1.0)
        client.join()
        for sock in opened:
            sock.close()


def test_a_peer_that_is_slow_to_tell_its_cookie_is_cut_off() -> None:
    with serving() as (port, _):
        begun = time.monotonic()
        with connect(port) as slow:
            slow.settimeout(0.5)
            answer = None
            while answer is None:
                assert time.monotonic() - begun < ends.COOKIE_S + 30
                with contextlib.suppress(socket.timeout):
                    slow.send(TOKEN[:1].encode())
                    answer = slow.recv(1)
            assert answer == b"" and time.monotonic() - begun > ends.COOKIE_S - 1
        assert client_of(port).error is None


@pytest.mark.parametrize("seed", range(scaled(6, 4)))
def test_a_client_that_knows_the_token_and_then_says_anything_ends_the_test_in_one_line(seed: int) -> None:
    """At each step of the protocol: the parameters, the streams, the traffic, the results."""
    source = random.Random(seed)
    told = json.dumps({"tcp": True, "time": 1, "parallel": source.choice([1, 2, 128])}).encode()
    steps = [
        struct.pack("!I", len(told)) + told,
        bytes([iperf.TEST_END]),
        struct.pack("!I", source.randrange(1 << 32)),
    ]
    with serving() as (port, server):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            socks = [stack.enter_context(connect(port))]
            socks[0].sendall(TOKEN.encode().ljust(37, b"\0"))
            for step in steps[: seed % 4]:
                socks[0].sendall(step)
                socks += [stack.enter_context(connect(port)) for _ in range(3)]
                for sock in socks[1:]:
                    sock.send(source.choice([TOKEN.encode().ljust(37, b"\0"), source.randbytes(37), b""]))
                time.sleep(0.1)
            for sock in source.sample(socks, len(socks)):
                sock.send(source.randbytes(source.randrange(1, 5000)))
        until_ended(server)
        assert server.error is not None and "\n" not in str(server.error)
        assert "defect" not in str(server.error) and "python3 ended" not in str(server.error)


def test_a_client_without_the_token_is_denied() -> None:
    with serving() as (port, server):
        assert "busy with another test" in str(client_of(port, "another").error)
        assert not server.ended


@pytest.mark.parametrize(
    "answer", by_day(1, [struct.pack("!I", 3) + b"abc", b"", b"\xff\xff\xff\xff", struct.pack("!I", 2) + b"{}"])
)
def test_a_server_that_takes_any_client_outlives_garbage(answer: bytes) -> None:
    with serving(None) as (port, _):
        with connect(port) as sock:
            sock.sendall(b"c" * 37)
            assert sock.recv(1) == bytes([iperf.PARAM_EXCHANGE])
            sock.sendall(answer)
        assert client_of(port, "x").error is None


def test_it_ends_at_its_own_deadline() -> None:
    with agent(**{**server_options(free_port(), TOKEN), "deadline_s": 0.3}) as server:
        until_ended(server)
        assert "did not end within" in str(server.error)


@pytest.mark.portable
def test_a_host_tells_what_it_is() -> None:
    found = processes.facts()
    assert found["kernel"] == os.uname().release and found["machine"] == os.uname().machine
    assert int(found["cpus"]) >= 1 and int(found["memory"].split()[0]) > 10_000
    assert processes.named("/etc/os-release", "PRETTY_NAME", "=") == found.get("system", "")
    assert processes.named("/no/such/file", "x", "=") == ""


BUSY = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
RELAY = f'{BUSY.format(60)}# "trexbench-relay"'
"""A busy process that is told even where ten others take more of a busy machine, as one with a role in the test."""


@contextlib.contextmanager
def beside(source: str, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A Python beside the test, which is killed at its end."""
    with subprocess.Popen([sys.executable, "-c", source], **more) as running:
        try:
            yield running
        finally:
            running.kill()


def busy_s(pid: int) -> float:
    found = processes.parse_stat(Path(f"/proc/{pid}/stat").read_text()) or {}
    return float(found["user_s"] + found["system_s"])


def test_the_processes_of_a_host_are_told(tmp_path: Path) -> None:
    """The program of the test that has ended by then is told as it was when it was last seen."""
    go_on, busy = tmp_path / "go-on", 0.3
    own = f"{BUSY.format(busy)}import os\nwhile not os.path.exists({str(go_on)!r}): time.sleep(0.1)"
    told: dict[str, Any] = {"argv": [sys.executable, "-c", own], "port": 1, "interval_s": 0.05}

    def have_worked() -> bool:
        (program,) = one.readings[-1].threads if one.readings else [None]
        return program is not None and program.user_s + program.system_s > 0.9 * busy and busy_s(other.pid) > before

    with beside(RELAY) as other, agent(role="program", **told) as one:
        until_ended(one, lambda: one.ready)
        before = busy_s(other.pid) + 0.1
        until_ended(one, have_worked)
        go_on.touch()
        until_ended(one)
    assert one.error is None and one.processes is not None and 0.1 < one.processes.over_s < 60
    (found,) = [took for took in one.processes.took if took.process == other.pid]
    assert found.name == "trexbench-relay" and 0.05 < found.user_s + found.system_s < one.processes.over_s + 0.1
    (program,) = [took for took in one.processes.took if took.role == "endpoint"]
    assert program.user_s + program.system_s == pytest.approx(busy, abs=0.1) and program.cpus
    assert program.waiting_s is None or program.waiting_s >= 0


def test_the_ten_that_took_most_are_told_and_each_with_a_role(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ["idle", *(f"x{number}" for number in range(1, 13)), "openvpn"]
    one = {"kernel": False, "cpu": 0, "system_s": 0.0, "began": 1, "threads": {}}
    now = {10**7 + at: {**one, "name": name, "user_s": at % 13} for at, name in enumerate(names)}
    now[10**7 + 13]["user_s"] = 0.5
    read = iter([{}, now])
    monkeypatch.setattr(processes, "all_processes", lambda: next(read))
    processes.ProcessWatch().say()
    took = json.loads(capfd.readouterr().out)["processes"]["took"]
    assert [found["name"] for found in took] == [*(f"x{number}" for number in range(12, 3, -1)), "openvpn"]


def test_proc_stat_tells_name_times_and_core() -> None:
    """Names may have blanks and brackets of their own; flags tell the kernel's threads."""
    hertz = os.sysconf("SC_CLK_TCK")
    lines = [line.split(": ", 1) for line in PROC_STAT.splitlines()]
    found = {name: one for name, line in lines if (one := processes.parse_stat(line)) is not None}
    assert [one["name"] for one in found.values()] == [name for name, _ in lines]
    tunnel, soft, work = found.values()
    assert (tunnel["user_s"], tunnel["system_s"]) == (660 / hertz, 9330 / hertz)
    assert [one["cpu"] for one in (tunnel, soft, work)] == [3, 1, 2]
    assert [one["kernel"] for one in (tunnel, soft, work)] == [False, True, True]
    assert (tunnel["began"], tunnel["threads"]) == (880331, 1)
    assert processes.parse_stat("12 (sh) S 1") is None and processes.parse_stat("") is None


@pytest.mark.parametrize(
    ("name", "kernel", "role"),
    [
        ("openvpn", False, "tunnel"),
        ("trexbench-relay", False, "tunnel"),
        ("pppd", False, "pppoe"),
        ("trexbench-pppoe", False, ""),
        ("ksoftirqd/3", True, "ksoftirqd"),
        ("ksoftirqd/3", False, ""),
        ("napi/d0-8193", True, "napi"),
        ("kworker/2:1-wg-crypt-wg0", True, "tunnel"),
        ("openvpn", True, ""),
    ],
)
def test_a_name_tells_the_part_that_a_process_has(name: str, kernel: bool, role: str) -> None:
    assert processes.role_of(name, kernel) == role


def test_a_host_that_only_forwards_tells_its_processes_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leg, "ANSWER_S", 60.0)
    with beside(RELAY) as other, watched_processes(host("dut"), 90.0) as finish:
        before = busy_s(other.pid)
        eventually(lambda: busy_s(other.pid) > before, "it works", 60)
        found = finish()
    assert found is not None and 0 < found.over_s < 90
    assert other.pid in [took.process for took in found.took]
    with watched_processes(None, 30.0) as finish:
        assert finish() is None


class NoPython:
    """A transport to a host whose python3 is none; without words it has no shell either."""

    place = "box"

    def __init__(self, said: str = "") -> None:
        self.said = said

    def start(self, argv: Any) -> Any:
        if not self.said:
            raise DutError("python3 cannot be run at the prompt of box")
        return host("x").transport.start(["sh", "-c", f"echo '{self.said}' >&2; exit 1"])


@pytest.mark.parametrize("said", ["", "Fatal: no encodings"])
def test_a_host_without_python_has_no_processes_to_tell(said: str) -> None:
    there: Any = NoPython(said)
    with watched_processes(replace(host("dut"), transport=there), 30.0) as finish:
        assert finish() is None


def test_where_its_agent_is_no_python() -> None:
    there: Any = NoPython("Fatal: no encodings")
    one = Agent(EndpointHost("server", there, LOOPBACK), {})
    until_ended(one)
    one.close()
    assert str(one.error).startswith("server (box): python3 ended there (Fatal: no encodings): see whether python3 3.7")
