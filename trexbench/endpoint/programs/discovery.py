"""One end of PPPoE (RFC 2516), discovery and session: the access concentrator, or the client that dials in."""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from typing import TYPE_CHECKING

from .common import readable
from .ppp import AGAIN_S, CONCENTRATOR, TRIES, Link

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .common import Options

DISCOVERY, SESSION = 0x8863, 0x8864
PADI, PADO, PADR, PADS, PADT = 0x09, 0x07, 0x19, 0x65, 0xA7
END_OF_LIST, SERVICE_NAME, AC_NAME, HOST_UNIQ, AC_COOKIE, RELAY = 0x0000, 0x0101, 0x0102, 0x0103, 0x0104, 0x0110
SERVICE_ERROR, SYSTEM_ERROR, GENERIC_ERROR = 0x0201, 0x0202, 0x0203
BROADCAST = b"\xff" * 6


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


class PppoeEnd:
    """One end of PPPoE, discovery and session. No clock and no socket either.

    out: (Ethernet type, MAC, packet) to be sent. link: the session there is, or None. peer, session: whose and which.
    """

    def __init__(self, options: Options, serves: bool, mac: bytes) -> None:
        self.options, self.serves, self.mac = options, serves, mac
        self.out: list[tuple[int, bytes, bytes]] = []
        self.service = str(options.get("service", "")).encode()
        self.link: Link | None = None
        self.peer, self.session = b"", 0
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
            self.out.append((DISCOVERY, BROADCAST, discovery(PADI, 0, tags)))
        else:
            self.out.append((DISCOVERY, self.peer, discovery(PADR, 0, self.offer)))

    def heard_discovery(self, source: bytes, data: bytes, now: float) -> None:
        told = parse_discovery(data)
        if told is None or source[0] & 1:
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
            return
        back = [(kind, value) for kind, value in tags if kind in (HOST_UNIQ, RELAY)]
        named = [(SERVICE_NAME, service or self.service), (AC_NAME, CONCENTRATOR)]
        if code == PADI:
            offer = [*named, (AC_COOKIE, self._cookie(source)), *back]
            self.out.append((DISCOVERY, source, discovery(PADO, 0, offer)))
        elif not hmac.compare_digest(values.get(AC_COOKIE, b""), self._cookie(source)):
            return
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
            return
        wrong = [value for kind, value in tags if kind in (SERVICE_ERROR, SYSTEM_ERROR, GENERIC_ERROR)]
        if code == PADO and self.offer is None and not wrong:
            if values.get(SERVICE_NAME) != self.service:
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
            return
        kind, code, session, size, protocol = struct.unpack_from("!BBHHH", data)
        if kind != 0x11 or code or session != self.session or not 2 <= size <= len(data) - 6:
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
