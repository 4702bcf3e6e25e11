"""Journal of a run in progress: ``X.samples.jsonl`` beside its document ``X.json``.

The first line names the run; every other one is ``{"<list>": ...}``, the next value of one of its lists (Run.growing).
A thread of its own writes it, so that taking samples waits for no disk. It is removed once the document is complete.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ..core.errors import StoreError
from ..core.load.sample import Sample, stored
from .document import decode, encode_line, naming, read_bytes

SUFFIX = ".samples.jsonl"
OF_PACKETS = ("sample", "reading")
"""Lists that documents have under another name."""
SYNC_EVERY_S, SYNC_SHARE = 5.0, 20
"""Minimum time between two fdatasync calls, also as a multiple of the time that the last call took."""
PATIENCE_S = 60.0
"""A write that takes longer means that the disk hangs."""


def journal_of(document: Path) -> Path:
    return document.with_name(document.name.removesuffix(".json") + SUFFIX)


class Journal:
    """Appends what is new in a run's lists. write, sync: of a file descriptor."""

    def __init__(
        self,
        path: Path,
        run: str,
        write: Callable[[int, bytes], int] = os.write,
        sync: Callable[[int], None] = os.fdatasync,
        patience_s: float = PATIENCE_S,
    ) -> None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # of an earlier run
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
        self._write_to, self._sync_to, self._patience_s = write, sync, patience_s
        self._lengths: dict[str, int] = {}
        self._handled = 0  # values, and the line that names the run
        self._queue: SimpleQueue[tuple[str, Any] | None] = SimpleQueue()
        self._queue.put(("run", run))
        self._left = b""
        self._failure: str | None = None
        self._busy_since: float | None = None
        self._synced_s = self._took_s = 0.0
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    @property
    def hangs(self) -> bool:
        since = self._busy_since
        return since is not None and time.monotonic() - since > self._patience_s

    @property
    def problem(self) -> str | None:
        """Why nothing is written at present; None if it is."""
        return "the disk does not answer" if self.hangs else self._failure

    def append(self, **lists: Sequence[Any]) -> None:
        """Queue what is new in these lists, which only ever grow. Waits for nothing."""
        for name, values in lists.items():
            known = self._lengths.get(name, 0)
            self._lengths[name] = length = len(values)
            for value in values[known:length]:
                self._queue.put((name, value))

    def wait(self) -> None:
        """Wait until all that was appended is written, or cannot be, or the disk hangs."""
        while self._handled <= sum(self._lengths.values()) and not self.hangs:
            time.sleep(0.001)

    def close(self) -> None:
        """Wait until everything is written, or the disk hangs."""
        self._queue.put(None)
        while self._thread.is_alive() and not self.hangs:
            self._thread.join(0.2)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            self._busy_since = time.monotonic()
            try:
                name, value = item
                self._write(encode_line({name: stored(value) if isinstance(value, Sample) else value}) + b"\n")
                self._failure = None
            except OSError as error:
                self._failure = str(error.strerror)
            except Exception as error:  # a defect of ours: the document at the end has this value all the same
                self._failure = f"{type(error).__name__}: {error}"
            self._busy_since = None
            self._handled += 1
        with contextlib.suppress(OSError):
            os.close(self._file)

    def _write(self, line: bytes) -> None:
        """Write all that is left; what a full disk does not take is kept until it takes more."""
        self._left += line
        while self._left:
            self._left = self._left[self._write_to(self._file, self._left) :]
        begun = time.monotonic()
        if begun - self._synced_s > max(SYNC_EVERY_S, SYNC_SHARE * self._took_s):
            self._sync_to(self._file)
            self._synced_s = time.monotonic()
            self._took_s = self._synced_s - begun


def read_journal(document: Path, begun: Mapping[str, Any]) -> dict[str, list[Any]] | None:
    """Read the lists of a run in progress, as in a document; None if it has no journal (any more).

    begun: the run's document. A last line without a line feed is left out: its writer was killed. StoreError for a
    damaged journal.
    """
    path = journal_of(document)
    with naming(Path(path.name)):
        try:
            *lines, _ = read_bytes(path).split(b"\n")
        except StoreError:
            if not path.exists():
                return None
            raise
        values = decode(b"[" + b",".join(lines) + b"]")
    if not lines or values[0] != {"run": begun.get("id")}:
        return None
    lists: dict[str, list[Any]] = {}
    for number, value in enumerate(values[1:], start=2):
        name, item = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
        if name not in OF_PACKETS and name not in begun:
            raise StoreError(f"{path.name}: line {number} is no reading of a run", "the file is damaged")
        lists.setdefault(name, []).append(item)
    return lists
