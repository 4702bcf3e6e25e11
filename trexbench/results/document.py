"""Format of a run's file, and the seal at its end: what was derived, by which version, and a digest.

The last value of a finished run's file is ``derived``: the version of the analysis, the run's rows in the index, and a
digest of every byte before it. If version and digest match, deriving again would give the stored figures; otherwise
they are not used.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import StoreError
from ..core.history.rows import METRICS, RunRow
from ..core.load.sample import StoredSample
from ..core.result import ANALYSIS_VERSION
from ..core.run import Run, find_damage
from ..core.typed import Status
from ..processes import Writer, this_writer
from .loads import figures_of, load_of, read_run
from .remote import fetch_missing

MAX_BYTES = 256 << 20
"""Larger files are not read: a day at 1 Hz on two ports is 40 MB."""
EXPORT = ".loadtest.json"
"""Ending of the name of an export, which is no document of ours."""
_DERIVED, _DIGEST, _END = b'\n "derived": ', b',"digest":"', b'"}\n}\n'
_HEX = 32


@dataclass(frozen=True)
class Derived:
    """The seal without its digest."""

    analysis_version: int
    rows: msgspec.Raw
    """JSON of the run's RunRows, with empty paths."""


_derived = msgspec.json.Decoder(Derived)
_rows = msgspec.json.Decoder(tuple[RunRow, ...])
_samples = msgspec.json.Decoder(list[StoredSample])

encode_line = msgspec.json.Encoder(enc_hook=str).encode
"""Encode values as JSON without a line feed; NaN and infinity become null."""


def encode(result: Run) -> bytes:
    """Encode a run as it stands: its figures, then a line for each sample or leg; sealed once the run has ended.

    A run in progress has no figures, but names its writer, so that readers know when that is gone. A run that no
    reader would accept, or that cannot be analysed, is written without figures and seal: nothing measured is lost.
    """
    raw = result.raw_part()
    readings = {name: b",\n".join(map(encode_line, values)) for name, values in result.readings().items()}
    if result.status is Status.RUNNING:
        return _unclosed(raw | {"writer": msgspec.to_builtins(this_writer())}, readings) + b"\n}\n"
    try:
        # Derived from what readers will find, which may be less than what is in memory.
        run = read_run(decode(_unclosed(raw, readings) + b"}"))
        rows = checked_rows(run)
        return seal(_unclosed(figures_of(run), readings), rows)
    except StoreError:  # every reader refuses it and says why
        pass
    except Exception as error:  # a defect of ours in what is derived must not cost what was measured
        text = f"not analysed: {type(error).__name__}: {error}"
        raw["warnings"].append({"source": "run", "code": "defect", "text": text})
    return _unclosed(raw, readings) + b"\n}\n"


def seal(data: bytes, rows: Sequence[RunRow]) -> bytes:
    """Seal a document, which ends with its readings, with the rows derived from them."""
    derived = msgspec.json.encode({"analysis_version": ANALYSIS_VERSION, "rows": rows})
    sealed = data + b"," + _DERIVED + derived[:-1]
    return sealed + _DIGEST + digest_of(sealed) + _END


def _unclosed(head: Mapping[str, Any], readings: Mapping[str, bytes]) -> bytes:
    lists = (f',\n "{name}": [\n'.encode() + lines + b"\n ]" for name, lines in readings.items())
    return dump(head)[:-2].encode() + b"".join(lists)


def is_interrupted(document: Any) -> bool:
    """Test whether a document says that its run is in progress, though its writer is certain to be gone."""
    if not isinstance(document, Mapping) or document.get("status") != Status.RUNNING.value:
        return False
    try:
        return msgspec.convert(document.get("writer"), Writer).gone
    except (msgspec.ValidationError, UnicodeEncodeError):  # of a version that did not name it
        return False


def read_sealed(data: bytes) -> tuple[RunRow, ...] | None:
    """Read the rows of a sealed file; None if it is not sealed, or its rows lack this version's fields."""
    try:
        rows = _rows.decode(sealed) if (sealed := sealed_rows(data)) is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return rows if rows is not None and all(row.aim in METRICS for row in rows) else None


def sealed_rows(data: bytes) -> msgspec.Raw | None:
    """Return the rows that this version of the analysis derived, as JSON; None if a byte has changed since."""
    end = len(data) - len(_DIGEST) - _HEX - len(_END)
    begin = data.rfind(_DERIVED, 0, max(0, end))
    if begin < 0 or data[end:] != _DIGEST + digest_of(memoryview(data)[:end]) + _END:
        return None
    try:
        derived = _derived.decode(data[begin + len(_DERIVED) : end] + b"}")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return derived.rows if derived.analysis_version == ANALYSIS_VERSION else None


def checked_rows(result: Run) -> tuple[RunRow, ...]:
    """Derive the run's rows, with empty paths; StoreError for figures that no run can have, or no index can hold."""
    damage = find_damage(result)
    if damage is None:
        try:
            rows = load_of(result).rows(result)
            damage = next((problem for row in rows for problem in _find_problems(row)), None)
        except ArithmeticError:
            damage = "a figure is not finite"
        if damage is None:
            return rows
    raise StoreError(damage, "the file is damaged")


def _find_problems(row: RunRow) -> Iterator[str]:
    of_nodes = {"cycles per packet of a node": sum(row.nodes.values()), "a node": "".join(row.nodes)}
    for name, value in {**row.to_dict(), **row.cell.to_dict(), **of_nodes}.items():
        if isinstance(value, float) and not isfinite(value):
            yield f"{name} is not finite"
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            yield f"{name} is not Unicode text"


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Raise a StoreError of the block as one line that begins with the file's name."""
    try:
        yield
    except StoreError as error:
        line = " ".join(str(error).split())
        raise StoreError(line if line.startswith(f"{path}: ") else f"{path}: {line}") from error


def read_object(path: Path, most_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Read the JSON object of a file; StoreError names the file and what is wrong with it, in one line."""
    with naming(path):
        document = decode(read_bytes(path, most_bytes))
        if not isinstance(document, dict):
            raise StoreError("not a run document", "name a file that `trexbench ramp` wrote")
        return document


def read_bytes(path: Path, most_bytes: int = MAX_BYTES) -> bytes:
    """Read a file, fetched first if it is missing in a store's mirror. Does not block on a pipe.

    StoreError for what is no regular file, cannot be read or is too large.
    """
    try:
        if not path.exists():
            fetch_missing(path)
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise StoreError("not a file", "name a run document")
            if about.st_size > most_bytes:
                raise StoreError(f"{about.st_size} bytes, more than any run has", "name a run document")
            return file.read(most_bytes)
    except IsADirectoryError:
        raise StoreError("not a file", "name a run document") from None
    except OSError as error:
        raise StoreError(str(error.strerror), "name a run document that can be read") from error


def decode(data: bytes) -> Any:
    """Decode JSON; StoreError says what is wrong with it."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # json's errors say more
        return msgspec.json.decode(data)
    try:
        text = data.decode(json.detect_encoding(data))  # PowerShell writes a program's output as UTF-16
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise StoreError("nested too deeply", "it was not written by trexbench") from error
    except ValueError as error:
        raise StoreError(f"not JSON ({error})", "the file is damaged") from error


def decode_sealed(data: bytes) -> Any:
    """Decode a sealed document, its samples, which are most of it, as StoredSample. StoreError as in decode."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        samples = {"samples": _samples.decode(parts.pop("samples"))} if "samples" in parts else {}
        return {name: msgspec.json.decode(part) for name, part in parts.items()} | samples
    return decode(data)


def dump(document: Mapping[str, Any]) -> str:
    """Encode JSON; facts that it cannot express become text or null, so that no run is lost to one."""
    try:
        return json.dumps(document, indent=1, default=str, allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(document, default=str), parse_constant=lambda _: None)
        return json.dumps(plain, indent=1)


def digest_of(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=_HEX // 2).hexdigest().encode()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
