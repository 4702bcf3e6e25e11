"""results/acknowledged.json <-> known changes; replaced as a whole, by one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.errors import StoreError
from ..core.known import Known, known_from_dict, known_to_dict
from ..store import read_object, replace_file

FILE = "acknowledged.json"
MAX_BYTES = 4 << 20


def load_known(results: Path) -> list[Known]:
    """What was acknowledged so far, nothing where there is no file; StoreError names it where it cannot be read."""
    path = results / FILE
    if not path.exists():
        return []
    try:
        return known_from_dict(read_object(path, MAX_BYTES))
    except StoreError as error:
        text = " ".join(str(error).split())
        raise StoreError(text if str(path) in text else f"{path}: {text}") from None


def add_known(results: Path, one: Known) -> None:
    """Keep one more known change."""
    with _alone(results):
        _write(results, [*load_known(results), one])


def remove_known(results: Path, number: int) -> Known:
    """Forget the known change of this number (from 1, as listed)."""
    with _alone(results):
        known = load_known(results)
        if not 1 <= number <= len(known):
            raise StoreError(f"no known change {number}", "trexbench regress --known lists them")
        gone = known.pop(number - 1)
        _write(results, known)
    return gone


def _write(results: Path, known: Sequence[Known]) -> None:
    text = json.dumps(known_to_dict(known), indent=1, allow_nan=False)
    replace_file(results / FILE, (text + "\n").encode())


@contextlib.contextmanager
def _alone(results: Path) -> Iterator[None]:
    """Two who acknowledge at once must not lose one's note; the directory itself is the lock."""
    try:
        handle = os.open(results, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StoreError(f"{results}: {error.strerror}", "name the results with --results") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
