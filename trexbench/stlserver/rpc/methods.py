"""Methods of the RPC, as the cmd_ modules list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..state.port import ServerPort
from ..state.server_state import ServerState
from ..wire import Json, Params, cannot_execute

Handler = Callable[[ServerState, Params], Json]
PortHandler = Callable[[ServerState, ServerPort, Params], Json]


@dataclass(frozen=True)
class Method:
    """One method of the RPC."""

    handler: Handler
    needs_api: bool = True  # calls carry the server's ``api_h``
    needs_owner: bool = False  # calls carry the port's ``handler``


Table = Mapping[str, Method]


def of_port(handler: PortHandler, needs_owner: bool = False) -> Method:
    """Make a method of the port that its parameters name; a handler that returns None answers with an empty object."""

    def handle(ctx: ServerState, p: Params) -> Json:
        result = handler(ctx, ctx.port(p), p)
        return {} if result is None else result

    return Method(handle, needs_owner=needs_owner)


def owned(handler: PortHandler) -> Method:
    """Make a method that only the port's owner may call."""
    return of_port(handler, needs_owner=True)


def refused(text: str) -> Method:
    """Make a method that is always refused."""

    def refuse(ctx: ServerState, p: Params) -> Json:
        raise cannot_execute(text)

    return Method(refuse)
