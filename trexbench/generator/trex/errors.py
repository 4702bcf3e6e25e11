"""TRex's errors have a text and no code of their own: the texts that trexbench acts on, as recorded, and their meaning.

``errors`` and ``conversation`` are recordings of TRex v3.08 in tests/fixtures/trex-v3.08.
"""

from __future__ import annotations

from enum import Enum


class Meaning(Enum):
    OTHER_MODE = "the server is not in stateless mode"
    OTHER_VERSION = "server and client do not fit each other"
    NOT_OURS = "the port belongs to somebody else, or to nobody"
    WRONG_STATE = "the port is in the wrong state for this command: it sends nothing any more, or still sends"
    TOO_FAST = "more than the line's rate is asked for"


_MEANINGS = (
    ("configuration mismatch", Meaning.OTHER_MODE),  # conversation: RPC ... - server RPC configuration: 'STL', client
    ("ASTF", Meaning.OTHER_MODE),  # not recorded
    ("ersion mismatch", Meaning.OTHER_VERSION),  # conversation: RPC version mismatch: a newer client ...; Version ...
    ("Mismatch between client and server", Meaning.OTHER_VERSION),  # the client's own words for TRex v2.30 and older
    ("taken by", Meaning.NOT_OURS),  # errors: port is already taken by 'root'
    ("not owned", Meaning.NOT_OURS),  # errors: port is not owned by you or your current executing session
    ("please acquire the port", Meaning.NOT_OURS),  # conversation: ... before modifying port state
    ("current state", Meaning.WRONG_STATE),  # conversation: command 'add_stream' cannot be executed on current state
    ("exceeds port line rate", Meaning.TOO_FAST),  # errors: Expected L1 B/W: '20 Gbps' exceeds port line rate
)


NO_COUNTER = "Failed allocating statistic counter"
"""TRex v3.08's words for a start with more packet groups than are left (trex_stl_fs.cpp)."""


def meaning_of(text: str) -> Meaning | None:
    """The first meaning that fits; None for a text that is only passed on."""
    return next((meaning for words, meaning in _MEANINGS if words in text), None)


def brief(err: BaseException) -> str:
    """An error of the client as one line, without asterisks."""
    text = err.brief() if hasattr(err, "brief") else str(err)
    return " ".join(str(text).replace("*", " ").split())
