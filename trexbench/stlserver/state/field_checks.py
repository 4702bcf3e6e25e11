"""Field engine programs: what TRex checks of each instruction (at ``add_stream``) and of the whole (at ``start``).

What an instruction means is the engine's affair; instructions travel as the client's JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..params import Params
from ..wire import RpcError, bad_params, cannot_execute

VAR_SIZES, MASKED_SIZES = (1, 2, 4, 8), (1, 2, 4)
OPS = ("inc", "dec", "random")
UINT64_MAX = 2**64 - 1
LONGEST_LIST = 65535
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
            raise _bad(found, "its limit is 0")
        _check_range(found, found["min_value"], 1, found["min_value"], found["max_value"])
    return found


def _bad(one: Instruction, why: str) -> RpcError:
    return bad_params(f"field engine variable '{one['name']}': {why}")


def _flow_var(p: Params, head: Instruction) -> Instruction:
    head.update(step=p.uint64("step"), split_to_cores=p.boolean("split_to_cores", True))
    if p.get("value_list") is not None:
        listed = p.array("value_list")
        values = [listed.uint64(index) for index in range(len(listed.value))]
        if len(values) > LONGEST_LIST or not 0 < head["step"] <= len(values) or max(values) >= 256 ** head["size"]:
            raise _bad(head, f"steps by {head['step']} through a list of {len(values)} values of {head['size']} bytes")
        return {**head, "value_list": values}
    initial, low, high = p.uint64("init_value"), p.uint64("min_value"), p.uint64("max_value")
    _check_range(head, initial, head["step"], low, high)
    low, high = _pad_range(head, low, high)
    return {**head, "init_value": initial, "min_value": low, "max_value": high}


def _check_range(one: Instruction, initial: int, step: int, low: int, high: int) -> None:
    if step == 0 or not low <= initial <= high or max(high, step) >= 256 ** one["size"]:
        raise _bad(one, f"steps by {step} from {initial} in {low} to {high}, with {one['size']} bytes")


def _pad_range(one: Instruction, low: int, high: int) -> tuple[int, int]:
    """Widen the range so that whole steps fill it: TRex's implicit padding."""
    missing = 0 if one["op"] == "random" else -(high - low + 1) % one["step"]
    low, high = (low, high + missing) if one["op"] == "inc" else (low - missing, high)
    if low < 0 or high > UINT64_MAX:
        raise _bad(one, "its range is no true cycle: (max_value - min_value + 1) % step must be zero")
    return low, high


def check_program(instructions: Sequence[Instruction], packet_len: int) -> None:
    """Refuse a program that TRex's compiler refuses; packet_len without FCS."""
    sizes = _variables(instructions)
    for number, one in enumerate(instructions):
        kind, name = one["type"], one.get("name")
        if kind == "trim_pkt_size":
            _check_trim(instructions, sizes, one["name"], packet_len)
        elif kind in ("write_flow_var", "write_mask_flow_var"):
            if name not in sizes:
                raise _compile_error(f"instruction {number} writes variable '{name}', which is none")
            width = one.get("pkt_cast_size", sizes[name])
            widths, at = VAR_SIZES if kind == "write_flow_var" else MASKED_SIZES, one["pkt_offset"]
            if width not in widths or at + width > packet_len:
                raise _compile_error(f"instruction {number} writes {width} bytes at {at} of {packet_len}")
        elif kind == "fix_checksum_ipv4" and one["pkt_offset"] + IPV4_HEADER_BYTES > packet_len:
            raise _compile_error(f"instruction {number}: no IPv4 header fits at {one['pkt_offset']} of {packet_len}")
        if wanted := one.get("next_var"):
            following = instructions[number + 1] if number + 1 < len(instructions) else {}
            if following.get("type") not in ("flow_var", "flow_var_rand_limit") or following["name"] != wanted:
                raise _compile_error(f"variable '{wanted}' does not follow variable '{name}', which leads to it")


def _compile_error(text: str) -> RpcError:
    return cannot_execute(f"field engine: {text}")


def _variables(instructions: Sequence[Instruction]) -> dict[str, int]:
    """Bytes of every variable by its name."""
    sizes: dict[str, int] = {}
    # all random variables share one generator of 4 bytes
    used = 4 if any(one.get("op") == "random" for one in instructions) else 0
    for one in instructions:
        if one["type"] in ("flow_var", "flow_var_rand_limit"):
            fields = {one["name"]: one["size"]}
            used += one["size"] if one["type"] == "flow_var" else 2 * one["size"] + 4
        elif one["type"] == "tuple_flow_var":
            fields = {f"{one['name']}.{part}": size for part, size in (("ip", 4), ("port", 2), ("flow_limit", 4))}
            used += 10
        else:
            continue
        if not sizes.keys().isdisjoint(fields):
            raise _compile_error(f"there are two variables '{one['name']}'")
        sizes.update(fields)
    if used > MAX_VARS_BYTES:
        raise _compile_error(f"variables of {used} bytes; {MAX_VARS_BYTES} fit")
    return sizes


def _check_trim(instructions: Sequence[Instruction], sizes: Mapping[str, int], name: str, packet_len: int) -> None:
    variable = next((v for v in instructions if v.get("name") == name and v["type"] == "flow_var"), None)
    if variable is None or sizes[name] != 2:
        raise _compile_error(f"trim_pkt_size needs a flow_var of 2 bytes; '{name}' is none")
    low, high = min(variable.get("min_value", 0), packet_len), min(variable.get("max_value", 0), packet_len)
    fits = low < high
    if values := variable.get("value_list"):
        fits = SHORTEST_FRAME_BYTES <= min(values) <= max(values) <= packet_len
    if not fits:
        raise _compile_error(f"trim_pkt_size: '{name}' leaves the sizes from {SHORTEST_FRAME_BYTES} to {packet_len}")


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
