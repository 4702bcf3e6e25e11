"""A cell's document in the store that the results mirror: looked for before it is measured, put there afterwards.

A store that is away delays a cell by two waits and loses nothing: the mirror has the document, and the night's end puts
what is not there. If the store had one all the same, that stands.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from ..core.errors import BenchError, StoreError, as_bench_error
from ..files import replace_file
from ..results.document import read_sealed
from ..results.nights import is_sent
from ..results.remote import Store, address_of, store_of

WAIT_S = 10.0
"""The store is waited for so long, but no longer than a lease."""


def fetch_document(results: Path, place: str, lease_s: float) -> bool:
    """Bring the document into the mirror; False where the store has none, or cannot be asked."""
    read: list[bytes | None] = []
    with contextlib.suppress(BenchError):
        _in_time(results, lambda store: read.append(store.read(place)), lease_s)
    if not read or read[0] is None:
        return False
    with contextlib.suppress(FileExistsError):
        replace_file(results / place, read[0], exclusive=True, by_link=True)
    return True


def put_document(results: Path, place: str, lease_s: float) -> str | None:
    """Put the document into the store, or take the complete one that is there; a warning if it is not there then."""
    there: list[bytes] = []

    def put(store: Store) -> None:
        try:
            store.create(place)
        except StoreError:
            if (data := store.read(place)) is not None:
                there.append(data)
            raise

    try:
        if not is_sent(results / place):
            _in_time(results, put, lease_s)
    except BenchError as error:
        if not there:
            return f"{error}; what is not there is put when the night ends"
        if read_sealed(there[0]) is None:
            return str(error)
        with contextlib.suppress(OSError):  # then the night's end says so
            replace_file(results / place, there[0])
        return f"{place} was in the store already: that one stands"
    return None


def _in_time(results: Path, do: Callable[[Store], object], lease_s: float) -> None:
    """Do it with the store, if there is one; StoreError where that takes too long, though it may still be done."""
    if (address := address_of(results)) is None:
        return
    ended, wait_s = queue.SimpleQueue[BenchError | None](), min(WAIT_S, lease_s)

    def work() -> None:
        try:
            store = store_of(results)
            assert store is not None
            do(store)
            ended.put(None)
        except Exception as error:
            ended.put(as_bench_error(error))

    threading.Thread(target=work, name="store", daemon=True).start()
    try:
        error = ended.get(timeout=wait_s)
    except queue.Empty:
        raise StoreError(f"{address} does not answer within {wait_s:g} s") from None
    if error is not None:
        raise error
