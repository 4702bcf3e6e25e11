"""Journal of a run in progress: ``X.samples.jsonl`` beside its document ``X.json``.

The first line names the run; every other one is ``{"sample": ...}`` or ``{"reading": ...}`` as in the document. A
thread of its own writes it, so that taking samples waits for no disk. It is removed once the document is complete.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ..core.dut.telemetry import DutReading
from ..core.errors import StoreError
from ..core.load.sample import Sample, stored
from .document import decode, encode_line, naming, read_bytes

SUFFIX = ".samples.jsonl"
SYNC_EVERY_S, SYNC_SHARE = 5.0, 20
"""Minimum time between two fdatasync calls, also as a multiple of the time that the last call took."""
PATIENCE_S = 60.0
"""A write that takes longer means that the disk hangs."""


def journal_of(document: Path) -> Path:
    return document.with_name(document.name.removesuffix(".json") + SUFFIX)


class Journal:
    """Appends a run's new samples and readings of the DUT. write, sync: of a file descriptor."""

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
        self._samples = self._readings = 0
        self._queue: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._queue.put({"run": run})
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
        """Why samples are not written at present; None if they are."""
        return "the disk does not answer" if self.hangs else self._failure

    def append(self, samples: Sequence[Sample], dut_readings: Sequence[DutReading]) -> None:
        """Queue what is new in these lists, which only ever grow. Waits for nothing."""
        for reading in dut_readings[self._readings : len(dut_readings)]:
            self._readings += 1
            self._queue.put({"reading": reading})
        for sample in samples[self._samples :]:
            self._samples += 1
            self._queue.put({"sample": stored(sample)})

    def close(self) -> None:
        """Wait until everything is written, or the disk hangs."""
        self._queue.put(None)
        while self._thread.is_alive() and not self.hangs:
            self._thread.join(0.2)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            self._busy_since = time.monotonic()
            try:
                self._write(encode_line(item) + b"\n")
                self._failure = None
            except OSError as error:
                self._failure = str(error.strerror)
            except Exception as error:  # a defect of ours: the document at the end has this sample all the same
                self._failure = f"{type(error).__name__}: {error}"
            self._busy_since = None
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


def read_journal(document: Path, run: object) -> dict[str, list[Any]] | None:
    """Read ``sample`` and ``reading`` of the run with this id, as in a document; None if it has no journal (any more).

    A last line without a line feed is left out: its writer was killed. StoreError for a damaged journal.
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
    if not lines or values[0] != {"run": run}:
        return None
    lists: dict[str, list[Any]] = {"sample": [], "reading": []}
    for number, value in enumerate(values[1:], start=2):
        kind, item = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
        if kind not in lists:
            raise StoreError(f"{path.name}: line {number} is neither a sample nor a reading", "the file is damaged")
        lists[kind].append(item)
    return lists
