"""Field engine programs: TRex's checks of each instruction (at ``add_stream``) and of the whole (at ``start``).

What an instruction means is the engine's affair; instructions travel as the client's JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trexbench.stlserver.params import Params
from trexbench.stlserver.wire import RpcError, bad_params, cannot_execute

KINDS = (
    "fix_checksum_hw",
    "fix_checksum_ipv4",
    "fix_checksum_icmpv6",
    "flow_var",
    "write_flow_var",
    "tuple_flow_var",
    "trim_pkt_size",
    "write_mask_flow_var",
    "flow_var_rand_limit",
)
VAR_SIZES = (1, 2, 4, 8)
OPS = ("inc", "dec", "random")
UINT64_MAX = 2**64 - 1
MAX_VARS_BYTES = 64
SHORTEST_FRAME_BYTES = 60
IPV4_HEADER_BYTES = 20

Instruction = dict[str, Any]


def parse_instructions(program: Params) -> tuple[Instruction, ...]:
    """Every instruction's fields, checked; ranges of ``flow_var`` padded to whole steps as TRex pads them."""
    return tuple(_PARSERS[one.choice("type", KINDS)](one) for one in program.objects("instructions"))


def _checksum_ipv4(p: Params) -> Instruction:
    return {"type": "fix_checksum_ipv4", "pkt_offset": p.uint16("pkt_offset")}


def _checksum_hw(p: Params) -> Instruction:
    fields = {name: p.uint16(name) for name in ("l2_len", "l3_len", "l4_type")}
    return {"type": "fix_checksum_hw", **fields}


def _checksum_icmpv6(p: Params) -> Instruction:
    return {"type": "fix_checksum_icmpv6", "l2_len": p.uint16("l2_len"), "l3_len": p.uint16("l3_len")}


def _trim(p: Params) -> Instruction:
    return {"type": "trim_pkt_size", "name": p.string("name")}


def _tuple(p: Params) -> Instruction:
    return {
        "type": "tuple_flow_var",
        "name": p.string("name"),
        "ip_min": p.uint32("ip_min"),
        "ip_max": p.uint32("ip_max"),
        "port_min": p.uint16("port_min"),
        "port_max": p.uint16("port_max"),
        "limit_flows": p.uint32("limit_flows"),
        "flags": p.uint16("flags"),
    }


def _flow_var(p: Params) -> Instruction:
    head = {
        "type": "flow_var",
        "name": p.string("name"),
        "next_var": p.string("next_var", None),
        "size": p.choice("size", VAR_SIZES),
        "op": p.choice("op", OPS),
    }
    values = None if p.get("value_list") is None else p.array("value_list").value
    step = p.uint64("step")
    head.update(step=step, split_to_cores=p.boolean("split_to_cores", True))
    if values is not None:
        _check_values(head["size"], step, values)
        return {**head, "value_list": [int(value) for value in values]}
    initial, low, high = p.uint64("init_value"), p.uint64("min_value"), p.uint64("max_value")
    _check_range(head["size"], initial, step, low, high)
    low, high = _pad_range(low, high, step, head["op"])
    return {**head, "init_value": initial, "min_value": low, "max_value": high}


def _rand_limit(p: Params) -> Instruction:
    head = {
        "type": "flow_var_rand_limit",
        "name": p.string("name"),
        "next_var": p.string("next_var", None),
        "size": p.choice("size", VAR_SIZES),
        "seed": p.uint64("seed"),
        "limit": p.uint64("limit"),
        "min_value": p.uint64("min_value"),
        "max_value": p.uint64("max_value"),
        "split_to_cores": p.boolean("split_to_cores", True),
    }
    if head["limit"] < 1:
        raise bad_params("VM: request random flow var variable with limit of zero '")
    _check_range(head["size"], head["min_value"], 1, head["min_value"], head["max_value"])
    return head


def _write(p: Params) -> Instruction:
    return {
        "type": "write_flow_var",
        "name": p.string("name"),
        "pkt_offset": p.uint16("pkt_offset"),
        "add_value": p.integer("add_value"),
        "is_big_endian": p.boolean("is_big_endian"),
    }


def _write_mask(p: Params) -> Instruction:
    return {
        "type": "write_mask_flow_var",
        "name": p.string("name"),
        "pkt_offset": p.uint16("pkt_offset"),
        "pkt_cast_size": p.uint16("pkt_cast_size"),
        "mask": p.uint32("mask"),
        "shift": p.integer("shift"),
        "add_value": p.integer("add_value"),
        "is_big_endian": p.boolean("is_big_endian"),
    }


_PARSERS = {
    "fix_checksum_hw": _checksum_hw,
    "fix_checksum_ipv4": _checksum_ipv4,
    "fix_checksum_icmpv6": _checksum_icmpv6,
    "flow_var": _flow_var,
    "write_flow_var": _write,
    "tuple_flow_var": _tuple,
    "trim_pkt_size": _trim,
    "write_mask_flow_var": _write_mask,
    "flow_var_rand_limit": _rand_limit,
}


def _check_range(size: int, initial: int, step: int, low: int, high: int) -> None:
    if step == 0:
        raise bad_params("VM: step cannot be 0")
    if high < low:
        text = f"VM: requested flow var max value: '{high}' is smaller than min value: {low}"
        raise bad_params(text)
    if not low <= initial <= high:
        text = (
            f"VM: requested flow var init value: '{initial}' should be in range "
            f"from min value '{low}' to max value '{high}'"
        )
        raise bad_params(text)
    limit = 256**size - 1
    if max(initial, low, high, step) > limit:
        raise bad_params(f"VM: requested value is bigger than {limit}")


def _check_values(size: int, step: int, values: Sequence[Any]) -> None:
    if step == 0:
        raise bad_params("VM: step cannot be 0")
    if step > len(values):
        raise bad_params("VM: step cannot be bigger than list size")
    if len(values) > 0xFFFF:
        raise bad_params("VM: value_list size is bigger than 65535")
    limit = 256**size - 1
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise bad_params("VM: value_list holds what is no unsigned number")
        if value > limit:
            raise bad_params(f"VM: requested value is bigger than {limit}")


def _pad_range(low: int, high: int, step: int, op: str) -> tuple[int, int]:
    """Widen the range so that whole steps fill it: TRex's implicit padding."""
    odd = (high - low + 1) % step
    if odd == 0 or op == "random":
        return low, high
    missing = step - odd
    text = "VM: could not pad range to be a true cycle - '(max_value - min_value + 1) % step' should be zero"
    if op == "inc":
        if high + missing > UINT64_MAX:
            raise bad_params(text)
        return low, high + missing
    if low < missing:
        raise bad_params(text)
    return low - missing, high


def check_program(instructions: Sequence[Instruction], packet_len: int) -> None:
    """Refuse a program that TRex's compiler refuses, with its texts; packet_len without FCS.

    TRex numbers the instructions from the last one when it compiles them, and trims always as 0.
    """
    sizes = _variables(instructions)
    for one in instructions:
        if one["type"] == "trim_pkt_size":
            _trimmed_len(instructions, sizes, one, packet_len)
    _check_next(instructions)
    for number, one in enumerate(reversed(instructions)):
        where = f"instruction id '{number}'"
        kind = one["type"]
        if kind == "write_flow_var":
            _check_write(where, sizes, one, packet_len, sizes.get(one["name"], 0))
        elif kind == "write_mask_flow_var":
            if one["pkt_cast_size"] not in (1, 2, 4):
                text = f"instruction id '{number} cast size should be 1,2,4 it is {one['pkt_cast_size']}"
                raise _compile_error(text)
            _check_write(where, sizes, one, packet_len, one["pkt_cast_size"])
        elif kind == "fix_checksum_ipv4" and one["pkt_offset"] + IPV4_HEADER_BYTES > packet_len:
            text = (
                f"{where} fix ipv4 command offset  {one['pkt_offset']}  "
                f"is too high relative to packet size  {packet_len}"
            )
            raise _compile_error(text)


def _compile_error(text: str) -> RpcError:
    return cannot_execute(f"*** error: {text}")


def _variables(instructions: Sequence[Instruction]) -> dict[str, int]:
    """Bytes of every variable by its name."""
    sizes: dict[str, int] = {}
    # all random variables share one generator of 4 bytes
    used = 4 if any(one.get("op") == "random" for one in instructions) else 0
    for index, one in enumerate(instructions):
        if one["type"] in ("flow_var", "flow_var_rand_limit"):
            fields, kind = {one["name"]: one["size"]}, "flow"
            used += one["size"] if one["type"] == "flow_var" else 2 * one["size"] + 4
        elif one["type"] == "tuple_flow_var":
            name = one["name"]
            fields, kind = {f"{name}.ip": 4, f"{name}.port": 2, f"{name}.flow_limit": 4}, "client"
            used += 10
        else:
            continue
        if not sizes.keys().isdisjoint(fields):
            text = f"instruction id '{index}' {kind} variable name {one['name']} already exists"
            raise _compile_error(text)
        sizes.update(fields)
        if used > MAX_VARS_BYTES:
            text = f"too many flow variables current size is :{used} maximum support is {MAX_VARS_BYTES}"
            raise _compile_error(text)
    return sizes


def _check_write(where: str, sizes: Mapping[str, int], one: Instruction, packet_len: int, width: int) -> None:
    if one["name"] not in sizes:
        raise _compile_error(f"{where} packet write with no valid flow variable name '{one['name']}'")
    end = one["pkt_offset"] + width
    if end > packet_len:
        text = f"{where} packet write with packet_offset   {end}   bigger than packet size   {packet_len}"
        raise _compile_error(text)


def _check_next(instructions: Sequence[Instruction]) -> None:
    for index, one in enumerate(instructions):
        wanted = one.get("next_var")
        if not wanted:
            continue
        if index == len(instructions) - 1:
            raise _compile_error("Last instruction in the list of instructions has next_var")
        following = instructions[index + 1]
        if following["type"] not in ("flow_var", "flow_var_rand_limit"):
            raise _compile_error("Next instruction isn't a variable or a repeatable random")
        if following["name"] != wanted:
            raise _compile_error("Next instruction name does not match next_var")


def _trimmed_len(
    instructions: Sequence[Instruction], sizes: Mapping[str, int], trim: Instruction, packet_len: int
) -> float:
    """Mean length that ``trim_pkt_size`` leaves; refuses what TRex refuses."""
    where = "instruction id '0'"
    name = trim["name"]
    if name not in sizes:
        raise _compile_error(f"{where} packet size with no valid flow variable name '{name}'")
    if sizes[name] != 2:
        raise _compile_error(f"{where} packet size change should point to a flow variable with size 2  ")
    variable = next((v for v in instructions if v.get("name") == name and v["type"] == "flow_var"), None)
    if variable is None:
        text = (
            f"{where} packet size change should point to a simple flow variable type "
            "(Random/Client) types are not supported "
        )
        raise _compile_error(text)
    if "value_list" in variable:
        for value in variable["value_list"]:
            if not SHORTEST_FRAME_BYTES <= value <= packet_len:
                text = (
                    f"{where} packet size in value_list {value} is bigger than packet size {packet_len} "
                    "or smaller than 60"
                )
                raise _compile_error(text)
        return float(sum(variable["value_list"]) / len(variable["value_list"]))
    low, high = min(variable["min_value"], packet_len), min(variable["max_value"], packet_len)
    if low >= high:
        text = f"{where} min packet size {low} is bigger or eq to max packet size {high}"
        raise _compile_error(text)
    low = max(low, SHORTEST_FRAME_BYTES)
    return float(low + high) / 2.0


def mean_packet_len(instructions: Sequence[Instruction], packet_len: int) -> float:
    """Mean frame length without FCS after ``trim_pkt_size``; the packet's own where the program is refused."""
    for one in instructions:
        if one["type"] == "trim_pkt_size":
            try:
                return _trimmed_len(instructions, _variables(instructions), one, packet_len)
            except RpcError:
                break
    return float(packet_len)


def packet_len_range(instructions: Sequence[Instruction], packet_len: int) -> tuple[int, int]:
    """Shortest and longest frame without FCS after ``trim_pkt_size``; the packet's own where there is none."""
    names = [one["name"] for one in instructions if one["type"] == "trim_pkt_size"]
    variable = next((v for v in instructions if v["type"] == "flow_var" and v["name"] in names), None)
    if variable is None:
        return packet_len, packet_len
    bounds = variable.get("value_list") or (variable["min_value"], variable["max_value"])
    return max(min(min(bounds), packet_len), SHORTEST_FRAME_BYTES), min(max(bounds), packet_len)
