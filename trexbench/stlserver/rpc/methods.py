"""Parts that the cmd_ modules share: the server that their handlers work on, and how they list their methods."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..engine import Engine
from ..state.port import ServerPort
from ..state.server_state import ServerState
from ..wire import Json, Params, cannot_execute

API_NAME = "STL"
API_MAJOR, API_MINOR = 5, 1


class Context(ServerState):
    """State of one server, with what calls need besides the ports."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.api_handler = secrets.token_urlsafe(6)
        self.uptime = time.strftime("%b %d %Y @ %H:%M:%S")
        self.shutdown = False  # True: a client has asked the server to end

    def port(self, p: Params) -> ServerPort:
        """Port that a call names; an unknown one is refused."""
        port_id = p.byte("port_id")
        if port_id not in self.ports:
            listed = " ".join(str(index) for index in self.ports)
            raise cannot_execute(f"invalid port id - should be: {listed}")
        return self.ports[port_id]


Handler = Callable[[Context, Params], Json]
PortHandler = Callable[[Context, ServerPort, Params], Json]


@dataclass(frozen=True)
class Method:
    """One method of the RPC."""

    handler: Handler
    needs_api: bool = True  # calls carry the server's ``api_h``
    needs_owner: bool = False  # calls carry the port's ``handler``


Table = Mapping[str, Method]


def of_port(handler: PortHandler, needs_owner: bool = False) -> Method:
    """Make a method of the port that its parameters name; a handler that returns None answers with an empty object."""

    def handle(ctx: Context, p: Params) -> Json:
        result = handler(ctx, ctx.port(p), p)
        return {} if result is None else result

    return Method(handle, needs_owner=needs_owner)


def owned(handler: PortHandler) -> Method:
    """Make a method that only the port's owner may call."""
    return of_port(handler, needs_owner=True)


def refused(text: str) -> Method:
    """Make a method that is always refused."""

    def refuse(ctx: Context, p: Params) -> Json:
        raise cannot_execute(text)

    return Method(refuse)
