"""Connections that carry payload, the threads that send and receive on them, and the kernel's TCP_INFO of each."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

from .common import ProgramFailure, say, text_of
from .iperf import TEST_END, receive_state, refusal
from .processes import ProcessWatch, stat_lines, thread_times

if TYPE_CHECKING:
    from .common import Options

BLOCK_BYTES = 256 << 10
"""Bytes per call: with iperf3's 128 KB Python's share of the time costs a tenth of the rate (benchmarks/tcp.py)."""
BLOCKED_S = 0.2
"""Time after which a blocked sender or receiver checks whether it is to stop."""
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
    I:delivered_ce_bytes I:received_e1_bytes I:received_e0_bytes I:received_ce_bytes
"""
TCP_INFO_FIELDS = (
    [("B", name) for name in _BYTES.split()]
    + [("I", name) for name in _WORDS.split()]
    + [(word[0], word[2:]) for word in _LATER.split()]
)
"""The kernel's struct tcp_info up to what Linux 7.0 laid out anew. wscale and flags are two fields each."""


def parse_info(data: bytes) -> dict[str, int]:
    """Read TCP_INFO by the kernel's names, as far as this kernel fills it."""
    info, at = {}, 0
    for kind, name in TCP_INFO_FIELDS:
        size = struct.calcsize(kind)
        if at + size > len(data):
            break
        info[name] = struct.unpack_from("=" + kind, data, at)[0]
        at += size
    if "flags" in info:
        low_first, scales, flags = sys.byteorder == "little", info.pop("wscale"), info.pop("flags")
        send, receive = (scales & 15, scales >> 4) if low_first else (scales >> 4, scales & 15)
        limited, failed = (flags & 1, flags >> 1 & 3) if low_first else (flags >> 7, flags >> 5 & 3)
        info.update(snd_wscale=send, rcv_wscale=receive, delivery_rate_app_limited=limited, fastopen_client_fail=failed)
    return info


def info_of(sock: socket.socket) -> dict[str, int]:
    try:
        return parse_info(sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 512))
    except OSError:
        return {}


def reading(streams: list[PayloadStream], pid: int, began: float) -> dict[str, Any]:
    payload, at_s = [stream.bytes for stream in streams], time.monotonic() - began  # first: the rest takes time
    counts = [
        {
            "stream": stream.number,
            "sends": stream.sends,
            "payload_bytes": payload[at],
            "info": info_of(stream.sock),
            "send_buffer_bytes": stream.sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
            "receive_buffer_bytes": stream.sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        }
        for at, stream in enumerate(streams)
    ]
    return {"at_s": at_s, "streams": counts, "stat": stat_lines(), "threads": thread_times(pid)}


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

    def __init__(self, streams: list[PayloadStream], zerocopy: bool) -> None:
        self.streams, self.zerocopy, self.stopping = streams, zerocopy, False
        self.wake, self._waker = os.pipe()
        self.processes = ProcessWatch(os.getpid())  # reads all of /proc: only before and after payload flows
        self.flows = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(stream,), daemon=True) for stream in streams]
        patience = struct.pack("ll", 0, int(BLOCKED_S * 1e6))
        for stream in streams:
            stream.sock.settimeout(None)
            stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
            stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        for thread in self.threads:
            thread.start()

    def _run(self, stream: PayloadStream) -> None:
        self.flows.wait()
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
        """Send by sendfile, as iperf3 -Z does: the kernel takes the pages of an unnamed file."""
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
        """Report a reading at each interval, until ends_s, or (None) until the client reports its end."""
        omitting = omit_s > 0
        ready: list[Any] = []
        self.began = said_at = time.monotonic()
        say("reading", reading(self.streams, os.getpid(), self.began))
        self.flows.set()
        while True:
            elapsed = time.monotonic() - self.began
            if control in ready:
                state = receive_state(control)
                if ends_s is not None or state != TEST_END:
                    raise refusal(state, control)
                break
            if self.wake in ready:
                broken = next(stream for stream in self.streams if stream.error)
                raise ProgramFailure(
                    f"stream {broken.number} broke off ({broken.error})", "see what the other end says"
                )
            if omitting and elapsed >= omit_s:
                omitting = False
                for stream in self.streams:
                    stream.omitted_bytes, stream.omitted_retransmits = stream.bytes, stream.retransmits()
            if ends_s is not None and elapsed >= ends_s:
                break
            if time.monotonic() - said_at >= interval_s:
                said_at += interval_s * int((time.monotonic() - said_at) / interval_s)
                say("reading", reading(self.streams, os.getpid(), self.began))
            times = [said_at - self.began + interval_s] + [omit_s] * omitting + ([ends_s] if ends_s is not None else [])
            wait_s = max(0.0, min(times) - (time.monotonic() - self.began))
            either: list[Any] = [control, self.wake]
            ready = select.select(either, [], [], wait_s)[0]
        # The rest of an interval is too short for a rate if the other end's clock was a little later.
        if time.monotonic() - said_at > interval_s / 2:
            say("reading", reading(self.streams, os.getpid(), self.began))
        self.processes.note()
        self.stopping = True

    def results(self, seconds: float) -> dict[str, Any]:
        """Results as iperf3 reports them to the other end, which expects every key."""
        elapsed, times = max(1e-9, time.monotonic() - self.began), os.times()
        share = {"cpu_util_user": 100 * times.user / elapsed, "cpu_util_system": 100 * times.system / elapsed}
        zeros = dict.fromkeys(("jitter", "errors", "omitted_errors", "packets", "omitted_packets", "start_time"), 0)
        streams = []
        for stream in self.streams:
            resent = stream.retransmits() - stream.omitted_retransmits if stream.sends else -1
            count = {"id": stream.id, "bytes": stream.bytes - stream.omitted_bytes, "retransmits": resent}
            streams.append(dict(zeros, **count, end_time=seconds))
        return dict(
            share,
            cpu_util_total=sum(share.values()),
            sender_has_retransmits=1 if any(stream.sends for stream in self.streams) else -1,
            congestion_used=congestion_of(self.streams),
            streams=streams,
        )

    def close(self) -> None:
        self.stopping = True
        for stream in self.streams:
            with contextlib.suppress(OSError):
                stream.sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(1)
        for stream in self.streams:
            stream.sock.close()


def congestion_of(streams: list[PayloadStream]) -> str:
    """Congestion control that the kernel uses on the first of these streams."""
    name = streams[0].sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16)
    return name.partition(b"\0")[0].decode(errors="replace")


def tune(sock: socket.socket, options: Options) -> None:
    """Set the congestion control; a listener passes it on to what it accepts."""
    name = options.get("congestion")
    if name:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
        except OSError:
            there = text_of("/proc/sys/net/ipv4/tcp_available_congestion_control")
            what = f"congestion control {name} is not available"
            raise ProgramFailure(what, f"use one of: {there}; or load its module") from None
