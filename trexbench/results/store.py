"""results/ <-> runs: ``results/<date>/<dut>/<HHMMSS>-<words of the run>.json``, date and time in UTC.

While a run of packets goes on its document holds what was known before the first sample, and its journal the samples
(see journal); at its end one whole document replaces both. A run of TCP has few legs and no journal: its document is
replaced whenever one is over. A kill of the writer at any moment leaves a run that every reader understands.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from .. import files
from ..core.dut.telemetry import DutReading
from ..core.errors import StoreError
from ..core.history.known import is_date
from ..core.history.rows import RunRow
from ..core.load.sample import Sample
from ..core.result import RunResult
from ..core.run import Run
from ..core.strategy.base import LoadStep
from ..core.tcp.result import TcpResult
from ..core.typed import Status
from .document import (
    checked_rows,
    decode,
    decode_sealed,
    encode,
    is_interrupted,
    is_sealed,
    naming,
    read_bytes,
    read_sealed,
)
from .journal import Journal, journal_of, read_journal
from .loads import LOADS, load_of, read_run

R = TypeVar("R", bound=Run)

INTERRUPTED = "interrupted: its process ended without a word, as at kill -9 or a loss of power"


class RunWriter:
    """Stores a run of any load while it goes on and when it has ended. A failing disk ends no measurement.

    ``sampled`` makes it a core.protocols.Sink: the loop that times samples never waits for a disk, see Journal.
    ``warn`` gets one line where nothing can be written, from the caller's thread.
    """

    def __init__(
        self, results: Path, warn: Callable[[str], None], journal: Callable[[Path, str], Journal] = Journal
    ) -> None:
        self._results, self._warn, self._open_journal = results, warn, journal
        self._journal: Journal | None = None
        self._readings: Sequence[DutReading] = ()
        self._warned = False
        self.path: Path | None = None

    def check(self) -> None:
        """StoreError if nothing can be stored here; to be called before anything is measured."""
        make_directory(self._results)
        if not os.access(self._results, os.W_OK | os.X_OK):
            raise _unwritable(self._results, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))

    def begin(self, result: Run) -> RunWriter:
        """Create the run's document with what is known before the first sample or leg; StoreError where that fails.

        The ``dut_readings`` of a run of packets may be a list that grows while the run goes on.
        """
        self._write(result, encode(result))
        if isinstance(result, RunResult):
            self._begin_journal(result)
        return self

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None:
        if self._journal is not None:
            self._journal.append(samples, self._readings)
            self._report()

    def update(self, result: Run) -> None:
        """Replace the document with the run as it stands, as a whole: a kill leaves the former or the new one."""
        try:
            self._write(result, encode(result))
        except StoreError as failure:
            self._warn_once(f"{failure}; the run goes on, and is written at its end")

    def end(self, result: Run) -> Path:
        """Write the run as it ended; where results/ cannot be written, into a new temporary directory.

        Returns the document's path; StoreError when neither can be written.
        """
        if self._journal is not None:
            self._journal.close()
            self._report()
        data = encode(result)
        try:
            if self._journal is not None and self._journal.hangs:
                raise StoreError(f"{self.path} cannot be written: the disk does not answer")
            path = self._write(result, data)
        except StoreError as failure:
            name = self.path.name if self.path is not None else f"{stem_of(result)}.json"
            self.path = save_elsewhere(name, data, failure)
            self._warn(f"{failure}; the result was saved as {self.path}")
            return self.path
        with contextlib.suppress(OSError):
            journal_of(path).unlink(missing_ok=True)
        return path

    def _write(self, result: Run, data: bytes) -> Path:
        if self.path is None:
            self.path = create_file(directory_of(self._results, result), stem_of(result), data)
        else:
            replace_file(self.path, data)
        return self.path

    def _begin_journal(self, result: RunResult) -> None:
        assert self.path is not None
        self._readings = result.dut_readings
        try:
            self._journal = self._open_journal(journal_of(self.path), result.id)
        except OSError as error:
            with contextlib.suppress(OSError):
                self.path.unlink()
            raise _unwritable(journal_of(self.path), error) from error

    def _report(self) -> None:
        problem = self._journal.problem if self._journal is not None else None
        if problem is not None:
            place = f"samples cannot be written beside {self.path}: {problem}"
            self._warn_once(f"{place}; the run goes on, and is written at its end")

    def _warn_once(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(text)


def save_elsewhere(name: str, data: bytes, failure: StoreError) -> Path:
    """Write into a new temporary directory what results/ cannot take; StoreError when that fails, too."""
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="trexbench-"))
        files.replace_file(folder / name, data)
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise StoreError(f"{failure}; nor can {tempfile.gettempdir()} be written ({error.strerror})") from error
    return folder / name


def load_document(path: Path) -> Run:
    """The run of a file, of any load, with the samples of its journal where it is not over.

    StoreError names the file and what is wrong with it, in one line.
    """
    with naming(path):
        data = read_bytes(path)
        sealed = is_sealed(data)
        document, result = _read(data, path, decode_sealed if sealed else decode)
        if not sealed or not _reuse(result, document):
            checked_rows(result)
        return result


def _reuse(result: Run, document: dict[str, Any]) -> bool:
    """Take a sealed document's figures, checked when they were written; False where some are none: it has no key."""
    try:
        load_of(result).reuse(result, document)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return False
    return True


def load_run(path: Path) -> RunResult:
    """The run of packets of a file; StoreError as load_document, and for a run of another load."""
    return _loaded(path, RunResult)


def load_tcp(path: Path) -> TcpResult:
    """The run of TCP of a file; StoreError as load_document, and for a run of another load."""
    return _loaded(path, TcpResult)


def _loaded(path: Path, of: type[R]) -> R:
    result = load_document(path)
    if not isinstance(result, of):
        nouns = load_of(result).noun, LOADS[of.schema].noun.removeprefix("a run ")
        raise StoreError(f"{path}: {nouns[0]}, not {nouns[1]}", "`trexbench results show` shows it")
    return result


def load_rows(path: Path, name: str) -> tuple[RunRow, ...]:
    """The rows of a file's run, with ``name`` as their path; StoreError as load_document.

    They are the stored ones if this version derived them, else they are derived again from what was read.
    """
    with naming(path):
        rows = read_sealed(read_bytes(path))
        if rows is None:
            rows = checked_rows(load_document(path))
        return tuple(replace(row, path=name) for row in rows)


def _read(data: bytes, path: Path, decode: Callable[[bytes], Any] = decode) -> tuple[dict[str, Any], Run]:
    """The document in the path's data, with what its journal holds; and its run, unchecked."""
    document = decode(data)
    interrupted = is_interrupted(document)
    if isinstance(document, dict) and document.get("status") == Status.RUNNING.value:
        told = read_journal(path, document.get("id"))
        if (told is None or interrupted) and (newer := read_bytes(path)) != data:
            return _read(newer, path)  # the run ended in the meantime
        if told is not None:
            document["samples"] = told["sample"]
            if isinstance(document.get("telemetry"), dict):
                document["telemetry"]["readings"] = told["reading"]
    result = read_run(document)
    return document, replace(result, status=Status.INCOMPLETE, reason=INTERRUPTED) if interrupted else result


def picture_place(results: Path, result: RunResult, what: str) -> Path:
    """A path beside the run's file for a picture of several runs: ``<HHMMSS>-<mode>-<direction>-<what>.png``."""
    return make_directory(directory_of(results, result)) / f"{stem_of(result)}-{safe_name(what, '_-')}.png"


def create_file(directory: Path, stem: str, data: bytes) -> Path:
    """Write a JSON file under a new name: the stem, with a number behind it where there is such a file."""
    files.sweep(make_directory(directory))
    for number in count(1):
        path = directory / f"{stem}{f'-{number}' if number > 1 else ''}.json"
        with contextlib.suppress(FileExistsError):
            replace_file(path, data, exclusive=True)
            break
    return path


def encode_json(values: Any) -> bytes:
    return (json.dumps(values, indent=1, allow_nan=False) + "\n").encode()


def make_directory(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(directory, error) from error
    return directory


def directory_of(results: Path, result: Run) -> Path:
    day = result.started[:10] if is_date(result.started[:10]) else "undated"
    return results / day / safe_name(str(result.dut.get("name", "")), "._-")


def stem_of(result: Run) -> str:
    clock = "".join(re.findall(r"\d", result.started[11:19])).ljust(6, "0")
    return "-".join([clock, *(safe_name(word, "_-") for word in result.file_words)])


def safe_name(name: str, kept: str) -> str:
    """A name that is one harmless part of a path."""
    cleaned = re.sub(f"[^A-Za-z0-9{re.escape(kept)}]+", "-", name).strip(".-")
    return cleaned[:64] or "unnamed"


def replace_file(path: Path, data: bytes, exclusive: bool = False) -> None:
    """files.replace_file; StoreError where that fails, but FileExistsError with ``exclusive`` if there is one."""
    try:
        files.replace_file(path, data, exclusive)
    except FileExistsError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error


_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free space, or "),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable, or "),
}


def _unwritable(path: Path, error: OSError) -> StoreError:
    first = _REMEDIES.get(error.errno or 0, "")
    return StoreError(f"{path} cannot be written: {error.strerror}", f"{first}name another place with --results")
