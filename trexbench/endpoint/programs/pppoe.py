"""One end of a PPPoE session in user space: the access concentrator, or the client that dials in.

Its Linux host needs ip, /dev/net/tun, and no PPP driver. It says: listening, dialling, up, down, counters, error, done.
One session at a time; frames between its interface and the line are moved by one thread.
"""

from __future__ import annotations

import array
import contextlib
import errno
import io
import os
import select
import socket
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING

from .common import ProgramFailure, carry_out, end_on_signals, ip, make_tun, say, set_up, stay_on
from .discovery import BROADCAST, DISCOVERY, SESSION, PppoeEnd
from .ppp import IPV4, IPV6

if TYPE_CHECKING:
    from collections.abc import Generator

    from .common import Options
    from .ppp import Link

HEADER_BYTES = 22
"""Ethernet, PPPoE, and the PPP protocol."""
MOST_SESSIONS = 100
"""That end before this program does: who dials again and again fills what nobody may be reading."""
IDLE_S = 600.0
"""Without any session; a server that was forgotten, since its connection to whoever started it hangs, ends then."""
BURST = 64
"""Frames one way before the other way has its turn."""

TAKEN, REFUSED = (0x06, 0, 0, 0x40000), (0x06, 0, 0, 0)
EVERY = [TAKEN]
NO_IP = [(0x28, 0, 0, 20), (0x15, 2, 0, IPV4), (0x15, 1, 0, IPV6), TAKEN, REFUSED]
"""Programs of the kernel's packet filter (classic BPF): code, jump if equal, jump if not, word."""


def session_program(own: bytes, peer: bytes, session: int) -> list[tuple[int, int, int, int]]:
    """Takes IP of this session from the peer to this MAC, so that Python has nothing left to compare."""
    wanted = []
    for at, mac in ((0, own), (6, peer)):
        high, low = struct.unpack("!IH", mac)
        wanted += [(0x20, at, high), (0x28, at + 4, low)]
    wanted += [(0x28, 14, 0x1100), (0x28, 16, session)]
    protocol = [(0x28, 0, 0, 20), (0x15, 1, 0, IPV4), (0x15, 0, 1, IPV6), TAKEN, REFUSED]
    code = []
    for number, (load, at, word) in enumerate(wanted):
        beyond = 2 * (len(wanted) - number - 1) + len(protocol) - 1
        code += [(load, 0, 0, at), (0x15, 0, beyond, word)]
    return code + protocol


def packets(interface: str, kind: int, program: list[tuple[int, int, int, int]]) -> socket.socket:
    """A socket of frames of this Ethernet type on the interface, that pass the program."""
    try:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise ProgramFailure("frames need CAP_NET_RAW", "run as root") from None
    except (OSError, AttributeError) as error:
        raise ProgramFailure(f"this host gives no frames ({error})", "it has to be Linux with AF_PACKET") from None
    code = array.array("B", b"".join(struct.pack("=HBBI", *one) for one in program))
    attached = struct.pack("@HP", len(program), code.buffer_info()[0])
    try:
        sock.setsockopt(socket.SOL_SOCKET, 26, attached)  # SO_ATTACH_FILTER, before the first frame
        sock.bind((interface, kind))
    except OSError as error:
        sock.close()
        raise ProgramFailure(f"interface {interface} cannot be used ({error.strerror})", "see ip link") from None
    sock.setblocking(False)
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
    return sock


class FrameMover:
    """Moves frames between a TUN interface and the line, both ways, in a thread of its own, until it is closed.

    counts: packets of IP to the line and from it, and those that found no room (lost) or were none (bad).
    """

    def __init__(self, tun: int, line: socket.socket, own: bytes, peer: bytes, session: int) -> None:
        self.tun, self.line = tun, line
        self.head = peer + own + struct.pack("!HBBHHH", SESSION, 0x11, 0, session, 0, IPV4)
        self.counts = dict.fromkeys(("to_line", "from_line", "lost", "bad"), 0)
        self.error = ""
        self._stop, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        os.write(self._stopper, b"!")
        self._thread.join()
        for one in (self._stop, self._stopper):
            os.close(one)

    def _run(self) -> None:
        ready = select.poll()
        for one in (self.tun, self.line.fileno(), self._stop):
            ready.register(one, select.POLLIN)
        outward, inward = self._outward(), self._inward()
        try:
            while not any(one == self._stop for one, _ in ready.poll()):
                next(outward)
                next(inward)
        except OSError as error:
            self.error = error.strerror or str(error)

    # One frame costs some Python in these two loops, so they hold to local names and fixed slices.

    def _outward(self) -> Generator[None, None, None]:
        """To the line; yields when nothing is left, or the burst is over."""
        buffer = bytearray(self.head).ljust(4096, b"\0")
        whole, counts = memoryview(buffer), self.counts
        room, frame, last = whole[HEADER_BYTES:], whole, -1
        read = io.FileIO(self.tun, "r", closefd=False).readinto
        write = io.FileIO(self.line.fileno(), "w", closefd=False).write
        while True:
            done = 0
            while done < BURST:
                size = read(room)
                if size is None:
                    break
                done += 1
                if size != last:
                    last, frame = size, whole[: HEADER_BYTES + size]
                    buffer[18], buffer[19] = (size + 2) >> 8, (size + 2) & 255
                buffer[21] = IPV4 if buffer[22] < 0x50 else IPV6
                try:
                    if write(frame) is None:
                        counts["lost"] += 1
                except OSError:  # a full queue of the line, or the line is down
                    counts["lost"] += 1
            counts["to_line"] += done
            yield

    def _inward(self) -> Generator[None, None, None]:
        """From the line; the socket's filter has let through IP of this session only."""
        buffer = bytearray(1 << 17)  # where the kernel has merged frames, more than one MTU
        whole, counts = memoryview(buffer), self.counts
        read = io.FileIO(self.line.fileno(), "r", closefd=False).readinto
        write = io.FileIO(self.tun, "w", closefd=False).write
        while True:
            done = 0
            while done < BURST:
                try:
                    got = read(buffer)
                except OSError as error:
                    if error.errno == errno.ENETDOWN:  # told once; frames come again when it is up
                        break
                    raise
                if got is None:
                    break
                done += 1
                end = 20 + (buffer[18] << 8 | buffer[19])
                if not HEADER_BYTES < end <= got:
                    counts["bad"] += 1
                    continue
                try:
                    write(whole[HEADER_BYTES:end])
                except OSError:  # what the kernel does not take for a packet of IP
                    counts["bad"] += 1
            counts["from_line"] += done
            yield


class PppoeLine:
    """The interface of one end, with all that is open on it."""

    def __init__(self, options: Options, serves: bool) -> None:
        self.options, self.serves = options, serves
        interface = options["interface"]
        self.finding = packets(interface, DISCOVERY, EVERY)
        self.talking = packets(interface, SESSION, NO_IP)
        self.mac = self.finding.getsockname()[4]
        self.end = PppoeEnd(options, serves, self.mac)
        self.mover: FrameMover | None = None
        self.tun, self.name, self.data = -1, "", self.talking
        self.moved = 0
        self.ended = 0
        self.used_s, self.idle_s = time.monotonic(), float(options.get("idle_s", IDLE_S))
        self.failed = ""

    def step(self, until: float) -> bool:
        """Hear, answer and move on, for a tenth of a second at most; False when it is over."""
        ready = select.select([0, self.talking.fileno(), self.finding.fileno()], [], [], 0.1)[0]
        if 0 in ready and not os.read(0, 4096):
            return False
        for sock in (self.talking, self.finding):  # why a session ends is said in it, before PADT
            if sock.fileno() in ready:
                self._hear(sock)
        now = time.monotonic()
        if now > until:
            raise ProgramFailure("did not end within {:.0f} s".format(self.options["deadline_s"]), "see what holds it")
        if self.end.link is not None:
            self.used_s = now
        elif now > self.used_s + self.idle_s:
            raise ProgramFailure(f"nobody has dialled in for {self.idle_s:g} s", "see what the router says")
        if self.mover is not None and self.end.link is not None:
            moved = self.mover.counts["from_line"]
            if moved != self.moved:
                self.moved = moved
                self.end.link.alive(now)
            if self.mover.error:
                self.end.hang_up(f"frames are not moved any more ({self.mover.error})")
        self.end.tick(now)
        self._send()
        link = self.end.link
        if link is not None and link.up and self.mover is None:
            self._up(link)
        if link is not None and link.over:
            self.down(link)
            self.end.forget(now)
            self._send()
            self.ended += 1
            if not self.serves:
                self.failed = link.why
            elif self.ended >= MOST_SESSIONS:
                self.failed = f"{MOST_SESSIONS} sessions have come and gone"
        self.failed = self.failed or self.end.failed
        return not self.failed

    def _hear(self, sock: socket.socket) -> None:
        hear = self.end.heard_discovery if sock is self.finding else self.end.heard_session
        for _ in range(BURST):
            try:
                frame = sock.recv(4096)
            except OSError:  # nothing is left, or the line was down
                return
            if len(frame) > 14 and frame[:6] in (self.mac, BROADCAST):
                hear(frame[6:12], frame[14:], time.monotonic())

    def _send(self) -> None:
        for kind, mac, data in self.end.out:
            sock = self.finding if kind == DISCOVERY else self.talking
            with contextlib.suppress(OSError):  # will be sent again, as if it were lost on the way
                sock.send(mac + self.mac + struct.pack("!H", kind) + data)
        self.end.out.clear()

    def _up(self, link: Link) -> None:
        self.tun, self.name = make_tun(self.options.get("tun", "tbppp%d"))
        program = session_program(self.mac, self.end.peer, self.end.session)
        self.data = packets(self.options["interface"], SESSION, program)
        self._open(link)
        self.mover, self.moved = FrameMover(self.tun, self.data, self.mac, self.end.peer, self.end.session), 0
        own, other = link.addresses
        told = {"interface": self.name, "own": own, "peer": other, "mtu": link.mtu, "session": self.end.session}
        told.update(auth=link.authenticated, mac=":".join(f"{one:02x}" for one in self.end.peer))
        if self.serves:
            told["user"] = link.peer_name
        if link.ipv6cp is not None:
            told["ipv6"] = self.options["ipv6"]
        say("up", told)

    def _open(self, link: Link) -> None:
        """Addresses and routes of the interface; they go with it."""
        name, six = self.name, link.ipv6cp is not None
        set_up(name, link.mtu, *link.addresses, six)
        if six:
            own6, other6 = self.options["ipv6"]
            ip("-6", "addr", "add", own6 + "/128", "dev", name, "nodad")
            ip("-6", "route", "replace", other6 + "/128", "dev", name)
        for route in self.options.get("routes", []):
            if six or ":" not in route:
                ip("-6" if ":" in route else "-4", "route", "replace", route, "dev", name)

    def down(self, link: Link) -> None:
        """Take away the interface and what moves frames, and say so."""
        counts: dict[str, int] = {}
        if self.mover is not None:
            self.mover.close()
            counts, self.mover = self.mover.counts, None
        if self.tun >= 0:
            if self.data is not self.talking:
                self.data.close()
            os.close(self.tun)
            self.tun, self.data = -1, self.talking
        say("down", {"why": link.why})
        if counts:
            say("counters", counts)

    def close(self, why: str) -> None:
        self.end.hang_up(why)
        if self.end.link is not None:
            self.down(self.end.link)
            self.end.forget(time.monotonic())
        self._send()


def run(options: Options) -> None:
    serves = options["role"] == "server"
    stay_on(options.get("cpus"))
    line = PppoeLine(options, serves)
    until = time.monotonic() + options["deadline_s"]
    end_on_signals()
    say("listening" if serves else "dialling", {"interface": options["interface"]})
    try:
        while line.step(until):
            pass
    finally:
        line.close("its end was asked for")
    if line.failed:
        raise ProgramFailure(line.failed, "see what the other end says")


def main() -> None:
    sys.exit(carry_out(run))
