"""Parts that the cmd_ families share: the server that their handlers work on, and how they list their methods."""

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
    """One server: the tester's state, and what the calls of clients need besides. shutdown: asked for by one."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.api_handler = secrets.token_urlsafe(6)
        self.uptime = time.strftime("%b %d %Y @ %H:%M:%S")
        self.shutdown = False

    def port(self, p: Params) -> ServerPort:
        """The port that a call names."""
        port_id = p.byte("port_id")
        if port_id not in self.ports:
            listed = " ".join(str(index) for index in self.ports)
            raise cannot_execute(f"invalid port id - should be: {listed}")
        return self.ports[port_id]


Handler = Callable[[Context, Params], Json]
PortHandler = Callable[[Context, ServerPort, Params], Json]


@dataclass(frozen=True)
class Method:
    """One method. needs_api: carries ``api_h``. needs_owner: carries the port's ``handler``."""

    handler: Handler
    needs_api: bool = True
    needs_owner: bool = False


Table = Mapping[str, Method]


def of_port(handler: PortHandler, needs_owner: bool = False) -> Method:
    """A method of the port that its parameters name; where the handler returns nothing, the answer is empty."""

    def handle(ctx: Context, p: Params) -> Json:
        result = handler(ctx, ctx.port(p), p)
        return {} if result is None else result

    return Method(handle, needs_owner=needs_owner)


def owned(handler: PortHandler) -> Method:
    """A method that only the port's owner may call."""
    return of_port(handler, needs_owner=True)


def refused(text: str) -> Method:
    """A method that is always refused."""

    def refuse(ctx: Context, p: Params) -> Json:
        raise cannot_execute(text)

    return Method(refuse)
