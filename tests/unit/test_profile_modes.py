"""The table of modes, and the numbers a profile promises."""

from __future__ import annotations

import pytest

from trexbench.core.errors import ConfigError
from trexbench.core.load.profile import LISTED_MODES, MODES, RFC2544_SIZES, FlowCount, Profile, Stream, resolve_mode
from trexbench.core.units import l1_bits

ETHERNET = bytes(12) + b"\x08\x00"
IPV4 = bytes.fromhex("4500002e0001000040110000") + bytes([16, 0, 0, 1]) + bytes([48, 0, 0, 1])
UDP = bytes.fromhex("0401000c001a0000")
PACKET = (ETHERNET + IPV4 + UDP).ljust(60, b"x")
SOURCE, DESTINATION, SPORT = 26, 30, 34


def sized(frame_bytes: int, pps: float) -> Stream:
    return Stream(PACKET[:42].ljust(frame_bytes - 4, b"x"), pps)


def variable(name: str, count: int, op: str = "inc", step: int = 1) -> dict[str, object]:
    """A variable of so many values from 1000 on, or down to it."""
    first, last = 1000, 999 + count
    values = {"init_value": last if op == "dec" else first, "min_value": first, "max_value": last}
    return {"type": "flow_var", "name": name, "size": 4, "op": op, "step": step, **values}


def pairs_of(port_min: int, port_max: int, **more: int) -> tuple[dict[str, object], ...]:
    """A program that steps through 251 addresses, each with these ports."""
    pair = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 251, "port_min": port_min}
    return {**pair, "port_max": port_max, **more}, write("t.ip", SOURCE), write("t.port", SPORT)


def write(name: str, offset: int, add: int = 0) -> dict[str, object]:
    return {"type": "write_flow_var", "name": name, "pkt_offset": offset, "add_value": add, "is_big_endian": True}


NAMES = {name: mode.name for mode in LISTED_MODES for name in (mode.name, *mode.aliases)}


@pytest.mark.parametrize(
    ("asked", "mode"),
    [
        *NAMES.items(),
        ("VAR2-64B", "var2-64b"),
        ("bench", "1flow-64b"),
        ("9216b", "var2-9216b"),
        ("64B-v6", "var2-64b-v6"),
        ("var2-78b-v6", "var2-64b-v6"),
        ("78b-v6", "var2-64b-v6"),
        ("128b-v6", "var2-128b-v6"),
    ],
)
def test_a_mode_goes_by_its_name_and_aliases(asked: str, mode: str) -> None:
    found = resolve_mode(asked)
    assert found.name == mode
    assert (found.tunables.get("ip") == "6") == found.summary.startswith("IPv6: ") == mode.endswith("-v6")


def test_no_name_means_two_modes() -> None:
    assert {f"var2-{size}b" for size in RFC2544_SIZES} < NAMES.keys() and LISTED_MODES[: len(MODES)] == MODES
    assert len(NAMES) == sum(1 + len(mode.aliases) for mode in LISTED_MODES)


@pytest.mark.parametrize("size", [64, 65, 1514, 1518, 9216])
def test_a_mode_of_any_size_sends_frames_of_that_size_in_many_flows(size: int) -> None:
    mode = resolve_mode(f"var2-{size}b")
    assert dict(mode.tunables) == {"size": str(size), "vm": "var2"} and mode == resolve_mode(f"{size}b")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("63b", "63 B: name a size from 64 to 9216, FCS included"),
        ("var2-9217b", "frames of 9217 B"),
        ("var2-064b", "unknown mode 'var2-064b': did you mean var2-64b?"),
        ("1flow-128b", "var2-<n>b with frames of n bytes"),
        (f"{'9' * 5000}b", "unknown mode"),
        ("var2-64", "did you mean var2-64b? modes are "),
        *(("var2-64", f"{mode.name} (or ") for mode in MODES),
        ("var2-77b-v6", "no mode sends IPv6 in frames of 77 B: name a size from 78 to 9216"),
    ],
)
def test_what_is_no_mode_is_refused_with_those_that_are(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_mode(name)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_imix_at_50_mbps_of_l1_is_what_trex_computed() -> None:
    """A real TRex v3.08 answered ``multiplier 342.5032880315651`` (recordings, imix-uni)."""
    imix = Profile("imix", (sized(60, 28), sized(590, 16), sized(1514, 4)))
    assert 50e6 / l1_bits(imix.mean_frame_bytes) / imix.pps == pytest.approx(342.5032880315651)


def test_the_mix_is_said_as_it_is_written() -> None:
    imix = Profile("imix", (sized(60, 28), sized(590, 16), sized(1514, 4)))
    assert imix.mix == "28:16:4 frames of 64, 590, 1514 B, mean 360.2 B"
    assert Profile("p", (sized(1514, 7),)).mix == "1514 B frames"
    assert Profile("p", (sized(64, 0.5), sized(128, 0.25))).mix.startswith("2:1 frames of 64, 128 B")
    tagged = (Stream(bytes(12) + bytes.fromhex(f"8100000{vlan}0800") + bytes(42), 1.0) for vlan in (7, 8))
    assert Profile("p", tuple(tagged)).mix == "64 B frames with VLAN 7 or VLAN 8"


@pytest.mark.parametrize(
    ("program", "expected", "why"),
    [
        ((), FlowCount(1, True), "nothing varies"),
        ((variable("a", 251), write("a", SOURCE)), FlowCount(251, True), "one counter"),
        (
            (variable("a", 251), variable("b", 251), write("a", SOURCE), write("b", DESTINATION)),
            FlowCount(251, True),
            "two counters in lockstep repeat together: 251, not 63001",
        ),
        (
            (variable("a", 251), variable("b", 250), write("a", SOURCE), write("b", DESTINATION)),
            FlowCount(62750, True),
            "coprime counters run through all pairs",
        ),
        ((variable("a", 10, step=3), write("a", SOURCE)), FlowCount(4, True), "a step of 3: TRex widens to 12 values"),
        ((variable("a", 250, op="dec"), write("a", SPORT)), FlowCount(250, True), "counting down"),
        ((variable("a", 251), write("a", 44)), FlowCount(1, True), "the payload is no part of a flow"),
        ((variable("a", 251, op="random"), write("a", SOURCE)), FlowCount(251, False), "random: a bound"),
        (
            (variable("a", 251, op="random"), variable("b", 10), write("a", SOURCE), write("b", SPORT - 2)),
            FlowCount(2510, False),
            "random times counted",
        ),
        (
            (variable("a", 1 << 20), write("a", SOURCE)),
            FlowCount(1 << 20, True),
            "too many to look at: by arithmetic",
        ),
        (
            (variable("a", 1 << 20), variable("b", 3), write("a", SOURCE), write("b", SOURCE + 2)),
            FlowCount(3 << 20, False),
            "one overwrites the other: a bound",
        ),
        (
            (
                {"type": "flow_var", "name": "a", "size": 2, "op": "inc", "step": 1, "value_list": [1, 2, 2, 3]},
                write("a", SPORT),
            ),
            FlowCount(3, True),
            "a list with a value twice",
        ),
        (pairs_of(1234, 65500), FlowCount(251 * 64267, True), "every address with every port"),
        (pairs_of(1, 9, limit_flows=1000), FlowCount(1000, True), "a tuple with a limit"),
    ],
)
def test_flows(program: tuple[dict[str, object], ...], expected: FlowCount, why: str) -> None:
    assert Stream(PACKET, 1.0, tuple(program)).flows == expected, why


def test_streams_that_send_the_same_flows_count_once() -> None:
    program = (variable("a", 251), write("a", SOURCE))
    small, large = Stream(PACKET, 1, program), Stream(PACKET.ljust(500, b"y"), 1, program)
    other = Stream(PACKET, 1, (variable("a", 300), write("a", SOURCE)))
    assert Profile("p", (small, large)).flows == FlowCount(251, True)
    assert Profile("p", (small, other)).flows == FlowCount(300, True)


def test_the_digest_knows_traffic_by_what_it_is() -> None:
    program = (variable("a", 251), write("a", SOURCE))
    base = Profile("p", (Stream(PACKET, 28, program), sized(590, 4)))
    renamed = Profile("q", (Stream(b"\1" * 12 + PACKET[12:], 7, program), sized(590, 1)), port=2, tunables={"x": "y"})
    assert base.digest == renamed.digest, "names, rates in common, and the port's own MACs do not matter"
    spelled = tuple({**one, "next_var": None} for one in program)
    assert Profile("p", (Stream(PACKET, 28, spelled), sized(590, 4))).digest == base.digest
    for other in (
        Profile("p", (Stream(PACKET, 28, program), sized(591, 4))),
        Profile("p", (Stream(PACKET, 27, program), sized(590, 4))),
        Profile("p", (Stream(PACKET, 28, (variable("a", 250), write("a", SOURCE))), sized(590, 4))),
        Profile("p", (Stream(PACKET, 28, program, macs_from_port=False), sized(590, 4))),
    ):
        assert other.digest != base.digest
