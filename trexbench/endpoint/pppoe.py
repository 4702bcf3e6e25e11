"""One end of a PPPoE session in user space: the access concentrator, or the client that dials in (RFC 2516, 1661).

Sent through a transport to a Linux host that needs python3 (3.7 or later), ip, /dev/net/tun, and no PPP driver: the
first line on stdin says what to do and holds the secret, the rest of stdin only has an end, and with it the session
ends, and its interface goes. Each line on stdout is a JSON object with one key: listening, dialling, up, down,
counters, error, done. One session at a time; frames between its interface and the line are moved by one thread.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import hashlib
import hmac
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    Options = dict[str, Any]  # the first line on stdin

DISCOVERY, SESSION = 0x8863, 0x8864
PADI, PADO, PADR, PADS, PADT = 0x09, 0x07, 0x19, 0x65, 0xA7
END_OF_LIST, SERVICE_NAME, AC_NAME, HOST_UNIQ, AC_COOKIE, RELAY = 0x0000, 0x0101, 0x0102, 0x0103, 0x0104, 0x0110
SERVICE_ERROR, SYSTEM_ERROR, GENERIC_ERROR = 0x0201, 0x0202, 0x0203
BROADCAST = b"\xff" * 6

IPV4, IPV6, IPCP, IPV6CP, LCP, PAP, CHAP = 0x0021, 0x0057, 0x8021, 0x8057, 0xC021, 0xC023, 0xC223
REQUEST, ACK, NAK, REJECT, TERMINATE, TERMINATED, CODE_REJECT, PROTOCOL_REJECT, ECHO, ECHO_REPLY, DISCARD = range(1, 12)
CHALLENGE, RESPONSE, SUCCESS, FAILURE = 1, 2, 3, 4
MRU, AUTHENTICATION, MAGIC = 1, 3, 5
ADDRESS, DNS = 3, (129, 131)
METHODS = {"chap": b"\xc2\x23\x05", "pap": b"\xc0\x23"}

HEADER_BYTES = 22
"""Ethernet, PPPoE, and the PPP protocol."""
LARGEST, SMALLEST, LEAST_IPV6 = 1492, 576, 1280
"""MRU: what Ethernet leaves to PPP, and the least that is taken, without IPv6 and with it."""
AGAIN_S = 0.5
"""Until what was not answered is sent again."""
TRIES = 16
MOST_REQUESTS = 40
"""Requests of a peer, for one protocol: who does not come to terms by then is cut off."""
ECHO_S, SILENCE_S = 1.0, 4.0
"""An echo request every second; the session with a peer that nothing is heard of, not even answers to it, ends."""
AGREEMENT_S = 15.0
"""For all of it, from the first packet of LCP to the addresses."""
MOST_SESSIONS = 100
"""That end before this program does: who dials again and again fills what nobody may be reading."""
IDLE_S = 600.0
"""Without any session; a server that was forgotten, since its connection to whoever started it hangs, ends then."""
BURST = 64
"""Frames one way before the other way has its turn."""


class PppoeFailure(Exception):
    """Error that says what is wrong, and what helps."""

    def __init__(self, what: str, remedy: str = "") -> None:
        Exception.__init__(self, what)
        self.what, self.remedy = what, remedy


# Frames and options


def discovery(code: int, session: int, tags: Iterable[tuple[int, bytes]]) -> bytes:
    """A packet of the discovery stage, without its Ethernet header."""
    body = b"".join(struct.pack("!HH", kind, len(value)) + value for kind, value in tags)
    return struct.pack("!BBHH", 0x11, code, session, len(body)) + body


def parse_discovery(data: bytes) -> tuple[int, int, list[tuple[int, bytes]]] | None:
    """Code, session and tags; None for what is none."""
    if len(data) < 6:
        return None
    kind, code, session, size = struct.unpack_from("!BBHH", data)
    if kind != 0x11 or 6 + size > len(data):
        return None
    tags, at, end = [], 6, 6 + size
    while at + 4 <= end:
        tag, length = struct.unpack_from("!HH", data, at)
        at += 4 + length
        if at > end:
            return None
        if tag == END_OF_LIST:
            break
        tags.append((tag, data[at - length : at]))
    return code, session, tags


def control(code: int, number: int, body: bytes) -> bytes:
    """A packet of LCP, IPCP, IPV6CP, PAP or CHAP."""
    return struct.pack("!BBH", code, number, 4 + len(body)) + body


def parse_control(data: bytes) -> tuple[int, int, bytes] | None:
    """Code, identifier and what follows; None for what is none."""
    if len(data) < 4:
        return None
    code, number, size = struct.unpack_from("!BBH", data)
    return (code, number, data[4:size]) if 4 <= size <= len(data) else None


def packed(options: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join(bytes((kind, 2 + len(value))) + value for kind, value in options)


def parse_options(data: bytes) -> list[tuple[int, bytes]] | None:
    """Return the options of a Configure packet; None where their lengths do not fit."""
    found, at = [], 0
    while at < len(data):
        if at + 2 > len(data) or data[at + 1] < 2 or at + data[at + 1] > len(data):
            return None
        found.append((data[at], data[at + 2 : at + data[at + 1]]))
        at += data[at + 1]
    return found


def readable(data: bytes) -> str:
    """Return what a peer said, short and without anything that a terminal would obey."""
    return "".join(one if one.isprintable() else "?" for one in data[:60].decode("utf-8", "replace"))


def chap_digest(number: int, secret: str, challenge: bytes) -> bytes:
    try:
        return hashlib.md5(bytes((number,)) + secret.encode() + challenge).digest()
    except ValueError:
        raise PppoeFailure("this host's python has no MD5", "authenticate by pap") from None


# What both ends of a session say to each other. No clock and no socket: frames and times go in, frames come out.


class Negotiation:
    """Configure packets of one protocol, until both ends have acknowledged what the other asks for.

    wishes: what this end asks for. theirs: what the peer asked for and was granted.
    """

    def __init__(self, link: Link, protocol: int, name: str, wishes: dict[int, bytes]) -> None:
        self.link, self.protocol, self.name, self.wishes = link, protocol, name, wishes
        self.theirs: dict[int, bytes] = {}
        self.granted = self.acknowledged = False
        self.number = self.tries = self.requests = 0
        self.again_s = 0.0
        self.started = False

    @property
    def opened(self) -> bool:
        return self.granted and self.acknowledged

    def ask(self, now: float) -> None:
        self.started = True
        self.number = self.number % 255 + 1
        self.again_s = now + AGAIN_S
        self.link.send(self.protocol, control(REQUEST, self.number, packed(self.wishes.items())))

    def tick(self, now: float) -> None:
        if not self.started or self.acknowledged or now < self.again_s:
            return
        self.tries += 1
        if self.tries >= TRIES:
            self.link.unanswered(self)
        else:
            self.ask(now)

    def heard(self, code: int, number: int, body: bytes, now: float) -> bool:
        """Handle a Configure packet; return whether it was one."""
        if code not in (REQUEST, ACK, NAK, REJECT):
            return False
        options = parse_options(body)
        if options is None:
            return True
        if code == REQUEST:
            self.requests += 1
            if self.requests > MOST_REQUESTS:
                self.link.end(f"no agreement on {self.name} after {MOST_REQUESTS} requests")
            elif not self.opened or dict(options) == self.theirs:
                self._answer(number, options)
        elif number == self.number and not self.acknowledged:
            if code == ACK:
                self.acknowledged = body == packed(self.wishes.items())
            else:
                self.tries += 1
                for kind, value in options:
                    if kind in self.wishes:
                        self.link.denied(self, kind, value if code == NAK else None)
                if self.tries >= TRIES:
                    self.link.end(f"no agreement on {self.name}")
                elif not self.link.over:
                    self.ask(now)
        return True

    def _answer(self, number: int, options: list[tuple[int, bytes]]) -> None:
        rejected, better = [], []
        for kind, value in options:
            verdict = self.link.judged(self, kind, value)
            if verdict is None:
                rejected.append((kind, value))
            elif verdict != value:
                better.append((kind, verdict))
        if not rejected:
            better += self.link.missing(self, [kind for kind, _ in options])
        code, told = (REJECT, rejected) if rejected else (NAK, better) if better else (ACK, options)
        self.link.send(self.protocol, control(code, number, packed(told)))
        if code == ACK:
            self.granted, self.theirs = True, dict(options)


class Link:
    """PPP over one session, from LCP to the addresses. serves: as the access concentrator.

    out: (PPP protocol, packet) to be sent. why: it has ended, and what ended it. up: addresses are agreed on.
    """

    def __init__(self, options: Options, serves: bool, now: float) -> None:
        self.options, self.serves = options, serves
        self.out: list[tuple[int, bytes]] = []
        self.why, self.over, self.up = "", False, False
        self.authenticated = ""
        self.peer_name = ""
        self.heard_s = now
        self.begun_s = now
        self.echo_s = self.secret_s = 0.0
        self.echoes = self.unknown = 0
        self.methods = [one for one in options.get("auth", ["chap", "pap"]) if one in METHODS]
        self.method = ""
        self.proof = b""  # the challenge of a server; the answer of a client
        self.proof_number = 0
        self.verdict = b""  # what was answered to it, for the case that it gets lost
        wishes = {MRU: struct.pack("!H", LARGEST), MAGIC: os.urandom(4)}
        if serves and self.methods:
            wishes[AUTHENTICATION] = METHODS[self.methods[0]]
        self.lcp = Negotiation(self, LCP, "LCP", wishes)
        own = socket.inet_aton(options["own"]) if serves else bytes(4)
        self.ipcp = Negotiation(self, IPCP, "IPCP", {ADDRESS: own})
        self.assigned = socket.inet_aton(options["peer"]) if serves else b""
        self.ipv6cp: Negotiation | None = None
        if options.get("ipv6"):
            self.ipv6cp = Negotiation(self, IPV6CP, "IPV6CP", {1: b"\x02" + os.urandom(7)})
        self.lcp.ask(now)

    # What it agreed on

    @property
    def mtu(self) -> int:
        """Largest packet that may be sent: the peer's MRU, as far as Ethernet goes."""
        asked = self.lcp.theirs.get(MRU)
        return min(LARGEST, struct.unpack("!H", asked)[0]) if asked else LARGEST

    @property
    def addresses(self) -> tuple[str, str]:
        """This end's and the other's."""
        own = self.ipcp.wishes.get(ADDRESS, bytes(4))
        other = self.assigned if self.serves else self.ipcp.theirs.get(ADDRESS, bytes(4))
        return socket.inet_ntoa(own), socket.inet_ntoa(other)

    @property
    def magic(self) -> bytes:
        return self.lcp.wishes.get(MAGIC, bytes(4))

    # What is sent and heard

    def send(self, protocol: int, packet: bytes) -> None:
        self.out.append((protocol, packet))

    def end(self, why: str, tell: bool = True) -> None:
        if self.over:
            return
        self.why, self.over, self.up = why, True, False
        if tell:
            self.send(LCP, control(TERMINATE, 255, why.encode("ascii", "replace")[:80]))

    def alive(self, now: float) -> None:
        """Something was heard of the peer: a packet here, or frames that were moved elsewhere."""
        self.heard_s = now

    def tick(self, now: float) -> None:
        if self.over:
            return
        for one in filter(None, (self.lcp, self.ipcp, self.ipv6cp)):
            if not self.over:
                one.tick(now)
        if not self.over and not self.up and now - self.begun_s > AGREEMENT_S:
            self.end(f"no agreement within {AGREEMENT_S:g} s")
        if self.over or not self.lcp.opened:
            return
        if now - self.heard_s > SILENCE_S:
            self.end(f"the peer has not been heard for {SILENCE_S:g} s")
            return
        if now >= self.echo_s:
            self.echo_s = now + ECHO_S
            self.echoes = self.echoes % 255 + 1
            self.send(LCP, control(ECHO, self.echoes, self.magic))
        if not self.authenticated and now >= self.secret_s:
            self._prove(now)

    def heard(self, protocol: int, data: bytes, now: float) -> None:
        """A packet of any protocol but IP."""
        told = parse_control(data)
        if self.over or told is None:
            return
        self.alive(now)
        code, number, body = told
        if protocol == LCP:
            if not self.lcp.heard(code, number, body, now):
                self._heard_lcp(code, number, body)
        elif not self.lcp.opened:
            return
        elif protocol in (PAP, CHAP):
            (self._heard_pap if protocol == PAP else self._heard_chap)(code, number, body, now)
        elif protocol in (IPCP, IPV6CP) and not self.authenticated:
            return
        elif protocol == IPCP:
            self._heard_network(self.ipcp, code, number, body, now)
        elif protocol == IPV6CP and self.ipv6cp is not None:
            self._heard_network(self.ipv6cp, code, number, body, now)
        else:
            self._reject(PROTOCOL_REJECT, struct.pack("!H", protocol) + data)
        if self.over:
            return
        if self.lcp.opened and not self.authenticated:
            self._choose(now)
        networks = [one for one in (self.ipcp, self.ipv6cp) if one is not None]
        if self.authenticated and not self.up and all(one.opened for one in networks):
            self.up = True
            if "0.0.0.0" in self.addresses:
                self.end("the server names no address")

    def _reject(self, code: int, what: bytes) -> None:
        self.unknown += 1
        if self.unknown <= MOST_REQUESTS:
            self.send(LCP, control(code, self.unknown, what[: SMALLEST - 4]))

    def _heard_lcp(self, code: int, number: int, body: bytes) -> None:
        if code == TERMINATE:
            self.send(LCP, control(TERMINATED, number, b""))
            self.end(f"the peer ended it ({readable(body)})" if body else "the peer ended it", tell=False)
        elif code == ECHO and self.lcp.opened:
            if any(self.magic) and body[:4] == self.magic:
                self.end("the line sends back what was sent: it is looped")
            else:
                self.send(LCP, control(ECHO_REPLY, number, self.magic + body[4:]))
        elif code == PROTOCOL_REJECT and len(body) >= 2:
            self._refused(struct.unpack_from("!H", body)[0])
        elif code not in (TERMINATED, CODE_REJECT, ECHO, ECHO_REPLY, DISCARD, PROTOCOL_REJECT):
            self._reject(CODE_REJECT, control(code, number, body))

    def _refused(self, protocol: int) -> None:
        if protocol == IPV6CP:
            self.ipv6cp = None
        elif protocol in (LCP, IPCP, PAP, CHAP):
            self.end(f"the peer does not know protocol {protocol:04x}")

    def _heard_network(self, which: Negotiation, code: int, number: int, body: bytes, now: float) -> None:
        if code == TERMINATE:
            self.send(which.protocol, control(TERMINATED, number, b""))
            if which is self.ipcp:
                self.end("the peer ended IPCP")
            else:
                self.ipv6cp = None
        else:
            which.heard(code, number, body, now)

    def unanswered(self, which: Negotiation) -> None:
        if which is self.ipv6cp:
            self.ipv6cp = None
        else:
            self.end(f"the peer does not answer {which.name}")

    # What is wished and granted

    def judged(self, which: Negotiation, kind: int, value: bytes) -> bytes | None:
        """Return what the peer may have in place of what it asks for: the same if granted; None if not known here."""
        if which is self.lcp:
            if kind == MRU and len(value) == 2:
                least = LEAST_IPV6 if self.options.get("ipv6") else SMALLEST
                return value if least <= struct.unpack("!H", value)[0] <= LARGEST else struct.pack("!H", LARGEST)
            if kind == MAGIC and len(value) == 4:
                return os.urandom(4) if value == self.magic else value
            if kind == AUTHENTICATION and not self.serves and self.methods:
                return value if value in self._own_methods() else self._own_methods()[0]
        elif which is self.ipcp:
            if kind == ADDRESS and len(value) == 4:
                return self.assigned or (value if any(value) else None)
            if kind in DNS and len(value) == 4 and self.options.get("dns"):
                return socket.inet_aton(str(self.options["dns"]))
        elif kind == 1 and len(value) == 8:
            taken = not any(value) or value == which.wishes.get(1)
            return b"\x02" + os.urandom(7) if taken else value
        return None

    def missing(self, which: Negotiation, kinds: list[int]) -> list[tuple[int, bytes]]:
        """Return the options that the peer has to ask for and does not."""
        asks = which is self.ipcp and self.serves and ADDRESS not in kinds
        return [(ADDRESS, self.assigned)] if asks else []

    def denied(self, which: Negotiation, kind: int, better: bytes | None) -> None:
        """The peer wants something else in place of a wish (None: not to hear of it)."""
        if which is self.lcp and kind == AUTHENTICATION:
            if better in self._own_methods():
                which.wishes[kind] = better
            else:
                offered = " or ".join(self.methods)
                self.end(f"the peer does not want to authenticate itself by {offered}")
        elif which is self.ipcp and kind == ADDRESS and better is None:
            self.end("the peer does not negotiate addresses")
        elif better is None:
            del which.wishes[kind]
        elif which is self.lcp and kind == MRU:
            if len(better) == 2 and SMALLEST <= struct.unpack("!H", better)[0] <= LARGEST:
                which.wishes[kind] = better
        elif which is self.lcp and kind == MAGIC:
            which.wishes[kind] = os.urandom(4)
        elif len(better) == len(which.wishes[kind]) and not (which is self.ipcp and self.serves):
            which.wishes[kind] = better

    def _own_methods(self) -> list[bytes]:
        return [METHODS[one] for one in self.methods]

    # Who the client is

    def _choose(self, now: float) -> None:
        """LCP is open: authenticate the client, or go on at once if the server asks for nothing."""
        asked = (self.lcp.wishes if self.serves else self.lcp.theirs).get(AUTHENTICATION)
        if asked is None:
            self._known("none", now)
        elif not self.method:
            self.method = next(name for name, value in METHODS.items() if value == asked)
            self._prove(now)

    def _known(self, method: str, now: float) -> None:
        self.authenticated = method
        for one in filter(None, (self.ipcp, self.ipv6cp)):
            one.ask(now)

    def _prove(self, now: float) -> None:
        """Send what the other end waits for; again until it answers."""
        self.secret_s = now + AGAIN_S
        user, secret = str(self.options.get("user", "")), str(self.options.get("secret", ""))
        if self.serves:
            if self.method == "chap":
                if not self.proof:
                    self.proof, self.proof_number = os.urandom(20), os.urandom(1)[0]
                name = str(self.options.get("name", "trexbench")).encode()
                body = bytes((len(self.proof),)) + self.proof + name
                self.send(CHAP, control(CHALLENGE, self.proof_number, body))
        elif self.method == "pap":
            told = user.encode()[:255], secret.encode()[:255]
            body = b"".join(bytes((len(one),)) + one for one in told)
            self.send(PAP, control(1, 1, body))
        elif self.proof:
            self.send(CHAP, self.proof)

    def _judge(self, protocol: int, number: int, name: bytes, right: bool, now: float) -> None:
        """The server's answer to a name and what was to prove it."""
        self.peer_name = readable(name)
        good, bad = (2, 3) if protocol == PAP else (SUCCESS, FAILURE)
        body = b"" if right else b"wrong user or secret"
        self.verdict = control(good if right else bad, number, bytes((len(body),)) + body if protocol == PAP else body)
        self.send(protocol, self.verdict)
        if right:
            self._known(self.method, now)
        else:
            self.end(f"user '{self.peer_name}' was refused: wrong user or secret")

    def _right_name(self, name: bytes) -> bool:
        return hmac.compare_digest(name, str(self.options.get("user", "")).encode())

    def _heard_chap(self, code: int, number: int, body: bytes, now: float) -> None:
        if self.method != "chap" and not (not self.serves and METHODS["chap"] in self.lcp.theirs.values()):
            return
        size = body[0] if body else 0
        value, name = body[1 : 1 + size], body[1 + size :]
        secret = str(self.options.get("secret", ""))
        if self.serves and code == RESPONSE and number == self.proof_number and self.proof:
            if self.authenticated:
                self.send(CHAP, self.verdict)
                return
            right = hmac.compare_digest(value, chap_digest(number, secret, self.proof))
            self._judge(CHAP, number, name, right and self._right_name(name), now)
        elif not self.serves and code == CHALLENGE and value:
            told = chap_digest(number, secret, value)
            body = bytes((len(told),)) + told + str(self.options.get("user", "")).encode()
            self.method, self.proof, self.proof_number = "chap", control(RESPONSE, number, body), number
            self.send(CHAP, self.proof)
            self.secret_s = now + AGAIN_S
        elif not self.serves and number == self.proof_number and not self.authenticated and self.proof:
            self._told(code == SUCCESS, code == FAILURE, body, now)

    def _heard_pap(self, code: int, number: int, body: bytes, now: float) -> None:
        if self.method != "pap":
            return
        if self.serves and code == 1:
            size = body[0] if body else 0
            name, rest = body[1 : 1 + size], body[1 + size :]
            secret = rest[1 : 1 + rest[0]] if rest else b""
            if self.authenticated:
                self.send(PAP, self.verdict)
                return
            right = hmac.compare_digest(secret, str(self.options.get("secret", "")).encode())
            self._judge(PAP, number, name, right and self._right_name(name), now)
        elif not self.serves and not self.authenticated:
            self._told(code == 2, code == 3, body[1:], now)

    def _told(self, right: bool, wrong: bool, words: bytes, now: float) -> None:
        if right:
            self._known(self.method, now)
        elif wrong:
            said = f" ({readable(words)})" if words else ""
            self.end("the server refuses user '{}'{}".format(self.options.get("user", ""), said))


class PppoeEnd:
    """One end of PPPoE, discovery and session. No clock and no socket either.

    out: (Ethernet type, MAC, packet) to be sent. link: the session there is, or None. peer, session: whose and which.
    """

    def __init__(self, options: Options, serves: bool, mac: bytes) -> None:
        self.options, self.serves, self.mac = options, serves, mac
        self.out: list[tuple[int, bytes, bytes]] = []
        self.only = bytes.fromhex(options["mac"].replace(":", "")) if options.get("mac") else b""
        self.service = str(options.get("service", "")).encode()
        self.name = str(options.get("name", "trexbench" if serves else "")).encode()
        self.link: Link | None = None
        self.peer, self.session = b"", 0
        self.ignored = 0
        self.key = os.urandom(16)
        self.uniq = os.urandom(8)
        self.again_s, self.tries = 0.0, 0
        self.offer: list[tuple[int, bytes]] | None = None
        self.failed = ""
        self.anew: tuple[bytes, bytes] | None = None  # a PADR that is answered when the old session is forgotten

    def tick(self, now: float) -> None:
        if self.link is not None:
            self.link.tick(now)
            self._flush()
        elif not self.serves and now >= self.again_s and not self.failed:
            self._dial(now)

    def _dial(self, now: float) -> None:
        self.again_s = now + AGAIN_S
        self.tries += 1
        if self.tries > TRIES:
            where = "PADR" if self.offer is not None else "PADI"
            self.failed = f"no access concentrator answers {where}"
        elif self.offer is None:
            tags = [(SERVICE_NAME, self.service), (HOST_UNIQ, self.uniq)]
            self.out.append((DISCOVERY, self.only or BROADCAST, discovery(PADI, 0, tags)))
        else:
            self.out.append((DISCOVERY, self.peer, discovery(PADR, 0, self.offer)))

    def heard_discovery(self, source: bytes, data: bytes, now: float) -> None:
        told = parse_discovery(data)
        if told is None or (self.only and source != self.only) or source[0] & 1:
            self.ignored += 1
            return
        code, session, tags = told
        if code == PADT:
            if self.link is not None and source == self.peer and session == self.session:
                self.link.end("the peer ended the session (PADT)", tell=False)
            return
        (self._serve if self.serves else self._answered)(source, code, session, tags, now)

    def _cookie(self, mac: bytes) -> bytes:
        return hmac.new(self.key, mac, hashlib.sha256).digest()[:16]

    def _serve(self, source: bytes, code: int, session: int, tags: list[tuple[int, bytes]], now: float) -> None:
        values = dict(tags)
        service = values.get(SERVICE_NAME)
        suits = service is not None and (not self.service or service in (b"", self.service))
        busy = self.link is not None and source != self.peer
        if code not in (PADI, PADR) or session or not suits or (busy and code == PADI):
            self.ignored += 1
            return
        back = [(kind, value) for kind, value in tags if kind in (HOST_UNIQ, RELAY)]
        named = [(SERVICE_NAME, service or self.service), (AC_NAME, self.name)]
        if code == PADI:
            offer = [*named, (AC_COOKIE, self._cookie(source)), *back]
            self.out.append((DISCOVERY, source, discovery(PADO, 0, offer)))
        elif not hmac.compare_digest(values.get(AC_COOKIE, b""), self._cookie(source)):
            self.ignored += 1
        elif busy:
            refusal = [*named[:1], (SYSTEM_ERROR, b"there is a session already"), *back]
            self.out.append((DISCOVERY, source, discovery(PADS, 0, refusal)))
        else:
            if self.link is not None and (self.link.over or self.link.up or self.link.lcp.opened):
                self.link.end("the peer dials anew", tell=False)
                self.anew = source, discovery(code, session, tags)
                return
            if self.link is None:
                self.peer, self.session = source, 1 + struct.unpack("!H", os.urandom(2))[0] % 0xFFFE
                self.link = Link(self.options, True, now)
            self.out.append((DISCOVERY, source, discovery(PADS, self.session, [*named, *back])))
            self._flush()

    def _answered(self, source: bytes, code: int, session: int, tags: list[tuple[int, bytes]], now: float) -> None:
        values = dict(tags)
        if values.get(HOST_UNIQ) != self.uniq or self.link is not None or self.failed:
            self.ignored += 1
            return
        wrong = [value for kind, value in tags if kind in (SERVICE_ERROR, SYSTEM_ERROR, GENERIC_ERROR)]
        if code == PADO and self.offer is None and not wrong:
            if (self.name and values.get(AC_NAME) != self.name) or values.get(SERVICE_NAME) != self.service:
                self.ignored += 1
                return
            keep = [(kind, value) for kind, value in tags if kind in (AC_COOKIE, RELAY)]
            self.offer = [(SERVICE_NAME, self.service), (HOST_UNIQ, self.uniq), *keep]
            self.peer, self.tries = source, 0
            self._dial(now)
        elif code == PADS and self.offer is not None and source == self.peer:
            if wrong or not session:
                self.failed = "the access concentrator refuses ({})".format(
                    readable(wrong[0]) if wrong else "no reason"
                )
            else:
                self.session = session
                self.link = Link(self.options, False, now)
                self._flush()

    def heard_session(self, source: bytes, data: bytes, now: float) -> None:
        """A packet of the session stage: of no IP, for that is moved elsewhere."""
        if self.link is None or source != self.peer or len(data) < 8:
            self.ignored += 1
            return
        kind, code, session, size, protocol = struct.unpack_from("!BBHHH", data)
        if kind != 0x11 or code or session != self.session or not 2 <= size <= len(data) - 6:
            self.ignored += 1
            return
        self.link.heard(protocol, bytes(data[8 : 6 + size]), now)
        self._flush()

    def hang_up(self, why: str) -> None:
        if self.link is not None:
            self.link.end(why)
            self._flush()

    def forget(self, now: float) -> None:
        """The session that has ended: tell the peer, and be ready for another."""
        self._flush()
        if self.link is not None:
            self.out.append((DISCOVERY, self.peer, discovery(PADT, self.session, [])))
        self.link, self.session = None, 0
        if self.anew is not None:
            (source, data), self.anew = self.anew, None
            self.heard_discovery(source, data, now)

    def _flush(self) -> None:
        if self.link is None:
            return
        for protocol, packet in self.link.out:
            head = struct.pack("!BBHHH", 0x11, 0, self.session, 2 + len(packet), protocol)
            self.out.append((SESSION, self.peer, head + packet))
        self.link.out.clear()


# Sockets, the interface, and what moves frames between them


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
        raise PppoeFailure("frames need CAP_NET_RAW", "run as root") from None
    except (OSError, AttributeError) as error:
        raise PppoeFailure(f"this host gives no frames ({error})", "it has to be Linux with AF_PACKET") from None
    code = array.array("B", b"".join(struct.pack("=HBBI", *one) for one in program))
    attached = struct.pack("@HP", len(program), code.buffer_info()[0])
    try:
        sock.setsockopt(socket.SOL_SOCKET, 26, attached)  # SO_ATTACH_FILTER, before the first frame
        sock.bind((interface, kind))
    except OSError as error:
        sock.close()
        raise PppoeFailure(f"interface {interface} cannot be used ({error.strerror})", "see ip link") from None
    sock.setblocking(False)
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
    return sock


def tunnel(name: str) -> tuple[int, str]:
    """A new TUN interface, which goes when the descriptor is closed; and its name, where it has a %d."""
    set_interface = 0x800454CA if os.uname().machine.startswith(("mips", "ppc", "sparc")) else 0x400454CA
    try:
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise PppoeFailure(f"/dev/net/tun cannot be opened ({error.strerror})", "as root: modprobe tun") from None
    try:
        made = fcntl.ioctl(tun, set_interface, struct.pack("16sH22x", name.encode(), 0x1001))  # TUN, without PI
    except OSError as error:
        os.close(tun)
        raise PppoeFailure(
            f"interface {name} cannot be made ({error.strerror})", "see whether it is there already"
        ) from None
    return tun, made[:16].rstrip(b"\0").decode()


def ip(*words: str) -> None:
    try:
        done = subprocess.run(
            ["ip", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        raise PppoeFailure(f"ip cannot be started ({error.strerror})", "install iproute2") from None
    if done.returncode:
        raise PppoeFailure(
            "ip {}: {}".format(" ".join(words), readable(done.stdout.strip())), "see ip addr and ip route"
        )


def set_up(name: str, mtu: int, link: Link, options: Options) -> None:
    """Addresses and routes of the interface; they go with it."""
    own, other = link.addresses
    six = link.ipv6cp is not None
    with contextlib.suppress(OSError), open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w") as file:
        file.write("0" if six else "1")
    ip("link", "set", "dev", name, "mtu", str(mtu), "qlen", "1000", "up")
    ip("addr", "add", own, "peer", other, "dev", name)
    if six:
        own6, other6 = options["ipv6"]
        ip("-6", "addr", "add", own6 + "/128", "dev", name, "nodad")
        ip("-6", "route", "replace", other6 + "/128", "dev", name)
    for route in options.get("routes", []):
        if six or ":" not in route:
            ip("-6" if ":" in route else "-4", "route", "replace", route, "dev", name)


class FrameMover:
    """Moves frames between a TUN interface and the line, both ways, in a thread of its own, until it is closed.

    counts: packets and bytes of IP to the line and from it, and those that found no room (lost) or were none (bad).
    """

    def __init__(self, tun: int, line: socket.socket, own: bytes, peer: bytes, session: int) -> None:
        self.tun, self.line = tun, line
        self.head = peer + own + struct.pack("!HBBHHH", SESSION, 0x11, 0, session, 0, IPV4)
        self.counts = dict.fromkeys(("to_line", "to_line_bytes", "from_line", "from_line_bytes", "lost", "bad"), 0)
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
            done = moved = 0
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
                    else:
                        moved += size
                except OSError:  # a full queue of the line, or the line is down
                    counts["lost"] += 1
            counts["to_line"] += done
            counts["to_line_bytes"] += moved
            yield

    def _inward(self) -> Generator[None, None, None]:
        """From the line; the socket's filter has let through IP of this session only."""
        buffer = bytearray(1 << 17)  # where the kernel has merged frames, more than one MTU
        whole, counts = memoryview(buffer), self.counts
        read = io.FileIO(self.line.fileno(), "r", closefd=False).readinto
        write = io.FileIO(self.tun, "w", closefd=False).write
        while True:
            done = moved = 0
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
                    moved += write(whole[HEADER_BYTES:end]) or 0
                except OSError:  # what the kernel does not take for a packet of IP
                    counts["bad"] += 1
            counts["from_line"] += done
            counts["from_line_bytes"] += moved
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
        self.unsent = self.ended = 0
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
            raise PppoeFailure("did not end within {:.0f} s".format(self.options["deadline_s"]), "see what holds it")
        if self.end.link is not None:
            self.used_s = now
        elif now > self.used_s + self.idle_s:
            raise PppoeFailure(f"nobody has dialled in for {self.idle_s:g} s", "see what the router says")
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
            try:
                sock.send(mac + self.mac + struct.pack("!H", kind) + data)
            except OSError:  # will be sent again, as if it were lost on the way
                self.unsent += 1
        self.end.out.clear()

    def _up(self, link: Link) -> None:
        self.tun, self.name = tunnel(self.options.get("tun", "tbppp%d"))
        program = session_program(self.mac, self.end.peer, self.end.session)
        self.data = packets(self.options["interface"], SESSION, program)
        set_up(self.name, link.mtu, link, self.options)
        self.mover, self.moved = FrameMover(self.tun, self.data, self.mac, self.end.peer, self.end.session), 0
        own, other = link.addresses
        told = {"interface": self.name, "own": own, "peer": other, "mtu": link.mtu, "session": self.end.session}
        told.update(auth=link.authenticated, mac=":".join(f"{one:02x}" for one in self.end.peer))
        if self.serves:
            told["user"] = link.peer_name
        if link.ipv6cp is not None:
            told["ipv6"] = self.options["ipv6"]
        say("up", told)

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


def say(what: str, value: Any) -> None:
    data = json.dumps({what: value}).encode() + b"\n"
    with contextlib.suppress(OSError):  # nobody listens any more; stdin ends likewise
        while data:
            data = data[os.write(1, data) :]


def first_line() -> Any:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte or len(line) > 65536:
            sys.exit(1)
        line += byte
    return json.loads(line.decode())


def stop(*_: Any) -> None:
    raise SystemExit(0)


def run(options: Options) -> None:
    serves = options["role"] == "server"
    if options.get("cpu") is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, [options["cpu"]])
    line = PppoeLine(options, serves)
    until = time.monotonic() + options["deadline_s"]
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, stop)
    say("listening" if serves else "dialling", {"interface": options["interface"]})
    try:
        while line.step(until):
            pass
    finally:
        line.close("its end was asked for")
    if line.failed:
        raise PppoeFailure(line.failed, "see what the other end says")


def main() -> None:
    options = first_line()
    try:
        run(options)
        say("done", {})
    except PppoeFailure as failure:
        say("error", {"what": failure.what, "remedy": failure.remedy})
        sys.exit(1)
    except Exception as error:
        say("error", {"what": f"{type(error).__name__}: {error}", "remedy": "this is a defect of trexbench"})
        sys.exit(1)


if __name__ == "__main__":
    main()
