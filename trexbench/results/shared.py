"""Small files that all testers of a fleet share: in their directory of results, or in the store that it mirrors.

OSError if a directory cannot be read or written, StoreError if a store cannot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from pathlib import Path
from typing import TypeVar

from .. import files
from ..core.errors import StoreError, as_bench_error
from .remote import Store, address_of, store_of

T = TypeVar("T")


class _InDirectory:
    def __init__(self, folder: Path, mode: int) -> None:
        self._folder, self._mode = folder, mode

    def names(self) -> list[str]:
        """List the files and folders directly in it; none if there is no folder."""
        try:
            return [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        """Return the file's content; None if there is no file."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, name: str, data: bytes) -> bool:
        """Write the file; False if there is one already."""
        self._folder.mkdir(self._mode, parents=True, exist_ok=True)
        try:
            files.replace_file(self._folder / name, data, exclusive=True, by_link=True)
        except FileExistsError:
            return False
        return True

    def replace(self, name: str, data: bytes) -> None:
        self._folder.mkdir(self._mode, parents=True, exist_ok=True)
        files.replace_file(self._folder / name, data)

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


class _InStore:
    """Reads and writes in a store. wait_s: a request that takes longer fails, though it may still be carried out."""

    def __init__(self, mirror: Path, folder: str, wait_s: float | None) -> None:
        self._mirror, self._folder, self._wait_s = mirror, folder, wait_s

    def names(self) -> list[str]:
        there = self._ask(lambda store: store.find(self._folder))
        return [*dict.fromkeys(name[len(self._folder) + 1 :].partition("/")[0] for name in there)]

    def read(self, name: str) -> bytes | None:
        return self._ask(lambda store: store.read(f"{self._folder}/{name}"))

    def create(self, name: str, data: bytes) -> bool:
        return self._ask(lambda store: store.write_new(f"{self._folder}/{name}", data))

    def replace(self, name: str, data: bytes) -> None:
        self._ask(lambda store: store.write(f"{self._folder}/{name}", data))

    def remove(self, name: str) -> None:
        self._ask(lambda store: store.remove([f"{self._folder}/{name}"]))

    def _ask(self, do: Callable[[Store], T]) -> T:
        return ask_store(self._mirror, do, self._wait_s)


def shared_files(
    folder: Path, mode: int = 0o777, wait_s: float | None = None, is_here: bool = False
) -> _InDirectory | _InStore:
    """Return the files of this folder; those of the store if the folder lies in a store's mirror.

    mode: of a directory that is made. wait_s: maximum wait for the store. is_here: use the mirror's own files.
    """
    for results in folder.parents:
        if not is_here and address_of(results) is not None:
            return _InStore(results, folder.relative_to(results).as_posix(), wait_s)
    return _InDirectory(folder, mode)


def ask_store(mirror: Path, do: Callable[[Store], T], wait_s: float | None = None) -> T:
    """Call ``do`` with the store of this mirror; StoreError if that takes too long, though it may still succeed."""
    answer = Future[T]()

    def work() -> T:
        store = store_of(mirror)
        assert store is not None
        return do(store)

    def work_aside() -> None:
        try:
            answer.set_result(work())
        except Exception as error:
            answer.set_exception(as_bench_error(error))

    if wait_s is None:
        return work()
    threading.Thread(target=work_aside, name="store", daemon=True).start()
    try:
        return answer.result(wait_s)
    except TimeoutError:
        raise StoreError(f"{address_of(mirror)} does not answer within {wait_s:g} s") from None
