"""Streams: adding, removing, listing."""

from __future__ import annotations

from trexbench.stlserver.context import Context
from trexbench.stlserver.method import Method, Table, owned
from trexbench.stlserver.params import Params
from trexbench.stlserver.port import Port, Profile
from trexbench.stlserver.stream import parse_stream
from trexbench.stlserver.wire import Json, RpcError, cannot_execute


def add_stream(ctx: Context, p: Params) -> Json:
    """Whatever is wrong counts as failed execution: TRex wraps even missing parameters of this call so."""
    try:
        return _add_stream(ctx, p)
    except RpcError as err:
        raise cannot_execute(err.specific or err.message) from err


def _add_stream(ctx: Context, p: Params) -> Json:
    port, profile = ctx.port(p), p.profile()
    stream_id = p.uint32("stream_id")
    stream = parse_stream(p.object("stream"), stream_id, ctx.core_count)
    if profile in port.profiles and stream_id in port.profiles[profile].streams:
        raise cannot_execute(f"stream {stream_id} already exists in profile_id({profile})")
    ctx.box.add_stream(port, profile, stream)
    return {}


def remove_stream(ctx: Context, p: Params) -> Json:
    port, name = ctx.port(p), p.profile()
    stream_id = p.uint32("stream_id")
    profile = port.profiles.get(name)
    if profile is None or stream_id not in profile.streams:
        raise cannot_execute(f"stream {stream_id} does not exists in profile_id({name})")
    ctx.box.remove_stream(port, profile, stream_id)
    return {}


def remove_all_streams(ctx: Context, p: Params) -> Json:
    """Of one profile; as in TRex, a name that is none, "*" among them, is no error and removes nothing."""
    port, name = ctx.port(p), p.profile()
    if name in port.profiles:
        ctx.box.remove_all_streams(port, port.profiles[name])
    return {}


def get_profile_list(ctx: Context, p: Params) -> Json:
    return sorted(ctx.port(p).profiles)


def get_stream_list(ctx: Context, p: Params) -> Json:
    port, name = ctx.port(p), p.profile()
    if name == "*":
        return {key: list(profile.streams) for key, profile in port.profiles.items()}
    return list(port.profile(name).streams)


def _streams(profile: Profile) -> Json:
    return {str(stream_id): dict(stream.raw) for stream_id, stream in profile.streams.items()}


def get_all_streams(ctx: Context, p: Params) -> Json:
    port, name = ctx.port(p), p.profile()
    if name == "*":
        return {"profiles": {key: _streams(one) for key, one in port.profiles.items() if one.streams}}
    return {"streams": _streams(port.profiles[name]) if name in port.profiles else {}}


def get_stream(ctx: Context, p: Params) -> Json:
    port, name = ctx.port(p), p.profile()
    with_packet, stream_id = p.boolean("get_pkt"), p.uint32("stream_id")
    raw = dict(_stream_raw(port, name, stream_id))
    if not with_packet:
        raw.pop("packet", None)
    return {"stream": raw}


def _stream_raw(port: Port, name: str, stream_id: int) -> Json:
    profile = port.profile(name)
    if stream_id not in profile.streams:
        text = f"stream id {stream_id}, profile id {name} on port {port.index} does not exists"
        raise cannot_execute(text)
    return profile.streams[stream_id].raw


METHODS: Table = {
    "add_stream": owned(add_stream),
    "remove_stream": owned(remove_stream),
    "remove_all_streams": owned(remove_all_streams),
    "get_profile_list": Method(get_profile_list),
    "get_stream_list": Method(get_stream_list),
    "get_all_streams": Method(get_all_streams),
    "get_stream": Method(get_stream),
}
