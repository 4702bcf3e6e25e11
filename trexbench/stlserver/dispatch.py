"""Frame in, frame out: finds the method, checks API handler and ownership, and turns refusals into replies."""

from __future__ import annotations

import sys
import traceback

from trexbench.stlserver import cmd_general, cmd_port, cmd_stats, cmd_stream, cmd_traffic, wire
from trexbench.stlserver.context import Context
from trexbench.stlserver.method import Method, Table
from trexbench.stlserver.params import Params
from trexbench.stlserver.wire import BadRequest, Json, Request, RpcError, cannot_execute


def get_supported_cmds(ctx: Context, p: Params) -> Json:
    return list(METHODS)


METHODS: Table = {
    **cmd_general.METHODS,
    **cmd_port.METHODS,
    **cmd_stats.METHODS,
    **cmd_stream.METHODS,
    **cmd_traffic.METHODS,
    "get_supported_cmds": Method(get_supported_cmds),
}
COMPONENTS = dict.fromkeys((*cmd_general.METHODS, *cmd_port.METHODS, "get_supported_cmds"), "common")


def handle(ctx: Context, frame: bytes, now_s: float) -> bytes:
    """Answer one frame; whatever it holds, there is an answer and no exception."""
    ctx.box.now_s = now_s
    ctx.stats.forget()
    message = wire.decode(frame)
    replies = [_reply(ctx, call) for call in message.calls]
    announce_events(ctx)
    return wire.encode(replies, message.zipped)


def announce_events(ctx: Context) -> None:
    """An empty object on the publisher's socket tells clients to fetch their events."""
    ctx.outbox.extend({} for _ in range(ctx.box.events.announcements))
    ctx.box.events.announcements = 0


def _reply(ctx: Context, call: Request | BadRequest) -> Json:
    if isinstance(call, BadRequest):
        return wire.failure(call.id, call.error)
    try:
        value = _run(ctx, call)
        wire.dumps(value)
    except RpcError as err:
        return wire.failure(call.id, err)
    except Exception as err:
        # a defect of ours: the client gets an answer, the operator the trace
        traceback.print_exc(file=sys.stderr)
        text = f"{call.method}: {type(err).__name__}: {err}"
        return wire.failure(call.id, RpcError(wire.INTERNAL, "Internal Server Error", text))
    return wire.result(call.id, value)


def _run(ctx: Context, call: Request) -> Json:
    method = METHODS.get(call.method)
    if method is None:
        raise RpcError(wire.METHOD_NOT_FOUND, f"Method {call.method} not registered")
    if call.method not in cmd_stats.READ_ONLY:
        ctx.stats.forget()
    p = Params(call.params, call.text, call.path)
    if method.needs_api and p.string("api_h") != ctx.api_handler:
        component = COMPONENTS.get(call.method, "STL")
        text = f"API verification failed - API handler provided mismatch for class: '{component}'"
        raise cannot_execute(text)
    if method.needs_owner:
        _check_owner(ctx, p)
    if not isinstance(p.value, dict):
        raise cannot_execute("JSON-RPC2 params should be object in TRex case ")
    return method.handler(ctx, p)


def _check_owner(ctx: Context, p: Params) -> None:
    handler, port = p.string("handler"), ctx.port(p)
    if port.owner is None:
        raise cannot_execute("please acquire the port before modifying port state")
    if port.owner.handler != handler:
        raise cannot_execute("port is not owned by you or your current executing session")
