"""One end of a TCP test, by iperf3's protocol, or the genuine iperf3 under a time limit; and what its host reads.

Sent through a transport to a host that needs nothing but python3 (3.7 or later): the first line on stdin says what to
do, the rest of stdin only has an end, and with it this process ends at once. Each line on stdout is a JSON object
with one key: facts, ready, reading, used, output, error, done. Nothing is left on the host.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    Options = dict[str, Any]  # the first line on stdin

COOKIE_BYTES = 37
TEST_START, TEST_RUNNING, TEST_END = 1, 2, 4
PARAM_EXCHANGE, CREATE_STREAMS, SERVER_TERMINATE, CLIENT_TERMINATE = 9, 10, 11, 12
EXCHANGE_RESULTS, DISPLAY_RESULTS, IPERF_DONE = 13, 14, 16
ACCESS_DENIED, SERVER_ERROR = -1, -2
NOT_IMPLEMENTED = 13
"""iperf3's number of the error that SERVER_ERROR tells."""
REFUSALS = {
    27: ("the server has a limit for its rate", "start it without --server-bitrate-limit"),
    37: ("the test is longer than the server allows", "ask for less time, or start it without --server-max-duration"),
    134: ("the server does not know this congestion control", "name one that its kernel has"),
    142: ("the server asks for a user and a password", "start it without --authorized-users-path"),
}
"""By iperf3's number of the error, what it means to who asked, and the remedy."""

BLOCK_BYTES = 256 << 10
"""Bytes per call: with iperf3's 128 KB Python's share of the time costs a tenth of the rate (benchmarks/tcp.py)."""
PARAMETERS_LIMIT, RESULTS_LIMIT = 64 << 10, 4 << 20
MOST_STREAMS = 128
MOST_PROCESSES = 10
"""That are told, of those that took CPU time."""
CARRY = ("tunnel", "endpoint", "pppoe")
"""Parts in the test whose processes are told however little they took."""
TUNNELS = ("openvpn", "wireguard-go", "wireguard", "boringtun-cli", "charon", "trexbench-relay", "trexbench-tunnel")
SESSIONS = ("pppd", "pppoe", "pppoe-server", "accel-pppd", "trexbench-pppoe")
"""Programs, and what they are for."""
KERNEL_THREAD = 0x00200000
"""The kernel's PF_KTHREAD, of the flags of a process."""
MOST_PENDING = 32
"""Connections that have not told their cookie yet; the oldest gives way."""
COOKIE_S = 5.0
ANSWER_S = 10.0
"""For each answer of the other end."""
BLOCKED_S = 0.2
"""Time for which a sender or receiver waits before it looks whether it is to stop."""

TCP_INFO, TCP_CONGESTION = 11, 13
_BYTES = "state ca_state retransmits probes backoff options wscale flags"
_WORDS = """
    rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv
    last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space total_retrans
"""
_LATER = """
    Q:pacing_rate Q:max_pacing_rate Q:bytes_acked Q:bytes_received I:segs_out I:segs_in I:notsent_bytes I:min_rtt
    I:data_segs_in I:data_segs_out Q:delivery_rate Q:busy_time Q:rwnd_limited Q:sndbuf_limited I:delivered
    I:delivered_ce Q:bytes_sent Q:bytes_retrans I:dsack_dups I:reord_seen I:rcv_ooopack I:snd_wnd I:rcv_wnd I:rehash
    H:total_rto H:total_rto_recoveries I:total_rto_time I:received_ce I:delivered_e1_bytes I:delivered_e0_bytes
    I:delivered_ce_bytes I:received_e1_bytes I:received_e0_bytes I:received_ce_bytes H:accecn_fail_mode
    H:accecn_opt_seen
"""
TCP_INFO_FIELDS = (
    [("B", name) for name in _BYTES.split()]
    + [("I", name) for name in _WORDS.split()]
    + [(word[0], word[2:]) for word in _LATER.split()]
)
"""The kernel's struct tcp_info: it only ever grew at its end. wscale and flags are two fields each."""

BEGAN = time.monotonic()


class AgentFailure(Exception):
    """Error that says what is wrong, and what helps."""

    def __init__(self, what: str, remedy: str = "") -> None:
        Exception.__init__(self, what)
        self.what, self.remedy = what, remedy


# What is said and heard


def say(what: str, value: Any) -> None:
    data = json.dumps({what: value}).encode() + b"\n"
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:  # nobody listens any more
        end(1)


def first_line() -> Any:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte or len(line) > 65536:
            end(1)
        line += byte
    return json.loads(line.decode())


def end_with_stdin(deadline_s: float) -> None:
    """End this process when stdin ends, or at its own deadline; a thread."""
    while True:
        left_s = BEGAN + deadline_s - time.monotonic()
        if left_s <= 0:
            say(
                "error", {"what": f"did not end within {deadline_s:.0f} s", "remedy": "see whether the other end hangs"}
            )
            end(3)
        if select.select([0], [], [], left_s)[0]:
            if not os.read(0, 4096):
                end(0)
            ASKED.set()


CHILDREN: list[subprocess.Popen[bytes]] = []
ASKED = threading.Event()
"""Something came on stdin after the first line."""


def end(code: int) -> NoReturn:
    for child in CHILDREN:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    os._exit(code)


# What the host tells of itself


def text_of(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return " ".join(file.read().split())
    except OSError:
        return ""


def named(path: str, names: str, sign: str) -> str:
    """Return what follows the sign in the first line of a file that starts with one of these names."""
    with contextlib.suppress(OSError), open(path, errors="replace") as file:
        for line in file:
            name, _, value = line.partition(sign)
            if name.strip() in names.split("|"):
                return value.strip().strip('"')
    return ""


def facts() -> dict[str, str]:
    ipv4, core = "/proc/sys/net/ipv4/", "/proc/sys/net/core/"
    found = {
        "system": named("/etc/os-release", "PRETTY_NAME", "="),
        "kernel": os.uname().release,
        "machine": os.uname().machine,
        "cpu": named("/proc/cpuinfo", "model name|Model|Hardware|cpu model", ":"),
        "cpus": str(os.cpu_count() or ""),
        "memory": named("/proc/meminfo", "MemTotal", ":"),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "congestion_default": text_of(ipv4 + "tcp_congestion_control"),
        "congestion_available": text_of(ipv4 + "tcp_available_congestion_control"),
    }
    for name in ("tcp_rmem", "tcp_wmem", "tcp_adv_win_scale"):
        found[name] = text_of(ipv4 + name)
    for name in ("rmem_max", "wmem_max"):
        found[name] = text_of(core + name)
    return {name: value for name, value in found.items() if value}


def cpu_times() -> list[dict[str, Any]]:
    """/proc/stat by CPU, in seconds; stolen time counts in the total only, guest time is in user time already."""
    hertz, found = os.sysconf("SC_CLK_TCK"), []
    with contextlib.suppress(OSError, ValueError), open("/proc/stat") as file:
        for line in file:
            name, *words = line.split() or [""]
            if not name.startswith("cpu") or not name[3:].isdigit():
                continue
            user, nice, system, idle, iowait, irq, softirq, stolen = ([int(word) / hertz for word in words] + [0])[:8]
            busy = user + nice + system + irq + softirq
            total = busy + idle + iowait + stolen
            parts = {"packet_s": softirq, "user_s": user + nice, "system_s": system}
            found.append(dict(parts, cpu=int(name[3:]), total_s=total, busy_s=busy))
    return found


def thread_times(pid: int) -> list[dict[str, Any]]:
    hertz, found, folder = os.sysconf("SC_CLK_TCK"), [], f"/proc/{pid}/task/"
    with contextlib.suppress(OSError):
        for thread in os.listdir(folder):
            words = text_of(folder + thread + "/stat").rpartition(")")[2].split()
            if len(words) < 13:
                continue
            times = {"thread": int(thread), "user_s": int(words[11]) / hertz, "system_s": int(words[12]) / hertz}
            delay = text_of(folder + thread + "/schedstat").split()
            found.append(dict(times, waiting_s=int(delay[1]) / 1e9) if len(delay) == 3 else times)
    return found


def parse_stat(text: str) -> dict[str, Any] | None:
    """/proc/PID/stat or that of a thread: name, times in seconds, the CPU it ran on last; None for what is none.

    began: its start by the kernel's clock, which tells two processes of one number apart.
    """
    hertz, (before, _, after) = os.sysconf("SC_CLK_TCK"), text.rpartition(")")
    words = after.split()
    if len(words) < 37:
        return None
    found = {"name": before.partition("(")[2], "kernel": bool(int(words[6]) & KERNEL_THREAD), "cpu": int(words[36])}
    found.update(user_s=int(words[11]) / hertz, system_s=int(words[12]) / hertz, began=int(words[19]))
    return dict(found, threads=int(words[17]))


def one_task(folder: str) -> dict[str, Any] | None:
    """A process or thread, with its run delay where the kernel tells it."""
    found, delay = parse_stat(text_of(folder + "/stat")), text_of(folder + "/schedstat").split()
    return dict(found, waiting_s=int(delay[1]) / 1e9) if found is not None and len(delay) == 3 else found


def one_process(pid: int) -> dict[str, Any] | None:
    """With its threads in place of their number; a process of one thread is its own."""
    found = one_task(f"/proc/{pid}")
    if found is None:
        return None
    tasks: dict[int, Any] = {pid: found}
    if found["threads"] > 1:
        with contextlib.suppress(OSError):
            folder = f"/proc/{pid}/task/"
            tasks = {int(name): one for name in os.listdir(folder) for one in [one_task(folder + name)] if one}
    return dict(found, threads=tasks)


def all_processes() -> dict[int, dict[str, Any]]:
    """Read all processes of this host (of its PID namespace)."""
    found = {}
    with contextlib.suppress(OSError):
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            one = one_process(pid)
            if one is not None:
                found[pid] = one
    return found


def network_of(pid: Any) -> str:
    """The network namespace of a process; empty where it may not be known."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def named_program(pid: int, name: str) -> str:
    """The name of a process; of one of ours in python3 its own."""
    if not name.startswith("python"):
        return name
    command = text_of(f"/proc/{pid}/cmdline")
    at = command.find('"trexbench-')
    return command[at + 1 :].partition('"')[0] if at >= 0 else name


def role_of(name: str, kernel: bool) -> str:
    """Role of a process of this name, where the name says so. Kernel WireGuard works in kworkers, and says wg-."""
    if kernel:
        if name.startswith("kworker/"):
            return "tunnel" if "wg-" in name else ""
        return "ksoftirqd" if name.startswith("ksoftirqd/") else "napi" if name.startswith("napi/") else ""
    return "tunnel" if name in TUNNELS else "pppoe" if name in SESSIONS else ""


class ProcessWatch:
    """Which processes took CPU time, from now on. program: the one that sends or receives; tunnels: what carries it."""

    def __init__(self, program: int = 0, tunnels: Any = ()) -> None:
        self.program, self.tunnels, self.own = program, set(tunnels), network_of("self")
        self.noted: dict[int, dict[str, Any]] = {}
        self.began, self.before = time.monotonic(), all_processes()

    def note(self) -> None:
        """The program as it is now: its threads, or itself, may be gone before all is read."""
        one = one_process(self.program)
        if one is not None:
            self.noted[self.program] = one

    def say(self) -> None:
        """Report the processes that took most, and all that have a part in the test; one that has ended is missing."""
        over_s = time.monotonic() - self.began
        found = [
            one
            for pid, now in {**all_processes(), **self.noted}.items()
            for one in [self._took(pid, now)]
            if one["user_s"] + one["system_s"] > 0 or one["role"] in CARRY
        ]
        found.sort(key=lambda one: one["user_s"] + one["system_s"], reverse=True)
        found.sort(key=lambda one: one["role"] not in CARRY)  # none of these is left out
        told = found[: max(MOST_PROCESSES, sum(one["role"] in CARRY for one in found))]
        told.sort(key=lambda one: one["user_s"] + one["system_s"], reverse=True)
        say("processes", {"over_s": over_s, "took": told})

    def _took(self, pid: int, now: dict[str, Any]) -> dict[str, Any]:
        then = self.before.get(pid, {})
        if then.get("began") != now["began"]:
            then = {"threads": {}}
        took = {name: max(0.0, now[name] - then.get(name, 0.0)) for name in ("user_s", "system_s")}
        took.update(process=pid, name=now["name"], whose="kernel" if now["kernel"] else "", role="")
        if sum((took["user_s"], took["system_s"])) <= 0 and pid != self.program and pid not in self.tunnels:
            return took
        tasks = []
        for number, one in now["threads"].items():
            old = then["threads"].get(number, {})
            grown = [one[name] - old.get(name, 0.0) for name in ("user_s", "system_s")]
            delay = one["waiting_s"] - old.get("waiting_s", 0.0) if "waiting_s" in one else None
            tasks.append((max(0.0, sum(grown)), one["cpu"], delay))
        tasks.sort(key=lambda task: task[0], reverse=True)
        took["cpus"] = list(dict.fromkeys(cpu for busy_s, cpu, _ in tasks if busy_s > 0)) or [now["cpu"]]
        delays = [delay for _, _, delay in tasks if delay is not None]
        if delays:
            took["waiting_s"] = max(0.0, sum(delays))
        if len(tasks) > 1:
            took["busiest_thread_s"] = tasks[0][0]
        took["name"] = name = named_program(pid, now["name"]) if not now["kernel"] else now["name"]
        if not now["kernel"] and pid != self.program and pid not in self.tunnels:
            there = network_of(pid)
            if there and self.own and there != self.own:
                return dict(took, whose="elsewhere")
        part = "endpoint" if pid == self.program else "tunnel" if pid in self.tunnels else role_of(name, now["kernel"])
        return dict(took, role=part)


def parse_info(data: bytes) -> dict[str, int]:
    """TCP_INFO by the kernel's names, as many as this kernel returns."""
    found, at = {}, 0
    for kind, name in TCP_INFO_FIELDS:
        size = struct.calcsize(kind)
        if at + size > len(data):
            break
        found[name] = struct.unpack_from("=" + kind, data, at)[0]
        at += size
    low_first = sys.byteorder == "little"
    if "flags" in found:
        scales, flags = found.pop("wscale"), found.pop("flags")
        found["snd_wscale"], found["rcv_wscale"] = (
            (scales & 15, scales >> 4) if low_first else (scales >> 4, scales & 15)
        )
        limited, failed = (flags & 1, flags >> 1 & 3) if low_first else (flags >> 7, flags >> 5 & 3)
        found["delivery_rate_app_limited"], found["fastopen_client_fail"] = limited, failed
    return found


def info_of(sock: socket.socket) -> dict[str, int]:
    try:
        return parse_info(sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 512))
    except OSError:
        return {}


def reading(streams: list[PayloadStream], pid: int, began: float) -> dict[str, Any]:
    payload, at_s = [one.bytes for one in streams], time.monotonic() - began
    counts = []
    for one in streams:
        count = {"stream": one.number, "sends": one.sends, "payload_bytes": payload.pop(0), "info": info_of(one.sock)}
        for option, name in ((socket.SO_SNDBUF, "send_buffer_bytes"), (socket.SO_RCVBUF, "receive_buffer_bytes")):
            count[name] = one.sock.getsockopt(socket.SOL_SOCKET, option)
        counts.append(count)
    return {"at_s": at_s, "streams": counts, "cpus": cpu_times(), "threads": thread_times(pid)}


# Bytes on the control connection


def receive(sock: socket.socket, size: int, within_s: float = ANSWER_S) -> bytes:
    deadline, found = time.monotonic() + within_s, b""
    while len(found) < size:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            chunk = sock.recv(min(size - len(found), 65536))
        except socket.timeout:  # noqa: UP041, before 3.10 they are two
            raise AgentFailure(f"the other end did not answer within {within_s:g} s", "see whether it hangs") from None
        except OSError as error:
            raise AgentFailure(f"the other end closed the connection ({error.strerror})") from None
        if not chunk:
            raise AgentFailure("the other end closed the connection", "see what it says")
        found += chunk
    return found


def send(sock: socket.socket, data: bytes) -> None:
    sock.settimeout(ANSWER_S)
    try:
        sock.sendall(data)
    except OSError as error:
        raise AgentFailure(f"the other end closed the connection ({error})") from None


def send_state(sock: socket.socket, state: int) -> None:
    send(sock, struct.pack("b", state))


def receive_state(sock: socket.socket) -> int:
    return int(struct.unpack("b", receive(sock, 1))[0])


def refusal(state: int, sock: socket.socket) -> AgentFailure:
    """Return the failure that an unexpected state stands for."""
    if state == ACCESS_DENIED:
        return AgentFailure("the server is busy with another test", "wait for its end, or use another port")
    if state == SERVER_TERMINATE:
        return AgentFailure("the server was ended")
    if state == CLIENT_TERMINATE:
        return AgentFailure("the client was ended")
    if state == SERVER_ERROR:
        (number,) = struct.unpack("!i", receive(sock, 4))
        try:
            (reason,) = struct.unpack("!i", receive(sock, 4))
        except AgentFailure:  # as iperf3 3.12 does that refuses a client without a password
            reason = 0
        why = os.strerror(reason) if 0 < reason < 4096 else "no reason told"
        otherwise = (f"the server gave up with iperf3's error {number} ({why})", "see what it says")
        return AgentFailure(*REFUSALS.get(number, otherwise))
    return AgentFailure(f"the other end sent {state}, which is no state of iperf3's here", "see what listens there")


def expect(sock: socket.socket, wanted: int) -> None:
    state = receive_state(sock)
    if state != wanted:
        raise refusal(state, sock)


def send_json(sock: socket.socket, value: Any) -> None:
    data = json.dumps(value).encode()
    send(sock, struct.pack("!I", len(data)) + data)


def receive_json(sock: socket.socket, limit: int) -> dict[str, Any]:
    (size,) = struct.unpack("!I", receive(sock, 4))
    if not 0 < size <= limit:
        raise AgentFailure(f"the other end announced {size} bytes of JSON", f"at most {limit} are read")
    return parse_json(receive(sock, size))


def parse_json(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise AgentFailure("the other end sent what is no JSON object", "see what listens there")
    return found


# Streams


class PayloadStream:
    """One connection that carries payload, and the thread that sends or receives on it."""

    def __init__(self, number: int, sends: bool, sock: socket.socket) -> None:
        self.number, self.sends, self.sock = number, sends, sock
        self.bytes = 0
        self.omitted_bytes = self.omitted_retransmits = 0
        self.error = ""

    def retransmits(self) -> int:
        return info_of(self.sock).get("total_retrans", 0)

    @property
    def id(self) -> int:
        """Number that iperf3 gives the stream, on both ends alike."""
        return 1 if self.number == 1 else self.number + 1


class Carrier:
    """Sends and receives on all streams until it is stopped; a thread each, which waits without the GIL."""

    def __init__(self, streams: list[PayloadStream], zerocopy: bool, tunnels: Any = ()) -> None:
        self.streams, self.zerocopy, self.stopping = streams, zerocopy, False
        self.wake, self._waker = os.pipe()
        self.processes = ProcessWatch(
            os.getpid(), tunnels
        )  # all of /proc: not while payload flows, and told when it does no more
        self.began = time.monotonic()
        self.threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in streams]
        for one in streams:
            one.sock.settimeout(None)
            patience = struct.pack("ll", 0, int(BLOCKED_S * 1e6))
            one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
            one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        for thread in self.threads:
            thread.start()

    def _run(self, stream: PayloadStream) -> None:
        move = self._receive if not stream.sends else self._send_file if self.zerocopy else self._send
        while not self.stopping:
            try:
                move(stream)
                if not self.stopping:
                    stream.error = "the other end closed it"
            except BlockingIOError:
                continue
            except OSError as error:
                stream.error = error.strerror or str(error)
            break
        if stream.error and not self.stopping:
            os.write(self._waker, b"!")

    def _send(self, stream: PayloadStream) -> None:
        block, send = memoryview(os.urandom(BLOCK_BYTES)), stream.sock.send
        while not self.stopping:
            stream.bytes += send(block)

    def _send_file(self, stream: PayloadStream) -> None:
        """By sendfile, as iperf3 -Z: the kernel takes the pages of a file that has no name."""
        with tempfile.TemporaryFile() as file:
            file.write(os.urandom(BLOCK_BYTES))
            file.flush()
            out, source = stream.sock.fileno(), file.fileno()
            while not self.stopping:
                stream.bytes += os.sendfile(out, source, 0, BLOCK_BYTES)

    def _receive(self, stream: PayloadStream) -> None:
        block, receive_into = bytearray(BLOCK_BYTES), stream.sock.recv_into
        while not self.stopping:
            got = receive_into(block)
            if not got:
                return
            stream.bytes += got

    def watch(self, control: socket.socket, omit_s: float, interval_s: float, ends_s: float | None) -> None:
        """Say a reading at each interval, until ends_s, or until the client says that it has ended (None)."""
        omitting = omit_s > 0
        ready: list[Any] = []
        said_at = self.began
        say("reading", reading(self.streams, os.getpid(), self.began))
        while True:
            elapsed = time.monotonic() - self.began
            if control in ready:
                state = receive_state(control)
                if ends_s is not None or state != TEST_END:
                    raise refusal(state, control)
                break
            if self.wake in ready:
                broken = next(one for one in self.streams if one.error)
                raise AgentFailure(f"stream {broken.number} broke off ({broken.error})", "see what the other end says")
            if omitting and elapsed >= omit_s:
                omitting = False
                for one in self.streams:
                    one.omitted_bytes, one.omitted_retransmits = one.bytes, one.retransmits()
            if ends_s is not None and elapsed >= ends_s:
                break
            if time.monotonic() - said_at >= interval_s:
                said_at += interval_s * int((time.monotonic() - said_at) / interval_s)
                say("reading", reading(self.streams, os.getpid(), self.began))
            times = [said_at - self.began + interval_s] + [omit_s] * omitting + ([ends_s] if ends_s is not None else [])
            wait_s = max(0.0, min(times) - (time.monotonic() - self.began))
            either: list[Any] = [control, self.wake]
            ready = select.select(either, [], [], wait_s)[0]
        # What is left of an interval is too short for a rate where the other end's clock was a little later.
        if time.monotonic() - said_at > interval_s / 2:
            say("reading", reading(self.streams, os.getpid(), self.began))
        self.processes.note()
        self.stopping = True

    def results(self, seconds: float) -> dict[str, Any]:
        """Results as iperf3 reports them to the other end; its readers want every key."""
        elapsed, times = max(1e-9, time.monotonic() - self.began), os.times()
        share = {"cpu_util_user": 100 * times.user / elapsed, "cpu_util_system": 100 * times.system / elapsed}
        streams = []
        for one in self.streams:
            again = one.retransmits() - one.omitted_retransmits if one.sends else -1
            count = {"id": one.id, "bytes": one.bytes - one.omitted_bytes, "retransmits": again, "jitter": 0}
            for name in ("errors", "omitted_errors", "packets", "omitted_packets", "start_time"):
                count[name] = 0
            streams.append(dict(count, end_time=seconds))
        sends = any(one.sends for one in self.streams)
        return dict(
            share,
            cpu_util_total=sum(share.values()),
            sender_has_retransmits=1 if sends else -1,
            congestion_used=congestion_of(self.streams),
            streams=streams,
        )

    def close(self) -> None:
        self.stopping = True
        for one in self.streams:
            with contextlib.suppress(OSError):
                one.sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(1)
        for one in self.streams:
            one.sock.close()


def congestion_of(streams: list[PayloadStream]) -> str:
    """Congestion control that the kernel uses on these streams, by their first."""
    name = streams[0].sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16)
    return name.partition(b"\0")[0].decode(errors="replace")


def tune(sock: socket.socket, options: Options) -> None:
    """Buffers and congestion control; a listener passes them on to what it accepts."""
    window = options.get("window")
    if window:
        try:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                sock.setsockopt(socket.SOL_SOCKET, option, int(window))
        except OSError as error:
            raise AgentFailure(f"buffers of {window} bytes: the kernel does not take them ({error.strerror})") from None
    name = options.get("congestion")
    if name:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
        except OSError:
            there = text_of("/proc/sys/net/ipv4/tcp_available_congestion_control")
            raise AgentFailure(
                f"congestion control {name} is not there", f"use one of: {there}; or load its module"
            ) from None


def opened(address: str, port: int) -> tuple[socket.socket, Any]:
    """A socket of the address's family, and its socket address."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )[0]
        return socket.socket(family, kind, protocol), where
    except OSError as error:
        raise AgentFailure(f"{address} cannot be used ({error})") from None


# The client


def connected(options: Options, tuned: bool) -> socket.socket:
    address, port = options["peer"], options["port"]
    sock, where = opened(address, port)
    if tuned:
        tune(sock, options)
    sock.settimeout(ANSWER_S)
    try:
        if options.get("address"):
            sock.bind(opened_at(options["address"]))
        sock.connect(where)
    except socket.timeout:  # noqa: UP041, before 3.10 they are two
        raise AgentFailure(
            f"{address} port {port} does not answer", "see whether a route leads there, or a firewall drops it"
        ) from None
    except OSError as error:
        if error.errno == errno.ECONNREFUSED:
            raise AgentFailure(f"{address} port {port} refuses connections", "start a server there") from None
        raise AgentFailure(f"{address} port {port} cannot be reached ({error.strerror})") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0 if tuned else 1)
    send(sock, cookie_bytes(options["cookie"]))
    return sock


def opened_at(address: str) -> Any:
    sock, where = opened(address, 0)
    sock.close()
    return where


def cookie_bytes(cookie: str) -> bytes:
    return cookie.encode().ljust(COOKIE_BYTES, b"\0")[:COOKIE_BYTES]


def parameters(options: Options) -> dict[str, Any]:
    """Return what iperf3's client sends its server. It counts whole seconds; the client is the one to end the test."""
    told: Options = {"tcp": True, "omit": int(options["omit_s"]), "time": int(options["time_s"] + 0.999), "num": 0}
    told.update(blockcount=0, parallel=options["streams"], len=BLOCK_BYTES, client_version="3.12")
    told.update(pacing_timer=1000)
    if options["way"] == "reverse":
        told["reverse"] = True
    if options["way"] == "bidir":
        told["bidirectional"] = True
    for name in ("window", "congestion"):
        if options.get(name):
            told[name] = options[name]
    if options.get("zerocopy"):
        told["zerocopy"] = 1
    return told


def client(options: Options) -> None:
    control = connected(options, tuned=False)
    expect(control, PARAM_EXCHANGE)
    send_json(control, parameters(options))
    expect(control, CREATE_STREAMS)
    streams: list[PayloadStream] = []
    for sends in directions("client", options["way"]):
        for _ in range(options["streams"]):
            streams.append(PayloadStream(len(streams) + 1, sends, connected(options, tuned=True)))
    expect(control, TEST_START)
    expect(control, TEST_RUNNING)
    carrier = Carrier(streams, bool(options.get("zerocopy")), options.get("tunnels") or ())
    say("used", {"congestion": congestion_of(streams)})
    carrier.watch(control, options["omit_s"], options["interval_s"], options["omit_s"] + options["time_s"])
    send_state(control, TEST_END)
    carrier.processes.say()
    expect(control, EXCHANGE_RESULTS)
    send_json(control, carrier.results(options["time_s"]))
    receive_json(control, RESULTS_LIMIT)
    expect(control, DISPLAY_RESULTS)
    carrier.close()
    send_state(control, IPERF_DONE)
    control.close()


def directions(role: str, way: str) -> list[bool]:
    """Return whether this end sends, for each group of streams in the order in which they are opened."""
    client_sends = {"forward": [True], "reverse": [False], "bidir": [True, False]}[way]
    return client_sends if role == "client" else [not one for one in client_sends]


# The server


def listening(options: Options) -> socket.socket:
    sock, where = opened(options["address"], options["port"])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(where)
        sock.listen(MOST_STREAMS)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise port_in_use(options["port"]) from None
        raise AgentFailure(f"{where[0]} port {where[1]} cannot be listened on ({error.strerror})") from None
    return sock


def port_in_use(port: int) -> AgentFailure:
    return AgentFailure(f"port {port} is in use", "end what listens there, or use another port")


def gather(listener: socket.socket, cookie: bytes, count: int, within_s: float) -> tuple[list[socket.socket], bytes]:
    """The first connections that tell this cookie (empty: any, and from then on that), in the order they came.

    All others are cut off: wrong ones at once, slow ones after COOKIE_S.
    """
    deadline, came = time.monotonic() + within_s, 0
    pending: dict[socket.socket, list[Any]] = {}
    found: dict[int, socket.socket] = {}
    try:
        while len(found) < count:
            now = time.monotonic()
            if now > deadline:
                raise AgentFailure(f"{len(found)} of {count} connections came within {within_s:g} s")
            for slow in [one for one, (_, _, until) in pending.items() if now > until]:
                drop(pending, slow)
            for sock in select.select([listener, *pending], [], [], 0.2)[0]:
                if sock is listener:
                    with contextlib.suppress(OSError):
                        new = listener.accept()[0]
                        new.setblocking(False)
                        came += 1
                        pending[new] = [came, b"", now + COOKIE_S]
                    if len(pending) > MOST_PENDING:
                        drop(pending, min(pending, key=lambda one: int(pending[one][0])))
                    continue
                if sock not in pending:
                    continue
                order, told, _ = pending[sock]
                try:
                    chunk = sock.recv(COOKIE_BYTES - len(told))
                except BlockingIOError:
                    continue
                except OSError:
                    chunk = b""
                pending[sock][1] = told = told + chunk
                if not chunk:
                    drop(pending, sock)
                elif len(told) == COOKIE_BYTES:
                    if len(found) < count and told == (cookie or told):
                        cookie = told
                        del pending[sock]
                        found[order] = sock
                    else:
                        with contextlib.suppress(OSError):
                            sock.send(struct.pack("b", ACCESS_DENIED))
                        drop(pending, sock)
    except BaseException:
        for sock in found.values():
            sock.close()
        raise
    finally:
        for sock in list(pending):
            drop(pending, sock)
    return [found[order] for order in sorted(found)], cookie


def drop(pending: dict[Any, list[Any]], sock: socket.socket) -> None:
    del pending[sock]
    sock.close()


def asked_of(told: dict[str, Any]) -> Options:
    """A client's parameters, checked; AgentFailure for what this end cannot do."""

    def number(name: str, most: int, otherwise: int = 0) -> int:
        value = told.get(name, otherwise)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
            raise AgentFailure(f"the client asks for {name} {str(value)[:40]!r}", f"at most {most}")
        return int(value)

    if told.get("tcp") is not True:
        raise AgentFailure("the client asks for another protocol than TCP", "leave out -u and --sctp")
    sends = told.get("reverse") is True or told.get("bidirectional") is True
    if sends and (number("bandwidth", 1 << 60) or number("fqrate", 1 << 60)):
        raise AgentFailure("the client asks this server to limit its rate", "leave out -b and --fq-rate")
    congestion = told.get("congestion")
    if congestion is not None and not (isinstance(congestion, str) and 0 < len(congestion) < 16):
        raise AgentFailure("the client asks for a congestion control that has no name")
    return {
        "way": "bidir"
        if told.get("bidirectional") is True
        else "reverse"
        if told.get("reverse") is True
        else "forward",
        "streams": max(1, number("parallel", MOST_STREAMS, 1)),
        "omit_s": number("omit", 86400),
        "time_s": number("time", 86400),
        "window": number("window", 1 << 30),
        "zerocopy": bool(told.get("zerocopy")),
        "congestion": congestion,
    }


def negotiated(control: socket.socket, listener: socket.socket) -> Options:
    send_state(control, PARAM_EXCHANGE)
    try:
        asked = asked_of(receive_json(control, PARAMETERS_LIMIT))
        tune(listener, asked)
    except AgentFailure:
        with contextlib.suppress(AgentFailure):
            send_state(control, SERVER_ERROR)
            send(control, struct.pack("!ii", NOT_IMPLEMENTED, 0))
        raise
    send_state(control, CREATE_STREAMS)
    return asked


def server(options: Options) -> None:
    listener = listening(options)
    say("ready", {})
    token = cookie_bytes(options["cookie"]) if options.get("cookie") else b""
    while True:
        (control,), cookie = gather(listener, token, 1, options["deadline_s"])
        control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            asked = negotiated(control, listener)
            break
        except AgentFailure:
            control.close()
            if token:
                raise
    ways = directions("server", asked["way"])
    found, _ = gather(listener, cookie, asked["streams"] * len(ways), ANSWER_S)
    listener.close()
    streams = [PayloadStream(at + 1, ways[at // asked["streams"]], sock) for at, sock in enumerate(found)]
    send_state(control, TEST_START)
    send_state(control, TEST_RUNNING)
    carrier = Carrier(streams, asked["zerocopy"], options.get("tunnels") or ())
    say("used", {"congestion": congestion_of(streams)})
    carrier.watch(control, asked["omit_s"], options["interval_s"], None)
    carrier.processes.say()
    seconds = time.monotonic() - carrier.began - asked["omit_s"]
    results = carrier.results(seconds)
    carrier.close()
    send_state(control, EXCHANGE_RESULTS)
    receive_json(control, RESULTS_LIMIT)
    send_json(control, results)
    send_state(control, DISPLAY_RESULTS)
    with contextlib.suppress(AgentFailure):
        expect(control, IPERF_DONE)
    control.close()


# The genuine iperf3, or nothing: what the host reads meanwhile


def listens(port: int) -> bool:
    """Test whether anything in this network namespace listens on this port."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open("/proc/net/" + name) as file:
            for line in file:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def dying_with_parent() -> Any:
    """PR_SET_PDEATHSIG, for the child to call: it ends even if this process is killed. None: there is no such call."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except Exception:
        return None
    return lambda: prctl(1, signal.SIGKILL)


def program(options: Options) -> None:
    """Run options["argv"] (none: nothing) and say a reading at each interval until it ends."""
    argv, child, serves = options.get("argv"), None, bool(options.get("serves"))
    if argv and serves and listens(options["port"]):
        raise port_in_use(options["port"])
    out, said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
    if argv:
        try:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=said,
                start_new_session=True,
                preexec_fn=dying_with_parent(),
            )
        except OSError as error:
            remedy = "install it, or use the embedded engine" if "port" in options else "install it"
            raise AgentFailure(f"{argv[0]} cannot be started ({error.strerror})", remedy) from None
        CHILDREN.append(child)
        while serves and child.poll() is None and not listens(options["port"]):
            time.sleep(0.02)
    if child is None or child.poll() is None:
        say("ready", {})
    own = child.pid if child is not None else os.getpid()
    began, number, processes = time.monotonic(), 0, ProcessWatch(own, options.get("tunnels") or ())
    while child is None or child.poll() is None:
        say("reading", reading([], own, BEGAN))
        processes.note()
        number += 1
        left_s = began + number * options["interval_s"] - time.monotonic()
        try:
            if child is not None:
                child.wait(max(0.0, left_s))
            else:
                time.sleep(max(0.0, left_s))
        except subprocess.TimeoutExpired:
            continue
    CHILDREN.clear()
    processes.say()
    at_s = time.monotonic() - BEGAN
    say("reading", reading([], os.getpid(), BEGAN))
    texts = []
    for file in (out, said):
        file.seek(0)
        texts.append(file.read(32 << 20).decode(errors="replace"))
    say("output", {"at_s": at_s, "code": child.returncode, "stdout": texts[0], "stderr": texts[1]})


def watcher(options: Options) -> None:
    """Tell the processes between the begin and the moment at which anything comes on stdin."""
    processes = ProcessWatch(0, options.get("tunnels") or ())
    say("ready", {})
    ASKED.wait()
    processes.say()


def main() -> None:
    options = first_line()
    threading.Thread(target=end_with_stdin, args=(options["deadline_s"],), daemon=True).start()
    try:
        if options.get("cpu") is not None:
            try:
                os.sched_setaffinity(0, [options["cpu"]])
            except OSError as error:
                raise AgentFailure("CPU {} cannot be used ({})".format(options["cpu"], error.strerror)) from None
        say("facts", facts())
        {"client": client, "server": server, "program": program, "watcher": watcher}[options["role"]](options)
        say("done", {})
    except AgentFailure as failure:
        say("error", {"what": failure.what, "remedy": failure.remedy})
        end(1)
    except Exception as error:
        say("error", {"what": f"{type(error).__name__}: {error}", "remedy": "this is a defect of trexbench"})
        end(1)
    end(0)


if __name__ == "__main__":
    main()
