"""Marked frames: what the sender writes into them and what the receiver counts; run by the tests' own machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from frames import FIX, QINQ, VLAN, tagged, udp, var, write
from test_xdp_latency import Port, timed
from test_xdp_program import Bench

from trexbench.core.load.fieldengine import checksum
from trexbench.stlserver.engine import MARKS, EngineError, StreamSpec
from trexbench.stlserver.kernel.xdp_count import FIRST_ID, marked_packet, received, words_of
from trexbench.stlserver.kernel.xdp_count import map_bytes as flows_bytes
from trexbench.stlserver.kernel.xdp_plan import plan_port


def counted(packet: bytes, mark: int | None = 5, **more: Any) -> StreamSpec:
    return replace(StreamSpec(1, packet, 1e5, mark=mark), **more)


def told(port: Port) -> dict[int, tuple[int, int]]:
    """By mark, of those of which any frame was counted."""
    found = received(memoryview(port.flows).cast("Q"), range(MARKS), port.cpus)
    return {mark: counts for mark, counts in found.items() if counts != (0, 0)}


FRAMES = [
    ("IPv4", udp()),
    ("IPv6", udp(78, 6)),
    ("behind a tag", tagged(udp(), VLAN)),
    ("behind two", tagged(udp(), QINQ, VLAN)),
    ("IPv6 behind two", tagged(udp(78, 6), VLAN, VLAN)),
]


@pytest.mark.parametrize(("about", "packet"), FRAMES, ids=[row[0] for row in FRAMES])
@pytest.mark.parametrize("mark", [0, 5, MARKS - 1])
def test_a_marked_frame_is_counted_under_its_mark_and_with_all_others(about: str, packet: bytes, mark: int) -> None:
    port = Port()
    marked = marked_packet(counted(packet, mark))
    for _ in range(3):
        assert port.take(marked, 0) == 1
    assert told(port) == {mark: (3, 3 * (len(packet) + 4))} and port.received == 3
    changed = {at for at in range(len(packet)) if packet[at] != marked[at]}
    layer3 = packet.index(b"\x45" if b"\x08\x00\x45" in packet else b"\x6a", 14)
    own = {4, 5, 10, 11} if packet[layer3] == 0x45 else {1, 2, 3}
    assert changed <= {layer3 + one for one in own}
    if packet[layer3] == 0x45:
        assert checksum(marked[layer3 : layer3 + 20]) == 0, "the header's checksum is right"
    else:
        assert marked[layer3 : layer3 + 2] == b"\x6a\xb0", "version and traffic class stay"


def with_ip_id(identity: int) -> bytes:
    packet = bytearray(udp())
    packet[18:20] = identity.to_bytes(2, "big")
    return bytes(packet)


STRANGERS = [
    ("an ID below", with_ip_id(FIRST_ID - 1)),
    ("that of timed frames", with_ip_id(0xFFFF)),
    ("not IP", udp()[:12] + b"\x88\xb5" + b"\xff" * 46),
    ("three tags", tagged(with_ip_id(FIRST_ID), VLAN, VLAN, VLAN)),
    ("cut short", with_ip_id(FIRST_ID)[:19]),
    ("cut short behind a tag", tagged(with_ip_id(FIRST_ID), VLAN)[:23]),
    ("a flow label below", udp(78, 6, label=FIRST_ID - 1)),
]


@pytest.mark.parametrize(("about", "packet"), STRANGERS, ids=[row[0] for row in STRANGERS])
def test_others_have_no_mark(about: str, packet: bytes) -> None:
    port = Port()
    assert port.take(packet, 0) == 1
    assert told(port) == {} and port.received == 1


def test_marks_and_cpus_have_words_of_their_own() -> None:
    used = [word + part for mark in range(MARKS) for word in words_of(mark, 4) for part in (0, 1)]
    assert len(used) == len(set(used)) == 2 * 4 * MARKS
    assert 8 * max(used) < flows_bytes(4)


@pytest.mark.parametrize(
    ("identity", "sent"), [(FIRST_ID - 1, FIRST_ID - 1), (FIRST_ID, 0xEC00), (0xFFFF, 0xEFFF), (1, 1)]
)
def test_a_stream_without_mark_never_looks_marked(identity: int, sent: int) -> None:
    packet = bytearray(with_ip_id(identity))
    packet[24:26] = bytes(2)
    packet[24:26] = checksum(packet[14:34]).to_bytes(2, "big")
    found = marked_packet(counted(bytes(packet), None))
    assert int.from_bytes(found[18:20], "big") == sent and checksum(found[14:34]) == 0
    label = int.from_bytes(marked_packet(counted(udp(78, 6, label=identity), None))[15:18], "big") & 0xFFFFF
    assert label == sent
    assert marked_packet(counted(udp(78, 6, label=0x5FC00), None))[15:18] == b"\xb0\xec\x00"


def test_the_field_engine_renews_the_checksum_over_the_mark() -> None:
    """And what is sent is counted, by size and mark, in the sender's memory."""
    program = [var("s", "inc", 4, 0x10000004, 0x100000FE), write("s", 26), FIX]
    specs = [counted(udp(), 5, instructions=program), counted(udp(), 6, stream_id=2), StreamSpec(3, udp(), 1e5)]
    bench = Bench([specs])
    bench.open()
    port, frames = Port(), [one.frame for one in bench.run(100_000)]
    for frame in frames:
        port.take(frame, 0)
    assert {frame[29] for frame in frames if frame[18:20] == b"\xfc\x05"} == set(range(4, 14))
    assert all(checksum(frame[14:34]) == 0 for frame in frames)
    assert told(port) == {5: (10, 640), 6: (10, 640)} and port.received == 30
    assert bench.ports[0].sent_flows() == {**told(port), None: (10, 640)}
    bench.ports[0].retire()
    assert bench.ports[0].sent_flows() == {**told(port), None: (10, 640)}


def field(offset: int) -> dict[str, Any]:
    return {"instructions": [var("a", "inc", 1, 0, 9), write("a", offset)]}


TRIM = [var("a", "inc", 2, 76, 90), {"type": "trim_pkt_size", "name": "a"}]
REFUSALS = [
    ("no IP", counted(udp()[:12] + b"\x88\xb5" + bytes(46)), "IPv4 and IPv6 behind 2 VLAN tags at most"),
    ("three tags", counted(tagged(udp(), VLAN, VLAN, VLAN)), "behind 2 VLAN tags at most"),
    ("a field in the IP ID", counted(udp(), **field(18)), "writes byte 18, by which counted frames are known"),
    ("a field in the type", counted(udp(), **field(13)), "writes byte 13"),
    ("a field in the inner type", counted(tagged(udp(), VLAN), **field(16)), "writes byte 16"),
    ("a field in the flow label", counted(udp(78, 6), **field(17)), "writes byte 17"),
    ("timed: padding behind IP", timed(packet=udp(60, length=40)), "ends after 54 bytes of a frame of 60; routers cut"),
    ("timed: IP beyond the frame", timed(packet=udp(60, length=47)), "ends after 61 bytes of a frame of 60"),
    ("timed: padding behind IPv6", timed(packet=udp(82, 6) + bytes(4)), "ends after 82 bytes of a frame of 86"),
    ("timed: three VLAN tags", timed(packet=tagged(udp(), VLAN, VLAN, VLAN)), "behind 2 VLAN tags at most"),
    ("timed: no IP", timed(packet=udp()[:12] + b"\x88\xb5" + bytes(46)), "IPv4 and IPv6 behind 2 VLAN tags at most"),
    ("timed: a field in the flow label", timed(packet=udp(82, 6), **field(17)), "writes byte 17, by which"),
    ("timed: a field in IPv6's length", timed(packet=udp(82, 6), **field(18)), "writes byte 18, by which"),
    ("timed: a field in a tag's type", timed(packet=tagged(udp(), VLAN), **field(16)), "writes byte 16, by which"),
    ("timed: a field in the time", timed(**field(59)), "writes byte 59, by which"),
    ("timed: a field in the IP ID", timed(**field(18)), "writes byte 18, by which"),
    ("timed: a field in the IP length", timed(**field(16)), "writes byte 16, by which"),
    ("timed: changing sizes", timed(packet=udp(90), instructions=TRIM), "change their size"),
]


@pytest.mark.parametrize(("about", "spec", "text"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_what_could_not_be_counted_or_timed_is_refused(about: str, spec: StreamSpec, text: str) -> None:
    with pytest.raises(EngineError, match=f"stream 1: .*{text}") as caught:
        plan_port(1, [spec])
    assert "\n" not in str(caught.value)
    if "field" not in about:
        plan_port(1, [replace(spec, mark=None, pg_id=None)])
