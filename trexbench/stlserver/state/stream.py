"""STL streams: checks the JSON of ``add_stream`` as TRex does, and turns it into what an engine sends."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..engine import FCS_BYTES, StreamSpec
from ..wire import Json, Params, RpcError, bad_params, cannot_execute

MIN_PKT_BYTES = 14
MAX_PKT_BYTES = 9 * 1024 + 22
SHORTEST_FRAME_BYTES = 60  # without FCS; shorter packets are padded with zeroes
L1_OVERHEAD_BYTES = 20
RATE_KINDS = ("pps", "bps_L1", "bps_L2", "percentage")

FLAG_SRC_MAC_FROM_PKT = 1
DST_MAC_MODE_SHIFT = 1
DST_MAC_MODE_PKT = 1
FLAG_DUMMY = 8


@dataclass(frozen=True)
class StreamRate:
    """One rate in three units."""

    pps: float
    bps_l1: float  # with the 20 bytes of L1 overhead of each frame
    bps_l2: float

    def plus(self, other: StreamRate) -> StreamRate:
        return StreamRate(self.pps + other.pps, self.bps_l1 + other.bps_l1, self.bps_l2 + other.bps_l2)

    def to_json(self, prefix: str) -> dict[str, Json]:
        return {f"{prefix}{name}": value for name, value in vars(self).items()}

    def scaled(self, factor: float) -> StreamRate:
        return StreamRate(self.pps * factor, self.bps_l1 * factor, self.bps_l2 * factor)


@dataclass(frozen=True, kw_only=True)
class ServerStream(StreamSpec):
    """One stream as the client described it, with the packet's own MACs; the packet is padded to 60 bytes.

    ``rate_pps`` and ``mark`` are not set: ``spec`` fills them in at a start.
    """

    raw: Mapping[str, Json]  # the client's JSON, which it may ask for
    enabled: bool
    flags: int
    rate_kind: str
    rate_value: float
    mean_len_bytes: float  # of the frames without FCS, whose length the field engine may change
    stats_id: int | None = None  # packet group, if its frames are counted, not timed

    @property
    def group_id(self) -> int | None:
        """Number of its packet group, of either kind."""
        return self.stats_id if self.pg_id is None else self.pg_id

    @property
    def explicit_dst_mac(self) -> bool:
        """True if the destination MAC is the packet's own, not the port's."""
        return (self.flags >> DST_MAC_MODE_SHIFT) & 3 == DST_MAC_MODE_PKT

    def rate(self, speed_bps: float) -> StreamRate:
        """Rate at factor 1 on a port of this L1 speed; refused if it is not above 0 and finite."""
        l2_bits = (self.mean_len_bytes + FCS_BYTES) * 8
        l1_bits = l2_bits + L1_OVERHEAD_BYTES * 8
        pps = {
            "pps": self.rate_value,
            "bps_L1": self.rate_value / l1_bits,
            "bps_L2": self.rate_value / l2_bits,
            "percentage": self.rate_value / 100.0 * speed_bps / l1_bits,
        }[self.rate_kind]
        rate = StreamRate(pps, pps * l1_bits, pps * l2_bits)
        if pps <= 0 or not math.isfinite(rate.bps_l1):
            raise cannot_execute(f"stream {self.stream_id}: a rate of {pps:g} packets per second cannot be sent")
        return rate

    def spec(self, speed_bps: float, src_mac: bytes, dst_mac: bytes, mark: int | None = None) -> StreamSpec:
        """Spec for the engine, with the port's MACs where the stream does not bring its own."""
        dst = self.packet[:6] if self.explicit_dst_mac else dst_mac
        src = self.packet[6:12] if self.flags & FLAG_SRC_MAC_FROM_PKT else src_mac
        return replace(self, packet=dst + src + self.packet[12:], rate_pps=self.rate(speed_bps).pps, mark=mark)


def parse_stream(p: Params, stream_id: int, core_count: int) -> ServerStream:
    """Parse the ``stream`` object of ``add_stream``, and refuse what this server cannot send."""
    mode, program = p.object("mode"), p.object("vm")
    kind, rate = mode.string("type"), mode.object("rate")
    total_pkts, count, ibg_us = _parse_bursts(mode, kind)
    rate_value, flags, core_id = rate.udouble("value"), p.integer("flags"), p.integer("core_id", -1)
    if rate_value <= 0:
        raise cannot_execute("a rate of 0 sends nothing")
    if core_id >= core_count:
        raise cannot_execute(f"there is no core {core_id}: there are {core_count}")
    packet, instructions = _parse_packet(p.object("packet")), parse_instructions(program)
    lengths = packet_lens(instructions, len(packet))
    rule, group_id = _parse_group(p.object("flow_stats"), stream_id, core_id)
    if flags & FLAG_DUMMY:
        raise cannot_execute(f"stream {stream_id} is a dummy stream, which this server cannot schedule")
    if p.boolean("start_paused", False):
        raise cannot_execute(f"stream {stream_id} starts paused, and this server can only pause whole ports")
    return ServerStream(
        stream_id=stream_id,
        rate_pps=math.nan,
        raw=p.value,
        enabled=p.boolean("enabled"),
        self_start=p.boolean("self_start"),
        flags=flags,
        action_count=p.uint32("action_count"),
        isg_us=p.udouble("isg"),
        next_stream_id=p.integer("next_stream_id"),
        mode=kind,
        total_pkts=total_pkts,
        count=count,
        ibg_us=ibg_us,
        rate_kind=rate.choice("type", RATE_KINDS),
        rate_value=rate_value,
        packet=packet,
        mean_len_bytes=sum(lengths) / len(lengths),
        instructions=instructions,
        vm_cache=program.uint16("cache", 0),
        fixed_rate=rule == "latency",  # multipliers leave the rates of latency streams alone
        pg_id=group_id if rule == "latency" else None,
        stats_id=group_id if rule == "stats" else None,
    )


def _parse_group(p: Params, stream_id: int, core_id: int) -> tuple[str, int | None]:
    """Kind and number of the stream's packet group; ("", None) if it has none."""
    if not p.boolean("enabled"):
        return "", None
    rule, pg_id = p.string("rule_type"), p.uint32("stream_id")
    where = f"stream {stream_id}"
    if rule not in ("stats", "latency"):
        raise cannot_execute(f"{where}: there are no flow statistics of type '{rule}', only stats and latency")
    if rule == "latency" and core_id >= 0:
        raise cannot_execute(f"{where}: a latency stream has no core of its own")
    if p.boolean("vxlan", False) or p.boolean("ieee_1588", False):
        raise cannot_execute(f"{where}: frames are neither counted inside VXLAN tunnels nor timed by IEEE 1588")
    return rule, pg_id


def _parse_bursts(mode: Params, kind: str) -> tuple[int, int, float]:
    """Packets a burst, number of bursts, gap between bursts in microseconds."""
    if kind == "continuous":
        return 0, 0, 0.0
    if kind not in ("single_burst", "multi_burst"):
        raise bad_params(f"there is no stream mode '{kind}'")
    several = kind == "multi_burst"
    total = mode.uint32("pkts_per_burst" if several else "total_pkts")
    if total == 0:
        raise bad_params(f"{kind}: a burst of 0 packets sends nothing")
    return (total, mode.uint32("count"), mode.udouble("ibg")) if several else (total, 1, 0.0)


def _parse_packet(p: Params) -> bytes:
    try:
        packet = base64.b64decode(p.string("binary"), validate=True)
    except ValueError as err:
        raise bad_params(f"'binary' is not base64: {err}") from err
    if not MIN_PKT_BYTES <= len(packet) <= MAX_PKT_BYTES:
        raise cannot_execute(f"a packet of {len(packet)} bytes: {MIN_PKT_BYTES} to {MAX_PKT_BYTES} can be sent")
    p.string("meta")
    return packet.ljust(SHORTEST_FRAME_BYTES, b"\0")


UINT64_MAX = 2**64 - 1
LONGEST_LIST = 65535

Instruction = dict[str, Any]  # one instruction of a field engine program, as the client's JSON has it

_FIELDS: Mapping[str, str] = {
    "fix_checksum_hw": "uint16 l2_len l3_len l4_type",
    "fix_checksum_ipv4": "uint16 pkt_offset",
    "flow_var": "string name next_var size op",
    "write_flow_var": "string name, uint16 pkt_offset, integer add_value, boolean is_big_endian",
    "tuple_flow_var": "string name, uint32 ip_min ip_max, uint16 port_min port_max, uint32 limit_flows, uint16 flags",
    "trim_pkt_size": "string name",
    "write_mask_flow_var": "string name, uint16 pkt_offset pkt_cast_size, uint32 mask, integer shift add_value, "
    "boolean is_big_endian",
    "flow_var_rand_limit": "string name next_var size, uint64 seed limit min_value max_value, boolean split_to_cores",
}
"""Fields of each type of instruction, grouped by their own type, in the order in which TRex reads them."""
_FIELD_READERS: Mapping[str, Callable[[Params], Any]] = {
    "next_var": lambda p: p.string("next_var", None),
    "size": lambda p: p.choice("size", (1, 2, 4, 8)),
    "op": lambda p: p.choice("op", ("inc", "dec", "random")),
    "split_to_cores": lambda p: p.boolean("split_to_cores", True),
}
"""Fields that need more than a type."""


def parse_instructions(program: Params) -> tuple[Instruction, ...]:
    """Check every instruction's fields; ranges of ``flow_var`` are padded to whole steps, as by TRex."""
    array, parsed = program.array("instructions"), []
    for p in (array.object(index) for index in range(len(array.value))):
        kind = p.choice("type", tuple(_FIELDS))
        fields: Instruction = {"type": kind}
        for reader, *names in map(str.split, _FIELDS[kind].split(", ")):
            for name in names:
                fields[name] = _FIELD_READERS[name](p) if name in _FIELD_READERS else getattr(p, reader)(name)
        if kind == "flow_var":
            fields = _parse_flow_var(p, fields)
        elif kind == "flow_var_rand_limit":
            if fields["limit"] < 1:
                raise _bad_variable(fields, "its limit is 0")
            _check_range(fields, fields["min_value"], 1, fields["min_value"], fields["max_value"])
        parsed.append(fields)
    return tuple(parsed)


def _bad_variable(variable: Instruction, why: str) -> RpcError:
    return bad_params(f"field engine variable '{variable['name']}': {why}")


def _parse_flow_var(p: Params, head: Instruction) -> Instruction:
    head.update(step=p.uint64("step"), split_to_cores=p.boolean("split_to_cores", True))
    if p.get("value_list") is not None:
        listed = p.array("value_list")
        values = [listed.uint64(index) for index in range(len(listed.value))]
        if len(values) > LONGEST_LIST or not 0 < head["step"] <= len(values) or max(values) >= 256 ** head["size"]:
            text = f"steps by {head['step']} through a list of {len(values)} values of {head['size']} bytes"
            raise _bad_variable(head, text)
        return {**head, "value_list": values}
    initial, low, high = p.uint64("init_value"), p.uint64("min_value"), p.uint64("max_value")
    _check_range(head, initial, head["step"], low, high)
    # TRex's implicit padding: whole steps fill the range
    missing = 0 if head["op"] == "random" else -(high - low + 1) % head["step"]
    low, high = (low, high + missing) if head["op"] == "inc" else (low - missing, high)
    if low < 0 or high > UINT64_MAX:
        raise _bad_variable(head, "its range is no true cycle: (max_value - min_value + 1) % step must be zero")
    return {**head, "init_value": initial, "min_value": low, "max_value": high}


def _check_range(variable: Instruction, initial: int, step: int, low: int, high: int) -> None:
    size = variable["size"]
    if step == 0 or not low <= initial <= high or max(high, step) >= 256**size:
        raise _bad_variable(variable, f"steps by {step} from {initial} in {low} to {high}, with {size} bytes")


def packet_lens(instructions: Sequence[Instruction], packet_len: int) -> Sequence[int]:
    """Lengths of the frames without FCS (all, or shortest and longest), whose mean is the stream's."""
    names = [instruction["name"] for instruction in instructions if instruction["type"] == "trim_pkt_size"]
    variable = next((v for v in instructions if v["type"] == "flow_var" and v["name"] in names), None)
    if variable is None:
        return (packet_len,)
    return variable.get("value_list") or (variable["min_value"], variable["max_value"])
