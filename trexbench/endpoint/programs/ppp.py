"""PPP between both ends of a session (RFC 1661). No clock and no socket: packets and times go in, packets come out."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import struct
from typing import TYPE_CHECKING

from .common import ProgramFailure, readable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .common import Options

IPV4, IPV6, IPCP, IPV6CP, LCP, PAP, CHAP = 0x0021, 0x0057, 0x8021, 0x8057, 0xC021, 0xC023, 0xC223
REQUEST, ACK, NAK, REJECT, TERMINATE, TERMINATED, CODE_REJECT, PROTOCOL_REJECT, ECHO, ECHO_REPLY, DISCARD = range(1, 12)
CHALLENGE, RESPONSE, SUCCESS, FAILURE = 1, 2, 3, 4
MRU, AUTHENTICATION, MAGIC = 1, 3, 5
ADDRESS = 3
CONCENTRATOR = b"trexbench"
"""Name of the server."""
METHODS = {"chap": b"\xc2\x23\x05", "pap": b"\xc0\x23"}

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


def chap_digest(number: int, secret: str, challenge: bytes) -> bytes:
    try:
        return hashlib.md5(bytes((number,)) + secret.encode() + challenge).digest()
    except ValueError:
        raise ProgramFailure("this host's python has no MD5", "authenticate by pap") from None


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
                body = bytes((len(self.proof),)) + self.proof + CONCENTRATOR
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
