"""Asynchronous events, queued by session for clients to fetch, as by TRex's publisher."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from enum import IntEnum

from ..wire import Json

STALLED_AFTER_S = 10.0


class EventCode(IntEnum):
    """Numbers of events on the wire."""

    PORT_STARTED = 0
    PORT_STOPPED = 1
    PORT_PAUSED = 2
    PORT_RESUMED = 3
    PORT_FINISHED_TX = 4
    PORT_ACQUIRED = 5
    PORT_RELEASED = 6
    PORT_ATTR_CHANGED = 8
    PROFILE_STARTED = 10
    PROFILE_STOPPED = 11
    PROFILE_PAUSED = 12
    PROFILE_RESUMED = 13
    PROFILE_FINISHED_TX = 14
    SERVER_STOPPED = 100


@dataclass
class _Session:
    last_query_s: float
    seq: int = 0
    queue: list[Json] = field(default_factory=list)


class EventQueues:
    """Sessions, and the events that each has yet to fetch. Times are seconds of any monotonic clock."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}
        self.outbox: list[Json] = []  # to be published; an empty object asks clients to fetch their events

    def post(self, event: EventCode, data: Json, now_s: float, owners: Container[int] = ()) -> None:
        """Queue one event for every session that still fetches.

        Sessions that have not fetched for STALLED_AFTER_S get no more events, and are forgotten unless they are among
        ``owners``, which hold a port.
        """
        for session_id, session in list(self._sessions.items()):
            if not session.queue:
                session.last_query_s = now_s
            if now_s - session.last_query_s < STALLED_AFTER_S:
                session.queue.append({"name": "trex-event", "type": int(event), "data": data, "seq": session.seq})
                session.seq += 1
            elif session_id not in owners:
                del self._sessions[session_id]
        self.outbox.append({})

    def listen(self, session_id: int, now_s: float) -> _Session:
        """Queue events for this session from now on."""
        return self._sessions.setdefault(session_id, _Session(now_s))

    def fetch(self, session_id: int, now_s: float) -> list[Json]:
        """Take the events that this session has not fetched yet; an unknown session listens from now on."""
        session = self.listen(session_id, now_s)
        queue, session.queue = session.queue, []
        session.last_query_s = now_s
        return queue
