"""Traffic: start, update, pause, resume, stop, validate."""

from __future__ import annotations

from trexbench.stlserver.context import Context
from trexbench.stlserver.graph import Multiplier, RateEvent
from trexbench.stlserver.method import Table, owned
from trexbench.stlserver.params import Params
from trexbench.stlserver.port import Port, Profile
from trexbench.stlserver.stream import Rate
from trexbench.stlserver.wire import Json, RpcError, bad_params, cannot_execute

KINDS = ("raw", "bps", "bpsl1", "pps", "percentage")
OPS = ("abs", "add", "sub")
ALL_CORES = 2**64 - 1
MAX_EVENTS_SHOWN = 100


def _target(ctx: Context, p: Params) -> tuple[Port, str]:
    return ctx.port(p), p.profile()


def start_traffic(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    duration_s, force = p.double("duration"), p.boolean("force")
    core_mask, at_s = p.uint64("core_mask", ALL_CORES), p.double("start_at_ts", 0.0)
    if core_mask & 1 == 0:
        raise bad_params(f"core_mask: '0x{core_mask:x}' for 1 cores generates an empty set")
    mul = p.object("mul")
    kind, op, value = mul.choice("type", KINDS), mul.string("op"), mul.udouble("value")
    if value == 0:
        raise bad_params("multiplier can't be zero")
    if op != "abs":
        raise bad_params("start message can only specify absolute speed rate")
    profile = port.profile(name)
    ctx.box.start(port, profile, Multiplier(kind, op, value), duration_s, force, at_s)
    return {"multiplier": profile.factor, "ts": ctx.now_s}


def stop_traffic(ctx: Context, p: Params) -> Json:
    """One profile, or all ("*")."""
    port, name = _target(ctx, p)
    for profile in list(port.profiles.values()) if name == "*" else [port.profile(name)]:
        ctx.box.stop(port, profile)
    return {}


def pause_traffic(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    ctx.box.pause(port, port.profile(name))
    return {}


def resume_traffic(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    ctx.box.resume(port, port.profile(name))
    return {}


def _multiplier(p: Params) -> Multiplier:
    mul = p.object("mul")
    return Multiplier(mul.choice("type", KINDS), mul.choice("op", OPS), mul.double("value"))


def update_traffic(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    force = p.boolean("force")
    mul = _multiplier(p)
    profile = port.profile(name)
    ctx.box.update(port, profile, mul, force)
    return {"multiplier": profile.factor}


def _named_streams(p: Params, profile: Profile | None, name: str, command: str, verb: str) -> None:
    """Check the list of streams that a call on single streams carries."""
    stream_ids = p.array("stream_ids")
    for index in range(len(stream_ids.value)):
        stream_id = stream_ids.uint32(index)
        if profile is None or stream_id not in profile.streams:
            text = f"{command}: stream {stream_id} does not exists in profile_id({name})"
            raise cannot_execute(text)
    if not stream_ids.value:
        raise bad_params(f"please specify streams to {verb}")


def _single_streams(verb: str) -> RpcError:
    return cannot_execute(f"this server can {verb} whole profiles only, no single streams")


def update_streams(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    p.boolean("force")
    mul = _multiplier(p)
    _named_streams(p, port.profiles.get(name), name, "update_streams", "update")
    port.profile(name).require("update", "TX", "PAUSE")
    if mul.op != "abs":
        raise cannot_execute("Must use absolute multiplier for updating stream")
    raise _single_streams("update")


def pause_streams(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    _named_streams(p, port.profiles.get(name), name, "pause_streams", "pause")
    port.profile(name).require("pause", "TX", "PAUSE")
    raise _single_streams("pause")


def resume_streams(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    _named_streams(p, port.profiles.get(name), name, "resume_streams", "resume")
    port.profile(name).require("resume", "TX", "PAUSE")
    raise _single_streams("resume")


def validate(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    profile = port.profile(name)
    if not profile.streams:
        raise cannot_execute("no streams attached to port")
    ctx.box.check_profile(profile)
    found = ctx.box.graph_of(port, profile)
    rate = {**_rate_json("max", found.at(1.0), port), **_rate_json("min", found.fixed, port)}
    events = [_event_json(event) for event in found.events[:MAX_EVENTS_SHOWN]]
    duration = {"expected_duration": found.duration_us, "events_count": len(found.events)}
    return {"rate": rate, "graph": {**duration, "events": events}}


def _rate_json(which: str, rate: Rate, port: Port) -> dict[str, Json]:
    # 100.01 is TRex's own factor
    utilisation = rate.bps_l1 / port.info.speed_bps * 100.01
    values = {"pps": rate.pps, "bps_l1": rate.bps_l1, "bps_l2": rate.bps_l2, "line_util": utilisation}
    return {f"{which}_{unit}": value for unit, value in values.items()}


def _event_json(event: RateEvent) -> Json:
    return {
        "time_usec": event.time_us,
        "diff_pps": event.change.pps,
        "diff_bps_l1": event.change.bps_l1,
        "diff_bps_l2": event.change.bps_l2,
        "stream_id": event.stream_id,
    }


def remove_rx_filters(ctx: Context, p: Params) -> Json:
    port, name = _target(ctx, p)
    profile = port.profile(name)
    profile.require("remove_rx_filters", "STREAMS")
    ctx.box.remove_rx_filters(profile)
    return {}


METHODS: Table = {
    "start_traffic": owned(start_traffic),
    "stop_traffic": owned(stop_traffic),
    "pause_traffic": owned(pause_traffic),
    "resume_traffic": owned(resume_traffic),
    "update_traffic": owned(update_traffic),
    "update_streams": owned(update_streams),
    "pause_streams": owned(pause_streams),
    "resume_streams": owned(resume_streams),
    "validate": owned(validate),
    "remove_rx_filters": owned(remove_rx_filters),
}
