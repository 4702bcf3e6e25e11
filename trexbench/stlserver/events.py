"""Asynchronous events: a queue per session, as TRex's publisher keeps them for its clients to fetch."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from trexbench.stlserver.wire import Json

STALLED_AFTER_S = 10.0


class Event(IntEnum):
    """The numbers on the wire."""

    PORT_STARTED = 0
    PORT_STOPPED = 1
    PORT_PAUSED = 2
    PORT_RESUMED = 3
    PORT_FINISHED_TX = 4
    PORT_ACQUIRED = 5
    PORT_RELEASED = 6
    PORT_ERROR = 7
    PORT_ATTR_CHANGED = 8
    PROFILE_STARTED = 10
    PROFILE_STOPPED = 11
    PROFILE_PAUSED = 12
    PROFILE_RESUMED = 13
    PROFILE_FINISHED_TX = 14
    PROFILE_ERROR = 17
    SERVER_STOPPED = 100


@dataclass
class _Session:
    last_query_s: float
    reader: bool
    seq: int = 0
    queue: list[Json] = field(default_factory=list)


class EventQueues:
    """Sessions and what each has yet to hear. Times are seconds of any monotonic clock."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}
        self._port_sessions: dict[int, int] = {}
        self.announcements = 0  # how many times "{}" is due on the publisher's socket

    def post(self, event: Event, data: Json, now_s: float) -> None:
        """Queue one event for every session that still fetches; silent readers are forgotten."""
        for session_id, session in list(self._sessions.items()):
            if not session.queue or now_s - session.last_query_s < STALLED_AFTER_S:
                if not session.queue:
                    session.last_query_s = now_s
                body = {"name": "trex-event", "type": int(event), "data": data, "seq": session.seq}
                session.queue.append(body)
                session.seq += 1
            elif session.reader:
                del self._sessions[session_id]
        self.announcements += 1

    def fetch(self, session_id: int, now_s: float) -> list[Json]:
        """What this session has not heard yet; an unknown session becomes a reader from now on."""
        session = self._sessions.get(session_id)
        if session is None:
            self._sessions[session_id] = _Session(now_s, reader=True)
            return []
        queue, session.queue = session.queue, []
        session.last_query_s = now_s
        return queue

    def own_port(self, port: int, session_id: int, now_s: float) -> None:
        """A session holds a port: it is kept even when it does not fetch for a while."""
        former = self._port_sessions.get(port)
        self._port_sessions[port] = session_id
        session = self._sessions.setdefault(session_id, _Session(now_s, reader=False))
        session.reader = False
        self._demote(former)

    def disown_port(self, port: int) -> None:
        """The port's holder lets go of it."""
        self._demote(self._port_sessions.pop(port, None))

    def _demote(self, session_id: int | None) -> None:
        if session_id is None or session_id in self._port_sessions.values():
            return
        if session_id in self._sessions:
            self._sessions[session_id].reader = True
