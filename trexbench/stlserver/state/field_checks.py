"""Field engine programs: TRex's checks of each instruction (at ``add_stream``) and of the whole (at ``start``).

What an instruction means is the engine's affair; instructions travel as the client's JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..params import Params
from ..wire import RpcError, bad_params, cannot_execute

VAR_SIZES = (1, 2, 4, 8)
OPS = ("inc", "dec", "random")
UINT64_MAX = 2**64 - 1
MAX_VARS_BYTES = 64
SHORTEST_FRAME_BYTES = 60
IPV4_HEADER_BYTES = 20

Instruction = dict[str, Any]
Reader = Callable[[Params, str], Any]

_SIZED: Mapping[str, Reader] = {
    "name": Params.string,
    "next_var": lambda p, name: p.string(name, None),
    "size": lambda p, name: p.choice(name, VAR_SIZES),
}
_FIELDS: Mapping[str, Mapping[str, Reader]] = {
    "fix_checksum_hw": dict.fromkeys(("l2_len", "l3_len", "l4_type"), Params.uint16),
    "fix_checksum_ipv4": {"pkt_offset": Params.uint16},
    "fix_checksum_icmpv6": dict.fromkeys(("l2_len", "l3_len"), Params.uint16),
    "flow_var": {**_SIZED, "op": lambda p, name: p.choice(name, OPS)},
    "write_flow_var": {
        "name": Params.string,
        "pkt_offset": Params.uint16,
        "add_value": Params.integer,
        "is_big_endian": Params.boolean,
    },
    "tuple_flow_var": {
        "name": Params.string,
        **dict.fromkeys(("ip_min", "ip_max"), Params.uint32),
        **dict.fromkeys(("port_min", "port_max"), Params.uint16),
        "limit_flows": Params.uint32,
        "flags": Params.uint16,
    },
    "trim_pkt_size": {"name": Params.string},
    "write_mask_flow_var": {
        "name": Params.string,
        **dict.fromkeys(("pkt_offset", "pkt_cast_size"), Params.uint16),
        "mask": Params.uint32,
        **dict.fromkeys(("shift", "add_value"), Params.integer),
        "is_big_endian": Params.boolean,
    },
    "flow_var_rand_limit": {
        **_SIZED,
        **dict.fromkeys(("seed", "limit", "min_value", "max_value"), Params.uint64),
        "split_to_cores": lambda p, name: p.boolean(name, True),
    },
}
"""By type of instruction its fields, in the order in which TRex reads them, and how each is read."""


def parse_instructions(program: Params) -> tuple[Instruction, ...]:
    """Every instruction's fields, checked; ranges of ``flow_var`` padded to whole steps as TRex pads them."""
    array = program.array("instructions")
    return tuple(_parse(array.object(index)) for index in range(len(array.value)))


def _parse(p: Params) -> Instruction:
    kind = p.choice("type", tuple(_FIELDS))
    found = {"type": kind, **{name: read(p, name) for name, read in _FIELDS[kind].items()}}
    if kind == "flow_var":
        return _flow_var(p, found)
    if kind == "flow_var_rand_limit":
        if found["limit"] < 1:
            raise bad_params("VM: request random flow var variable with limit of zero '")
        _check_range(found["size"], found["min_value"], 1, found["min_value"], found["max_value"])
    return found


def _flow_var(p: Params, head: Instruction) -> Instruction:
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


def _check_range(size: int, initial: int, step: int, low: int, high: int) -> None:
    if step == 0:
        raise bad_params("VM: step cannot be 0")
    if high < low:
        raise bad_params(f"VM: requested flow var max value: '{high}' is smaller than min value: {low}")
    if not low <= initial <= high:
        raise bad_params(
            f"VM: requested flow var init value: '{initial}' should be in range "
            f"from min value '{low}' to max value '{high}'"
        )
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
    missing = 0 if op == "random" else -(high - low + 1) % step
    low, high = (low, high + missing) if op == "inc" else (low - missing, high)
    if low < 0 or high > UINT64_MAX:
        raise bad_params(
            "VM: could not pad range to be a true cycle - '(max_value - min_value + 1) % step' should be zero"
        )
    return low, high


def check_program(instructions: Sequence[Instruction], packet_len: int) -> None:
    """Refuse a program that TRex's compiler refuses, with its texts; packet_len without FCS.

    TRex numbers the instructions from the last one when it compiles them, and trims always as 0.
    """
    sizes = _variables(instructions)
    for one in instructions:
        if one["type"] == "trim_pkt_size":
            _check_trim(instructions, sizes, one["name"], packet_len)
    _check_next(instructions)
    for number, one in enumerate(reversed(instructions)):
        where = f"instruction id '{number}'"
        kind = one["type"]
        if kind == "write_flow_var":
            _check_write(where, sizes, one, packet_len, sizes.get(one["name"], 0))
        elif kind == "write_mask_flow_var":
            if one["pkt_cast_size"] not in (1, 2, 4):
                raise _compile_error(f"instruction id '{number} cast size should be 1,2,4 it is {one['pkt_cast_size']}")
            _check_write(where, sizes, one, packet_len, one["pkt_cast_size"])
        elif kind == "fix_checksum_ipv4" and one["pkt_offset"] + IPV4_HEADER_BYTES > packet_len:
            raise _compile_error(
                f"{where} fix ipv4 command offset  {one['pkt_offset']}  "
                f"is too high relative to packet size  {packet_len}"
            )


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
            raise _compile_error(f"instruction id '{index}' {kind} variable name {one['name']} already exists")
        sizes.update(fields)
        if used > MAX_VARS_BYTES:
            raise _compile_error(f"too many flow variables current size is :{used} maximum support is {MAX_VARS_BYTES}")
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


def _check_trim(instructions: Sequence[Instruction], sizes: Mapping[str, int], name: str, packet_len: int) -> None:
    where = "instruction id '0'"
    if name not in sizes:
        raise _compile_error(f"{where} packet size with no valid flow variable name '{name}'")
    if sizes[name] != 2:
        raise _compile_error(f"{where} packet size change should point to a flow variable with size 2  ")
    variable = next((v for v in instructions if v.get("name") == name and v["type"] == "flow_var"), None)
    if variable is None:
        raise _compile_error(
            f"{where} packet size change should point to a simple flow variable type "
            "(Random/Client) types are not supported "
        )
    for value in variable.get("value_list", ()):
        if not SHORTEST_FRAME_BYTES <= value <= packet_len:
            raise _compile_error(
                f"{where} packet size in value_list {value} is bigger than packet size {packet_len} or smaller than 60"
            )
    if "value_list" not in variable:
        low, high = min(variable["min_value"], packet_len), min(variable["max_value"], packet_len)
        if low >= high:
            raise _compile_error(f"{where} min packet size {low} is bigger or eq to max packet size {high}")


def mean_packet_len(instructions: Sequence[Instruction], packet_len: int) -> float:
    """Mean frame length without FCS after ``trim_pkt_size``; the packet's own where the program is refused."""
    try:
        sizes = _variables(instructions)
        for one in instructions:
            if one["type"] == "trim_pkt_size":
                _check_trim(instructions, sizes, one["name"], packet_len)
    except RpcError:
        return float(packet_len)
    trimmed = _trimming(instructions)
    lengths = (trimmed and trimmed.get("value_list")) or packet_len_range(instructions, packet_len)
    return float(sum(lengths) / len(lengths))


def _trimming(instructions: Sequence[Instruction]) -> Instruction | None:
    """The variable that sets the frame's length."""
    names = [one["name"] for one in instructions if one["type"] == "trim_pkt_size"]
    return next((v for v in instructions if v["type"] == "flow_var" and v["name"] in names), None)


def packet_len_range(instructions: Sequence[Instruction], packet_len: int) -> tuple[int, int]:
    """Shortest and longest frame without FCS after ``trim_pkt_size``; the packet's own where there is none."""
    variable = _trimming(instructions)
    if variable is None:
        return packet_len, packet_len
    bounds = variable.get("value_list") or (variable["min_value"], variable["max_value"])
    return max(min(min(bounds), packet_len), SHORTEST_FRAME_BYTES), min(max(bounds), packet_len)
