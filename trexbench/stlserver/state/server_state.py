"""State of the tester: which command is allowed on which port, and its effects. The caller sets the time.

As in TRex, a port's state is the most active state of its profiles (TX, PAUSE, STREAMS, IDLE), and events are posted
for the profile first, then for the port if its state changed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ...core.errors import ConfigError
from ...core.load.fieldengine import Program
from ..engine import MAX_STREAMS, Engine, EngineError, StreamSpec
from ..wire import Json, Params, RpcError, cannot_execute
from . import graph
from .events import EventCode, EventQueues
from .graph import Multiplier
from .groups import Groups
from .port import Owner, PortProfile, PortState, ServerPort
from .stats import Stats
from .stream import ServerStream


@contextmanager
def engine_refusals(before: str = "") -> Iterator[None]:
    """Turn the engine's refusals in the block into answers for the client, with these words ``before`` them."""
    try:
        yield
    except EngineError as err:
        raise cannot_execute(f"{before}{err}") from err


def _program_error(stream: ServerStream) -> RpcError | None:
    """Error of a field engine program that TRex's compiler refuses, too."""
    try:
        next(Program(stream.instructions).run(stream.packet))
    except ConfigError as error:
        return cannot_execute(str(error))
    return None


class ServerState:
    """Ports of the tester, the engine behind them, the events. The caller sets ``now_s`` before each call."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.now_s = engine, 0.0
        self.events = EventQueues()
        self.ports: Mapping[int, ServerPort] = {info.index: ServerPort.of(info) for info in engine.ports}
        self.groups, self.stats = Groups(engine.ports), Stats(engine)
        self.api_handler = secrets.token_urlsafe(6)
        self.uptime = time.strftime("%b %d %Y @ %H:%M:%S")
        self.shutdown = False  # True: a client has asked the server to end

    def port(self, p: Params) -> ServerPort:
        """Port that a call names; an unknown one is refused."""
        port_id = p.byte("port_id")
        if port_id not in self.ports:
            raise cannot_execute(f"invalid port id - should be: {' '.join(map(str, self.ports))}")
        return self.ports[port_id]

    # ownership

    def acquire(self, port: ServerPort, user: str, session_id: int, force: bool) -> str:
        """Take a free port, or any with ``force``; returns the handler."""
        owner = port.owner
        used_force = owner is not None and force
        if owner is None or force:
            owner = Owner(user, session_id, secrets.token_urlsafe(6))
        elif owner.name != user:
            raise cannot_execute(f"port is already taken by '{owner.name}'")
        elif owner.session_id != session_id:
            raise cannot_execute(f"port is already owned by another session of '{user}'")
        data = {"port_id": port.index, "who": user, "session_id": session_id, "force": used_force}
        self.post(EventCode.PORT_ACQUIRED, data)
        self.events.listen(session_id, self.now_s)
        port.owner = owner
        return owner.handler

    def release(self, port: ServerPort) -> None:
        """Give the port back; its traffic, if any, runs on."""
        owner = port.owner
        assert owner is not None  # only the owner may call
        self.post(EventCode.PORT_RELEASED, {"port_id": port.index, "who": owner.name, "session_id": owner.session_id})
        port.owner = None

    # streams

    def add_stream(self, port: ServerPort, profile_name: str, stream: ServerStream) -> None:
        """Keep a stream that both TRex's rules and the engine accept."""
        profile = port.profiles.get(profile_name) or PortProfile(profile_name)
        profile.require("add_stream", PortState.IDLE, PortState.STREAMS)
        if len(profile.streams) >= MAX_STREAMS:
            raise cannot_execute(f"Reached limit of {MAX_STREAMS} streams at the port.")
        self.groups.add(port.index, stream)
        try:
            spec = self._spec(port, stream)
            if _program_error(stream) is None:  # else it is refused at the start, as by TRex
                with engine_refusals():
                    self.engine.check(port.index, spec)
        except RpcError:
            self.groups.remove([stream])
            raise
        port.profiles[profile_name] = profile
        profile.streams[stream.stream_id] = stream
        self._streams_changed(port, profile)

    def remove_stream(self, port: ServerPort, profile: PortProfile, stream_id: int) -> None:
        profile.require("remove_stream", PortState.STREAMS)
        self.groups.remove([profile.streams.pop(stream_id)])
        self._streams_changed(port, profile)

    def remove_all_streams(self, port: ServerPort, profile: PortProfile) -> None:
        profile.require("remove_and_delete_all_streams", PortState.IDLE, PortState.STREAMS)
        self.groups.remove(profile.streams.values())
        profile.streams.clear()
        self._streams_changed(port, profile)

    def _streams_changed(self, port: ServerPort, profile: PortProfile) -> None:
        profile.state = PortState.STREAMS if profile.streams else PortState.IDLE
        self._settle(port)

    def check_profile(self, profile: PortProfile) -> None:
        """Refuse what TRex's compiler refuses: broken links first, then field engine programs."""
        graph.check_links(profile.streams)
        for stream in profile.streams.values():
            if stream.enabled and (error := _program_error(stream)) is not None:
                raise error

    # traffic

    def start(self, port: ServerPort, profile: PortProfile, mul: Multiplier, duration_s: float, force: bool) -> None:
        """Begin to send; a duration of 0 or less lasts until stopped."""
        profile.require("start", PortState.STREAMS)
        if not force and not self.engine.link_up(port.index):
            raise cannot_execute("Link state is DOWN.")
        own_macs = all(stream.explicit_dst_mac for stream in profile.streams.values())
        if not (force or port.resolved or own_macs):
            text = f"Port {port.index} dest MAC is invalid and there are streams without explicit dest MAC."
            raise cannot_execute(text)
        self.check_profile(profile)
        profile.graph = graph.build(profile.streams, port.info.speed_bps)
        factor = graph.factor_for(profile.graph, mul, profile.factor, port.info.speed_bps, force)
        self.groups.prepare(profile.streams.values(), self.stats)
        busy = next((p.name for p in port.profiles.values() if p.state in PortState.ACTIVE), None)
        if busy is not None:
            text = f"port {port.index} is sending profile {busy}: this server sends one profile a port; stop it first"
            raise cannot_execute(text)
        specs = tuple(self._spec(port, stream) for stream in profile.streams.values() if stream.enabled)
        counted = self.groups.counted(profile.streams.values(), self.stats)
        with engine_refusals():
            self.engine.start(port.index, specs, factor, duration_s if duration_s > 0 else None)
        self.stats.forget()
        self.groups.started(counted, self.now_s)
        profile.factor, profile.duration_s = factor, duration_s
        self._enter(port, profile, PortState.TX, EventCode.PROFILE_STARTED)

    def stop(self, port: ServerPort, profile: PortProfile) -> None:
        """Stop the profile's traffic, if any."""
        if profile.state not in PortState.ACTIVE:
            return
        self.engine.stop(port.index)
        self._enter(port, profile, PortState.STREAMS, EventCode.PROFILE_STOPPED)

    def pause(self, port: ServerPort, profile: PortProfile) -> None:
        profile.require("pause", PortState.TX)
        if any(stream.mode != "continuous" for stream in profile.streams.values()):
            raise cannot_execute("only continuous streams can be paused")
        if profile.duration_s > 0:
            raise cannot_execute(" pause is supported when duration is not enable is start command ")
        with engine_refusals():
            self.engine.pause(port.index)
        self._enter(port, profile, PortState.PAUSE, EventCode.PROFILE_PAUSED)

    def resume(self, port: ServerPort, profile: PortProfile) -> None:
        profile.require("resume", PortState.PAUSE)
        with engine_refusals():
            self.engine.resume(port.index)
        self._enter(port, profile, PortState.TX, EventCode.PROFILE_RESUMED)

    def update(self, port: ServerPort, profile: PortProfile, mul: Multiplier, force: bool) -> None:
        """Set, raise or lower the running factor."""
        profile.require("update", PortState.TX, PortState.PAUSE)
        current = profile.factor
        change = graph.factor_for(profile.graph, mul, current, port.info.speed_bps, force)
        factor = {"abs": change, "add": current + change, "sub": current - change}[mul.op]
        if factor <= 0:
            raise cannot_execute("the update leaves no traffic")
        with engine_refusals():
            self.engine.update(port.index, factor)
        profile.factor = factor

    # the passing of time

    def tick(self) -> None:
        """Notice traffic that ended by itself, and update the groups' rates."""
        for port in (self.ports[index] for index in self.engine.poll()):
            for profile in port.profiles.values():
                if profile.state in PortState.ACTIVE:
                    self._enter(port, profile, PortState.STREAMS, EventCode.PROFILE_FINISHED_TX)
        self.stats.forget()
        self.groups.advance(self.stats, self.now_s)

    def watch_links(self, attributes: Callable[[ServerPort], Json]) -> None:
        """Post an event, with the port's attributes, for each link that went up or down since the last call."""
        for port in self.ports.values():
            up = self.engine.link_up(port.index)
            if up != port.link_up:
                port.link_up = up
                self.post(EventCode.PORT_ATTR_CHANGED, {"port_id": port.index, "attr": attributes(port)})

    def silence(self) -> None:
        """Stop all traffic on all ports."""
        for port in self.ports.values():
            for profile in port.profiles.values():
                self.stop(port, profile)

    def sending(self) -> bool:
        """Test whether any port sends or is paused."""
        return any(port.state in PortState.ACTIVE for port in self.ports.values())

    def remove_rx_filters(self, port: ServerPort, profile: PortProfile) -> None:
        """Stop counting the arriving frames of the profile's packet groups."""
        profile.require("remove_rx_filters", PortState.STREAMS)
        self.groups.filters_removed(profile.streams.values(), self.stats, self.now_s)

    def _spec(self, port: ServerPort, stream: ServerStream) -> StreamSpec:
        return stream.spec(port.info.speed_bps, port.src_mac, port.dst_mac, self.groups.mark_of(stream))

    def _enter(self, port: ServerPort, profile: PortProfile, state: str, event: EventCode) -> None:
        profile.state = state
        self.post(event, {"port_id": port.index, "profile_id": profile.name})
        self._settle(port, finished=event is EventCode.PROFILE_FINISHED_TX)

    def _settle(self, port: ServerPort, finished: bool = False) -> None:
        """Derive the port's state from its profiles', and post an event if it changed."""
        former = port.state
        port.state = min((profile.state for profile in port.profiles.values()), key=PortState.BY_ACTIVITY.index)
        if former == port.state:
            return
        stopped = EventCode.PORT_FINISHED_TX if finished else EventCode.PORT_STOPPED
        event = {
            (PortState.STREAMS, PortState.TX): EventCode.PORT_STARTED,
            (PortState.PAUSE, PortState.TX): EventCode.PORT_RESUMED,
            (PortState.TX, PortState.PAUSE): EventCode.PORT_PAUSED,
            (PortState.TX, PortState.STREAMS): stopped,
            (PortState.PAUSE, PortState.STREAMS): stopped,
        }.get((former, port.state))
        if event is not None:
            self.post(event, {"port_id": port.index})

    def post(self, event: EventCode, data: Json) -> None:
        owners = {port.owner.session_id for port in self.ports.values() if port.owner}
        self.events.post(event, data, self.now_s, owners)
