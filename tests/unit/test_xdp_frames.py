"""Field engine programs of the kernel engine: what is refused, and the sender's code beside the model's frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import pytest
from effort import examples
from frames import FIX, udp, var, write
from hypothesis import given
from hypothesis import strategies as st
from test_xdp_program import Bench

from trexbench.core.load.fieldengine import Program
from trexbench.stlserver.engine import EngineError, StreamSpec
from trexbench.stlserver.kernel.frames import MOST_DRAWN, Frames, make_frames
from trexbench.stlserver.state.stream import Instruction, parse_instructions
from trexbench.stlserver.wire import Params, RpcError

LEFT_OUT = {"limit_flows": 0, "flags": 0}
"""Fields of tuples that TRex requires and tests may leave out."""


def checked(instructions: Sequence[Mapping[str, Any]]) -> tuple[Instruction, ...]:
    """A client's instructions as the server hands them to its engine; RpcError where TRex refuses them."""
    return parse_instructions(Params({"instructions": [{**LEFT_OUT, **one} for one in instructions]}))


def frames_of(packet: bytes, instructions: Sequence[Mapping[str, Any]], cache: int = 0) -> Frames:
    """Checked by the server, then made by the engine."""
    spec = StreamSpec(1, packet, 1e6, instructions=checked(instructions), vm_cache=cache)
    return make_frames(spec, packet, 99)


TUPLE = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 251, "port_min": 1, "port_max": 300}
MASK = {
    "type": "write_mask_flow_var", "name": "a", "pkt_offset": 42, "mask": 1, "shift": 0, "add_value": 0,
    "is_big_endian": True,
}  # fmt: skip
TRIM = {"type": "trim_pkt_size", "name": "a"}
REFUSALS: list[tuple[str, list[dict[str, Any]]]] = [
    ("steps by 1 from 9 in 0 to 5", [var("a", "inc", 1, 0, 5, init_value=9)]),
    ("field 'min_value' is '7', expecting a whole number of 64 bits", [var("a", "inc", 1, 0, 9, min_value="7")]),
    ("65537 different packets, and 65536 can be repeated: use TRex", [var("a", "inc", 4, 0, 65536)]),
    ("tuples without limit: use TRex", [{**TUPLE, "flags": 1}]),
    ("there are two variables 'a'", [var("a", "inc", 1, 0, 9), var("a", "inc", 1, 0, 9)]),
    ("beyond the 64 bytes", [var("a", "inc", 4, 0, 9), write("a", 61)]),
    ("a mask of 8 bytes", [var("a", "inc", 8, 0, 9), {**MASK, "pkt_cast_size": 8}]),
    ("'a' is written but never defined", [write("a", 42), var("a", "inc", 1, 0, 9)]),
    ("variables of 72 bytes: use fewer or smaller ones: 64", [var(str(name), "inc", 8, 0, 9) for name in range(9)]),
    ("no IP header fits behind 50 of 64", [{"type": "fix_checksum_hw", "l2_len": 50, "l3_len": 20, "l4_type": 11}]),
    ("beyond the 64 bytes", [{"type": "fix_checksum_hw", "l2_len": 40, "l3_len": 24, "l4_type": 11}]),
    ("trim_pkt_size by 'a': use a flow_var of 2 bytes", [var("a", "inc", 1, 60, 64), TRIM]),
    ("frames of 64 to 100 bytes (trim_pkt_size)", [var("a", "inc", 2, 64, 100), TRIM]),
    ("trim_pkt_size by 't.port': use a flow_var", [{**TUPLE, "limit_flows": 9}, {**TRIM, "name": "t.port"}]),
    ("steps by 1 through a list of 2 values of 1 bytes", [var("a", "inc", 1, 0, 0, value_list=[1, 300])]),
    ("tuple 't' ends before it begins", [{**TUPLE, "ip_min": 252}]),
    ("a shift by 32", [var("a", "inc", 4, 0, 9), {**MASK, "pkt_cast_size": 1, "shift": 32}]),
]


@pytest.mark.parametrize(("text", "instructions"), REFUSALS)
def test_what_cannot_be_done_is_refused_by_name(text: str, instructions: list[dict[str, Any]]) -> None:
    with pytest.raises((EngineError, RpcError)) as caught:
        frames_of(udp(64), instructions)
    assert text in str(caught.value) and "\n" not in str(caught.value)


NUMBERS = st.sampled_from([0, 1, 2, 3, 14, 20, 40, 60, 64, 255, 256, 65535, 2**32 - 1, 2**64 - 1])
SMALL = st.sampled_from([0, 1, 14, 20, 26, 40, 60, 65535])
NAMES = st.sampled_from(["a", "b", "a.ip"])
INSTRUCTIONS = st.one_of(
    st.builds(
        lambda name, op, size, low, high, more: var(name, op, size, low, high, **more),
        NAMES, st.sampled_from(["inc", "dec", "random"]), st.sampled_from([1, 2, 4, 8]), NUMBERS, NUMBERS,
        st.fixed_dictionaries({}, optional={
            "step": NUMBERS, "next_var": NAMES, "split_to_cores": st.booleans(),
            "value_list": st.lists(NUMBERS, max_size=3)}),
    ),
    st.fixed_dictionaries({"type": st.just("tuple_flow_var"), "name": NAMES, "ip_min": SMALL, "ip_max": SMALL,
                           "port_min": SMALL, "port_max": SMALL, "limit_flows": SMALL, "flags": SMALL}),
    st.fixed_dictionaries({"type": st.just("flow_var_rand_limit"), "name": NAMES, "size": st.sampled_from([1, 2, 4, 8]),
                           "seed": NUMBERS, "limit": NUMBERS, "min_value": NUMBERS, "max_value": NUMBERS},
                          optional={"next_var": NAMES, "split_to_cores": st.booleans()}),
    st.builds(write, NAMES, SMALL, st.integers(-9, 9), st.booleans()),
    st.fixed_dictionaries({"type": st.just("write_mask_flow_var"), "name": NAMES, "pkt_offset": SMALL,
                           "pkt_cast_size": st.integers(0, 5), "mask": SMALL, "shift": st.integers(-40, 40),
                           "add_value": st.integers(-9, 9), "is_big_endian": st.booleans()}),
    st.fixed_dictionaries({"type": st.just("trim_pkt_size"), "name": NAMES}),
    st.fixed_dictionaries({"type": st.just("fix_checksum_ipv4"), "pkt_offset": SMALL}),
    st.fixed_dictionaries({"type": st.just("fix_checksum_hw"), "l2_len": SMALL, "l3_len": SMALL,
                           "l4_type": st.sampled_from([0, 11, 13, 17])}),
)  # fmt: skip


@examples(500)
@given(st.lists(INSTRUCTIONS, max_size=5), st.booleans())
def test_whatever_the_server_lets_through_is_made_or_refused(instructions: list[dict[str, Any]], rest: bool) -> None:
    """The engine relies on the server's checks; nothing that passes them may surprise it."""
    try:
        made = frames_of(udp(64) if rest else bytes(64), instructions, cache=9)
    except (EngineError, RpcError) as error:
        assert "\n" not in str(error)
    else:
        assert len(list(made)) == made.count == 9 and len(made.rows()) == made.count * made.row_bytes


@pytest.mark.parametrize(
    ("about", "instructions", "cache", "count"),
    [
        ("a packet", [], 0, 1),
        ("in lockstep", [var("a", "inc", 4, 1, 251), var("b", "dec", 4, 1, 251)], 0, 251),
        ("apart", [var("a", "inc", 4, 1, 251), var("b", "inc", 4, 1, 3)], 0, 753),
        ("random", [var("a", "random", 4, 1, 251)], 0, MOST_DRAWN),
        ("random beside three", [var("a", "random", 4, 1, 251), var("b", "inc", 1, 1, 3)], 0, MOST_DRAWN // 3 * 3),
        ("random, a cache", [var("a", "random", 4, 1, 251)], 255, 255),
        ("too many, a cache", [TUPLE], 255, 255),
        ("few, a cache", [var("a", "inc", 4, 1, 9)], 255, 255),
        ("a limit", [{**TUPLE, "limit_flows": 1000}], 0, 1000),
    ],
)
def test_frames_repeat_after_their_period(about: str, instructions: list[Any], cache: int, count: int) -> None:
    assert frames_of(udp(64), instructions, cache).count == count


@st.composite
def programs(draw: st.DrawFn) -> tuple[bytes, list[dict[str, Any]]]:
    """Variables written here and there, with checksums and lengths."""
    size = draw(st.integers(60, 130))
    packet, instructions = udp(size, options=draw(st.integers(0, 2))), []
    for number in range(draw(st.integers(1, 3))):
        width = draw(st.sampled_from([1, 2, 4, 8]))
        low = draw(st.integers(0, (1 << 8 * width) - 9))
        op = draw(st.sampled_from(["inc", "dec", "random"]))
        instructions.append(var(f"v{number}", op, width, low, low + draw(st.integers(0, 8))))
        instructions.append(write(f"v{number}", draw(st.integers(26, size - 8)), draw(st.integers(-300, 300))))
    if draw(st.booleans()):
        low = draw(st.integers(60, size))
        instructions += [var("n", "inc", 2, low, size), {"type": "trim_pkt_size", "name": "n"}]
    hardware = {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": (packet[14] & 15) * 4, "l4_type": 11}
    return packet, instructions + draw(st.sampled_from([[], [FIX], [hardware]]))


@examples(150)
@given(programs())
def test_the_code_sends_the_frames_of_the_model(case: tuple[bytes, list[dict[str, Any]]]) -> None:
    packet, instructions = case[0], checked(case[1])
    bench = Bench([[StreamSpec(1, packet, 1e7, instructions=instructions, vm_cache=7)]])
    bench.open()
    sent = [one.frame for one in bench.run(10_000)[:16]]
    cycle = bench.ports[0].plan.streams[0].frames.count
    wanted = list(islice(Program(instructions, 1).run(packet), cycle))
    assert sent == [wanted[number % cycle] for number in range(16)]
