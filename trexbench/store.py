"""results/ <-> runs: ``results/<date>/<dut>/<HHMMSS>-<mode>-<uni|bidir>[-saturate].json``, date and time in UTC.

A run's file is replaced as a whole or not at all: it is written beside its place under a name of its own, locked
while its writer lives, forced to the disk, then renamed. Whoever kills the writer finds the former or the new file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from .core.damage import find_damage
from .core.errors import StoreError
from .core.ramp import Step
from .core.result import RunResult, from_document, raw_part, sample_to_dict, to_document
from .core.sample import Sample

MAX_BYTES = 256 << 20
"""Larger files are not read: a day at 1 Hz on two ports is 40 MB."""
MIN_INTERVAL_S = 5.0
WRITE_SHARE = 50
"""Between writes of a running measurement passes this many times what the last one took."""
_TEMPORARY = ".tmp"
_RUN_FILE = re.compile(r"\d{6}-[A-Za-z0-9_-]+-(uni|bidir)(-saturate)?(-\d+)?\.json")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class RunWriter:
    """Keeps one run's file current while it runs (a core.ports.Sink). A failing disk ends no measurement.

    Writing happens in a thread of its own: the loop that times samples never waits for a disk.
    ``warn`` gets one line when the file cannot be written, from the caller's thread.
    """

    def __init__(self, results: Path, warn: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self._results, self._warn, self._now = results, warn, now
        self._encoded = _EncodedSamples()
        self._thread: threading.Thread | None = None
        self._next_s = 0.0
        self._failure: StoreError | None = None
        self._warned = False
        self._result: RunResult | None = None
        self.path: Path | None = None

    def check(self) -> None:
        """StoreError if nothing can be kept here; to be asked before anything is measured."""
        try:
            self._results.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self._results, error) from error
        if not os.access(self._results, os.W_OK | os.X_OK):
            raise _unwritable(self._results, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))

    def begin(self, result: RunResult) -> RunWriter:
        """Give the run its place and write what is known before the first sample; StoreError where that fails."""
        self._result = result
        self.path = _create(self._results, result, self._encoded)
        self._next_s = self._now() + MIN_INTERVAL_S
        return self

    def sampled(self, samples: Sequence[Sample], step: Step) -> None:
        self._report_failure()
        if self._now() < self._next_s or self._result is None:
            return
        self._next_s = float("inf")  # until the write has ended and says when the next is due
        result = replace(self._result, samples=tuple(samples))
        self._thread = threading.Thread(target=self._write, args=(result,), name="run-writer", daemon=True)
        self._thread.start()

    def end(self, result: RunResult) -> Path:
        """Write the run as it ended; where its place fails, into a new directory for temporary files.

        Returns where it is; StoreError when neither can be written.
        """
        self.flush()
        try:
            if self.path is None:
                self.path = _create(self._results, result, self._encoded)
            else:
                replace_file(self.path, self._encoded.document(result))
        except StoreError as failure:
            self.path = self._end_elsewhere(result, failure)
        return self.path

    def flush(self) -> None:
        """Wait for a write that is under way, and report if it failed."""
        if self._thread is not None:
            self._thread.join()
        self._report_failure()

    def _write(self, result: RunResult) -> None:
        assert self.path is not None  # begin() set it before there was anything to write
        begun = self._now()
        try:
            replace_file(self.path, self._encoded.document(result))
        except StoreError as failure:
            self._failure = failure
        finally:
            ended = self._now()
            self._next_s = ended + max(MIN_INTERVAL_S, WRITE_SHARE * (ended - begun))

    def _report_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None and not self._warned:
            self._warned = True
            self._warn(f"{failure}; the measurement goes on, and is written at its end")

    def _end_elsewhere(self, result: RunResult, failure: StoreError) -> Path:
        name = self.path.name if self.path is not None else f"{_stem(result)}.json"
        try:
            path = Path(tempfile.mkdtemp(prefix="trexbench-")) / name
            replace_file(path, self._encoded.document(result))
        except OSError as error:
            raise StoreError(f"{failure}; nor can {tempfile.gettempdir()} be written ({error.strerror})") from error
        except StoreError as second:
            raise StoreError(f"{failure}; nor could it be saved elsewhere ({second})") from second
        self._warn(f"{failure}; the result was saved as {path}")
        return path


def load_run(path: Path) -> RunResult:
    """The run of a file; StoreError names the file and what is wrong with it, in one line."""
    document = read_object(path)
    try:
        result = from_document(document)
        damage = find_damage(result)
    except StoreError as error:
        raise StoreError(f"{path}: {' '.join(str(error).split())}") from error
    if damage:
        raise StoreError(f"{path}: {damage}", "the file is damaged")
    return result


def read_object(path: Path, most_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The JSON object of a file; StoreError names the file and what is wrong with it, in one line."""
    try:
        document = json.loads(_read(path, most_bytes), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise StoreError(f"{path}: nested too deeply", "it was not written by trexbench") from error
    except ValueError as error:
        raise StoreError(f"{path}: not JSON ({error})", "the file is damaged") from error
    if not isinstance(document, dict):
        raise StoreError(f"{path}: not a run document", "name a file that `trexbench ramp` wrote")
    return document


def picture_place(results: Path, result: RunResult, what: str) -> Path:
    """A place beside the run's file for a picture of several runs: ``<HHMMSS>-<mode>-<direction>-<what>.png``."""
    path = _directory(results, result) / f"{_stem(result)}-{_safe(what, '_-')}.png"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path.parent, error) from error
    return path


def find_latest(results: Path) -> Path | None:
    """The run document that was begun last; None where there is none."""
    found = [
        path
        for path in results.glob("*/*/*.json")
        if _DATE.fullmatch(path.parent.parent.name) and _RUN_FILE.fullmatch(path.name)
    ]
    return max(found, key=lambda path: (path.parent.parent.name, path.name[:6], _modified(path)), default=None)


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _read(path: Path, most_bytes: int) -> str:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise StoreError(f"{path}: not a file", "name a run document")
        if about.st_size > most_bytes:
            raise StoreError(f"{path}: {about.st_size} bytes, more than any run has", "name a run document")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", "name a run document that can be read") from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


class _EncodedSamples:
    """JSON of the samples, each encoded once however often the file is written."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def document(self, result: RunResult) -> bytes:
        """The file of this run; its samples continue those of the call before."""
        for sample in result.samples[len(self._lines) :]:
            self._lines.append(json.dumps(sample_to_dict(sample), separators=(",", ":")))
        lines = self._lines[: len(result.samples)]
        head, body = _head(result), ",\n".join(lines)
        return f'{head[:-2]},\n "samples": [\n{body}\n ]\n}}\n'.encode()


def _head(result: RunResult) -> str:
    """The document without its samples. Facts that JSON has no word for become text, or null: no run is lost to one."""
    try:
        document = to_document(result, with_samples=False)
    except Exception as error:  # a defect of ours in what is derived must not cost what was measured
        defect = {"source": "run", "code": "defect", "text": f"not analysed: {type(error).__name__}: {error}"}
        document = raw_part(result)
        document["warnings"].append(defect)
    try:
        return json.dumps(document, indent=1, default=str, allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(document, default=str), parse_constant=lambda _: None)
        return json.dumps(plain, indent=1)


def _create(results: Path, result: RunResult, encoded: _EncodedSamples) -> Path:
    """Write the run to a name that no other run has."""
    directory = _directory(results, result)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _sweep(directory)
    except OSError as error:
        raise _unwritable(directory, error) from error
    number, data = 1, encoded.document(result)
    while True:
        path = directory / f"{_stem(result)}{f'-{number}' if number > 1 else ''}.json"
        with contextlib.suppress(FileExistsError):
            replace_file(path, data, exclusive=True)
            return path
        number += 1


def _directory(results: Path, result: RunResult) -> Path:
    day = result.started[:10] if _DATE.fullmatch(result.started[:10]) else "undated"
    return results / day / _safe(str(result.dut.get("name", "")), "._-")


def _stem(result: RunResult) -> str:
    clock = "".join(re.findall(r"\d", result.started[11:19])).ljust(6, "0")
    mode = _safe(str(result.command.get("mode", "")), "_-")
    saturate = "-saturate" if result.plan.kind == "saturate" else ""
    return f"{clock}-{mode}-{'bidir' if result.plan.bidir else 'uni'}{saturate}"


def _safe(name: str, kept: str) -> str:
    """A name that is one harmless part of a path."""
    cleaned = re.sub(f"[^A-Za-z0-9{re.escape(kept)}]+", "-", name).strip(".-")
    return cleaned[:64] or "unnamed"


def replace_file(path: Path, data: bytes, exclusive: bool = False) -> None:
    """Put these bytes in the file's place, at once; FileExistsError with ``exclusive`` if there is one already."""
    try:
        with _temporary(path) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            _link(Path(file.name), path) if exclusive else os.replace(file.name, path)
        _sync_directory(path.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error


def _link(file: Path, path: Path) -> None:
    """Give the file a second name that nobody has yet."""
    try:
        os.link(file, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        if path.exists():
            raise FileExistsError(errno.EEXIST, "exists", str(path)) from error
        os.replace(file, path)  # a file system without links, such as vfat


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside ``path``, locked until it is closed, and gone afterwards unless it was renamed."""
    while True:
        unique = f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
        name = path.with_name(f".{path.name}.{unique}{_TEMPORARY}")
        with name.open("xb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not name.exists():
                continue  # swept by another writer between its creation and our lock
            try:
                yield file
            finally:
                with contextlib.suppress(OSError):
                    name.unlink()
            return


def _sweep(directory: Path) -> None:
    """Remove what killed writers left behind; a live writer holds the lock of its file."""
    for path in directory.glob(f".*{_TEMPORARY}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems know no fsync of a directory
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be written: {error.strerror}", "free space or name another place with --results")
