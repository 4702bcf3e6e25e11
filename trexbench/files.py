"""Files that are replaced as a whole or not at all. Imports nothing of the package; every failure is an OSError.

New content is written beside its place under a name of its own, locked while its writer lives, forced to the disk,
then renamed. If the writer is killed, the former file or the new one is there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_TEMPORARY = ".tmp"


def replace_file(path: Path, data: bytes, exclusive: bool = False, by_link: bool = False) -> None:
    """Replace the file's content atomically; FileExistsError with ``exclusive`` if there is one already.

    by_link: exclusive to all machines that share the file system, which therefore must have hard links.
    A device or a pipe is written to, since it must not be replaced. A symbolic link stays: its target is replaced.
    """
    if not exclusive:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        path = path.resolve()
    with _temporary(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        _link(Path(file.name), path, by_link) if exclusive else os.replace(file.name, path)
    _sync_directory(path.parent)


def link_new(file: Path, path: Path) -> None:
    """Give a complete file a second, lasting name; FileExistsError if it is taken. Needs hard links."""
    with file.open("rb") as written:
        os.fsync(written.fileno())
    _link(file, path, by_link=True)
    _sync_directory(path.parent)


@contextlib.contextmanager
def changed_alone(path: Path) -> Iterator[None]:
    """Hold the file's lock, exclusive on all machines that share its directory, until the end of the block."""
    with path.with_name(f".{path.name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def written_ns(path: Path) -> int:
    """Time of the file's last write, in nanoseconds since 1970; 0 if there is no such file."""
    try:
        return path.stat().st_mtime_ns
    except OSError:  # it may be removed at any time
        return 0


def sweep(directory: Path) -> None:
    """Remove temporary files of killed writers; a live writer holds the lock of its file."""
    for path in directory.glob(f".*{_TEMPORARY}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _link(file: Path, path: Path, by_link: bool) -> None:
    try:
        os.link(file, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        if by_link:
            raise OSError(error.errno, "must be on a file system with hard links", str(path)) from error
        if path.exists():
            raise FileExistsError(errno.EEXIST, "exists", str(path)) from error
        os.replace(file, path)  # a file system without links, such as vfat


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file beside ``path``, locked until it is closed, and then removed unless it was renamed."""
    while True:
        unique = f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
        name = path.with_name(f".{path.name}.{unique}{_TEMPORARY}")
        with name.open("xb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not name.exists():
                continue  # another writer's sweep removed it before it was locked
            try:
                yield file
            finally:
                with contextlib.suppress(OSError):
                    name.unlink()
            return


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems know no fsync of a directory
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
