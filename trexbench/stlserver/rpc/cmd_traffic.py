"""Methods of streams (add, remove, list) and of traffic (start, update, pause, resume, stop, validate)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine import core_count
from ..state import graph
from ..state.graph import Multiplier
from ..state.port import PortProfile, ServerPort
from ..state.server_state import ServerState
from ..state.stream import parse_stream
from ..wire import Json, Params, bad_params, cannot_execute
from .methods import Method, Table, of_port, owned, refused

KINDS = ("raw", "bps", "bpsl1", "pps", "percentage")
OPS = ("abs", "add", "sub")
ALL_CORES = 2**64 - 1
MAX_EVENTS_SHOWN = 100
WHOLE_PROFILES = "this server updates, pauses and resumes whole profiles, no single streams"


def add_stream(ctx: ServerState, port: ServerPort, p: Params) -> None:
    profile = p.profile()
    stream_id = p.uint32("stream_id")
    stream = parse_stream(p.object("stream"), stream_id, core_count(len(ctx.ports)))
    if profile in port.profiles and stream_id in port.profiles[profile].streams:
        raise cannot_execute(f"stream {stream_id} already exists in profile_id({profile})")
    ctx.add_stream(port, profile, stream)


def remove_stream(ctx: ServerState, port: ServerPort, p: Params) -> None:
    name = p.profile()
    stream_id = p.uint32("stream_id")
    profile = port.profiles.get(name)
    if profile is None or stream_id not in profile.streams:
        raise cannot_execute(f"stream {stream_id} does not exists in profile_id({name})")
    ctx.remove_stream(port, profile, stream_id)


def remove_all_streams(ctx: ServerState, port: ServerPort, p: Params) -> None:
    """Remove all streams of one profile; as in TRex, an unknown name, even "*", is no error and removes nothing."""
    name = p.profile()
    if name in port.profiles:
        ctx.remove_all_streams(port, port.profiles[name])


def get_all_streams(ctx: ServerState, port: ServerPort, p: Params) -> Json:
    listed = {
        name: {str(stream_id): dict(stream.raw) for stream_id, stream in profile.streams.items()}
        for name, profile in port.profiles.items()
        if profile.streams
    }
    name = p.profile()
    return {"profiles": listed} if name == "*" else {"streams": listed.get(name, {})}


def start_traffic(ctx: ServerState, port: ServerPort, p: Params) -> Json:
    name = p.profile()
    duration_s, force = p.double("duration"), p.boolean("force")
    core_mask = p.uint64("core_mask", ALL_CORES)
    if p.double("start_at_ts", 0.0):
        raise cannot_execute("start_at_ts: this server starts at once, not at a moment ahead")
    if core_mask & 1 == 0:
        raise bad_params(f"core_mask 0x{core_mask:x} leaves no core: a port has one")
    mul = p.object("mul")
    kind, op, value = mul.choice("type", KINDS), mul.choice("op", ("abs",)), mul.udouble("value")
    if value == 0:
        raise bad_params("a multiplier of 0 sends nothing")
    profile = port.profile(name)
    ctx.start(port, profile, Multiplier(kind, op, value), duration_s, force)
    return {"multiplier": profile.factor, "ts": ctx.now_s}


def stop_traffic(ctx: ServerState, port: ServerPort, p: Params) -> None:
    name = p.profile()
    for profile in list(port.profiles.values()) if name == "*" else [port.profile(name)]:
        ctx.stop(port, profile)


def update_traffic(ctx: ServerState, port: ServerPort, p: Params) -> Json:
    name, force, mul = p.profile(), p.boolean("force"), p.object("mul")
    multiplier = Multiplier(mul.choice("type", KINDS), mul.choice("op", OPS), mul.double("value"))
    profile = port.profile(name)
    ctx.update(port, profile, multiplier, force)
    return {"multiplier": profile.factor}


def _on_profile(act: Callable[[ServerState, ServerPort, PortProfile], None]) -> Method:
    return owned(lambda ctx, port, p: act(ctx, port, port.profile(p.profile())))


def validate(ctx: ServerState, port: ServerPort, p: Params) -> Json:
    profile = port.profile(p.profile())
    if not profile.streams:
        raise cannot_execute("no streams attached to port")
    ctx.check_profile(profile)
    built = graph.build(profile.streams, port.info.speed_bps)
    rate: dict[str, Any] = {}
    for which, total in (("max", built.at(1.0)), ("min", built.fixed)):
        # 100.01 is TRex's own factor
        rate |= {**total.to_json(f"{which}_"), f"{which}_line_util": total.bps_l1 / port.info.speed_bps * 100.01}
    events = [
        {"time_usec": event.time_us, "stream_id": event.stream_id, **event.change.to_json("diff_")}
        for event in built.events[:MAX_EVENTS_SHOWN]
    ]
    duration = {"expected_duration": built.duration_us, "events_count": len(built.events)}
    return {"rate": rate, "graph": {**duration, "events": events}}


METHODS: Table = {
    "add_stream": owned(add_stream),
    "remove_stream": owned(remove_stream),
    "remove_all_streams": owned(remove_all_streams),
    "get_profile_list": of_port(lambda ctx, port, p: sorted(port.profiles)),
    "get_all_streams": of_port(get_all_streams),
    "start_traffic": owned(start_traffic),
    "stop_traffic": owned(stop_traffic),
    "pause_traffic": _on_profile(ServerState.pause),
    "resume_traffic": _on_profile(ServerState.resume),
    "update_traffic": owned(update_traffic),
    **dict.fromkeys(("update_streams", "pause_streams", "resume_streams"), refused(WHOLE_PROFILES)),
    "validate": owned(validate),
    "remove_rx_filters": _on_profile(ServerState.remove_rx_filters),
}
