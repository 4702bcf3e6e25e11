"""Client and server of a TCP test, by iperf3's protocol: the embedded endpoint."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

from .common import ProgramFailure, say
from .iperf import (
    ACCESS_DENIED,
    ANSWER_S,
    CREATE_STREAMS,
    DISPLAY_RESULTS,
    EXCHANGE_RESULTS,
    IPERF_DONE,
    NOT_IMPLEMENTED,
    PARAM_EXCHANGE,
    SERVER_ERROR,
    TEST_END,
    TEST_RUNNING,
    TEST_START,
    expect,
    receive_json,
    send,
    send_json,
    send_state,
)
from .payload import BLOCK_BYTES, Carrier, PayloadStream, congestion_of, tune

if TYPE_CHECKING:
    from .common import Options

COOKIE_BYTES = 37
PARAMETERS_LIMIT, RESULTS_LIMIT = 64 << 10, 4 << 20
MOST_STREAMS = 128
MOST_PENDING = 32
"""Most connections that have not sent their cookie yet; then the oldest is closed."""
COOKIE_S = 5.0
"""Time for a connection to send its cookie."""


def opened(address: str, port: int) -> tuple[socket.socket, Any]:
    """Make a socket of the address's family; return it with the socket address."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )[0]
        return socket.socket(family, kind, protocol), where
    except OSError as error:
        raise ProgramFailure(f"{address} cannot be used ({error})") from None


# The client


def connected(options: Options, tuned: bool) -> socket.socket:
    address, port = options["peer"], options["port"]
    sock, peer = opened(address, port)
    if tuned:
        tune(sock, options)
    sock.settimeout(ANSWER_S)
    try:
        if options.get("address"):
            unused, own = opened(options["address"], 0)
            unused.close()
            sock.bind(own)
        sock.connect(peer)
    except socket.timeout:  # noqa: UP041, before 3.10 they are two
        raise ProgramFailure(
            f"{address} port {port} does not answer", "see whether a route leads there, or a firewall drops it"
        ) from None
    except OSError as error:
        if error.errno == errno.ECONNREFUSED:
            raise ProgramFailure(f"{address} port {port} refuses connections", "start a server there") from None
        raise ProgramFailure(f"{address} port {port} cannot be reached ({error.strerror})") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0 if tuned else 1)
    send(sock, cookie_bytes(options["cookie"]))
    return sock


def cookie_bytes(cookie: str) -> bytes:
    return cookie.encode().ljust(COOKIE_BYTES, b"\0")[:COOKIE_BYTES]


def parameters(options: Options) -> dict[str, Any]:
    """Parameters that iperf3's client sends its server, in whole seconds; it is the client that ends the test."""
    sent: Options = {"tcp": True, "omit": int(options["omit_s"]), "time": int(options["time_s"] + 0.999), "num": 0}
    sent.update(blockcount=0, parallel=options["streams"], len=BLOCK_BYTES, client_version="3.12", pacing_timer=1000)
    sent.update({"reverse": {"reverse": True}, "bidir": {"bidirectional": True}}.get(options["way"], {}))
    if options.get("congestion"):
        sent["congestion"] = options["congestion"]
    if options.get("zerocopy"):
        sent["zerocopy"] = 1
    return sent


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
    carrier = Carrier(streams, bool(options.get("zerocopy")))
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
    """Return, for each group of streams in the order in which they are opened, whether this end sends."""
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
        raise ProgramFailure(f"{where[0]} port {where[1]} cannot be listened on ({error.strerror})") from None
    return sock


def port_in_use(port: int) -> ProgramFailure:
    return ProgramFailure(f"port {port} is in use", "end what listens there")


def gather(listener: socket.socket, cookie: bytes, count: int, within_s: float) -> tuple[list[socket.socket], bytes]:
    """Accept this many connections that send the cookie (empty: that of the first); return them in order, and it.

    within_s: time for each: a client opens one after the other, a round trip each. All others are closed: wrong ones at
    once, slow ones after COOKIE_S.
    """
    deadline, came = time.monotonic() + within_s, 0
    pending: dict[socket.socket, list[Any]] = {}  # number of arrival, part of the cookie, deadline for it
    accepted: dict[int, socket.socket] = {}
    try:
        while len(accepted) < count:
            now = time.monotonic()
            if now > deadline:
                raise ProgramFailure(f"{len(accepted)} of {count} connections came, the next not within {within_s:g} s")
            for slow in [sock for sock, (_, _, until) in pending.items() if now > until]:
                drop(pending, slow)
            for sock in select.select([listener, *pending], [], [], 0.2)[0]:
                if sock is listener:
                    with contextlib.suppress(OSError):
                        new = listener.accept()[0]
                        new.setblocking(False)
                        came += 1
                        pending[new] = [came, b"", now + COOKIE_S]
                    if len(pending) > MOST_PENDING:
                        drop(pending, min(pending, key=lambda waiting: int(pending[waiting][0])))
                    continue
                if sock not in pending:
                    continue
                order, sent, _ = pending[sock]
                try:
                    chunk = sock.recv(COOKIE_BYTES - len(sent))
                except BlockingIOError:
                    continue
                except OSError:
                    chunk = b""
                pending[sock][1] = sent = sent + chunk
                if not chunk:
                    drop(pending, sock)
                elif len(sent) == COOKIE_BYTES:
                    if len(accepted) < count and sent == (cookie or sent):
                        cookie = sent
                        del pending[sock]
                        accepted[order], deadline = sock, now + within_s
                    else:
                        with contextlib.suppress(OSError):
                            sock.send(struct.pack("b", ACCESS_DENIED))
                        drop(pending, sock)
    except BaseException:
        for sock in accepted.values():
            sock.close()
        raise
    finally:
        for sock in list(pending):
            drop(pending, sock)
    return [accepted[order] for order in sorted(accepted)], cookie


def drop(pending: dict[Any, list[Any]], sock: socket.socket) -> None:
    del pending[sock]
    sock.close()


def asked_of(sent: dict[str, Any]) -> Options:
    """Check a client's parameters; ProgramFailure for what this end cannot do."""

    def number(name: str, most: int, otherwise: int = 0) -> int:
        value = sent.get(name, otherwise)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
            raise ProgramFailure(f"the client asks for {name} {str(value)[:40]!r}", f"at most {most}")
        return int(value)

    if sent.get("tcp") is not True:
        raise ProgramFailure("the client asks for another protocol than TCP", "leave out -u and --sctp")
    reverse, bidir = (sent.get(name) is True for name in ("reverse", "bidirectional"))
    if (reverse or bidir) and (number("bandwidth", 1 << 60) or number("fqrate", 1 << 60)):
        raise ProgramFailure("the client asks this server to limit its rate", "leave out -b and --fq-rate")
    congestion = sent.get("congestion")
    if congestion is not None and not (isinstance(congestion, str) and 0 < len(congestion) < 16):
        raise ProgramFailure("the client asks for a congestion control that has no name")
    return {
        "way": "bidir" if bidir else "reverse" if reverse else "forward",
        "streams": max(1, number("parallel", MOST_STREAMS, 1)),
        "omit_s": number("omit", 86400),
        "time_s": number("time", 86400),
        "zerocopy": bool(sent.get("zerocopy")),
        "congestion": congestion,
    }


def negotiated(control: socket.socket, listener: socket.socket) -> Options:
    send_state(control, PARAM_EXCHANGE)
    try:
        asked = asked_of(receive_json(control, PARAMETERS_LIMIT))
        tune(listener, asked)
    except ProgramFailure:
        with contextlib.suppress(ProgramFailure):
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
        except ProgramFailure:
            control.close()
            if token:
                raise
    ways = directions("server", asked["way"])
    sockets, _ = gather(listener, cookie, asked["streams"] * len(ways), ANSWER_S)
    listener.close()
    streams = [PayloadStream(at + 1, ways[at // asked["streams"]], sock) for at, sock in enumerate(sockets)]
    send_state(control, TEST_START)
    send_state(control, TEST_RUNNING)
    carrier = Carrier(streams, asked["zerocopy"])
    say("used", {"congestion": congestion_of(streams)})
    carrier.watch(control, asked["omit_s"], options["interval_s"], None)
    carrier.processes.say()
    results = carrier.results(time.monotonic() - carrier.began - asked["omit_s"])
    carrier.close()
    send_state(control, EXCHANGE_RESULTS)
    receive_json(control, RESULTS_LIMIT)
    send_json(control, results)
    send_state(control, DISPLAY_RESULTS)
    with contextlib.suppress(ProgramFailure):
        expect(control, IPERF_DONE)
    control.close()
