"""Locks between processes of this machine: files that say who holds them, freed by the kernel when the holder dies."""

from __future__ import annotations

import fcntl
import getpass
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .core.errors import BenchError, TesterBusy

RUN_DIR_ENV = "TREXBENCH_RUN_DIR"
RUN_DIR_OF_ROOT = Path("/run/trexbench")


def run_dir() -> Path:
    """Directory of locks, labs' state and their servers' logs, which live until the next boot."""
    if os.environ.get(RUN_DIR_ENV):
        return Path(os.environ[RUN_DIR_ENV])
    if os.geteuid() == 0:
        return RUN_DIR_OF_ROOT
    private = os.environ.get("XDG_RUNTIME_DIR")
    return Path(private) / "trexbench" if private else Path(tempfile.gettempdir()) / f"trexbench-{os.getuid()}"


@contextmanager
def locked(name: str, busy: str = "", doing: str = "", wait_s: float = 0.0) -> Iterator[None]:
    """Hold ``<name>.lock``; TesterBusy, naming the holder and its work, if another still has it after wait_s."""
    path = run_dir() / f"{name}.lock"
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BenchError(
            f"{path}: {error.strerror}", f"run as root, or set {RUN_DIR_ENV} to a directory that can be written"
        ) from None
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(handle, 400, 0).decode(errors="replace").strip() or "holder unknown"
                    raise TesterBusy(f"{busy or f'{name} is locked'} ({holder})", "wait for it to end") from None
            time.sleep(0.05)
        os.ftruncate(handle, 0)
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a user id without a name, as in some containers
            user = f"uid {os.getuid()}"
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        holder = f"process {os.getpid()} of {user}, since {since}{doing and ': ' + doing}"
        os.pwrite(handle, holder[:400].encode(), 0)
        yield
    finally:
        os.close(handle)


def is_held(name: str) -> bool:
    """Test whether a process of this user or of root holds ``<name>.lock``, without touching it."""
    with suppress(OSError):
        held = [line for line in Path("/proc/locks").read_text().splitlines() if " FLOCK " in line]
        for directory in {run_dir(), RUN_DIR_OF_ROOT}:
            with suppress(OSError):
                about = (directory / f"{name}.lock").stat()
                place = f" {os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino} "
                if any(place in line for line in held):
                    return True
    return False
