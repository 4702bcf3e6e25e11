"""A cell's document in the store that the results mirror: looked for before it is measured, put there afterwards.

An unreachable store loses nothing: the mirror has the document. With a fleet on one machine the night's end puts what
the store lacks; in a cluster the tester that measured the cell does, before its next one. A document that the store has
by then stands.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

from ..core.errors import BenchError, StoreError
from ..files import replace_file
from ..results.document import read_sealed
from ..results.nights import TESTERS, is_sent
from ..results.remote import Store, address_of
from ..results.shared import ask_store
from ..results.store import make_directory

WAIT_S = 10.0
"""Maximum wait for the store, which is at most a lease."""
AGAIN_S = 0.5
"""Time between two tries if the store fails."""
UNSENT = "unsent"
"""Folder below ``.fleet`` of a tester's mirror: an empty file for each document to be put, named after its place."""
TOKEN_LENGTH = 8
"""Number of letters by which a tester's tries differ."""
T = TypeVar("T")


class OtherStored(StoreError):
    """The store has other content in a document's place, which no further try replaces."""


def fetch_document(results: Path, place: str, lease_s: float) -> bool:
    """Fetch the document into the mirror; False if the store has none, or cannot be asked."""
    if address_of(results) is None:
        return False
    with contextlib.suppress(BenchError):
        return _ask(results, lambda store: store.fetch([place]), lease_s) > 0
    return False


def put_document(results: Path, place: str, lease_s: float, patience_s: float = 0.0) -> str | None:
    """Put the document into the store, or take the complete one that is there; return a warning in that case.

    StoreError if the store has none in the end. patience_s: time for further tries if the store fails.
    """
    ends_s = time.monotonic() + patience_s
    while True:
        try:
            return _put_once(results, place, lease_s)
        except OtherStored:
            raise
        except StoreError:
            if time.monotonic() > ends_s:
                raise
        time.sleep(AGAIN_S)


def _put_once(results: Path, place: str, lease_s: float) -> str | None:
    there: list[bytes] = []

    def put(store: Store) -> None:
        try:
            store.create(place)
        except StoreError:
            if (data := store.read(place)) is not None:
                there.append(data)
            raise

    try:
        if address_of(results) is not None and not is_sent(results / place):
            _ask(results, put, lease_s)
    except BenchError as error:
        if not there:
            raise
        if read_sealed(there[0]) is None:
            raise OtherStored(str(error)) from None
        with contextlib.suppress(OSError):  # then it stays marked as not sent
            replace_file(results / place, there[0])
        return f"{place} was in the store already: that one stands"
    return None


def note_unsent(results: Path, place: str) -> None:
    """Note a document before it gets its place in the mirror, so that it is put even if this process is killed."""
    make_directory(results / TESTERS / UNSENT).joinpath(quote(place, safe="")).touch()


def put_unsent(results: Path, lease_s: float) -> None:
    """Put all noted documents; StoreError if the store is still unreachable."""
    for note in sorted((results / TESTERS / UNSENT).glob("*")):
        if (results / (place := unquote(note.name))).exists():  # otherwise it may be about to get its place
            with contextlib.suppress(OtherStored):  # its cell has reported it
                put_document(results, place, lease_s)
            note.unlink(missing_ok=True)


def remove_staging(results: Path, tester: str) -> None:
    """Remove what this tester was measuring when it was killed, in its own mirror; in a directory a night does."""
    if address_of(results) is not None:
        for staging in (results / TESTERS).glob(f"*/{tester}-{'?' * TOKEN_LENGTH}"):
            shutil.rmtree(staging, ignore_errors=True)


def _ask(results: Path, do: Callable[[Store], T], lease_s: float) -> T:
    return ask_store(results, do, min(WAIT_S, lease_s))
