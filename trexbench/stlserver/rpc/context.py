"""Parts that the cmd_ families share: the server that their handlers work on, and how they list their methods."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..engine import Engine, core_count
from ..state.port import PortState, ServerPort
from ..state.server_state import ServerState
from ..wire import Json, Params, cannot_execute

API_NAME = "STL"
API_MAJOR, API_MINOR = 5, 1


class Context:
    """One server. shutdown: asked for by a client."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.state = engine, ServerState(engine)
        self.stats = self.state.stats
        self.api_handler = secrets.token_urlsafe(6)
        self.uptime = time.strftime("%b %d %Y @ %H:%M:%S")
        self.shutdown = False

    @property
    def outbox(self) -> list[Json]:
        """Messages that are due on the publisher's socket."""
        return self.state.events.outbox

    @property
    def now_s(self) -> float:
        return self.state.now_s

    @property
    def core_count(self) -> int:
        return core_count(len(self.state.ports))

    def port(self, p: Params) -> ServerPort:
        """The port that a call names."""
        port_id = p.byte("port_id")
        if port_id not in self.state.ports:
            listed = " ".join(str(index) for index in self.state.ports)
            raise cannot_execute(f"invalid port id - should be: {listed}")
        return self.state.ports[port_id]

    def announce(self, baseline: bool) -> None:
        """Put a ``trex-global`` event into the outbox."""
        sending = {port.index: port.state == PortState.TX for port in self.state.ports.values()}
        self.outbox.append(self.stats.event_json(self.now_s, sending, baseline))


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
