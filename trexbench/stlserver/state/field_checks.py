"""Field engine programs: what TRex checks of each instruction at ``add_stream``; they travel as the client's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..params import Params
from ..wire import RpcError, bad_params

VAR_SIZES = (1, 2, 4, 8)
OPS = ("inc", "dec", "random")
UINT64_MAX = 2**64 - 1
LONGEST_LIST = 65535

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


def packet_lens(instructions: Sequence[Instruction], packet_len: int) -> Sequence[int]:
    """Frame lengths without FCS after ``trim_pkt_size``, as a list or by their ends; their mean is the stream's."""
    names = [one["name"] for one in instructions if one["type"] == "trim_pkt_size"]
    variable = next((v for v in instructions if v["type"] == "flow_var" and v["name"] in names), None)
    if variable is None:
        return (packet_len,)
    return variable.get("value_list") or (variable["min_value"], variable["max_value"])
