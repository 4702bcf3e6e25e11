"""The field engine: refusals, TRex's semantics in the reference interpreter, and the generated code against it."""

from __future__ import annotations

from typing import Any

import pytest
from bpf_vm import MAP_STRIDE, MAPS, PACKET, STACK, Machine
from effort import examples
from field_machine import FieldMachine, checked
from hypothesis import given
from hypothesis import strategies as st

from trexbench.stlserver.engine import EngineError
from trexbench.stlserver.kernel import field_build
from trexbench.stlserver.kernel.bpf_asm import Assembler
from trexbench.stlserver.kernel.field_code import FieldCode, write_constants
from trexbench.stlserver.kernel.field_program import FieldProgram, FlowVar, fold, sum_words
from trexbench.stlserver.wire import RpcError

SEED = 99
STATE_FD, LIST_FD = 1, 10


def build_program(packet: bytes, instructions: list[dict[str, Any]]) -> FieldProgram:
    """Checked by the server, then built by the engine."""
    return field_build.build_program(packet, checked(packet.ljust(60, b"\0"), instructions))


ETHERNET = bytes.fromhex("0200000000020200000000010800")


def frame(size: int = 64, options: int = 0) -> bytes:
    """IPv4/UDP of ``size`` bytes, the header with so many words of options, a payload of distinct bytes."""
    length, header = size - 14, 20 + 4 * options
    ip = bytes([0x45 + options, 0]) + length.to_bytes(2, "big") + bytes.fromhex("0001000040110000")
    ip += bytes([16, 0, 0, 4, 48, 0, 0, 4]) + b"\x01" * (4 * options)
    udp = bytes.fromhex("04010c00") + (length - header).to_bytes(2, "big") + b"\0\0"
    return (ETHERNET + ip + udp + bytes(range(1, 250)) * 7)[:size]


def var(name: str, op: str, size: int, low: int, high: int, **more: Any) -> dict[str, Any]:
    base = {"type": "flow_var", "name": name, "op": op, "size": size, "min_value": low, "max_value": high}
    return {**base, "init_value": low, "step": 1, "split_to_cores": False, "next_var": None, **more}


def write(name: str, offset: int, add: int = 0, big: bool = True) -> dict[str, Any]:
    return {"type": "write_flow_var", "name": name, "pkt_offset": offset, "add_value": add, "is_big_endian": big}


FIX = {"type": "fix_checksum_ipv4", "pkt_offset": 14}


def values(instructions: list[dict[str, Any]], count: int, at: int = 42, size: int = 1) -> list[int]:
    machine = FieldMachine(build_program(frame(), instructions), SEED)
    return [int.from_bytes(machine.next_packet()[at : at + size], "big") for _ in range(count)]


SEQUENCES: dict[str, tuple[list[dict[str, Any]], list[int]]] = {
    "inc begins at its initial value": ([var("a", "inc", 1, 5, 7, init_value=6), write("a", 42)], [6, 7, 5, 6]),
    "inc, a range that TRex pads": ([var("a", "inc", 1, 0, 3, step=3), write("a", 42)], [0, 3, 0, 3]),
    "inc, a step that strides over the end": (
        [var("a", "inc", 1, 0, 5, step=4), write("a", 42)],
        [0, 4, 0, 4],
    ),
    "dec wraps to the top": ([var("a", "dec", 1, 5, 7), write("a", 42)], [5, 7, 6, 5]),
    "add is applied in the variable's width": (
        [var("a", "inc", 1, 254, 255), write("a", 42, 3)],
        [1, 2, 1, 2],
    ),
    "a list, and a chain behind it": (
        [
            var("a", "inc", 1, 0, 0, value_list=[9, 7]),
            write("a", 42),
        ],
        [9, 7, 9, 7],
    ),
    "a chained variable moves when the first wraps": (
        [var("a", "inc", 1, 0, 1, next_var="b"), var("b", "inc", 1, 4, 9), write("b", 42)],
        [4, 4, 5, 5, 6, 6],
    ),
    "a tuple counts addresses first": (
        [
            {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 2, "port_min": 7, "port_max": 8},
            write("t.port", 42),
        ],
        [0, 0, 0, 0],
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_variables_take_the_values_of_trex(name: str) -> None:
    instructions, wanted = SEQUENCES[name]
    assert values(instructions, len(wanted)) == wanted


def test_a_tuple_goes_over_addresses_then_ports() -> None:
    tuple_var = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 3, "port_min": 7, "port_max": 8}
    machine = FieldMachine(build_program(frame(), [tuple_var, write("t.ip", 42), write("t.port", 46)]))
    got = [machine.next_packet()[42:48] for _ in range(7)]
    pairs = [(int.from_bytes(one[:4], "big"), int.from_bytes(one[4:], "big")) for one in got]
    assert pairs == [(1, 7), (2, 7), (3, 7), (1, 8), (2, 8), (3, 8), (1, 7)]


def test_a_flow_limit_starts_over() -> None:
    tuple_var = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 9, "port_min": 7, "port_max": 8}
    program = [{**tuple_var, "limit_flows": 3}, write("t.ip", 42)]
    assert [value >> 0 for value in values(program, 7, 42, 4)] == [1, 2, 3, 1, 2, 3, 1]


def test_a_cache_repeats_its_packets() -> None:
    program = build_program(frame(), [var("a", "random", 4, 0, 2**32 - 1), write("a", 42)])
    machine = FieldMachine(program, SEED, cache=5)
    packets = [machine.next_packet() for _ in range(15)]
    assert packets[:5] == packets[5:10] == packets[10:] and len(set(packets)) == 5


def test_a_short_packet_is_padded_to_60_bytes() -> None:
    assert len(build_program(frame(56), []).packet) == 60


def test_a_fixed_ipv4_header_sums_to_all_ones() -> None:
    machine = FieldMachine(build_program(frame(80, 2), [var("a", "inc", 4, 0, 999), write("a", 26), FIX]))
    for _ in range(50):
        assert fold(sum_words(machine.next_packet()[14:42])) == 0xFFFF


MASK = {
    "type": "write_mask_flow_var", "name": "a", "pkt_offset": 42, "mask": 1, "shift": 0, "add_value": 0,
    "is_big_endian": True,
}  # fmt: skip
REFUSALS: list[tuple[str, list[dict[str, Any]]]] = [
    ("field 'type' can only be one of ['fix_checksum_hw'", [{"type": "made_up"}]),
    ("field 'size' can only be one of [1, 2, 4, 8]", [var("a", "inc", 3, 0, 1)]),
    ("field 'op' can only be one of ['inc', 'dec', 'random']", [var("a", "up", 1, 0, 1)]),
    ("field engine variable 'a': steps by 1 from 2 in 2 to 1, with 1 bytes", [var("a", "inc", 1, 2, 1)]),
    ("steps by 1 from 9 in 0 to 5", [var("a", "inc", 1, 0, 5, init_value=9)]),
    ("steps by 1 from 0 in 0 to 256, with 1 bytes", [var("a", "inc", 1, 0, 256)]),
    ("steps by 0 from 0", [var("a", "inc", 1, 0, 9, step=0)]),
    ("field 'min_value' is '7', expecting a whole number of 64 bits", [var("a", "inc", 1, 0, 9, min_value="7")]),
    ("true cycle", [var("a", "inc", 1, 0, 255, step=100)]),
    ("there are two variables 'a'", [var("a", "inc", 1, 0, 9), var("a", "inc", 1, 0, 9)]),
    ("instruction 1 writes variable 'b', which is none", [var("a", "inc", 1, 0, 9), write("b", 42)]),
    ("instruction 1 writes 4 bytes at 61 of 64", [var("a", "inc", 4, 0, 9), write("a", 61)]),
    ("writes 8 bytes at 42", [var("a", "inc", 8, 0, 9), {**MASK, "pkt_cast_size": 8}]),
    (
        "instruction 0 (write_flow_var): flow variable 'a' comes after its use",
        [write("a", 42), var("a", "inc", 1, 0, 9)],
    ),
    ("variable 'b' does not follow variable 'a'", [var("a", "inc", 1, 0, 9, next_var="b")]),
    ("variable 'b' does not follow variable 'a'", [var("a", "inc", 1, 0, 9, next_var="b"), write("a", 42)]),
    ("variable 'c' does not follow variable 'a'", [var("a", "inc", 1, 0, 9, next_var="c"), var("b", "inc", 1, 0, 9)]),
    (
        "must run on a single core",
        [var("a", "inc", 1, 0, 9, next_var="b"), var("b", "inc", 1, 0, 9, split_to_cores=True)],
    ),
    ("variables of 72 bytes; 64 fit", [var(str(number), "inc", 8, 0, 9) for number in range(9)]),
    ("offset 14", [FIX, {"type": "fix_checksum_ipv4", "pkt_offset": 14}][:1]),
    ("a header length", [var("a", "inc", 1, 0, 9), write("a", 14), FIX]),
    ("'l2_len' is 4", [{"type": "fix_checksum_hw", "l2_len": 4, "l3_len": 20, "l4_type": 11}]),
    ("header size is not valid", [{"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 24, "l4_type": 11}]),
    ("needs a flow_var of 2 bytes", [var("a", "inc", 1, 60, 64), {"type": "trim_pkt_size", "name": "a"}]),
    ("'a' leaves the sizes from 60 to 64", [var("a", "inc", 2, 64, 100), {"type": "trim_pkt_size", "name": "a"}]),
    ("no IPv6 header", [{"type": "fix_checksum_icmpv6", "l2_len": 14, "l3_len": 40}]),
    ("steps by 1 through a list of 2 values of 1 bytes", [var("a", "inc", 1, 0, 0, value_list=[1, 300])]),
    (
        "instruction 0 (tuple_flow_var): 'ip_max' is 1; it must be from 2 to 4294967295",
        [{"type": "tuple_flow_var", "name": "t", "ip_min": 2, "ip_max": 1, "port_min": 7, "port_max": 8}],
    ),
]


@pytest.mark.parametrize(("text", "instructions"), REFUSALS)
def test_what_cannot_be_done_is_refused_by_name(text: str, instructions: list[dict[str, Any]]) -> None:
    packet = b"\0" * 64 if text == "offset 14" else frame()
    with pytest.raises((EngineError, RpcError)) as caught:
        build_program(packet, instructions)
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
    st.fixed_dictionaries({"type": st.just("fix_checksum_icmpv6"), "l2_len": SMALL, "l3_len": SMALL}),
)  # fmt: skip


@examples(500)
@given(st.lists(INSTRUCTIONS, max_size=5), st.booleans())
def test_whatever_the_server_lets_through_is_built_or_refused(instructions: list[dict[str, Any]], rest: bool) -> None:
    """The engine relies on the server's checks; nothing that passes them may surprise it."""
    packet = frame() if rest else bytes(64)
    try:
        given = checked(packet, instructions)
    except RpcError:
        return
    try:
        field_build.build_program(packet, given)
    except EngineError as error:
        assert "\n" not in str(error)


class Compiled:
    """The generated code of a program, run by the test's own machine, on a page full of rubbish."""

    def __init__(self, packet: bytes, instructions: list[dict[str, Any]]) -> None:
        self.program = build_program(packet, instructions)
        words = list(self.program.words)
        if self.program.seed_word >= 0:
            words[self.program.seed_word] = SEED
        maps = {STATE_FD: bytearray(8 * len(words) + 64)}
        for number, word in enumerate(words):
            maps[STATE_FD][64 + 8 * number : 72 + 8 * number] = word.to_bytes(8, "little")
        lists = {}
        for item in self.program.instructions:
            if isinstance(item, FlowVar) and item.values:
                fd = LIST_FD + len(lists)
                lists[item.variable.word] = fd
                maps[fd] = bytearray(b"".join(value.to_bytes(8, "little") for value in item.values))
        asm = Assembler()
        write_constants(asm, self.program.packet)
        FieldCode(asm, self.program, 64, lists, "bad").emit()
        asm.exit(0)
        asm.label("bad")
        asm.exit(1)
        self.machine = Machine(asm.assemble(), maps, len(self.program.packet))

    def next_packet(self) -> bytes:
        state = MAPS + STATE_FD * MAP_STRIDE
        regs = [0xDEAD] * 7 + [PACKET, 0xDEAD, state, STACK + 512]
        assert self.machine.run(regs) == 0
        return bytes(self.machine.packet)


@st.composite
def programs(draw: st.DrawFn) -> tuple[bytes, list[dict[str, Any]]]:
    """Any mix of variables, lists, limits, tuples, chains, writes, masks and checksums that fits together."""
    size = draw(st.integers(60, 130))
    packet, instructions, names = frame(size, draw(st.integers(0, 2))), [], {}
    for number in range(draw(st.integers(1, 3))):
        width = draw(st.sampled_from([1, 2, 4, 8]))
        top = (1 << 8 * width) - 1
        low = draw(st.integers(0, top))
        high = draw(st.integers(low, top))
        name, kind = f"v{number}", draw(st.sampled_from(["inc", "dec", "random", "list", "limit", "tuple"]))
        if kind == "tuple":
            ip, port = draw(st.integers(0, 2**32 - 9)), draw(st.integers(0, 65000))
            ranges = {"ip_min": ip, "ip_max": ip + draw(st.integers(0, 8)), "port_min": port, "port_max": port + 3}
            more = {"limit_flows": draw(st.integers(0, 6)), "flags": draw(st.integers(0, 1))}
            instructions.append({"type": "tuple_flow_var", "name": name, **ranges, **more})
            names[f"{name}.ip"], names[f"{name}.port"] = 4, 2
            continue
        names[name] = width
        if kind == "limit":
            limit = {"type": "flow_var_rand_limit", "name": name, "size": width, "limit": draw(st.integers(1, 9))}
            instructions.append({**limit, "min_value": low, "max_value": high, "seed": draw(st.integers(0, 2**32))})
            continue
        listed = {"value_list": draw(st.lists(st.integers(0, top), min_size=1, max_size=6))}
        step = draw(st.integers(1, min(top, 9)))
        if kind == "list":
            op = draw(st.sampled_from(["inc", "dec", "random"]))
            step = min(step, len(listed["value_list"]))
            instructions.append(var(name, op, width, 0, 0, step=step, **listed))
        else:
            init = draw(st.integers(low, high))
            instructions.append(var(name, kind, width, low, high, step=step, init_value=init))
    for name, width in names.items():
        offset = draw(st.integers(26, size - 8))
        add, big = draw(st.integers(-300, 300)), draw(st.booleans())
        instructions.append(write(name, offset, add, big))
        if draw(st.booleans()):
            cast = {"pkt_cast_size": draw(st.sampled_from([1, 2, 4])), "mask": draw(st.integers(0, 2**32 - 1))}
            place = {"pkt_offset": draw(st.integers(42, size - 8)), "shift": draw(st.integers(-31, 31))}
            masked = {"type": "write_mask_flow_var", "name": name, "add_value": add, "is_big_endian": big}
            instructions.append({**masked, **cast, **place})
        del width
    if draw(st.booleans()):
        instructions.append(FIX)
    if draw(st.booleans()):
        l3 = (packet[14] & 15) * 4
        instructions.append({"type": "fix_checksum_hw", "l2_len": 14, "l3_len": l3, "l4_type": 11})
    return packet, instructions


@examples(150)
@given(programs())
def test_the_code_makes_the_packets_of_the_interpreter(case: tuple[bytes, list[dict[str, Any]]]) -> None:
    try:
        compiled = Compiled(*case)
    except (EngineError, RpcError) as error:
        assert "true cycle" in str(error) or "header length" in str(error) or "variables" in str(error)
        return
    machine = FieldMachine(compiled.program, SEED)
    for number in range(12):
        assert compiled.next_packet() == machine.next_packet(), f"packet {number}"
