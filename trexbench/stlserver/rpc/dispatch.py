"""Answers frames: finds the method, checks API handler and ownership, turns refusals into replies."""

from __future__ import annotations

import sys
import traceback

from .. import wire
from ..state.server_state import ServerState
from ..wire import Json, Params, RpcError, RpcRequest, cannot_execute
from . import cmd_general, cmd_port, cmd_traffic
from .methods import Method, Table

METHODS: Table = {
    **cmd_general.METHODS,
    **cmd_port.METHODS,
    **cmd_traffic.METHODS,
    "get_supported_cmds": Method(lambda ctx, p: list(METHODS)),
}


def handle(ctx: ServerState, frame: bytes, now_s: float) -> bytes:
    """Answer one frame; never raises, whatever it holds."""
    ctx.now_s = now_s
    ctx.stats.forget()
    calls, zipped = wire.decode(frame)
    return wire.encode([_reply(ctx, call) for call in calls], zipped)


def _reply(ctx: ServerState, call: RpcRequest) -> Json:
    if call.error is not None:
        return wire.reply(call.id, call.error)
    try:
        value = _run(ctx, call)
        wire.dumps(value)
    except RpcError as err:
        return wire.reply(call.id, err)
    except Exception as err:
        # a defect of ours: the client gets an answer, the operator the trace
        traceback.print_exc(file=sys.stderr)
        text = f"{call.method}: {type(err).__name__}: {err}"
        return wire.reply(call.id, RpcError(wire.INTERNAL, "Internal Server Error", text))
    return wire.reply(call.id, value)


def _run(ctx: ServerState, call: RpcRequest) -> Json:
    method = METHODS.get(call.method)
    if method is None:
        raise RpcError(wire.METHOD_NOT_FOUND, f"Method {call.method} not registered")
    if not call.method.startswith("get_"):  # reading changes nothing: the calls of one frame share one reading
        ctx.stats.forget()
    p = Params(call.params)
    if method.needs_api and p.string("api_h") != ctx.api_handler:
        raise cannot_execute("API verification failed - API handler provided mismatch for class: 'STL'")
    if method.needs_owner:
        handler, port = p.string("handler"), ctx.port(p)
        if port.owner is None:
            raise cannot_execute("please acquire the port before modifying port state")
        if port.owner.handler != handler:
            raise cannot_execute("port is not owned by you or your current executing session")
    if not isinstance(p.value, dict):
        raise cannot_execute("params are not an object")
    return method.handler(ctx, p)
