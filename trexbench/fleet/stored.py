"""A cell's document in the store that the results mirror: looked for before it is measured, put there afterwards.

A store that is away loses nothing: the mirror has the document. Of a fleet on one machine the night's end puts what is
not there; of a cluster the tester that measured it does, before its next cell. If the store had one all the same, that
stands.
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
"""The store is waited for so long, but no longer than a lease."""
AGAIN_S = 0.5
"""Time between two tries of a store that fails."""
UNSENT = "unsent"
"""Folder below ``.fleet`` of a tester's mirror: an empty file for each document to be put, named by its place."""
TOKEN_LENGTH = 8
"""Letters by which a tester's tries differ."""
T = TypeVar("T")


class OtherStored(StoreError):
    """The store has something else in a document's place, which no further try replaces."""


def fetch_document(results: Path, place: str, lease_s: float) -> bool:
    """Bring the document into the mirror; False where the store has none, or cannot be asked."""
    if address_of(results) is None:
        return False
    data: bytes | None = None
    with contextlib.suppress(BenchError):
        data = _ask(results, lambda store: store.read(place), lease_s)
    if data is None:
        return False
    with contextlib.suppress(FileExistsError):
        replace_file(results / place, data, exclusive=True, by_link=True)
    return True


def put_document(results: Path, place: str, lease_s: float, patience_s: float = 0.0) -> str | None:
    """Put the document into the store, or take the complete one that is there, which is a warning.

    StoreError where it is not there then. patience_s: a store that fails is asked again for so long.
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
        with contextlib.suppress(OSError):  # then it stays as one that is not sent
            replace_file(results / place, there[0])
        return f"{place} was in the store already: that one stands"
    return None


def note_unsent(results: Path, place: str) -> None:
    """Note a document before it has its place in the mirror, so that it is put even if this process is killed."""
    make_directory(results / TESTERS / UNSENT).joinpath(quote(place, safe="")).touch()


def put_unsent(results: Path, lease_s: float) -> None:
    """Put all that were noted; StoreError where the store is still away."""
    for note in sorted((results / TESTERS / UNSENT).glob("*")):
        if (results / (place := unquote(note.name))).exists():  # else it may be on its way
            with contextlib.suppress(OtherStored):  # its cell has reported it
                put_document(results, place, lease_s)
            note.unlink(missing_ok=True)


def remove_staging(results: Path, tester: str) -> None:
    """Remove from its own mirror what this tester was measuring when it was killed; of a directory a night does."""
    if address_of(results) is not None:
        for staging in (results / TESTERS).glob(f"*/{tester}-{'?' * TOKEN_LENGTH}"):
            shutil.rmtree(staging, ignore_errors=True)


def _ask(results: Path, do: Callable[[Store], T], lease_s: float) -> T:
    return ask_store(results, do, min(WAIT_S, lease_s))
