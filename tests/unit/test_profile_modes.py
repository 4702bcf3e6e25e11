"""The table of modes, the numbers a profile promises, and the reference field engine, held to what TRex sends."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from frames import write
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.errors import ConfigError
from trexbench.core.load.fieldengine import Program, checksum
from trexbench.core.load.headers import find_tuple5
from trexbench.core.load.profile import LISTED_MODES, MODES, RFC2544_SIZES, FlowCount, Profile, Stream, resolve_mode

ETHERNET = bytes(12) + b"\x08\x00"
IPV4 = bytes.fromhex("4500002e0001000040110000") + bytes([16, 0, 0, 1]) + bytes([48, 0, 0, 1])
UDP = bytes.fromhex("0401000c001a0000")
PACKET = (ETHERNET + IPV4 + UDP).ljust(60, b"x")
SOURCE, DESTINATION, SPORT = 26, 30, 34


def sized(frame_bytes: int, pps: float) -> Stream:
    return Stream(PACKET[:42].ljust(frame_bytes - 4, b"x"), pps)


Instruction = dict[str, Any]


def flow_var(op: str, low: int, high: int, step: int = 1, size: int = 2, **more: Any) -> Instruction:
    """A variable v that begins at its first value, or counting down at its last one."""
    values = {"init_value": high if op == "dec" else low, "min_value": low, "max_value": high, "step": step}
    return {"type": "flow_var", "name": "v", "size": size, "op": op, **values, **more}


def listed(op: str, step: int, *values: int) -> Instruction:
    return {"type": "flow_var", "name": "v", "size": 2, "op": op, "step": step, "value_list": list(values)}


def variable(name: str, count: int, op: str = "inc", step: int = 1) -> Instruction:
    """A variable of so many values from 1000 on, or down to it."""
    return flow_var(op, 1000, 999 + count, step, size=4, name=name)


def pairs_of(ip_max: int, port_min: int, port_max: int, **more: int) -> tuple[Instruction, ...]:
    """A program that steps through so many addresses, each with these ports."""
    pair = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": ip_max, "port_min": port_min}
    return {**pair, "port_max": port_max, **more}, write("t.ip", SOURCE), write("t.port", SPORT)


WRITE = write("v", SPORT)


def two(first: int, second: int, offset: int, op: str = "inc") -> tuple[Instruction, ...]:
    """A program of two variables of so many values, one at the source and the other at this offset."""
    return variable("a", first, op), variable("b", second), write("a", SOURCE), write("b", offset)


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
        (two(251, 251, DESTINATION), FlowCount(251, True), "two counters in lockstep repeat together: 251, not 63001"),
        (two(251, 250, DESTINATION), FlowCount(62750, True), "coprime counters run through all pairs"),
        ((variable("a", 251), write("a", 44)), FlowCount(1, True), "the payload is no part of a flow"),
        ((variable("a", 251, op="random"), write("a", SOURCE)), FlowCount(251, False), "random: a bound"),
        (two(251, 10, SPORT - 2, op="random"), FlowCount(2510, False), "random times counted"),
        ((variable("a", 1 << 20), write("a", SOURCE)), FlowCount(1 << 20, True), "too many to look at: by arithmetic"),
        (two(1 << 20, 3, SOURCE + 2), FlowCount(3 << 20, False), "one overwrites the other: a bound"),
        ((listed("inc", 1, 1, 2, 2, 3), WRITE), FlowCount(3, True), "a list with a value twice"),
        (pairs_of(251, 1234, 65500), FlowCount(251 * 64267, True), "every address with every port"),
        (pairs_of(251, 1, 9, limit_flows=1000), FlowCount(1000, True), "a tuple with a limit"),
    ],
)
def test_flows(program: tuple[Instruction, ...], expected: FlowCount, why: str) -> None:
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
        Profile("p", (Stream(PACKET, 28, program, cache=40), sized(590, 4))),
    ):
        assert other.digest != base.digest


def test_a_cache_repeats_the_first_frames() -> None:
    """As TRex v3.08 does: of 100 addresses and a cache of 40 it sent 40, in order."""
    long = (variable("a", 1 << 20), write("a", SOURCE), flow_var("inc", 60, 99), TRIM)
    for program, count, exact in ((long, 40, True), (two(251, 10, SPORT, op="random"), 40, False)):
        stream = Stream(bytes(200)[:12] + PACKET[12:].ljust(188, b"x"), 1.0, program, cache=40)
        frames = list(islice(stream.frames(), 100))
        assert frames[:40] == frames[40:80] and frames[80:] == frames[:20]
        assert stream.flows == FlowCount(count, exact)
    assert Stream(bytes(200), 1.0, long[2:], cache=10).mean_frame_bytes == pytest.approx(68.5)


def run(instructions: list[Instruction], count: int, offset: int, size: int) -> list[int]:
    frames = islice(Program(instructions).run(PACKET), count)
    return [int.from_bytes(frame[offset : offset + size], "big") for frame in frames]


@pytest.mark.parametrize(
    ("variable", "values", "why"),
    [
        (flow_var("inc", 5, 7), [5, 6, 7, 5], "the first packet has the initial value"),
        (flow_var("inc", 5, 7, init_value=6), [6, 7, 5, 6], "which need not be the least"),
        (flow_var("dec", 5, 7), [7, 6, 5, 7], "down, and around"),
        (flow_var("inc", 0, 9, step=4), [0, 4, 8, 0], "10 values and a step of 4: the range becomes 12"),
        (flow_var("dec", 10, 19, step=4), [19, 15, 11, 19], "the same downwards"),
        (listed("inc", 2, 1, 2, 3), [1, 3, 2, 1], "a list, every second"),
        (listed("dec", 1, 1, 2, 3), [3, 2, 1, 3], "a list, backwards from its end"),
    ],
)
def test_values(variable: Instruction, values: list[int], why: str) -> None:
    assert run([variable, WRITE], 4, 34, 2) == values, why


def test_a_tuple_steps_its_port_when_its_addresses_are_through() -> None:
    program = [*pairs_of(3, 10, 11)]
    assert run(program, 7, 26, 4) == [1, 2, 3, 1, 2, 3, 1]
    assert run(program, 7, 34, 2) == [10, 10, 10, 11, 11, 11, 10]
    assert run([*pairs_of(9, 7, 8, limit_flows=3)], 7, 26, 4) == [1, 2, 3, 1, 2, 3, 1], "or its flows"


def test_a_limited_random_repeats_after_its_limit() -> None:
    variable = {"type": "flow_var_rand_limit", "name": "v", "size": 2, "limit": 5, "seed": 7,
                "min_value": 0, "max_value": 60000}  # fmt: skip
    values = run([variable, WRITE], 12, 34, 2)
    assert values[:5] == values[5:10]


def test_writes_add_mask_shift_and_turn_bytes() -> None:
    variable = flow_var("inc", 0x0102, 0x0103)
    assert run([variable, {**WRITE, "add_value": 1}], 1, 34, 2) == [0x0103]
    assert run([variable, {**WRITE, "is_big_endian": False}], 1, 34, 2) == [0x0201]
    mask = {"type": "write_mask_flow_var", "name": "v", "pkt_offset": 34, "pkt_cast_size": 2, "mask": 0x00F0,
            "shift": 4, "add_value": 0, "is_big_endian": True}  # fmt: skip
    assert run([variable, mask], 1, 34, 2) == [0x0421]
    upper = flow_var("inc", 0x0102030405060708, 0x0102030405060709, size=8)
    assert run([upper, {**mask, "mask": 0xFFFF, "shift": -8}], 1, 34, 2) == [0x0203], "of 64 bits the upper half"
    little = {**mask, "mask": 0xFFFFFFFF, "shift": 0, "is_big_endian": False}
    assert run([upper, little], 1, 34, 4) == [0x08070605], "as wide as the variable, of the lower half"
    assert run([flow_var("inc", 254, 255, size=1), {**WRITE, "add_value": 3}], 2, 34, 1) == [1, 2], "in its width"


TRIM = {"type": "trim_pkt_size", "name": "v"}


def test_trim_shortens_the_packet_from_one_frame_to_the_next() -> None:
    frames = islice(Program([flow_var("inc", 50, 52), TRIM]).run(PACKET), 4)
    assert [len(frame) for frame in frames] == [50, 51, 52, 50]


@pytest.mark.parametrize(
    ("variable", "mean"),
    [
        (flow_var("inc", 100, 195, 50), 129.0),
        (flow_var("dec", 100, 196), 152.0),
        (flow_var("random", 100, 196), 152.0),
        (flow_var("inc", 40, 80), (21 * 64 + sum(range(65, 85))) / 41),  # none is shorter than 64
        (flow_var("inc", 195, 198), (199 + 3 * 200) / 4),  # nor longer than the packet
        (listed("random", 1, 60, 60, 192), (64 + 64 + 196) / 3),
    ],
)
def test_the_mean_size_is_that_of_the_trimmed_frames(variable: Instruction, mean: float) -> None:
    whole, trimmed = sized(200, 1), Stream(sized(200, 1).packet, 3, (variable, TRIM))
    profile = Profile("p", (whole, trimmed))
    assert profile.mean_frame_bytes == pytest.approx((200 + 3 * mean) / 4)
    assert f"1:3 frames of 200, up to 200 B, mean {profile.mean_frame_bytes:.1f} B" == profile.mix


@given(st.binary(min_size=20, max_size=20))
def test_a_mended_ipv4_header_sums_to_nothing(body: bytes) -> None:
    packet = PACKET[:14] + b"\x45" + body[1:] + PACKET[34:]
    frame = next(Program([{"type": "fix_checksum_ipv4", "pkt_offset": 14}]).run(packet))
    assert checksum(frame[14:34]) == 0


def test_hardware_checksums_cover_the_pseudo_header() -> None:
    frame = next(Program([{"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 11}]).run(PACKET))
    pseudo = frame[26:34] + b"\0\x11" + (26).to_bytes(2, "big")
    assert checksum(frame[14:34]) == 0 and checksum(pseudo + frame[34:60]) == 0


@pytest.mark.parametrize(
    ("instruction", "said"),
    [
        ({"type": "fly"}, "'fly' is not understood"),
        ({**flow_var("inc", 1, 2), "next_var": "w"}, "next_var"),
        (WRITE, "'v' is written but never defined"),
        (flow_var("inc", 0, 255, step=100, size=1), "'v' of 0 to 299 does not fit into 1 bytes"),
        (flow_var("dec", 0, 255, step=100, size=1), "'v' of -44 to 255 does not fit into 1 bytes"),
        ({"type": "flow_var_rand_limit", "name": "v", "next_var": "w"}, "next_var"),
    ],
)
def test_what_it_cannot_do_it_says(instruction: Instruction, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Program([instruction])


@given(
    st.lists(
        st.tuples(st.integers(1, 8), st.sampled_from(["inc", "dec"]), st.integers(1, 3), st.sampled_from([26, 30])),
        min_size=1,
        max_size=3,
    )
)
def test_flow_counts_agree_with_looking_at_every_packet(variables: list[tuple[int, str, int, int]]) -> None:
    program: list[Instruction] = []
    for number, (count, op, step, offset) in enumerate(variables):
        program += [variable(f"v{number}", count, op, step), write(f"v{number}", offset)]
    tuple5 = find_tuple5(PACKET)
    seen = {tuple5.of(frame) for frame in islice(Program(program).run(PACKET), 800)}
    counted = Stream(PACKET, 1.0, tuple(program)).flows
    assert counted.exact and counted.count == len(seen)


def test_what_varies_is_told_as_it_is_sent() -> None:
    def told(size: int, high: int, add: int) -> tuple[str, ...]:
        return Stream(PACKET, 1.0, (flow_var("inc", 1, high, size=size), write("v", SOURCE, add))).varied

    assert told(4, 254, 0x10000000) == ("IP.src 16.0.0.1 to 16.0.0.254, inc",)
    assert told(8, 1 << 40, 0) == (f"bytes 26 to 33 1 to {1 << 40}, inc",)  # both addresses, and no single one


@pytest.mark.parametrize("header", ["0800", "080045", "86dd", "86dd60", "81000001", "810000010800", ""])
def test_a_frame_cut_off_in_its_headers_has_no_5_tuple(header: str) -> None:
    packet = bytes(12) + bytes.fromhex(header)
    assert find_tuple5(packet).fields == {}
    assert Profile("p", (Stream(packet, 1.0),)).flows.count == 1


@pytest.mark.parametrize("pps", [0.0, float("nan"), float("inf")])
def test_a_stream_without_a_rate_is_refused(pps: float) -> None:
    with pytest.raises(ConfigError, match="a stream without a rate above 0"):
        Profile("p.py", (Stream(PACKET, pps), Stream(PACKET, 1.0)))
