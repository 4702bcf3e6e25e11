"""The tester's state: who may do what on which port, and what follows from it. Time is passed in.

The laws, as in TRex: a port's state is the most active state of its profiles (TX, PAUSE, STREAMS, IDLE);
events are posted for the profile first, then for the port if its state changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trexbench.stlserver import graph, vm
from trexbench.stlserver.engine import Engine, EngineError, StreamSpec
from trexbench.stlserver.events import Event, EventQueues
from trexbench.stlserver.graph import Graph, Multiplier
from trexbench.stlserver.groups import Groups
from trexbench.stlserver.port import (
    ACTIVE,
    BY_ACTIVITY,
    IDLE,
    PAUSE,
    STREAMS,
    TX,
    UNOWNED,
    Launch,
    Owner,
    Port,
    Profile,
    random_name,
)
from trexbench.stlserver.stream import Stream
from trexbench.stlserver.wire import Json, RpcError, cannot_execute

MAX_STREAMS = 20_000


class Box:
    """The whole tester: its ports, the engine behind them, the events. ``now_s`` is set before each call."""

    def __init__(self, engine: Engine, now_s: float = 0.0) -> None:
        self.engine = engine
        self.now_s = now_s
        self.events = EventQueues()
        self.ports: Mapping[int, Port] = {info.index: Port.of(info) for info in engine.ports}
        self.groups = Groups(self.ports)
        self.first_start_s: float | None = None

    # ownership

    def acquire(self, port: Port, user: str, session_id: int, force: bool) -> str:
        """Take a free port, or any with ``force``; returns the handler."""
        used_force = port.owner is not None and force
        if port.owner is None or force:
            port.owner = Owner(user, session_id, random_name())
        elif port.owner.name != user:
            raise cannot_execute(f"port is already taken by '{port.owner.name}'")
        elif port.owner.session_id != session_id:
            raise cannot_execute(f"port is already owned by another session of '{user}'")
        data = {"port_id": port.index, "who": user, "session_id": session_id, "force": used_force}
        self._post(Event.PORT_ACQUIRED, data)
        self.events.own_port(port.index, session_id, self.now_s)
        return port.owner.handler

    def release(self, port: Port) -> None:
        """Give the port back; its traffic, if any, runs on."""
        owner = port.owner
        port.owner = None
        data = {
            "port_id": port.index,
            "who": owner.name if owner else UNOWNED,
            "session_id": owner.session_id if owner else 0,
        }
        self._post(Event.PORT_RELEASED, data)
        self.events.disown_port(port.index)

    # streams

    def add_stream(self, port: Port, profile_name: str, stream: Stream) -> None:
        """Keep a stream that both TRex's rules and the engine accept."""
        profile = port.profiles.get(profile_name) or Profile(profile_name)
        profile.require("add_stream", IDLE, STREAMS)
        if len(profile.streams) >= MAX_STREAMS:
            raise cannot_execute(f"Reached limit of {MAX_STREAMS} streams at the port.")
        self.groups.add(port.index, stream)
        try:
            self._ask_engine(port, stream)
        except RpcError:
            self.groups.remove([stream])
            raise
        port.profiles[profile_name] = profile
        profile.streams[stream.stream_id] = stream
        profile.graph = None
        profile.state = STREAMS
        self._settle(port)

    def _ask_engine(self, port: Port, stream: Stream) -> None:
        """The engine's veto, now rather than at start. A program that TRex's compiler refuses is refused at start."""
        try:
            vm.check_program(stream.instructions, len(stream.packet))
        except RpcError:
            return
        try:
            self.engine.check(port.index, self._spec(port, stream))
        except EngineError as err:
            raise cannot_execute(str(err)) from err

    def remove_stream(self, port: Port, profile: Profile, stream_id: int) -> None:
        profile.require("remove_stream", STREAMS)
        self.groups.remove([profile.streams.pop(stream_id)])
        profile.graph = None
        if not profile.streams:
            profile.state = IDLE
        self._settle(port)

    def remove_all_streams(self, port: Port, profile: Profile) -> None:
        profile.require("remove_and_delete_all_streams", IDLE, STREAMS)
        self.groups.remove(profile.streams.values())
        profile.streams.clear()
        profile.graph = None
        profile.state = IDLE
        self._settle(port)

    def graph_of(self, port: Port, profile: Profile) -> Graph:
        """The profile's rate graph, made when first needed."""
        if profile.graph is None:
            profile.graph = graph.build(profile.streams, port.info.speed_bps)
        return profile.graph

    def check_profile(self, profile: Profile) -> None:
        """What TRex's compiler refuses: broken links first, then field engine programs."""
        graph.check_links(profile.streams)
        for stream in profile.streams.values():
            if stream.enabled:
                vm.check_program(stream.instructions, len(stream.packet))

    # traffic

    def start(self, port: Port, profile: Profile, mul: Multiplier, duration_s: float, force: bool, at_s: float) -> None:
        """Begin sending. at_s: 0 for now, else a moment of the server's clock at least 0.1 s ahead."""
        profile.require("start", STREAMS)
        if not force:
            self._check_layer2(port, profile)
        profile.graph = None
        speed_bps = port.info.speed_bps
        if self.graph_of(port, profile).at(1.0).bps_l1 <= 0 and mul.kind != "raw":
            self.check_profile(profile)
        factor = graph.factor_for(self.graph_of(port, profile), mul, profile.factor, speed_bps, force)
        self.groups.require_counters(self.groups.of(profile.streams.values()))
        self.check_profile(profile)
        if at_s and at_s < self.now_s + 0.1:
            raise cannot_execute("start_at_ts, if defined, should be at least 100ms from now_sec()")
        busy = next((p.name for p in port.profiles.values() if p.state in ACTIVE), None)
        if busy is not None:
            text = f"port {port.index} is sending profile {busy}: this server sends one profile a port; stop it first"
            raise cannot_execute(text)
        specs = tuple(self._spec(port, stream) for stream in profile.streams.values() if stream.enabled)
        launch = Launch(at_s, specs, factor, duration_s if duration_s > 0 else None)
        if not at_s:
            self._launch(port, profile, launch)
        profile.launch = launch if at_s else None
        profile.factor, profile.duration_s = factor, duration_s
        profile.all_continuous = all(stream.mode == "continuous" for stream in profile.streams.values())
        if self.first_start_s is None:
            self.first_start_s = self.now_s
        self._enter(port, profile, TX, Event.PROFILE_STARTED)

    def stop(self, port: Port, profile: Profile) -> None:
        """Silence the profile; nothing happens when it is not sending."""
        if profile.state not in ACTIVE:
            return
        if profile.launch is None:
            self.engine.stop(port.index)
        profile.launch = profile.graph = None
        self._enter(port, profile, STREAMS, Event.PROFILE_STOPPED)

    def pause(self, port: Port, profile: Profile) -> None:
        profile.require("pause", TX)
        if not profile.all_continuous:
            raise cannot_execute(" pause is supported when all streams are in continues mode ")
        if profile.duration_s > 0:
            raise cannot_execute(" pause is supported when duration is not enable is start command ")
        if profile.launch is not None:
            raise cannot_execute("the traffic to pause has not begun: its start_at_ts lies ahead")
        self._engine_do(lambda: self.engine.pause(port.index))
        self._enter(port, profile, PAUSE, Event.PROFILE_PAUSED)

    def resume(self, port: Port, profile: Profile) -> None:
        profile.require("resume", PAUSE)
        self._engine_do(lambda: self.engine.resume(port.index))
        self._enter(port, profile, TX, Event.PROFILE_RESUMED)

    def update(self, port: Port, profile: Profile, mul: Multiplier, force: bool) -> None:
        """Change the running factor: to, by or down by what ``mul`` says."""
        profile.require("update", TX, PAUSE)
        current, speed_bps = profile.factor, port.info.speed_bps
        change = graph.factor_for(self.graph_of(port, profile), mul, current, speed_bps, force)
        factor = {"abs": change, "add": current + change, "sub": current - change}[mul.op]
        if factor <= 0:
            raise cannot_execute("Update request will lower traffic to less than zero")
        if profile.launch is not None:
            old = profile.launch
            profile.launch = Launch(old.at_s, old.specs, factor, old.duration_s)
        else:
            self._engine_do(lambda: self.engine.update(port.index, factor))
        profile.factor = factor

    # the passing of time

    def tick(self) -> None:
        """Starts that are due, traffic that ended by itself, links that changed."""
        for port in self.ports.values():
            for profile in port.profiles.values():
                if profile.launch is not None and self.now_s >= profile.launch.at_s:
                    launch, profile.launch = profile.launch, None
                    self._launch_late(port, profile, launch)
        for index in self.engine.poll():
            self._finished(self.ports[index])
        self.groups.advance(self.engine.latency, self.now_s)

    def next_launch_s(self) -> float | None:
        """When the next delayed start is due."""
        launches = [p.launch for port in self.ports.values() for p in port.profiles.values() if p.launch]
        return min((launch.at_s for launch in launches), default=None)

    def watch_links(self, attributes: Mapping[int, Json]) -> None:
        """Post an event, with the port's attributes, for each link that went up or down since the last look."""
        for port in self.ports.values():
            up = self.engine.link_up(port.index)
            if up != port.link_up:
                port.link_up = up
                attr = {**attributes[port.index], "link": {"up": up}}
                self._post(Event.PORT_ATTR_CHANGED, {"port_id": port.index, "attr": attr})

    def silence(self) -> None:
        """Stop all traffic on all ports."""
        for port in self.ports.values():
            for profile in port.profiles.values():
                self.stop(port, profile)

    def sending(self) -> bool:
        """Whether any port sends, pauses or waits to."""
        return any(port.state in ACTIVE for port in self.ports.values())

    def _finished(self, port: Port) -> None:
        for profile in port.profiles.values():
            if profile.state in ACTIVE and profile.launch is None:
                self._enter(port, profile, STREAMS, Event.PROFILE_FINISHED_TX)

    def remove_rx_filters(self, profile: Profile) -> None:
        """Frames of the profile's packet groups that arrive from now on are nobody's."""
        self.groups.filters_removed(self.groups.of(profile.streams.values()), self.engine.latency, self.now_s)

    def _launch(self, port: Port, profile: Profile, launch: Launch) -> None:
        counted = self.groups.counted(self.groups.of(profile.streams.values()), self.engine.latency)
        self._engine_do(lambda: self.engine.start(port.index, launch.specs, launch.factor, launch.duration_s))
        self.groups.started(counted, self.now_s)

    def _launch_late(self, port: Port, profile: Profile, launch: Launch) -> None:
        try:
            self._launch(port, profile, launch)
        except RpcError as err:
            data = {"port_id": port.index, "profile_id": profile.name, "thread_id": 0, "what": str(err)}
            self._post(Event.PROFILE_ERROR, data)
            self._enter(port, profile, STREAMS, Event.PROFILE_FINISHED_TX)

    def _engine_do(self, action: Callable[[], None]) -> None:
        try:
            action()
        except EngineError as err:
            raise cannot_execute(str(err)) from err

    def _check_layer2(self, port: Port, profile: Profile) -> None:
        if not self.engine.link_up(port.index):
            raise cannot_execute("Link state is DOWN.")
        implicit = any(not stream.explicit_dst_mac for stream in profile.streams.values())
        if implicit and not port.resolved:
            text = f"Port {port.index} dest MAC is invalid and there are streams without explicit dest MAC."
            raise cannot_execute(text)

    def _spec(self, port: Port, stream: Stream) -> StreamSpec:
        return stream.spec(port.info.speed_bps, port.src_mac, port.dst_mac)

    def _enter(self, port: Port, profile: Profile, state: str, event: Event) -> None:
        profile.state = state
        self._post(event, {"port_id": port.index, "profile_id": profile.name})
        self._settle(port, finished=event is Event.PROFILE_FINISHED_TX)

    def _settle(self, port: Port, finished: bool = False) -> None:
        """Derive the port's state from its profiles', and tell when it changed."""
        former = port.state
        held = {profile.state for profile in port.profiles.values()}
        port.state = next(state for state in BY_ACTIVITY if state in held)
        if former == port.state:
            return
        stopped = Event.PORT_FINISHED_TX if finished else Event.PORT_STOPPED
        event = {
            (STREAMS, TX): Event.PORT_STARTED,
            (PAUSE, TX): Event.PORT_RESUMED,
            (TX, PAUSE): Event.PORT_PAUSED,
            (TX, STREAMS): stopped,
            (PAUSE, STREAMS): stopped,
        }.get((former, port.state))
        if event is not None:
            self._post(event, {"port_id": port.index})

    def _post(self, event: Event, data: Json) -> None:
        self.events.post(event, data, self.now_s)
