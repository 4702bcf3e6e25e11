"""Store of runs: ``results/<date>/<dut>/<HHMMSS>-<words of the run>.json``, date and time in UTC.

During a run its document holds what was known before the first sample or leg, and its journal what was measured since
(see journal); at the end one complete document replaces both. A kill of the writer at any moment leaves a run that
every reader understands.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from .. import files
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
    naming,
    read_bytes,
    read_sealed,
    sealed_rows,
)
from .journal import Journal, journal_of, read_journal
from .loads import LOADS, load_of, read_run

R = TypeVar("R", bound=Run)

INTERRUPTED = "interrupted: its process ended without a word, as at kill -9 or a loss of power"


class RunWriter:
    """Stores a run of any load while it goes on and when it has ended. A failing disk ends no measurement.

    ``sampled`` makes it a core.protocols.Sink: the loop that times samples never waits for a disk, see Journal.
    ``warn`` is called in the caller's thread, with one line if nothing can be written.
    """

    def __init__(
        self, results: Path, warn: Callable[[str], None], journal: Callable[[Path, str], Journal] = Journal
    ) -> None:
        self._results, self._warn, self._open_journal = results, warn, journal
        self._journal: Journal | None = None
        self._begun: Run | None = None
        self._warned = False
        self.path: Path | None = None

    def check(self) -> None:
        """Raise StoreError if nothing can be stored here; to be called before anything is measured."""
        make_directory(self._results)
        if not os.access(self._results, os.W_OK | os.X_OK):
            raise _unwritable(self._results, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))

    def begin(self, result: Run) -> RunWriter:
        """Create the run's document with what is known before the first sample or leg; StoreError if that fails.

        The ``dut_readings`` of a run of packets may be a list that grows during the run.
        """
        path, self._begun = self._write(result, encode(result)), result
        try:
            self._journal = self._open_journal(journal_of(path), result.id)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            raise _unwritable(journal_of(path), error) from error
        return self

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None:
        if self._journal is not None and self._begun is not None:
            self._journal.append(**self._begun.growing(), sample=samples)
            self._warn_of_disk(self._journal)

    def update(self, result: Run) -> None:
        """Write what the run as it stands has more than when this was last called."""
        if self._journal is not None:
            self._journal.append(**result.growing())
            self._journal.wait()
            self._warn_of_disk(self._journal)

    def end(self, result: Run) -> Path:
        """Write the ended run, into a new temporary directory if results/ cannot be written; return its path.

        StoreError if neither can be written.
        """
        if self._journal is not None:
            self._journal.close()
            self._warn_of_disk(self._journal)
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

    def _warn_of_disk(self, journal: Journal) -> None:
        if (problem := journal.problem) is not None and not self._warned:
            self._warned = True
            place = f"the journal of {self.path} cannot be written: {problem}"
            self._warn(f"{place}; the run goes on, and is written at its end")


def save_elsewhere(name: str, data: bytes, failure: StoreError) -> Path:
    """Write what results/ cannot take into a new temporary directory; StoreError if that fails too."""
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
    """Load the run of a file, of any load; of a run in progress with its journal's samples.

    StoreError names the file and what is wrong with it, in one line.
    """
    with naming(path):
        data = read_bytes(path)
        sealed = sealed_rows(data) is not None
        document, result = _read(data, path, decode_sealed if sealed else decode)
        if sealed:
            # Its figures were checked when they were written. The seal has no key: forged ones are derived again.
            with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
                load_of(result).reuse(result, document)
                return result
        checked_rows(result)
        return result


def load_run(path: Path) -> RunResult:
    """Load a run of packets; StoreError as in load_document, and for a run of another load."""
    return _load_as(path, RunResult)


def load_tcp(path: Path) -> TcpResult:
    """Load a run of TCP; StoreError as in load_document, and for a run of another load."""
    return _load_as(path, TcpResult)


def _load_as(path: Path, kind: type[R]) -> R:
    result = load_document(path)
    if not isinstance(result, kind):
        wanted = LOADS[kind.schema].noun.removeprefix("a run ")
        raise StoreError(f"{path}: {load_of(result).noun}, not {wanted}", "`trexbench results show` shows it")
    return result


def load_rows(path: Path, name: str) -> tuple[RunRow, ...]:
    """Load the rows of a file's run, with ``name`` as their path; StoreError as in load_document.

    The stored rows are used if this version derived them; otherwise they are derived again from the readings.
    """
    with naming(path):
        rows = read_sealed(read_bytes(path))
        if rows is None:
            rows = checked_rows(load_document(path))
        return tuple(replace(row, path=name) for row in rows)


def _read(data: bytes, path: Path, decode: Callable[[bytes], Any] = decode) -> tuple[dict[str, Any], Run]:
    """Return the document in the path's data, with what its journal holds; and its run, unchecked."""
    document = decode(data)
    interrupted = is_interrupted(document)
    if isinstance(document, dict) and document.get("status") == Status.RUNNING.value:
        journal = read_journal(path, document)
        if (journal is None or interrupted) and (newer := read_bytes(path)) != data:
            return _read(newer, path)  # the run ended in the meantime
        if journal is not None:
            _resume(document, journal)
    result = read_run(document)
    return document, replace(result, status=Status.INCOMPLETE, reason=INTERRUPTED) if interrupted else result


def _resume(document: dict[str, Any], journal: Mapping[str, list[Any]]) -> None:
    """Put what the journal holds into the document of a run in progress."""
    for name, values in journal.items():
        if name == "sample":
            document["samples"] = values
        elif name == "reading":
            if isinstance(document.get("telemetry"), dict):
                document["telemetry"]["readings"] = values
        else:  # null before the value, which is no list then
            document[name] = values[-1] if document.get(name) is None else values


def picture_place(results: Path, result: RunResult, what: str) -> Path:
    """Return a path beside the run's file for a picture of several runs: ``<HHMMSS>-<mode>-<direction>-<what>.png``."""
    return make_directory(directory_of(results, result)) / f"{stem_of(result)}-{safe_name(what, '_-')}.png"


def create_file(directory: Path, stem: str, data: bytes) -> Path:
    """Write a JSON file under a new name: the stem, followed by a number if that name is taken."""
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
    """Turn a name into one harmless part of a path: letters of any script, digits, and what is kept."""
    cleaned = re.sub(f"[^\\w{re.escape(kept)}]+", "-", name).strip(".-")
    return cleaned[:64].encode()[:192].decode(errors="ignore") or "unnamed"  # file systems count bytes


def replace_file(path: Path, data: bytes, exclusive: bool = False) -> None:
    """Call files.replace_file; StoreError if it fails, but FileExistsError with ``exclusive`` if the file exists."""
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
    remedy = f"{_REMEDIES.get(error.errno or 0, '')}name another place with --results"
    return StoreError(f"{path} cannot be written: {error.strerror}", remedy)
