"""PPPoE as its two ends speak it: both wired together without a socket, and what each takes from a hostile peer."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from trexbench.endpoint.programs import discovery, ppp, pppoe
from trexbench.endpoint.programs.discovery import DISCOVERY, SESSION, PppoeEnd
from trexbench.endpoint.programs.ppp import LCP, control, packed

SERVER_MAC, CLIENT_MAC = b"\x02\0\0\0\0\x0a", b"\x02\0\0\0\0\x0b"
SERVER = {"own": "100.66.2.2", "peer": "100.66.2.9", "user": "router", "secret": "s3cret"}
CLIENT = {"user": "router", "secret": "s3cret"}
Frame = tuple[int, bytes, bytes]
"""Ethernet type, destination, packet."""


class Wire:
    """Both ends and a cable, in simulated time. spoil: what becomes of a frame on its way; None: it is lost."""

    def __init__(
        self,
        server: dict[str, Any] | None = None,
        client: dict[str, Any] | None = None,
        spoil: Callable[[Frame], Frame | None] = lambda frame: frame,
    ) -> None:
        self.server = PppoeEnd({**SERVER, **(server or {})}, True, SERVER_MAC)
        self.client = PppoeEnd({**CLIENT, **(client or {})}, False, CLIENT_MAC)
        self.now, self.spoil, self.seen = 100.0, spoil, list[Frame]()

    def carry(self) -> None:
        for one, other in ((self.client, self.server), (self.server, self.client)):
            frames, one.out[:] = list(one.out), []
            for frame in frames:
                self.seen.append(frame)
                arrived = self.spoil(frame)
                if arrived is None or arrived[1] not in (other.mac, discovery.BROADCAST):
                    continue
                hear = other.heard_discovery if arrived[0] == DISCOVERY else other.heard_session
                hear(one.mac, arrived[2], self.now)

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        end = self.now + seconds
        while self.now < end and not until():
            self.client.tick(self.now)
            self.server.tick(self.now)
            for _ in range(20):
                if not (self.client.out or self.server.out):
                    break
                self.carry()
            self.now += 0.1

    @property
    def up(self) -> bool:
        return self.is_up()

    def is_up(self) -> bool:
        return all(one.link is not None and one.link.up for one in (self.client, self.server))

    @property
    def over(self) -> bool:
        return any(one.link is not None and one.link.over for one in (self.client, self.server))

    def ends(self) -> tuple[str, str]:
        """Why the server's session ended, and the client's."""
        return tuple("" if one.link is None else one.link.why for one in (self.server, self.client))  # type: ignore[return-value]


def links(wire: Wire) -> tuple[ppp.Link, ppp.Link]:
    assert wire.server.link is not None and wire.client.link is not None
    return wire.server.link, wire.client.link


@pytest.mark.parametrize(
    ("server", "client", "method"),
    [
        ({}, {}, "chap"),
        ({"auth": ["pap"]}, {}, "pap"),
        ({}, {"auth": ["pap"]}, "pap"),  # the client asks for what it knows
        ({"auth": []}, {}, "none"),
        ({"ipv6": ["fd00::1", "fd00::2"]}, {"ipv6": ["fd00::2", "fd00::1"]}, "chap"),
        ({"ipv6": ["fd00::1", "fd00::2"]}, {}, "chap"),  # the client refuses IPv6: the session is up without
        ({"service": "internet"}, {"service": "internet"}, "chap"),
    ],
)
def test_a_session_comes_up(server: dict[str, Any], client: dict[str, Any], method: str) -> None:
    wire = Wire(server, client)
    wire.run(2, lambda: wire.up)
    assert wire.up and wire.now < 101, wire.ends()
    ours, theirs = links(wire)
    assert (ours.authenticated, theirs.authenticated) == (method, method)
    assert ours.addresses == ("100.66.2.2", "100.66.2.9") and theirs.addresses == ("100.66.2.9", "100.66.2.2")
    assert ours.mtu == theirs.mtu == 1492 and wire.server.session == wire.client.session
    assert (ours.ipv6cp is not None) == (theirs.ipv6cp is not None) == ("ipv6" in server and "ipv6" in client)
    wire.run(30)
    assert wire.up, "echo requests are answered"


def test_secrets_do_not_leave_by_chap() -> None:
    wire = Wire()
    wire.run(2, lambda: wire.up)
    assert not any(b"s3cret" in data for _, _, data in wire.seen)


@pytest.mark.parametrize("method", ["chap", "pap"])
@pytest.mark.parametrize("wrong", [{"secret": "other"}, {"user": "somebody"}, {"secret": ""}])
def test_a_wrong_secret_is_refused(method: str, wrong: dict[str, Any]) -> None:
    wire = Wire({"auth": [method]}, wrong)
    wire.run(5, lambda: wire.over)
    wire.run(0.3)
    refused, told = wire.ends()
    user = wrong.get("user", "router")
    assert refused == f"user '{user}' was refused: wrong user or secret" and not wire.up
    assert told == f"the server refuses user '{user}' (wrong user or secret)"


@pytest.mark.parametrize("rate", [0.1, 0.2])
def test_lost_frames_are_sent_again(rate: float) -> None:
    chance = random.Random(7)
    for _ in range(20):
        wire = Wire(spoil=lambda frame: None if chance.random() < rate else frame)
        wire.run(15, wire.is_up)
        assert wire.up, wire.ends()


def test_a_silent_peer_ends_the_session() -> None:
    wire = Wire()
    wire.run(2, lambda: wire.up)
    wire.spoil = lambda frame: None
    silent_s = wire.now
    wire.run(10, lambda: wire.over)
    assert 3.9 < wire.now - silent_s < 5 and "has not been heard for 4 s" in "".join(wire.ends())


def test_frames_that_are_moved_are_a_sign_of_life() -> None:
    """A line so full that echo answers get lost is no dead one."""
    wire = Wire()
    wire.run(2, lambda: wire.up)
    wire.spoil = lambda frame: None
    for _ in range(20):
        wire.run(1)
        for link in links(wire):
            link.alive(wire.now)
    assert wire.up


def test_who_hangs_up_says_why() -> None:
    wire = Wire()
    wire.run(2, lambda: wire.up)
    wire.server.hang_up("enough")
    wire.carry()
    assert wire.ends() == ("enough", "the peer ended it (enough)")
    wire.server.forget(wire.now)
    wire.client.forget(wire.now)
    assert [(kind, discovery.parse_discovery(data)) for kind, _, data in wire.server.out] == [
        (DISCOVERY, (discovery.PADT, struct.unpack_from("!H", wire.seen[-1][2], 2)[0], []))
    ]


def test_a_router_that_was_restarted_gets_a_new_session_at_once() -> None:
    wire = Wire()
    wire.run(2, lambda: wire.up)
    first = wire.server.session
    wire.client = PppoeEnd(CLIENT, False, CLIENT_MAC)
    wire.run(0.5)
    assert links(wire)[0].why == "the peer dials anew" if wire.client.link else True
    assert wire.server.link is not None and wire.server.link.over
    wire.server.forget(wire.now)
    wire.run(1, lambda: wire.up)
    assert wire.up and wire.server.session != first


def test_nobody_takes_over_a_session() -> None:
    """Another MAC is neither offered one, nor can it end that of somebody else, nor dial without an offer."""
    wire = Wire()
    wire.run(2, lambda: wire.up)
    other, session = b"\x02\0\0\0\0\x0c", wire.server.session
    tags = [(discovery.SERVICE_NAME, b"")]
    for data in (
        discovery.discovery(discovery.PADI, 0, tags),
        discovery.discovery(discovery.PADR, 0, tags),
        discovery.discovery(discovery.PADT, session, []),
    ):
        wire.server.heard_discovery(other, data, wire.now)
    wire.server.heard_session(other, lcp(session, control(5, 1, b"")), wire.now)
    wire.server.heard_session(CLIENT_MAC, lcp(session ^ 1, control(5, 1, b"")), wire.now)
    assert wire.up and not wire.server.out
    cookie = [*tags, (discovery.AC_COOKIE, wire.server._cookie(other))]
    wire.server.heard_discovery(other, discovery.discovery(discovery.PADR, 0, cookie), wire.now)
    ((_, mac, answer),) = wire.server.out
    told = discovery.parse_discovery(answer)
    assert mac == other and told is not None and told[1] == 0 and discovery.SYSTEM_ERROR in dict(told[2])


def test_who_hears_nobody_gives_up() -> None:
    wire = Wire(spoil=lambda frame: None)
    wire.run(20, lambda: bool(wire.client.failed))
    assert wire.client.failed == "no access concentrator answers PADI" and wire.server.link is None


def test_the_offer_is_bound_to_who_asked() -> None:
    """PADO repeats Host-Uniq and Relay-Session-Id, and its cookie is of no use to another."""
    server = PppoeEnd(SERVER, True, SERVER_MAC)
    asked = [(discovery.SERVICE_NAME, b"any"), (discovery.HOST_UNIQ, b"\0\1"), (discovery.RELAY, b"r")]
    server.heard_discovery(CLIENT_MAC, discovery.discovery(discovery.PADI, 0, asked), 0)
    ((_, mac, data),) = server.out
    told = discovery.parse_discovery(data)
    assert told is not None and mac == CLIENT_MAC and told[0] == discovery.PADO
    offered = dict(told[2])
    assert {key: offered[key] for key, _ in asked} == dict(asked) and offered[discovery.AC_NAME] == b"trexbench"
    server.out.clear()
    server.heard_discovery(b"\x02\0\0\0\0\x0c", discovery.discovery(discovery.PADR, 0, list(offered.items())), 0)
    assert not server.out and server.link is None


def lcp(session: int, packet: bytes, protocol: int = LCP) -> bytes:
    return struct.pack("!BBHHH", 0x11, 0, session, 2 + len(packet), protocol) + packet


def answers(end: PppoeEnd, packet: bytes, protocol: int = LCP) -> list[tuple[int, int, bytes]]:
    """Code, identifier and body of what an end says to this packet."""
    end.out.clear()
    end.heard_session(CLIENT_MAC if end.serves else SERVER_MAC, lcp(end.session, packet, protocol), 100.0)
    said = [ppp.parse_control(data[8:]) for kind, _, data in end.out if kind == SESSION]
    return [one for one in said if one is not None]


def test_what_is_not_known_is_refused_as_the_standard_says() -> None:
    wire = Wire()
    wire.run(2, lambda: wire.up)
    server = wire.server
    assert answers(server, control(77, 5, b"x")) == [(ppp.CODE_REJECT, 1, control(77, 5, b"x"))]
    unknown = control(1, 9, b"")
    assert answers(server, unknown, 0x8281) == [(ppp.PROTOCOL_REJECT, 2, b"\x82\x81" + unknown)]
    assert answers(server, control(ppp.ECHO, 3, b"\1\2\3\4hello")) == [
        (ppp.ECHO_REPLY, 3, links(wire)[0].magic + b"hello")
    ]
    assert not answers(server, control(ppp.DISCARD, 3, b"")) and wire.up


def test_options_are_granted_bettered_or_rejected() -> None:
    wire = Wire(spoil=lambda frame: None if frame[0] == SESSION else frame)
    wire.run(0.3)
    server = wire.server

    def asked(*options: tuple[int, bytes]) -> list[tuple[int, int, bytes]]:
        return answers(server, control(ppp.REQUEST, 1, packed(options)))

    compressed, large = (7, b""), (ppp.MRU, b"\x05\xdc")
    assert asked(compressed, large) == [(ppp.REJECT, 1, packed([compressed]))]
    assert asked(large) == [(ppp.NAK, 1, packed([(ppp.MRU, b"\x05\xd4")]))]
    assert asked((ppp.MRU, b"\x05\x78")) == [(ppp.ACK, 1, packed([(ppp.MRU, b"\x05\x78")]))]
    assert links(wire)[0].mtu == 1400
    server.options["ipv6"] = ["fd00::1", "fd00::2"]  # which no less than 1280 carries
    assert asked((ppp.MRU, b"\x04\xff")) == [(ppp.NAK, 1, packed([(ppp.MRU, b"\x05\xd4")]))]
    ((code, _, body),) = asked((ppp.MAGIC, links(wire)[0].magic))
    assert code == ppp.NAK and body != packed([(ppp.MAGIC, links(wire)[0].magic)])


def test_the_client_gets_the_address_that_it_is_to_have() -> None:
    wire = Wire()
    wire.run(2, lambda: wire.up)
    link = links(wire)[0]
    link.ipcp.granted = False
    for body in (b"", packed([(3, b"\x0a\0\0\1")])):
        (told,) = answers(wire.server, control(ppp.REQUEST, 8, body), ppp.IPCP)
        assert told == (ppp.NAK, 8, packed([(3, bytes((100, 66, 2, 9)))]))


@pytest.mark.parametrize("role", ["server", "client"])
def test_a_peer_without_end_is_cut_off(role: str) -> None:
    """One that never comes to terms, and one that answers each request with another wish."""
    wire = Wire(spoil=lambda frame: None if frame[0] == SESSION else frame)
    wire.run(0.3)
    end = wire.server if role == "server" else wire.client
    for number in range(60):
        answers(end, control(ppp.REQUEST, number % 256, packed([(ppp.MRU, b"\xff\xff")])))
    assert end.link is not None and end.link.why == "no agreement on LCP after 40 requests"
    wire = Wire(spoil=lambda frame: None if frame[0] == SESSION else frame)
    wire.run(0.3)
    end = wire.server if role == "server" else wire.client
    assert end.link is not None
    for _ in range(60):
        answers(end, control(ppp.NAK, end.link.lcp.number, packed([(ppp.MRU, b"\x02\x58")])))
    assert end.link.why == "no agreement on LCP"


def test_a_peer_that_says_half_is_not_waited_for_without_end() -> None:
    """It acknowledges all, and asks for nothing itself."""
    wire = Wire(spoil=lambda frame: None if frame[0] == SESSION else frame)
    wire.run(0.3)
    link = links(wire)[0]
    answers(wire.server, control(ppp.ACK, link.lcp.number, packed(link.lcp.wishes.items())))
    wire.run(20, lambda: wire.server.link is not None and wire.server.link.over)
    assert link.why == "no agreement within 15 s"


def test_a_looped_line_is_none() -> None:
    wire = Wire()
    wire.run(2, lambda: wire.up)
    link = links(wire)[0]
    answers(wire.server, control(ppp.ECHO, 1, link.magic))
    assert "looped" in link.why


@given(st.binary(max_size=60))
def test_options_and_tags_of_any_bytes(data: bytes) -> None:
    found = ppp.parse_options(data)
    assert found is None or packed(found) == data
    discovery.parse_discovery(data)
    discovery.parse_discovery(struct.pack("!BBHH", 0x11, 9, 0, len(data)) + data)
    ppp.parse_control(data)


def test_tags_come_back_as_they_were_sent() -> None:
    tags = [(discovery.SERVICE_NAME, b""), (discovery.HOST_UNIQ, bytes(300))]
    padded = discovery.discovery(discovery.PADI, 0, tags) + bytes(20)
    assert discovery.parse_discovery(padded) == (discovery.PADI, 0, tags)


CODES = st.integers(0, 12)
PROTOCOLS = st.sampled_from([LCP, ppp.PAP, ppp.CHAP, ppp.IPCP, ppp.IPV6CP, 0x8281])
OPTIONS = st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=8)), max_size=4).map(packed)
PACKETS = st.tuples(PROTOCOLS, CODES, st.integers(0, 255), OPTIONS | st.binary(max_size=40))


@examples(200)
@given(st.lists(PACKETS, max_size=30), st.integers(0, 12), st.booleans())
def test_garbage_is_no_traceback(packets: list[tuple[int, int, int, bytes]], begun: int, serves: bool) -> None:
    """At whatever point of the session it comes, and for each its answers are few."""
    count = 0

    def spoil(frame: Frame) -> Frame | None:
        nonlocal count
        count += 1
        return frame if count <= 4 + begun else None

    wire = Wire({"ipv6": ["fd00::1", "fd00::2"]}, {"ipv6": ["fd00::2", "fd00::1"]}, spoil)
    wire.run(0.5)
    end = wire.server if serves else wire.client
    for protocol, code, number, body in packets:
        if end.link is None:
            break
        same = end.link.lcp.number if number & 1 else number
        assert len(answers(end, control(code, same, body), protocol)) <= 4
        assert all(one.isprintable() for one in end.link.why)


@examples(200)
@given(st.lists(st.binary(max_size=80), max_size=10), st.booleans(), st.booleans())
def test_garbage_of_any_stage(packets: list[bytes], serves: bool, headed: bool) -> None:
    wire = Wire()
    wire.run(2, lambda: wire.up)
    end, peer = (wire.server, CLIENT_MAC) if serves else (wire.client, SERVER_MAC)
    for data in packets:
        if headed:
            data = struct.pack("!BBHH", 0x11, data[0] if data else 0, end.session, max(0, len(data) - 1)) + data[1:]
        end.out.clear()
        end.heard_discovery(peer, data, wire.now)
        end.heard_session(peer, data, wire.now)
        end.tick(wire.now)
        assert len(end.out) <= 4, "an answer or two, and no flood"
        assert end.link is None or all(one.isprintable() for one in end.link.why)


@pytest.mark.parametrize("seed", range(30))
def test_a_line_that_damages_frames(seed: int) -> None:
    """Bits are turned over, frames lost and doubled: it comes up or ends with a reason, and takes up no more time."""
    chance = random.Random(seed)

    def spoil(frame: Frame) -> Frame | None:
        kind, mac, data = frame
        if chance.random() < 0.1:
            return None
        if chance.random() < 0.2:
            at = chance.randrange(len(data))
            data = data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]
        return kind, mac, data[: chance.randrange(len(data))] if chance.random() < 0.05 else data

    wire = Wire(spoil=spoil)
    wire.run(30, lambda: wire.up or wire.over or bool(wire.client.failed))
    assert wire.up or any(wire.ends()) or wire.client.failed
    assert len(wire.seen) < 400


def test_the_kernels_filter_takes_the_sessions_ip_only() -> None:
    """The classic BPF program, executed here."""
    program = pppoe.session_program(SERVER_MAC, CLIENT_MAC, 0x1234)

    def taken(frame: bytes) -> bool:
        at = word = 0
        while True:
            code, yes, no, value = program[at]
            at += 1
            if code == 6:
                return value > 0
            if code == 0x15:
                at += yes if word == value else no
            else:
                size = {0x30: 1, 0x28: 2, 0x20: 4}[code]
                word = int.from_bytes(frame[value : value + size], "big")

    def frame(own: bytes = SERVER_MAC, peer: bytes = CLIENT_MAC, session: int = 0x1234, protocol: int = 0x21) -> bytes:
        return own + peer + struct.pack("!HBBHHH", SESSION, 0x11, 0, session, 2, protocol)

    assert taken(frame()) and taken(frame(protocol=0x57))
    for other in (
        frame(own=CLIENT_MAC),
        frame(peer=SERVER_MAC),
        frame(session=0x1235),
        frame(protocol=LCP),
        frame()[:15] + b"\x01" + frame()[16:],
    ):
        assert not taken(other)
